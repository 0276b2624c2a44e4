"""Plot interactions and log-likelihood against the penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.learning.penalty_path import PenaltyPath
from sequela.plots.labels import LITERAL, shorten
from sequela.plots.style import (
    INHIBITS,
    LINE,
    PROMOTES,
    SMALL,
    TEXT,
    check_result,
    load,
    open_axes,
    settle,
    side,
)
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["plot_path"]

_LONGEST = 12


def plot_path(path: PenaltyPath, *, max_labels: int = 10, ax: Axes | None = None) -> Axes:
    """Draw every interaction for all penalties of a path, from the largest to the smallest penalty.

    The panel above the axes shows the log-likelihood. The numbers above this panel are numbers of
    interactions.

    Parameters
    ----------
    path : PenaltyPath
        From `path`.
    max_labels : int
        Name at most this many interactions: those that are strongest at the smallest penalty.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> import sequela
    >>> from matplotlib.figure import Figure
    >>> sets = sequela.simulate(sequela.example_theta(), 200, random_state=1).to_dataset()
    >>> fits = sequela.path(sets.without_times(), n_penalties=3, ratio=0.2)
    >>> plot_path(fits, ax=Figure().subplots()).get_xlabel()
    'penalty'
    """
    check_result("path", path, PenaltyPath, "path(data)")
    max_labels = positive_integer("max_labels", max_labels, least=0)
    penalties = path.table["penalty"].to_numpy(dtype=float)
    thetas = np.array(path.thetas)
    n = thetas.shape[1]
    off = ~np.eye(n, dtype=bool) & (thetas != 0.0).any(axis=0)
    sources, targets = np.nonzero(off)
    effects = thetas[:, sources, targets]
    own = ax is None
    ax = open_axes(ax, 7.0, 5.0)
    ax.axhline(0.0, color="0.6", linewidth=0.6)
    final = effects[-1]
    named = np.argsort(-np.abs(final), kind="stable")[:max_labels]
    named = named[final[named] != 0.0]
    _draw_lines(ax, penalties, effects, named)
    _scale(ax, penalties)
    ax.set_xlabel("penalty", fontsize=TEXT)
    ax.set_ylabel("effect on the log-rate", fontsize=TEXT)
    texts = [
        f"{shorten(path.items[sources[k]], _LONGEST)} → {shorten(path.items[targets[k]], _LONGEST)}"
        for k in named
    ]
    _draw_likelihood(ax, path)
    if own:
        settle(ax)  # how far names must be apart depends on the final height of the axes
    _name_lines(ax, float(penalties[-1]), final[named], texts)
    if own:
        settle(ax)
    return ax


def _draw_lines(
    ax: Axes,
    penalties: NDArray[np.float64],
    effects: NDArray[np.float64],
    named: NDArray[np.int64],
) -> None:
    marker = "o" if penalties.size == 1 else ""
    for k in range(effects.shape[1]):
        strongest = effects[np.argmax(np.abs(effects[:, k])), k]
        promotes = strongest > 0.0
        ax.plot(
            penalties, effects[:, k], color=PROMOTES if promotes else INHIBITS, marker=marker,
            linestyle="-" if promotes else "--", linewidth=1.4 if k in named else 0.7,
            alpha=0.95 if k in named else 0.4,
        )  # fmt: skip


def _scale(ax: Axes, penalties: NDArray[np.float64]) -> None:
    """Make the axis of penalties logarithmic, from the largest on the left to 0 on the right."""
    ticker = load("matplotlib.ticker")
    positive = penalties[penalties > 0.0]
    if not positive.size:
        ax.set_xticks([0.0])
        return
    least = float(positive.min())
    if positive.size < penalties.size:
        ax.set_xscale("symlog", linthresh=least, linscale=0.4)
    else:
        ax.set_xscale("log")
    high, low = float(penalties.max()), float(penalties.min())
    if high > low:
        ax.set_xlim(high, low)
    else:
        ax.set_xlim(1.5 * high, high / 1.5)
    steps = [step * 10.0**power for power in range(-9, 6) for step in (1, 2, 5)]
    ticks = [x for x in steps if max(low, least) * 0.999 <= x <= high * 1.001]
    while len(ticks) > 7:
        ticks = ticks[::2]
    ax.xaxis.set_major_locator(
        ticker.FixedLocator([*([0.0] if low == 0.0 else []), *(ticks or [high])])
    )
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:.3g}"))
    ax.xaxis.set_minor_locator(ticker.NullLocator())


def _name_lines(ax: Axes, at: float, values: NDArray[np.float64], texts: list[str]) -> None:
    """Write the name of each line to the right of its end, so that no names overlap."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, high)
    order = np.argsort(values, kind="stable")
    own = (values[order] - low) / (high - low)
    gap = min(1.3 * SMALL / (72.0 * side(ax)[1]), 1.0 / max(len(texts), 1))
    places = _apart(own, gap)
    for k, place in zip(order, places, strict=True):
        ax.annotate(
            texts[k], (at, values[k]), xytext=(1.04, place), textcoords="axes fraction",
            va="center", fontsize=SMALL, annotation_clip=False, **LITERAL,
            color=PROMOTES if values[k] > 0.0 else INHIBITS,
            arrowprops={
                "arrowstyle": "-", "color": "0.6", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0,
                "relpos": (0.0, 0.5),
            },
        )  # fmt: skip


def _apart(places: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Return ascending positions from 0 to 1, near `places` and at least `gap` apart."""
    # Subtract from each position the sum of all gaps before it. Then the positions only have to be
    # ascending.
    moved = places - gap * np.arange(places.size)
    blocks: list[tuple[float, int]] = []
    for value in moved:
        mean, size = float(value), 1
        while blocks and blocks[-1][0] >= mean:
            before, many = blocks.pop()
            mean = (before * many + mean * size) / (many + size)
            size += many
        blocks.append((mean, size))
    merged = np.concatenate([np.full(size, mean) for mean, size in blocks] or [moved])
    room = max(1.0 - gap * max(places.size - 1, 0), 0.0)
    apart: NDArray[np.float64] = np.clip(merged, 0.0, room) + gap * np.arange(places.size)
    return apart


def _draw_likelihood(ax: Axes, path: PenaltyPath) -> None:
    height = side(ax)[1]
    panel = ax.inset_axes((0.0, 1.0 + 0.1 / height, 1.0, 1.0 / height))
    table = path.table
    penalties = table["penalty"].to_numpy(dtype=float)
    panel.plot(
        penalties, table["log_likelihood"], color=LINE, marker="o", markersize=3, linewidth=1.2
    )
    panel.set_label("log-likelihood")
    _scale(panel, penalties)
    panel.tick_params(labelsize=SMALL)
    panel.set_ylabel("log-likelihood\nper sample", fontsize=SMALL)
    every = max(1, -(-len(table) // 10))
    panel.xaxis.tick_top()
    panel.set_xticks(
        penalties[::every], [f"{count:.0f}" for count in table["interactions"].iloc[::every]],
    )  # fmt: skip
    panel.xaxis.set_label_position("top")
    panel.set_xlabel("interactions", fontsize=SMALL)
