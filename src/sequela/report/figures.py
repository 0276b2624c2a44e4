"""Draw figures by name, with the computations that each of them needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sequela.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from matplotlib.axes import Axes

    from sequela.data.dataset import Dataset
    from sequela.model import Model

__all__ = ["FIGURES", "FigureOptions", "draw_figure", "needs_data"]

# The kinds of figures, and what each of them shows.
FIGURES = {
    "theta": "base rates and interactions as a heat map",
    "interactions": "the strongest interactions as arrows between items",
    "orders": "for each pair of items, the probability that one comes before the other",
    "tree": "the most likely orders of the samples as a radial tree",
    "paths": "the most common beginnings of the orders",
    "positions": "arrival time of each item, with 90% bands",
    "times": "densities of the times of single samples",
    "timeline": "samples sorted by time, with the arrivals of their items",
    "frequencies": "frequencies of items: observed, and expected by the model",
    "co-occurrence": "frequencies of pairs: observed, and expected by the model",
    "sizes": "set sizes: observed, and expected by the model",
    "clock": "how precisely the time is known, for 0, 1, 2, ... items",
}
_OF_SAMPLES = {"tree", "paths", "times", "timeline", "frequencies", "co-occurrence", "sizes"}
_SHOWN_SAMPLES = 5


@dataclass(frozen=True)
class FigureOptions:
    """What a figure shows, and the seed of sampled answers.

    Attributes
    ----------
    items : tuple of str or None
        Items of "orders", "tree", "paths" and "positions". None means the most frequent items.
    samples : tuple of str or None
        Samples of "times", by id. None means the first samples.
    max_items : int
        Maximum number of items or interactions that the figure shows.
    seed : int
        Seed of answers that are sampled.
    threads : int or None
        None uses all cores that this process may use.
    ranges : DataFrame or None
        For "orders": the table of `sequela.questions.order_ranges`, to show what the data allow.
    """

    items: tuple[str, ...] | None = None
    samples: tuple[str, ...] | None = None
    max_items: int = 20
    seed: int = 0
    threads: int | None = None
    ranges: pd.DataFrame | None = None

    def run_arguments(self) -> dict[str, Any]:
        """Return seed and threads as keyword arguments for the functions of `sequela.questions`."""
        return {"random_state": self.seed, "n_threads": self.threads}


def needs_data(kind: str) -> bool:
    """Tell whether a figure needs samples in addition to a model.

    Examples
    --------
    >>> needs_data("timeline"), needs_data("theta")
    (True, False)
    """
    return kind in _OF_SAMPLES


def draw_figure(
    kind: str,
    model: Model,
    data: Dataset | None = None,
    options: FigureOptions | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw one of the figures of ``sequela plot``, and return its axes.

    Parameters
    ----------
    kind : str
        One of `FIGURES`.
    model : Model
        The model.
    data : Dataset or None
        Samples; some kinds need them.
    options : FigureOptions or None
        What to show; None means the defaults of `FigureOptions`.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sequela import Model, example_theta
    >>> theta = example_theta()
    >>> model = Model(theta.to_numpy(), theta.columns)
    >>> ax = draw_figure("interactions", model, ax=Figure().subplots())
    >>> len(ax.patches)
    5
    """
    if kind not in FIGURES:
        raise InputError(f"there is no figure {kind!r}; expected one of {', '.join(FIGURES)}")
    if data is None and needs_data(kind):
        raise InputError(f"the figure {kind!r} needs data; give a table of samples")
    return _DRAW[kind](model, data, options or FigureOptions(), ax)


def _theta(model: Model, data: Dataset | None, options: FigureOptions, ax: Axes | None) -> Axes:  # noqa: ARG001
    from sequela.plots.theta import plot_theta

    return plot_theta(model, ax=ax)


def _interactions(
    model: Model, data: Dataset | None, options: FigureOptions, ax: Axes | None
) -> Axes:
    from sequela.plots.interactions import plot_interactions

    frequencies = None if data is None else data.frequencies
    return plot_interactions(model, options.max_items, frequencies=frequencies, ax=ax)


def _orders(model: Model, data: Dataset | None, options: FigureOptions, ax: Axes | None) -> Axes:
    from sequela.plots.order_matrix import plot_order_matrix
    from sequela.questions.distributions import item_frequencies
    from sequela.questions.order import order_matrix
    from sequela.samples import as_samples

    run = options.run_arguments()
    items = options.items
    if items is None:
        shares = (
            item_frequencies(model, **run)["model"]
            if data is None
            else as_samples(model, _needed(data)).frequencies
        )
        items = tuple(shares.sort_values(ascending=False, kind="stable").index[: options.max_items])
    return plot_order_matrix(order_matrix(model, list(items), **run), ranges=options.ranges, ax=ax)


