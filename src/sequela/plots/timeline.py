"""Samples in time: which items each has, and when they came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.likelihood.posterior import sample_posteriors
from sequela.plots.labels import short
from sequela.plots.style import LINE, SMALL, TEXT, load, open_axes, settle, side
from sequela.plots.ticks import item_ticks
from sequela.questions.arguments import as_model, as_samples, rate_of
from sequela.support.errors import InputError
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from sequela.likelihood.budget import Budget
    from sequela.support.random import RandomState

__all__ = ["plot_timeline"]


def plot_timeline(
    model: Any,
    data: Any,
    *,
    most: int = 20,
    relative: bool = False,
    observation_rate: float | None = None,
    budget: Budget | None = None,
    random_state: RandomState = 0,
    n_threads: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw samples by pseudo-time, and the expected arrival of each item that they have.

    Each column is a sample, the earliest on the left; each row an item, those that come early in
    their samples on top. The panel above shows the pseudo-times with the standard deviations of
    their posteriors.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    data : Dataset, DataFrame, array or list of sets
        The samples.
    most : int
        Draw the items that are most frequent, at most so many. All are used for the times.
    relative : bool
        Colour by the share of the sample's time at which an item came, not by the time itself.
    observation_rate, budget, random_state, n_threads
        As in `Likelihood`. The seed is fixed, so that the picture is the same every time.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> import sequela
    >>> from matplotlib.figure import Figure
    >>> sets = [{"first", "second"}, {"first"}, set()]
    >>> ax = plot_timeline(sequela.example_theta(), sets, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['first', 'second']
    """
    chain = as_model(model)
    samples = as_samples(chain, data)
    count = positive_integer("most", most)
    shares = np.asarray(samples.frequencies, dtype=np.float64)
    frequent = np.argsort(-shares, kind="stable")[:count]
    frequent = frequent[shares[frequent] > 0.0]
    if not frequent.size:
        raise InputError("no sample has any item; expected data with items to draw")
    found = sample_posteriors(
        chain.theta, samples.without_times(), budget=budget,
        observation_rate=rate_of(chain, observation_rate),
        random_state=random_state, n_threads=n_threads,
    )  # fmt: skip
    columns = np.argsort(found.time_mean, kind="stable")
    within = found.arrival_mean / found.time_mean[:, None]
    rows = frequent[np.argsort(np.nanmean(within[:, frequent], axis=0), kind="stable")]
    values = (within if relative else found.arrival_mean)[np.ix_(columns, rows)].T
    own = ax is None
    ax = open_axes(ax, 9.0, 0.2 * rows.size + 2.4)
    width, height = side(ax)
    latest = 1.0 if relative else float(np.nanquantile(values, 0.98))
    image = ax.imshow(
        values, cmap=_colours(), aspect="auto", interpolation="nearest", vmin=0.0,
        vmax=latest,
    )  # fmt: skip
    _draw_rows(ax, rows.size)
    item_ticks(ax.yaxis, short(chain.items[k] for k in rows), height)
    _write_shares(ax, shares[rows])
    ax.set_xticks([])
    note = f"{samples.n_samples} samples by pseudo-time"
    left = chain.n_items - rows.size
    if left:
        note += f"; {left} item{'s' if left > 1 else ''} not shown"
    ax.set_xlabel(note, fontsize=TEXT)
    _draw_times(ax, found.time_mean[columns], np.sqrt(found.time_variance[columns]), height)
    bar = ax.figure.colorbar(
        image, cax=ax.inset_axes((1.0 + 0.5 / width, 0.0, 0.12 / width, 1.0)),
        extend="max" if float(np.nanmax(values)) > latest else "neither",
    )  # fmt: skip
    what = "arrival, share of the sample's time" if relative else "expected arrival time"
    bar.set_label(what, fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    if own:
        settle(ax)
    return ax


def _colours() -> Any:
    """Return dark for early and light for late, without the lightest, and white for absent."""
    colors = load("matplotlib.colors")
    whole = load("matplotlib").colormaps["viridis"]
    found = colors.ListedColormap([whole(x) for x in np.linspace(0.0, 0.93, 256)], "sequela")
    return found.with_extremes(bad="white")


def _draw_rows(ax: Axes, rows: int) -> None:
    ax.grid(visible=False)
    if rows <= 60:
        ax.set_yticks(np.arange(rows - 1) + 0.5, minor=True)
        ax.grid(visible=True, axis="y", which="minor", color="0.85", linewidth=0.5)
        ax.tick_params(which="minor", length=0)


def _write_shares(ax: Axes, shares: NDArray[np.float64]) -> None:
    """Write how often each item occurs on the right, where the items have labels on the left."""
    size = ax.yaxis.get_ticklabels()[0].get_fontsize()
    for row in ax.get_yticks():
        ax.annotate(
            f"{100 * shares[int(row)]:.0f}%", (1.0, row), xycoords=("axes fraction", "data"),
            xytext=(3, 0), textcoords="offset points", va="center", fontsize=size, color="0.35",
        )  # fmt: skip


def _draw_times(
    ax: Axes, mean: NDArray[np.float64], spread: NDArray[np.float64], height: float
) -> None:
    panel = ax.inset_axes((0.0, 1.0 + 0.08 / height, 1.0, 0.75 / height))
    edges = np.arange(mean.size + 1) - 0.5
    panel.stairs(
        mean + spread, edges, baseline=np.maximum(mean - spread, 0.0), fill=True, color=LINE,
        alpha=0.25, linewidth=0,
    )  # fmt: skip
    panel.stairs(mean, edges, baseline=None, color=LINE, linewidth=1.2)
    panel.set_xlim(-0.5, mean.size - 0.5)
    panel.set_ylim(bottom=0.0)
    panel.set_xticks([])
    panel.tick_params(labelsize=SMALL)
    panel.set_ylabel("time\n(± sd)", fontsize=SMALL)
    panel.set_label("times")
    panel.spines[["top", "right"]].set_visible(False)
