"""The metric of Hamiltonian trajectories: the information of prior and data about each direction.

The metric and a centre define the normal distribution that is the reference of the trajectories.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.dense_likelihood import set_scores
from sequela.kernels.latent_histories import history_scores
from sequela.posteriors.stretching import stretched_theta
from sequela.support.jit import call

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.kernels.arguments import PosteriorState
    from sequela.posteriors.problem import Problem

__all__ = ["Metric", "estimate_metric", "refine_metric", "unit_metric"]

# Directions about which the data have less than a fifth of the information of the prior are
# ignored. They would take as much time as the other directions, but improve the sampler little.
_LEAST_INFORMATION = 0.2
_MOST_DIRECTIONS = 400
# If the number of sets times the number of chains is larger than this, each chain contributes the
# scores of a part of the sets.
_MOST_ROWS = 2000
# Draws correct the metric along directions whose variance is wrong by more than the factor
# _LEAST_FACTOR. _TRUST is the weight of the present metric; the weight of all draws together is 1.
_LEAST_FACTOR = 1.3
_LEAST_INFORMED = -0.9
_TRUST = 0.2


@dataclass(frozen=True)
class Metric:
    """The directions about which the data have information, and how much.

    Attributes
    ----------
    directions : array (rank, n * n + 1)
        Orthonormal rows. The first n * n entries of a row are for the coordinates of theta, and the
        last entry is for the coordinate of the scale.
    information : array (rank,)
        Information of the data along each direction; the information of the prior is 1. It is
        negative if the posterior is wider than the prior along the direction.
    """

    directions: NDArray[np.float64]
    information: NDArray[np.float64]

    @cached_property
    def rounded(self) -> NDArray[np.float32]:
        """The directions in single precision."""
        return self.directions.astype(np.float32)

    def shrink(self, power: float) -> NDArray[np.float64]:
        """Return 1 minus the variance of the reference along each direction.

        The reference is that of a likelihood with the given power.
        """
        informed = np.maximum(power * self.information, _LEAST_INFORMED)
        return informed / (1.0 + informed)


def unit_metric(n: int) -> Metric:
    """Return the metric of the prior alone."""
    return Metric(np.zeros((1, n * n + 1)), np.zeros(1))


def estimate_metric(problem: Problem, states: list[PosteriorState]) -> Metric:
    """Return the metric from the empirical Fisher information at the states of several chains.

    If there are many sets, each chain contributes a different part of them, so that the time does
    not grow with the number of chains.
    """
    lattice = problem.target.lattice
    every = lattice.size * len(states) <= _MOST_ROWS
    rows = []
    partly = np.arange(problem.target.histories.present.size)
    for place, state in enumerate(states):
        chosen = lattice if every else lattice[place :: len(states)]
        theta, slope = stretched_theta(problem, state)
        scores = np.zeros((chosen.size, problem.n**2 + 1))
        call(set_scores, scores, theta, slope, problem.target, chosen)
        rows.append(scores / np.sqrt(len(states)) if every else scores)
        if partly.size:
            rows.append(_history_rows(problem, state, partly[place :: len(states)]))
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


def _history_rows(
    problem: Problem, state: PosteriorState, chosen: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the scores of the histories of partly known samples.

    If there are many samples, the scores of a part of them are used, with larger weights. A history
    contains more information than its sample, so the metric has too much information at first.
    Later, draws of the warm-up correct this (`refine_metric`).
    """
    some = chosen[:: max(1, chosen.size // _MOST_ROWS)]
    theta, slope = stretched_theta(problem, state)
    scores = np.zeros((some.size, problem.n**2 + 1))
    call(history_scores, scores, theta, slope, problem.target, state.orders, some)
    scores *= np.sqrt(chosen.size / max(some.size, 1))
    return scores


def refine_metric(
    metric: Metric, positions: NDArray[np.float64], forces: NDArray[np.float64], power: float = 1.0
) -> Metric:
    """Return the metric corrected by draws (m, d) and the gradients of their log-densities (m, d).

    For a normal distribution with the covariance C, positions x and gradients a satisfy x = -C a,
    so that few draws determine C. In general the covariance of the positions differs from the
    inverse of the covariance of the gradients. The geometric mean of these two matrices is used, as
    in the low-rank metric of nutpie, in the coordinates in which the present metric is the
    identity.

    Positions and gradients are those of a likelihood with the given power.
    """
    m = len(positions)
    if m < 10:
        return metric
    root = 1.0 / np.sqrt(1.0 - metric.shrink(power))
    x = _stretched(positions - positions.mean(axis=0), root - 1.0, metric.directions)
    a = _stretched(forces - forces.mean(axis=0), 1.0 / root - 1.0, metric.directions)
    basis = np.linalg.qr(np.concatenate([x, a]).T)[0]  # (d, at most 2 m)
    wide, steep = (
        part.T @ part / m + _TRUST * np.eye(basis.shape[1]) for part in (x @ basis, a @ basis)
    )
    factors, vectors = np.linalg.eigh(_geometric_mean(wide, steep))
    kept = np.abs(np.log(factors)) > np.log(_LEAST_FACTOR)
    factors, vectors = factors[kept], basis @ vectors[:, kept]
    # The new covariance is root^-1 (1 + vectors (factors - 1) vectors^T) root^-1. Compute it in the
    # space that the present directions and the vectors span.
    both = np.linalg.qr(np.concatenate([metric.directions.T, vectors], axis=1))[0]
    inside = _stretched(both.T, 1.0 / root - 1.0, metric.directions)
    along = inside @ vectors
    covariance = inside @ inside.T + (along * (factors - 1.0)) @ along.T
    variances, turned = np.linalg.eigh(covariance)
    information = 1.0 / variances - 1.0
    order = np.argsort(-np.abs(np.log(variances)))[:_MOST_DIRECTIONS]
    order = order[np.abs(np.log(variances[order])) > np.log1p(_LEAST_INFORMATION)]
    if not order.size:
        return unit_metric(int(np.sqrt(positions.shape[1] - 1)))
    directions = (both @ turned[:, order]).T
    return Metric(np.ascontiguousarray(directions), information[order] / power)


def _stretched(
    rows: NDArray[np.float64], factors: NDArray[np.float64], directions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return rows whose parts along each direction are multiplied by 1 plus a factor."""
    return rows + ((rows @ directions.T) * factors) @ directions


def _geometric_mean(wide: NDArray[np.float64], steep: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the geometric mean S of `wide` and the inverse of `steep`: S steep S = wide."""
    values, vectors = np.linalg.eigh(steep)
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse = (vectors / np.sqrt(values)) @ vectors.T
    values, vectors = np.linalg.eigh(root @ wide @ root)
    mean = inverse @ ((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T) @ inverse
    symmetric: NDArray[np.float64] = 0.5 * (mean + mean.T)
    return symmetric
