"""Represent a distribution of times by weights at the points of a `TimeGrid`."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.panels import panel_quantiles
from sequela.likelihood.components import ACCURACY, ComponentSets
from sequela.likelihood.decomposition import decompose_by
from sequela.support.jit import call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sequela.likelihood.components import TimeGrid
    from sequela.likelihood.parameters import Parameters

__all__ = ["GridDistribution", "quantiles_on_grid"]

# For plots: the probability that is left out at each end, and the number of points.
_TAIL = 1e-9
_POINTS = 200


@lru_cache(maxsize=16)
def _polynomials(points: int) -> NDArray[np.float64]:
    """Return the first `points` Legendre polynomials at the Gauss points."""
    nodes, _ = np.polynomial.legendre.leggauss(points)
    return np.polynomial.legendre.legvander(nodes, points - 1).astype(np.float64)


class GridDistribution:
    """The posterior of an observation time on a grid.

    On each panel, the density is the polynomial through its values at the Gauss points, and the
    distribution function is the integral of this polynomial. So both are as precise as the weights.

    Parameters
    ----------
    grid : TimeGrid
        The grid.
    weights : array
        Probabilities of the points of the grid, which add up to 1.
    """

    def __init__(self, grid: TimeGrid, weights: NDArray[np.float64]) -> None:
        self.panels = grid
        self.weights = weights
        self.mean = float(weights @ grid.times)
        self.variance = float(weights @ (grid.times - self.mean) ** 2)

    @cached_property
    def _panels(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the coefficients of the density and of its integral on each panel.

        Also return the probability of times before each panel.
        """
        grid = self.panels
        points = grid.points
        polynomials = _polynomials(points)
        mass = self.weights.reshape(-1, points)
        scale = (2.0 * np.arange(points) + 1.0) / 2.0
        density = (mass @ polynomials) * scale / grid.half[:, None]
        integral = np.polynomial.legendre.legint(density, axis=1, lbnd=-1.0) * grid.half[:, None]
        before = np.concatenate([[0.0], np.cumsum(mass.sum(axis=1))])
        return density, integral, before

    def _place(self, times: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        grid = self.panels
        panel = np.clip(np.searchsorted(grid.edges, times) - 1, 0, grid.half.size - 1)
        return panel, (times - grid.edges[panel]) / grid.half[panel] - 1.0

    def evaluate(
        self, times: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the density and the distribution function at the given times, each as one row."""
        panel, x = self._place(times)
        density, integral, before = self._panels
        inside = times <= self.panels.edges[-1]
        at = np.clip(x, -1.0, 1.0)
        values = [_value(point, density[j]) for j, point in zip(panel, at, strict=True)]
        earlier = [
            before[j] + _value(point, integral[j]) for j, point in zip(panel, at, strict=True)
        ]
        return (
            np.where(inside, np.maximum(values, 0.0), 0.0)[None, :],
            np.clip(earlier, 0.0, 1.0)[None, :],
        )

    def grid(self) -> NDArray[np.float64]:
        """Return times for a plot: 0, and times from the quantile 1e-9 to the quantile 1 - 1e-9."""
        first, last = self.pooled_quantiles(np.array([_TAIL, 1.0 - _TAIL]))
        return np.concatenate([[0.0], np.linspace(first, last, _POINTS)])

    def quantiles(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the quantiles for the given probabilities, as one row."""
        return self.pooled_quantiles(probabilities)[None, :]

    def pooled_quantiles(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the quantiles for the given probabilities."""
        times = np.empty(probabilities.size)
        grid = self.panels
        call(
            panel_quantiles, times, probabilities, self.weights.reshape(-1, grid.points),
            _polynomials(grid.points), grid.edges,
        )  # fmt: skip
        return times


def quantiles_on_grid(
    parameters: Parameters,
    sets: Sequence[NDArray[np.int64]],
    probabilities: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return quantiles of the observation times of sets, computed by components on one grid.

    If the components of a set are not accurate enough, its row is NaN.
    """
    solved = ComponentSets(parameters, decompose_by(parameters.children, sets), sets)
    solved.solve(1)
    rows = [
        GridDistribution(solved.grid, solved.posterior[s]).pooled_quantiles(probabilities)
        if solved.errors[s] <= ACCURACY
        else np.full(probabilities.size, np.nan)
        for s in range(len(sets))
    ]
    return np.array(rows)


def _value(x: float, coefficients: NDArray[np.float64]) -> float:
    return float(np.polynomial.legendre.legval(x, coefficients))
