"""Choose points for integrals over the observation time of a set and over the moments before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.crossing import component_backward
from sequela.kernels.panels import DEGREES
from sequela.likelihood.cross_times import FINE, unit_moments
from sequela.support.jit import call

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.components import ComponentFunction, ComponentSets, TimeGrid

__all__ = ["both_ways", "moments_before", "observation_times"]

_MOST_HALVINGS = 40


def moments_before(
    t: float, fastest: float, points: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return moments in [0, t] that are close enough for the fastest rate, and their weights.

    `points` is the number of moments per interval.
    """
    halvings = int(min(max(np.ceil(np.log2(max(fastest * t, 1.0))), 1), _MOST_HALVINGS))
    moments, weights = unit_moments(halvings, points)
    return t * moments, t * weights


def observation_times(
    solved: ComponentSets, s: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return observation times of a set and their posterior probabilities, which add up to 1."""
    grid = solved.grid
    row = solved.posterior[s]
    # The logarithm of the density of log t, up to a constant, at the points of the grid.
    density = np.log(np.maximum(row, 1e-300)) - grid.log_weights + np.log(grid.times)
    near = np.nonzero(density > density.max() + np.log(FINE.tail))[0]
    first = np.log(grid.times[max(near[0] - 1, 0)])
    # Before the first point of the grid, the density is proportional to a power of t.
    fallen = density.max() - density[0]
    first -= max(0.0, -np.log(FINE.tail) - fallen) / (solved.sets[s].size + 1.0)
    last = np.log(grid.times[min(near[-1] + 1, row.size - 1)])
    step = min(FINE.step, FINE.step_of_width / np.sqrt(solved.sets[s].size + 1.0))
    times = np.exp(np.linspace(first, last, int((last - first) / step) + 2))
    log_density = solved.log_joint(s, times) + np.log(times)
    weight = np.exp(log_density - log_density.max())
    return times, weight / weight.sum()


def both_ways(
    f: ComponentFunction, grid: TimeGrid
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the coefficients of the forward and backward functions of a solved component.

    Both arrays have the axes panel, degree and state.
    """
    B = np.empty((1 << f.k, DEGREES, grid.half.size))
    call(component_backward, B, f.rates, f.exits, f.slowest, grid.half, f.k)
    return (
        np.ascontiguousarray(f.P.transpose(2, 1, 0)),
        np.ascontiguousarray(B.transpose(2, 1, 0)),
    )
