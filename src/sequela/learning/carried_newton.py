"""Minimise many similar smooth functions by quasi-Newton steps that share one estimated Hessian.

The profile of an order consists of hundreds of fits that differ little. Each fit holds the order of
a pair of items near a target (`sequela.questions.order_profile`). From one fit to the next, only
the target changes, or the pair, or a few more interactions become free. The log-likelihood is the
same function in all fits. Therefore one estimate of its Hessian is kept from fit to fit, and every
step improves it (BFGS, damped as by Powell 1978). A part of the function whose Hessian is known
(`Quadratic`) is added exactly. Examples are a prior, or a quadratic term (a "spring") that pulls
the order towards its target.

A fit ends when one more step is predicted to improve the function by less than a tolerance. The
tolerance is in units of the function, because profiles compare values. A small gradient alone would
not be enough: along directions that the data hardly determine, the value can still be far from its
optimum. A small predicted improvement alone would not be enough either, because the prediction is
too small if the estimated Hessian is too large. Therefore the gradient must be small as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sequela.support.linear_algebra import blas_on_one_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["CarriedNewton", "Ends", "Found", "Quadratic"]

# After damping, the curvature along a step is at least this share of the curvature that the old
# estimate has along this step.
_DAMPING = 0.2
_SUFFICIENT = 1e-4
_SHORTEST = 1e-6
# Largest change of a parameter in one step.
_LONGEST = 5.0


class Quadratic(Protocol):
    """A part of the function whose Hessian, or a good approximation of it, is known."""

    def evaluate(
        self, x: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Return value, gradient and a positive semidefinite Hessian."""
        ...


@dataclass(frozen=True)
class Ends:
    """When a minimisation stops.

    Attributes
    ----------
    tol, steepest : float
        Stop when one more step is predicted to improve the function by at most `tol`, and no entry
        of the gradient is larger than `steepest`.
    max_iter : int
        Largest number of steps.
    arrived : callable or None
        Called with the parameters and the value after each step. If it returns True, the
        minimisation ends, for example because the caller already knows this minimum.
    """

    tol: float
    steepest: float
    max_iter: int = 60
    arrived: Callable[[NDArray[np.float64], float], bool] | None = None


@dataclass(frozen=True)
class Found:
    """The result of a minimisation.

    Attributes
    ----------
    x : array
        The parameters.
    value : float
        The value of the whole function at `x`.
    left : float
        The predicted improvement of the function by one more step.
    evaluations : int
        Number of evaluations of `loss`, the part without a known Hessian.
    """

    x: NDArray[np.float64]
    value: float
    left: float
    evaluations: int


class CarriedNewton:
    """An estimated Hessian that is kept from one minimisation to the next and improved by each.

    Parameters
    ----------
    information : array
        The first estimate of the diagonal of the Hessian, with one entry for every parameter.

    Examples
    --------
    >>> class Prior:
    ...     def evaluate(self, x):
    ...         return 0.5 * float(x @ x), x, np.eye(x.size)
    >>> newton = CarriedNewton(np.ones(3))
    >>> def loss(x):
    ...     return 2.0 * float((x - 1.0) @ (x - 1.0)), 4.0 * (x - 1.0)
    >>> found = newton.minimise(
    ...     loss, Prior(), np.array([0, 2]), np.zeros(2), Ends(tol=1e-9, steepest=1e-4)
    ... )
    >>> found.x.round(3).tolist()
    [0.8, 0.8]
    """

    def __init__(self, information: NDArray[np.float64]) -> None:
        self._information = np.maximum(information.ravel(), 1e-12)
        self._places = np.zeros(0, dtype=np.int64)
        self._hessian = np.zeros((0, 0))

    def minimise(
        self,
        loss: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
        known: Quadratic,
        places: NDArray[np.int64],
        start: NDArray[np.float64],
        ends: Ends,
    ) -> Found | None:
        """Minimise `loss` plus `known` over the parameters at `places`.

        Parameters
        ----------
        loss : callable
            Returns the value and the gradient of the part without a known Hessian. The value is
            infinite if the parameters are out of range.
        known : Quadratic
            The part with a known Hessian.
        places : array of int
            The positions of the free parameters among all parameters, in ascending order.
        start : array
            The first values of the free parameters.
        ends : Ends
            When to stop.

        Returns
        -------
        Found or None
            None if the start is out of range.
        """
        with blas_on_one_thread():
            rows = self._rows(places)
            hessian = self._hessian[np.ix_(rows, rows)]
            x = start.copy()
            value, slope = loss(x)
            evaluations = 1
            if not np.isfinite(value):
                return None
            more, pull, stiff = known.evaluate(x)
            left = np.inf
            for _ in range(ends.max_iter):
                gradient = slope + pull
                step = -np.linalg.solve(hessian + stiff, gradient)
                left = -0.5 * float(gradient @ step)
                if left <= ends.tol and np.abs(gradient).max() <= ends.steepest:
                    break
                longest = float(np.abs(step).max())
                length = min(1.0, _LONGEST / longest)
                moved = None
                while length * longest > _SHORTEST:
                    trial = x + length * step
                    new_value, new_slope = loss(trial)
                    evaluations += 1
                    new_more, new_pull, new_stiff = known.evaluate(trial)
                    gain = value + more - new_value - new_more
                    if gain >= 2.0 * _SUFFICIENT * length * left:
                        moved = trial
                        break
                    length *= 0.3
                if moved is None:
                    break
                _update(self._hessian, rows, moved - x, new_slope - slope)
                hessian = self._hessian[np.ix_(rows, rows)]
                x, value, slope = moved, new_value, new_slope
                more, pull, stiff = new_more, new_pull, new_stiff
                if ends.arrived is not None and ends.arrived(x, value + more):
                    break
        return Found(x, value + more, left, evaluations)

    def _rows(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the estimated Hessian that belong to the parameters at `places`.

        Parameters that were not free in any earlier fit are added to the estimate first. Their part
        of the estimate is diagonal.
        """
        new = np.setdiff1d(places, self._places)
        if new.size:
            size = self._places.size
            hessian = np.diag(self._information[np.concatenate([self._places, new])])
            hessian[:size, :size] = self._hessian
            self._places = np.concatenate([self._places, new])
            self._hessian = hessian
        order = np.argsort(self._places)
        return order[np.searchsorted(self._places, places, sorter=order)].astype(np.int64)


def _update(
    hessian: NDArray[np.float64],
    rows: NDArray[np.int64],
    step: NDArray[np.float64],
    change: NDArray[np.float64],
) -> None:
    """Update the estimated Hessian in place, from a step and the change of the gradient.

    Only the parameters of `rows` have moved. The change of the gradient is not known for other
    parameters, so it is taken from the estimate.
    """
    images = hessian[:, rows] @ step
    image = images[rows]
    expected = float(step @ image)
    actual = float(step @ change)
    if not expected > 0.0:
        return
    if actual < _DAMPING * expected:
        # Powell's damping keeps the estimate positive definite, although the loss is not convex.
        share = (1.0 - _DAMPING) * expected / (expected - actual)
        change = share * change + (1.0 - share) * image
        actual = float(step @ change)
    changes = images.copy()
    changes[rows] = change
    hessian += np.outer(changes, changes) / actual - np.outer(images, images) / expected
