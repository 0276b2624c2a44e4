"""``sequela next``: which items are likely to come next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sequela.cli.inputs import load_model, model_argument, run_options
from sequela.cli.one_sample import sample_options
from sequela.cli.output import json_option, make_console, print_json, print_table

if TYPE_CHECKING:
    from pathlib import Path

    from sequela.cli.one_sample import ChosenSample, SampleChoice
    from sequela.model import Model

__all__ = ["next_command"]


@click.command(
    "next", epilog='\b\nExample:\n  sequela next glioblastoma --state "EGFR(A),PTEN" --within 0.5'
)
@model_argument
@sample_options("--state", "Items that are present, separated by commas.")
@click.option(
    "--within",
    type=float,
    help="Also show the probability that each item arrives within this time.",
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
    chosen: SampleChoice,
    within: float | None,
    max_items: int,
    settings: dict[str, Any],
    as_json: bool,
) -> None:
    """Show which items are likely to come next, given the items that are present.

    Time is in units of the mean observation time. Items of --missing may be present or absent. All
    numbers are then averages over them, given what is known of all other items.
    """
    model = load_model(model_path)
    _refuse_other_texts(model, model_path, chosen.present or [])
    sample = chosen.read(model, model_path)
    if within is not None and sample.missing:
        raise click.UsageError(
            "--within is for samples without missing items, but it is not known whether this "
            f"sample has {', '.join(sample.missing[:5])}; leave out --within, or give only the "
            "items that are present, with --state"
        )
    report = make_report(model, sample, within, settings)
    if chosen.name is not None:
        report = {"sample": chosen.name, **report}
    if as_json:
        print_json(report)
    else:
        show(report, max_items)


def _refuse_other_texts(model: Model, folder: Path, state: list[str]) -> None:
    """Raise an error if `state` is the name of a sample, or names items without commas."""
    unknown = [label for label in state if label not in model.items]
    if len(state) == 1 and unknown and _is_sample(folder, state[0]):
        raise click.UsageError(f"{state[0]!r} is a sample, not an item; use --sample {state[0]!r}")
    parts = state[0].split() if len(state) == 1 and unknown else []
    if len(parts) > 1 and all(part in model.items for part in parts):
        raise click.UsageError(
            f"--state is {state[0]!r}; separate items by commas: --state {','.join(parts)!r}"
        )


def _is_sample(folder: Path, name: str) -> bool:
    from sequela.report.folder_answers import folder_sample
    from sequela.support.errors import InputError

    try:
        folder_sample(folder, name, "--state")
    except InputError:
        return False
    return True


def make_report(
    model: Model, sample: ChosenSample, within: float | None, settings: dict[str, Any]
) -> dict[str, Any]:
    """Return the probability that each item is next.

    With `within`, also return the probability that each item arrives within this time.
    """
    from sequela.questions.next_item import items_within, next_items
    from sequela.report.tables import records

    step = next_items(model, sample.data, **settings)
    table = step.items
    report: dict[str, Any] = {
        "state": sample.present,
        "missing": sample.missing,
        "observed_first": step.observed_first,
        "waiting_time": step.waiting_time,
    }
    if within is not None:
        later = items_within(model, within, sample.present, **settings)
        table = table.join(later.rename(columns={"probability": "within", "se": "within_se"}))
        report |= {"time": within, "draws": later.attrs["draws"], "seed": later.attrs["seed"]}
    report["items"] = records(table)
    return report


def show(report: dict[str, Any], max_items: int) -> None:
    """Print the most likely next items."""
    console = make_console()
    columns = {"Item": False, "Next item": True, "Next, before the observation": True}
    if report["state"]:
        console.print(f"Items that are present: {', '.join(report['state'])}\n", soft_wrap=True)
    if report["missing"]:
        console.print(
            f"Items that may be present: {', '.join(report['missing'])}\n", soft_wrap=True
        )
    if "time" in report:
        columns[f"Within {report['time']:g}"] = True
    rows = []
    for row in report["items"][:max_items]:
        cells = [row["item"], f"{row['share']:.4f}", f"{row['probability']:.4f}"]
        if "time" in report:
            error = f" +- {row['within_se']:.1g}" if row["within_se"] else ""
            cells.append(f"{row['within']:.4f}{error}")
        rows.append(cells)
    print_table(console, columns, rows)
    left = len(report["items"]) - max_items
    if left > 0:
        console.print(
            f"and {left} more; --max-items {len(report['items'])} or --json shows all of them",
            soft_wrap=True,
        )
    console.print(
        "\nNext item: the probability that this item is the next one, no matter when it arrives.\n"
        "Next, before the observation: the probability that it is the next one and arrives before "
        "the sample is observed.\n"
        "With probability "
        f"{report['observed_first']:.4f}, the sample is observed before any absent item "
        "arrives. The mean time until the next item or the observation "
        f"is {report['waiting_time']:.4f}, in units of the mean observation time.",
        soft_wrap=True,
    )
