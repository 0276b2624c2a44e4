"""Compute exactly, for sets of any size, the smallest penalty at which there are no interactions.

The computation needs the gradient at the model without interactions. Given the observation time t,
arrival times in this model are independent exponential times truncated at t. The probability that i
arrived before j, and the mean time between their arrivals, are therefore elementary functions of t.
So the gradient is one integral over t. Small sets are evaluated on the lattice, which is faster and
gives the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sequela.data.dataset import Dataset
from sequela.learning.fixed import read_fixed
from sequela.learning.independent_fit import grid_posterior
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.solvers.contract import Limits
from sequela.learning.solvers.loop import begin, solve
from sequela.learning.solvers.proximal_newton import ProximalNewton
from sequela.learning.starts import independent_theta, units
from sequela.likelihood.independent import log_p_independent
from sequela.likelihood.objective import Objective
from sequela.likelihood.parameters import Parameters
from sequela.observation import as_observation
from sequela.settings import read_settings

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.learning.fixed import FixedLike
    from sequela.observation import Observation
    from sequela.settings import SettingsKeywords

__all__ = ["best_without_interactions", "independent_gradient", "penalty_max"]

_PROHIBITIVE = 1e9


def independent_gradient(
    items: NDArray[np.int64], rates: NDArray[np.float64], stop_rate: float = 1.0
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
    t, weight = grid_posterior(present, rates, stop_rate)
    inside = rates[items]
    gradient = np.zeros((n, n))
    # Rows are the times of a grid, and columns are the items of S. `fell` is 1 - exp(-w t), the
    # probability that an item has arrived by time t.
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
    data: DataLike,
    *,
    observation: Observation | None = None,
    fixed: FixedLike | None = None,
    **settings: Unpack[SettingsKeywords],
) -> float:
    """Return the smallest penalty at which the best model has no interactions.

    This penalty is the largest absolute derivative of the mean log-likelihood with respect to an
    interaction, taken at the best model without interactions.

    Parameters
    ----------
    data : Dataset, DataFrame, array or list of sets
        The samples; the times of a Dataset are used.
    observation : Observation or None
        The distribution of the observation time. None means exponential with rate 1.
    fixed : DataFrame, array, list of pairs or None
        Interactions that are not learned, as in `SetChain`. Their derivatives are not considered.
        The derivatives with respect to all other interactions are taken with the fixed interactions
        at zero.
    **settings
        `n_threads`, and `budget` for sets at known times; see `Settings`.

    Examples
    --------
    >>> from sequela import Dataset
    >>> round(penalty_max(Dataset([[0, 0], [1, 0], [1, 1], [1, 1]])), 3)
    0.035
    """
    how = read_settings(settings, unused=("draws", "target_se"))
    read = Dataset.coerce(data)
    held = read_fixed(fixed, read.items)
    objective = Objective(read, as_observation(observation), how)
    diagonal = WithoutInteractions(objective)
    _, gradient = diagonal.evaluate(best_without_interactions(objective))
    np.fill_diagonal(gradient, 0.0)
    if held is not None:
        gradient = np.where(np.isnan(held), gradient, 0.0)
    return float(np.abs(gradient).max())


def best_without_interactions(objective: Objective) -> NDArray[np.float64]:
    """Return the diagonal theta with the largest likelihood, given known times and orders."""
    theta = independent_theta(objective)
    known = objective.data.times is not None or objective.data.orders is not None
    if not known and objective.observation.constant_rate is not None:
        return theta
    # `independent_theta` does not use known times and known orders, and it assumes a constant rate
    # of the observation. So if times or orders are known, or if the rate is not constant, run the
    # solver, with a penalty that keeps all interactions at zero.
    solver = ProximalNewton(OffDiagonalL1(_PROHIBITIVE), units(objective))
    diagonal = WithoutInteractions(objective)
    state, _ = solve(
        solver, diagonal, begin(solver, diagonal, theta), Limits(tol=1e-8, max_iter=200)
    )
    return state.theta


@dataclass(frozen=True)
class WithoutInteractions:
    """An objective for thetas without interactions, which needs no sampling."""

    objective: Objective
    effective: float = 1.0
    is_sampled: bool = False
    is_partial: bool = False
    most_kept: int = 1

    def evaluate(
        self,
        theta: NDArray[np.float64],
        *,
        full: bool = False,  # noqa: ARG002 - the gradient is always complete
    ) -> tuple[float, NDArray[np.float64]]:
        """Return loss and gradient at a diagonal theta."""
        loss, gradient = self.objective.evaluate_lattices(theta)
        rates = np.exp(np.diagonal(theta))
        stop_rate = Parameters(theta, self.objective.observation, any_times=True).stop_rate
        for items, weight in self.objective.beyond_lattice():
            others = float(np.delete(rates, items).sum())
            loss -= weight * log_p_independent(rates[items], others, stop_rate)
            gradient -= weight * independent_gradient(items, rates, stop_rate)
        return loss, gradient

    def prepare(self, support: NDArray[np.bool_]) -> None:
        """Do nothing, because interactions stay at zero."""

    def is_affordable(self, support: NDArray[np.bool_]) -> bool:  # noqa: ARG002 - always
        """Return True, because interactions stay at zero."""
        return True

    def is_slower_than_orders(self, support: NDArray[np.bool_]) -> bool:  # noqa: ARG002 - never
        """Return False, because interactions stay at zero."""
        return False

    def draw(self, theta: NDArray[np.float64], kept: int) -> None:
        """Do nothing, because there are no orders to draw."""

    def gradient_error(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return zeros, because no set is sampled."""
        return np.zeros_like(theta)
