"""Learn a mixture of two models with an L1 penalty: two subtypes whose samples are not labelled.

The objective is the mean log-likelihood of the mixture, minus the penalty times the sum of the
absolute interactions of both models. So an interaction has the same weight as in `SetChain`,
whichever model has it. The mixture has several optima, so the fit has several starts. A start is
the single model with random changes, which have opposite signs in the two models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sequela.learning.bounded_descent import minimise
from sequela.support.random import Purpose, stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.mixture import MixtureLikelihood

    Matrix = NDArray[np.float64]

__all__ = ["MixtureFit", "fit_mixture"]

_LARGEST_ENTRY = 15.0
# The logarithm of the odds of the shares is between -4 and 4, so a share is at least 0.018.
_LARGEST_LOG_ODDS = 4.0
# Standard deviations of the random changes of the base rates and of the interactions at a start.
_BASE_SPREAD, _EFFECT_SPREAD = 0.7, 0.5


@dataclass(frozen=True)
class MixtureFit:
    """A mixture of two models.

    Attributes
    ----------
    thetas : array (2, n, n)
        The parameters of the two models. The model with the larger share comes first.
    shares : array (2,)
        The share of the samples that belong to each model.
    membership : array (2, distinct samples)
        The probability that a sample belongs to each model.
    objective : float
        The mean log-likelihood minus the penalty.
    residual : float
        The largest entry of the projected gradient of the best start.
    """

    thetas: Matrix
    shares: Matrix
    membership: Matrix
    objective: float
    residual: float


def fit_mixture(
    likelihood: MixtureLikelihood,
    single: Matrix,
    penalty: float,
    *,
    starts: int,
    seed: int,
    tol: float = 1e-3,
    max_iter: int = 200,
) -> MixtureFit:
    """Learn a mixture of two models from several starts, and return the best.

    Parameters
    ----------
    likelihood : MixtureLikelihood
        The likelihood of the samples.
    single : array (n, n)
        Theta of a single model of the same samples.
    penalty : float
        Weight of the L1 penalty.
    starts : int
        Number of starts.
    seed : int
        Seed of the starts.
    tol, max_iter : float, int
        Accuracy of the optimality conditions, and the largest number of steps per start.

    Examples
    --------
    >>> from sequela import Exponential, example_samples, fit
    >>> from sequela.budget import Budget
    >>> from sequela.likelihood.mixture import MixtureLikelihood
    >>> data = example_samples().most_frequent(3)
    >>> likelihood = MixtureLikelihood(data, Exponential(), Budget())
    >>> found = fit_mixture(likelihood, fit(data, penalty=0.05).theta, 0.05, starts=1, seed=1)
    >>> found.thetas.shape, round(float(found.shares.sum()), 6)
    ((2, 3, 3), 1.0)
    """
    n = len(single)
    diagonal = np.broadcast_to(np.eye(n, dtype=bool), (2, n, n)).ravel()
    weights = np.where(diagonal, 0.0, penalty)
    largest = np.full(diagonal.size, _LARGEST_ENTRY)
    # Each parameter is the difference of two numbers that are not negative, as in `sparse_effects`.
    # The last number is the logarithm of the odds of the shares.
    low = np.concatenate(
        [np.where(diagonal, -largest, 0.0), np.zeros(diagonal.size), [-_LARGEST_LOG_ODDS]]
    )
    high = np.concatenate([largest, np.where(diagonal, 0.0, largest), [_LARGEST_LOG_ODDS]])

    def loss(point: Matrix) -> tuple[float, Matrix]:
        positive, negative = point[:-1].reshape(2, -1)
        shares = _shares(point[-1])
        found = likelihood.evaluate((positive - negative).reshape(2, n, n), shares)
        slope = -found.by_theta.ravel()
        first = float(likelihood.distinct.weights @ found.membership[0])
        by_odds = shares[0] - first
        cost = float((weights * (positive + negative)).sum())
        gradient = np.concatenate([weights + slope, weights - slope, [by_odds]])
        gradient[:-1][np.concatenate([np.zeros_like(diagonal), diagonal])] = 0.0
        return cost - found.value, gradient

    best = None
    for start in range(starts):
        descent = minimise(loss, _start(single, seed, start), low, high, tol=tol, max_iter=max_iter)
        if best is None or descent.value < best.value:
            best = descent
    assert best is not None  # noqa: S101 - there is at least one start
    positive, negative = best.x[:-1].reshape(2, -1)
    thetas, shares = (positive - negative).reshape(2, n, n), _shares(best.x[-1])
    ranked = np.argsort(-shares, kind="stable")
    membership = likelihood.evaluate(thetas, shares).membership
    return MixtureFit(
        thetas[ranked], shares[ranked], membership[ranked], -best.value, best.residual
    )


def _shares(log_odds: float) -> Matrix:
    first = 1.0 / (1.0 + np.exp(-log_odds))
    return np.array([first, 1.0 - first])


def _start(single: Matrix, seed: int, start: int) -> Matrix:
    """Return the first point of a start: random changes with opposite signs in the two models."""
    n = len(single)
    spread = np.where(np.eye(n, dtype=bool), _BASE_SPREAD, _EFFECT_SPREAD)
    change = spread * stream(seed, Purpose.SUBTYPES, 0, start).normal(size=(n, n))
    point = np.stack([single + change, single - change]).ravel()
    diagonal = np.broadcast_to(np.eye(n, dtype=bool), (2, n, n)).ravel()
    positive = np.where(diagonal, point, np.maximum(point, 0.0))
    negative = np.where(diagonal, 0.0, np.maximum(-point, 0.0))
    return np.concatenate([positive, negative, [0.0]])
