"""Which item came first, for every pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

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
from sequela.questions.order_answers import Orders
from sequela.support.errors import InputError
from sequela.support.validation import is_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["plot_order_matrix"]

_ANNOTATED = 16  # items up to which probabilities are written into the cells
_FAINTEST = 0.12


def plot_order_matrix(
    orders: Orders,
    *,
    uncertain: float = 0.1,
    rare: float = 0.01,
    annotate: bool | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw P(row came before column) as a matrix, the items that come first on top.

    Cells fade to grey as their standard error approaches `uncertain`, and where the probability of
    observing both items is below `rare`.

    Parameters
    ----------
    orders : Orders
        From `order_matrix`.
    uncertain : float
        The standard error from which on a cell counts as unknown.
    rare : float
        The probability of observing both below which a cell fades; 0: no cell fades for it.
    annotate : bool or None
        Write the probabilities into the cells; None: if there are at most 16 items.
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
            raise InputError(f"{name} is {value!r}; expected a positive number")
    probability = orders.probability.to_numpy(dtype=float)
    # How many items an item precedes, on average; unknown pairs count as one half.
    known = np.where(np.isnan(probability), 0.5, probability)
    first = np.argsort(-known.sum(axis=1), kind="stable")
    inner = np.ix_(first, first)
    n = first.size
    inches = float(np.clip(0.3 * n if n <= _ANNOTATED else 0.2 * n, 2.0, 9.0))
    own = ax is None
    ax = open_axes(ax, inches + 2.3, inches + 1.9)
    inches = min(side(ax))
    values = probability[inner]
    strength = _strength(
        orders.se.to_numpy(dtype=float)[inner], orders.observed.to_numpy(dtype=float)[inner],
        uncertain, rare,
    )  # fmt: skip
    strength[np.isnan(values)] = 0.0  # the grey background shows
    ax.set_facecolor(NOTHING)
    image = ax.imshow(
        values, cmap=diverging(), vmin=0.0, vmax=1.0, alpha=strength, interpolation="nearest"
    )
    _mark_diagonal(ax, n)
    if n <= _ANNOTATED if annotate is None else annotate:
        size = min(SMALL, 0.3 * 72.0 * inches / n)
        for i, j in np.argwhere(np.isfinite(values)):
            dark = abs(values[i, j] - 0.5) * strength[i, j] > 0.3
            colour = "white" if dark else ("black" if strength[i, j] > 0.5 else "0.45")
            ax.text(
                j, i, _shown(values[i, j]), ha="center", va="center", fontsize=size, color=colour
            )
    ax.grid(visible=False)
    labels = short(orders.probability.index[k] for k in first)
    item_ticks(ax.yaxis, labels, inches)
    item_ticks(ax.xaxis, labels, inches)
    ax.set_ylabel("this item came", fontsize=TEXT)
    notes = ["before this one"]
    if (strength[~np.eye(n, dtype=bool)] < 0.999).any():
        notes.append(
            f"grey: standard error near {uncertain:g}, or both seen in under {100 * rare:.3g}%"
        )
    ax.set_xlabel("\n".join(notes), fontsize=TEXT)
    bar = ax.figure.colorbar(
        _opaque(image), cax=ax.inset_axes((1.0 + 0.12 / inches, 0.0, 0.14 / inches, 1.0))
    )
    bar.set_label("P(row before column)", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    if own:
        settle(ax)
    return ax


def _strength(
    se: NDArray[np.float64], observed: NDArray[np.float64], uncertain: float, rare: float
) -> NDArray[np.float64]:
    """Return the opacity of each cell: 1 where it is certain, little where it is not."""
    sure = 1.0 - np.nan_to_num(np.minimum(se, uncertain), nan=uncertain) / uncertain
    often = np.ones_like(sure) if rare == 0.0 else np.clip(observed / rare, 0.0, 1.0)
    return np.maximum(np.minimum(sure, np.nan_to_num(often)), _FAINTEST)


def _shown(p: float) -> str:
    """Return a probability without the leading zero; not 1 or 0 unless it is."""
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


def _opaque(image: Any) -> Any:
    """Return what a colour bar needs of an image, without its transparency."""
    return load("matplotlib.cm").ScalarMappable(image.norm, image.cmap)
