"""Learn a model with effects on the observation. A penalty chooses between equivalent models.

omega[i] is the effect of item i on the rate of the observation. All pairs (theta, omega) with the
same values of theta[i, j] - omega[i] have the same likelihood. The L1 penalty prefers few
interactions (`sparse_effects`). The symmetric penalty of Schill et al. (2024) prefers interactions
that are the same in both directions. It is

    sum over pairs of sqrt(theta_ij^2 + theta_ji^2 - theta_ij theta_ji) + sum of |omega_i|,

smoothed as in the package `mhn` of these authors, with sqrt(x + 1e-5) in place of sqrt(x).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from sequela.data.dataset import Dataset
from sequela.learning.bounded_descent import minimise
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.sparse_effects import minimise_sparse
from sequela.learning.starts import independent_theta
from sequela.likelihood.objective import Objective
from sequela.model import Model
from sequela.observation import Exponential, ObservationEffects
from sequela.settings import Sampling, read_settings
from sequela.support.errors import BudgetError, InputError
from sequela.support.validation import check_tolerance, positive_integer

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.learning.bounded_descent import Descent
    from sequela.learning.sparse_effects import Loss, Matrix
    from sequela.settings import SettingsKeywords

__all__ = ["PenaltyKind", "fit_observation_effects", "symmetric_penalty"]

PenaltyKind = Literal["symmetric", "l1"]
SMOOTHING = 1e-5
_LARGEST_ENTRY = 30.0


def symmetric_penalty(
    theta: NDArray[np.float64], omega: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the symmetric penalty and its derivatives with respect to theta and omega.

    The derivatives with respect to the diagonal of theta are 0.

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
    penalty_kind: PenaltyKind = "symmetric",
    tol: float = 1e-4,
    max_iter: int = 2000,
    **settings: Unpack[SettingsKeywords],
) -> Model:
    """Learn a model with effects on the observation (oMHN).

    The data do not determine these effects: for every choice of the effects, there is a theta that
    gives the same probabilities to all sets. Only the penalty determines which of these models is
    returned. Compare the orders of this model with those of `SetChain` before you rely on the
    orders of either model.

    Parameters
    ----------
    data : Dataset, DataFrame, array or list of sets
        The samples; times are not used.
    penalty : float
        Weight of the penalty.
    penalty_kind : {"symmetric", "l1"}
        "symmetric" is the penalty of Schill et al. (2024), which prefers interactions that are the
        same in both directions. "l1" prefers few interactions: every interaction has the same
        weight as in `SetChain`, and every effect on the observation has 0.3 of this weight. If the
        data come from a model with effects and few interactions, the orders of "l1" are right more
        often than those of "symmetric".
    tol : float
        The fit has converged when the optimality conditions hold to this accuracy.
    max_iter : int
        Largest number of iterations.
    **settings
        `budget` (a set that needs more raises a `BudgetError`), `random_state` (it is recorded with
        the model, but the fit uses no random numbers) and `n_threads`. See `Settings`.

    Returns
    -------
    Model
        Its observation is an `ObservationEffects`. Some functions do not support these effects. For
        them, `Model.without_observation_effects` returns a model with the same probabilities of
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
    how = read_settings(settings, unused=("draws", "target_se", "sampling"))
    objective = Objective(samples, Exponential(), replace(how, sampling=Sampling(chains=2)))
    if objective.is_sampled:
        largest = int(samples.set_sizes.max())
        raise BudgetError(
            f"a set of {largest} items is beyond the budget, and effects on the observation "
            "cannot be learned from sampled sets; increase the budget, or leave such samples out"
        )
    if penalty_kind not in get_args(PenaltyKind):
        raise InputError(f"penalty_kind is {penalty_kind!r}; expected 'symmetric' or 'l1'")
    evaluations = 0

    def loss(theta: Matrix, omega: Matrix) -> tuple[float, Matrix, Matrix]:
        nonlocal evaluations
        evaluations += 1
        value, gradient = objective.evaluate(ObservationEffects(omega).absorb(theta), full=True)
        off = gradient - np.diag(np.diagonal(gradient))
        return value, gradient, -off.sum(axis=1)

    start = independent_theta(objective)
    check_tolerance(tol)
    most = positive_integer("max_iter", max_iter)
    learn = minimise_sparse if penalty_kind == "l1" else _minimise_symmetric
    theta, omega, found = learn(
        loss, start, strength, largest=_LARGEST_ENTRY, tol=tol, max_iter=most
    )
    return Model(
        theta,
        samples.items,
        {
            "penalty": strength,
            "penalty_kind": penalty_kind,
            "seed": how.seed,
            "samples": samples.n_samples,
            "objective": -found.value,
            "residual": found.residual,
            "iterations": found.iterations,
            "evaluations": evaluations,
            "converged": bool(found.residual <= tol),
        },
        observation=ObservationEffects(omega),
    )


def _minimise_symmetric(
    loss: Loss, start: Matrix, strength: float, *, largest: float, tol: float, max_iter: int
) -> tuple[Matrix, Matrix, Descent]:
    """Minimise the loss plus the symmetric penalty; see `minimise_sparse` for the arguments."""
    n = len(start)

    def penalised(point: Matrix) -> tuple[float, Matrix]:
        theta, omega = point[:-n].reshape(n, n), point[-n:]
        value, by_theta, by_omega = loss(theta, omega)
        cost, theta_slope, omega_slope = symmetric_penalty(theta, omega)
        slope = (by_theta + strength * theta_slope).ravel(), by_omega + strength * omega_slope
        return value + strength * cost, np.concatenate(slope)

    first = np.concatenate([start.ravel(), np.zeros(n)])
    bound = np.full(first.size, largest)
    found = minimise(penalised, first, -bound, bound, tol=tol, max_iter=max_iter)
    return found.x[:-n].reshape(n, n), found.x[-n:], found
