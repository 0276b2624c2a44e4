"""Plot the strongest interactions as arrows between items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sequela.model import as_model
from sequela.plots.labels import LITERAL, legend, short, text_width
from sequela.plots.style import INHIBITS, PROMOTES, SMALL, load, open_axes
from sequela.support.errors import InputError
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from sequela.model import Model, ModelLike

__all__ = ["plot_interactions"]

_LONGEST = 14
# Areas of nodes, in square points.
_SMALLEST, _LARGEST = 25.0, 420.0
_APART = 1.1  # inches between two linked items
# Curvatures of an arrow. They are tried one after the other, until the arrow is at least _CLEARANCE
# (in units of _APART) away from all other items.
_BENDS = (0.06, -0.06, 0.2, -0.2, 0.35, -0.35)
_APART_BENDS = (0.18, 0.3, 0.42)
_CLEARANCE = 0.2
_DASHES = (0, (2.5, 1.2))
_HEAD, _BAR = "-|>,head_length=4,head_width=2", "-[,widthB=3,lengthB=0"


def plot_interactions(
    model: ModelLike,
    max_pairs: int = 30,
    *,
    frequencies: pd.Series[float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the strongest interactions as arrows between items.

    An arrow means that an item promotes another (orange, solid, with a head) or inhibits it (blue,
    dashed, with a bar). The width of an arrow shows the strength of the effect. The same model
    always gives the same picture.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    max_pairs : int
        Draw at most this many interactions.
    frequencies : Series or None
        The frequency of each item, such as ``item_frequencies(model)["model"]``. The area of a node
        then shows the frequency of its item. None: the area shows the base rate.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sequela.data.examples import example_theta
    >>> ax = plot_interactions(example_theta(), ax=Figure().subplots())
    >>> len(ax.patches)
    5
    """
    model = as_model(model, instead="plot_theta(posterior)")
    max_pairs = positive_integer("max_pairs", max_pairs)
    weights, meaning = _weights(model, frequencies)
    edges = model.interactions()
    total = len(edges)
    edges = edges.head(max_pairs)
    place = {label: k for k, label in enumerate(model.items)}
    pairs = [(place[a], place[b]) for a, b in zip(edges["from"], edges["to"], strict=True)]
    nodes = sorted({k for pair in pairs for k in pair})
    at = _layout(nodes, pairs)
    span = np.ptp(np.array(list(at.values())), axis=0) if at else np.zeros(2)
    # The legend needs a width of about 4.5 inches.
    width, height = np.clip(_APART * span + [1.8, 1.5], [4.6, 1.5], 14.0)
    ax = open_axes(ax, width, height)
    ax.set_axis_off()
    if not nodes:
        ax.text(0.5, 0.5, "no interactions", ha="center", va="center", transform=ax.transAxes)
        return ax
    areas = _areas(weights[nodes])
    spots = np.array([at[k] for k in nodes])
    ax.scatter(
        spots[:, 0], spots[:, 1], s=areas, color="0.82", edgecolor="0.35", linewidth=0.6, zorder=2
    )
    ax.set_aspect("equal")
    ax.set_xlim(spots[:, 0].min() - 0.7, spots[:, 0].max() + 0.7)
    ax.set_ylim(spots[:, 1].min() - 0.45, spots[:, 1].max() + 0.45)
    effects = edges["effect"].to_numpy()
    courses = _draw_arrows(ax, pairs, effects, at, dict(zip(nodes, areas, strict=True)))
    labels = short((model.items[k] for k in nodes), _LONGEST)
    _name_nodes(ax, spots, areas, labels, courses)
    shown = f"all {total}" if total <= max_pairs else f"the strongest {len(edges)} of {total}"
    _explain(ax, effects, f"{shown} interactions; area of a node: {meaning}")
    return ax


