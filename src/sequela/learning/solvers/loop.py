"""The loop that runs a solver: it counts evaluations, draws new orders and decides when to stop.

A run ends when the distance of the gradient from the subdifferential (the KKT residual) is below
the tolerance. That theta has changed little is never a reason to end a run.

If sets are sampled, the objective is deterministic between two draws of orders. New orders are
drawn at the current theta in two cases: when theta has moved so far that the effective number of
orders is small, and when the solver has converged. The new orders are independent of the orders to
which theta was fitted. If theta is now an optimum within the standard error of the new gradient,
the number of orders is doubled. The run ends when this error is below the tolerance, or when the
number of orders is at its limit (the Monte Carlo floor).
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

# Number of orders per chain at the beginning. The objective sets the largest number.
FIRST_KEPT = 4
_MOST_ROUNDS = 60
# New orders are drawn if the effective number of orders, divided by their actual number, is below
# this value. The reason is that a few orders with large weights then determine the result.
_LEAST_EFFECTIVE = 0.5
# After each complete gradient at least this many zero entries become free, even if this makes
# evaluations slow.
_LEAST_ENTERING = 10
# The solver improves the free entries until their KKT residual is this share of the largest
# violation. Then the complete gradient is computed again.
_INNER_SHARE = 0.1
# The KKT residual of the free entries need not be smaller than this share of the tolerance of the
# fit.
_TIGHTEST = 0.5
# The Monte Carlo floor, in standard errors of an entry. The largest of the errors of many entries
# is about this large.
SIGMAS = 4.0


def _nobody(state: object, info: Info) -> bool:  # noqa: ARG001 - never ends the run
    return False


def begin(
    solver: ProximalNewton, objective: Objective, theta: NDArray[np.float64]
) -> tuple[NewtonState, Info]:
    """Prepare the objective, draw the first orders, and return the state at theta with its info."""
    free = solver.free_at_first(theta)
    objective.prepare(free)
    objective.draw(theta, FIRST_KEPT)
    state = solver.init(objective, theta)
    # Below, this error times SIGMAS becomes the floor. With the same orders, the KKT residual need
    # not become smaller than a tenth of the floor (`solve`). With a smaller residual, theta would
    # be fitted to the first orders more precisely than these orders determine theta.
    error = objective.gradient_error(theta) if objective.is_sampled else np.zeros(1)
    if objective.is_partial:
        state = replace(state, free=free)
        if solver.may_widen(state):
            # Every residual is below an infinite tolerance, so the first complete gradient is
            # computed immediately.
            state = replace(state, inner_tol=float("inf"))
    return state, Info(evaluations=1, floor=float(SIGMAS * error.max()))


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
        The first state and its info, from `begin` or from an earlier run.
    limits : Limits
        When to stop.
    watch : callable
        Called with every state and its info; if it returns True, the run ends.
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
                    # The quadratic model may be wrong. Discard it, and try a step without it.
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
    """Compute the complete gradient and draw new orders; set the status if the run ends.

    During a round, the steps leave out entries of the gradient that are slow to compute, and use
    the same orders of sampled sets.
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
    """Return whether another round would only repeat the last one.

    This is so if the last round has not changed the free entries, and its tolerance was already the
    smallest one.
    """
    same = (
        before.free is not None
        and after.free is not None
        and np.array_equal(before.free, after.free)
    )
    return same and before.inner_tol <= _TIGHTEST * limits.tol


def _enter(
    objective: Objective, free: NDArray[np.bool_], candidates: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Return the free entries, and as many additional candidates as can be evaluated quickly.

    The candidates with the largest violation come first. If few were added at a time, the search
    would be greedy and end in worse optima. If all were added at once, components would become so
    large that every evaluation would be slow.
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
    """Compute the complete gradient, and make the entries with the largest violation free.

    The returned info contains the KKT residual of all entries, which shows whether the fit has
    converged.
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
        # After `prepare`, some sets may be evaluated by another method than before. So draw new
        # orders, and evaluate theta again.
        objective.draw(state.theta, max(state.kept, FIRST_KEPT))
        loss, gradient = objective.evaluate(state.theta)
        state = replace(state, loss=loss, gradient=gradient)
    if not objective.is_partial:  # every gradient is complete
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
    """Return the status of a run with sampled sets after a new draw; RUNNING if it continues."""
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
    """Run AdaGrad, which computes no objective and has its own stopping rule.

    The parameters are those of `solve`.
    """
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
