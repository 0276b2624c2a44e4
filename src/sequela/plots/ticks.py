"""Set ticks: one tick for each item of an image, or plain numbers at given values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sequela.plots.labels import LITERAL, text_width
from sequela.plots.style import TEXT, load, side

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes

__all__ = ["item_ticks", "plain_ticks"]


def item_ticks(axis: Any, labels: Sequence[str], inches: float) -> None:
    """Label the positions 0, 1, ... of an image.

    If there are many labels, they are smaller, and only every k-th label is drawn if necessary.
    `inches` is the length of the axis. The labels come from `labels.short`.
    """
    pitch = 72.0 * inches / max(len(labels), 1)
    size = min(TEXT, max(5.0, 0.85 * pitch))
    step = max(1, math.ceil(1.05 * size / pitch))
    shown = labels[::step]
    lying = axis.axis_name == "y" or max(text_width(x, size) for x in shown) < 0.9 * step * pitch
    axis.set_ticks(
        range(0, len(labels), step), shown, fontsize=size, rotation=0.0 if lying else 90.0,
        **LITERAL,
    )  # fmt: skip
    axis.set_tick_params(length=2.0 if step > 1 else 0.0, pad=2.0)


def plain_ticks(axis: Any, values: Iterable[float], ax: Axes) -> None:
    """Put ticks at the given values, as plain numbers. Leave out ticks that would overlap."""
    ticker = load("matplotlib.ticker")
    horizontal = axis.axis_name == "x"
    length = side(ax)[0 if horizontal else 1] * 72.0
    listed = sorted(float(value) for value in values)
    places = [float(x) for x in axis.get_transform().transform(listed)]
    span = places[-1] - places[0]
    kept: list[float] = []
    last = -math.inf
    for value, place in zip(listed, places, strict=True):
        at = length * (place - places[0]) / span if span > 0.0 else 0.0
        if at - last >= (7.0 * len(f"{value:g}") + 4.0 if horizontal else 14.0):
            kept.append(value)
            last = at
    axis.set_major_locator(ticker.FixedLocator(kept))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(ticker.NullLocator())
