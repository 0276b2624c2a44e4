"""Compare optima without the penalty: refit each of them on its own interactions.

The penalty makes models sparse, but it also favours some orders. An order that needs two strong
effects has a larger penalty than an order that needs a single weaker effect. With a few hundred
samples, this difference can be larger than the evidence in the data. So optima are compared after a
refit, in which only the interactions of each optimum are free. A weak prior (normal, standard
deviation 2) replaces the penalty. Some effects, such as those between items that never occur
together, would go to infinity without the prior. Each free interaction costs one nat, as in
Akaike's criterion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sequela.budget import check_budget
from sequela.data.dataset import Dataset
from sequela.learning.final_value import VALUE_SAMPLING
from sequela.learning.fixed import apply_fixed, read_fixed
from sequela.learning.optima import group_starts
from sequela.learning.penalties import OnSupport, with_fixed
from sequela.learning.solvers.contract import Limits
from sequela.learning.solvers.loop import begin, solve
from sequela.learning.solvers.proximal_newton import ProximalNewton
from sequela.learning.starts import units
from sequela.likelihood.evaluation import Likelihood
from sequela.likelihood.objective import Objective
from sequela.model import Model, as_model
from sequela.settings import Sampling, Settings, read_settings
from sequela.support.validation import check_tolerance, positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.learning.estimator import SetChain
    from sequela.learning.fixed import FixedLike
    from sequela.learning.penalties import Penalty
    from sequela.learning.solvers.contract import Info
    from sequela.learning.solvers.proximal_newton import NewtonState
    from sequela.model import ModelLike
    from sequela.observation import Observation
    from sequela.settings import SettingsKeywords

__all__ = ["Refit", "WarmFits", "WithRidge", "compare_optima", "refit"]

# The standard deviation of the prior. Under this prior, two thirds of the interactions change a
# rate by a factor between 1/7.4 and 7.4 = e^2.
PRIOR_SD = 2.0


@dataclass(frozen=True)
class Refit:
    """A model that was learned again without the penalty, with only its own interactions free.

    Attributes
    ----------
    model : Model
        The refitted model.
    log_likelihood, log_likelihood_se : float
        Log-likelihood of all samples together, in nats, and its Monte Carlo standard error. The
        error is 0 if all sets are evaluated exactly.
    n_interactions : int
        Number of interactions that were free. Base rates are not counted.
    converged : bool
        Whether the gradient is zero within the tolerance.
    """

    model: Model
    log_likelihood: float
    log_likelihood_se: float
    n_interactions: int
    converged: bool

    @property
    def log_prior(self) -> float:
        """The log-density of the weak prior relative to its maximum, in nats; at most 0."""
        off = self.model.theta - np.diag(np.diagonal(self.model.theta))
        return -0.5 * float(np.sum(off * off)) / PRIOR_SD**2

    @property
    def score(self) -> float:
        """Log-likelihood plus log-prior minus one nat per interaction; a larger value is better."""
        return self.log_likelihood + self.log_prior - self.n_interactions


@dataclass(frozen=True)
class WithRidge:
    """An objective plus half of `ridge` times the sum of the squared interactions."""

    objective: Objective
    ridge: float

    @property
    def effective(self) -> float:
        """The effective number of orders divided by the drawn number: the minimum over all sets."""
        return self.objective.effective

    @property
    def is_sampled(self) -> bool:
        """Whether any set is sampled."""
        return self.objective.is_sampled

    @property
    def most_kept(self) -> int:
        """The largest number of orders per chain that is worth drawing."""
        return self.objective.most_kept

    @property
    def is_partial(self) -> bool:
        """Whether gradients may be incomplete outside the support, except with ``full=True``."""
        return self.objective.is_partial

    def prepare(self, support: NDArray[np.bool_]) -> None:
        """Choose how sets are evaluated while theta is zero outside `support`."""
        self.objective.prepare(support)

    def is_affordable(self, support: NDArray[np.bool_]) -> bool:
        """Return whether evaluations with theta zero outside `support` would be fast."""
        return self.objective.is_affordable(support)

    def is_slower_than_orders(self, support: NDArray[np.bool_]) -> bool:
        """Return whether components on a support are much slower than lattices and drawn orders."""
        return self.objective.is_slower_than_orders(support)

    def evaluate(
        self, theta: NDArray[np.float64], *, full: bool = False
    ) -> tuple[float, NDArray[np.float64]]:
        """Return loss and gradient."""
        loss, gradient = self.objective.evaluate(theta, full=full)
        off = theta - np.diag(np.diagonal(theta))
        return loss + 0.5 * self.ridge * float(np.sum(off * off)), gradient + self.ridge * off

    def draw(self, theta: NDArray[np.float64], kept: int) -> None:
        """Draw `kept` new orders per chain at theta."""
        self.objective.draw(theta, kept)

    def gradient_error(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the Monte Carlo standard error of the gradient."""
        return self.objective.gradient_error(theta)


