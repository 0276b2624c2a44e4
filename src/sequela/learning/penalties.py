"""Penalties on interactions: value, proximal step, and distance from optimality."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sequela.support.errors import InputError
from sequela.support.naming import argument
from sequela.support.validation import is_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["OffDiagonalL1", "OnSupport", "Penalty", "WithFixed", "with_fixed"]


class Penalty(Protocol):
    """The methods of a weighted L1 penalty on the entries of theta.

    ``tests/learning/test_penalties.py`` checks the relations between these methods for every
    penalty.
    """

    @property
    def pinned(self) -> NDArray[np.bool_] | None:
        """The entries that are fixed at a given value. None if no entry is fixed."""
        ...

    def weights(self, n: int) -> NDArray[np.float64]:
        """Return the weight of each entry.

        An entry with weight 0 is not penalised. An entry with an infinite weight never changes.
        """
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
        """Return the distance of each entry of `gradient` from the penalty's subdifferential.

        `gradient` is the gradient of the log-likelihood, which is maximised. An optimum has these
        properties: If the weight of an entry is 0, its derivative is 0. If the weight is positive
        and the entry is not zero, its derivative is weight * sign(entry). If the entry is zero, its
        derivative is between -weight and weight. The largest distance of an entry is the KKT
        residual.
        """
        ...


def _soft_threshold(
    theta: NDArray[np.float64], threshold: NDArray[np.float64]
) -> NDArray[np.float64]:
    shrunk: NDArray[np.float64] = np.sign(theta) * np.maximum(np.abs(theta) - threshold, 0.0)
    return shrunk


@lru_cache(maxsize=4)
def _equal_weights(strength: float, n: int) -> NDArray[np.float64]:
    """Return equal weights, and 0 on the diagonal; cached, because solvers need them often."""
    weights = np.full((n, n), strength)
    np.fill_diagonal(weights, 0.0)
    weights.flags.writeable = False
    return weights


@dataclass(frozen=True)
class OffDiagonalL1:
    """`strength` times the sum of the absolute interactions; base rates are not penalised (eq. 3).

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
                f"{argument('penalty')} is {self.strength!r}; expected a finite number of at "
                "least 0 "
                "(the paper uses 0.01)"
            )

    @property
    def pinned(self) -> None:
        """Always None, because this penalty fixes no entry."""
        return

    def weights(self, n: int) -> NDArray[np.float64]:
        """Return the weight of each entry: `strength`, and 0 on the diagonal."""
        return _equal_weights(float(self.strength), n)

    def value(self, theta: NDArray[np.float64]) -> float:
        """Return the penalty of theta."""
        size = np.abs(theta)
        # Do not subtract the trace from the sum of all entries: the rounding error of this
        # difference, times a large strength, would be larger than the gain of a step near the
        # optimum.
        np.fill_diagonal(size, 0.0)
        return float(self.strength * size.sum())

    def prox(
        self, theta: NDArray[np.float64], step: float | NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the minimiser of ``|x - theta|^2 / (2 step) + penalty(x)``: soft thresholding."""
        return _soft_threshold(theta, self.weights(theta.shape[0]) * step)

    def subdiff_distance(
        self, theta: NDArray[np.float64], gradient: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the distance of each entry of `gradient` from the penalty's subdifferential."""
        weights = self.weights(theta.shape[0])
        away = np.abs(gradient - weights * np.sign(theta))
        distance: NDArray[np.float64] = np.where(
            (theta == 0.0) & (weights > 0.0), np.maximum(np.abs(gradient) - weights, 0.0), away
        )
        return distance


@dataclass(frozen=True)
class OnSupport:
    """`strength` times the sum of absolute interactions in `support`; all others stay at zero.

    Examples
    --------
    >>> penalty = OnSupport(np.array([[True, True], [False, True]]))
    >>> penalty.prox(np.array([[-1.0, 2.0], [3.0, -3.0]]), 1.0).tolist()
    [[-1.0, 2.0], [0.0, -3.0]]
    """

    support: NDArray[np.bool_]
    strength: float = 0.0

    @property
    def pinned(self) -> None:
        """Always None, because this penalty fixes no entry at a value other than zero."""
        return

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
        # If the step is zero, even an infinite weight has no effect. (The product of zero and
        # infinity would be NaN.)
        threshold = np.where(np.asarray(step) > 0.0, weights, 0.0) * np.where(weights > 0, step, 1)
        return _soft_threshold(theta, threshold)

    def subdiff_distance(
        self, theta: NDArray[np.float64], gradient: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the distances of `gradient` from the subdifferential; 0 outside the support."""
        distance = OffDiagonalL1(self.strength).subdiff_distance(theta, gradient)
        return np.where(self.support | np.eye(len(theta), dtype=bool), distance, 0.0)


@dataclass(frozen=True)
class WithFixed:
    """The penalty `inner` on the free entries; the other entries keep their values in `fixed`.

    Fixed entries are not penalised.

    Examples
    --------
    >>> penalty = WithFixed(OffDiagonalL1(0.5), np.array([[np.nan, 3.0], [np.nan, np.nan]]))
    >>> penalty.prox(np.array([[-1.0, 2.0], [2.0, -3.0]]), 1.0).tolist()
    [[-1.0, 3.0], [1.5, -3.0]]
    """

    inner: Penalty
    fixed: NDArray[np.float64]

    @cached_property
    def pinned(self) -> NDArray[np.bool_]:
        """The entries that are fixed."""
        return ~np.isnan(self.fixed)

    def weights(self, n: int) -> NDArray[np.float64]:
        """Return the weight of each entry: infinite where it is fixed."""
        return np.where(self.pinned, np.inf, self.inner.weights(n))

    def value(self, theta: NDArray[np.float64]) -> float:
        """Return the penalty of theta; infinite if a fixed entry has another value."""
        if (theta[self.pinned] != self.fixed[self.pinned]).any():
            return np.inf
        return self.inner.value(np.where(self.pinned, 0.0, theta))

    def prox(
        self, theta: NDArray[np.float64], step: float | NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the minimiser of ``|x - theta|^2 / (2 step) + penalty(x)``."""
        moves = self.pinned & (np.asarray(step) > 0.0)  # a step of zero has no effect
        return np.where(moves, self.fixed, self.inner.prox(theta, step))

    def subdiff_distance(
        self, theta: NDArray[np.float64], gradient: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the distances of `gradient` from the subdifferential; 0 at fixed entries."""
        distance = self.inner.subdiff_distance(theta, gradient)
        return np.where(self.pinned, 0.0, distance)


def with_fixed(penalty: Penalty, fixed: NDArray[np.float64] | None) -> Penalty:
    """Return a penalty that also keeps the entries in `fixed`; None means no fixed entries."""
    return penalty if fixed is None else WithFixed(penalty, fixed)
