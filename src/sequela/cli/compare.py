"""``sequela compare``: which interactions and orders differ between two cohorts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sequela.cli.inputs import load_model, run_options, split_items
from sequela.cli.output import json_option, make_console, print_json, print_notices, print_table

if TYPE_CHECKING:
    from sequela.questions.comparison import Comparison

__all__ = ["compare"]

_SHOWN = 8


@click.command(
    epilog="\b\nExample:\n  sequela compare posterior-primary posterior-metastasis -o out"
)
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option(
    "--items",
    help="Items to compare, separated by commas. Default: all items that both cohorts have.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="Probability of the intervals of the differences.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Folder to create, with interactions.csv, orders.csv and orders.png.",
)
@click.option("--force", is_flag=True, help="Replace the folder of an earlier comparison.")
@run_options
@json_option
def compare(
    first: Path,
    second: Path,
    output: Path | None,
    force: bool,
    settings: dict[str, Any],
    as_json: bool,
    **asked: Any,
) -> None:
    """Compare two cohorts or subtypes: which interactions and orders differ.

    FIRST and SECOND are folders of `sequela posterior`, or folders of `sequela repeat` with
    bootstraps. For such folders, each difference has an interval. Folders of `sequela fit` and
    model files can also be compared, but then the differences have no intervals.
    """
    from sequela.questions.comparison import compare as compare_sides
    from sequela.support.folders import check_folder

    if output is not None:
        check_folder(output, force=force)
    found = compare_sides(
        load_side(first), load_side(second), items=split_items(asked["items"]),
        level=asked["level"], **settings,
    )  # fmt: skip
    if output is not None:
        write(found, output, (first.name, second.name), force=force)
    if as_json:
        print_json(make_report(found, output))
    else:
        show(found, output)


def load_side(path: Path) -> Any:
    """Read one side of the comparison: a posterior, the models of repeated fits, or one model."""
    from sequela.posteriors.result import Posterior
    from sequela.report.posterior_run import POSTERIOR_NAME

    if path.is_dir() and (path / POSTERIOR_NAME).exists():
        return Posterior.load(path / POSTERIOR_NAME)
    if path.name == POSTERIOR_NAME:
        return Posterior.load(path)
    if path.is_dir() and (path / "plan.json").exists():
        return _bootstraps(path)
    return load_model(path)


def _bootstraps(path: Path) -> list[Any]:
    from sequela.repeats import models
    from sequela.support.errors import InputError

    found = list(models(path).values())
    drawn = [model.metadata.get("bootstrap") for model in found]
    if None in drawn or len(set(drawn)) < len(drawn):
        raise InputError(
            f"{str(path)!r} does not have exactly one fit per bootstrap. Run `sequela "
            "repeat` with --bootstraps N and one penalty: then the fits differ only in "
            "the bootstrap"
        )
    return found


def make_report(found: Comparison, output: Path | None) -> dict[str, Any]:
    """Return the comparison as plain values."""
    from sequela.report.tables import records

    return {
        "written": None if output is None else str(output),
        "models": list(found.models),
        "level": found.level,
        "notes": list(found.notes),
        "interactions": records(found.interactions),
        "orders": records(found.orders),
    }


def write(found: Comparison, output: Path, names: tuple[str, str], *, force: bool) -> None:
    """Write the two tables and, if matplotlib is installed, a figure that compares the orders."""
    import json

    from sequela.report.tables import write_table
    from sequela.support.folders import new_folder

    with new_folder(output, force=force) as made:
        write_table(found.interactions, made / "interactions.csv", index=False)
        write_table(found.orders, made / "orders.csv", index=False)
        (made / "run.json").write_text(
            json.dumps({"command": "compare", "sides": list(names), "notes": found.notes}, indent=1)
        )
        _draw(found, made / "orders.png", names)


def _draw(found: Comparison, path: Path, names: tuple[str, str]) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print_notices(["orders.png was not drawn, because matplotlib is not installed"])
        return
    from sequela.plots.cohort_comparison import plot_cohort_comparison

    figure = Figure(figsize=(5.6, 5.2), layout="constrained")
    orders = found.first_orders, found.second_orders
    plot_cohort_comparison(*orders, names=names, ax=figure.subplots())
    figure.savefig(path, dpi=150)


def show(found: Comparison, output: Path | None) -> None:
    """Print the differences in orders and in interactions, the most certain differences first."""
    console = make_console()
    console.print(
        f"models of the first cohort: {found.models[0]}, of the second cohort: "
        f"{found.models[1]}; orders compared: {len(found.orders)}, interactions compared: "
        f"{len(found.interactions)}",
        soft_wrap=True,
    )
    for title, table, names in (
        ("Orders", found.orders, ("a", "b")),
        ("Interactions", found.interactions, ("from", "to")),
    ):
        mark = " before " if title == "Orders" else " -> "
        console.print("")
        print_table(
            console,
            {title: False, "First": True, "Second": True, "Difference": True, "Verdict": False},
            [
                (
                    f"{row[names[0]]}{mark}{row[names[1]]}", f"{row['first']:.2f}",
                    f"{row['second']:.2f}", _difference(row, certain=found.is_certain),
                    row["verdict"],
                )
                for _, row in table.head(_SHOWN).iterrows()
            ],
        )  # fmt: skip
    print_notices(found.notes)
    if output is not None:
        console.print(f"\nwritten: {output}", soft_wrap=True)


def _difference(row: Any, *, certain: bool) -> str:
    text = f"{row['difference']:+.2f}"
    return f"{text} ({row['low']:.2f} to {row['high']:.2f})" if certain else text
