"""The penalty on interactions: its value, its proximal step, and how far a gradient is from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sequela.support.errors import InputError
from sequela.support.validation import is_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["OffDiagonalL1"]


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
        weights = np.full((n, n), float(self.strength))
        np.fill_diagonal(weights, 0.0)
        return weights

    def value(self, theta: NDArray[np.float64]) -> float:
        """Return the penalty of theta."""
        off = np.abs(theta).sum() - np.abs(np.diagonal(theta)).sum()
        return float(self.strength * off)

    def prox(
        self, theta: NDArray[np.float64], step: float | NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the minimiser of ``|x - theta|^2 / (2 step) + penalty(x)``: soft thresholding."""
        threshold = self.weights(theta.shape[0]) * step
        shrunk: NDArray[np.float64] = np.sign(theta) * np.maximum(np.abs(theta) - threshold, 0.0)
        return shrunk

    def subdiff_distance(
        self, theta: NDArray[np.float64], gradient: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return for each entry how far `gradient` is from the penalty's subdifferential.

        `gradient` is that of the log-likelihood, to be maximised: at an optimum it is 0 on the
        diagonal, `strength` times the sign of a non-zero interaction, and between -`strength` and
        `strength` where the interaction is zero. The largest distance is the KKT residual.
        """
        weights = self.weights(theta.shape[0])
        away = np.abs(gradient - weights * np.sign(theta))
        distance: NDArray[np.float64] = np.where(
            (theta == 0.0) & (weights > 0.0), np.maximum(np.abs(gradient) - weights, 0.0), away
        )
        return distance
