"""Plot observed against expected numbers, on scales that make sampling noise equally wide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.plots.labels import legend, place_beside
from sequela.plots.style import FAINT, LINE, OUTLIER, SMALL, TEXT, load, settle
from sequela.support.errors import InputError
from sequela.support.validation import is_number, positive_integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["Agreement", "check_outliers", "draw_agreement"]

_MANY = 2000  # more points than this are drawn as one image, so that files stay small


@dataclass(frozen=True)
class Agreement:
    """Points to draw: observed against expected numbers or shares of samples.

    Attributes
    ----------
    expected, observed : arrays
        Coordinates of the points.
    z : array
        Differences between observed and expected, in standard deviations.
    names : sequence of str
        Names of the points, from `labels.short`.
    whole : float
        The value that stands for all samples: 1 for shares, otherwise the number of samples.
    spread : array or None
        Standard deviations of `observed`, for error bars; None: no error bars.
    n_samples : float or None
        Number of samples, for the band of sampling noise around the diagonal; None: no band.
    """

    expected: NDArray[np.float64]
    observed: NDArray[np.float64]
    z: NDArray[np.float64]
    names: Sequence[str]
    whole: float = 1.0
    spread: NDArray[np.float64] | None = None
    n_samples: float | None = None


def check_outliers(beyond: float, max_labels: int) -> tuple[float, int]:
    """Return `beyond` and `max_labels`, or raise an error if one of them is invalid."""
    if not (is_number(beyond) and 0.0 <= beyond < np.inf):
        raise InputError(f"beyond is {beyond!r}; expected a number that is not negative")
    return float(beyond), positive_integer("max_labels", max_labels, least=0)


def draw_agreement(ax: Axes, points: Agreement, *, beyond: float, max_labels: int) -> None:
    """Draw the points, the diagonal and a band of sampling noise; name the outliers."""
    expected, observed, spread = points.expected, points.observed, points.spread
    out = np.abs(points.z) > beyond
    top = 1.06 * float(max(expected.max(), observed.max(), 1e-12))
    scale = (lambda x: np.sqrt(np.maximum(x, 0.0)), np.square)
    ax.set_xscale("function", functions=scale)
    ax.set_yscale("function", functions=scale)
    ax.set_xlim(0.0, top)
    ax.set_ylim(0.0, top)
    line = np.linspace(0.0, 1.0, 200) ** 2 * top
    handles: list[Any] = [ax.plot(line, line, color=FAINT, linewidth=0.8, linestyle=":")[0]]
    texts = ["observed = expected"]
    if points.n_samples is not None:
        share = np.clip(line / points.whole, 0.0, 1.0)
        wide = 2.0 * points.whole * np.sqrt(share * (1.0 - share) / points.n_samples)
        handles.append(
            ax.fill_between(
                line,
                np.maximum(line - wide, 0.0),
                line + wide,
                color="0.9",
                linewidth=0,
                zorder=0.5,
            )
        )
        texts.append("two standard deviations of sampling noise")
    if spread is not None:
        ax.errorbar(
            expected, observed, yerr=[np.minimum(2 * spread, observed), 2 * spread],
            fmt="none", ecolor="0.65", elinewidth=0.7, zorder=1.5,
        )  # fmt: skip
    many = expected.size > _MANY
    for which, colour, marker, text in (
        (~out, LINE, "o", f"within {beyond:g} standard deviations: {np.count_nonzero(~out)}"),
        (out, OUTLIER, "D", f"beyond: {np.count_nonzero(out)}"),
    ):
        drawn = ax.scatter(
            expected[which], observed[which], s=6 if many else 16, color=colour, marker=marker,
            linewidth=0, alpha=0.5 if many else 0.9, zorder=2, rasterized=many,
        )  # fmt: skip
        handles.append(drawn)
        texts.append(text)
    ticks = _ticks(top)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(load("matplotlib.ticker").FixedLocator(ticks))
        axis.set_major_formatter(load("matplotlib.ticker").FuncFormatter(lambda x, _: f"{x:g}"))
        axis.set_minor_locator(load("matplotlib.ticker").NullLocator())
    ax.set_aspect("equal", adjustable="box")
    ax.tick_params(labelsize=SMALL)
    ax.xaxis.label.set_fontsize(TEXT)
    ax.yaxis.label.set_fontsize(TEXT)
    legend(
        ax, handles, texts, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False,
        fontsize=SMALL,
    )  # fmt: skip
    settle(ax)
    furthest = np.argsort(-np.abs(points.z), kind="stable")
    place_beside(
        ax, np.column_stack([expected, observed]),
        [(int(k), points.names[k]) for k in furthest if out[k]],
        size=SMALL, color="0.15", max_labels=max_labels,
    )  # fmt: skip


def _ticks(top: float) -> list[float]:
    """Return round numbers from 0 to `top` whose labels do not overlap on a square-root scale."""
    kept = [0.0]
    last = top
    steps = sorted(
        (step * 10.0**power for power in range(-9, 12) for step in (1, 2, 5)), reverse=True
    )
    round_ones = [x for x in steps if x <= top]
    # Also try multiples of the largest power of ten, such as 3 and 4 if `top` is 6, because one of
    # them may fit between the two largest round numbers.
    unit = 10.0 ** np.floor(np.log10(top))
    round_ones += [k * unit for k in range(1, 10) if k * unit <= top]
    last = np.inf
    for value in sorted(set(np.round(round_ones, 12)), reverse=True):
        if np.sqrt(last) - np.sqrt(value) >= 0.09 * np.sqrt(top) and value > 0.006 * top:
            kept.append(float(value))
            last = value
    return sorted(kept)
