"""``sequela rivals``: whether the data can tell which of two items came first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sequela.cli.inputs import (
    check_output,
    data_argument,
    drop_option,
    force_option,
    load_data_for,
    load_model,
    model_argument,
    run_options,
    split_items,
    times_option,
)
from sequela.cli.output import json_option, make_console, print_json, print_table

if TYPE_CHECKING:
    from sequela.data.dataset import Dataset
    from sequela.model import Model

__all__ = ["rivals"]

_DECIDED = 2.0  # above this evidence (in nats), the data can tell the order


@click.command(epilog="\b\nExample:\n  sequela rivals fit samples.csv --seed 1")
@model_argument
@data_argument
@click.option(
    "--pair", "pairs", multiple=True, metavar="A,B",
    help="Pair of items; may be given several times. Default: pairs with a strong interaction.",
)  # fmt: skip
@click.option(
    "--least-effect", type=float, default=1.0, show_default=True,
    help="Without --pair: test the pairs with a positive interaction of at least this size.",
)  # fmt: skip
@times_option
@drop_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Also write the table to this file (CSV).",
)
@force_option
@run_options
@json_option
def rivals(
    model_path: Path,
    data: Path,
    output: Path | None,
    force: bool,
    settings: dict[str, Any],
    as_json: bool,
    **asked: Any,
) -> None:
    """Test each order in MODEL against the opposite order.

    DATA is the table that MODEL was learned from. The evidence for an order says how much better
    the data fit this order than the opposite order, in nats. The evidence is the log-likelihood
    ratio of the best model found with this order and the best model found with the opposite order.
    Both models are learned on the same interactions, with a weak prior and without the penalty.
    Below about 2 nats the data cannot tell which order is right, however certain the model seems.
    One pair is reversed at a time. If a model with the opposite order explains the data only when
    several pairs are reversed together, this evidence is too large; `sequela fit` also checks such
    cases (order_ranges.csv).
    """
    check_output(output, force=force)
    chosen = []
    for text in asked["pairs"]:
        pair = split_items(text) or []
        if len(pair) != 2:
            raise click.UsageError(f"--pair is {text!r}; expected two items, such as A,B")
        chosen.append((pair[0], pair[1]))
    report = make_report(
        load_model(model_path),
        load_data_for(model_path, data, times=asked["times"], drop=asked["drop"]),
        chosen or None, asked["least_effect"], settings,
    )  # fmt: skip
    if output is not None:
        from sequela.report.tables import write_table

        write_table(report.pop("frame"), output, index=False)
    report.pop("frame", None)
    if as_json:
        print_json(report)
    else:
        show(report)


def make_report(
    model: Model,
    data: Dataset,
    pairs: list[tuple[str, str]] | None,
    least_effect: float,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """Return the evidence for each order, and how often a better model replaced `model`."""
    from sequela.questions import rival_orders
    from sequela.report.tables import records
    from sequela.settings import Settings

    how = Settings(**settings)
    rivals = rival_orders(model, data, pairs=pairs, least_effect=least_effect, settings=how)
    table = records(rivals.table)
    return {"seed": how.seed, "moves": rivals.moves, "table": table, "frame": rivals.table}


def _with_error(value: float, error: float) -> str:
    return f"{value:.1f} +- {error:.1f}" if error else f"{value:.1f}"


def show(report: dict[str, Any]) -> None:
    """Print the orders, the least certain first."""
    console = make_console()
    if not report["table"]:
        console.print(
            "No pair interacts strongly enough to be tested; lower the bound with --least-effect."
        )
        return
    rows = [
        [
            row["first"], row["second"], f"{row['probability']:.2f}",
            f"{row['rival_probability']:.2f}",
            _with_error(row["evidence"], row["evidence_se"]),
            "yes" if row["evidence"] > _DECIDED else "no",
        ]
        for row in report["table"]
    ]  # fmt: skip
    columns = {
        "first": False, "second": False, "probability": True, "in the rival": True,
        "evidence (nats)": True, "can the data tell": False,
    }  # fmt: skip
    print_table(console, columns, rows)
    console.print(
        "\nevidence: how much better the data fit this order than the opposite order, if both "
        "models may use the same interactions. 1 nat is a factor of 2.7 in likelihood.",
        soft_wrap=True,
    )
    if report["moves"]:
        console.print(
            "\nThe search found a better model, which replaced the given model "
            f"({report['moves']} {'time' if report['moves'] == 1 else 'times'}). The table is "
            "about the better model, so its orders can differ from those of the given model. "
            "Models are compared by their log-likelihood minus one nat per interaction.",
            soft_wrap=True,
        )
    if any(row["evidence"] < 0.0 for row in report["table"]):
        console.print(
            "\nWhere the evidence is below 0, the opposite order fits slightly better with the "
            "same interactions, but the model of the table is better for the number of its "
            "interactions. Other pairs in the same command can change which model is the better "
            "one. Do not report such an order.",
            soft_wrap=True,
        )
    if any(row["rival_probability"] > 0.5 for row in report["table"]):
        console.print(
            "\nWhere the probability in the rival is above 0.5, too, no model with the opposite "
            "order was found, so the evidence says nothing about the order. `sequela fit` and "
            "`sequela posterior` search in other ways.",
            soft_wrap=True,
        )
    if any(row["evidence"] > _DECIDED for row in report["table"]):
        console.print(
            "\nOnly one order at a time was reversed. If `sequela fit` or `sequela posterior` says "
            "that the data cannot tell an order, or that the model does not fit, do not report the "
            "order.",
            soft_wrap=True,
        )
