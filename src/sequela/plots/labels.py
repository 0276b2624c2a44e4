"""Write the labels of users into figures: unchanged or shortened, and without overlaps.

Labels are never interpreted as mathematics or TeX. Characters that a picture cannot show (line
breaks, control characters, characters that change the direction of text) are replaced.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

__all__ = ["LITERAL", "clean", "legend", "place_beside", "short", "shorten", "text_width"]

# Properties of every text that contains a label.
LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}

_LONGEST = 18
_TURNS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}
# Characters that join two characters, or select how the previous character is drawn.
_GLUE = "\u200d\ufe0e\ufe0f"
# Possible positions of a label: distances from its point, in points, and directions.
_RADII = (4.0, 9.0, 16.0, 26.0, 38.0, 52.0, 70.0, 90.0, 115.0, 140.0)
_ANGLES = np.deg2rad([0, 45, 315, 135, 225, 90, 270, 180, 22, 338, 158, 202, 68, 292, 112, 248])
_WORST = 14.0  # if the cost of every position is larger, the label is left out


def clean(label: object) -> str:
    """Return a label as one line of text without characters that a file format cannot store."""

    def sign(x: str) -> str:
        if x in "\n\r\t\v\f\x85\u2028\u2029":
            return " "
        unfit = unicodedata.category(x) in ("Cc", "Cs") or ord(x) & 0xFFFE == 0xFFFE
        return "\ufffd" if unfit or ord(x) in _TURNS else x

    return "".join(map(sign, str(label)))


def _columns(x: str) -> int:
    if unicodedata.combining(x) or x in _GLUE:
        return 0
    return 2 if unicodedata.east_asian_width(x) in "WF" else 1


def shorten(label: object, max_columns: int = _LONGEST) -> str:
    """Return a label of at most `max_columns` columns; an ellipsis replaces the middle.

    A character takes one column, or two columns if it is wide (as in Chinese).
    """
    text = clean(label)
    if sum(map(_columns, text)) <= max_columns:
        return text
    room = max_columns - 1
    last = room * 2 // 5
    head, tail = _front(text, room - last), _front(text[::-1], last)[::-1]
    # A visible character can consist of several code points. Do not separate them.
    while tail and (unicodedata.combining(tail[0]) or tail[0] in _GLUE):
        tail = tail[1:]
    return f"{head.rstrip(_GLUE)}…{tail}"


def _front(text: str, columns: int) -> str:
    used = 0
    for place, x in enumerate(text):
        used += _columns(x)
        if used > columns:
            return text[:place]
    return text


def short(labels: Iterable[object], max_columns: int = _LONGEST) -> list[str]:
    """Return shortened labels. If several labels become equal, add numbers to distinguish them."""
    texts = [shorten(label, max_columns) for label in labels]
    times = Counter(texts)
    seen: Counter[str] = Counter()
    for place, text in enumerate(texts):
        if times[text] > 1:
            seen[text] += 1
            texts[place] = f"{text} #{seen[text]}"
    return texts


def text_width(text: str, size: float) -> float:
    """Return an upper estimate of the width of a text, in points.

    The estimate needs no renderer, and is the same for every font and machine.
    """
    ems = 0.0
    for x in text:
        if not _columns(x):
            continue
        if _columns(x) == 2 or x in "WM@%…→":
            ems += 1.05
        elif x.isupper() or x.isdigit():
            ems += 0.72
        else:
            ems += 0.42 if x in "ijl.,:;'|!()[] It" else 0.66
    return ems * size


def legend(ax: Axes, handles: Sequence[Any], labels: Sequence[str], **options: Any) -> Any:
    """Add a legend whose labels are shown literally."""
    # Set the texts afterwards, because matplotlib leaves out labels that begin with an underscore.
    made = ax.legend(handles, [str(k) for k in range(len(handles))], **options)
    for text, label in zip(made.get_texts(), labels, strict=True):
        text.update(LITERAL)
        text.set_text(label)
    return made


def place_beside(
    ax: Axes,
    points: ArrayLike,
    labels: Sequence[tuple[int, str]],
    *,
    size: float,
    color: str,
    max_labels: int,
) -> list[Any]:
    """Write labels beside points so that no label covers another; return the annotations.

    The first labels get the best positions. If there is no free space for a label, it is left out.

    Parameters
    ----------
    ax : Axes
        Axes whose limits and layout are final.
    points : array, (n, 2)
        All points in data coordinates. Labels do not cover them, if possible.
    labels : list of (int, str)
        For each label, its row in `points` and its text; the most important label first.
    size, color
        Size and colour of the text.
    max_labels : int
        Largest number of labels.
    """
    dpi = float(ax.figure.dpi)
    at: NDArray[np.float64] = ax.transData.transform(np.asarray(points, dtype=float)) * 72.0 / dpi
    frame = ax.get_window_extent()
    low, high = np.array([frame.p0, frame.p1]) * 72.0 / dpi
    taken: list[NDArray[np.float64]] = []  # left, bottom, right, top
    leaders: list[NDArray[np.float64]] = []
    made: list[Any] = []
    for place, text in labels:
        if len(made) == max_labels:
            break
        half = np.array([text_width(text, size) / 2 + 1.5, 0.65 * size + 1.0])
        best = _best(at[place], half, at, taken, leaders, low, high)
        if best is None:
            continue
        centre, leader, radius = best
        taken.append(np.concatenate([centre - half, centre + half]))
        leaders.append(leader)
        line = {"arrowstyle": "-", "color": "0.55", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
        written = ax.annotate(
            text, np.asarray(points)[place], xytext=tuple(centre - at[place]),
            textcoords="offset points", ha="center", va="center", fontsize=size, color=color,
            arrowprops=line if radius > _RADII[1] else None, zorder=5, **LITERAL,
        )  # fmt: skip
        made.append(written)
    return made


def _best(
    point: NDArray[np.float64],
    half: NDArray[np.float64],
    at: NDArray[np.float64],
    taken: list[NDArray[np.float64]],
    leaders: list[NDArray[np.float64]],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], float] | None:
    """Return (centre, leader line, distance) of the free position with the lowest cost, or None."""
    best, cost = None, _WORST
    for radius in _RADII:
        for turn, angle in enumerate(_ANGLES):
            way = np.array([np.cos(angle), np.sin(angle)])
            # The edge of the label that is nearest to the point has the distance `radius` from it.
            reach = radius + min(
                half[k] / abs(way[k]) if abs(way[k]) > 1e-9 else np.inf for k in (0, 1)
            )
            centre = point + way * reach
            lower, upper = centre - half, centre + half
            if (lower < low).any() or (upper > high).any():
                continue
            box = np.concatenate([lower, upper])
            leader = point + np.linspace(0.0, radius, 40)[:, None] * way
            if (
                any(_overlap(box, other) or _hits(leader, other) for other in taken)
                or any(_hits(other, box) for other in leaders)
                or any(_cross(leader, other) for other in leaders)
            ):
                continue
            covered = np.count_nonzero(((at > lower - 2) & (at < upper + 2)).all(axis=1))
            along, aside = (at - point) @ way, np.abs((at - point) @ [-way[1], way[0]])
            passed = int(((aside < 2.5) & (along > 3.0) & (along < radius)).sum())
            price = 2.0 * covered + 0.5 * min(passed, 6) + 0.08 * radius + 0.01 * turn
            if price < cost:
                best, cost = (centre, leader, radius), price
    return best


def _hits(line: NDArray[np.float64], box: NDArray[np.float64]) -> bool:
    return bool(((line > box[:2]) & (line < box[2:])).all(axis=1).any())


def _cross(a: NDArray[np.float64], b: NDArray[np.float64]) -> bool:
    """Return whether two straight lines cross. Each line is given by points along it."""
    (p, q), (r, s) = (a[0], a[-1]), (b[0], b[-1])

    def turn(x: NDArray[np.float64], y: NDArray[np.float64], z: NDArray[np.float64]) -> float:
        return float((y[0] - x[0]) * (z[1] - x[1]) - (y[1] - x[1]) * (z[0] - x[0]))

    return turn(p, q, r) * turn(p, q, s) < 0.0 and turn(r, s, p) * turn(r, s, q) < 0.0


def _overlap(a: NDArray[np.float64], b: NDArray[np.float64]) -> bool:
    return bool(a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3])
