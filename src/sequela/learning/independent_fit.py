"""The best model without interactions, for sets of any size.

Given the observation time t, the items of such a model are independent. The likelihood and its
gradient are therefore integrals over t of products. They are computed by the trapezoidal rule in u,
where t = exp(u - exp(-u)), with the same grid for all samples. The integrands are analytic in u and
decrease doubly exponentially at both ends, so the rule converges geometrically. The step of the
grid is small enough for the largest set: in log t, the posterior of its time has a width of about 1
/ sqrt(size).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sequela.learning.bounded_descent import minimise
from sequela.observation import as_observation
from sequela.support.linear_algebra import blas_on_one_thread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.observation import Observation

__all__ = ["IndependentFit", "fit_independent", "grid_posterior"]

# The step of the rule is at most _WIDEST_STEP, and at most _STEP_OF_WIDTH times the width of the
# posterior. The error is about exp(-2 pi^2 (width / step)^2), which is e^-79 if the step is half
# the width.
_WIDEST_STEP = 0.05
_STEP_OF_WIDTH = 0.5
# If the tolerance of a fit is at least _ROUGH_TOL, the widest step is _ROUGH_STEP. Even if rates
# are very different, the error of the rule is then at most 1e-4.
_ROUGH_TOL = 1e-5
_ROUGH_STEP = 0.2
_FIRST_U, _LAST_U = -3.8, 4.7

# The best rate of an item is infinite if the item is always present, and 0 if it is never present.
# Therefore the logarithms of rates are kept within these bounds.
LARGEST_LOG_RATE = 8.0
SMALLEST_LOG_RATE = -16.0


@dataclass(frozen=True)
class IndependentFit:
    """The model without interactions that has the largest likelihood.

    Attributes
    ----------
    log_rates : array (n,)
        The diagonal of theta.
    value : float
        Mean log-likelihood.
    """

    log_rates: NDArray[np.float64]
    value: float


class _Grid(NamedTuple):
    t: NDArray[np.float64]
    log_weight: NDArray[np.float64]


@lru_cache(maxsize=8)
def _grid(largest: int, widest: float = _WIDEST_STEP) -> _Grid:
    """Return times and log-weights for sets of at most `largest` items."""
    step = min(widest, _STEP_OF_WIDTH / np.sqrt(max(largest, 1)))
    u = np.arange(_FIRST_U, _LAST_U, step)
    t = np.exp(u - np.exp(-u))
    return _Grid(t, np.log(t * (1.0 + np.exp(-u)) * step))


def _log_joint(
    sets: NDArray[np.float64], wt: NDArray[np.float64], total: float, grid: _Grid
) -> NDArray[np.float64]:
    """Return log(p(S, t) dt), with one row per sample and one column per grid point.

    `wt` contains the rate of each item (rows) times the time of each grid point (columns). `total`
    is the sum of the rates. The rates are in units of the rate of the observation, as in the grid.
    """
    log_present = np.log(-np.expm1(-wt))
    # Absent items contribute -w t, present items log(1 - exp(-w t)).
    joint: NDArray[np.float64] = sets @ (log_present + wt)
    joint += grid.log_weight - grid.t * (1.0 + total)
    return joint


def _posterior(joint: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log p(S) and the posterior weights of the grid points."""
    top = joint.max(axis=1, keepdims=True)
    weights = np.exp(joint - top)
    total = weights.sum(axis=1, keepdims=True)
    return (top + np.log(total))[:, 0], weights / total


def grid_posterior(
    present: NDArray[np.float64], rates: NDArray[np.float64], stop_rate: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return times and their posterior weights given one set, for a model without interactions.

    `present` has one number per item: 1 if the item is present, else 0.
    """
    grid = _grid(int(present.sum()))
    relative = rates / stop_rate
    wt = np.multiply.outer(relative, grid.t)
    weights = _posterior(_log_joint(present[None, :], wt, float(relative.sum()), grid))[1][0]
    kept = weights > 1e-18
    return grid.t[kept] / stop_rate, weights[kept]


@blas_on_one_thread()
def fit_independent(
    sets: NDArray[np.float64],
    weights: NDArray[np.float64],
    observation: Observation | None = None,
    *,
    missing: NDArray[np.float64] | None = None,
    tol: float = 1e-7,
) -> IndependentFit:
    """Fit the model without interactions to distinct sets, weighted by their shares of the samples.

    Parameters
    ----------
    sets : array (distinct sets, n)
        1 where an item is present, else 0.
    weights : array
        Share of the samples that have each set.
    observation : Observation or None
        The distribution of the observation time. None means exponential with rate 1.
    missing : array (distinct sets, n) or None
        1 where a cell is missing, else 0. At missing cells, `sets` must be 0.
    tol : float
        Stop when no derivative of the mean log-likelihood is larger than this. The parameters are
        scaled so that the curvature for each of them is about 1.

    Examples
    --------
    >>> fit = fit_independent(np.array([[0.0], [1.0]]), np.array([0.75, 0.25]))
    >>> np.exp(fit.log_rates).round(4).tolist()
    [0.3333]
    """
    known = 1.0 if missing is None else np.maximum(weights @ (1.0 - missing), 1e-12)
    share = np.clip((weights @ sets) / known, 1e-6, 1.0 - 1e-6)
    # For a single item, this start is the exact optimum, because the item is present with the
    # probability w / (1 + w).
    start = np.log(share / (1.0 - share))
    # The unit of each parameter is about 1 / sqrt(curvature). With parameters in these units,
    # L-BFGS needs few steps.
    unit = 1.0 / np.sqrt(share * (1.0 - share))

    widest = _ROUGH_STEP if tol >= _ROUGH_TOL else _WIDEST_STEP
    grid = _grid(int(sets.sum(axis=1).max(initial=0.0)), widest)
    weighted = (weights[:, None] * sets).T
    lacking = None if missing is None else (weights[:, None] * missing).T

    def loss(scaled: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        rates = np.exp(scaled * unit)
        wt = np.multiply.outer(rates, grid.t)
        joint = _log_joint(sets, wt, float(rates.sum()), grid)
        if missing is not None:
            # for missing cells, remove the factor of an absent item, exp(-w t)
            joint += missing @ wt
        log_p, posterior = _posterior(joint)
        # The derivative of the log-probability of an item with respect to log w is
        # w t / (exp(w t) - 1) if the item is present, -w t if it is absent, and 0 if it is missing.
        # Below, -w t is summed over all items. So w t is added for present and missing items.
        with np.errstate(over="ignore"):
            present = wt / np.expm1(wt)
        mean_time = posterior @ grid.t
        pooled = weighted @ posterior
        slope = ((present + wt) * pooled).sum(axis=1) - rates * (weights @ mean_time)
        if lacking is not None:
            slope += (wt * (lacking @ posterior)).sum(axis=1)
        return -float(weights @ log_p), -slope * unit

    found = minimise(
        loss,
        np.clip(start, SMALLEST_LOG_RATE, LARGEST_LOG_RATE) / unit,
        SMALLEST_LOG_RATE / unit,
        LARGEST_LOG_RATE / unit,
        tol=tol,
    )
    mean = as_observation(observation).mean_time
    # If the mean time depends on theta, it is NaN. The rates then assume a mean time of 1.
    log_rates = found.x * unit - (np.log(mean) if np.isfinite(mean) else 0.0)
    return IndependentFit(log_rates=log_rates, value=-found.value)
