"""Plot the posterior variance of the observation time against the number of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.plots.style import FAINT, LINE, TEXT, check_columns, open_axes
from sequela.plots.ticks import plain_ticks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["plot_clock_curve"]


def plot_clock_curve(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the expected posterior variance of the observation time against the number of items.

    Bars show two Monte Carlo standard errors. The dotted line shows the variance if there are no
    items.

    Parameters
    ----------
    table : DataFrame
        From `clock_curve`.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sequela import questions
    >>> from sequela.data.examples import example_theta
    >>> curve = questions.clock_curve(example_theta(), sizes=[0, 5], random_state=1)
    >>> plot_clock_curve(curve, ax=Figure().subplots()).get_xlabel()
    'number of items'
    """
    table = check_columns("table", table, ("variance", "se", "share"), "clock_curve(model)")
    table = table.sort_index()
    m = table.index.to_numpy(dtype=float)
    variance = table["variance"].to_numpy(dtype=float)
    error = 2.0 * table["se"].to_numpy(dtype=float)
    ax = open_axes(ax, 6.0, 4.0)
    without = float(variance[0] / table["share"].iloc[0])
    ax.axhline(without, color=FAINT, linewidth=0.8, linestyle=":")
    ax.annotate(
        "without items", (1.0, without), xycoords=("axes fraction", "data"), xytext=(-3, -3),
        textcoords="offset points", ha="right", va="top", fontsize=TEXT - 1, color="0.4",
    )  # fmt: skip
    ax.errorbar(
        m, variance, yerr=[np.minimum(error, variance), error], color=LINE, marker="o",
        markersize=4, linewidth=1.2, capsize=2,
    )  # fmt: skip
    if m.max() >= 20:
        # The scale is logarithmic, except between 0 and 1 items, where it is linear.
        ax.set_xscale("symlog", linthresh=1.0, linscale=0.5)
        ax.set_xlim(-0.15 if m[0] == 0.0 else 0.9 * m[0], 1.1 * m.max())
    plain_ticks(ax.xaxis, m, ax)
    ax.set_ylim(0.0, 1.05 * max(without, float((variance + error).max())))
    ax.set_xlabel("number of items", fontsize=TEXT)
    ax.set_ylabel("posterior variance of the time", fontsize=TEXT)
    return ax
