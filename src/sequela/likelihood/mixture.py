"""The likelihood of a mixture of models, and its gradient.

A sample belongs to model k with probability share[k]. So the probability of a set S is
sum over k of share[k] p_k(S). The derivative of its logarithm with respect to the parameters of
model k is r_k(S) times the derivative of log p_k(S), where r_k(S) is the probability that a sample
with the set S belongs to model k (its membership).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.exact import ExactWork, plan_blocks
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.plan import all_subsets_fit
from sequela.support.errors import BudgetError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.budget import Budget
    from sequela.data.dataset import Dataset
    from sequela.observation import Observation

__all__ = ["MixtureLikelihood", "MixtureValue"]


class MixtureValue(NamedTuple):
    """The mean log-likelihood of a mixture, its derivatives, and the memberships.

    Attributes
    ----------
    value : float
        The mean log-likelihood; minus infinity if rates are too large for a double.
    by_theta : array (models, n, n)
        Derivatives with respect to theta of each model.
    membership : array (models, distinct samples)
        The probability that a sample belongs to a model, for each distinct sample.
    """

    value: float
    by_theta: NDArray[np.float64]
    membership: NDArray[np.float64]


class MixtureLikelihood:
    """The likelihood of complete samples at unknown times under a mixture of models.

    Parameters
    ----------
    data : Dataset
        Complete samples; times are ignored.
    observation : Observation
        The observation of all models.
    budget : Budget
        A set whose lattice is beyond the budget raises a `BudgetError`.

    Examples
    --------
    >>> from sequela.budget import Budget
    >>> from sequela.data.dataset import Dataset
    >>> from sequela.observation import Exponential
    >>> data = Dataset([[0], [1]], items=["a"])
    >>> mixture = MixtureLikelihood(data, Exponential(), Budget())
    >>> found = mixture.evaluate(np.zeros((2, 1, 1)), np.array([0.5, 0.5]))
    >>> bool(np.isclose(found.value, np.log(0.5))), found.membership.tolist()
    (True, [[0.5, 0.5], [0.5, 0.5]])
    """

    def __init__(self, data: Dataset, observation: Observation, budget: Budget) -> None:
        self.n = data.n_items
        self.observation = observation
        self.distinct = DistinctSamples.of(data.without_times())
        largest = int(self.distinct.sizes.max(initial=0))
        if not all_subsets_fit(largest, budget):
            raise BudgetError(
                f"a set of {largest} items is beyond the budget, and a mixture of models cannot be "
                "learned from sampled sets; increase the budget, use fewer items, or leave such "
                "samples out"
            )
        self._blocks = plan_blocks(self.distinct, np.arange(len(self.distinct)), self.n)

    def log_probabilities(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log p of each distinct sample under one model; NaN if rates are too large."""
        return self._run(theta, self.distinct, want_gradient=False).log_p

    def evaluate(self, thetas: NDArray[np.float64], shares: NDArray[np.float64]) -> MixtureValue:
        """Return the mean log-likelihood, its derivatives and the memberships.

        Parameters
        ----------
        thetas : array (models, n, n)
            The parameters of the models.
        shares : array (models,)
            The shares of the models; their sum is 1.
        """
        log_p = np.stack([self.log_probabilities(theta) for theta in thetas])
        slopes = np.zeros_like(thetas)
        if np.isnan(log_p).any():
            return MixtureValue(-np.inf, slopes, np.full_like(log_p, 1.0 / len(thetas)))
        joint = np.log(shares)[:, None] + log_p
        highest = joint.max(axis=0)
        total = highest + np.log(np.exp(joint - highest).sum(axis=0))
        membership = np.exp(joint - total)
        weights = self.distinct.weights
        for k, theta in enumerate(thetas):
            sets = self.distinct.sets._replace(weights=weights * membership[k])
            work = self._run(theta, replace(self.distinct, sets=sets), want_gradient=True)
            gradient = work.finish(1)
            if gradient is not None:
                slopes[k] = gradient
        return MixtureValue(float(weights @ total), slopes, membership)

    def _run(
        self, theta: NDArray[np.float64], distinct: DistinctSamples, *, want_gradient: bool
    ) -> ExactWork:
        parameters = Parameters(theta, self.observation, any_times=True)
        work = ExactWork(parameters, distinct, self._blocks, want_gradient=want_gradient)
        for piece in work.pieces:
            piece()
        if not want_gradient:
            work.finish(1)
        return work
