"""Learn models with decreasing penalties. Each fit starts at the previous model."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.data.dataset import Dataset
from sequela.learning.final_value import VALUE_SAMPLING, final_value
from sequela.learning.fixed import apply_fixed, read_fixed
from sequela.learning.largest_penalty import best_without_interactions, penalty_max
from sequela.learning.penalties import OffDiagonalL1, with_fixed
from sequela.learning.solvers.contract import Limits
from sequela.learning.solvers.loop import begin, solve
from sequela.learning.solvers.proximal_newton import ProximalNewton
from sequela.learning.starts import units
from sequela.likelihood.evaluation import Likelihood
from sequela.likelihood.objective import Objective
from sequela.observation import as_observation
from sequela.settings import SettingsKeywords, read_settings
from sequela.support.errors import InputError
from sequela.support.naming import argument
from sequela.support.progress import WorkProgress, no_progress
from sequela.support.validation import check_tolerance, is_number, positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.learning.fixed import FixedLike
    from sequela.observation import Observation

__all__ = [
    "PathKeywords",
    "PathOptions",
    "PenaltyPath",
    "check_grid",
    "check_penalties",
    "path",
    "penalty_grid",
]


@dataclass(frozen=True)
class PathOptions:
    """The options that determine a path, in addition to the data and the penalties.

    Attributes
    ----------
    n_penalties, ratio : int, float
        If no penalties are given, the path has `n_penalties` penalties. They decrease from
        `penalty_max`, the smallest penalty at which the model has no interactions, to
        ``ratio * penalty_max``.
    tol, max_iter : float, int
        The KKT residual and the number of iterations at which each fit stops, as in `SetChain`.
    observation : Observation or None
        The distribution of the observation time. None means exponential with rate 1.
    fixed : DataFrame, array, list of pairs or None
        Interactions that are not learned, as in `SetChain`.
    """

    n_penalties: int = 20
    ratio: float = 0.05
    tol: float = 1e-3
    max_iter: int = 1000
    observation: Observation | None = None
    fixed: FixedLike | None = None

    def __post_init__(self) -> None:
        check_grid(self.n_penalties, self.ratio)
        check_tolerance(self.tol)
        positive_integer("max_iter", self.max_iter)
        object.__setattr__(self, "observation", as_observation(self.observation))


class PathKeywords(SettingsKeywords, total=False):
    """The keywords of `path`: those of `PathOptions` and of `Settings`."""

    n_penalties: int
    ratio: float
    tol: float
    max_iter: int
    observation: Observation | None
    fixed: FixedLike | None


_OPTIONS = tuple(f.name for f in fields(PathOptions))


def penalty_grid(largest: float, n_penalties: int = 20, ratio: float = 0.05) -> NDArray[np.float64]:
    """Return a geometric sequence of penalties from `largest` down to ``ratio * largest``.

    Examples
    --------
    >>> penalty_grid(0.1, 3, 0.01).round(4).tolist()
    [0.1, 0.01, 0.001]
    """
    check_grid(n_penalties, ratio)
    if not largest > 0.0:
        raise InputError(
            "no interaction improves the likelihood, so all penalties give the same model. Give "
            "penalties, such as [0.01]"
        )
    return np.geomspace(largest, largest * ratio, n_penalties)


def check_grid(n_penalties: int, ratio: float) -> None:
    """Raise an error if a grid would have fewer than two penalties or would not decrease."""
    positive_integer("n_penalties", n_penalties, least=2)
    if not (is_number(ratio) and 0.0 < ratio < 1.0):
        raise InputError(
            f"{argument('ratio')} is {ratio!r}; expected a number between 0 and 1, such as 0.05"
        )


def check_penalties(penalties: Sequence[float]) -> list[float]:
    """Return checked penalties as a list, the largest first."""
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
        One row per penalty: mean log-likelihood and its Monte Carlo standard error (0 if all sets
        are evaluated exactly), objective, number of interactions, KKT residual, number of
        evaluations, and whether the fit converged.
    thetas : list of arrays
        The learned theta for each penalty, in the order of the table.
    items : tuple of str
        Labels of the items.
    observation : Observation
        The distribution of the observation time.
    seed : int
        The seed from which the orders of sampled sets were drawn.
    """

    table: pd.DataFrame
    thetas: list[NDArray[np.float64]]
    items: tuple[str, ...]
    observation: Observation
    seed: int


def path(
    data: DataLike,
    penalties: Sequence[float] | None = None,
    *,
    times: Iterable[object] | None = None,
    **options: Unpack[PathKeywords],
) -> PenaltyPath:
    """Learn models with decreasing penalties. Each fit starts at the previous model.

    Parameters
    ----------
    data : Dataset, DataFrame, array or list of sets
        The samples.
    penalties : sequence of float or None
        The penalties. None means a grid that begins at `penalty_max`, the smallest penalty at which
        the model has no interactions.
    times : array or None
        Observation times; NaN where unknown. None uses the times of a `Dataset`, if any.
    **options
        `n_penalties`, `ratio`, `tol`, `max_iter`, `observation`, `fixed`: see `PathOptions`.
        `budget`, `sampling`, `random_state`, `n_threads`: see `Settings`.

    Examples
    --------
    >>> from sequela import simulate
    >>> from sequela.data import example_theta
    >>> sets = simulate(example_theta(), 300, random_state=1).to_dataset().without_times()
    >>> path(sets, n_penalties=3, ratio=0.2).table["interactions"].tolist()[0]
    0
    """
    given: dict[str, Any] = dict(options)
    how = PathOptions(**{name: given.pop(name) for name in _OPTIONS if name in given})
    settings = read_settings(given, unused=("draws", "target_se"))
    read = Dataset.coerce(data, times=times)
    observation = as_observation(how.observation)
    fixed = read_fixed(how.fixed, read.items)
    if penalties is not None:
        penalties = check_penalties(penalties)
    total = how.n_penalties if penalties is None else len(penalties)
    with WorkProgress("models along the path", total) as bar, no_progress():
        if penalties is None:
            largest = penalty_max(read, observation=observation, fixed=fixed, settings=settings)
            penalties = list(penalty_grid(largest, how.n_penalties, how.ratio))
        objective = Objective(read, observation, settings)
        unit = units(objective)
        theta = apply_fixed(best_without_interactions(objective), fixed)
        limits = Limits(tol=how.tol, max_iter=how.max_iter)
        likelihood = Likelihood(read, settings=settings.but(sampling=VALUE_SAMPLING))
        rows = []
        thetas = []
        for strength in check_penalties(penalties):
            solver = ProximalNewton(with_fixed(OffDiagonalL1(strength), fixed), unit)
            state, info = solve(solver, objective, begin(solver, objective, theta), limits)
            theta = state.theta
            thetas.append(theta)
            value, error = -state.loss, 0.0
            if objective.is_sampled:
                value, error = final_value(objective, likelihood, theta)
            rows.append(
                {
                    "penalty": strength,
                    "log_likelihood": value,
                    "log_likelihood_se": error,
                    "objective": value - solver.penalty.value(theta),
                    "interactions": int(np.count_nonzero(theta) - np.count_nonzero(np.diag(theta))),
                    "kkt_residual": info.residual,
                    "evaluations": info.evaluations,
                    "converged": info.status.converged,
                }
            )
            bar.advance()
    return PenaltyPath(
        table=pd.DataFrame(rows), thetas=thetas, items=read.items, observation=observation,
        seed=settings.seed,
    )  # fmt: skip
