"""Plot P(a before b) for every pair of items as a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.plots.certainty import CERTAIN, FAINTEST, opacity, opaque
from sequela.plots.labels import short
from sequela.plots.style import (
    DIAGONAL,
    NOTHING,
    SMALL,
    TEXT,
    check_result,
    diverging,
    load,
    open_axes,
    settle,
    side,
)
from sequela.plots.ticks import item_ticks
from sequela.questions.order_answers import Orders, PosteriorOrders
from sequela.questions.verdict import Verdict
from sequela.support.errors import InputError
from sequela.support.validation import is_number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["plot_order_matrix"]

_ANNOTATED = 16  # with at most this many items, cells show their probabilities
_UNTOLD = 0.3  # opacity of cells whose order the data cannot tell
_WITH_INTERVAL = 10  # with at most this many items, cells also show the intervals


def plot_order_matrix(
    orders: Orders,
    *,
    uncertain: float = 0.1,
    rare: float = 0.01,
    annotate: bool | None = None,
    ranges: pd.DataFrame | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw P(row arrived before column) as a matrix, with the earliest items on top.

    Cells fade to grey if their standard error approaches `uncertain`. They also fade if the
    probability of observing both items is below `rare`. For a posterior, cells fade if it is
    uncertain which item usually arrives first: a cell has its full colour if this is known with a
    probability of 0.95 or more, and it is grey if the probability is 0.5. With `ranges`, a cell has
    its full colour only if the data can tell the order. With at most 10 items, intervals or ranges
    are written below the probabilities.

    Parameters
    ----------
    orders : Orders or PosteriorOrders
        From `order_matrix`.
    uncertain : float
        The standard error at which a cell is completely grey. Not used for a posterior.
    rare : float
        A cell fades if the probability of observing both items is smaller than `rare`. With 0, no
        cell fades for this reason.
    annotate : bool or None
        Write the probabilities into the cells. None: write them if there are at most 16 items.
    ranges : DataFrame or None
        The table of `order_ranges`: the range that the data allow, and the verdict, of each pair
        that was checked. Not used for a posterior, which has its own intervals.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sequela import questions
    >>> from sequela.data.examples import example_theta
    >>> orders = questions.order_matrix(example_theta(), ["step 2", "step 1"])
    >>> ax = plot_order_matrix(orders, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['step 1', 'step 2']
    """
    check_result("orders", orders, Orders, "order_matrix(model)")
    for name, value, least in (("uncertain", uncertain, 1e-12), ("rare", rare, 0.0)):
        if not (is_number(value) and least <= value < np.inf):
            expected = "above 0" if least else "of at least 0"
            raise InputError(f"{name} is {value!r}; expected a finite number {expected}")
    probability = orders.probability.to_numpy(dtype=float)
    # Sort by the mean number of items that come after an item. A pair whose order is unknown counts
    # as one half.
    known = np.where(np.isnan(probability), 0.5, probability)
    first = np.argsort(-known.sum(axis=1), kind="stable")
    inner = np.ix_(first, first)
    n = first.size
    checked = None if isinstance(orders, PosteriorOrders) else _checked(orders, ranges)
    inches = _inches(orders, n, wide=checked is not None)
    own = ax is None
    ax = open_axes(ax, inches + 2.3, inches + 1.9)
    inches = min(side(ax))
    values = probability[inner]
    strength = _strength(orders, uncertain, rare)
    if checked is not None:
        strength = np.where(checked[2] == 1.0, strength, np.minimum(strength, _UNTOLD))
    strength = strength[inner]
    strength[np.isnan(values)] = 0.0  # unknown cells show the grey background
    ax.set_facecolor(NOTHING)
    image = ax.imshow(
        values, cmap=diverging(), vmin=0.0, vmax=1.0, alpha=strength, interpolation="nearest"
    )
    _mark_diagonal(ax, n)
    annotated = n <= _ANNOTATED if annotate is None else annotate
    if annotated:
        _annotate(ax, values, strength, _intervals(orders, first, checked), inches)
    ax.grid(visible=False)
    labels = short(orders.probability.index[k] for k in first)
    item_ticks(ax.yaxis, labels, inches)
    item_ticks(ax.xaxis, labels, inches)
    ax.set_ylabel("this item came", fontsize=TEXT)
    notes = ["before this one"]
    if (strength[~np.eye(n, dtype=bool)] < 0.999).any():
        why = f"standard error near {uncertain:g}, "
        if isinstance(orders, PosteriorOrders):
            why = f"order less than {100 * CERTAIN:g}% certain,\n"
        elif checked is not None:
            why = "the data cannot tell, or not checked,\n"
        what = "grey number" if annotated else "pale"
        notes.append(f"{what}: {why}or both seen in under {100 * rare:.3g}%")
    if checked is not None and n <= _WITH_INTERVAL:
        notes.append("small numbers: the range that the data allow")
    ax.set_xlabel("\n".join(notes), fontsize=TEXT)
    bar = ax.figure.colorbar(
        opaque(image), cax=ax.inset_axes((1.0 + 0.12 / inches, 0.0, 0.14 / inches, 1.0))
    )
    bar.set_label("P(row before column)", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    if own:
        settle(ax)
    return ax


def _checked(orders: Orders, ranges: pd.DataFrame | None) -> NDArray[np.float64] | None:
    """Return three matrices: lower ends of ranges, upper ends, and 1 where the data can tell.

    Return None if there are no ranges.
    """
    if ranges is None or not ranges["low"].notna().any():
        return None
    items = list(orders.probability.index)
    place = {label: k for k, label in enumerate(items)}
    found = np.full((3, len(items), len(items)), np.nan)
    for row in ranges.dropna(subset=["low", "high"]).to_dict("records"):
        if row["first"] in place and row["second"] in place:
            i, j = place[row["first"]], place[row["second"]]
            told = float(row["verdict"] == Verdict.CAN_TELL)
            found[:, i, j] = row["low"], row["high"], told
            found[:, j, i] = 1.0 - row["high"], 1.0 - row["low"], told
    return found


def _inches(orders: Orders, n: int, *, wide: bool) -> float:
    """Return the width (and height) of a square matrix of n items, in inches, for a new figure."""
    if (wide or isinstance(orders, PosteriorOrders)) and n <= _WITH_INTERVAL:
        return max(0.52 * n, 2.0)
    return float(np.clip(0.3 * n if n <= _ANNOTATED else 0.2 * n, 2.0, 9.0))


def _strength(orders: Orders, uncertain: float, rare: float) -> NDArray[np.float64]:
    """Return the opacity of each cell: 1 if it is certain, small if it is not."""
    observed = orders.observed.to_numpy(dtype=float)
    if isinstance(orders, PosteriorOrders):
        sure = opacity(orders.usually_first.to_numpy(dtype=float))
    else:
        se = orders.se.to_numpy(dtype=float)
        sure = 1.0 - np.nan_to_num(np.minimum(se, uncertain), nan=uncertain) / uncertain
    often = np.ones_like(sure) if rare == 0.0 else np.clip(observed / rare, 0.0, 1.0)
    return np.maximum(np.minimum(sure, np.nan_to_num(often)), FAINTEST)


def _intervals(
    orders: Orders, first: NDArray[np.int64], checked: NDArray[np.float64] | None
) -> list[NDArray[np.float64]]:
    """Return the lower and upper ends of intervals; an empty list if the cells do not show them."""
    if first.size > _WITH_INTERVAL:
        return []
    inner = np.ix_(first, first)
    if checked is not None:
        return [end[inner] for end in checked[:2]]
    if not isinstance(orders, PosteriorOrders):
        return []
    return [table.to_numpy(dtype=float)[inner] for table in (orders.low, orders.high)]


def _annotate(
    ax: Axes,
    values: NDArray[np.float64],
    strength: NDArray[np.float64],
    intervals: list[NDArray[np.float64]],
    inches: float,
) -> None:
    """Write the probabilities into the cells, and their intervals below them."""
    size = min(SMALL, 0.3 * 72.0 * inches / len(values))
    for i, j in np.argwhere(np.isfinite(values)):
        dark = abs(values[i, j] - 0.5) * strength[i, j] > 0.3
        colour = "white" if dark else ("black" if strength[i, j] > 0.5 else "0.45")
        known = bool(intervals) and bool(np.isfinite(intervals[0][i, j]))
        up = 0.12 if known else 0.0
        ax.text(
            j, i - up, _shown(values[i, j]), ha="center", va="center", fontsize=size, color=colour
        )
        if known:
            text = " to ".join(_shown(end[i, j]) for end in intervals)
            ax.text(j, i + 0.24, text, ha="center", va="center", fontsize=0.7 * size, color=colour)


def _shown(p: float) -> str:
    """Return a probability as text without the leading zero; only exact values are "1" or "0"."""
    if p in (0.0, 1.0):
        return f"{p:.0f}"
    if p > 0.995:
        return ">.99"
    if p < 0.005:
        return "<.01"
    return f"{p:.2f}".removeprefix("0")


def _mark_diagonal(ax: Axes, n: int) -> None:
    own = np.full((n, n), np.nan)
    np.fill_diagonal(own, 0.0)
    grey = load("matplotlib.colors").ListedColormap([DIAGONAL])
    ax.imshow(own, cmap=grey, interpolation="nearest")
