"""Plot quantiles of the arrival time, or of the position in the order, of each item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from sequela.plots.labels import short
from sequela.plots.style import LINE, SMALL, TEXT, check_columns, open_axes, settle, side
from sequela.plots.ticks import item_ticks
from sequela.support.errors import InputError
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["plot_positions"]

_MEANINGS = {"time": "time of arrival", "place": "position in the order (1 is first)"}


def plot_positions(
    table: pd.DataFrame,
    *,
    show: Literal["time", "place"] = "time",
    max_items: int = 25,
    ax: Axes | None = None,
) -> Axes:
    """Draw the arrival time or the position of each item: median, 50% interval and 90% interval.

    Parameters
    ----------
    table : DataFrame
        From `item_positions`.
    show : {"time", "place"}
        Whether to show the arrival time or the position in the order.
    max_items : int
        Show at most this many items, the most frequent ones. The earliest item is on top.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sequela import example_theta, questions
    >>> table = questions.item_positions(example_theta(), random_state=1)
    >>> ax = plot_positions(table, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()][0]
    'right'
    """
    if show not in _MEANINGS:
        raise InputError(f"show is {show!r}; expected 'time' or 'place'")
    columns = [f"{show}_{q}" for q in ("05", "25", "50", "75", "95")]
    table = check_columns("table", table, ["observed", *columns], "item_positions(model)")
    max_items = positive_integer("max_items", max_items)
    known = table.dropna(subset=columns)
    if known.empty:
        raise InputError("each item was drawn too rarely to have a position; use more draws")
    often = known.sort_values("observed", ascending=False, kind="stable").head(max_items)
    rows = often.sort_values([columns[2], columns[3], columns[4]], kind="stable")
    low, first, middle, third, high = (rows[name].to_numpy(dtype=float) for name in columns)
    own = ax is None
    ax = open_axes(ax, 6.5, 0.2 * len(rows) + 0.9)
    at = np.arange(len(rows))
    ax.hlines(at, low, high, color=LINE, linewidth=1.1, alpha=0.7)
    ax.hlines(at, first, third, color=LINE, linewidth=4.0, alpha=0.5)
    ax.plot(middle, at, linestyle="none", marker="o", markersize=4.5, color=LINE)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(left=0.0 if show == "time" else 0.5)
    item_ticks(ax.yaxis, short(rows.index), side(ax)[1])
    ax.set_xlabel(_MEANINGS[show], fontsize=TEXT)
    ax.tick_params(axis="x", labelsize=SMALL)
    ax.grid(visible=True, axis="x", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    if own:
        settle(ax)
    return ax
