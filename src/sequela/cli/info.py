"""``sequela info``: what is installed, and what a run would use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sequela.cli.output import (
    json_option,
    make_console,
    print_json,
    print_table,
)
from sequela.report.run import package_versions

__all__ = ["info"]


@click.command(epilog="\b\nExample:\n  sequela info --json > versions.json")
@json_option
def info(as_json: bool) -> None:
    """Show versions, threads, and where compiled code is kept.

    Add it to a report of a problem.
    """
    report = make_report()
    if as_json:
        print_json(report)
    else:
        show(report)


def make_report() -> dict[str, Any]:
    """Collect versions, the number of threads and the state of the Numba cache."""
    import platform

    from sequela.kernels.lattice import evaluate_block
    from sequela.support.threads import resolve_threads

    # The folder that Numba really uses: beside the source, or elsewhere if that is read-only.
    folder = evaluate_block.stats.cache_path
    return {
        "versions": package_versions(),
        "platform": platform.platform(),
        "threads": resolve_threads(None),
        "numba_cache": None if folder is None else str(folder),
        "cached_kernels": 0 if folder is None else len(list(Path(folder).glob("*.nbi"))),
    }


def show(report: dict[str, Any]) -> None:
    """Print the report as a table of two columns."""
    if report["numba_cache"] is None:
        cache = "none: kernels are compiled in every run; set NUMBA_CACHE_DIR to keep them"
    else:
        cache = f"{report['numba_cache']} ({report['cached_kernels']} kernels)"
    rows = [
        *report["versions"].items(),
        ("platform", report["platform"]),
        ("threads", str(report["threads"])),
        ("compiled code", cache),
    ]
    print_table(make_console(), {"What": False, "Found": False}, rows)
