"""Plot the number of items per sample: observed in the data and expected by the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.plots.labels import legend
from sequela.plots.style import LINE, OUTLIER, SMALL, TEXT, check_result, load, open_axes
from sequela.questions.goodness import GoodnessOfFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_set_sizes"]

_NEGLIGIBLE = 0.05  # a size that was not observed is left out if fewer samples are expected


def plot_set_sizes(goodness: GoodnessOfFit, *, ax: Axes | None = None) -> Axes:
    """Draw how many samples have 0, 1, 2, ... items, and how many the model expects.

    Error bars of the expected numbers show two standard deviations of sampling noise.

    Parameters
    ----------
    goodness : GoodnessOfFit
        From `goodness_of_fit`.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sequela import questions
    >>> from sequela.data.examples import example_theta
    >>> sets = [{"first"}, {"left"}, set()]
    >>> goodness = questions.goodness_of_fit(example_theta(), sets, draws=2000, random_state=1)
    >>> plot_set_sizes(goodness, ax=Figure().subplots()).get_xlabel()
    'items per sample'
    """
    check_result("goodness", goodness, GoodnessOfFit, "goodness_of_fit(model, data)")
    table = goodness.sizes
    total = float(table["observed"].sum())
    seen = (table["observed"] > 0) | (table["expected"] >= _NEGLIGIBLE)
    last = int(np.nonzero(seen.to_numpy())[0][-1])
    table = table.iloc[: last + 1]
    size = table.index.to_numpy(dtype=float)
    expected = table["expected"].to_numpy(dtype=float)
    share = expected / total
    spread = np.sqrt(total * share * (1.0 - share) + table["se"].to_numpy(dtype=float) ** 2)
    ax = open_axes(ax, 6.0, 4.0)
    bars = ax.bar(size, table["observed"], width=0.85, color=LINE, alpha=0.45)
    points = ax.errorbar(
        size, expected, yerr=[np.minimum(2 * spread, expected), 2 * spread], color=OUTLIER,
        marker="o", markersize=3 if last > 40 else 4, linewidth=1.0, elinewidth=0.8,
        capsize=0 if last > 40 else 2,
    )  # fmt: skip
    ax.set_xlim(-0.7, last + 0.7)
    ax.set_ylim(bottom=0.0)
    ax.xaxis.set_major_locator(load("matplotlib.ticker").MaxNLocator(integer=True))
    ax.set_xlabel("items per sample", fontsize=TEXT)
    ax.set_ylabel("samples", fontsize=TEXT)
    texts = [f"observed ({total:.0f} samples)", "expected, two sd of sampling noise"]
    legend(ax, [bars, points], texts, frameon=False, fontsize=SMALL, loc="upper right")
    return ax
