"""Proximal quasi-Newton with a working set, for objectives that can be evaluated exactly.

Each step minimises a quadratic model of the loss plus the penalty itself. The model's Hessian is a
limited-memory BFGS matrix in compact form (Byrd, Nocedal and Schnabel 1994), the minimiser is found
by coordinate descent on a working set: the base rates, the interactions that are not zero, and
those whose gradient wants to leave zero. All others are zero and stay so, which is most of n^2.
Such methods are analysed by Scheinberg and Tang (2016). A backtracking line search on the true
objective makes every step a descent.

It ends when the distance of the gradient to the subdifferential (the KKT residual) is below the
tolerance, never because "theta moved little".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.descent import descend
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.linear_algebra import blas_on_one_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sequela.learning.penalties import OffDiagonalL1

__all__ = ["Iterate", "proximal_newton"]

_MEMORY = 12
_SUFFICIENT = 1e-4
_MOST_HALVINGS = 30
_SWEEPS = 60
# No entry of theta moves by more in one step: a rate changes by e^20.
_LONGEST = 20.0


@dataclass
class Iterate:
    """Where the solver stands: what the next step needs, and what a caller wants to know.

    `loss` is minus the mean log-likelihood, `gradient` its derivative, `objective` the penalised
    log-likelihood (to be maximised). `steps` and `changes` are the quasi-Newton memory. `floor` is
    the Monte Carlo error of the residual, `kept` the number of orders a chain, and `rounds` how
    often they were drawn, where sets are sampled.
    """

    theta: NDArray[np.float64]
    loss: float
    gradient: NDArray[np.float64]
    objective: float
    residual: float
    evaluations: int = 1
    iterations: int = 0
    steps: list[NDArray[np.float64]] = field(default_factory=list)
    changes: list[NDArray[np.float64]] = field(default_factory=list)
    message: str = ""
    converged: bool = False
    floor: float = 0.0
    kept: int = 0
    rounds: int = 0


def begin(
    evaluate: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
    theta: NDArray[np.float64],
    penalty: OffDiagonalL1,
) -> Iterate:
    """Evaluate the start."""
    loss, gradient = evaluate(theta)
    return Iterate(
        theta=theta,
        loss=loss,
        gradient=gradient,
        objective=-loss - penalty.value(theta),
        residual=float(penalty.subdiff_distance(theta, -gradient).max()),
    )


@blas_on_one_thread()
def proximal_newton(
    evaluate: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
    state: Iterate,
    penalty: OffDiagonalL1,
    unit: NDArray[np.float64],
    *,
    tol: float,
    max_iter: int,
    callback: Callable[[Iterate], bool] | None = None,
) -> Iterate:
    """Minimise loss + penalty from `state`; `evaluate` returns the loss and its gradient.

    `unit` scales every entry (about the inverse root of its curvature). `callback` sees every
    iterate and ends the run by returning True.
    """
    weights = penalty.weights(state.theta.shape[0])
    while True:
        state.residual = float(penalty.subdiff_distance(state.theta, -state.gradient).max())
        state.converged = state.residual <= tol
        if callback is not None and callback(state):
            state.message = state.message or "stopped by the caller"
            return state
        if state.converged:
            state.message = f"KKT residual {state.residual:.2e} is within the tolerance {tol:.0e}"
            return state
        if state.iterations >= max_iter:
            state.message = (
                f"KKT residual {state.residual:.2e} is above the tolerance {tol:.0e} after "
                f"max_iter={max_iter} iterations; raise max_iter or tol"
            )
            return state
        target = _model_minimum(state, weights, unit)
        if not _line_search(evaluate, state, penalty, target, unit):
            if state.steps:
                # The model may be to blame: forget it and try a plain proximal step.
                state.steps.clear()
                state.changes.clear()
                continue
            state.message = (
                f"no further ascent was found at KKT residual {state.residual:.2e}, the limit of "
                "the arithmetic"
            )
            return state


def _model_minimum(
    state: Iterate, weights: NDArray[np.float64], unit: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the minimiser of the quadratic model plus penalty."""
    theta = state.theta
    gradient = state.gradient
    working = np.nonzero(
        ((theta != 0.0) | (np.abs(gradient) > weights) | (weights == 0.0)).ravel()
    )[0]
    scale = unit.ravel()[working]
    z = theta.ravel()[working] / scale
    g = gradient.ravel()[working] * scale
    w = weights.ravel()[working] * scale
    gamma = 1.0
    Q = np.zeros((working.size, 0))
    P: NDArray[np.floating] = Q
    if state.steps:
        S = np.array(state.steps)
        Y = np.array(state.changes)
        sy = S @ Y.T
        gamma = float(Y[-1] @ Y[-1] / sy[-1, -1])
        count = len(sy)
        middle = np.zeros((2 * count, 2 * count))
        middle[:count, :count] = gamma * (S @ S.T)
        middle[:count, count:] = np.tril(sy, -1)
        middle[count:, :count] = middle[:count, count:].T
        np.fill_diagonal(middle[count:, count:], -np.diagonal(sy))
        Q = np.concatenate([gamma * S[:, working], Y[:, working]]).T.copy()
        P = np.linalg.solve(middle, Q.T).T.copy()
    curvature = np.maximum(gamma - np.einsum("ij,ij->i", Q, P), 1e-3 * gamma)
    d = np.zeros(working.size)
    call(
        descend, d, z, g, w, gamma, Q, P, curvature, np.zeros(Q.shape[1]), _SWEEPS,
        1e-3 * state.residual * float(scale.min(initial=1.0)),
    )  # fmt: skip
    # z + d, not theta + d * scale: what the model puts at zero must be exactly zero.
    target = theta.ravel().copy()
    target[working] = (z + d) * scale
    return target.reshape(theta.shape)


def _line_search(
    evaluate: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
    state: Iterate,
    penalty: OffDiagonalL1,
    target: NDArray[np.float64],
    unit: NDArray[np.float64],
) -> bool:
    """Move `state` towards `target` to where the objective is better; False if nowhere."""
    direction = target - state.theta
    old_penalty = penalty.value(state.theta)
    slope = float(np.sum(state.gradient * direction))
    slope += penalty.value(target) - old_penalty
    if slope >= 0.0:
        return False
    step = min(1.0, _LONGEST / max(float(np.abs(direction).max()), 1e-300))
    # Near the optimum gains drown in rounding; the KKT residual decides there, not they.
    rounding = 4.0 * np.finfo(float).eps * max(1.0, abs(state.loss))
    for _ in range(_MOST_HALVINGS):
        theta = target if step == 1.0 else state.theta + step * direction
        new_penalty = penalty.value(theta)
        state.evaluations += 1
        try:
            loss, gradient = evaluate(theta)
        except InputError:
            loss, gradient = np.inf, state.gradient  # out of the range of the arithmetic
        gain = state.loss + old_penalty - loss - new_penalty
        if np.isfinite(loss) and (
            gain >= -_SUFFICIENT * step * slope
            or (
                abs(gain) <= rounding
                and penalty.subdiff_distance(theta, -gradient).max() < state.residual
            )
        ):
            break
        step *= 0.5
    else:
        return False
    s = ((theta - state.theta) / unit).ravel()
    y = ((gradient - state.gradient) * unit).ravel()
    if s @ y > 1e-8 * np.sqrt((s @ s) * (y @ y)):
        state.steps.append(s)
        state.changes.append(y)
        del state.steps[:-_MEMORY], state.changes[:-_MEMORY]
    state.theta = theta
    state.loss = loss
    state.gradient = gradient
    state.objective = -loss - new_penalty
    state.iterations += 1
    return True
