"""Plot the held-out likelihood against the penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sequela.plots.style import FAINT, LINE, OUTLIER, SMALL, TEXT, check_columns, load, open_axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["plot_cross_validation"]

_COLUMNS = ("penalty", "log_likelihood", "standard_error", "interactions", "best", "chosen")


def plot_cross_validation(results: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the held-out likelihood with bars of one standard error, and mark the chosen penalty.

    The numbers above the axes are numbers of interactions.

    Parameters
    ----------
    results : DataFrame
        ``SetChainCV.cv_results_``.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> import pandas as pd
    >>> from matplotlib.figure import Figure
    >>> results = pd.DataFrame(
    ...     {
    ...         "penalty": [0.1, 0.01],
    ...         "log_likelihood": [-4.8, -4.3],
    ...         "standard_error": [0.1, 0.1],
    ...         "interactions": [1.0, 8.0],
    ...         "best": [False, True],
    ...         "chosen": [False, True],
    ...     }
    ... )
    >>> plot_cross_validation(results, ax=Figure().subplots()).get_xlabel()
    'penalty'
    """
    results = check_columns("results", results, _COLUMNS, "SetChainCV(...).fit(data).cv_results_")
    ax = open_axes(ax, 6.0, 4.0)
    penalties = results["penalty"]
    ax.errorbar(
        penalties, results["log_likelihood"], yerr=results["standard_error"], color=LINE,
        marker="o", markersize=4, linewidth=1.2, capsize=2, label="held-out, one standard error",
    )  # fmt: skip
    best = results[results["best"]].iloc[0]
    chosen = results[results["chosen"]].iloc[0]
    floor = best["log_likelihood"] - best["standard_error"]
    ax.axhline(
        floor, color=FAINT, linewidth=0.8, linestyle=":", label="best minus one standard error"
    )
    ax.axvline(
        chosen["penalty"], color=OUTLIER, linestyle="--", linewidth=1.2,
        label=f"chosen: {chosen['penalty']:.3g}",
    )  # fmt: skip
    ax.set_xscale("log")
    # Minor ticks have no labels, because the labels would overlap.
    ax.xaxis.set_minor_formatter(load("matplotlib.ticker").NullFormatter())
    ax.set_xlabel("penalty", fontsize=TEXT)
    ax.set_ylabel("held-out log-likelihood per sample", fontsize=TEXT)
    ax.legend(frameon=False, fontsize=SMALL)
    top = ax.secondary_xaxis("top")
    every = max(1, len(results) // 8)
    counts = [f"{count:.0f}" for count in results["interactions"][::every]]
    top.set_xticks(list(penalties[::every]), counts)
    top.minorticks_off()
    top.set_xlabel("interactions", fontsize=TEXT)
    return ax
