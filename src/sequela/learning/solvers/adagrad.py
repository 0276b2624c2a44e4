"""The paper's solver: proximal AdaGrad on sampled gradients (section 5), for comparison.

The step size is 1. The first phase learns base rates only. The second phase learns all entries and
starts at small random interactions. Gradients are means over orders that are drawn with the
informed proposal: M = 50 draws after a burn-in of 10 draws. For each entry, AdaGrad divides the
step by the square root of the sum of the squared gradients so far. The L1 penalty is applied as a
proximal step with the same divisors (Duchi, Hazan and Singer 2011). The paper gives no rule for
when to stop. The published program stops when no entry has changed by 0.03 or more over 200
iterations, or after 3000 iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.learning.penalties import Penalty
    from sequela.learning.solvers.contract import Smooth

__all__ = ["AdaGrad", "AdaGradState"]

STEP = 1.0
WINDOW = 200
MOVED = 0.03


@dataclass(frozen=True)
class AdaGradState:
    """The state of the solver between two steps.

    Attributes
    ----------
    theta : array (n, n)
        The current theta.
    gradient : array (n, n)
        The derivative of the loss at theta.
    squares : array (n, n)
        Sums of squared gradients so far.
    window_start : array (n, n)
        Theta at the start of the current window of 200 steps.
    steps_taken : int
        Number of steps.
    settled : bool
        Whether every entry changed by less than 0.03 over the last window.
    """

    theta: NDArray[np.float64]
    gradient: NDArray[np.float64]
    squares: NDArray[np.float64]
    window_start: NDArray[np.float64]
    steps_taken: int = 0
    settled: bool = False


@dataclass(frozen=True)
class AdaGrad:
    """The AdaGrad solver.

    Attributes
    ----------
    penalty : Penalty
        The L1 penalty on the interactions.
    diagonal_only : bool
        Whether only base rates are learned, as in the first phase of the paper.
    """

    penalty: Penalty
    diagonal_only: bool = False

    def init(self, objective: Smooth, theta: NDArray[np.float64]) -> AdaGradState:
        """Return the state at theta, with its gradient."""
        return AdaGradState(
            theta=theta,
            gradient=self._gradient(objective, theta),
            squares=np.zeros_like(theta),
            window_start=theta.copy(),
        )

    def _gradient(self, objective: Smooth, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        gradient = objective.evaluate(theta)[1]
        return np.diag(np.diagonal(gradient)) if self.diagonal_only else gradient

    def residual(self, state: AdaGradState) -> float:
        """Return the KKT residual of the sampled gradient."""
        return float(self.penalty.subdiff_distance(state.theta, -state.gradient).max())

    def objective(self, state: AdaGradState) -> float:  # noqa: ARG002 - it is never computed
        """Return NaN, because the paper's method computes gradients only."""
        return float("nan")

    def step(self, objective: Smooth, state: AdaGradState) -> tuple[AdaGradState, int]:
        """Return the next state, and the number of evaluations, which is 1."""
        squares = state.squares + state.gradient**2
        # If the gradient of an entry was always zero, the entry does not move and is not penalised.
        step = np.divide(STEP, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0.0)
        moved = state.theta - step * state.gradient
        theta = moved if self.diagonal_only else self.penalty.prox(moved, step)
        taken = state.steps_taken + 1
        window_start, settled = state.window_start, False
        if taken % WINDOW == 0:
            settled = not self.diagonal_only and bool(np.abs(theta - window_start).max() < MOVED)
            window_start = theta.copy()
        gradient = self._gradient(objective, theta)
        return AdaGradState(theta, gradient, squares, window_start, taken, settled), 1
