"""``sequela info``: installed versions, number of threads, and the cache of compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sequela.cli.output import (
    json_option,
    make_console,
    print_json,
    print_table,
)

if TYPE_CHECKING:
    from sequela.report import Environment

__all__ = ["info"]


@click.command(epilog="\b\nExample:\n  sequela info --json > versions.json")
@json_option
def info(as_json: bool) -> None:
    """Show versions, the number of threads, and where compiled code is kept.

    Please include this output when you report a problem.
    """
    from sequela.report import describe_environment

    found = describe_environment()
    if as_json:
        print_json(found.to_json())
    else:
        show(found)


def show(found: Environment) -> None:
    """Print the environment as a table of two columns."""
    if found.numba_cache is None:
        cache = "none: kernels are compiled in every run; set NUMBA_CACHE_DIR to keep them"
    else:
        cache = f"{found.numba_cache} ({found.cached_kernels} kernels)"
    rows = [
        *found.versions.items(),
        ("platform", found.platform),
        ("threads", str(found.threads)),
        ("compiled code", cache),
    ]
    print_table(make_console(), {"What": False, "Found": False}, rows)
