"""Optima compared without the penalty: each is learned again on its own interactions.

The penalty that makes models sparse also takes sides. It costs an order that needs two strong
effects more than one that needs a single weaker effect, and over a few hundred samples that can
outweigh all that the data say. So different optima are compared after a refit in which their
interactions, and no others, are free. Instead of the penalty there is a weak prior, normal with
standard deviation 2: effects that the data push to infinity (of items that are never together)
would otherwise count as if they were known. Each free interaction is charged one nat, as Akaike's
criterion does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.data.dataset import Dataset
from sequela.learning.estimator import check_tolerance
from sequela.learning.fitting import VALUE_SAMPLING
from sequela.learning.optima import group_starts
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.problem import Problem
from sequela.learning.solvers.newton import FIRST_KEPT, newton
from sequela.learning.solvers.proximal_newton import begin
from sequela.learning.starts import units
from sequela.likelihood import Likelihood, Sampling
from sequela.likelihood.budget import check_budget
from sequela.model import Model
from sequela.support.random import materialise_seed
from sequela.support.validation import check_observation_rate, positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from sequela.learning.estimator import SetChain
    from sequela.learning.solvers.proximal_newton import Iterate
    from sequela.likelihood import Budget
    from sequela.support.random import RandomState

__all__ = ["OnSupport", "Refit", "WarmFits", "compare_optima", "refit"]

# Of log-effects: two thirds of them change a rate by less than e^2 = 7.4.
PRIOR_SD = 2.0


@dataclass(frozen=True)
class OnSupport:
    """A penalty on the interactions of `support`, none by default, and nothing allowed outside."""

    support: NDArray[np.bool_]
    strength: float = 0.0

    def weights(self, n: int) -> NDArray[np.float64]:
        """Return the weight of each entry: infinite outside the support, 0 on the diagonal."""
        weights = np.where(self.support, self.strength, np.inf)
        weights[np.arange(n), np.arange(n)] = 0.0
        return weights

    def value(self, theta: NDArray[np.float64]) -> float:
        """Return the penalty of theta, which is zero outside the support."""
        return OffDiagonalL1(self.strength).value(theta)

    def subdiff_distance(
        self, theta: NDArray[np.float64], gradient: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return how far `gradient` is from the subdifferential; outside the support it is 0."""
        distance = OffDiagonalL1(self.strength).subdiff_distance(theta, gradient)
        return np.where(self.support, distance, 0.0)


@dataclass(frozen=True)
class Refit:
    """A model learned again without penalty on the interactions that it has.

    Attributes
    ----------
    model : Model
        The refitted parameters.
    log_likelihood, log_likelihood_se : float
        Of all samples together, in nats, and its Monte Carlo standard error (0: exact).
    n_interactions : int
        Interactions; there are base rates besides.
    converged : bool
        Whether the gradient vanishes within the tolerance.
    """

    model: Model
    log_likelihood: float
    log_likelihood_se: float
    n_interactions: int
    converged: bool

    @property
    def log_prior(self) -> float:
        """What the weak prior takes for the size of the interactions, in nats; at most 0."""
        off = self.model.theta - np.diag(np.diagonal(self.model.theta))
        return -0.5 * float(np.sum(off * off)) / PRIOR_SD**2

    @property
    def score(self) -> float:
        """Log-likelihood, prior, and one nat for each interaction; larger is better."""
        return self.log_likelihood + self.log_prior - self.n_interactions


class WarmFits:
    """Fits to one data set that go on from a given theta, with a penalty or on a support.

    Parameters
    ----------
    data : Dataset
        The samples.
    tol, max_iter, observation_rate, budget, chains, n_threads
        As in `SetChain`.
    seed : int
        Of sampled sets.
    """

    def __init__(
        self,
        data: Dataset,
        *,
        seed: int,
        tol: float = 1e-4,
        max_iter: int = 500,
        observation_rate: float = 1.0,
        budget: Budget | None = None,
        chains: int = 16,
        n_threads: int | None = None,
    ) -> None:
        check_tolerance(tol)
        self.data = data
        self.seed = seed
        self.tol = tol
        self.max_iter = positive_integer("max_iter", max_iter)
        rate = check_observation_rate(observation_rate)
        limits = check_budget(budget)
        self.problem = Problem(
            data, budget=limits, observation_rate=rate, seed=seed, n_threads=n_threads,
            sampling=Sampling(chains=positive_integer("chains", chains, least=2)),
        )  # fmt: skip
        self.unit = units(self.problem)
        self._values = Likelihood(
            data, budget=limits, sampling=VALUE_SAMPLING, observation_rate=rate,
            random_state=seed, n_threads=n_threads,
        )  # fmt: skip

    def fit(self, theta: NDArray[np.float64], penalty: Any) -> Iterate:
        """Go on from theta to an optimum of the penalised likelihood."""
        self.problem.restart(0)
        self.problem.draw(theta, FIRST_KEPT)
        return newton(
            self.problem, begin(self.problem.evaluate, theta.copy(), penalty), penalty, self.unit,
            tol=self.tol, max_iter=self.max_iter,
        )  # fmt: skip

    def refit(self, model: Model, allowed: NDArray[np.bool_] | None = None) -> Refit:
        """Learn a model again without penalty, on the interactions that it has or is allowed."""
        support = (model.theta != 0.0) | np.eye(model.n_items, dtype=bool)
        if allowed is not None:
            support |= allowed
        self.problem.ridge = 1.0 / (PRIOR_SD**2 * len(self.data))
        try:
            state = self.fit(model.theta, OnSupport(support))
        finally:
            self.problem.ridge = 0.0
        value, error = self.log_likelihood(state.theta)
        details = {"refit": True, "penalty": 0.0, "seed": self.seed, "samples": len(self.data)}
        return Refit(
            model=Model(state.theta, model.items, {**model.metadata, **details}),
            log_likelihood=value,
            log_likelihood_se=error,
            n_interactions=int(support.sum()) - model.n_items,
            converged=bool(state.converged),
        )

    def log_likelihood(self, theta: NDArray[np.float64]) -> tuple[float, float]:
        """Return the log-likelihood of all samples and its Monte Carlo standard error."""
        found = self._values.evaluate(theta, gradient=False)
        return found.value * len(self.data), found.value_se * len(self.data)


