"""Choosing the penalty: a warm-started path, and cross-validation along it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from sequela.data.dataset import Dataset
from sequela.learning.estimator import SetChain, check_tolerance
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.penalty_max import best_without_interactions, penalty_max
from sequela.learning.problem import Problem
from sequela.learning.solvers.newton import FIRST_KEPT, newton
from sequela.learning.solvers.proximal_newton import begin
from sequela.learning.starts import units
from sequela.likelihood import Budget, Sampling, evaluate
from sequela.likelihood.budget import check_budget
from sequela.support.errors import InputError
from sequela.support.random import RandomState, materialise_seed, stream
from sequela.support.validation import check_observation_rate, is_number, positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

__all__ = ["PenaltyPath", "SetChainCV", "path", "penalty_grid"]


def penalty_grid(largest: float, n_penalties: int = 20, ratio: float = 0.05) -> NDArray[np.float64]:
    """Return penalties from `largest` down to `ratio` times it, equal factors apart.

    Examples
    --------
    >>> penalty_grid(0.1, 3, 0.01).round(4).tolist()
    [0.1, 0.01, 0.001]
    """
    _check_grid(n_penalties, ratio)
    if not largest > 0.0:
        raise InputError(
            "no interaction improves the likelihood at any penalty: there is nothing to choose "
            "from. Give penalties, such as [0.01]"
        )
    return np.geomspace(largest, largest * ratio, n_penalties)


def _check_grid(n_penalties: int, ratio: float) -> None:
    positive_integer("n_penalties", n_penalties, least=2)
    if not (is_number(ratio) and 0.0 < ratio < 1.0):
        raise InputError(f"ratio is {ratio!r}; expected a number between 0 and 1")


def _check_penalties(penalties: Sequence[float]) -> list[float]:
    """Return given penalties as a list, the largest first."""
    values = sorted((float(OffDiagonalL1(value).strength) for value in penalties), reverse=True)
    if not values:
        raise InputError("penalties is empty; expected at least one, such as [0.1, 0.01]")
    return values


@dataclass(frozen=True)
class PenaltyPath:
    """Models along decreasing penalties.

    Attributes
    ----------
    table : DataFrame
        One row a penalty: log-likelihood, objective, interactions, KKT residual, converged.
    thetas : list of arrays
        The learned parameters.
    items : tuple of str
        Labels of the items.
    seed : int
        Seed of sampled sets.
    """

    table: pd.DataFrame
    thetas: list[NDArray[np.float64]]
    items: tuple[str, ...]
    seed: int


def path(
    X: Any,
    penalties: Sequence[float] | None = None,
    *,
    times: Iterable[object] | None = None,
    n_penalties: int = 20,
    ratio: float = 0.05,
    tol: float = 1e-3,
    max_iter: int = 1000,
    observation_rate: float = 1.0,
    budget: Budget | None = None,
    chains: int = 16,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> PenaltyPath:
    """Learn models along decreasing penalties, each from the end of the one before.

    Parameters
    ----------
    X : Dataset, DataFrame, array or list of sets
        The samples.
    penalties : sequence of float or None
        None: `n_penalties` from the smallest penalty without interactions (`penalty_max`) down
        to `ratio` times it.
    times, tol, max_iter, observation_rate, budget, chains, random_state, n_threads
        As in `SetChain`.

    Examples
    --------
    >>> from sequela import example_theta, simulate
    >>> sets = simulate(example_theta(), 300, random_state=1).to_dataset().without_times()
    >>> path(sets, n_penalties=3, ratio=0.2).table["interactions"].tolist()[0]
    0
    """
    data = Dataset.coerce(X, times=times)
    check_tolerance(tol)
    positive_integer("max_iter", max_iter)
    positive_integer("chains", chains, least=2)
    check_budget(budget)
    check_observation_rate(observation_rate)
    seed = materialise_seed(random_state)
    if penalties is None:
        _check_grid(n_penalties, ratio)
        largest = penalty_max(
            data, observation_rate=observation_rate, budget=budget, n_threads=n_threads
        )
        penalties = list(penalty_grid(largest, n_penalties, ratio))
    grid = _check_penalties(penalties)
    problem = Problem(
        data, budget=check_budget(budget), sampling=Sampling(chains=chains),
        observation_rate=observation_rate, seed=seed, n_threads=n_threads,
    )  # fmt: skip
    unit = units(problem)
    theta = best_without_interactions(problem)
    rows = []
    thetas = []
    problem.draw(theta, FIRST_KEPT)
    for strength in grid:
        penalty = OffDiagonalL1(strength)
        state = begin(problem.evaluate, theta, penalty)
        state = newton(problem, state, penalty, unit, tol=tol, max_iter=max_iter)
        theta = state.theta
        thetas.append(theta)
        rows.append(
            {
                "penalty": strength,
                "log_likelihood": -state.loss,
                "objective": state.objective,
                "interactions": int(np.count_nonzero(theta) - np.count_nonzero(np.diag(theta))),
                "kkt_residual": state.residual,
                "evaluations": state.evaluations,
                "converged": state.converged,
            }
        )
    return PenaltyPath(table=pd.DataFrame(rows), thetas=thetas, items=data.items, seed=seed)


class SetChainCV(SetChain):
    """`SetChain` whose penalty is chosen by cross-validation.

    For every fold a path is learned on the other folds and the held-out log-likelihood taken
    along it. `rule` chooses: "best", the largest mean, or "one-se", the largest penalty within one
    standard error of it. The final model is fitted to all samples with that penalty.

    Parameters
    ----------
    penalties : sequence of float or None
        None: `n_penalties` from `penalty_max` down to `ratio` times it.
    n_penalties, ratio : int, float
        The grid, where `penalties` is None.
    folds : int, default 5
        Number of folds, dealt at random from the seed.
    rule : {"one-se", "best"}, default "one-se"
        How the penalty is chosen.
    solver, n_starts, ... : see `SetChain`

    Attributes
    ----------
    penalty_ : float
        The chosen penalty.
    cv_results_ : DataFrame
        One row a penalty: mean and standard error of the held-out log-likelihood a sample, mean
        number of interactions, whether it is the best and whether it was chosen.
        `sequela.plot_cross_validation` draws it.

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
        observation_rate: float = 1.0,
        budget: Budget | None = None,
        chains: int = 16,
        random_state: RandomState = None,
        n_threads: int | None = None,
        checkpoint: Any = None,
        checkpoint_every: float = 30.0,
        progress: bool | str | None = None,
    ) -> None:
        super().__init__(
            solver=solver, n_starts=n_starts, start_widths=start_widths, max_iter=max_iter,
            tol=tol, observation_rate=observation_rate, budget=budget, chains=chains,
            random_state=random_state, n_threads=n_threads, checkpoint=checkpoint,
            checkpoint_every=checkpoint_every, progress=progress,
        )  # fmt: skip
        self.penalties = penalties
        self.n_penalties = n_penalties
        self.ratio = ratio
        self.folds = folds
        self.rule = rule

    def fit(self, X: Any, y: Any = None, *, times: Iterable[object] | None = None) -> Self:  # noqa: ARG002
        """Choose the penalty by cross-validation, then learn theta from all samples."""
        data = Dataset.coerce(X, times=times)
        folds = positive_integer("folds", self.folds, least=2)
        if folds > data.n_samples:
            raise InputError(f"folds is {folds}, more than the {data.n_samples} samples")
        if self.rule not in ("one-se", "best"):
            raise InputError(f"rule is {self.rule!r}; expected 'one-se' or 'best'")
        if self.penalties is None:
            _check_grid(self.n_penalties, self.ratio)
        else:
            _check_penalties(self.penalties)
        seed = self._seed()
        self._options(0.0, seed)  # refuses bad options before the work, not after it
        grid = self._grid(data)
        fold_of = stream(seed, 3).permutation(data.n_samples) % folds
        held_out = np.empty((grid.size, data.n_samples))
        interactions = np.zeros(grid.size)
        for fold in range(folds):
            rest = fold_of != fold
            learned = path(
                data.select_samples(rest), list(grid), tol=max(self.tol, 1e-3),
                max_iter=self.max_iter, observation_rate=self.observation_rate,
                budget=self.budget, chains=self.chains, random_state=seed,
                n_threads=self.n_threads,
            )  # fmt: skip
            out = data.select_samples(~rest)
            for at, theta in enumerate(learned.thetas):
                found = evaluate(
                    theta, out, gradient=False, budget=self.budget,
                    observation_rate=self.observation_rate, random_state=seed,
                    n_threads=self.n_threads,
                )  # fmt: skip
                held_out[at, ~rest] = found.log_likelihoods
                interactions[at] += learned.table["interactions"][at] / folds
        self._choose(grid, held_out, interactions, fold_of)
        if self.cv_results_["best"].iloc[-1] and grid.size > 1:
            warnings.warn(
                f"the held-out likelihood is best at the smallest penalty, {grid[-1]:.2g}: the "
                "best may lie below; give smaller penalties, or a smaller ratio",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self._fit(data, self._options(self.penalty_, seed))

    def _grid(self, data: Dataset) -> NDArray[np.float64]:
        if self.penalties is not None:
            return np.array(_check_penalties(self.penalties))
        largest = penalty_max(
            data, observation_rate=self.observation_rate, budget=self.budget,
            n_threads=self.n_threads,
        )  # fmt: skip
        return penalty_grid(largest, self.n_penalties, self.ratio)

    def _choose(
        self,
        grid: NDArray[np.float64],
        held_out: NDArray[np.float64],
        interactions: NDArray[np.float64],
        fold_of: NDArray[np.int64],
    ) -> None:
        """Apply the rule; the standard error is that of the folds' means."""
        folds = int(fold_of.max()) + 1
        means = np.stack([held_out[:, fold_of == f].mean(axis=1) for f in range(folds)], axis=1)
        mean = held_out.mean(axis=1)
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
