"""A distribution of times that is known by its weights at the points of a `TimeGrid`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.components import TimeGrid

__all__ = ["GridDistribution"]

_MOST_STEPS = 60


class GridDistribution:
    """The posterior of an observation time on a grid.

    Density and distribution function are polynomials on each panel, of the degree that Gauss's
    points determine, so they are as exact as the weights.

    Parameters
    ----------
    grid : TimeGrid
        The grid.
    weights : array
        Probabilities of its points, which add up to 1.
    """

    def __init__(self, grid: TimeGrid, weights: NDArray[np.float64]) -> None:
        self.grid = grid
        self.weights = weights
        self.mean = float(weights @ grid.times)
        self.variance = float(weights @ (grid.times - self.mean) ** 2)

    @cached_property
    def _panels(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the Legendre coefficients of density and integral, and the mass before a panel."""
        grid = self.grid
        points = grid.points
        nodes, _ = np.polynomial.legendre.leggauss(points)
        polynomials = np.polynomial.legendre.legvander(nodes, points - 1)
        mass = self.weights.reshape(-1, points)
        scale = (2.0 * np.arange(points) + 1.0) / 2.0
        density = (mass @ polynomials) * scale / grid.half[:, None]
        integral = np.polynomial.legendre.legint(density, axis=1, lbnd=-1.0) * grid.half[:, None]
        before = np.concatenate([[0.0], np.cumsum(mass.sum(axis=1))])
        return density, integral, before

    def _place(self, times: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        grid = self.grid
        panel = np.clip(np.searchsorted(grid.edges, times) - 1, 0, grid.half.size - 1)
        return panel, (times - grid.edges[panel]) / grid.half[panel] - 1.0

    def density(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the density at any times."""
        panel, x = self._place(times)
        coefficients = self._panels[0]
        inside = times <= self.grid.edges[-1]
        values = [
            float(np.polynomial.legendre.legval(at, coefficients[j]))
            for j, at in zip(panel, np.clip(x, -1.0, 1.0), strict=True)
        ]
        return np.where(inside, np.maximum(values, 0.0), 0.0)

    def cumulative(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of an earlier time."""
        panel, x = self._place(times)
        _, integral, before = self._panels
        values = [
            before[j] + float(np.polynomial.legendre.legval(at, integral[j]))
            for j, at in zip(panel, np.clip(x, -1.0, 1.0), strict=True)
        ]
        return np.clip(values, 0.0, 1.0)

    def quantiles(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the times before which the given probabilities lie."""
        return np.array([self._quantile(float(p)) for p in probabilities])

    def _quantile(self, probability: float) -> float:
        _, integral, before = self._panels
        panel = int(np.clip(np.searchsorted(before, probability) - 1, 0, len(integral) - 1))
        wanted = probability - before[panel]
        low, high = -1.0, 1.0
        # The integral rises: halving finds the place, to the last digit.
        for _ in range(_MOST_STEPS):
            middle = 0.5 * (low + high)
            if float(np.polynomial.legendre.legval(middle, integral[panel])) < wanted:
                low = middle
            else:
                high = middle
        return float(self.grid.edges[panel] + self.grid.half[panel] * (1.0 + 0.5 * (low + high)))
