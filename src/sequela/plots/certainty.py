"""The opacity of cells: the less certain a sign or an order is, the fainter the cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.plots.style import load

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CERTAIN", "FAINTEST", "opacity", "opaque"]

FAINTEST = 0.12
# A cell has its full colour if the probability of its sign or its order is at least this number.
CERTAIN = 0.95


def opacity(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the opacity of cells.

    `probability` is the probability that an effect is positive, or that the first of two items
    comes first. The probability of the other sign or the other order gives the same opacity.

    Examples
    --------
    >>> opacity(np.array([0.5, 0.725, 0.275, 0.95, 0.0])).round(2).tolist()
    [0.12, 0.5, 0.5, 1.0, 1.0]
    """
    away = np.abs(np.nan_to_num(probability, nan=0.5) - 0.5) / (CERTAIN - 0.5)
    clipped: NDArray[np.float64] = np.clip(away, FAINTEST, 1.0)
    return clipped


def opaque(image: Any) -> Any:
    """Return the colours of an image for a colour bar, without transparency."""
    return load("matplotlib.cm").ScalarMappable(image.norm, image.cmap)
