"""Choose the penalty by cross-validation along a path of penalties."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Self

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from sequela.budget import Budget, check_budget
from sequela.learning.estimator import SetChain
from sequela.learning.fixed import read_fixed
from sequela.learning.largest_penalty import penalty_max
from sequela.learning.learner import weighted_data
from sequela.learning.penalty_path import check_grid, check_penalties, path, penalty_grid
from sequela.likelihood.evaluation import Likelihood
from sequela.model import Model
from sequela.settings import Sampling, Settings
from sequela.support.errors import InputError
from sequela.support.naming import argument
from sequela.support.random import Purpose, RandomState, stream
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike, Dataset
    from sequela.learning.fixed import FixedLike
    from sequela.observation import Observation

__all__ = ["SetChainCV"]


class SetChainCV(SetChain):
    """`SetChain` with a penalty that is chosen by cross-validation.

    For every fold, a path of models is learned from the other folds, and each model is evaluated on
    the held-out fold. The rule "best" chooses the penalty with the largest mean held-out
    log-likelihood. The rule "one-se" chooses the largest penalty whose mean is at most one standard
    error below that largest mean. The final model is fitted to all samples with the chosen penalty.

    Parameters
    ----------
    penalties : sequence of float or None
        The penalties to compare. None means `n_penalties` values from `penalty_max`, the smallest
        penalty at which the model has no interactions, down to ``ratio * penalty_max``.
    n_penalties, ratio : int, float
        Number of penalties that are compared, and the smallest of them divided by the largest.
        These parameters are used only if `penalties` is None.
    folds : int, default 5
        Number of folds. Samples are assigned to folds at random.
    rule : {"one-se", "best"}, default "one-se"
        How the penalty is chosen.
    solver, n_starts, ... : see `SetChain`

    Attributes
    ----------
    penalty_ : float
        The chosen penalty.
    cv_results_ : DataFrame
        One row per penalty: mean and standard error of the held-out log-likelihood per sample, mean
        number of interactions, whether the penalty is the best, and whether it was chosen.
        `sequela.plots.plot_cross_validation` plots this table.

    Other attributes are those of `SetChain`.
    """

    def __init__(
        self,
        penalties: Sequence[float] | None = None,
        *,
        n_penalties: int = 20,
        ratio: float = 0.01,
        folds: int = 5,
        rule: str = "one-se",
        solver: str = "auto",
        n_starts: int = 1,
        start_widths: Sequence[float] = (0.2, 2.0),
        max_iter: int = 1000,
        tol: float = 1e-4,
        observation: Observation | None = None,
        budget: Budget | None = None,
        chains: int = 16,
        random_state: RandomState = None,
        n_threads: int | None = None,
        fixed: FixedLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
        progress: bool | str | None = None,
    ) -> None:
        super().__init__(
            solver=solver, n_starts=n_starts, start_widths=start_widths, max_iter=max_iter,
            tol=tol, observation=observation, budget=budget, chains=chains,
            random_state=random_state, n_threads=n_threads, fixed=fixed, checkpoint=checkpoint,
            checkpoint_every=checkpoint_every, progress=progress,
        )  # fmt: skip
        self.penalties = penalties
        self.n_penalties = n_penalties
        self.ratio = ratio
        self.folds = folds
        self.rule = rule

    def fit(
        self,
        X: DataLike,
        y: object = None,  # noqa: ARG002
        sample_weight: Iterable[object] | None = None,
        *,
        times: Iterable[object] | None = None,
    ) -> Self:
        """Choose the penalty by cross-validation, then learn theta from all samples."""
        data = weighted_data(X, times, sample_weight)
        read_fixed(self.fixed, data.items)
        folds = positive_integer("folds", self.folds, least=2)
        if folds > data.n_samples:
            raise InputError(
                f"{argument('folds')} is {folds}; expected at most the number of samples, "
                f"{data.n_samples}"
            )
        if self.rule not in ("one-se", "best"):
            raise InputError(f"rule is {self.rule!r}; expected 'one-se' or 'best'")
        if self.penalties is None:
            check_grid(self.n_penalties, self.ratio)
        else:
            check_penalties(self.penalties)
        seed = self._seed()
        self._options(0.0, seed)  # refuse invalid options before the long computation
        settings = Settings(
            budget=check_budget(self.budget), sampling=Sampling(chains=self.chains),
            random_state=seed, n_threads=self.n_threads,
        )  # fmt: skip
        grid = self._grid(data, settings)
        fold_of = stream(seed, Purpose.FOLDS).permutation(data.n_samples) % folds
        held_out = np.empty((grid.size, data.n_samples))
        interactions = np.zeros(grid.size)
        for fold in range(folds):
            rest = fold_of != fold
            learned = path(
                data.select_samples(rest), list(grid), tol=max(self.tol, 1e-3),
                max_iter=self.max_iter, observation=self.observation, fixed=self.fixed,
                settings=settings,
            )  # fmt: skip
            out = Likelihood(data.select_samples(~rest), settings=settings.but(sampling=Sampling()))
            for at, theta in enumerate(learned.thetas):
                model = Model(theta, data.items, observation=learned.observation)
                evaluation = out.evaluate(model, gradient=False)
                held_out[at, ~rest] = evaluation.log_likelihoods
                interactions[at] += learned.table["interactions"][at] / folds
        weights = np.ones(data.n_samples) if data.weights is None else data.weights
        self._choose(grid, held_out, interactions, (fold_of, weights))
        if self.cv_results_["best"].iloc[-1] and grid.size > 1:
            warnings.warn(
                f"the held-out likelihood is best at the smallest penalty, {grid[-1]:.2g}; a "
                "smaller penalty may be better. Give smaller penalties, or a smaller ratio",
                ConvergenceWarning,
                stacklevel=2,
            )
        fitter = self._fitter(data, self.penalty_, seed)
        return self._store(fitter, fitter.run())

    def _grid(self, data: Dataset, settings: Settings) -> NDArray[np.float64]:
        if self.penalties is not None:
            return np.array(check_penalties(self.penalties))
        largest = penalty_max(
            data, observation=self.observation, fixed=self.fixed, settings=settings
        )
        return penalty_grid(largest, self.n_penalties, self.ratio)

    def _choose(
        self,
        grid: NDArray[np.float64],
        held_out: NDArray[np.float64],
        interactions: NDArray[np.float64],
        dealt: tuple[NDArray[np.int64], NDArray[np.float64]],
    ) -> None:
        """Choose the penalty by `rule`, with a standard error from the means of the folds.

        `dealt` contains the fold and the weight of each sample.
        """
        fold_of, weights = dealt
        folds = int(fold_of.max()) + 1
        each = [(held_out[:, fold_of == f], weights[fold_of == f]) for f in range(folds)]
        means = np.stack([np.average(part, axis=1, weights=w) for part, w in each], axis=1)
        mean = np.average(held_out, axis=1, weights=weights)
        error = means.std(axis=1, ddof=1) / np.sqrt(folds)
        best = int(np.argmax(mean))
        chosen = best
        if self.rule == "one-se":
            chosen = int(np.nonzero(mean >= mean[best] - error[best])[0][0])
        self.penalty_ = float(grid[chosen])
        self.cv_results_ = pd.DataFrame(
            {
                "penalty": grid,
                "log_likelihood": mean,
                "standard_error": error,
                "interactions": interactions,
                "best": np.arange(grid.size) == best,
                "chosen": np.arange(grid.size) == chosen,
            }
        )