def _weights(model: Model, frequencies: object) -> tuple[NDArray[np.float64], str]:
    if frequencies is None:
        return np.exp(model.theta.diagonal()), "base rate"
    if not isinstance(frequencies, pd.Series):
        raise InputError(
            f"frequencies is of type {type(frequencies).__name__}; expected a pandas Series "
            'indexed by item, such as item_frequencies(model)["model"]'
        )
    in_order = frequencies.rename(index=str).reindex(list(model.items))
    values = pd.to_numeric(in_order, errors="coerce").to_numpy(dtype=float)
    bad = ~(values >= 0.0)
    if bad.any():
        label = model.items[int(np.argmax(bad))]
        raise InputError(
            f"frequencies has no valid value for the item {label!r}; expected a number of at least "
            "0 for each item of the model"
        )
    return values, "frequency"


def _areas(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    # Rates differ by orders of magnitude. A minimal area keeps nodes with small rates visible.
    largest = float(weights.max())
    share = weights / largest if largest > 0.0 else np.ones_like(weights)
    return np.maximum(_LARGEST * share, _SMALLEST)


def _layout(
    nodes: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> dict[int, NDArray[np.float64]]:
    """Return the coordinates of each node; linked nodes have a distance of about 1."""
    nx = load("networkx")
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(pairs)
    blocks = []
    for part in sorted(nx.connected_components(graph), key=lambda part: (-len(part), min(part))):
        # Sort the items, because the elements of a Python set have no fixed order.
        members = sorted(part)
        ordered = nx.Graph()
        ordered.add_nodes_from(members)
        ordered.add_edges_from(sorted(tuple(sorted(e)) for e in graph.subgraph(part).edges))
        layout = nx.kamada_kawai_layout(ordered)
        spots = np.array([layout[k] for k in members])
        ends = np.array([[members.index(a), members.index(b)] for a, b in ordered.edges])
        lengths = np.linalg.norm(spots[ends[:, 0]] - spots[ends[:, 1]], axis=1)
        spots = spots / np.median(lengths)
        # Turn the layout so that it is wider than high, because labels are wide.
        axes = np.linalg.svd(spots - spots.mean(axis=0), full_matrices=False)[2]
        axes *= np.where(axes.sum(axis=1, keepdims=True) < 0.0, -1.0, 1.0)
        spots = (spots - spots.mean(axis=0)) @ axes.T
        # Mirror the layout so that most arrows point to the right.
        ways = [spots[members.index(b)] - spots[members.index(a)] for a, b in pairs if a in part]
        if np.sum(ways, axis=0)[0] < 0.0:
            spots[:, 0] *= -1.0
        blocks.append((members, spots - spots.min(axis=0)))
    return _packed(blocks)


def _packed(
    blocks: Sequence[tuple[list[int], NDArray[np.float64]]], gap: tuple[float, float] = (1.1, 0.75)
) -> dict[int, NDArray[np.float64]]:
    """Return the coordinates of all nodes, with the blocks of linked nodes placed in rows."""
    sizes = [np.ptp(spots, axis=0) + np.array(gap) for _, spots in blocks]
    width = max(1.3 * np.sqrt(sum(w * h for w, h in sizes)), *(w for w, _ in sizes), 0.0)
    at: dict[int, NDArray[np.float64]] = {}
    left = top = depth = 0.0
    for (members, spots), (w, h) in zip(blocks, sizes, strict=True):
        if left > 0.0 and left + w > width + 1e-9:
            left, top, depth = 0.0, top - depth, 0.0
        corner = np.array([left, top - h])
        at.update({k: corner + spot for k, spot in zip(members, spots, strict=True)})
        left, depth = left + w, max(depth, h)
    return at


def _draw_arrows(
    ax: Axes,
    pairs: Sequence[tuple[int, int]],
    effects: NDArray[np.float64],
    at: dict[int, NDArray[np.float64]],
    areas: dict[int, float],
) -> list[NDArray[np.float64]]:
    """Draw the arrows, and return points along each arrow."""
    patches = load("matplotlib.patches")
    widths = 0.7 + 2.3 * np.abs(effects) / np.abs(effects).max()
    courses = []
    for (a, b), effect, width in zip(pairs, effects, widths, strict=True):
        promotes = effect > 0.0
        others = np.array([spot for k, spot in at.items() if k not in (a, b)]).reshape(-1, 2)
        # If two items act on each other, the two arrows curve in opposite directions.
        bends = _APART_BENDS if (b, a) in pairs else _BENDS
        bend = next((x for x in bends if _clear(at[a], at[b], x, others)), bends[0])
        courses.append(_course(at[a], at[b], bend))
        arrow = patches.FancyArrowPatch(
            tuple(at[a]), tuple(at[b]), connectionstyle=f"arc3,rad={bend}",
            arrowstyle=_HEAD if promotes else _BAR, mutation_scale=1.0 + 0.4 * width,
            linewidth=width, color=PROMOTES if promotes else INHIBITS,
            linestyle="-" if promotes else _DASHES, shrinkA=np.sqrt(areas[a]) / 2 + 1,
            shrinkB=np.sqrt(areas[b]) / 2 + 2, zorder=1.5,
        )  # fmt: skip
        ax.add_patch(arrow)
    return courses


def _course(
    start: NDArray[np.float64], end: NDArray[np.float64], bend: float
) -> NDArray[np.float64]:
    """Return points along the arc that matplotlib's arc3 draws."""
    way = end - start
    middle = (start + end) / 2 + bend * np.array([way[1], -way[0]])
    t = np.linspace(0.0, 1.0, 25)[:, None]
    return (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end


def _clear(
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    bend: float,
    others: NDArray[np.float64],
) -> bool:
    """Return whether an arrow is at least _CLEARANCE away from all other items."""
    far = np.linalg.norm(_course(start, end, bend)[:, None] - others[None], axis=2)
    return not bool((far < _CLEARANCE).any())


def _name_nodes(
    ax: Axes,
    spots: NDArray[np.float64],
    areas: NDArray[np.float64],
    labels: Sequence[str],
    courses: Sequence[NDArray[np.float64]],
) -> None:
    """Write each label below, above or beside its node, where it covers the fewest points."""
    busy = np.concatenate([*courses, spots])
    taken: list[NDArray[np.float64]] = []
    for spot, area, label in zip(spots, areas, labels, strict=True):
        radius = np.sqrt(area) / 2 + 2.0
        half = np.array([text_width(label, SMALL) / 2, 0.6 * SMALL])
        best, cost = (0.0, -1.0), np.inf
        for way in ((0.0, -1.0), (0.0, 1.0), (1.0, 0.0), (-1.0, 0.0)):
            # Convert from points to the units of the layout.
            centre = spot + np.array(way) * (radius + half) / (72.0 * _APART)
            low, high = centre - half / (72.0 * _APART), centre + half / (72.0 * _APART)
            covered = int(((busy > low) & (busy < high)).all(axis=1).sum())
            clashes = sum(bool((low < x[2:]).all() and (high > x[:2]).all()) for x in taken)
            if covered + 20 * clashes < cost:
                best, cost = way, covered + 20 * clashes
                box = np.concatenate([low, high])
        taken.append(box)
        ax.annotate(
            label, tuple(spot), xytext=(best[0] * radius, best[1] * radius),
            textcoords="offset points", fontsize=SMALL, zorder=4, **LITERAL,
            ha={0.0: "center", 1.0: "left", -1.0: "right"}[best[0]],
            va={0.0: "center", 1.0: "bottom", -1.0: "top"}[best[1]],
            bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.7},
        )  # fmt: skip


def _explain(ax: Axes, effects: NDArray[np.float64], note: str) -> None:
    lines = load("matplotlib.lines")
    handles, names = [], []
    for present, name, colour, style in (
        ((effects > 0.0).any(), "promotes", PROMOTES, "-"),
        ((effects < 0.0).any(), "inhibits", INHIBITS, _DASHES),
    ):
        if present:
            part = np.abs(effects[effects > 0.0] if name == "promotes" else effects[effects < 0.0])
            factors = np.sort(np.exp(part if name == "promotes" else -part))
            low, high = f"{factors[0]:.3g}", f"{factors[-1]:.3g}"
            names.append(f"{name} (x {low if low == high else f'{low} to {high}'})")
            handles.append(lines.Line2D([], [], color=colour, linestyle=style, linewidth=2.0))
    legend(
        ax, handles, names, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False,
        fontsize=SMALL, handlelength=3.0,
    )  # fmt: skip
    ax.text(
        0.5, 0.0, note, transform=ax.transAxes, ha="center", va="top", fontsize=SMALL, color="0.3"
    )
