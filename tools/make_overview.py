"""Draw docs/_static/overview.svg: the input, the model and the orders with their certainty.

The script also draws overview_narrow.svg, which has the same parts one below the other, for the
screen of a phone. Run `python -m tools.make_overview` after a change of the example model, of fits
or of the colours, and commit the result. The samples are simulated from `example_theta`, an
invented model of ten items.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import ListedColormap

import sequela
from sequela import plots, questions
from sequela.plots.style import LINE

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

SEED = 1
SAMPLES = 800
SHOWN_SAMPLES = 50
PAIRS = 8


def make_overview(folder: Path) -> None:
    """Draw the three panels: samples, interactions, orders."""
    drawn = sequela.simulate(sequela.example_theta(), SAMPLES, random_state=SEED)
    data = drawn.to_dataset().without_times()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sequela.learning.SeveralOptimaWarning)
        chain = sequela.SetChain(penalty=0.01, n_starts=5, random_state=SEED).fit(data)
    check = questions.order_ranges(chain, data, random_state=SEED)
    wide = plt.figure(figsize=(9.2, 4.4), layout="constrained")
    left, right = wide.subfigures(1, 2, width_ratios=(1.0, 1.05), wspace=0.04)
    upper, lower = left.subfigures(2, 1, height_ratios=(1.0, 1.0), hspace=0.04)
    draw_parts([upper, lower, right], data, check)
    plots.save_figure(wide, folder / "overview.svg", dpi=150)
    narrow = plt.figure(figsize=(4.3, 6.6), layout="constrained")
    parts = narrow.subfigures(3, 1, height_ratios=(1.0, 1.0, 1.3), hspace=0.04)
    draw_parts(list(parts), data, check)
    plots.save_figure(narrow, folder / "overview_narrow.svg", dpi=150)


def draw_parts(
    parts: list[SubFigure], data: sequela.Dataset, check: sequela.questions.OrderRanges
) -> None:
    """Draw one panel into each part of a figure."""
    titles = (
        "You have samples, each seen once",
        "Sequela learns what acts on what",
        "It tells what came first, if the data can tell",
    )
    for part, title in zip(parts, titles, strict=True):
        part.suptitle(title, fontsize=10, fontweight="bold")
    draw_samples(parts[0].subplots(), data)
    plots.plot_interactions(check.model, 10, frequencies=data.frequencies, ax=parts[1].subplots())
    plots.plot_order_ranges(check, max_pairs=PAIRS, ax=parts[2].subplots())


def draw_samples(ax: plt.Axes, data: sequela.Dataset) -> None:
    """Draw the first samples as a table in which present items are filled cells."""
    table = data.values[:SHOWN_SAMPLES].astype(int)
    ax.imshow(table.T, cmap=ListedColormap(["#eef2f6", LINE]), aspect="auto", interpolation="none")
    ax.set_yticks(np.arange(data.n_items), data.items, fontsize=7.5)
    ax.set_xticks([])
    ax.set_xlabel("samples, at unknown times", fontsize=9)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


if __name__ == "__main__":
    make_overview(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_static"))
