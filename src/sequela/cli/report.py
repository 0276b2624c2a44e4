"""``sequela report``: everything about a run as one page to look at and share."""

from __future__ import annotations

from pathlib import Path

import click

from sequela.cli.fit import execution_for
from sequela.cli.inputs import load_data
from sequela.cli.output import echo, json_option, print_json

__all__ = ["report"]


@click.command(epilog="\b\nExample:\n  sequela report glioblastoma")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write. Default: report.html in FOLDER.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Number of threads; the result does not depend on it. Default: all available cores.",
)
@json_option
def report(
    folder: Path, data: Path | None, output: Path | None, threads: int | None, as_json: bool
) -> None:
    """Write report.html of a FOLDER that `sequela fit` made.

    The report is one file that opens in any browser, without a server or a network. It shows which
    orders the data can tell, the network of interactions, orders, the progression of the cohort,
    single samples, the goodness of fit, and how everything was made. If FOLDER holds a rivals.csv
    (`sequela rivals FOLDER DATA -o FOLDER/rivals.csv`), the report shows the evidence for each
    order. DATA is needed only if the samples are no longer where the fit read them.
    """
    from sequela.report.html import REPORT_NAME
    from sequela.report.html_folder import report_on_folder

    samples = None if data is None else load_data(data)
    made = report_on_folder(folder, samples, execution=execution_for(threads))
    target = folder / REPORT_NAME if output is None else output
    made.save(target)
    if as_json:
        print_json({"report": str(target), "bytes": target.stat().st_size})
    else:
        echo(f"written: {target}")
