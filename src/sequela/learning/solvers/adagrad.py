"""The paper's solver: proximal AdaGrad on sampled gradients (section 5), for comparison.

Every iteration takes the gradient over all samples, each set's by Metropolis-Hastings with the
informed proposal, M = 50 draws after 10 of burn-in. AdaGrad divides the step of each entry by the
root of the sum of its squared gradients so far; the L1 penalty is applied as a proximal step with
the same divisors (Duchi, Hazan and Singer 2011). The section gives no rule to stop; the published
program ends when no entry has moved by 0.03 over 200 iterations, or after 3000.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sequela.learning.penalties import OffDiagonalL1
    from sequela.learning.solvers.proximal_newton import Iterate

__all__ = ["adagrad"]

STEP = 1.0
WINDOW = 200
MOVED = 0.03


def adagrad(
    gradient_at: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    state: Iterate,
    penalty: OffDiagonalL1,
    *,
    max_iter: int,
    diagonal_only: bool = False,
    callback: Callable[[Iterate], bool] | None = None,
) -> Iterate:
    """Run proximal AdaGrad from `state`; `gradient_at` returns that of the mean log-likelihood.

    With `diagonal_only` the interactions stay as they are (the paper's first phase). The state's
    `steps` hold the sum of squared gradients and theta at the start of the window. Its gradient
    and residual are those of the theta that `callback` sees with them; at the end they are one
    step old, as another gradient would be needed.
    """
    if not state.steps:
        state.steps = [np.zeros_like(state.theta), state.theta.copy()]
    while state.iterations < max_iter:
        gradient = gradient_at(state.theta)
        if diagonal_only:
            gradient = np.diag(np.diagonal(gradient))
        state.gradient = -gradient
        state.residual = float(penalty.subdiff_distance(state.theta, gradient).max())
        if callback is not None and callback(state):
            state.message = state.message or "stopped by the caller"
            return state
        squares, window_start = state.steps
        squares = squares + gradient**2
        # No step, and so no penalty, where there was no gradient yet.
        step = np.divide(STEP, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0.0)
        moved = state.theta + step * gradient
        state.theta = moved if diagonal_only else penalty.prox(moved, step)
        state.iterations += 1
        state.evaluations += 1
        if state.iterations % WINDOW == 0:
            if np.abs(state.theta - window_start).max() < MOVED and not diagonal_only:
                state.converged = True
                state.message = f"no entry moved by {MOVED} over {WINDOW} iterations"
                return state
            window_start = state.theta.copy()
        state.steps = [squares, window_start]
    state.message = f"ended after max_iter={max_iter} iterations"
    return state