def refit(
    model: Model,
    data: Any,
    *,
    times: Iterable[object] | None = None,
    random_state: RandomState = None,
    **options: Any,
) -> Refit:
    """Learn a model's base rates and interactions again, without penalty; what is zero stays zero.

    A weak prior (normal, standard deviation 2) keeps effects finite that the data push to infinity.

    Parameters
    ----------
    model : Model
        Its non-zero interactions are the ones that are free.
    data : Dataset, DataFrame, array or list of sets
        The samples, with the model's items.
    times : array or None
        Observation times; None takes those of a `Dataset`, if any.
    random_state : int, Generator or None
        Seed of sampled sets.
    **options
        `tol` (the largest entry of the gradient of the mean log-likelihood at the end, default
        1e-4), `max_iter`, `observation_rate`, `budget`, `chains`, `n_threads` as in `SetChain`.

    Returns
    -------
    Refit
        The new model, its log-likelihood and the number of its interactions.

    Examples
    --------
    >>> from sequela import example_theta, fit, simulate
    >>> sets = simulate(example_theta(), 300, random_state=1).to_dataset().without_times()
    >>> model = fit(sets, penalty=0.03)
    >>> again = refit(model, sets, random_state=1)
    >>> again.converged, again.n_interactions == len(model.interactions())
    (True, True)
    """
    samples = Dataset.coerce(data, times=times).select_items(model.items)
    return WarmFits(samples, seed=materialise_seed(random_state), **options).refit(model)


def compare_optima(
    chain: SetChain, data: Any, *, times: Iterable[object] | None = None
) -> tuple[pd.DataFrame, list[Refit]]:
    """Compare the optima of a fit with several starts, without the penalty's influence.

    Parameters
    ----------
    chain : SetChain
        Fitted, with ``n_starts`` above 1.
    data, times
        What it was fitted to.

    Returns
    -------
    table : DataFrame
        One row an optimum, the best by the `score` of its refit first: "behind" (how far the score
        is below the best, in nats: less than about 2 is no evidence), "refit" (log-likelihood of
        the refit, of all samples) and "refit_se", "interactions", "objective"
        (penalised, a sample), "penalised" (how far below the best that is, over all samples),
        "starts", "first_start", "converged".
    refits : list of Refit
        In the order of the table.

    Examples
    --------
    >>> from sequela import SetChain, example_theta, simulate
    >>> sets = simulate(example_theta(), 300, random_state=1).to_dataset().without_times()
    >>> chain = SetChain(0.03, random_state=1).fit(sets)
    >>> table, refits = compare_optima(chain, sets)
    >>> table["behind"].tolist(), len(refits)
    ([0.0], 1)
    """
    samples = Dataset.coerce(data, times=times)
    again_from = WarmFits(
        samples, seed=chain.seed_, observation_rate=chain.observation_rate, budget=chain.budget,
        chains=chain.chains, n_threads=chain.n_threads,
    )  # fmt: skip
    rows = []
    refits = []
    for group in group_starts(chain.starts_):
        end = chain.starts_[group[0]]
        model = Model(end.theta, chain.model_.items, chain.model_.metadata)
        again = again_from.refit(model)
        refits.append(again)
        rows.append(
            {
                "behind": -again.score,
                "refit": again.log_likelihood,
                "refit_se": again.log_likelihood_se,
                "interactions": again.n_interactions,
                "objective": end.objective,
                "penalised": (chain.objective_ - end.objective) * samples.n_samples,
                "starts": len(group),
                "first_start": group[0],
                "converged": end.converged and again.converged,
            }
        )
    order = sorted(range(len(rows)), key=lambda row: rows[row]["behind"])
    table = pd.DataFrame([rows[row] for row in order])
    table["behind"] -= table["behind"].iloc[0]
    return table, [refits[row] for row in order]
