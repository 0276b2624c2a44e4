"""The values of a fit: what goes in, how it runs, and how each of its starts ended."""

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
    """What determines the result of a fit, besides the data."""

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
        """When a start ends."""
        return Limits(tol=self.tol, max_iter=self.max_iter)


@dataclass(frozen=True)
class RunOptions:
    """How a fit runs; nothing here changes its result."""

    n_threads: int | None = None
    progress: bool | str | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = 30.0


@dataclass(frozen=True)
class Start:
    """The end of one start.

    Attributes
    ----------
    theta : array
        Where it ended.
    objective, objective_se : float
        Penalised mean log-likelihood there, and its Monte Carlo standard error (0: exact).
    kkt_residual, kkt_floor : float
        Distance to optimality, and the Monte Carlo error of that distance (0: exact).
    n_iterations, n_evaluations : int
        What it took.
    status : Status
        How it ended.
    message : str
        The same in words.
    width : float
        Of the random interactions at its beginning; 0: the model without interactions; NaN: a
        given theta.
    history : list of tuples
        (evaluations, objective, KKT residual, interactions, seconds) of every iteration.
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
        """Whether it ended at an optimum."""
        return self.status.converged
