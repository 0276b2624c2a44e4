"""Learn effects on the observation with an L1 penalty, which prefers few interactions.

omega[i] is the effect of item i on the rate of the observation. All pairs (theta, omega) with the
same values of theta[i, j] - omega[i] have the same likelihood. Data from a model with such effects
can be described by a few interactions and some effects, but not by a few interactions alone. The
penalty

    sum over i != j of |theta_ij| + EFFECT_WEIGHT * sum of |omega_i|

finds the description with few interactions. Each parameter is written as the difference of two
numbers that are not negative. The penalty is then linear, so that `bounded_descent.minimise`, which
is for smooth functions, can be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.learning.bounded_descent import minimise

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sequela.learning.bounded_descent import Descent

    Matrix = NDArray[np.float64]
    Loss = Callable[[Matrix, Matrix], tuple[float, Matrix, Matrix]]

__all__ = ["EFFECT_WEIGHT", "minimise_sparse"]

# Weight of an effect on the observation, if an interaction has the weight 1. An effect acts on the
# observation in all states that contain its item. We tested weights on simulated data with effects
# of all items. Weights of 0.2 to 0.6 gave about the same held-out likelihood. They gave more right
# orders than a weight of 1 (70% of the clear pairs, compared with 60%).
EFFECT_WEIGHT = 0.3


def minimise_sparse(
    loss: Loss,
    start: Matrix,
    strength: float,
    *,
    largest: float = 30.0,
    tol: float = 1e-4,
    max_iter: int = 2000,
) -> tuple[Matrix, Matrix, Descent]:
    """Minimise a smooth loss of theta and omega plus the L1 penalty.

    Parameters
    ----------
    loss : callable
        Takes theta and omega. Returns the value and its derivatives with respect to theta and to
        omega.
    start : array (n, n)
        The first theta; the first omega is 0.
    strength : float
        Weight of the penalty.
    largest : float
        Largest absolute value of a parameter.
    tol : float
        Stop when the optimality conditions hold to this accuracy.
    max_iter : int
        Largest number of iterations.

    Returns
    -------
    theta : array (n, n)
    omega : array (n,)
    descent : Descent
        Value with the penalty, residual of the optimality conditions, and number of iterations.

    Examples
    --------
    >>> def bowl(theta, omega):
    ...     gap = theta - np.array([[1.0, 3.0], [0.5, 2.0]])
    ...     return 0.5 * float((gap**2).sum()), gap, omega
    >>> theta, omega, _ = minimise_sparse(bowl, np.zeros((2, 2)), 1.0)
    >>> theta.round(3).tolist()
    [[1.0, 2.0], [0.0, 2.0]]
    """
    n = len(start)
    diagonal = np.zeros((n + 1, n), dtype=bool)  # the last row is omega
    np.fill_diagonal(diagonal, val=True)
    weights = np.where(diagonal, 0.0, strength)
    weights[n] *= EFFECT_WEIGHT
    # Each parameter is the first part minus the second part. The diagonal is not penalised. So its
    # first part may have any sign, and its second part stays at 0.
    low = np.concatenate([np.where(diagonal, -largest, 0.0).ravel(), np.zeros(diagonal.size)])
    high = np.concatenate([np.full(diagonal.size, largest), np.where(diagonal, 0, largest).ravel()])

    def split_loss(parts: Matrix) -> tuple[float, Matrix]:
        positive, negative = parts.reshape(2, n + 1, n)
        point = positive - negative
        value, by_theta, by_omega = loss(point[:n], point[n])
        slope = np.vstack([by_theta, by_omega])
        cost = float((weights * (positive + negative)).sum())
        return value + cost, np.concatenate([(weights + slope).ravel(), (weights - slope).ravel()])

    first = np.vstack([start, np.zeros(n)])
    parts = np.concatenate(
        [np.where(diagonal, first, np.maximum(first, 0.0)).ravel(),
         np.where(diagonal, 0.0, np.maximum(-first, 0.0)).ravel()]
    )  # fmt: skip
    found = minimise(split_loss, parts, low, high, tol=tol, max_iter=max_iter)
    positive, negative = found.x.reshape(2, n + 1, n)
    point = positive - negative
    return point[:n], point[n], found
