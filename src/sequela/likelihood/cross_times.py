"""Choose the times at which gradients between components are evaluated.

These times are observation times and points in time before them (*moments*). All sets share one
grid over log t. So quantities that depend only on a component and the time are evaluated once for
all sets. A large set has a narrow posterior of the time and uses every point of the grid. A small
set uses only every second, fourth or 2^m-th point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arguments import Moments, PanelPoints

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.components import ComponentSets, TimeGrid

__all__ = ["COARSE", "FINE", "Precision", "SharedTimes", "moments_before", "unit_moments"]

_MOST_HALVINGS = 40


@dataclass(frozen=True)
class Precision:
    """How finely the two integrals over time are evaluated.

    Attributes
    ----------
    tail : float
        The integral ends where the posterior is smaller than this share of its largest value.
    step, step_of_width : float
        For a set of k items, the step of the trapezoidal rule over log t is at most `step`, and at
        most `step_of_width` / sqrt(k + 1). Here 1 / sqrt(k + 1) is about the width of the posterior
        of log t. The error is about exp(-pi^2 / step) for few items, and exp(-2 (pi /
        step_of_width)^2) for many items.
    points : int
        Number of Gauss points per interval. The intervals divide [0, t]. Towards both ends, each
        interval is half as long as its neighbour.
    resolved : float
        The length of the shortest intervals, in units of 1 / (the fastest rate).
    """

    tail: float
    step: float
    step_of_width: float
    points: int
    resolved: float


# The precision for results, with an error of about 1e-11.
FINE = Precision(tail=1e-15, step=0.3, step_of_width=0.75, points=10, resolved=1.0)
# The precision for a solver whose tolerance is 1e-4. The error is about 1e-6 for sets of few items,
# and 1e-8 for the larger sets that fits evaluate by components.
COARSE = Precision(tail=1e-10, step=0.45, step_of_width=1.1, points=6, resolved=3.0)


class SharedTimes:
    """The observation times of many sets on one grid, and the posterior of each set at its times.

    Parameters
    ----------
    solved : ComponentSets
        The sets, after `solve`.
    precision : Precision
        How fine the grid is.

    Attributes
    ----------
    times : array (times,)
        All times that at least one set needs, ascending.
    log_components : array (components, times)
        Log-probabilities of the components.
    points : list of arrays
        For each set, the positions of its times in `times`.
    weights : list of arrays
        For each set, the posterior probabilities of its times, which add up to 1.
    """

    def __init__(self, solved: ComponentSets, precision: Precision) -> None:
        self._solved = solved
        self._precision = precision
        sizes = np.array([items.size for items in solved.sets])
        allowed = np.minimum(precision.step, precision.step_of_width / np.sqrt(sizes + 1.0))
        level = np.ceil(np.log2(precision.step / allowed) - 1e-9).astype(np.int64)
        finest = int(level.max(initial=0))
        self._step = precision.step / 2.0**finest
        places = [self._places(s, 1 << (finest - int(level[s]))) for s in range(sizes.size)]
        used = np.unique(np.concatenate(places))
        self.times = np.exp(self._step * used)
        self.points = [np.searchsorted(used, own) for own in places]
        self.log_components = np.array(
            [f.log_at(solved.grid, self.times) for f in solved.functions]
        ).reshape(len(solved.functions), used.size)
        rates = solved.parameters.rate[solved.decomposition.isolated]
        with np.errstate(divide="ignore"):
            log_isolated = np.log(-np.expm1(-np.multiply.outer(rates, self.times)))
        self.weights = [self._posterior(s, log_isolated) for s in range(sizes.size)]

    def _places(self, s: int, stride: int) -> NDArray[np.int64]:
        """Return the positions of a set's times on the finest grid; position 0 is t = 1.

        The set uses only the positions that are multiples of `stride`.
        """
        grid = self._solved.grid
        row = self._solved.posterior[s]
        fall = -np.log(self._precision.tail)
        # The logarithm of the density of log t, up to a constant, at the points of the grid.
        density = np.log(np.maximum(row, 1e-300)) - grid.log_weights + np.log(grid.times)
        near = np.nonzero(density > density.max() - fall)[0]
        first = np.log(grid.times[max(near[0] - 1, 0)])
        # Before the first point of the grid, the density is proportional to a power of t.
        fallen = density.max() - density[0]
        first -= max(0.0, fall - fallen) / (self._solved.sets[s].size + 1.0)
        last = np.log(grid.times[min(near[-1] + 1, row.size - 1)])
        step = stride * self._step
        return stride * np.arange(np.floor(first / step), np.ceil(last / step) + 1.0).astype(int)

    def _posterior(self, s: int, log_isolated: NDArray[np.float64]) -> NDArray[np.float64]:
        at = self.points[s]
        components, isolated = self._solved.parts(s)
        log_density = (1.0 - self._solved.drop[s] * self.times[at]) + np.log(self.times[at])
        log_density += self.log_components[np.ix_(components, at)].sum(axis=0)
        log_density += log_isolated[np.ix_(isolated, at)].sum(axis=0)
        weight = np.exp(log_density - log_density.max())
        normal: NDArray[np.float64] = weight / weight.sum()
        return normal

    def pooled(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the posteriors of the sets, each times its weight, as an array (sets, times)."""
        table = np.zeros((len(self.points), self.times.size))
        for s, at in enumerate(self.points):
            table[s, at] = weights[s] * self.weights[s]
        return table


@lru_cache(maxsize=64)
def unit_moments(halvings: int, points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Gauss points in [0, 1] and their weights.

    [0, 1] is divided into intervals, with `points` points on each of them. Towards both ends of [0,
    1], each interval is half as long as its neighbour. The number of intervals grows with
    `halvings`.
    """
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-halvings - 1.0, 0.0)])
    nodes, weights = np.polynomial.legendre.leggauss(points)
    half = np.diff(edges)[:, None] / 2.0
    left = (edges[:-1, None] + half * (1.0 + nodes)).ravel()
    weight = (half * weights).ravel()
    return np.concatenate([left, 1.0 - left]), np.concatenate([weight, weight])


def moments_before(
    times: NDArray[np.float64], fastest: float, grid: TimeGrid, precision: Precision
) -> tuple[Moments, NDArray[np.float64], NDArray[np.float64]]:
    """Return moments between 0 and each time that are close enough together for the fastest rate.

    The results are the moments as points on panels, the times of the moments, and their weights.
    """
    turns = np.maximum(fastest * times / precision.resolved, 2.0)
    halvings = np.minimum(np.ceil(np.log2(turns)), _MOST_HALVINGS).astype(int)
    units = [unit_moments(int(h), precision.points) for h in halvings]
    start = np.zeros(times.size + 1, dtype=np.int64)
    np.cumsum([unit.size for unit, _ in units], out=start[1:])
    each = np.repeat(times, np.diff(start))
    at = each * np.concatenate([unit for unit, _ in units])
    lengths = each * np.concatenate([weight for _, weight in units])
    before = PanelPoints(*grid.polynomials(at))
    after = PanelPoints(*grid.polynomials(each - at))
    return Moments(start, before, after), at, lengths
