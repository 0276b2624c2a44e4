"""``sequela plan``: how much more data would help to tell which of two items came first."""

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
    load_posterior,
    run_options,
)
from sequela.cli.output import json_option, make_console, print_json, print_table

if TYPE_CHECKING:
    from sequela.questions.study_plan import StudyPlan

__all__ = ["plan"]


@click.command(
    epilog="\b\nExample:\n"
    "  sequela plan certainty samples.csv TP53 IDH1 --samples 0,400 --clocks 0,20\n"
    "  sequela plan certainty samples.csv TP53 IDH1 -o plan.csv --plot plan.png --seed 1"
)
@click.argument("posterior_path", metavar="POSTERIOR", type=click.Path(path_type=Path))
@data_argument
@click.argument("first")
@click.argument("second")
@click.option(
    "--orders", metavar="FILE",
    help="Table of known orders, if POSTERIOR was made with one: sample, before, after and, "
    "optionally, probability.",
)  # fmt: skip
@click.option(
    "--samples", metavar="N,N,...",
    help="Numbers of new samples. Default: 0, the number of samples in DATA, and three times this "
    "number.",
)  # fmt: skip
@click.option(
    "--clocks", metavar="M,M,...",
    help="Numbers of clock items to add to all samples. Default: 0,10,40; with --method check: "
    "0,20.",
)  # fmt: skip
@click.option(
    "--clock-frequency", type=float,
    help="Share of the samples that have a clock item. "
    "Default: the median share of the other items.",
)  # fmt: skip
@click.option(
    "--method", type=click.Choice(["auto", "reweight", "check"]), default="auto",
    show_default=True,
    help="reweight: give the draws of POSTERIOR new weights for each simulated data set. check: "
    "fit a model to each simulated data set and check which orders the data allow. auto: "
    "reweight for up to 4 items, otherwise check.",
)  # fmt: skip
@click.option(
    "--certainty", type=float, default=0.95, show_default=True,
    help="With --method reweight: a study calls an order if the posterior probability of this "
    "order is at least this number.",
)  # fmt: skip
@click.option(
    "--studies", type=click.IntRange(min=2),
    help="Number of simulated studies of each size. Default: 400; with --method check: 20.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path),
    help="Also write the table to this file (CSV).",
)  # fmt: skip
@click.option(
    "--plot", type=click.Path(path_type=Path),
    help="Also plot the plan to this file, whose name ends in .png, .svg or .pdf.",
)  # fmt: skip
@drop_option
@force_option
@run_options
@json_option
def plan(
    posterior_path: Path,
    data: Path,
    output: Path | None,
    plot: Path | None,
    force: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Predict how well a larger study would tell whether FIRST or SECOND came first.

    POSTERIOR is the folder of `sequela posterior`, and DATA is the table that it was made from.
    One after another, the models in POSTERIOR are assumed to be the true model, and larger studies
    are simulated from this model. A study calls an order if its data can tell this order. The
    output shows how often a study would call the right order or the wrong order, and the expected
    evidence in nats. Clock items are independent of all other items. With --method check this can
    take many minutes. The computation is faster with fewer --studies, --samples and --clocks.
    """
    from sequela.questions import plan_study
    from sequela.report.tables import records, write_table

    for path in (output, plot):
        check_output(path, force=force)
    _check_picture(plot)
    settings, drop, orders = (asked.pop(name) for name in ("settings", "drop", "orders"))
    options = {name: value for name, value in {**asked, **settings}.items() if value is not None}
    for name in ("samples", "clocks"):
        options[name] = _numbers(name, options.get(name))
    samples = load_data_for(posterior_path, data, drop=drop, orders=orders)
    found = plan_study(
        load_posterior(posterior_path), samples, options.pop("first"), options.pop("second"),
        **options,
    )  # fmt: skip
    if output is not None:
        write_table(found.table, output, index=False)
    if plot is not None:
        _draw(found, plot)
    if as_json:
        report = {
            name: getattr(found, name)
            for name in found.__dataclass_fields__
            if name != "table"
        }  # fmt: skip
        print_json({**report, "table": records(found.table)})
    else:
        show(found)


def _numbers(name: str, text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise click.UsageError(
            f"--{name} is {text!r}; expected whole numbers separated by commas, such as 0,100,400"
        ) from None


def _check_picture(path: Path | None) -> None:
    from sequela.support.errors import InputError

    if path is not None and path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(
            f"{str(path)!r} has no known format; expected a name that ends in .png, .svg or .pdf"
        )


def _draw(found: StudyPlan, path: Path) -> None:
    from sequela.plots import plot_study_plan, save_figure
    from sequela.plots.style import load

    axes = plot_study_plan(found)
    save_figure(axes, path)
    load("matplotlib.pyplot").close(axes.figure)


def show(found: StudyPlan) -> None:
    """Print the plan, with one row per number of samples and of clock items."""
    console = make_console()
    console.print(
        f"With the {found.samples} samples of DATA, the probability that {found.first} "
        "usually comes before "
        f"{found.second} is {found.now:.2f}.\n",
        soft_wrap=True,
    )
    rows = [
        [
            str(row["samples"]), str(row["clocks"]),
            *(_with_error(row[name], row[f"{name}_se"]) for name in ("evidence", "right", "wrong")),
            f"{row['open']:.2f}", "yes" if row["reliable"] else "no",
        ]
        for row in found.table.to_dict("records")
    ]  # fmt: skip
    columns = {
        "new samples": True, "clock items": True, "evidence (nats)": True,
        "right order called": True, "wrong order": True, "neither": True, "reliable": False,
    }  # fmt: skip
    print_table(console, columns, rows)
    called = (
        f"its posterior probability is at least {found.certainty:g}"
        if found.method == "reweight"
        else "the check of a fit (`sequela.questions.order_ranges`) says that the data can tell it"
    )
    console.print(
        f"\nA study calls an order if {called}. The clock items of the table are additional items; "
        f"each is assumed to be in {found.clock_frequency:.1%} of all samples. Number of simulated "
        f"studies of each size: {found.studies}; seed: {found.seed}.",
        soft_wrap=True,
    )
    if not found.table["reliable"].all():
        console.print(
            "Where the last column says no, the row is based on too few draws of the "
            "posterior. To get a reliable row, draw more with `sequela posterior "
            "--continue --draws`, plan a smaller study, or use --method check.",
            soft_wrap=True,
        )


def _with_error(value: Any, error: Any) -> str:
    return f"{value:.2f} +- {error:.2f}"