def _tree(model: Model, data: Dataset | None, options: FigureOptions, ax: Axes | None) -> Axes:
    from sequela.plots.order_tree import plot_order_tree
    from sequela.questions.cohort import cohort_orders

    cohort = cohort_orders(model, _needed(data), n_threads=options.threads)
    return plot_order_tree(cohort, items=options.items, max_items=options.max_items, ax=ax)


def _paths(model: Model, data: Dataset | None, options: FigureOptions, ax: Axes | None) -> Axes:
    from sequela.plots.order_tree import plot_common_paths
    from sequela.questions.cohort import cohort_orders

    cohort = cohort_orders(model, _needed(data), n_threads=options.threads)
    return plot_common_paths(cohort, items=options.items, max_items=options.max_items, ax=ax)


def _positions(
    model: Model,
    data: Dataset | None,  # noqa: ARG001
    options: FigureOptions,
    ax: Axes | None,
) -> Axes:
    from sequela.plots.positions import plot_positions
    from sequela.questions.positions import item_positions

    table = item_positions(model, options.items, **options.run_arguments())
    return plot_positions(table, max_items=options.max_items, ax=ax)


def _times(model: Model, data: Dataset | None, options: FigureOptions, ax: Axes | None) -> Axes:
    from sequela.plots.time_densities import plot_time_densities
    from sequela.questions.clock import time_posterior
    from sequela.samples import as_samples

    table = as_samples(model, _needed(data))
    wanted = options.samples or table.samples[:_SHOWN_SAMPLES]
    sets = dict(zip(table.samples, table.sets(), strict=True))
    unknown = [name for name in wanted if name not in sets]
    if unknown:
        raise InputError(
            f"the data have no sample {unknown[0]!r}; the first sample is {next(iter(sets))!r}"
        )
    found = {name: time_posterior(model, sets[name], random_state=options.seed) for name in wanted}
    return plot_time_densities(found, ax=ax)


def _needed(data: Dataset | None) -> Dataset:
    """Return the samples; raise an error if there are none."""
    if data is None:
        raise InputError("this figure needs samples; give data")
    return data


def _timeline(model: Model, data: Dataset | None, options: FigureOptions, ax: Axes | None) -> Axes:
    from sequela.plots.timeline import plot_timeline
    from sequela.questions import sample_posteriors
    from sequela.samples import as_samples

    posteriors = sample_posteriors(
        model, as_samples(model, _needed(data)), **options.run_arguments()
    )
    return plot_timeline(posteriors, max_items=options.max_items, ax=ax)


def _frequencies(
    model: Model, data: Dataset | None, options: FigureOptions, ax: Axes | None
) -> Axes:
    from sequela.plots.frequencies import plot_frequencies
    from sequela.questions.distributions import item_frequencies

    return plot_frequencies(item_frequencies(model, data, **options.run_arguments()), ax=ax)


def _co_occurrence(
    model: Model, data: Dataset | None, options: FigureOptions, ax: Axes | None
) -> Axes:
    from sequela.plots.co_occurrence import plot_co_occurrence
    from sequela.questions.goodness import goodness_of_fit

    return plot_co_occurrence(
        goodness_of_fit(model, _needed(data), **options.run_arguments()), ax=ax
    )


def _sizes(model: Model, data: Dataset | None, options: FigureOptions, ax: Axes | None) -> Axes:
    from sequela.plots.set_sizes import plot_set_sizes
    from sequela.questions.goodness import goodness_of_fit

    return plot_set_sizes(goodness_of_fit(model, _needed(data), **options.run_arguments()), ax=ax)


def _clock(model: Model, data: Dataset | None, options: FigureOptions, ax: Axes | None) -> Axes:
    from sequela.plots.clock_curve import plot_clock_curve
    from sequela.questions.clock_information import clock_curve

    return plot_clock_curve(clock_curve(model, data, **options.run_arguments()), ax=ax)


_DRAW: dict[str, Callable[[Model, Dataset | None, FigureOptions, Axes | None], Axes]] = {
    "theta": _theta,
    "interactions": _interactions,
    "orders": _orders,
    "tree": _tree,
    "paths": _paths,
    "positions": _positions,
    "times": _times,
    "timeline": _timeline,
    "frequencies": _frequencies,
    "co-occurrence": _co_occurrence,
    "sizes": _sizes,
    "clock": _clock,
}
