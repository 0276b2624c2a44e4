"""``sequela order``: which items come first, in general and in one sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sequela.cli.inputs import load_model, model_argument, precision_options, run_options
from sequela.cli.one_sample import sample_options
from sequela.cli.output import json_option, make_console, print_json, print_table
from sequela.questions.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from sequela.cli.one_sample import ChosenSample, SampleChoice
    from sequela.model import Model

__all__ = ["order"]

_NOT_CHECKED = {"low": None, "high": None, "verdict": Verdict.NOT_CHECKED.value}
# Which commands show whether the data can tell an order, by the kind of the observation.
_CHECKS = {
    "exponential": "`sequela posterior` and `sequela rivals` show whether the data can tell.",
    "effects": "The data cannot distinguish effects on the observation from interactions, and "
    "`sequela posterior` assumes that there are no such effects.",
}
_OTHER_TIMES = (
    "`sequela rivals` shows whether the data can tell. `sequela posterior` assumes exponential "
    "observation times, so it does not say how certain the orders of this model are."
)


@click.command(
    epilog='\b\nExample:\n  sequela order glioblastoma "EGFR(A)" EGFR\n'
    '  sequela order glioblastoma --given "EGFR(A),EGFR,PTEN"\n'
    '  sequela order glioblastoma --given "EGFR(A),EGFR" --missing "PTEN,TP53"'
)
@model_argument
@click.argument("items", nargs=-1)
@sample_options(
    "--given",
    "All items of one sample, separated by commas. The answer is then for this sample.",
)
@click.option(
    "--likely",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --given or --sample: also list the N most likely orders.",
)
@precision_options
@run_options
@json_option
def order(
    model_path: Path,
    items: tuple[str, ...],
    chosen: SampleChoice,
    likely: int | None,
    settings: dict[str, Any],
    as_json: bool,
) -> None:
    """Show which of two or more ITEMS of MODEL come first.

    MODEL is the folder of a fit, a model file, or a table of theta. Without ITEMS, all pairs of the
    model, or of the sample, are listed. Write -- before items that begin with a hyphen. Each
    probability is the probability that the first item arrived before the second, in a sample that
    has both. With --given, it is the probability in a sample that has exactly the given items. Such
    a sample may also have items of --missing: the probability is then an average over them, given
    what is known of all other items.
    """
    if chosen.missing is not None and chosen.present is None:
        raise click.UsageError("--missing needs --given, which names the items of a sample")
    of_sample = chosen.present is not None or chosen.name is not None
    if likely is not None and not of_sample:
        raise click.UsageError("--likely needs --given or --sample")
    if len(items) == 1:
        raise click.UsageError(
            f"an order needs at least two items; found only {items[0]!r}. Without items, all pairs "
            "are listed"
        )
    model = load_model(model_path)
    sample = chosen.read(model, model_path) if of_sample else None
    report = make_report(model, list(items), sample, likely, **settings)
    report["checked"] = add_ranges(report["pairs"], model_path)
    if as_json:
        print_json(report)
    else:
        show(report, model_path, model.observation.kind)


def make_report(
    model: Model, items: list[str], sample: ChosenSample | None, likely: int | None, **options: Any
) -> dict[str, Any]:
    """Return the order of all pairs and, with `likely`, the most likely orders of a sample."""
    from sequela.questions import likely_orders, order_matrix
    from sequela.report.tables import records

    given = None if sample is None else sample.data
    found = order_matrix(model, items or None, given=given, **options)
    report: dict[str, Any] = {
        "pairs": records(found.pairs(as_given=bool(items))),
        "given": None if sample is None else sample.present,
        "missing": [] if sample is None else sample.missing,
        "known_orders": [] if sample is None else sample.known_orders,
        "draws": found.draws,
        "seed": found.seed,
    }
    if likely is not None and given is not None:
        best = likely_orders(
            model, given, likely,
            **{name: value for name, value in options.items() if name != "target_se"},
        )  # fmt: skip
        report["likely_orders"] = [
            {**row, "order": list(labels)}
            for row, labels in zip(records(best.drop(columns="order")), best["order"], strict=True)
        ]
    return report


def add_ranges(pairs: list[dict[str, Any]], model_path: Path) -> bool:
    """Add the range and the verdict of each pair, if the fit in the folder MODEL checked orders.

    Return whether the orders were checked.
    """
    from sequela.report.folder_answers import folder_ranges
    from sequela.report.html_verdicts import turned_ranges

    ranges = folder_ranges(model_path)
    if ranges is None:
        return False
    known = turned_ranges(ranges)
    for row in pairs:
        row |= known.get((row["first"], row["second"]), _NOT_CHECKED)
    return True


def show(report: dict[str, Any], model_path: Path, kind: str = "exponential") -> None:
    """Print the pairs, the most certain first. `kind` is the kind of the observation."""
    console = make_console()
    columns = {"First": False, "Then": False, "Probability": True}
    if report["checked"]:
        columns |= {"The data allow": True, "Can the data tell": False}
    rows = []
    for row in report["pairs"]:
        cells = [row["first"], row["second"], _with_error(row["probability"], row["se"])]
        if report["checked"]:
            known = row["low"] is not None
            cells.append(f"{row['low']:.2f} to {row['high']:.2f}" if known else "")
            cells.append(row["verdict"])
        rows.append([*cells, f"{row['observed']:.3f}", row["method"]])
    if report["missing"] or report["known_orders"]:
        console.print(_what_is_known(report), soft_wrap=True)
    print_table(console, columns | {"Both seen": True, "How": False}, rows)
    if "likely_orders" in report:
        console.print()
        print_table(
            console,
            {"Most likely orders": False, "Probability": True},
            [
                (" > ".join(row["order"]), _with_error(row["probability"], row["se"]))
                for row in report["likely_orders"]
            ],
        )
    if report["seed"] is not None:
        console.print(f"\n{report['draws']:,} draws, seed {report['seed']}", soft_wrap=True)
    console.print(f"\n{_advice(report, model_path, kind)}", soft_wrap=True)


def _what_is_known(report: dict[str, Any]) -> str:
    said = f"A sample with {', '.join(report['given'])}."
    if report["missing"]:
        said += f" It may also have {', '.join(report['missing'])}."
    for before, after, probability in report["known_orders"]:
        said += f" {before} before {after} is known"
        said += "." if probability == 1.0 else f" with probability {probability:g}."
    return f"{said}\n"


def _advice(report: dict[str, Any], model_path: Path, kind: str) -> str:
    """Return a text that says how certain these orders are, and what to do next."""
    said = (
        "These are the probabilities in this model; other models may fit the data equally well "
        "with a different order."
    )
    if not report["checked"]:
        return f"{said} {_CHECKS.get(kind, _OTHER_TIMES)}"
    if report["given"] is not None:
        said += (
            " Ranges and verdicts are for all samples with both items, not only for this sample."
        )
    left = sum(row["verdict"] == Verdict.NOT_CHECKED for row in report["pairs"])
    if left:
        said += (
            f" The fit did not check {left} of these pairs. To check a pair, run `sequela rivals "
            f'{model_path} DATA --pair "A,B"`.'
        )
    if any(row["verdict"] == Verdict.NOT_TRUSTED for row in report["pairs"]):
        said += (
            " Orders are not trusted if the model does not describe the data. run.json (in "
            "`result.fit_check`) and report.html say where the model and the data differ."
        )
    if any(row["verdict"] == Verdict.DEPENDS for row in report["pairs"]):
        said += (
            " Some orders are opposite in a model in which items influence the observation, and "
            "the data do not exclude such a model: orders_with_effects.csv has its probabilities."
        )
    if any(row["verdict"] == Verdict.CANNOT_TELL for row in report["pairs"]):
        said += (
            " Where the data cannot tell, `sequela posterior DATA -o certainty` gives a "
            "probability that is averaged over all plausible models, and `sequela plan "
            "certainty DATA FIRST SECOND` "
            "shows how many more samples would decide the order."
        )
    return said


def _with_error(value: float | None, error: float | None) -> str:
    if value is None:
        return "never seen"
    return f"{value:.4f}" + (f" +- {error:.1g}" if error else "")
