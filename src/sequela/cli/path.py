"""``sequela path``: models along decreasing penalties, with cross-validation if wanted."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click

from sequela.cli.inputs import check_output, force_option, load_data, run_options
from sequela.cli.output import json_option, make_console, print_json, print_table

__all__ = ["path"]


@click.command(epilog="\b\nExample:\n  sequela path samples.csv -o penalties.csv --cv --seed 1")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Also write the table (CSV).")
@click.option("--penalties", type=click.IntRange(min=2), default=20, show_default=True)
@click.option(
    "--ratio", type=float, default=0.05, show_default=True, help="Smallest over largest penalty."
)
@click.option("--cv", is_flag=True, help="Cross-validate: held-out likelihood of every penalty.")
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True)
@click.option("--times", help="The column with observation times, if DATA has one.")
@click.option(
    "--most-frequent", type=click.IntRange(min=1), help="Only so many of the most frequent items."
)
@force_option
@run_options
@json_option
def path(
    data: Path,
    output: Path | None,
    penalties: int,
    ratio: float,
    cv: bool,
    folds: int,
    times: str | None,
    most_frequent: int | None,
    force: bool,
    seed: int | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Learn from DATA with one penalty after the other, from the largest that matters down.

    With --cv the penalty within one standard error of the best is marked: give it to
    `sequela fit`, or let `sequela fit --cv` do both.
    """
    check_output(output, force=force)
    samples = load_data(data, times)
    if most_frequent is not None:
        samples = samples.most_frequent(min(most_frequent, samples.n_items))
    shared: dict[str, Any] = {
        "n_penalties": penalties, "ratio": ratio, "random_state": seed, "n_threads": threads,
    }  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = make_report(samples, shared, folds if cv else None, output)
    for notice in dict.fromkeys(str(w.message) for w in caught):
        click.echo(f"sequela: {notice}", err=True)
    if as_json:
        print_json(report)
    else:
        show(report)


def make_report(
    samples: Any, shared: dict[str, Any], folds: int | None, output: Path | None
) -> dict[str, Any]:
    """Learn the path; return its table."""
    from sequela.learning.path import SetChainCV
    from sequela.learning.path import path as learn_path
    from sequela.report.tables import records, write_table

    report: dict[str, Any] = {"samples": samples.n_samples, "items": samples.n_items}
    if folds is None:
        found = learn_path(samples, **shared)
        table = found.table
    else:
        chain = SetChainCV(folds=folds, **shared).fit(samples)
        table = chain.cv_results_
        report |= {"penalty": chain.penalty_, "seed": chain.seed_}
    if output is not None:
        write_table(table, output, index=False)
    return {**report, "table": records(table)}


def show(report: dict[str, Any]) -> None:
    """Print the table; columns as they are called in the file."""
    names = list(report["table"][0])
    rows = [
        [
            "" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)
            for value in row.values()
        ]
        for row in report["table"]
    ]
    console = make_console()
    print_table(console, dict.fromkeys(names, True), rows)
    if "penalty" in report:
        console.print(f"\nchosen: penalty {report['penalty']:.5g}", soft_wrap=True)
