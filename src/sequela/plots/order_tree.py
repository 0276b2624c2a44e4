"""Plot the tree of the orders of a cohort, and its most common paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.plots.labels import LITERAL, short, text_width
from sequela.plots.style import LINE, SMALL, TEXT, check_result, load, open_axes, series_colours
from sequela.questions.cohort import CohortOrders
from sequela.support.errors import InputError
from sequela.support.naming import either
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from sequela.questions.cohort import OrderBranch

__all__ = ["plot_common_paths", "plot_order_tree"]

_BRANCHES = 80  # if there are more branches, the smallest are left out
_THICKEST = 12.0  # width of the thickest branch in points
_MAKER = "cohort_orders(model, data)"


@dataclass(frozen=True)
class _Spot:
    """A branch with its angle, its distance from the centre, and its parent."""

    branch: OrderBranch
    angle: float
    depth: int
    parent: _Spot | None

    @property
    def radius(self) -> float:
        # The first ring is farther from the centre than rings are from one another, because the
        # thickest branches start at the centre.
        return self.depth + 0.5

    @property
    def at(self) -> NDArray[np.float64]:
        return self.radius * np.array([np.cos(self.angle), np.sin(self.angle)])


def plot_order_tree(
    cohort: CohortOrders,
    *,
    items: Iterable[Any] | None = None,
    max_items: int = 10,
    least: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the most likely orders of the samples as a radial tree, as in Schill et al. (2020).

    From the centre outwards, each step adds an item. The width of a branch shows how many samples
    follow it. A dark ring marks a point at which at least one order ends.

    Parameters
    ----------
    cohort : CohortOrders
        From `cohort_orders`.
    items : list of labels or None
        Keep only these items in the orders; None: the `max_items` most frequent items.
    max_items : int
        Number of items that are kept if `items` is None.
    least : int or None
        Leave out branches with fewer samples than this; None: keep at most 80 branches.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sequela import example_theta, questions, simulate
    >>> data = simulate(example_theta(), 50, random_state=1).to_dataset()
    >>> cohort = questions.cohort_orders(example_theta(), data)
    >>> ax = plot_order_tree(cohort, items=["step 1", "step 2", "step 3"], ax=Figure().subplots())
    >>> sorted({text.get_text() for text in ax.texts if "step" in text.get_text()})
    ['step 1', 'step 2', 'step 3']
    """
    check_result("cohort", cohort, CohortOrders, _MAKER)
    chosen = _most_frequent(cohort, max_items) if items is None else [str(x) for x in items]
    least = _least(cohort, chosen) if least is None else positive_integer("least", least)
    tree = cohort.tree(chosen, least=least)
    if not tree.children:
        raise InputError(
            f"no branch has {least} or more samples; choose other items"
            + either(" or a smaller least=", "")
        )
    spots = _places(tree)
    colours = dict(zip(chosen, series_colours(), strict=False))
    labels = dict(zip(cohort.items, short(cohort.items, 14), strict=True))
    ax = open_axes(ax, 7.5, 7.5)
    ax.set_axis_off()
    ax.set_aspect("equal")
    for spot in spots:
        _draw_branch(ax, spot, tree.count, colours)
    ax.scatter([0.0], [0.0], s=30, color="0.1", zorder=4)
    for spot in spots:
        _write_label(ax, spot, labels[str(spot.branch.item)])
    far = max(spot.radius for spot in spots) + 0.55
    ax.set_xlim(-far, far)
    ax.set_ylim(-far, far)
    note = f"{tree.count} samples"
    if least > 1:
        note += f"; branches with at least {least} samples"
    missing = len(cohort.orders) - tree.count
    if missing:
        note += f"; {missing} samples left out (too many items)"
    ax.text(0.5, 0.0, note, transform=ax.transAxes, ha="center", va="top", fontsize=SMALL)
    return ax


def _most_frequent(cohort: CohortOrders, count: int) -> list[str]:
    count = positive_integer("max_items", count)
    seen = dict.fromkeys(cohort.items, 0)
    for order in cohort.orders:
        for item in order or ():
            seen[item] += 1
    return sorted(seen, key=lambda item: -seen[item])[:count]


def _least(cohort: CohortOrders, chosen: list[str]) -> int:
    least = 1
    while cohort.tree(chosen, least=least).size > _BRANCHES:
        least += 1 + least // 4
    return least


def _places(tree: OrderBranch) -> list[_Spot]:
    """Return the positions of the branches. A sector is wider if it has more leaves."""

    def ends(branch: OrderBranch) -> int:
        return max(sum(ends(child) for child in branch.children), 1)

    spots: list[_Spot] = []

    def walk(branch: OrderBranch, low: float, high: float, parent: _Spot | None) -> None:
        total = ends(branch)
        start = low
        depth = 1 if parent is None else parent.depth + 1
        for child in branch.children:
            stop = start + (high - low) * ends(child) / total
            spot = _Spot(child, (start + stop) / 2.0, depth, parent)
            spots.append(spot)
            walk(child, start, stop, spot)
            start = stop

    walk(tree, np.pi / 2.0, np.pi / 2.0 - 2.0 * np.pi, None)
    return spots


