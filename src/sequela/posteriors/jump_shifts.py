"""Learn which other parameters change together with the order of two items.

Models with opposite orders of a pair usually differ in other parameters, too. For example, the item
that comes first takes over the effects of the other item on third items. During the warm-up, the
differences between the means of the two kinds of models are learned, and jumps add or subtract them
(`Jumps`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arguments import PosteriorState
from sequela.posteriors.jump_choice import order_shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.posteriors.problem import Problem

__all__ = ["learn_shifts"]

# Shifts are learned for pairs with at least this many draws per independent draw.
_LEAST_SLOW = 4.0
_MOST_PAIRS = 40
# A shift needs at least this many draws with each of the two orders.
_LEAST_DRAWS = 20
# Successive draws are correlated: this many count as one independent draw.
_DRAWS_PER_INDEPENDENT = 4.0
# A coordinate is shifted if its difference is at least this many standard errors and standard
# deviations.
_LEAST_ERRORS = 4.0
_LEAST_DEVIATIONS = 0.5


def learn_shifts(
    problem: Problem, positions: NDArray[np.float64], slow: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return for each jump pair the row of its shift (-1: none), and the shifts (rows, n * n).

    Parameters
    ----------
    problem : Problem
        The posterior; its `pair_copies` hold the pairs.
    positions : array (draws, chains, n * n + 1)
        Coordinates of theta and of the scale.
    slow : array (pairs,)
        Number of draws per independent draw, for each pair.
    """
    pairs = problem.pair_copies[0]
    n = problem.n
    slots = np.full(len(pairs), -1, dtype=np.int64)
    order = np.argsort(-slow, kind="stable")[:_MOST_PAIRS]
    order = order[slow[order] >= _LEAST_SLOW]
    if not order.size:
        return slots, np.zeros((0, n * n))
    flat = positions.reshape(-1, n * n + 1)
    nothing = np.empty(0, dtype=np.int64)
    shares = np.empty((len(flat), order.size))
    for row, place in enumerate(flat):
        z, scale = place[:-1].reshape(n, n).copy(), place[-1:].copy()
        theta, _ = problem.theta(PosteriorState(z, scale, nothing, np.zeros(2)))
        shares[row] = order_shares(theta, pairs[order], problem.target.stop_rate)
    shifts: list[NDArray[np.float64]] = []
    for column, at in enumerate(order):
        shift = _difference(flat[:, :-1], shares[:, column] > 0.5)
        i, j = pairs[at]
        shift[[i * n + i, j * n + j, i * n + j, j * n + i]] = 0.0
        if shift.any():
            slots[at] = len(shifts)
            shifts.append(shift)
    return slots, np.array(shifts).reshape(len(shifts), n * n)


def _difference(z: NDArray[np.float64], is_first: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the differences between the means of two kinds of draws; 0 for unclear differences."""
    counts = np.array([is_first.sum(), (~is_first).sum()])
    if counts.min() < _LEAST_DRAWS:
        return np.zeros(z.shape[1])
    first, second = z[is_first], z[~is_first]
    difference = first.mean(axis=0) - second.mean(axis=0)
    variance = (first.var(axis=0) * counts[0] + second.var(axis=0) * counts[1]) / counts.sum()
    deviation = np.sqrt(variance)
    error = deviation * np.sqrt((_DRAWS_PER_INDEPENDENT / counts).sum())
    clear = (np.abs(difference) >= _LEAST_ERRORS * error) & (
        np.abs(difference) >= _LEAST_DEVIATIONS * deviation
    )
    return np.where(clear, difference, 0.0)
