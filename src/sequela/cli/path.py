"""``sequela path``: learn models with decreasing penalties, optionally with cross-validation."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click

from sequela.cli.inputs import (
    check_output,
    drop_option,
    force_option,
    load_data,
    most_frequent_option,
    run_options,
    times_option,
)
from sequela.cli.output import (
    json_option,
    make_console,
    print_json,
    print_notices,
    print_table,
)

__all__ = ["path"]


@click.command(epilog="\b\nExample:\n  sequela path samples.csv -o penalties.csv --cv --seed 1")
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Also write the table to this file (CSV).",
)
@click.option(
    "--penalties",
    type=click.IntRange(min=2),
    default=20,
    show_default=True,
    help="Number of penalties.",
)
@click.option(
    "--ratio",
    type=float,
    default=0.05,
    show_default=True,
    help="Ratio of the smallest to the largest penalty.",
)
@click.option(
    "--cv", is_flag=True, help="Compute the held-out likelihood of each penalty (cross-validation)."
)
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="With --cv: number of folds.",
)
@times_option
@most_frequent_option
@drop_option
@force_option
@run_options
@json_option
def path(
    data: Path,
    output: Path | None,
    force: bool,
    settings: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """Learn models from DATA along a path of decreasing penalties.

    The path starts at the smallest penalty for which no interaction is learned. With --cv, the
    table marks the chosen penalty: the largest penalty whose held-out likelihood is within one
    standard error of the best. Pass this penalty to `sequela fit`, or use `sequela fit --cv`, which
    chooses the penalty and learns the model.
    """
    check_output(output, force=force)
    samples = load_data(
        data, times=options["times"], most_frequent=options["most_frequent"], drop=options["drop"],
        to_learn=True,
    )  # fmt: skip
    shared: dict[str, Any] = {
        "n_penalties": options["penalties"],
        "ratio": options["ratio"],
        **settings,
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = make_report(samples, shared, options["folds"] if options["cv"] else None, output)
    print_notices(dict.fromkeys(str(w.message) for w in caught))
    if as_json:
        print_json(report)
    else:
        show(report)


def make_report(
    samples: Any, shared: dict[str, Any], folds: int | None, output: Path | None
) -> dict[str, Any]:
    """Learn the models; return the table with one row per penalty."""
    from sequela.learning import SetChainCV
    from sequela.learning import path as learn_path
    from sequela.report.tables import records, write_table

    report: dict[str, Any] = {"samples": samples.n_samples, "items": samples.n_items}
    if folds is None:
        found = learn_path(samples, **shared)
        table = found.table
    else:
        learner = SetChainCV(folds=folds, **shared).fit(samples)
        table = learner.cv_results_
        report |= {"penalty": learner.penalty_, "seed": learner.seed_}
    if output is not None:
        write_table(table, output, index=False)
    return {**report, "table": records(table)}


def show(report: dict[str, Any]) -> None:
    """Print the table with the column names of the CSV file."""
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
