"""``sequela plot``: one figure of a model, with or without data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sequela.cli.inputs import (
    check_output,
    force_option,
    load_data,
    load_model,
    model_argument,
    run_options,
    split_items,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sequela.data.dataset import Dataset
    from sequela.model import Model

__all__ = ["plot"]


_KINDS = {
    "theta": "base rates and interactions as a heat map",
    "interactions": "the strongest interactions as a graph",
    "orders": "which item comes before which",
    "times": "densities of the times of single samples (DATA, --samples)",
    "timeline": "samples sorted by time, with the arrivals of their items (DATA)",
    "frequencies": "items, observed against expected (DATA)",
    "co-occurrence": "pairs, observed against expected (DATA)",
    "sizes": "set sizes, observed against expected (DATA)",
    "clock": "how well more and more items tell the time",
}


@click.command(
    epilog="\b\nKinds:\n"
    + "\n".join(f"  {name:14} {what}" for name, what in _KINDS.items())
    + "\n\n\b\nExample:\n  sequela plot timeline glioblastoma samples.csv -o timeline.svg"
)
@click.argument("kind", type=click.Choice(list(_KINDS)), metavar="KIND")
@model_argument
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="A file that ends in .png, .svg or .pdf.",
)
@click.option("--items", help="Which items, separated by commas (orders).")
@click.option("--samples", help="Which samples, by id, separated by commas (times).")
@click.option("--most", type=click.IntRange(min=1), default=20, show_default=True)
@force_option
@run_options
def plot(
    kind: str,
    model: Path,
    data: Path | None,
    output: Path,
    items: str | None,
    samples: str | None,
    most: int,
    force: bool,
    seed: int | None,
    threads: int | None,
) -> None:
    """Draw a figure of MODEL, and of DATA where it needs samples."""
    from sequela.plots.style import load, save_figure
    from sequela.support.errors import InputError

    if output.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"{str(output)!r} has no known format; end it in .png, .svg or .pdf")
    check_output(output, force=force)
    chain = load_model(model)
    table = None if data is None else load_data(data)
    if table is None and kind in _NEEDS_DATA:
        raise click.UsageError(f"`sequela plot {kind}` needs DATA: a table of samples")
    options: dict[str, Any] = {"random_state": seed or 0, "n_threads": threads}
    chosen = {
        "items": split_items(items), "samples": split_items(samples), "most": most, **options,
    }  # fmt: skip
    axes = _DRAW[kind](chain, table, chosen)
    save_figure(axes, output)
    load("matplotlib.pyplot").close(axes.figure)
    click.echo(f"written: {output}")


_NEEDS_DATA = {"times", "timeline", "frequencies", "co-occurrence", "sizes"}


def _run(chosen: dict[str, Any]) -> dict[str, Any]:
    return {name: chosen[name] for name in ("random_state", "n_threads")}


def _theta(chain: Model, data: Dataset | None, chosen: dict[str, Any]) -> Any:  # noqa: ARG001
    from sequela.plots.theta import plot_theta

    return plot_theta(chain)


def _interactions(chain: Model, data: Dataset | None, chosen: dict[str, Any]) -> Any:
    from sequela.plots.interactions import plot_interactions

    frequencies = None if data is None else data.frequencies
    return plot_interactions(chain, chosen["most"], frequencies=frequencies)


def _orders(chain: Model, data: Dataset | None, chosen: dict[str, Any]) -> Any:
    from sequela.plots.order_matrix import plot_order_matrix
    from sequela.questions.distributions import item_frequencies
    from sequela.questions.order import order_matrix

    items = chosen["items"]
    if items is None:
        shares = (
            item_frequencies(chain, **_run(chosen))["model"] if data is None else data.frequencies
        )
        items = list(shares.sort_values(ascending=False, kind="stable").index[: chosen["most"]])
    return plot_order_matrix(order_matrix(chain, items, **_run(chosen)))


def _times(chain: Model, data: Dataset | None, chosen: dict[str, Any]) -> Any:
    from sequela.plots.time_densities import plot_time_densities
    from sequela.questions.clock import time_posterior
    from sequela.samples import as_samples
    from sequela.support.errors import InputError

    table = as_samples(chain, data)
    wanted = chosen["samples"] or list(table.samples[:5])
    sets = dict(zip(table.samples, table.sets(), strict=True))
    unknown = [name for name in wanted if name not in sets]
    if unknown:
        raise InputError(
            f"the data have no sample {unknown[0]!r}; the first is {next(iter(sets))!r}"
        )
    seed = chosen["random_state"]
    found = {name: time_posterior(chain, sets[name], random_state=seed) for name in wanted}
    return plot_time_densities(found)


def _timeline(chain: Model, data: Dataset | None, chosen: dict[str, Any]) -> Any:
    from sequela.likelihood.sample_posteriors import sample_posteriors
    from sequela.plots.timeline import plot_timeline
    from sequela.samples import as_samples

    posteriors = sample_posteriors(chain, as_samples(chain, data), **_run(chosen))
    return plot_timeline(posteriors, max_items=chosen["most"])


def _frequencies(chain: Model, data: Dataset | None, chosen: dict[str, Any]) -> Any:
    from sequela.plots.frequencies import plot_frequencies
    from sequela.questions.distributions import item_frequencies

    return plot_frequencies(item_frequencies(chain, data, **_run(chosen)))


def _co_occurrence(chain: Model, data: Dataset | None, chosen: dict[str, Any]) -> Any:
    from sequela.plots.co_occurrence import plot_co_occurrence
    from sequela.questions.goodness import goodness_of_fit

    return plot_co_occurrence(goodness_of_fit(chain, data, **_run(chosen)))


def _sizes(chain: Model, data: Dataset | None, chosen: dict[str, Any]) -> Any:
    from sequela.plots.set_sizes import plot_set_sizes
    from sequela.questions.goodness import goodness_of_fit

    return plot_set_sizes(goodness_of_fit(chain, data, **_run(chosen)))


def _clock(chain: Model, data: Dataset | None, chosen: dict[str, Any]) -> Any:
    from sequela.plots.clock_curve import plot_clock_curve
    from sequela.questions.clock_information import clock_curve

    return plot_clock_curve(clock_curve(chain, data, **_run(chosen)))


_DRAW: dict[str, Callable[[Any, Any, dict[str, Any]], Any]] = {
    "theta": _theta,
    "interactions": _interactions,
    "orders": _orders,
    "times": _times,
    "timeline": _timeline,
    "frequencies": _frequencies,
    "co-occurrence": _co_occurrence,
    "sizes": _sizes,
    "clock": _clock,
}