class WarmFits:
    """Fits to one data set, each from a given theta, with the L1 penalty or on a given support.

    Parameters
    ----------
    data : Dataset
        The samples.
    observation : Observation
        The distribution of the observation time.
    settings : Settings
        Budget, sampling, seed and threads.
    limits : Limits
        The KKT residual and the number of iterations at which a fit stops.
    fixed : iterable of triples or None
        Interactions that keep their values, as `read_fixed` reads them.
    quick : bool
        Whether large sets are evaluated only to an accuracy of about 1e-5 (see `Objective`).
    """

    def __init__(
        self,
        data: Dataset,
        observation: Observation,
        settings: Settings,
        limits: Limits,
        fixed: FixedLike | None = None,
        *,
        quick: bool = False,
    ) -> None:
        self.data = data
        self.observation = observation
        self.settings = settings
        self.limits = limits
        self.fixed = read_fixed(fixed, data.items)
        self.objective = Objective(data, observation, settings, quick=quick)
        self.unit = units(self.objective)
        self._values = Likelihood(data, settings=settings.but(sampling=VALUE_SAMPLING))

    def fit(
        self, theta: NDArray[np.float64], penalty: Penalty, ridge: float = 0.0
    ) -> tuple[NewtonState, Info]:
        """Maximise the penalised likelihood from one start; return the last state and its info."""
        self.objective.restart(0)
        solver = ProximalNewton(with_fixed(penalty, self.fixed), self.unit)
        objective = WithRidge(self.objective, ridge) if ridge else self.objective
        start = apply_fixed(theta.copy(), self.fixed)
        return solve(solver, objective, begin(solver, objective, start), self.limits)

    def refit(self, model: Model, allowed: NDArray[np.bool_] | None = None) -> Refit:
        """Learn a model again without penalty; its interactions and those in `allowed` are free."""
        support = (model.theta != 0.0) | np.eye(model.n_items, dtype=bool)
        if allowed is not None:
            support |= allowed
        n_fixed = 0
        if self.fixed is not None:
            n_fixed = int((support & ~np.isnan(self.fixed)).sum())
        ridge = 1.0 / (PRIOR_SD**2 * self.data.total_weight)
        state, info = self.fit(model.theta, OnSupport(support), ridge)
        value, error = self.log_likelihood(state.theta)
        details = {
            "refit": True,
            "penalty": 0.0,
            "seed": self.settings.seed,
            "samples": len(self.data),
        }
        return Refit(
            model=Model(
                state.theta,
                model.items,
                {**model.metadata, **details},
                observation=self.observation,
            ),
            log_likelihood=value,
            log_likelihood_se=error,
            n_interactions=int(support.sum()) - model.n_items - n_fixed,
            converged=info.status.converged,
        )

    def log_likelihood(self, theta: NDArray[np.float64]) -> tuple[float, float]:
        """Return the log-likelihood of all samples and its Monte Carlo standard error."""
        model = Model(theta, self.data.items, observation=self.observation)
        evaluation = self._values.evaluate(model, gradient=False)
        total = self.data.total_weight
        return evaluation.value * total, evaluation.value_se * total


