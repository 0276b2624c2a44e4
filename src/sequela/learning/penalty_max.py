"""The smallest penalty for which all interactions vanish, exactly and for sets of any size.

At the model without interactions the gradient is known in closed form: given the observation time
t, arrival times are independent exponentials cut off at t, so the probability that i came before
j and the mean time between them are elementary, and one integral over t remains. Small sets go
through the lattice, which is faster; both give the same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.data.dataset import Dataset
from sequela.learning.independent_fit import grid_posterior
from sequela.learning.problem import Problem
from sequela.learning.starts import independent_theta
from sequela.likelihood import Budget, Sampling

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["independent_gradient", "penalty_max"]


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


def penalty_max(X: Any, *, observation_rate: float = 1.0) -> float:
    """Return the smallest penalty at which the best model has no interactions.

    `X` is a Dataset, DataFrame, array or list of sets; times are not used. The result is the
    largest absolute gradient, in the direction of an interaction, at the model without interactions
    of largest likelihood.

    Examples
    --------
    >>> from sequela import Dataset
    >>> round(penalty_max(Dataset([[0, 0], [1, 0], [1, 1], [1, 1]])), 3)
    0.035
    """
    problem = Problem(
        Dataset.coerce(X).without_times(), budget=Budget(), sampling=Sampling(),
        observation_rate=observation_rate, seed=0, n_threads=None,
    )  # fmt: skip
    theta = independent_theta(problem)
    gradient = np.zeros((problem.n, problem.n))
    if problem.small is not None:
        found = problem.small.evaluate(theta).gradient
        assert found is not None  # noqa: S101 - it was asked for
        gradient += problem.small_share * found
    for large in problem.large:
        gradient += large.weight * independent_gradient(
            large.items, np.exp(np.diagonal(theta)), observation_rate
        )
    np.fill_diagonal(gradient, 0.0)
    return float(np.abs(gradient).max())
