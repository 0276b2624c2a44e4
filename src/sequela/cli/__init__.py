"""The command ``sequela``.

Large packages, such as NumPy, are imported only when a command runs, so that ``--help`` and tab
completion are fast. A command reads its options, calls the Python function that does the work, and
prints the result as text or as one JSON object. The functions that write output folders are in
`sequela.report`.
"""

from __future__ import annotations

import click

from sequela import __version__
from sequela.cli.cite import cite
from sequela.cli.compare import compare
from sequela.cli.compile import compile_command
from sequela.cli.demo import demo
from sequela.cli.errors import Commands
from sequela.cli.fit import fit
from sequela.cli.import_files import import_files
from sequela.cli.info import info
from sequela.cli.naming import CommandNames
from sequela.cli.next import next_command
from sequela.cli.order import order
from sequela.cli.output import show_notices, show_progress
from sequela.cli.path import path
from sequela.cli.plan import plan
from sequela.cli.plot import plot
from sequela.cli.posterior import posterior
from sequela.cli.repeat import collect, repeat
from sequela.cli.report import report
from sequela.cli.rivals import rivals
from sequela.cli.score import score
from sequela.cli.simulate import simulate
from sequela.cli.time import time
from sequela.support.naming import names_of_command

__all__ = ["main"]


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExample:\n  sequela demo -o sequela-demo",
)
@click.version_option(__version__, prog_name="sequela", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback if an error occurs.")
@click.pass_context
def main(ctx: click.Context, debug: bool) -> None:  # noqa: ARG001 - `Commands` reads it
    """Learn the order in which items accumulate, from samples that were each observed once.

    Results go to standard output. Notices and errors go to standard error. The exit code is 0 for
    success, 2 for invalid input, 1 for any other error, and 130 after an interrupt.
    """
    running = main.get_command(ctx, ctx.invoked_subcommand or "")
    ctx.with_resource(names_of_command(CommandNames(running, import_files)))
    show_notices(ctx)
    show_progress(ctx)


for _command in (
    import_files, fit, posterior, plan, path, repeat, collect, order, rivals, compare, time,
    next_command,
    simulate, score, plot, report, demo, info, compile_command, cite,
):  # fmt: skip
    main.add_command(_command)
