"""A learner of models with effects on the observation, with the attributes of `SetChain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sequela.learning.fit_values import Start
from sequela.learning.learner import Learner, weighted_data
from sequela.learning.observation_effects import fit_observation_effects
from sequela.learning.solvers.contract import Info, Limits, Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sequela.data.dataset import DataLike
    from sequela.learning.observation_effects import PenaltyKind

__all__ = ["EffectsLearner"]


class EffectsLearner(Learner):
    """Learn a model with `fit_observation_effects`; parameters and results are those of `SetChain`.

    Of the parameters of `SetChain`, only `penalty`, `tol`, `max_iter`, `budget`, `random_state` and
    `n_threads` have an effect. There is one start, the model without interactions. `penalty_kind`
    is a parameter of `fit_observation_effects`.

    Examples
    --------
    >>> from sequela import example_samples
    >>> learner = EffectsLearner(0.02, random_state=1).fit(example_samples().most_frequent(3))
    >>> learner.model_.observation.kind, learner.converged_
    ('effects', True)
    """

    def __init__(
        self, penalty: float = 0.01, *, penalty_kind: PenaltyKind = "symmetric", **options: Any
    ) -> None:
        super().__init__(penalty, **options)
        self.penalty_kind = penalty_kind

    def fit(
        self,
        X: DataLike,
        y: object = None,  # noqa: ARG002
        sample_weight: Iterable[object] | None = None,
        *,
        times: Iterable[object] | None = None,
    ) -> Self:
        """Learn theta and the effects from the samples in `X`; see `SetChain.fit`."""
        data = weighted_data(X, times, sample_weight)
        model = fit_observation_effects(
            data, self.penalty, penalty_kind=self.penalty_kind, tol=self.tol,
            max_iter=self.max_iter, budget=self.budget, random_state=self._seed(),
            n_threads=self.n_threads,
        )  # fmt: skip
        found = model.metadata
        info = Info(
            found["iterations"], found["evaluations"], found["objective"], found["residual"],
            status=Status.CONVERGED if found["converged"] else Status.ITERATION_LIMIT,
        )  # fmt: skip
        start = Start(
            theta=model.theta, objective=info.objective, objective_se=0.0,
            kkt_residual=info.residual, kkt_floor=0.0, n_iterations=info.iterations,
            n_evaluations=info.evaluations, status=info.status,
            message=info.message(Limits(self.tol, self.max_iter)), width=0.0,
        )  # fmt: skip
        self._keep_best(data, [start], found["seed"])
        self.status_ = start.status
        self.model_ = model
        self._warn(data)
        return self
