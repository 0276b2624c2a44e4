"""Plot samples by pseudo-time, with their items and the arrival times of the items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.likelihood.histories import SamplePosteriors
from sequela.plots.labels import short
from sequela.plots.style import LINE, SMALL, TEXT, check_result, load, open_axes, settle, side
from sequela.plots.ticks import item_ticks
from sequela.support.errors import InputError
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["plot_timeline"]


def plot_timeline(
    posteriors: SamplePosteriors,
    *,
    max_items: int = 20,
    relative: bool = False,
    unit: str = "that of the model",
    ax: Axes | None = None,
) -> Axes:
    """Draw samples by pseudo-time, with the expected arrival time of each of their items.

    Each column is a sample, with the earliest on the left. Each row is an item; items that arrive
    early in their samples are on top. The panel above shows the pseudo-times with the standard
    deviations of their posteriors.

    Parameters
    ----------
    posteriors : SamplePosteriors
        From `sample_posteriors`.
    max_items : int
        Draw at most this many items, the most frequent ones.
    relative : bool
        True: the colour shows the arrival time divided by the observation time of the sample.
        False: the colour shows the arrival time.
    unit : str
        The unit of time, such as "mean observation time" or "years".
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sequela import questions
    >>> theta = [[0.0, 4.0], [0.0, -4.0]]
    >>> posteriors = questions.sample_posteriors(theta, [[1, 1], [1, 0], [0, 0]])
    >>> ax = plot_timeline(posteriors, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['0', '1']
    """
    check_result("posteriors", posteriors, SamplePosteriors, "sample_posteriors(model, data)")
    max_items = positive_integer("max_items", max_items)
    arrivals, times = posteriors.arrival_mean, posteriors.time_mean
    shares = (~np.isnan(arrivals)).mean(axis=0)
    frequent = np.argsort(-shares, kind="stable")[:max_items]
    frequent = frequent[shares[frequent] > 0.0]
    if not frequent.size:
        raise InputError("no sample has any item; expected at least one sample with items")
    columns = np.argsort(times, kind="stable")
    within = arrivals / times[:, None]
    rows = frequent[np.argsort(np.nanmean(within[:, frequent], axis=0), kind="stable")]
    values = (within if relative else arrivals)[np.ix_(columns, rows)].T
    own = ax is None
    ax = open_axes(ax, 9.0, 0.2 * rows.size + 2.4)
    width, height = side(ax)
    latest = 1.0 if relative else float(np.nanquantile(values, 0.98))
    image = ax.imshow(
        values, cmap=_colours(), aspect="auto", interpolation="nearest", vmin=0.0, vmax=latest
    )
    _draw_rows(ax, rows.size)
    item_ticks(ax.yaxis, short(posteriors.items[k] for k in rows), height)
    _write_shares(ax, shares[rows])
    ax.set_xticks([])
    note = f"{times.size} samples by pseudo-time"
    left = len(posteriors.items) - rows.size
    if left:
        note += f"; {left} item{'s' if left > 1 else ''} not shown"
    note += f"; unit of time: {unit}"
    ax.set_xlabel(note, fontsize=TEXT)
    _draw_times(ax, times[columns], np.sqrt(posteriors.time_variance[columns]), height)
    bar = ax.figure.colorbar(
        image, cax=ax.inset_axes((1.0 + 0.5 / width, 0.0, 0.12 / width, 1.0)),
        extend="max" if float(np.nanmax(values)) > latest else "neither",
    )  # fmt: skip
    what = "arrival time / observation time of the sample" if relative else "expected arrival time"
    bar.set_label(what, fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    if own:
        settle(ax)
    return ax


def _colours() -> Any:
    """Return a colour map: dark is early, light is late, and white means absent."""
    colors = load("matplotlib.colors")
    whole = load("matplotlib").colormaps["viridis"]
    colour_map = colors.ListedColormap([whole(x) for x in np.linspace(0.0, 0.93, 256)], "sequela")
    return colour_map.with_extremes(bad="white")


def _draw_rows(ax: Axes, rows: int) -> None:
    ax.grid(visible=False)
    if rows <= 60:
        ax.set_yticks(np.arange(rows - 1) + 0.5, minor=True)
        ax.grid(visible=True, axis="y", which="minor", color="0.85", linewidth=0.5)
        ax.tick_params(which="minor", length=0)


def _write_shares(ax: Axes, shares: NDArray[np.float64]) -> None:
    """Write the frequency of each item on the right, for rows with a label on the left."""
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
