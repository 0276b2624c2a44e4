"""``sequela posterior``: the probability of every order, over all models that fit the data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sequela.cli.errors import INTERRUPTED
from sequela.cli.fit import execution_for, show_fit_check
from sequela.cli.inputs import (
    data_argument,
    drop_option,
    most_frequent_option,
    run_options,
)
from sequela.cli.output import echo, json_option, make_console, print_json, print_table

if TYPE_CHECKING:
    from sequela.posteriors.priors import Prior
    from sequela.report.posterior_run import PosteriorReport

__all__ = ["posterior"]

_MAX_ROWS = 20


@click.command(
    epilog="\b\nExample:\n  sequela posterior samples.csv -o certainty --most-frequent 20 --seed 1"
)
@data_argument
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder to create."
)
@click.option(
    "--prior", type=click.Choice(["student-t", "laplace", "normal"]),
    help="Shape of the prior of the interactions. Default: student-t.",
)  # fmt: skip
@click.option(
    "--scale", type=click.FloatRange(min=0, min_open=True),
    help="Scale of the prior. Default: learned from the data.",
)  # fmt: skip
@click.option(
    "--draws", type=click.IntRange(min=4),
    help="Number of draws per chain. By default, all chains draw until they have converged, or "
    "until each chain has as many draws as --most-draws.",
)  # fmt: skip
@click.option(
    "--most-draws", type=click.IntRange(min=4),
    help="Without --draws: maximum number of draws per chain. Default: 6000.",
)  # fmt: skip
@click.option("--chains", type=click.IntRange(min=1), help="Number of chains. Default: 4.")
@click.option(
    "--replicas", type=click.IntRange(min=1),
    help="Number of replicas per chain. All but one are heated, which helps the chain to move "
    "between distant models, for example models in which a cascade of items is reversed (use 8). "
    "The time is proportional to this number. Default: 1, without heated replicas.",
)  # fmt: skip
@most_frequent_option
@drop_option
@click.option(
    "--orders", metavar="FILE",
    help="Table of known orders. Columns: sample, before, after and, optionally, probability.",
)  # fmt: skip
@click.option(
    "--continue", "proceed", is_flag=True,
    help="Continue the run in the output folder. If the run was stopped, it is continued to its "
    "end. If it had ended, it continues only if --draws or --most-draws asks for more "
    "draws.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace the folder of an earlier run.")
@run_options
@json_option
def posterior(
    data: Path,
    output: Path,
    proceed: bool,
    force: bool,
    settings: dict[str, Any],
    as_json: bool,
    **given: Any,
) -> None:
    """Draw models that are plausible given DATA, and show how probable each order is.

    A fit returns one model. Other models, with opposite orders, may explain the data equally well.
    The posterior includes all these models. The output folder contains the draws (posterior.npz),
    tables with intervals (orders.csv and interactions.csv), a report of all results for the browser
    (report.html), and run.json. The draws are saved every half minute, so that --continue can
    resume a run that was stopped.
    """
    from sequela.report.posterior_run import PosteriorRunOptions, run_posterior

    asked = {name: given[name] for name in ("chains", "replicas", "most_draws")} | settings
    options = PosteriorRunOptions(
        prior=read_prior(given["prior"], given["scale"]),
        most_frequent=given["most_frequent"],
        drop=given["drop"] or (),
        settings={name: value for name, value in asked.items() if value is not None},
        orders=given["orders"],
    )
    report = run_posterior(
        data, output, options, proceed=proceed, force=force,
        execution=execution_for(settings.get("n_threads")),
    )  # fmt: skip
    if as_json:
        print_json(report.to_json())
    elif report.posterior.n_draws:
        show(report)
    if report.posterior.interrupted:
        echo("sequela: stopped by a signal; run it again with --continue to resume", err=True)
        click.get_current_context().exit(INTERRUPTED)


def read_prior(name: str | None, scale: float | None) -> Prior | str | None:
    """Return the prior that the options describe; None means the default prior."""
    if scale is None:
        return name
    from sequela.posteriors.priors import KINDS, as_prior

    shape = KINDS[as_prior(name).kind]
    chosen: Prior = shape(scale=scale)
    return chosen


def show(report: PosteriorReport) -> None:
    """Print the orders that the data determine best, and whether the chains converged."""
    console = make_console()
    found = report.posterior
    table = report.orders()
    rows = [
        [
            row["first"], row["second"], f"{row['probability']:.2f}",
            f"{row['low']:.2f} to {row['high']:.2f}", f"{row['usually_first']:.2f}",
            str(row["samples"]), row["verdict"],
        ]
        for row in table.head(_MAX_ROWS).to_dict("records")
    ]  # fmt: skip
    columns = {
        "first": False, "second": False, "probability": True, "90% interval": True,
        "usually first": True, "samples": True, "can the data tell": False,
    }  # fmt: skip
    print_table(console, columns, rows)
    if len(table) > _MAX_ROWS:
        console.print(f"({len(table) - _MAX_ROWS} more pairs in orders.csv)", soft_wrap=True)
    console.print(
        "\nprobability: the share of samples with both items in which the first one came first. "
        "The table shows the mean of this share over all drawn models, and an interval "
        "with 90% of its values.\n"
        "usually first: the probability that this share is more than half. The data can tell an "
        "order if this probability is at least 0.95. The data suggest an order if it is at least "
        "0.80; do not report such an order as known.\n"
        "samples: the number of samples with both items.",
        soft_wrap=True,
    )
    show_fit_check(report.fit_check, console)
    console.print(f"\n{found.convergence.message}", soft_wrap=True)
    console.print(f"Seed {found.seed}. All results are in {report.folder}", soft_wrap=True)
    page = (report.folder / "report.html").absolute()
    console.print(f"\nOpen the report in a browser: {page}", soft_wrap=True)