def _draw_branch(ax: Axes, spot: _Spot, total: int, colours: dict[str, str]) -> None:
    path = load("matplotlib.path").Path
    patches = load("matplotlib.patches")
    start = np.zeros(2) if spot.parent is None else spot.parent.at
    middle = spot.radius - (0.75 if spot.parent is None else 0.5)
    from_angle = spot.angle if spot.parent is None else spot.parent.angle
    way = [
        start,
        middle * np.array([np.cos(from_angle), np.sin(from_angle)]),
        middle * np.array([np.cos(spot.angle), np.sin(spot.angle)]),
        spot.at,
    ]
    codes = [path.MOVETO, path.CURVE4, path.CURVE4, path.CURVE4]
    colour = colours.get(str(spot.branch.item), "0.55")
    width = max(0.5, _THICKEST * (spot.branch.count / total) ** 0.75)
    ax.add_patch(
        patches.PathPatch(
            path(np.array(way), codes), fill=False, edgecolor=colour, linewidth=width, alpha=0.6,
            capstyle="round", zorder=1,
        )
    )  # fmt: skip
    ring = "0.1" if spot.branch.ended else "white"
    x, y = spot.at
    ax.scatter([x], [y], s=12 + 5 * width, color=colour, edgecolor=ring, linewidth=0.9, zorder=3)


def _write_label(ax: Axes, spot: _Spot, text: str) -> None:
    """Write a label along the ray of a branch, never upside down.

    The label of a branch without children is outside its point; all other labels are inside.
    """
    degrees = float(np.rad2deg(spot.angle)) % 360.0
    flipped = 90.0 < degrees < 270.0
    outward = not spot.branch.children
    offset = 6.0 if outward else -6.0
    direction = np.array([np.cos(spot.angle), np.sin(spot.angle)])
    ax.annotate(
        text, (float(spot.at[0]), float(spot.at[1])), xytext=tuple(offset * direction),
        textcoords="offset points", fontsize=SMALL - 0.5,
        rotation=degrees - 180.0 if flipped else degrees,
        rotation_mode="anchor", ha="left" if outward != flipped else "right", va="center", zorder=5,
        bbox={"boxstyle": "round,pad=0.05", "fc": "white", "ec": "none", "alpha": 0.6}, **LITERAL,
    )  # fmt: skip


def plot_common_paths(
    cohort: CohortOrders,
    length: int = 3,
    *,
    items: Iterable[Any] | None = None,
    max_items: int = 20,
    max_paths: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Draw the most common beginnings of the orders, with their numbers of samples.

    Parameters
    ----------
    cohort : CohortOrders
        From `cohort_orders`.
    length : int
        Number of items in a beginning.
    items : list of labels or None
        Keep only these items in the orders; None: the most frequent items.
    max_items, max_paths : int
        Maximum number of items if `items` is None, and maximum number of paths.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sequela import example_theta, questions, simulate
    >>> data = simulate(example_theta(), 50, random_state=1).to_dataset()
    >>> cohort = questions.cohort_orders(example_theta(), data)
    >>> ax = plot_common_paths(cohort, 2, ax=Figure().subplots())
    >>> len(ax.patches) > 0
    True
    """
    check_result("cohort", cohort, CohortOrders, _MAKER)
    chosen = _most_frequent(cohort, max_items) if items is None else [str(x) for x in items]
    paths = cohort.paths(length, chosen)
    if not paths:
        raise InputError(
            f"no sample has {length} of these items; choose "
            + either("a smaller length=", "other items with --items")
        )
    max_paths = positive_integer("max_paths", max_paths)
    total = sum(paths.values())
    shown = list(paths.items())[:max_paths]
    labels = dict(zip(cohort.items, short(cohort.items, 14), strict=True))
    ax = open_axes(ax, 7.0, 0.3 * len(shown) + 0.9)
    rows = np.arange(len(shown))
    counts = np.array([count for _, count in shown])
    ax.barh(rows, counts, height=0.6, color=LINE, alpha=0.85)
    texts = [" → ".join(labels[item] for item in path) for path, _ in shown]
    ax.set_yticks(rows, texts, fontsize=SMALL, **LITERAL)
    for row, count in zip(rows, counts, strict=True):
        ax.annotate(
            f"{count} ({100 * count / total:.0f}%)", (count, row), xytext=(3, 0),
            textcoords="offset points", va="center", fontsize=SMALL, color="0.3",
        )  # fmt: skip
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlim(0.0, float(counts.max()) * (1.0 + 0.02 * text_width("1000 (10%)", SMALL) / 10.0))
    ax.set_xlabel(f"samples, of {total} with at least {length} of the items", fontsize=TEXT)
    ax.tick_params(axis="x", labelsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax
