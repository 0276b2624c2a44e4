"""``sequela compile``: compile all kernels in advance."""

from __future__ import annotations

import click

from sequela.cli.output import json_option, make_console, print_json

__all__ = ["compile_command"]


@click.command("compile", epilog="\b\nExample:\n  sequela compile")
@json_option
def compile_command(as_json: bool) -> None:
    """Compile all numerical kernels now instead of at their first use.

    Use this command when you build a container image, or before many jobs start on a cluster.
    """
    from sequela.report import compile_kernels

    found = compile_kernels()
    if as_json:
        print_json(found.to_json())
        return
    make_console().print(
        f"{found.cached_kernels} kernels are ready in {found.numba_cache} ({found.seconds:.0f} s)"
        if found.numba_cache
        else "There is no folder for compiled code; set NUMBA_CACHE_DIR to a folder."
    )
