"""Plot order probabilities against the number of items (Fig. 3 of the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.plots.labels import legend, short
from sequela.plots.style import (
    FAINT,
    SMALL,
    TEXT,
    check_columns,
    open_axes,
    series,
)
from sequela.plots.ticks import plain_ticks
from sequela.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["plot_order_curve"]


def plot_order_curve(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw order probabilities, with one standard error, against the number of items.

    Parameters
    ----------
    table : DataFrame
        Table with the columns "n", "probability" and "se". If there are several curves, it also has
        the column "pair".
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> import pandas as pd
    >>> from matplotlib.figure import Figure
    >>> table = pd.DataFrame({"n": [2, 20, 200], "probability": [0.5, 0.8, 0.9], "se": 0.05})
    >>> plot_order_curve(table, ax=Figure().subplots()).get_xscale()
    'log'
    """
    expected = "an experiment, with one row for each number of items (and each pair)"
    table = check_columns("table", table, ("n", "probability", "se"), expected)
    bad = table[["n", "probability", "se"]].isna().any(axis=1)
    if bad.any():
        raise InputError(
            f"table has missing values in row {table.index[bad][0]!r}; expected numbers in n, "
            "probability and se"
        )
    groups: list[tuple[Any, pd.DataFrame]] = [(None, table)]
    if "pair" in table.columns:
        groups = list(table.groupby("pair", sort=False))
    for pair, rows in groups:
        twice = rows["n"][rows["n"].duplicated()]
        if len(twice):
            what = "" if pair is None else f" for the pair {pair!r}"
            raise InputError(
                f"table has n = {twice.iloc[0]} more than once{what}; expected one row for each n"
            )
    ax = open_axes(ax, 6.0, 4.0)
    low, high = float(table["n"].min()), float(table["n"].max())
    logarithmic = low > 0.0 and high >= 8.0 * low
    ax.axhline(0.5, color=FAINT, linewidth=0.8, linestyle=":", zorder=1)
    handles = []
    for place, (_, rows) in enumerate(groups):
        rows = rows.sort_values("n")
        colour, style, marker = series(place)
        # Shift the curves slightly, so that error bars do not overlap.
        beside = (place - (len(groups) - 1) / 2) * 0.008 * min(1.0, 6 / len(groups))
        n = rows["n"].to_numpy(dtype=float)
        x = n * (high / low) ** beside if logarithmic else n + (high - low) * beside
        bars = ax.errorbar(
            x, rows["probability"], yerr=rows["se"], color=colour, linestyle=style, marker=marker,
            markersize=4, linewidth=1.2, capsize=2, elinewidth=0.8,
        )  # fmt: skip
        handles.append(bars.lines[0])
    if logarithmic:
        ax.set_xscale("log")
    plain_ticks(ax.xaxis, np.unique(table["n"].to_numpy(dtype=float)), ax)
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel("number of items", fontsize=TEXT)
    ax.set_ylabel("order probability", fontsize=TEXT)
    if groups[0][0] is not None:
        _name(ax, handles, [pair for pair, _ in groups])
    return ax


def _name(ax: Axes, handles: list[Any], pairs: list[Any]) -> None:
    texts = short((_pair(pair) for pair in pairs), 32)
    where = {"loc": "best"}
    if len(pairs) > 4:
        where = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}  # type: ignore[dict-item]
    legend(ax, handles, texts, frameon=False, fontsize=SMALL, handlelength=3.0, **where)


def _pair(pair: Any) -> str:
    """Return the pair ("a", "b") as the text "a before b", and any other name unchanged."""
    return (
        f"{pair[0]} before {pair[1]}" if isinstance(pair, tuple) and len(pair) == 2 else str(pair)
    )
