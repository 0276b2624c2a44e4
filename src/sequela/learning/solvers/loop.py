"""The loop that runs a solver: one place that counts, watches, draws new orders and stops.

A run ends when the distance of the gradient to the subdifferential (the KKT residual) is below the
tolerance, never because "theta moved little".

Where sets are sampled, the objective is deterministic between two draws of orders. When theta has
moved so far that few of the orders still count, or the solver has arrived, new orders are drawn at
the new theta, independent of those that it was fitted to. If the fresh gradient is optimal within
its own standard error, the orders are doubled, until the error is below the tolerance or the number
of orders at its limit: the Monte Carlo floor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sequela.learning.solvers.contract import Info, Status
from sequela.support.linear_algebra import blas_on_one_thread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.learning.solvers.adagrad import AdaGrad, AdaGradState
    from sequela.learning.solvers.contract import Limits, Objective, Smooth, Watch
    from sequela.learning.solvers.proximal_newton import NewtonState, ProximalNewton

__all__ = ["FIRST_KEPT", "SIGMAS", "begin", "descend_by_gradients", "solve"]

# Orders per chain in use at first; the objective says how many there may be at most.
FIRST_KEPT = 4
_MOST_ROUNDS = 60
# With fewer effective orders than this share, weights are dominated by a few of them.
_LEAST_EFFECTIVE = 0.5
# Zero entries that may begin to move after a look at all of them, however slow that makes it.
_LEAST_ENTERING = 10
# How far the free entries are solved, as a share of the largest violation, before the next look.
_INNER_SHARE = 0.1
# And at most, as a share of the tolerance of the whole fit.
_TIGHTEST = 0.5
# The largest of many errors: about the 4-sigma point.
SIGMAS = 4.0


def _nobody(state: object, info: Info) -> bool:  # noqa: ARG001 - it watches nothing
    return False


def begin(
    solver: ProximalNewton, objective: Objective, theta: NDArray[np.float64]
) -> tuple[NewtonState, Info]:
    """Prepare the objective for the interactions of theta, draw the first orders, evaluate it."""
    free = solver.free_at_first(theta)
    objective.prepare(free)
    objective.draw(theta, FIRST_KEPT)
    state = solver.init(objective, theta)
    if objective.is_partial:
        state = replace(state, free=free)
        if solver.may_widen(state):
            # The first look at all entries comes at once.
            state = replace(state, inner_tol=float("inf"))
    return state, Info(evaluations=1)


def solve(
    solver: ProximalNewton,
    objective: Objective,
    start: tuple[NewtonState, Info],
    limits: Limits,
    watch: Watch[NewtonState] = _nobody,
) -> tuple[NewtonState, Info]:
    """Minimise loss plus penalty from `start`, a state with its info.

    Parameters
    ----------
    solver : ProximalNewton
        The solver.
    objective : Objective
        The smooth part of the objective.
    start : tuple of NewtonState and Info
        Where to begin, as `begin` or an earlier run gives it.
    limits : Limits
        When to stop.
    watch : callable
        Sees every state; True ends the run.
    """
    state, info = start
    with blas_on_one_thread():
        while info.status is Status.RUNNING:
            info = _look(solver, state, info)
            if watch(state, info):
                return state, replace(info, status=Status.INTERRUPTED)
            tol = max(limits.tol, 0.1 * info.floor, state.inner_tol)
            arrived = info.residual <= tol
            spent = info.iterations >= limits.max_iter
            if not (arrived or spent or objective.effective < _LEAST_EFFECTIVE):
                moved, evaluations = solver.step(objective, state, info.residual)
                info = replace(
                    info, evaluations=info.evaluations + evaluations,
                    iterations=info.iterations + (moved is not None),
                )  # fmt: skip
                if moved is not None:
                    state = moved
                    continue
                if state.steps:
                    # The quadratic model may be to blame: forget it and try a plain step.
                    state = state.forget()
                    continue
            state, info = _end_round(solver, objective, (state, info), limits, arrived=arrived)
    return state, info


def _end_round(
    solver: ProximalNewton,
    objective: Objective,
    reached: tuple[NewtonState, Info],
    limits: Limits,
    *,
    arrived: bool,
) -> tuple[NewtonState, Info]:
    """Look at what the steps of a round left aside; the status says whether to go on.

    That is the entries of the gradient that are expensive, and fresh orders of sampled sets.
    """
    state, info = reached
    spent = info.iterations >= limits.max_iter
    if solver.may_widen(state):
        before = state
        state, info = _widen(solver, objective, state, info, limits)
        arrived = info.residual <= max(limits.tol, 0.1 * info.floor)
        if not (arrived or spent or _is_stuck(before, state, limits)):
            return state, info
    if not objective.is_sampled:
        return state, replace(info, status=_ending(arrived=arrived, spent=spent))
    state, info = _fresh(solver, objective, state, info)
    status = _sampled_ending(state, info, limits, arrived=arrived, most_kept=objective.most_kept)
    if arrived and status is Status.RUNNING:
        state = replace(state, kept=min(2 * state.kept, objective.most_kept))
    return state, replace(info, status=status)


def _is_stuck(before: NewtonState, after: NewtonState, limits: Limits) -> bool:
    """Tell whether going on would change nothing: no new entries, and no tighter tolerance."""
    same = (
        before.free is not None
        and after.free is not None
        and np.array_equal(before.free, after.free)
    )
    return same and before.inner_tol <= _TIGHTEST * limits.tol


def _enter(
    objective: Objective, free: NDArray[np.bool_], candidates: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Let as many candidates move as the objective can evaluate quickly, the worst first.

    Few at a time would be a greedy search, which ends in worse optima; all at once make components
    so large that every evaluation is slow.
    """

    def with_first(count: int) -> NDArray[np.bool_]:
        wider = free.copy()
        wider.ravel()[candidates[:count]] = True
        return wider

    low, high = min(_LEAST_ENTERING, candidates.size), candidates.size
    if not objective.is_affordable(with_first(high)):
        while high - low > max(1, low // 8):
            middle = (low + high) // 2
            if objective.is_affordable(with_first(middle)):
                low = middle
            else:
                high = middle
        high = low
    return with_first(high)


def _widen(
    solver: ProximalNewton, objective: Objective, state: NewtonState, info: Info, limits: Limits
) -> tuple[NewtonState, Info]:
    """Look at all entries of the gradient, and let the most violated ones move.

    The residual of the info is then that of all entries: what a fit is certified by.
    """
    loss, gradient = objective.evaluate(state.theta, full=True)
    state = replace(state, loss=loss, gradient=gradient, free=None)
    info = _look(solver, state, replace(info, evaluations=info.evaluations + 1))
    free = _enter(objective, *solver.violated(state))
    if info.residual > limits.tol and objective.is_slower_than_orders(free):
        free = np.isfinite(solver.penalty.weights(free.shape[0]))
    sampled = objective.is_sampled
    objective.prepare(free)
    if objective.is_sampled or sampled:
        # Some sets may be evaluated in another way now.
        objective.draw(state.theta, max(state.kept, FIRST_KEPT))
        loss, gradient = objective.evaluate(state.theta)
        state = replace(state, loss=loss, gradient=gradient)
    if not objective.is_partial:  # all entries of the gradient come with the others
        return replace(state, free=None, inner_tol=0.0), info
    inner = max(_TIGHTEST * limits.tol, _INNER_SHARE * info.residual)
    return replace(state, free=free, inner_tol=inner), info


def _look(solver: ProximalNewton, state: NewtonState, info: Info) -> Info:
    """Return the info with the objective and the KKT residual at a state."""
    return replace(info, objective=solver.objective(state), residual=solver.residual(state))


def _ending(*, arrived: bool, spent: bool) -> Status:
    if arrived:
        return Status.CONVERGED
    return Status.ITERATION_LIMIT if spent else Status.NO_ASCENT


def _fresh(
    solver: ProximalNewton, objective: Objective, state: NewtonState, info: Info
) -> tuple[NewtonState, Info]:
    """Draw new orders at the current theta and evaluate it again."""
    kept = max(state.kept, FIRST_KEPT)
    objective.draw(state.theta, kept)
    loss, gradient = objective.evaluate(state.theta)
    state = replace(state, loss=loss, gradient=gradient, kept=kept, rounds=state.rounds + 1)
    info = _look(solver, state, replace(info, evaluations=info.evaluations + 1))
    return state, replace(info, floor=float(SIGMAS * objective.gradient_error(state.theta).max()))


def _sampled_ending(
    state: NewtonState, info: Info, limits: Limits, *, arrived: bool, most_kept: int
) -> Status:
    """Return how a run with sampled sets ends after a fresh draw; RUNNING if it goes on."""
    optimal = arrived and info.residual <= max(limits.tol, info.floor)
    if optimal and (info.floor <= limits.tol or state.kept >= most_kept):
        return Status.AT_MONTE_CARLO_FLOOR
    if info.iterations >= limits.max_iter or state.rounds >= _MOST_ROUNDS:
        return Status.ABOVE_MONTE_CARLO_FLOOR
    return Status.RUNNING


def descend_by_gradients(
    solver: AdaGrad,
    objective: Smooth,
    start: tuple[AdaGradState, Info],
    limits: Limits,
    watch: Watch[AdaGradState] | None = None,
) -> tuple[AdaGradState, Info]:
    """Run AdaGrad, which has no value to compare and ends by its own rule; see `solve`."""
    state, info = start
    while True:
        info = replace(info, residual=solver.residual(state))
        if watch is not None and watch(state, info):
            return state, replace(info, status=Status.INTERRUPTED)
        if state.settled:
            return state, replace(info, status=Status.SETTLED)
        if info.iterations >= limits.max_iter:
            return state, replace(info, status=Status.EPOCHS_DONE)
        state, evaluations = solver.step(objective, state)
        info = replace(
            info, iterations=info.iterations + 1, evaluations=info.evaluations + evaluations
        )
