"""Plot the probability of each order and the range that the data allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.plots.labels import short
from sequela.plots.style import (
    FAINT,
    LINE,
    SMALL,
    TEXT,
    check_columns,
    open_axes,
    settle,
    side,
)
from sequela.plots.ticks import item_ticks
from sequela.questions.order_ranges import OrderRanges
from sequela.questions.verdict import Verdict
from sequela.support.errors import InputError
from sequela.support.naming import either
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["plot_order_ranges"]


def plot_order_ranges(
    orders: OrderRanges | pd.DataFrame, *, max_pairs: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the probability of each order with the range that the data allow.

    Orders that the data can tell have a dark, filled marker. Orders with another verdict have a
    grey, open marker, even if their probability is near 0 or 1.

    Parameters
    ----------
    orders : OrderRanges or DataFrame
        From `order_ranges`, or the table of `Posterior.orders`, whose intervals are then drawn.
    max_pairs : int
        Show at most this many pairs, in the order of the table. Pairs without a range are left out.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sequela import Dataset, fit, questions
    >>> sets = 40 * [[0, 0]] + 20 * [[1, 0]] + 5 * [[0, 1]] + 35 * [[1, 1]]
    >>> pair = Dataset(sets, items=["a", "b"])
    >>> check = questions.order_ranges(fit(pair, penalty=0.01), pair, random_state=1)
    >>> ax = plot_order_ranges(check, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['b before a']
    """
    table = orders.table if isinstance(orders, OrderRanges) else orders
    needed = ["first", "second", "probability", "low", "high", "verdict"]
    table = check_columns("orders", table, needed, "order_ranges(model, data)")
    max_pairs = positive_integer("max_pairs", max_pairs)
    rows = table.dropna(subset=["probability", "low", "high"]).head(max_pairs)
    if rows.empty:
        raise InputError(
            "no order has a range; use a model with interactions"
            + either(", or increase max_evaluations in order_ranges", "")
        )
    own = ax is None
    ax = open_axes(ax, 6.5, 0.24 * len(rows) + 1.0)
    place = np.arange(len(rows))
    certain = (rows["verdict"] == Verdict.CAN_TELL).to_numpy()
    probability, low, high = (
        rows[name].to_numpy(dtype=float) for name in ("probability", "low", "high")
    )
    ax.axvline(0.5, color="0.8", linewidth=1.0, zorder=0)
    # The table of a posterior also has other verdicts, such as "the data suggest it".
    other_verdicts = set(rows["verdict"][~certain]) - {Verdict.CANNOT_TELL}
    for chosen, colour, fill, text in (
        (certain, LINE, LINE, "the data can tell"),
        (~certain, FAINT, "white", "not certain" if other_verdicts else "the data cannot tell"),
    ):
        if not chosen.any():
            continue
        ax.hlines(place[chosen], low[chosen], high[chosen], color=colour, linewidth=2.2)
        ax.plot(
            probability[chosen], place[chosen], linestyle="none", marker="o", markersize=6.0,
            markerfacecolor=fill, markeredgecolor=colour, markeredgewidth=1.4, label=text,
        )  # fmt: skip
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    # Shorten each item once, because `short` numbers labels that become equal.
    items = list(dict.fromkeys([*rows["first"], *rows["second"]]))
    name = dict(zip(items, short(items), strict=True))
    labels = [
        f"{name[a]} before {name[b]}" for a, b in zip(rows["first"], rows["second"], strict=True)
    ]
    item_ticks(ax.yaxis, labels, side(ax)[1])
    ax.set_xlabel("probability of the order, with its range", fontsize=TEXT)
    ax.tick_params(axis="x", labelsize=SMALL)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=SMALL)
    if own:
        settle(ax)
    return ax
