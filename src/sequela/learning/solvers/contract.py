"""The common interface of solvers: `Info`, `Status`, `Limits`, `Solver` and `Objective`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from sequela.support.naming import argument

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Info", "Limits", "Objective", "Smooth", "Solver", "Status", "Watch"]


class Status(Enum):
    """How a solver ended; each value is a message with placeholders, filled by `Info.message`."""

    RUNNING = "the solver has not ended"
    CONVERGED = "KKT residual {residual:.2e} is within the tolerance {tol:.0e}"
    AT_MONTE_CARLO_FLOOR = (
        "KKT residual {residual:.1e} on newly drawn orders, Monte Carlo floor {floor:.1e} "
        "(4 standard errors)"
    )
    SETTLED = "every entry changed by less than 0.03 over 200 iterations"
    ITERATION_LIMIT = (
        "KKT residual {residual:.2e} is above the tolerance {tol:.0e} after {max_iter} "
        "iterations; increase {max_iter_name} or {tol_name}"
    )
    ABOVE_MONTE_CARLO_FLOOR = (
        "KKT residual {residual:.1e} with Monte Carlo floor {floor:.1e} after {iterations} "
        "iterations; increase {max_iter_name}"
    )
    EPOCHS_DONE = "ended after {max_iter} iterations ({max_iter_name})"
    NO_ASCENT = (
        "rounding errors allow no further increase of the objective, at KKT residual {residual:.2e}"
    )
    INTERRUPTED = "stopped by the caller at KKT residual {residual:.1e}"

    @property
    def converged(self) -> bool:
        """Whether the solver ended at an optimum."""
        return self in (Status.CONVERGED, Status.AT_MONTE_CARLO_FLOOR, Status.SETTLED)


@dataclass(frozen=True)
class Limits:
    """When a solver stops: at which KKT residual, or after how many iterations."""

    tol: float
    max_iter: int


@dataclass(frozen=True)
class Info:
    """The progress of a solver.

    Attributes
    ----------
    iterations, evaluations : int
        Number of iterations, and number of evaluations of the objective, so far.
    objective : float
        The penalised mean log-likelihood, which is maximised; NaN if it is not computed.
    residual : float
        The KKT residual: the distance from an optimum.
    floor : float
        The Monte Carlo error of the residual; 0 if all sets are evaluated exactly.
    status : Status
        How the run ended, or `Status.RUNNING`.
    """

    iterations: int = 0
    evaluations: int = 0
    objective: float = float("nan")
    residual: float = float("inf")
    floor: float = 0.0
    status: Status = Status.RUNNING

    def message(self, limits: Limits) -> str:
        """Return why the solver ended, in words."""
        return self.status.value.format(
            residual=self.residual, floor=self.floor, iterations=self.iterations,
            tol=limits.tol, max_iter=limits.max_iter,
            max_iter_name=argument("max_iter"), tol_name=argument("tol"),
        )  # fmt: skip


class Smooth(Protocol):
    """The smooth part of an objective: loss (minus the mean log-likelihood) and gradient."""

    def evaluate(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return loss and gradient. The loss is infinite if theta is out of range."""
        ...


class Objective(Smooth, Protocol):
    """A smooth objective in which sets may be sampled and gradients may be incomplete.

    Unless `full` is true, entries of the gradient that are slow to compute are left out. Between
    two calls of `draw` or `prepare`, the objective is deterministic.
    """

    def evaluate(
        self, theta: NDArray[np.float64], *, full: bool = False
    ) -> tuple[float, NDArray[np.float64]]:
        """Return loss and gradient; all entries of the gradient are complete only if `full`."""
        ...

    @property
    def is_partial(self) -> bool:
        """Whether gradients may be incomplete outside the support, except with ``full=True``."""
        ...

    def prepare(self, support: NDArray[np.bool_]) -> None:
        """Choose how sets are evaluated while theta is zero outside `support`."""
        ...

    def is_affordable(self, support: NDArray[np.bool_]) -> bool:
        """Return whether evaluations with theta zero outside `support` would be fast."""
        ...

    def is_slower_than_orders(self, support: NDArray[np.bool_]) -> bool:
        """Return whether components on a support are much slower than lattices and drawn orders."""
        ...

    @property
    def effective(self) -> float:
        """The effective number of orders divided by the drawn number: the minimum over all sets.

        It is 1 if no set is sampled.
        """
        ...

    @property
    def is_sampled(self) -> bool:
        """Whether any set is sampled."""
        ...

    @property
    def most_kept(self) -> int:
        """The largest number of orders per chain that is worth drawing."""
        ...

    def draw(self, theta: NDArray[np.float64], kept: int) -> None:
        """Draw `kept` new orders per chain at theta."""
        ...

    def gradient_error(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the Monte Carlo standard error of the gradient."""
        ...


State = TypeVar("State")


class Solver(Protocol[State]):
    """A descent method for an objective. `solvers.loop` runs it."""

    def residual(self, state: State) -> float:
        """Return the KKT residual at a state."""
        ...

    def step(self, objective: Smooth, state: State) -> tuple[State | None, int]:
        """Return the next state (None if no better one was found) and the number of evaluations."""
        ...


# A function that a solver calls with every state and its info. If it returns True, the run ends.
Watch: TypeAlias = Callable[[State, Info], bool]
