"""Plot Kaplan-Meier curves of groups of samples with a low or a high predicted risk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sequela.plots.style import SMALL, TEXT, check_columns, open_axes, series
from sequela.questions.survival_groups import risk_groups, survival_groups

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["plot_survival", "risk_groups"]


def plot_survival(
    clinical: pd.DataFrame, risk: pd.Series[float], *, groups: int = 2, ax: Axes | None = None
) -> Axes:
    """Draw Kaplan-Meier curves of groups by risk, with 95% bands and the log-rank test.

    The risk may be any number that a model predicts for each sample, such as the pseudo-time
    ``pseudo_times(model, data)["mean"]``. If the risk was learned from the same survival times, the
    curves are not valid for new samples.

    Parameters
    ----------
    clinical : DataFrame
        From `read_clinical`: "time" and "event", indexed by sample.
    risk : Series
        One number per sample, indexed by sample. Only samples that are also in `clinical` are used.
    groups : int
        Number of groups of about equal size.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> import pandas as pd
    >>> from matplotlib.figure import Figure
    >>> ids = [f"s{k}" for k in range(8)]
    >>> clinical = pd.DataFrame({"time": range(1, 9), "event": [True, False] * 4}, index=ids)
    >>> ax = plot_survival(clinical, pd.Series(range(8), index=ids), ax=Figure().subplots())
    >>> ax.get_ylabel()
    'survival probability'
    """
    clinical = check_columns("clinical", clinical, ("time", "event"), "read_clinical(...)")
    found = survival_groups(clinical, risk, groups)
    ax = open_axes(ax, 6.0, 4.2)
    for k, group in enumerate(found.groups):
        curve, (colour, style, _) = group.curve, series(k)
        ax.step(
            curve.index, curve["survival"], where="post", color=colour, linestyle=style,
            linewidth=1.6, label=f"{group.name} (n = {group.samples}, {group.events} events)",
        )  # fmt: skip
        ax.fill_between(
            curve.index, curve["low"], curve["high"], step="post", color=colour, alpha=0.15,
            linewidth=0,
        )  # fmt: skip
        if group.lost.size:
            ax.plot(
                group.lost, group.survival_at(group.lost), linestyle="none", marker="|",
                markersize=5, color=colour, alpha=0.7,
            )  # fmt: skip
    if found.p_value is not None:
        p = found.p_value
        said = f"p = {p:.2g}" if p >= 1e-4 else "p < 0.0001"
        ax.set_title(f"log-rank test: {said}", fontsize=SMALL, loc="right")
    ax.legend(frameon=False, fontsize=SMALL, loc="best")
    ax.set_ylim(0.0, 1.02)
    ax.set_xlim(left=0.0)
    ax.set_xlabel(f"time ({found.unit})" if found.unit else "time", fontsize=TEXT)
    ax.set_ylabel("survival probability", fontsize=TEXT)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
