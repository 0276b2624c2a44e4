"""Held-out likelihood against the penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sequela.support.errors import SequelaError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["plot_cross_validation"]

# Dark blue and orange: apart in print and for colour-blind eyes.
_LINE = "#1f4e79"
_CHOSEN = "#c8590b"


def plot_cross_validation(results: pd.DataFrame, ax: Any = None) -> Any:
    """Plot `SetChainCV.cv_results_`: mean and one standard error, the chosen penalty marked.

    The number of interactions stands above the points.
    """
    try:
        import matplotlib.pyplot as plt
        from matplotlib.ticker import NullFormatter
    except ImportError:
        raise SequelaError(
            'plots need matplotlib, which is not installed: pip install "sequela[plot]"'
        ) from None
    if ax is None:
        _, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    x = results["penalty"]
    ax.errorbar(
        x, results["log_likelihood"], yerr=results["standard_error"], color=_LINE, marker="o",
        markersize=4, linewidth=1.2, capsize=2, label="held-out, one standard error",
    )  # fmt: skip
    best = results[results["best"]].iloc[0]
    chosen = results[results["chosen"]].iloc[0]
    floor = best["log_likelihood"] - best["standard_error"]
    ax.axhline(floor, color="0.6", linewidth=0.8, linestyle=":", label="best minus one SE")
    ax.axvline(
        chosen["penalty"], color=_CHOSEN, linestyle="--", linewidth=1.2,
        label=f"chosen: {chosen['penalty']:.3g}",
    )  # fmt: skip
    ax.set_xscale("log")
    ax.xaxis.set_minor_formatter(NullFormatter())  # they would run into each other
    ax.set_xlabel("penalty")
    ax.set_ylabel("log-likelihood a sample, held out")
    ax.legend(frameon=False, fontsize=8)
    top = ax.secondary_xaxis("top")
    every = max(1, len(results) // 8)
    top.set_xticks(list(x[::every]), [f"{value:.0f}" for value in results["interactions"][::every]])
    top.minorticks_off()
    top.set_xlabel("interactions")
    return ax
