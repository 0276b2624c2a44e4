"""The options of a fit, and the result of each of its starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sequela.learning.solvers.contract import Limits

if TYPE_CHECKING:
    import os

    import numpy as np
    from numpy.typing import NDArray

    from sequela.budget import Budget
    from sequela.learning.solvers.contract import Status
    from sequela.observation import Observation

__all__ = ["FitOptions", "RunOptions", "Start"]


@dataclass(frozen=True)
class FitOptions:
    """The options that determine the result of a fit, in addition to the data."""

    penalty: float
    solver: str
    n_starts: int
    start_widths: tuple[float, ...]
    independent_start: bool
    tol: float
    max_iter: int
    observation: Observation
    budget: Budget
    chains: int
    seed: int
    fixed: tuple[tuple[str, str, float], ...] = ()

    @property
    def limits(self) -> Limits:
        """The KKT residual at which a start ends, and the largest number of iterations."""
        return Limits(tol=self.tol, max_iter=self.max_iter)


@dataclass(frozen=True)
class RunOptions:
    """The options of a fit that do not change its result."""

    n_threads: int | None = None
    progress: bool | str | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = 30.0


@dataclass(frozen=True)
class Start:
    """The result of one start.

    Attributes
    ----------
    theta : array
        Theta at the end.
    objective, objective_se : float
        Penalised mean log-likelihood at the end, and its Monte Carlo standard error. The error is 0
        if all sets are evaluated exactly.
    kkt_residual, kkt_floor : float
        The KKT residual at the end (the distance from an optimum), and its Monte Carlo error. The
        error is 0 if all sets are evaluated exactly.
    n_iterations, n_evaluations : int
        Number of iterations of the solver, and number of evaluations of the objective.
    status : Status
        How the start ended.
    message : str
        How the start ended, in words.
    width : float
        The start began with random interactions in [-width, width]. If it is 0, the start began at
        the model without interactions. If it is NaN, the start began at a given theta.
    history : list of tuples
        One tuple per iteration: evaluations so far, objective, KKT residual, number of
        interactions, and seconds since the beginning of the start. If sets are sampled, the
        objectives have an unknown error, which can be larger than `objective_se`: compare them only
        between iterations that used the same drawn orders.
    """

    theta: NDArray[np.float64]
    objective: float
    objective_se: float
    kkt_residual: float
    kkt_floor: float
    n_iterations: int
    n_evaluations: int
    status: Status
    message: str
    width: float
    history: list[tuple[int, float, float, int, float]] = field(default_factory=list)

    @property
    def converged(self) -> bool:
        """Whether the start ended at an optimum."""
        return self.status.converged
