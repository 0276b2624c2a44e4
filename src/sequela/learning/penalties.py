"""Penalties on interactions: value, proximal step, and how far a gradient is from optimal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sequela.support.errors import InputError
from sequela.support.validation import is_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["OffDiagonalL1", "OnSupport", "Penalty"]


class Penalty(Protocol):
    """A weighted L1 penalty on the entries of theta; what a solver needs of it.

    The test ``tests/learning/test_penalties.py`` holds every penalty to the relations between
    these functions.
    """

    def weights(self, n: int) -> NDArray[np.float64]:
        """Return the weight of each entry: 0 is free, infinity keeps an entry at zero."""
        ...

    def value(self, theta: NDArray[np.float64]) -> float:
        """Return the penalty of theta."""
        ...

    def prox(
        self, theta: NDArray[np.float64], step: float | NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the minimiser of ``|x - theta|^2 / (2 step) + penalty(x)``."""
        ...

    def subdiff_distance(
        self, theta: NDArray[np.float64], gradient: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return for each entry how far `gradient` is from the penalty's subdifferential.

        `gradient` is that of the log-likelihood, to be maximised: at an optimum it is 0 where the
        weight is 0, the weight times the sign of a non-zero entry, and between minus the weight
        and the weight where the entry is zero. The largest distance is the KKT residual.
        """
        ...


def _soft_threshold(
    theta: NDArray[np.float64], threshold: NDArray[np.float64]
) -> NDArray[np.float64]:
    shrunk: NDArray[np.float64] = np.sign(theta) * np.maximum(np.abs(theta) - threshold, 0.0)
    return shrunk


@lru_cache(maxsize=4)
def _equal_weights(strength: float, n: int) -> NDArray[np.float64]:
    """Return equal weights off the diagonal, read-only: solvers ask several times per step."""
    weights = np.full((n, n), strength)
    np.fill_diagonal(weights, 0.0)
    weights.flags.writeable = False
    return weights


@dataclass(frozen=True)
class OffDiagonalL1:
    """`strength` times the sum of the absolute interactions; base rates are free (eq. 3).

    Examples
    --------
    >>> penalty = OffDiagonalL1(0.5)
    >>> theta = np.array([[-1.0, 2.0], [0.0, -3.0]])
    >>> penalty.value(theta)
    1.0
    >>> penalty.prox(theta, 1.0).tolist()
    [[-1.0, 1.5], [0.0, -3.0]]
    """

    strength: float

    def __post_init__(self) -> None:
        if not (is_number(self.strength) and 0.0 <= self.strength < np.inf):
            raise InputError(
                f"penalty is {self.strength!r}; expected a finite number of at least 0 "
                "(the paper uses 0.01)"
            )

    def weights(self, n: int) -> NDArray[np.float64]:
        """Return the weight of each entry: `strength`, and 0 on the diagonal."""
        return _equal_weights(float(self.strength), n)

    def value(self, theta: NDArray[np.float64]) -> float:
        """Return the penalty of theta."""
        size = np.abs(theta)
        return float(self.strength * (size.sum() - size.trace()))

    def prox(
        self, theta: NDArray[np.float64], step: float | NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the minimiser of ``|x - theta|^2 / (2 step) + penalty(x)``: soft thresholding."""
        return _soft_threshold(theta, self.weights(theta.shape[0]) * step)

    def subdiff_distance(
        self, theta: NDArray[np.float64], gradient: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return for each entry how far `gradient` is from the penalty's subdifferential."""
        weights = self.weights(theta.shape[0])
        away = np.abs(gradient - weights * np.sign(theta))
        distance: NDArray[np.float64] = np.where(
            (theta == 0.0) & (weights > 0.0), np.maximum(np.abs(gradient) - weights, 0.0), away
        )
        return distance


@dataclass(frozen=True)
class OnSupport:
    """`strength` times the absolute interactions of `support`; all others stay at zero.

    Examples
    --------
    >>> penalty = OnSupport(np.array([[True, True], [False, True]]))
    >>> penalty.prox(np.array([[-1.0, 2.0], [3.0, -3.0]]), 1.0).tolist()
    [[-1.0, 2.0], [0.0, -3.0]]
    """

    support: NDArray[np.bool_]
    strength: float = 0.0

    def weights(self, n: int) -> NDArray[np.float64]:
        """Return the weight of each entry: infinite outside the support, 0 on the diagonal."""
        weights = np.where(self.support, float(self.strength), np.inf)
        weights[np.arange(n), np.arange(n)] = 0.0
        return weights

    def value(self, theta: NDArray[np.float64]) -> float:
        """Return the penalty of theta; infinite if an entry outside the support is not zero."""
        off_support = ~self.support.copy()
        np.fill_diagonal(off_support, val=False)
        if theta[off_support].any():
            return np.inf
        return OffDiagonalL1(self.strength).value(theta)

    def prox(
        self, theta: NDArray[np.float64], step: float | NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the minimiser of ``|x - theta|^2 / (2 step) + penalty(x)``."""
        weights = self.weights(theta.shape[0])
        # Zero steps leave even infinite weights without an effect.
        threshold = np.where(np.asarray(step) > 0.0, weights, 0.0) * np.where(weights > 0, step, 1)
        return _soft_threshold(theta, threshold)

    def subdiff_distance(
        self, theta: NDArray[np.float64], gradient: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return how far `gradient` is from the subdifferential; outside the support it is 0."""
        distance = OffDiagonalL1(self.strength).subdiff_distance(theta, gradient)
        return np.where(self.support | np.eye(len(theta), dtype=bool), distance, 0.0)
