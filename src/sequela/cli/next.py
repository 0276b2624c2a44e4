"""``sequela next``: which items are likely to come next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sequela.cli.inputs import load_model, model_argument, run_options, split_items
from sequela.cli.output import json_option, make_console, print_json, print_table

if TYPE_CHECKING:
    from pathlib import Path

    from sequela.model import Model

__all__ = ["next_command"]


@click.command(
    "next", epilog='\b\nExample:\n  sequela next glioblastoma --state "EGFR(A),PTEN" --within 0.5'
)
@model_argument
@click.option("--state", default="", help="Items that are present, separated by commas.")
@click.option(
    "--within", type=float, help="Also show the probability of each item within this time."
)
@click.option(
    "--max-items",
    "--most",
    "max_items",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Show at most this many items.",
)
@run_options
@json_option
def next_command(
    model_path: Path,
    state: str,
    within: float | None,
    max_items: int,
    settings: dict[str, Any],
    as_json: bool,
) -> None:
    """Show which items are likely to come next, given the items that are present.

    Time is in units of the mean observation time.
    """
    present = split_items(state) or []
    report = make_report(load_model(model_path), present, within, settings)
    if as_json:
        print_json(report)
    else:
        show(report, max_items)


def make_report(
    model: Model, state: list[str], within: float | None, settings: dict[str, Any]
) -> dict[str, Any]:
    """Return the probability that each item is next and, with `within`, that it comes in time."""
    from sequela.questions.next_item import items_within, next_items
    from sequela.report.tables import records

    step = next_items(model, state)
    table = step.items
    report: dict[str, Any] = {
        "state": state,
        "observed_first": step.observed_first,
        "waiting_time": step.waiting_time,
    }
    if within is not None:
        later = items_within(model, within, state, **settings)
        table = table.join(later.rename(columns={"probability": "within", "se": "within_se"}))
        report |= {"time": within, "draws": later.attrs["draws"], "seed": later.attrs["seed"]}
    report["items"] = records(table)
    return report


def show(report: dict[str, Any], max_items: int) -> None:
    """Print the most likely next items."""
    console = make_console()
    columns = {"Item": False, "Comes next": True}
    if "time" in report:
        columns[f"Within {report['time']:g}"] = True
    rows = []
    for row in report["items"][:max_items]:
        cells = [row["item"], f"{row['probability']:.4f}"]
        if "time" in report:
            error = f" +- {row['within_se']:.1g}" if row["within_se"] else ""
            cells.append(f"{row['within']:.4f}{error}")
        rows.append(cells)
    print_table(console, columns, rows)
    left = len(report["items"]) - max_items
    if left > 0:
        console.print(f"and {left} more (--max-items, --json)", soft_wrap=True)
    console.print(
        "\nA sample is taken before the next item with probability "
        f"{report['observed_first']:.4f}. The mean time until one of the two happens is "
        f"{report['waiting_time']:.4f}.",
        soft_wrap=True,
    )
