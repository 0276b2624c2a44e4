"""Compute the likelihood of a set of any size without interactions, by one integral over time.

For a diagonal theta, the items do not interact. Given the time t, they are independent. With the
base rates w and the rate 1 of the observation, ``p(S) = integral of exp(-t) prod_{i in S} (1 -
exp(-w_i t)) prod_{j not in S} exp(-w_j t)``. As a function of x = log t, the integrand has one
maximum, and its logarithm is analytic and concave. The trapezoidal rule is used between the points
at which the integrand is exp(-40) times its maximum. Its error is not larger than rounding errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.limits import LARGEST_LOG_RATE

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["draw_independent_order", "log_p_independent", "log_p_independent_at"]

_FALL = 40.0
_POINTS = 400


def _log_present(rate: NDArray[np.float64], t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum over items of log(1 - exp(-rate t)), for each t."""
    total: NDArray[np.float64] = np.log(-np.expm1(-np.multiply.outer(t, rate))).sum(axis=-1)
    return total


def _hump(
    rate: NDArray[np.float64], absent: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points x = log t and the logarithm of the integrand over x at these points.

    `rate` contains the rates of the items of the set. `absent` is the sum of the rates of the
    absent items and of the observation.
    """
    from scipy.optimize import brentq  # imported here, because importing it takes long

    def log_integrand(x: NDArray[np.float64]) -> NDArray[np.float64]:
        t = np.exp(x)
        return x - absent * t + _log_present(rate, t)

    def slope(x: float) -> float:
        wt = np.minimum(rate * np.exp(x), LARGEST_LOG_RATE)
        return float(1.0 + np.sum(wt / np.expm1(wt)) - absent * np.exp(x))

    least = -np.log(absent)
    top = brentq(slope, least - 1e-9, least + np.log(rate.size + 1.0) + 1e-9)
    peak = log_integrand(np.array([top]))[0]
    ends = []
    for direction in (-1.0, 1.0):
        step = 0.05
        while log_integrand(np.array([top + direction * step]))[0] > peak - _FALL:
            step *= 1.3
        ends.append(top + direction * step)
    x = np.linspace(ends[0], ends[1], _POINTS)
    return x, log_integrand(x)


def log_p_independent(rate: NDArray[np.float64], others: float, stop_rate: float = 1.0) -> float:
    """Return log p(S) for independent items.

    Parameters
    ----------
    rate : array
        Rates of the items in S.
    others : float
        Sum of the rates of all items not in S.
    stop_rate : float
        Rate of the observation.

    Examples
    --------
    >>> round(log_p_independent(np.array([1.0]), 0.0), 9)
    -0.693147181
    """
    x, logs = _hump(rate, others + stop_rate)
    peak = logs.max()
    return float(np.log(stop_rate) + peak + np.log(np.exp(logs - peak).sum() * (x[1] - x[0])))


def log_p_independent_at(rate: NDArray[np.float64], others: float, t: float) -> float:
    """Return log p(S | t) for independent items; see `log_p_independent`."""
    return float(_log_present(rate, np.array([t]))[0] - others * t)


def draw_independent_order(
    rate: NDArray[np.float64],
    absent: float,
    t: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw one order of arrival of the items of S in a model without interactions.

    `rate` contains the rates of the items of S. `absent` is the sum of the rates of the absent
    items and of the observation. If the time is unknown (t is NaN), it is drawn first, from its
    posterior. The chains of the sampled likelihood start from such an order.
    """
    if np.isnan(t):
        x, logs = _hump(rate, absent)
        weight = np.cumsum(np.exp(logs - logs.max()))
        t = float(np.exp(np.interp(rng.random() * weight[-1], weight, x)))
    seen = -np.expm1(-rate * t)
    with np.errstate(divide="ignore"):
        # If rates are close to the largest double, several arrival times may be 0. These items then
        # keep the order of `rate`, because the sort is stable.
        arrivals = -np.log1p(-rng.random(rate.size) * seen) / rate
    order: NDArray[np.int64] = np.argsort(arrivals, kind="stable").astype(np.int64)
    return order
