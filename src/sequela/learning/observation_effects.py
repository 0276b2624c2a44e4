"""Learn a model with effects on the observation; a symmetric penalty makes them unique.

All pairs (theta, omega) with the same theta[i, j] - omega[i] have the same likelihood. The penalty
of Schill et al. (2024) prefers interactions that are the same in both directions,

    sum over pairs of sqrt(theta_ij^2 + theta_ji^2 - theta_ij theta_ji) + sum of |omega_i|,

which is smoothed, as in their package `mhn`: sqrt(x + 1e-5) in place of sqrt(x).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.budget import check_budget
from sequela.data.dataset import Dataset
from sequela.learning.bounded_descent import minimise
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.starts import independent_theta
from sequela.likelihood.objective import Objective
from sequela.model import Model
from sequela.observation import Exponential, ObservationEffects
from sequela.settings import Sampling, Settings
from sequela.support.errors import BudgetError
from sequela.support.random import materialise_seed
from sequela.support.validation import check_tolerance, positive_integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.budget import Budget
    from sequela.data.dataset import DataLike
    from sequela.support.random import RandomState

__all__ = ["fit_observation_effects", "symmetric_penalty"]

SMOOTHING = 1e-5
_LARGEST_ENTRY = 30.0


def symmetric_penalty(
    theta: NDArray[np.float64], omega: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return (penalty, derivatives by theta with 0 on the diagonal, derivatives by omega).

    Examples
    --------
    >>> value, _, _ = symmetric_penalty(np.array([[0.0, 3.0], [3.0, 0.0]]), np.zeros(2))
    >>> round(value, 2)
    3.01
    """
    effects = theta - np.diag(np.diagonal(theta))
    size = np.sqrt(effects**2 + effects.T**2 - effects * effects.T + SMOOTHING)
    np.fill_diagonal(size, np.inf)
    slope = (2.0 * effects - effects.T) / (2.0 * size)
    np.fill_diagonal(size, 0.0)
    own = np.sqrt(omega**2 + SMOOTHING)
    return 0.5 * float(size.sum()) + float(own.sum()), slope, omega / own


def fit_observation_effects(
    data: DataLike,
    penalty: float = 0.01,
    *,
    tol: float = 1e-4,
    max_iter: int = 2000,
    budget: Budget | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> Model:
    """Learn a model with effects on the observation (oMHN) and the symmetric penalty.

    The data do not determine these effects: for every choice of the effects there is a theta that
    gives the same probabilities to all sets. The penalty alone determines which one is returned.
    Compare the orders of this model with those of `SetChain` before you rely on either.

    Parameters
    ----------
    data : Dataset, DataFrame, array or list of sets
        The samples; times are not used.
    penalty : float
        Weight of the penalty.
    tol : float
        The fit has converged when no entry of the gradient is larger.
    max_iter : int
        Largest number of iterations.
    budget : Budget or None
        The largest cost of exact evaluation; a set that needs more raises a `BudgetError`.
    random_state : int, Generator or None
        Recorded with the model; the fit uses no random numbers.
    n_threads : int or None
        Number of threads; the result does not depend on it.

    Returns
    -------
    Model
        Its observation is an `ObservationEffects`. For functions that do not support these
        effects, `Model.without_observation_effects` returns a model with the same probabilities of
        sets and orders.

    Examples
    --------
    >>> from sequela import example_samples
    >>> model = fit_observation_effects(example_samples().most_frequent(3), 0.02)
    >>> len(model.observation.omega)
    3
    """
    samples = Dataset.coerce(data).without_times()
    strength = float(OffDiagonalL1(penalty).strength)
    seed = materialise_seed(random_state)
    settings = Settings(
        budget=check_budget(budget), sampling=Sampling(chains=2), random_state=seed,
        n_threads=n_threads,
    )  # fmt: skip
    objective = Objective(samples, Exponential(), settings)
    if objective.is_sampled:
        largest = int(samples.set_sizes.max())
        raise BudgetError(
            f"a set of {largest} items is beyond the budget, and effects on the observation "
            "cannot be learned from sampled sets; increase the budget, or leave such samples out"
        )
    n = samples.n_items

    evaluations = 0

    def loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        nonlocal evaluations
        evaluations += 1
        theta, omega = point[:-n].reshape(n, n), point[-n:]
        absorbed = ObservationEffects(omega).absorb(theta)
        value, gradient = objective.evaluate(absorbed, full=True)
        cost, by_theta, by_omega = symmetric_penalty(theta, omega)
        off = gradient - np.diag(np.diagonal(gradient))
        slope = np.concatenate(
            [
                (gradient + strength * by_theta).ravel(),
                strength * by_omega - off.sum(axis=1),
            ]
        )
        return value + strength * cost, slope

    start = np.concatenate([independent_theta(objective).ravel(), np.zeros(n)])
    check_tolerance(tol)
    bound = np.full(start.size, _LARGEST_ENTRY)
    found = minimise(
        loss, start, -bound, bound, tol=tol,
        max_iter=positive_integer("max_iter", max_iter),
    )  # fmt: skip
    return Model(
        found.x[:-n].reshape(n, n),
        samples.items,
        {
            "penalty": strength,
            "penalty_kind": "symmetric",
            "seed": seed,
            "samples": samples.n_samples,
            "objective": -found.value,
            "residual": found.residual,
            "iterations": found.iterations,
            "evaluations": evaluations,
            "converged": bool(found.residual <= tol),
        },
        observation=ObservationEffects(found.x[-n:]),
    )
