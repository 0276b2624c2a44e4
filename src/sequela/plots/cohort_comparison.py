"""Plot orders in one cohort against orders in another, for the items that both cohorts have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.plots.labels import place_beside, shorten
from sequela.plots.style import (
    FAINT,
    LINE,
    OUTLIER,
    SMALL,
    TEXT,
    check_result,
    open_axes,
    settle,
)
from sequela.questions.compared_orders import compared_orders
from sequela.questions.order import Orders
from sequela.support.errors import InputError
from sequela.support.validation import is_number, positive_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_cohort_comparison"]

_MANY = 2000  # more points than this are drawn as one image


def plot_cohort_comparison(
    first: Orders,
    second: Orders,
    *,
    names: tuple[str, str] = ("first cohort", "second cohort"),
    different: float = 0.2,
    max_labels: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Draw P(a before b) in one cohort against P(a before b) in another, for all shared pairs.

    On the diagonal the cohorts agree. Pairs whose probabilities differ by more than `different` are
    marked and named, the largest differences first. Two fits also differ by chance. To check
    whether the data of one cohort can tell an order, use `order_ranges`.

    Parameters
    ----------
    first, second : Orders
        From `order_matrix`, one for each cohort.
    names : tuple of str
        Names of the cohorts.
    different : float
        Pairs whose probabilities differ by more than this are marked.
    max_labels : int
        Name at most this many pairs.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sequela import example_theta, order_matrix
    >>> orders = order_matrix(example_theta(), ["first", "second", "step 1"])
    >>> ax = plot_cohort_comparison(orders, orders, ax=Figure().subplots())
    >>> ax.get_xlabel()
    'P(a before b), first cohort'
    """
    for name, orders in (("first", first), ("second", second)):
        check_result(name, orders, Orders, "order_matrix(model)")
    if not (is_number(different) and 0.0 <= different <= 1.0):
        raise InputError(f"different is {different!r}; expected a number from 0 to 1")
    max_labels = positive_integer("max_labels", max_labels, least=0)
    table = compared_orders(first, second)
    x, y = table["first"].to_numpy(), table["second"].to_numpy()
    far = np.abs(x - y) > different
    own = ax is None
    ax = open_axes(ax, 5.6, 5.2)
    ax.plot([0.0, 1.0], [0.0, 1.0], color=FAINT, linewidth=0.8, linestyle=":")
    ax.axhline(0.5, color="0.85", linewidth=0.8)
    many = x.size > _MANY
    for which, colour, marker in ((~far, LINE, "o"), (far, OUTLIER, "D")):
        ax.scatter(
            x[which], y[which], s=6 if many else 18, color=colour, marker=marker, linewidth=0,
            alpha=0.5 if many else 0.85, rasterized=many, zorder=2,
        )  # fmt: skip
    ax.set_xlim(0.48, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel(f"P(a before b), {shorten(names[0], 30)}", fontsize=TEXT, parse_math=False)
    ax.set_ylabel(f"P(a before b), {shorten(names[1], 30)}", fontsize=TEXT, parse_math=False)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    agree = float(np.mean(y >= 0.5))
    ax.set_title(
        f"{x.size} pairs of {table.attrs['items']} items; {100 * agree:.0f}% have the same order",
        fontsize=SMALL, loc="right",
    )  # fmt: skip
    if own:
        settle(ax)
    ranked = [int(k) for k in np.argsort(-np.abs(x - y), kind="stable") if far[k]]
    a, b = table["a"].tolist(), table["b"].tolist()
    texts = [(k, f"{shorten(a[k], 12)} → {shorten(b[k], 12)}") for k in ranked]
    place_beside(
        ax, np.column_stack([x, y]), texts, size=SMALL, color="0.15", max_labels=max_labels
    )
    return ax
