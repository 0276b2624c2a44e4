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

from sequela.learning.solvers.contract import Info, Status
from sequela.support.linear_algebra import blas_on_one_thread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sequela.learning.solvers.adagrad import AdaGrad, AdaGradState
    from sequela.learning.solvers.contract import Limits, SampledObjective, Smooth, Watch
    from sequela.learning.solvers.proximal_newton import NewtonState, ProximalNewton

__all__ = ["FIRST_KEPT", "SIGMAS", "begin", "descend_by_gradients", "solve"]

# Orders per chain in use: at first, and at most.
FIRST_KEPT = 4
_MOST_KEPT = 64
_MOST_ROUNDS = 60
# With fewer effective orders than this share, weights are dominated by a few of them.
_LEAST_EFFECTIVE = 0.5
# The largest of many errors: about the 4-sigma point.
SIGMAS = 4.0


def begin(
    solver: ProximalNewton, objective: SampledObjective, theta: NDArray[np.float64]
) -> tuple[NewtonState, Info]:
    """Draw the first orders at theta, where any set is sampled, and evaluate it."""
    objective.draw(theta, FIRST_KEPT)
    return solver.init(objective, theta), Info(evaluations=1)


def solve(
    solver: ProximalNewton,
    objective: SampledObjective,
    start: tuple[NewtonState, Info],
    limits: Limits,
    watch: Watch[NewtonState] | None = None,
) -> tuple[NewtonState, Info]:
    """Minimise loss plus penalty from `start`, a state with its info.

    Parameters
    ----------
    solver : ProximalNewton
        The solver.
    objective : SampledObjective
        The smooth part of the objective.
    start : tuple of NewtonState and Info
        Where to begin, as `begin` or an earlier run gives it.
    limits : Limits
        When to stop.
    watch : callable or None
        Sees every state; True ends the run.
    """
    state, info = start
    with blas_on_one_thread():
        while True:
            info = _look(solver, state, info)
            if watch is not None and watch(state, info):
                return state, replace(info, status=Status.INTERRUPTED)
            tol = max(limits.tol, 0.1 * info.floor)
            arrived = info.residual <= tol
            spent = info.iterations >= limits.max_iter
            stale = objective.effective < _LEAST_EFFECTIVE
            if not (arrived or spent or stale):
                moved, evaluations = solver.step(objective, state)
                info = replace(info, evaluations=info.evaluations + evaluations)
                if moved is not None:
                    state, info = moved, replace(info, iterations=info.iterations + 1)
                    continue
                if state.steps:
                    # The quadratic model may be to blame: forget it and try a plain step.
                    state = state.forget()
                    continue
            if not objective.is_sampled:
                status = _ending(arrived=arrived, spent=spent)
                return state, replace(info, status=status)
            state, info = _fresh(solver, objective, state, info)
            status = _sampled_ending(state, info, limits, arrived=arrived)
            if status is not Status.RUNNING:
                return state, replace(info, status=status)
            if arrived:
                state = replace(state, kept=min(2 * state.kept, _MOST_KEPT))


def _look(solver: ProximalNewton, state: NewtonState, info: Info) -> Info:
    """Return the info with the objective and the KKT residual at a state."""
    return replace(info, objective=solver.objective(state), residual=solver.residual(state))


def _ending(*, arrived: bool, spent: bool) -> Status:
    if arrived:
        return Status.CONVERGED
    return Status.ITERATION_LIMIT if spent else Status.NO_ASCENT


def _fresh(
    solver: ProximalNewton, objective: SampledObjective, state: NewtonState, info: Info
) -> tuple[NewtonState, Info]:
    """Draw new orders at the current theta and evaluate it again."""
    kept = max(state.kept, FIRST_KEPT)
    objective.draw(state.theta, kept)
    loss, gradient = objective.evaluate(state.theta)
    state = replace(state, loss=loss, gradient=gradient, kept=kept, rounds=state.rounds + 1)
    info = _look(solver, state, replace(info, evaluations=info.evaluations + 1))
    return state, replace(info, floor=float(SIGMAS * objective.gradient_error(state.theta).max()))


def _sampled_ending(state: NewtonState, info: Info, limits: Limits, *, arrived: bool) -> Status:
    """Return how a run with sampled sets ends after a fresh draw; RUNNING if it goes on."""
    optimal = arrived and info.residual <= max(limits.tol, info.floor)
    if optimal and (info.floor <= limits.tol or state.kept >= _MOST_KEPT):
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
