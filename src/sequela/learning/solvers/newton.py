"""The quasi-Newton solver on a problem, of which some sets may be sampled.

Where all sets are exact it is `proximal_newton`. Otherwise: between two draws of orders the problem
is deterministic (`problem.Problem`) and `proximal_newton` solves it. When theta has moved so far
that few of the orders still count, or the solver has arrived, new orders are drawn at the new
theta, independent of those that it was fitted to. If the fresh gradient is optimal within its own
standard error, the orders are doubled, until the error is below the tolerance or the number of
orders at its limit: the Monte Carlo floor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sequela.learning.solvers.proximal_newton import Iterate, proximal_newton

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from sequela.learning.penalties import OffDiagonalL1
    from sequela.learning.problem import Problem

__all__ = ["FIRST_KEPT", "SIGMAS", "newton"]

FIRST_KEPT = 4
_MOST_KEPT = 64
_MOST_ROUNDS = 60
# With fewer effective orders than this share, weights are dominated by a few of them.
_LEAST_EFFECTIVE = 0.5
# The largest of many errors: about the 4-sigma point.
SIGMAS = 4.0


def newton(
    problem: Problem,
    state: Iterate,
    penalty: OffDiagonalL1,
    unit: NDArray[np.float64],
    *,
    tol: float,
    max_iter: int,
    callback: Callable[[Iterate], bool] | None = None,
) -> Iterate:
    """Minimise the problem's loss plus penalty from `state`, drawing new orders as theta moves.

    ``state.kept`` orders a chain are in use, and ``state.floor`` is left as the Monte Carlo error
    of the KKT residual: `SIGMAS` times the largest standard error of the gradient.
    """
    if not problem.large:
        return proximal_newton(
            problem.evaluate, state, penalty, unit, tol=tol, max_iter=max_iter, callback=callback
        )
    ended = False

    def watch(now: Iterate) -> bool:
        nonlocal ended
        ended = callback is not None and callback(now)
        return ended or problem.effective < _LEAST_EFFECTIVE

    while state.rounds < _MOST_ROUNDS:
        inner = max(tol, 0.1 * state.floor)
        state = proximal_newton(
            problem.evaluate, state, penalty, unit, tol=inner, max_iter=max_iter, callback=watch
        )
        state.rounds += 1
        arrived = state.converged
        if ended:
            return state
        fresh(problem, state, penalty)
        state.converged = arrived and state.residual <= max(tol, state.floor)
        if state.converged and (state.floor <= tol or state.kept >= _MOST_KEPT):
            state.message = (
                f"KKT residual {state.residual:.1e} on fresh orders, Monte Carlo floor "
                f"{state.floor:.1e} ({SIGMAS:.0f} standard errors)"
            )
            return state
        if arrived:
            state.kept = min(2 * state.kept, _MOST_KEPT)
        if state.iterations >= max_iter:
            break
    state.converged = False
    state.message = (
        f"KKT residual {state.residual:.1e} with Monte Carlo floor {state.floor:.1e} after "
        f"{state.iterations} iterations; raise max_iter"
    )
    return state


def fresh(problem: Problem, state: Iterate, penalty: OffDiagonalL1) -> None:
    """Draw new orders at the current theta and evaluate it again."""
    state.kept = max(state.kept, FIRST_KEPT)
    problem.draw(state.theta, state.kept)
    state.loss, state.gradient = problem.evaluate(state.theta)
    state.evaluations += 1
    state.objective = -state.loss - penalty.value(state.theta)
    state.residual = float(penalty.subdiff_distance(state.theta, -state.gradient).max())
    state.floor = float(SIGMAS * problem.gradient_error(state.theta).max())
