"""Plot how well larger studies would determine an order, against the number of new samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.plots.labels import legend, short
from sequela.plots.style import FAINT, SMALL, TEXT, check_result, load, open_axes, series
from sequela.plots.ticks import plain_ticks
from sequela.questions.study_plan import StudyPlan

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["plot_study_plan"]


def plot_study_plan(plan: StudyPlan, *, ax: Axes | None = None) -> Axes:
    """Draw the probability that a study finds the right order, for each size of the study.

    There is one curve for each number of additional clock items. Error bars show two Monte Carlo
    standard errors. A dotted line in the same colour shows the probability that the study finds the
    wrong order. Hollow markers mean that the effective number of draws is too small for a reliable
    result.

    Parameters
    ----------
    plan : StudyPlan
        From `plan_study`.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import sequela
    >>> sets = sequela.simulate([[0.0, 3.0], [0.0, -3.0]], 50, random_state=1).to_dataset()
    >>> sets = sets.without_times()
    >>> draws = sequela.posterior(sets, draws=200, random_state=1)
    >>> plan = sequela.questions.plan_study(draws, sets, "0", "1", studies=50, random_state=1)
    >>> plot_study_plan(plan, ax=Figure().subplots()).get_xlabel()
    'new samples'
    """
    check_result("plan", plan, StudyPlan, "plan_study(posterior, data, first, second)")
    ax = open_axes(ax, 6.0, 4.0)
    sizes = np.unique(plan.table["samples"].to_numpy(dtype=float))
    groups = list(plan.table.groupby("clocks", sort=True))
    handles = [
        _curve(ax, rows, place, len(groups), float(np.ptp(sizes)))
        for place, (_, rows) in enumerate(groups)
    ]
    plain_ticks(ax.xaxis, sizes, ax)
    ax.set_ylim(-0.03, 1.03)
    ax.axhline(0.0, color=FAINT, linewidth=0.5, zorder=0)
    ax.set_xlabel("new samples", fontsize=TEXT)
    ax.set_ylabel("probability of calling the right order", fontsize=TEXT)
    first, second = short([plan.first, plan.second], 24)
    ax.set_title(
        f"{first} and {second}: {plan.samples} samples now", fontsize=TEXT, parse_math=False
    )
    names = [f"{clocks} more clock items" for clocks, _ in groups]
    line = load("matplotlib.lines").Line2D
    handles.append(line([], [], color=FAINT, linestyle=":", linewidth=1.0))
    names.append("wrong order called")
    if not plan.table["reliable"].all():
        handles.append(line([], [], color=FAINT, marker="o", mfc="white", ms=4, linestyle=""))
        names.append("not reliable: too few draws")
    legend(ax, handles, names, frameon=False, fontsize=SMALL, loc="best", handlelength=3.0)
    return ax


def _curve(ax: Axes, rows: pd.DataFrame, place: int, count: int, width: float) -> Any:
    """Draw the curve of one number of clock items; return its handle for the legend."""
    colour, style, marker = series(place)
    rows = rows.sort_values("samples")
    # Shift the curves slightly, so that error bars do not overlap.
    x = rows["samples"].to_numpy(dtype=float) + (place - (count - 1) / 2) * 0.006 * width
    right = rows["right"].to_numpy(dtype=float)
    error = 2.0 * rows["right_se"].to_numpy(dtype=float)
    bars = ax.errorbar(
        x, right, yerr=[np.minimum(error, right), np.minimum(error, 1.0 - right)], color=colour,
        linestyle=style, marker=marker, markersize=4, linewidth=1.2, capsize=2, elinewidth=0.8,
    )  # fmt: skip
    rough = ~rows["reliable"].to_numpy(dtype=bool)
    ax.plot(x[rough], right[rough], linestyle="", marker=marker, markersize=4,
            markerfacecolor="white", color=colour, zorder=5)  # fmt: skip
    ax.plot(x, rows["wrong"], color=colour, linestyle=":", linewidth=1.0)
    return bars.lines[0]
