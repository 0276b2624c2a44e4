"""``sequela report``: all results of a run as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
@click.option(
    "--clinical",
    type=click.Path(path_type=Path),
    help="Survival times of the samples: data_clinical_patient.txt of cBioPortal, or the table "
    "that can be downloaded from its study view.",
)
@click.option(
    "--clinical-samples",
    type=click.Path(path_type=Path),
    help="data_clinical_sample.txt, which says which samples belong to which patient.",
)
@click.option(
    "--endpoint", default="OS", show_default=True,
    help="With --clinical: the survival time to use, OS, DFS, PFS or DSS.",
)  # fmt: skip
@click.option(
    "--compare",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Also show the orders of this other run, for comparison.",
)
@json_option
def report(
    folder: Path,
    data: Path | None,
    output: Path | None,
    threads: int | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Write report.html for a FOLDER that `sequela fit` or `sequela posterior` made.

    The report is one file that opens in any browser, without a server or a network. It shows the
    orders of items, and which of them the data can tell. It also shows the network of interactions,
    the progression of the cohort, single samples, how well the model fits the data, and how the
    results were computed. If FOLDER contains a file rivals.csv (`sequela rivals FOLDER DATA -o
    FOLDER/rivals.csv`), the report shows the evidence for each order. With --clinical it compares
    the survival of early and late samples. With --compare it compares the orders of two cohorts.
    DATA is needed only if the file of the samples was moved.
    """
    execution = execution_for(threads)
    from sequela.data.clinical import read_clinical
    from sequela.report.html import REPORT_NAME
    from sequela.report.html_folder import ReportExtras, report_on_folder

    samples = None if data is None else load_data(data)
    clinical = None
    if given["clinical"] is not None:
        clinical = read_clinical(
            given["clinical"], given["clinical_samples"], endpoint=given["endpoint"]
        )
    elif given["clinical_samples"] is not None:
        raise click.UsageError("--clinical-samples needs --clinical")
    extras = ReportExtras(clinical, given["compare"])
    made = report_on_folder(folder, samples, execution=execution, extras=extras)
    target = folder / REPORT_NAME if output is None else output
    made.save(target)
    if as_json:
        print_json({"report": str(target), "bytes": target.stat().st_size})
    else:
        echo(f"written: {target}")
