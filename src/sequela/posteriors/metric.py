"""The metric of Hamiltonian trajectories: what the prior and the data say about each direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.dense_likelihood import set_scores
from sequela.support.jit import call

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.kernels.arguments import PosteriorState
    from sequela.posteriors.problem import Problem

__all__ = ["Metric", "estimate_metric", "unit_metric"]

# Directions of which the data know less than a hundredth of what the prior knows count as the rest.
_LEAST_INFORMATION = 1e-2
_MOST_DIRECTIONS = 400


@dataclass(frozen=True)
class Metric:
    """Directions that the data inform about, and by how much.

    Attributes
    ----------
    directions : array (rank, n * n + 1)
        Orthonormal rows in the coordinates of the prior: of theta, then of its scale.
    information : array (rank,)
        Information of the data along each of them; that of the prior is 1.
    """

    directions: NDArray[np.float64]
    information: NDArray[np.float64]

    def shrink(self, power: float) -> NDArray[np.float64]:
        """Return by how much the variance along each direction is below 1, at a power."""
        informed = power * self.information
        return informed / (1.0 + informed)


def unit_metric(n: int) -> Metric:
    """Return the metric of the prior alone."""
    return Metric(np.zeros((1, n * n + 1)), np.zeros(1))


def estimate_metric(problem: Problem, states: list[PosteriorState]) -> Metric:
    """Return the metric from the empirical Fisher information at the states of several chains.

    Every chain contributes another share of the sets, so that the cost does not grow with them.
    """
    lattice = problem.target.lattice
    rows = []
    for place, state in enumerate(states):
        chosen = lattice[place :: len(states)]
        theta, slope = problem.theta(state)
        scores = np.zeros((chosen.size, problem.n**2 + 1))
        call(set_scores, scores, theta, slope, problem.target, chosen)
        rows.append(scores)
    G = np.concatenate(rows)
    m, d = G.shape
    if m == 0:
        return unit_metric(problem.n)
    small = G @ G.T if m < d else G.T @ G
    information, vectors = np.linalg.eigh(small)
    order = np.argsort(-information)[:_MOST_DIRECTIONS]
    order = order[information[order] > _LEAST_INFORMATION]
    if not order.size:
        return unit_metric(problem.n)
    information = information[order]
    directions = vectors[:, order].T
    if m < d:
        directions = (directions @ G) / np.sqrt(information)[:, None]
    return Metric(np.ascontiguousarray(directions), information)
