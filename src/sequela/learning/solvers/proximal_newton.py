"""Proximal quasi-Newton with a working set.

Each step minimises a quadratic model of the loss plus the exact penalty. The Hessian of the model
is a limited-memory BFGS matrix in compact form (Byrd, Nocedal and Schnabel 1994). The minimiser is
found by coordinate descent on a working set. The working set contains the base rates, the
interactions that are not zero, and the zero interactions whose gradient exceeds the penalty. All
other interactions, which are most of the n^2 entries, stay zero. Scheinberg and Tang (2016) analyse
such methods. A backtracking line search ensures that every step decreases the true objective, as
far as rounding errors allow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.newton import largest_violation, minimise_model
from sequela.support.jit import call

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.learning.penalties import Penalty
    from sequela.learning.solvers.contract import Smooth

__all__ = ["NewtonState", "ProximalNewton"]

_MEMORY = 12
_SUFFICIENT = 1e-4
_MOST_HALVINGS = 30
_SWEEPS = 60
_ALL = np.zeros(0, dtype=np.bool_)
# Near the optimum, the difference of two losses consists of rounding errors only. If the gain of a
# step is below this share of the loss, the gain is computed from the gradients at both ends (Hager
# and Zhang 2005, whose share is 1e-6).
_UNSURE = 1e-10
# If a step changes the objective by less than this share of the loss, the change may be a rounding
# error. The step is then also accepted if it decreases the KKT residual.
_ROUNDING = 4.0 * float(np.finfo(float).eps)
# Largest change of an entry of theta in one step. Such a change multiplies a rate by e^20.
_LONGEST = 20.0


@dataclass(frozen=True)
class NewtonState:
    """The state of the solver between two steps.

    Attributes
    ----------
    theta : array (n, n)
        The current theta.
    loss, gradient : float, array
        Minus the mean log-likelihood at theta, and its derivative.
    steps, changes : tuples of arrays
        The memory of the quasi-Newton method: the last steps, and the changes of the gradient along
        them.
    kept, rounds : int
        If sets are sampled: the current number of orders per chain, and how often new orders were
        drawn.
    free : array (n, n) of bool or None
        The entries that may change. The gradient is complete for these entries. None means all
        entries.
    inner_tol : float
        The KKT residual of the free entries at which the complete gradient is computed again.
    """

    theta: NDArray[np.float64]
    loss: float
    gradient: NDArray[np.float64]
    steps: tuple[NDArray[np.float64], ...] = ()
    changes: tuple[NDArray[np.float64], ...] = ()
    kept: int = 0
    rounds: int = 0
    free: NDArray[np.bool_] | None = None
    inner_tol: float = 0.0

    def forget(self) -> NewtonState:
        """Return the state without its quasi-Newton memory."""
        return replace(self, steps=(), changes=())


@dataclass(frozen=True)
class ProximalNewton:
    """The proximal quasi-Newton solver.

    Attributes
    ----------
    penalty : Penalty
        The penalty on the entries of theta.
    unit : array (n, n)
        The scale of every entry of theta, from `learning.starts.units`.
    """

    penalty: Penalty
    unit: NDArray[np.float64]

    def init(self, objective: Smooth, theta: NDArray[np.float64]) -> NewtonState:
        """Return the state at theta."""
        loss, gradient = objective.evaluate(theta)
        return NewtonState(theta=theta, loss=loss, gradient=gradient)

    def residual(self, state: NewtonState) -> float:
        """Return the KKT residual; it is infinite if the loss is infinite and has no gradient."""
        if not np.isfinite(state.loss):
            return float("inf")
        weights = self.penalty.weights(state.theta.shape[0])
        free = _ALL if state.free is None else state.free.ravel()
        largest = call(
            largest_violation, state.theta.ravel(), state.gradient.ravel(), weights.ravel(), free
        )
        return float(largest)

    def objective(self, state: NewtonState) -> float:
        """Return the penalised log-likelihood."""
        return -state.loss - self.penalty.value(state.theta)

    def violated(self, state: NewtonState) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Return the free entries, and the positions of zero entries that violate optimality.

        An entry is free if it is not zero or not penalised. The positions are those in the
        flattened theta, and the largest violation comes first. The gradient in `state` must be
        complete.
        """
        weights = self.penalty.weights(state.theta.shape[0])
        free: NDArray[np.bool_] = (state.theta != 0.0) | (weights == 0.0)
        distance = self.penalty.subdiff_distance(state.theta, -state.gradient)
        violation = np.where(free | ~np.isfinite(weights), 0.0, distance).ravel()
        order = np.argsort(-violation, kind="stable")
        return free, order[: int(np.count_nonzero(violation))]

    def free_at_first(self, theta: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return the entries that are free at the beginning: they are not zero or not penalised.

        If the penalty restricts theta to a support, all entries of the support are free.
        """
        weights = self.penalty.weights(theta.shape[0])
        allowed = np.isfinite(weights)
        present: NDArray[np.bool_] = (theta != 0.0) | (weights == 0.0)
        return present if allowed.all() or self.penalty.pinned is not None else allowed

    def may_widen(self, state: NewtonState) -> bool:
        """Return whether the penalty allows changes of some entries that are not free."""
        if state.free is None:
            return False
        weights = self.penalty.weights(state.theta.shape[0])
        return bool((~state.free & np.isfinite(weights)).any())

    def step(
        self, objective: Smooth, state: NewtonState, residual: float | None = None
    ) -> tuple[NewtonState | None, int]:
        """Return the next state (None if there is no lower point) and the number of evaluations.

        `residual` is the KKT residual of the state, if it is known.
        """
        residual = self.residual(state) if residual is None else residual
        target, slope, farthest = self._model_minimum(state, residual)
        whole = self._charge(state.theta, target)
        slope += whole
        if slope >= 0.0:
            return None, 0
        size = min(1.0, _LONGEST / max(farthest, 1e-300))
        scale = max(1.0, abs(state.loss))
        for evaluations in range(1, _MOST_HALVINGS + 1):
            theta = target if size == 1.0 else state.theta + size * (target - state.theta)
            # The loss is infinite if theta is out of the range of the arithmetic.
            loss, gradient = objective.evaluate(theta)
            charge = whole if size == 1.0 else self._charge(state.theta, theta)
            gain = state.loss - loss - charge
            rounded = abs(gain) <= _ROUNDING * scale
            if abs(gain) <= _UNSURE * scale:
                gain = _gain_by_gradients(state, theta, gradient) - charge
            if np.isfinite(loss) and (
                gain >= -_SUFFICIENT * size * slope
                or (
                    rounded
                    and self.residual(replace(state, theta=theta, gradient=gradient)) < residual
                )
            ):
                return self._moved(state, theta, loss, gradient), evaluations
            size *= 0.5
        return None, _MOST_HALVINGS

    def _charge(self, before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
        """Return the increase of the penalty from `before` to `after`.

        Only entries that differ are added up, because the difference of two values of the whole
        penalty would have a larger rounding error.
        """
        weights = self.penalty.weights(before.shape[0])
        moved = before != after
        return float(weights[moved] @ (np.abs(after[moved]) - np.abs(before[moved])))

    def _moved(
        self,
        state: NewtonState,
        theta: NDArray[np.float64],
        loss: float,
        gradient: NDArray[np.float64],
    ) -> NewtonState:
        """Return the state at theta, with the move added to the quasi-Newton memory."""
        s = ((theta - state.theta) / self.unit).ravel()
        change = gradient - state.gradient
        if state.free is not None:
            # For an entry that is not free, one of the two gradients may be incomplete.
            change = np.where(state.free, change, 0.0)
        if self.penalty.pinned is not None:
            # If the changes of the gradient at fixed entries were included, the steps of the other
            # entries would be shorter.
            change = np.where(self.penalty.pinned, 0.0, change)
        y = (change * self.unit).ravel()
        steps, changes = state.steps, state.changes
        if s @ y > 1e-8 * np.sqrt((s @ s) * (y @ y)):
            steps = (*steps, s)[-_MEMORY:]
            changes = (*changes, y)[-_MEMORY:]
        # Name all fields: `replace` would take three times as long at every step.
        return NewtonState(
            theta=theta, loss=loss, gradient=gradient, steps=steps, changes=changes,
            kept=state.kept, rounds=state.rounds, free=state.free, inner_tol=state.inner_tol,
        )  # fmt: skip

    def _model_minimum(
        self, state: NewtonState, residual: float
    ) -> tuple[NDArray[np.float64], float, float]:
        """Return (minimiser, slope, largest change) for the quadratic model plus penalty.

        "slope" is the slope of the loss at theta in the direction of the minimiser. "largest
        change" is the largest absolute difference between an entry of the minimiser and of theta.
        """
        theta = state.theta
        pairs = np.array(state.steps + state.changes) if state.steps else np.zeros((0, theta.size))
        free = _ALL if state.free is None else state.free.ravel()
        if self.penalty.pinned is not None:
            moving = ~self.penalty.pinned.ravel()
            free = moving if state.free is None else free & moving
        target = np.empty(theta.shape)
        slope, farthest = call(
            minimise_model, theta.ravel(), state.gradient.ravel(),
            self.penalty.weights(theta.shape[0]).ravel(), self.unit.ravel(), free, pairs,
            pairs @ pairs.T, residual, _SWEEPS, target.ravel(),
        )  # fmt: skip
        return target, slope, farthest


def _gain_by_gradients(
    state: NewtonState, theta: NDArray[np.float64], gradient: NDArray[np.float64]
) -> float:
    """Return the decrease of the loss in a step to theta, from the gradients at both ends.

    The mean of the two gradients is multiplied by the step. The result is exact if the loss is
    quadratic. Its rounding error is proportional to the length of the step, while the rounding
    error of a difference of two losses is proportional to the loss.
    """
    step = theta - state.theta
    moved = step != 0.0  # the gradients for other entries may be incomplete
    return -0.5 * float((state.gradient[moved] + gradient[moved]) @ step[moved])
