"""``sequela fit``: learn a model from a table and write all results to one folder."""

from __future__ import annotations

import math
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sequela.cli.errors import INTERRUPTED
from sequela.cli.inputs import (
    drop_option,
    most_frequent_option,
    solver_options,
    times_option,
    weights_option,
)
from sequela.cli.output import (
    json_option,
    make_console,
    print_json,
    print_notices,
    print_table,
)

if TYPE_CHECKING:
    from sequela.learning.fit_check import FitCheck
    from sequela.report import Execution, FitReport, OutputOptions

_SHOWN_ORDERS = 8

__all__ = ["execution_for", "fit", "read_output", "show", "show_fit_check"]


@click.command(
    epilog="\b\nExample:\n  sequela fit samples.csv -o glioblastoma --penalty 0.01 --seed 1"
)
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder to create."
)
@click.option(
    "--penalty", type=float, help="Weight of the L1 penalty on interactions. Default: 0.01."
)
@click.option("--cv", is_flag=True, help="Choose the penalty by cross-validation.")
@click.option(
    "--starts",
    type=click.IntRange(min=1),
    default=None,
    help="Number of starts; all but the first are random. Default: 5, or fewer for large data.",
)
@click.option(
    "--observation",
    metavar="KIND",
    help="Distribution of the observation times: exponential (default), gamma:SHAPE or "
    "heavy:SHAPE. Without SHAPE, gamma and heavy choose the shape by held-out likelihood. With "
    "effects, items change the rate of observation (oMHN with the symmetric penalty). With "
    "effects:l1, the penalty is L1. The data cannot distinguish such effects from other "
    "interactions. With any, exponential, gamma, heavy and effects:l1 are compared.",
)
@click.option("--no-check", is_flag=True, help="Do not check which orders the data allow.")
@click.option(
    "--check-effects",
    is_flag=True,
    help="Find the orders that would be opposite if items influenced the observation. "
    "With --observation any, this is done without this option.",
)
@times_option
@weights_option
@click.option(
    "--orders",
    metavar="FILE",
    help="Table of known orders. Columns: sample, before, after and, optionally, probability.",
)
@click.option(
    "--missing",
    type=click.Choice(["keep", "absent", "refuse"]),
    help="What cells without a value mean. Default: NA is a missing cell, an empty cell is an "
    "error.",
)
@most_frequent_option
@drop_option
@click.option(
    "--fixed",
    type=click.Path(path_type=Path),
    help="Table of interactions that are not learned but have fixed values. Columns: from, to and, "
    "optionally, value (default: 0).",
)
@solver_options
@click.option(
    "--seed", type=click.IntRange(min=0), help="Random seed; the same seed gives the same model."
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Number of threads; the result does not depend on it. Default: all available cores.",
)
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path),
    help="Save the fit to this file while it runs, and resume from it if it exists.",
)
@click.option(
    "--figures",
    default="png",
    show_default=True,
    help="Formats of the figures, separated by commas: png, svg, pdf; or none.",
)
@click.option(
    "--table-budget",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Maximum predicted CPU time for the pseudo-times. The arrival times of the timeline may "
    "take as long again. If exact answers would take longer, orders are drawn for the samples that "
    "take the longest.",
)
@click.option("--force", is_flag=True, help="Replace the folder of an earlier fit.")
@click.option(
    "--repeat",
    type=click.Path(path_type=Path),
    help="Repeat the fit that this run.json (or its folder) describes, and compare the results. "
    "DATA may be omitted.",
)
@json_option
def fit(
    data: Path | None,
    output: Path,
    force: bool,
    figures: str,
    repeat: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Learn a model from DATA, a table of samples and items.

    The output folder contains the model, figures, and tables of interactions, orders, pseudo-times
    and frequencies. report.html shows all of them in a browser. run.json has the versions, the
    seed, the options and a checksum of the data, so that the run can be repeated exactly. Each
    order is shown with the range that the data allow: the smallest and the largest probability
    among models within 2 nats of the best model. While the command runs, the folder is called
    OUTPUT.incomplete. The model is written first and is not lost if the command is stopped.
    Progress, and notices about how DATA was read, go to standard error.
    """
    execution = execution_for(given.pop("threads"), given.pop("checkpoint"))
    table_budget = given.pop("table_budget")
    # Do not write `value not in (None, False)`: in Python 0 == False, so this would discard a
    # penalty, a tolerance or a seed of 0.
    chosen = {k: value for k, value in given.items() if value is not None and value is not False}
    written = replace(read_output(figures, force=force), table_seconds=table_budget)
    if repeat is not None:
        if chosen:
            name = next(iter(chosen)).replace("_", "-")
            raise click.UsageError(f"--{name} cannot be changed when a run is repeated")
        from sequela.report import repeat_run

        report = repeat_run(repeat, output, data, output=written, execution=execution)
    else:
        if data is None:
            raise click.UsageError("Missing argument 'DATA'.")
        if "cv" in chosen and "penalty" in chosen:
            raise click.UsageError("--penalty and --cv cannot be used together")
        from sequela.report import FitRunOptions, run_fit

        if "fixed" in chosen:
            from sequela.learning.fixed import read_fixed_file

            chosen["fixed"] = tuple(read_fixed_file(chosen["fixed"]))
        options = FitRunOptions(check=not chosen.pop("no_check", False), **chosen)
        report = run_fit(data, output, options, output=written, execution=execution)
    if as_json:
        print_json(report.to_json())
    else:
        show(report, data)
    if report.interrupted:
        click.get_current_context().exit(INTERRUPTED)


def read_output(figures: str, *, force: bool) -> OutputOptions:
    """Return the options of ``--figures`` and ``--force``; refuse unknown formats."""
    from sequela.report import OutputOptions
    from sequela.support.errors import InputError

    names = tuple(name.strip().lower() for name in figures.split(",") if name.strip())
    try:
        return OutputOptions(() if names == ("none",) else names, force)
    except InputError as error:
        raise click.BadParameter(str(error), param_hint="--figures") from None


def execution_for(threads: int | None = None, checkpoint: Path | None = None) -> Execution:
    """Return how a fit runs: threads, checkpoint, and progress (as a bar, or as lines of text)."""
    from sequela.report import Execution

    watched = sys.stderr.isatty()
    return Execution(
        threads=threads,
        checkpoint=checkpoint,
        progress=None if watched else "lines",
        announce=_announce,
    )


def _announce(what: str) -> None:
    print_notices([f"{what} ..."])


def show(report: FitReport, data: Path | None = None) -> None:
    """Print the learned model, the orders, the check of the fit, and the names of the files.

    `data` is the path of the table of samples; the suggested commands contain this path.
    """
    console = make_console()
    found = report.result
    summary = report.import_summary
    error = f" +- {found.objective_se:.1g}" if found.objective_se else ""
    reached = "converged" if found.converged else "NOT converged"
    reached += f" (KKT residual {found.kkt_residual:.1e}"
    reached += f", Monte Carlo floor {found.kkt_floor:.1e})" if found.kkt_floor else ")"
    console.print(
        f"{summary.samples_kept} samples, {summary.items_kept} items, penalty {found.penalty:g}, "
        f"seed {report.options.seed}\n"
        f"{found.interactions} interactions; objective {found.objective:.6f}{error}, {reached}\n",
        soft_wrap=True,
    )
    _show_observations(report, console)
    print_table(
        console,
        {"Strongest interactions": False, "Effect on the rate": True},
        [
            (f"{row['from']} -> {row['to']}", f"x {math.exp(row['effect']):.3g}")
            for _, row in report.strongest.iterrows()
        ],
    )
    _show_effects(report, console)
    _show_orders(report, console)
    show_fit_check(report.fit_check, console)
    _show_effects_check(report, console)
    _suggest(report, data, console)
    print_notices(report.notices)
    if report.same_as_repeated is not None:
        console.print(
            "\ntheta is the same as in the run that was repeated, bit for bit"
            if report.same_as_repeated
            else "\ntheta is NOT the same as in the run that was repeated: compare the versions in "
            "the two run.json files",
            soft_wrap=True,
        )
    console.print(f"\nwritten: {report.folder} ({', '.join(report.files)})", soft_wrap=True)


def _show_effects(report: FitReport, console: Any) -> None:
    """Print the items with the strongest effects on the observation, if the model has them."""
    from sequela.report.tables import observation_effects

    table = observation_effects(report.model)
    if table is None:
        return
    console.print("")
    print_table(
        console,
        {"Effects on the observation": False, "Effect on the rate": True},
        [
            (row["item"], f"x {row['factor']:.3g}")
            for row in table.head(_SHOWN_ORDERS).to_dict("records")
        ],
    )


def _show_orders(report: FitReport, console: Any) -> None:
    """Print the orders that were checked; pairs with the strongest interactions come first."""
    check = report.order_ranges
    if check is None:
        return
    told = check.sentences(_SHOWN_ORDERS)
    if told:
        console.print("\nOrders, among samples with both:", soft_wrap=True)
        for line in told:
            console.print(line, soft_wrap=True, markup=False)
        items = report.model.n_items
        left = len(check.table) - len(told)
        more = f" ({left} of them are listed only in order_ranges.csv)" if left > 0 else ""
        console.print(
            f"These are pairs with strong interactions: {len(check.table)} of "
            f"{items * (items - 1) // 2} pairs were checked{more}. The order of other pairs may be "
            "clearer. Their probabilities are in orders.csv, and `sequela posterior` "
            "computes how certain they are",
            soft_wrap=True,
        )


def _suggest(report: FitReport, data: Path | None, console: Any) -> None:
    """Print commands that give more information about an order that the data cannot tell."""
    from sequela.questions.verdict import Verdict

    check = report.order_ranges
    if data is None or check is None:
        return
    untold = check.table[check.table["verdict"] == Verdict.CANNOT_TELL]
    if untold.empty:
        return
    misfit = report.fit_check is not None and not report.fit_check.fits
    if misfit or report.model.observation.constant_rate is None:
        # A posterior would not help. If the model of the fit does not describe the data, the models
        # of a posterior would not describe them, either. And if the rate of the observation is not
        # constant, a posterior cannot be computed.
        console.print(
            "\nDo not report an order that the data cannot tell, or that is not trusted",
            soft_wrap=True,
        )
        return
    table = shlex.quote(str(data))
    certainty = shlex.quote(f"{report.folder}-certainty")
    options = report.options
    first = ""
    if options.missing is not None:
        # Only `sequela fit` has the option --missing, so first convert the table.
        made = shlex.quote(f"{report.folder}-samples.csv")
        first = f"  sequela import --table {table} --missing {options.missing} -o {made}\n"
        first += "    makes a table without empty cells\n"
        table = made
    items = f" --drop {shlex.quote(','.join(options.drop))}" if options.drop else ""
    if options.orders is not None:
        items += f" --orders {shlex.quote(options.orders)}"
    items_to_read = items
    items += f" --most-frequent {options.most_frequent}" if options.most_frequent else ""
    pair = [str(untold.iloc[0][name]) for name in ("first", "second")]
    # Without "--", a label such as -18q would be read as an option.
    mark = "-- " if any(label.startswith("-") for label in pair) else ""
    asked = mark + " ".join(shlex.quote(label) for label in pair)
    steps = (
        f"\nWhere the data cannot tell, do not report an order. The next steps:\n{first}"
        f"  sequela posterior {table} -o {certainty}{items}\n"
        "    gives each order a probability, averaged over all plausible models\n"
        f"  sequela plan {certainty} {table}{items_to_read} {asked}\n"
        "    shows how many more samples would decide an order"
    )
    console.print(steps, soft_wrap=True)


def show_fit_check(check: FitCheck | None, console: Any) -> None:
    """Print whether the model describes the data, and what to try if it does not."""
    if check is None or not check.tests:
        return
    if check.fits:
        console.print(
            "\nSet sizes and co-occurrence agree with the model, as far as these tests can show",
            soft_wrap=True,
        )
        return
    console.print(
        "\nThe model does not describe the data, so its orders cannot be trusted:", soft_wrap=True
    )
    for finding in check.findings:
        console.print(f"- {finding}", soft_wrap=True, markup=False)


def _show_effects_check(report: FitReport, console: Any) -> None:
    """Print which orders would be opposite if items influenced the observation."""
    check = report.effects_check
    if check is None:
        return
    for finding in check.findings:
        console.print(f"\n{finding[0].upper()}{finding[1:]}", soft_wrap=True, markup=False)
    if not check.findings:
        console.print(
            "\nA model in which items influence the observation predicts new samples worse by "
            f"{check.behind:.1f} nats. This speaks against such effects, but sets without times "
            "cannot exclude them",
            soft_wrap=True,
        )


def _show_observations(report: FitReport, console: Any) -> None:
    """Print how well each kind of observation times fits, if several kinds were compared."""
    if report.observations is None:
        return
    print_table(
        console,
        {"Observation times": False, "Held-out gain (nats)": True, "": False},
        [
            (_short(row["observation"]), f"{row['gain']:.1f} +- {row['se']:.1f}",
             "*" * int(row["chosen"]))
            for row in report.observations.table.to_dict("records")
        ],
    )  # fmt: skip
    console.print(
        "gain: how much better samples that were left out are predicted than with exponential "
        "times. 1 nat is a factor of 2.7 in likelihood. *: chosen",
        soft_wrap=True,
    )
    beyond = report.observations.beyond
    if beyond is not None:
        from sequela.report.effects_run import name_of_observation

        console.print(
            "The chosen shape is at the end of the compared shapes, so a shape beyond it may be "
            f"better. To learn a model with such a shape: --observation "
            f"{name_of_observation(beyond)}",
            soft_wrap=True,
        )
    console.print("")


def _short(observation: str) -> str:
    """Return the name of an observation for the terminal, without one number per item."""
    return "effects of items" if observation.startswith("ObservationEffects(") else observation
