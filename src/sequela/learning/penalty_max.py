"""The smallest penalty for which all interactions vanish, exactly and for sets of any size.

At the model without interactions the gradient is known in closed form: given the observation time
t, arrival times are independent exponentials cut off at t, so the probability that i came before
j and the mean time between them are elementary, and one integral over t remains. Small sets go
through the lattice, which is faster; both give the same numbers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.data.dataset import Dataset
from sequela.learning.independent_fit import grid_posterior
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.problem import Problem
from sequela.learning.solvers.proximal_newton import begin, proximal_newton
from sequela.learning.starts import independent_theta, units
from sequela.likelihood import Budget, Sampling
from sequela.likelihood.budget import check_budget
from sequela.likelihood.independent import log_p_independent
from sequela.support.validation import check_observation_rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["best_without_interactions", "independent_gradient", "penalty_max"]

_PROHIBITIVE = 1e9


def independent_gradient(
    items: NDArray[np.int64], rates: NDArray[np.float64], observation_rate: float = 1.0
) -> NDArray[np.float64]:
    """Return the n x n gradient of log p(S) at the diagonal theta with these rates.

    Examples
    --------
    >>> independent_gradient(np.array([0]), np.array([1.0, 1.0])).round(4).tolist()
    [[0.6667, -0.5], [0.0, -0.8333]]
    """
    n = rates.size
    present = np.zeros(n)
    present[items] = 1.0
    t, weight = grid_posterior(present, rates, observation_rate)
    inside = rates[items]
    gradient = np.zeros((n, n))
    # Rows: grid of times, columns: items of S. fell = 1 - exp(-w t).
    wt = np.multiply.outer(t, inside)
    fell = -np.expm1(-wt)
    arrival = 1.0 / inside - t[:, None] * np.exp(-wt) / fell
    lasting = weight @ (t[:, None] - arrival)
    gradient[items] = -np.multiply.outer(lasting, rates)
    for place, i in enumerate(items):
        a = inside[place]
        b = inside
        both = -np.expm1(-np.multiply.outer(t, a + b))
        late = np.exp(-wt)
        scale = fell[:, place : place + 1] * fell
        first = (a / (a + b) * both - late * fell[:, place : place + 1]) / scale
        between = (
            fell / b - t[:, None] * late - both / (a + b) + late * fell[:, place : place + 1] / a
        ) / scale
        gradient[i, items] = weight @ (first - b * between)
    diagonal = -rates * (weight @ t)
    diagonal[items] = weight @ (1.0 - inside * arrival)
    gradient[np.arange(n), np.arange(n)] = diagonal
    return gradient


def penalty_max(
    X: Any,
    *,
    observation_rate: float = 1.0,
    budget: Budget | None = None,
    n_threads: int | None = None,
) -> float:
    """Return the smallest penalty at which the best model has no interactions.

    `X` is a Dataset, DataFrame, array or list of sets; the times of a Dataset are used. The result
    is the largest absolute gradient, in the direction of an interaction, at the model without
    interactions of largest likelihood. `budget` only matters for sets at known times.

    Examples
    --------
    >>> from sequela import Dataset
    >>> round(penalty_max(Dataset([[0, 0], [1, 0], [1, 1], [1, 1]])), 3)
    0.035
    """
    problem = Problem(
        Dataset.coerce(X), budget=Budget() if budget is None else check_budget(budget),
        sampling=Sampling(), observation_rate=check_observation_rate(observation_rate), seed=0,
        n_threads=n_threads,
    )  # fmt: skip
    theta = best_without_interactions(problem)
    _, gradient = _without_interactions(problem, theta)
    np.fill_diagonal(gradient, 0.0)
    return float(np.abs(gradient).max())


def best_without_interactions(problem: Problem) -> NDArray[np.float64]:
    """Return the diagonal theta of largest likelihood, with the times that are known."""
    theta = independent_theta(problem)
    if problem.data.times is None:
        return theta
    # Only unknown times have a closed form. Nothing but base rates moves at this penalty.
    none = OffDiagonalL1(_PROHIBITIVE)
    evaluate = partial(_without_interactions, problem)
    return proximal_newton(
        evaluate, begin(evaluate, theta, none), none, units(problem), tol=1e-8, max_iter=200
    ).theta


def _without_interactions(
    problem: Problem, theta: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return loss and gradient at a diagonal theta: nothing is sampled."""
    loss, gradient = problem.exact(theta)
    rates = np.exp(np.diagonal(theta))
    for large in problem.large:
        others = float(np.delete(rates, large.items).sum())
        rate = problem.observation_rate
        loss -= large.weight * log_p_independent(rates[large.items], others, rate)
        gradient -= large.weight * independent_gradient(large.items, rates, rate)
    return loss, gradient
