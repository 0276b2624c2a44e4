"""The stretched coordinates of `kernels.stretched_coordinates`, for states of chains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.stretched_coordinates import BEND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.kernels.arguments import PosteriorState
    from sequela.posteriors.problem import Problem

__all__ = ["stretched_place", "stretched_theta"]


def stretched_place(state: PosteriorState) -> NDArray[np.float64]:
    """Return the stretched coordinates of theta, row by row, and the coordinate of the scale."""
    y = state.z * np.sqrt(1.0 + (state.z / BEND) ** 2)
    np.fill_diagonal(y, np.diagonal(state.z))
    return np.append(y, state.scale)


def stretched_theta(
    problem: Problem, state: PosteriorState
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return theta at a state, and its derivatives with respect to the stretched coordinates."""
    theta, slope = problem.theta(state)
    v = (state.z / BEND) ** 2
    rise = np.sqrt(1.0 + v) / (1.0 + 2.0 * v)
    np.fill_diagonal(rise, 1.0)
    return theta, slope * rise