def refit(
    model: ModelLike,
    data: DataLike,
    *,
    times: Iterable[object] | None = None,
    tol: float = 1e-4,
    max_iter: int = 500,
    **settings: Unpack[SettingsKeywords],
) -> Refit:
    """Learn a model again without penalty; interactions that are zero stay zero.

    A weak prior (normal, standard deviation 2) replaces the penalty, because some effects would
    otherwise go to infinity.

    Parameters
    ----------
    model : Model
        The model. Its base rates and its non-zero interactions are learned again.
    data : Dataset, DataFrame, array or list of sets
        The samples, with the model's items.
    times : array or None
        Observation times; None uses the times of a `Dataset`, if any.
    tol : float
        Stop when no entry of the gradient of the mean log-likelihood is larger than this.
    max_iter : int
        Maximum number of iterations.
    **settings
        `budget`, `sampling`, `random_state`, `n_threads`; see `Settings`.

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
    start = as_model(model)
    samples = Dataset.coerce(data, times=times).select_items(start.items)
    how = read_settings(settings, unused=("draws", "target_se"))
    check_tolerance(tol)
    limits = Limits(tol=tol, max_iter=positive_integer("max_iter", max_iter))
    fixed = start.metadata.get("fixed")
    return WarmFits(samples, start.observation, how, limits, fixed).refit(start)


def compare_optima(
    learner: SetChain, data: DataLike, *, times: Iterable[object] | None = None
) -> tuple[pd.DataFrame, list[Refit]]:
    """Compare the optima of a fit that has several starts, without the influence of the penalty.

    Parameters
    ----------
    learner : SetChain
        A fitted learner with ``n_starts`` above 1.
    data, times
        The data to which the learner was fitted.

    Returns
    -------
    table : DataFrame
        One row per optimum, the best first: sorted by the `score` of the refit. "behind" is the
        distance of the score from the best score, in nats. A distance of less than about 2 is no
        evidence. "refit" is the log-likelihood of all samples after the refit, and "refit_se" is
        its standard error. "objective" is the penalised log-likelihood per sample before the refit.
        "penalised" is the distance of the objective from the best objective, in nats over all
        samples. Further columns are "interactions", "starts", "first_start" and "converged".
    refits : list of Refit
        One refit per row of the table, in the same order.

    Examples
    --------
    >>> from sequela import SetChain, example_theta, simulate
    >>> sets = simulate(example_theta(), 300, random_state=1).to_dataset().without_times()
    >>> learner = SetChain(0.03, random_state=1).fit(sets)
    >>> table, refits = compare_optima(learner, sets)
    >>> table["behind"].tolist(), len(refits)
    ([0.0], 1)
    """
    samples = Dataset.coerce(data, times=times)
    settings = Settings(
        budget=check_budget(learner.budget), sampling=Sampling(chains=learner.chains),
        random_state=learner.seed_, n_threads=learner.n_threads,
    )  # fmt: skip
    again_from = WarmFits(
        samples, learner.model_.observation, settings, Limits(tol=1e-4, max_iter=500),
        learner.model_.metadata.get("fixed"),
    )  # fmt: skip
    rows = []
    refits = []
    for group in group_starts(learner.starts_):
        end = learner.starts_[group[0]]
        model = Model(
            end.theta, learner.model_.items, learner.model_.metadata,
            observation=learner.model_.observation,
        )  # fmt: skip
        again = again_from.refit(model)
        refits.append(again)
        rows.append(
            {
                "behind": -again.score,
                "refit": again.log_likelihood,
                "refit_se": again.log_likelihood_se,
                "interactions": again.n_interactions,
                "objective": end.objective,
                "penalised": (learner.objective_ - end.objective) * samples.total_weight,
                "starts": len(group),
                "first_start": group[0],
                "converged": end.converged and again.converged,
            }
        )
    order = sorted(range(len(rows)), key=lambda row: rows[row]["behind"])
    table = pd.DataFrame([rows[row] for row in order])
    table["behind"] -= table["behind"].iloc[0]
    return table, [refits[row] for row in order]
