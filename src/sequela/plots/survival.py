"""Survival by predicted risk: Kaplan-Meier curves of groups of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.plots.style import SMALL, TEXT, check_columns, open_axes, series
from sequela.questions.survival import kaplan_meier, log_rank
from sequela.support.errors import InputError
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_survival", "risk_groups"]

_FEWEST = 2  # samples in a group
_NAMES = {2: ("low", "high"), 3: ("low", "middle", "high")}


def risk_groups(risk: pd.Series[float], groups: int = 2) -> pd.Series[int]:
    """Split samples into groups of about equal size by risk: 0 for the lowest, and so on.

    Samples of equal risk are in the same group.

    Examples
    --------
    >>> risk_groups(pd.Series([0.1, 0.4, 0.2, 0.9])).tolist()
    [0, 1, 0, 1]
    """
    groups = positive_integer("groups", groups)
    values = risk.to_numpy(dtype=float)
    if not np.isfinite(values).all():
        raise InputError("risk has values that are not finite numbers; leave those samples out")
    cuts = np.quantile(values, np.arange(1, groups) / groups) if values.size else np.array([])
    return pd.Series(np.searchsorted(cuts, values, side="left"), index=risk.index, name="group")


def plot_survival(
    clinical: pd.DataFrame, risk: pd.Series[float], *, groups: int = 2, ax: Axes | None = None
) -> Axes:
    """Draw Kaplan-Meier curves of samples in groups by risk, with 95% bands and the log-rank test.

    The risk may be anything that a model predicts for each sample, such as the pseudo-time
    ``pseudo_times(model, data)["mean"]``. If the risk was learned from the same survival times, the
    curves say nothing about new samples.

    Parameters
    ----------
    clinical : DataFrame
        From `read_clinical`: "time" and "event", indexed by sample.
    risk : Series
        A number for each sample, indexed by sample; only samples in both are used.
    groups : int
        Number of groups of about equal size.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ids = [f"s{k}" for k in range(8)]
    >>> clinical = pd.DataFrame({"time": range(1, 9), "event": [True, False] * 4}, index=ids)
    >>> ax = plot_survival(clinical, pd.Series(range(8), index=ids), ax=Figure().subplots())
    >>> ax.get_ylabel()
    'share that survives'
    """
    clinical = check_columns("clinical", clinical, ("time", "event"), "read_clinical(...)")
    if not isinstance(risk, pd.Series):
        raise InputError(f"risk is of type {type(risk).__name__}; expected a Series by sample")
    known = clinical.dropna(subset=["time", "event"])
    shared = known.index.intersection(risk.dropna().index)
    if shared.empty:
        raise InputError(
            "clinical and risk have no sample in common; check how the ids are written "
            f"(the first ones are {_first(clinical.index)} and {_first(risk.index)})"
        )
    times = known.loc[shared, "time"].to_numpy(dtype=float)
    events = known.loc[shared, "event"].to_numpy(dtype=bool)
    group = risk_groups(risk.loc[shared].astype(float), groups).to_numpy()
    sizes = np.bincount(group, minlength=groups)
    if (sizes < _FEWEST).any():
        raise InputError(
            f"{shared.size} samples with survival times and risk do not fill {groups} groups; use "
            "fewer groups"
        )
    ax = open_axes(ax, 6.0, 4.2)
    names = _NAMES.get(groups, tuple(f"group {k + 1}" for k in range(groups)))
    for k in range(groups):
        here = group == k
        curve = kaplan_meier(times[here], events[here])
        colour, style, _ = series(k)
        steps = curve["survival"]
        ax.step(
            steps.index, steps, where="post", color=colour, linestyle=style, linewidth=1.6,
            label=f"{names[k]} risk (n = {sizes[k]}, {int(events[here].sum())} events)",
        )  # fmt: skip
        ax.fill_between(
            curve.index, curve["low"], curve["high"], step="post", color=colour, alpha=0.15,
            linewidth=0,
        )  # fmt: skip
        lost = np.sort(times[here][~events[here]])
        if lost.size:
            at = steps.to_numpy()[np.searchsorted(steps.index.to_numpy(), lost, side="right") - 1]
            ax.plot(lost, at, linestyle="none", marker="|", markersize=5, color=colour, alpha=0.7)
    if groups > 1:
        p = log_rank(times, events, group).p_value
        said = f"p = {p:.2g}" if p >= 1e-4 else "p < 0.0001"
        ax.set_title(f"log-rank test: {said}", fontsize=SMALL, loc="right")
    ax.legend(frameon=False, fontsize=SMALL, loc="best")
    ax.set_ylim(0.0, 1.02)
    ax.set_xlim(left=0.0)
    unit = clinical.attrs.get("unit", "")
    ax.set_xlabel(f"time ({unit})" if unit else "time", fontsize=TEXT)
    ax.set_ylabel("share that survives", fontsize=TEXT)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _first(index: pd.Index[Any]) -> str:
    return repr(index[0]) if len(index) else "none"
