"""Minimise a smooth function of well-scaled parameters within bounds, by projected L-BFGS.

SciPy has such a minimiser, but importing SciPy takes several times as long as a fit of 20 items.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Loss = Callable[[Vector], tuple[float, Vector]]
    Pair = tuple[Vector, Vector]
    Point = tuple[Vector, float, Vector]  # point, value, gradient

__all__ = ["Descent", "minimise"]

_PAIRS = 10  # number of recent steps that L-BFGS remembers, with their changes of the gradient
_ARMIJO = 1e-4
_SHORTEST = 1e-10
_LEAST_CURVATURE = 1e-10


class Descent(NamedTuple):
    """The result of a minimisation.

    Attributes
    ----------
    x : array
        The last point.
    value : float
        The value of the function at `x`.
    residual : float
        The largest absolute entry of the projected gradient at `x`.
    iterations : int
        Number of steps.
    """

    x: Vector
    value: float
    residual: float
    iterations: int


def minimise(
    loss: Loss, start: Vector, low: Vector, high: Vector, *, tol: float = 1e-7, max_iter: int = 500
) -> Descent:
    """Minimise a function within bounds.

    Parameters
    ----------
    loss : callable
        Returns the value and the gradient. The second derivatives should be of order 1.
    start : array
        The first point, within the bounds.
    low, high : array
        The bounds.
    tol : float
        Stop when no entry of the projected gradient is larger than this.
    max_iter : int
        Largest number of steps.

    Examples
    --------
    >>> bowl = lambda x: (float(((x - 2.0) ** 2).sum()), 2.0 * (x - 2.0))
    >>> minimise(bowl, np.zeros(2), np.zeros(2), np.array([5.0, 1.0])).x.tolist()
    [2.0, 1.0]
    """
    x = np.clip(start, low, high)
    value, gradient = loss(x)
    pairs: deque[Pair] = deque(maxlen=_PAIRS)
    steps = 0
    for _ in range(max_iter):
        slope = _projected(x, gradient, low, high)
        if np.abs(slope).max(initial=0.0) <= tol:
            break
        direction = np.where(slope != 0.0, -_times_inverse(slope, pairs), 0.0)
        if (
            direction @ slope >= 0.0
        ):  # the remembered steps are useless, because other entries are at a bound now
            pairs.clear()
            direction = -slope
        found = _search(loss, (x, value, gradient), direction, (low, high))
        if found is None:
            if not pairs:
                break  # because of rounding errors, no lower value can be found
            pairs.clear()
            continue
        step, change = found[0] - x, found[2] - gradient
        if step @ change > _LEAST_CURVATURE * (change @ change):
            pairs.append((step, change))
        x, value, gradient = found
        steps += 1
    residual = float(np.abs(_projected(x, gradient, low, high)).max(initial=0.0))
    return Descent(x, value, residual, steps)


def _projected(x: Vector, gradient: Vector, low: Vector, high: Vector) -> Vector:
    """Return the gradient, with 0 for entries at a bound that a descent step would cross."""
    held = ((x <= low) & (gradient > 0.0)) | ((x >= high) & (gradient < 0.0))
    return np.where(held, 0.0, gradient)


def _times_inverse(slope: Vector, pairs: deque[Pair]) -> Vector:
    """Return the inverse of the estimated Hessian, multiplied by `slope` (two-loop recursion)."""
    q = slope.copy()
    steps = []
    for s, y in reversed(pairs):
        scale = float(s @ q) / float(s @ y)
        q -= scale * y
        steps.append(scale)
    if pairs:
        s, y = pairs[-1]
        q *= float(s @ y) / float(y @ y)
    for (s, y), scale in zip(pairs, reversed(steps), strict=True):
        q += (scale - float(y @ q) / float(s @ y)) * s
    return q


def _search(
    loss: Loss, here: Point, direction: Vector, bounds: tuple[Vector, Vector]
) -> Point | None:
    """Return the first point along the projected line that decreases the loss enough, or None."""
    x, value, gradient = here
    length = 1.0
    while length > _SHORTEST:
        new = np.clip(x + length * direction, *bounds)
        new_value, new_gradient = loss(new)
        if new_value <= value + _ARMIJO * float(gradient @ (new - x)):
            return new, new_value, new_gradient
        length *= 0.5
    return None
