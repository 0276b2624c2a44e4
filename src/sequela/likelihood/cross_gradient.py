"""The entries of the gradient between different components, needed to judge optimality.

They are zero entries of theta, so a step on the present interactions does not need them. Each takes
an integral over the observation time and one over the moments before it (`kernels.crossing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arguments import PanelPoints
from sequela.kernels.crossing import component_backward, presence_and_steps
from sequela.kernels.panels import DEGREES
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.threads import run_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.components import ComponentFunction, ComponentSets, TimeGrid

__all__ = [
    "CROSS_ACCURACY",
    "CrossGradient",
    "both_ways",
    "moments_before",
    "observation_times",
]

# The trapezoidal rule over u = log t, where the posterior is above this share of its largest value.
# Its error falls as exp(-pi^2 / step) for few items, and as exp(-2 pi^2 / (step^2 k)) for many.
_TAIL = 1e-15
_STEP = 0.3
_STEP_OF_WIDTH = 0.75
# Gauss points on each of the intervals that halve towards both ends of [0, t].
_POINTS = 10
_MOST_HALVINGS = 40
# The probability of a component at t must come out the same at every moment before.
CROSS_ACCURACY = 1e-8


class CrossGradient:
    """The missing entries of `ComponentSets.gradient`, set by set.

    Parameters
    ----------
    solved : ComponentSets
        After `solve`.
    """

    def __init__(self, solved: ComponentSets) -> None:
        self.solved = solved
        self.parameters = solved.parameters
        self._tables: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        self.error = 0.0

    def gradient(self, weights: NDArray[np.float64], n_threads: int) -> NDArray[np.float64]:
        """Return the weighted sum over the sets; entries within components are 0."""
        functions = self.solved.functions
        self._tables = run_all(
            [partial(both_ways, f, self.solved.grid) for f in functions], n_threads
        )
        count = len(self.solved.sets)
        # The most expensive sets first; the sum is made in the order of the sets.
        order = sorted(range(count), key=lambda s: -self._cost(s))
        done = run_all([partial(self._set, s) for s in order], n_threads)
        n = self.parameters.n
        total = np.zeros((n, n))
        for s, part in sorted(zip(order, done, strict=True), key=lambda x: x[0]):
            total[np.ix_(part.rows, part.columns)] += weights[s] * part.entries
            # Items with constant rates: minus the rate times the time that the row is present.
            steady = np.where(self.solved.touched[s], 0.0, self.parameters.rate)
            total[part.rows] -= weights[s] * np.multiply.outer(part.present, steady)
            self.error = max(self.error, part.error)
        if self.error > CROSS_ACCURACY:
            raise InputError(
                f"the gradient between components is right to {self.error:.1g} only: rates of the "
                "model are too far apart. Scale the largest entries of theta down"
            )
        return total

    def _cost(self, s: int) -> float:
        components, _ = self.solved.parts(s)
        return float(sum(2.0 ** self.solved.functions[c].k for c in components))

    def _set(self, s: int) -> _SetEntries:
        solved = self.solved
        grid = solved.grid
        rate = self.parameters.rate
        places, isolated_places = solved.parts(s)
        isolated = solved.decomposition.isolated[isolated_places]
        functions = [solved.functions[c] for c in places]
        # Rows: items of the set; columns: these and the items outside on which they act.
        rows = np.concatenate([*(f.columns[: f.k] for f in functions), isolated]).astype(np.int64)
        columns = np.concatenate([*(f.columns for f in functions), isolated]).astype(np.int64)
        same = _same_component([f.k for f in functions], [f.columns.size for f in functions],
                               isolated.size)  # fmt: skip
        fastest = max([*(float(f.exits.max()) for f in functions), *rate[isolated], 1e-300])
        total = np.zeros((rows.size, columns.size))
        present = np.zeros(rows.size)
        error = 0.0
        for t, weight in zip(*observation_times(solved, s), strict=True):
            moments, length = moments_before(float(t), fastest)
            before = PanelPoints(*grid.polynomials(moments))
            after = PanelPoints(*grid.polynomials(t - moments))
            X = np.empty((rows.size, moments.size))
            Y = np.empty((columns.size, moments.size))
            row = column = 0
            for place, f in zip(places, functions, strict=True):
                P, B = self._tables[place]
                worst = call(
                    presence_and_steps, X[row : row + f.k], Y[column : column + f.columns.size],
                    P, B, f.rates_by_column, before, after, f.scaled_at(grid, float(t)), f.k,
                )  # fmt: skip
                error += weight * worst
                row, column = row + f.k, column + f.columns.size
            w = rate[isolated][:, None]
            X[row:] = np.expm1(-w * moments) / np.expm1(-w * t)
            # Density of the arrival minus mean rate: for an isolated item it does not depend on
            # the moment.
            with np.errstate(over="ignore"):
                Y[column:] = w / np.expm1(w * t)
            total += weight * ((X * length) @ Y.T)
            present += weight * (X @ length)
        total[same] = 0.0
        return _SetEntries(rows, columns, total, present, error)


@dataclass(frozen=True)
class _SetEntries:
    """The entries of one set: rows act on columns; the time each row is present; the error."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    entries: NDArray[np.float64]
    present: NDArray[np.float64]
    error: float


@lru_cache(maxsize=64)
def _unit_moments(halvings: int, points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points in [0, 1] and their weights; intervals halve towards both ends."""
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-halvings - 1.0, 0.0)])
    nodes, weights = np.polynomial.legendre.leggauss(points)
    half = np.diff(edges)[:, None] / 2.0
    left = (edges[:-1, None] + half * (1.0 + nodes)).ravel()
    weight = (half * weights).ravel()
    return np.concatenate([left, 1.0 - left]), np.concatenate([weight, weight])


def moments_before(
    t: float, fastest: float, points: int = _POINTS
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return moments in [0, t] that resolve a rate, and their weights; points per interval."""
    halvings = int(min(max(np.ceil(np.log2(max(fastest * t, 1.0))), 1), _MOST_HALVINGS))
    moments, weights = _unit_moments(halvings, points)
    return t * moments, t * weights


def observation_times(
    solved: ComponentSets, s: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return observation times of a set and their posterior weights."""
    grid = solved.grid
    row = solved.posterior[s]
    # The density over log t, up to a factor, at the points of the grid.
    density = np.log(np.maximum(row, 1e-300)) - grid.log_weights + np.log(grid.times)
    near = np.nonzero(density > density.max() + np.log(_TAIL))[0]
    first = np.log(grid.times[max(near[0] - 1, 0)])
    # Before the first point of the grid the density is that of a power of t.
    fallen = density.max() - density[0]
    first -= max(0.0, -np.log(_TAIL) - fallen) / (solved.sets[s].size + 1.0)
    last = np.log(grid.times[min(near[-1] + 1, row.size - 1)])
    step = min(_STEP, _STEP_OF_WIDTH / np.sqrt(solved.sets[s].size + 1.0))
    times = np.exp(np.linspace(first, last, int((last - first) / step) + 2))
    log_density = solved.log_joint(s, times) + np.log(times)
    weight = np.exp(log_density - log_density.max())
    return times, weight / weight.sum()


def both_ways(
    f: ComponentFunction, grid: TimeGrid
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return forward and backward functions of a solved component as (panel, degree, state)."""
    B = np.empty((1 << f.k, DEGREES, grid.half.size))
    call(component_backward, B, f.rates, f.exits, f.slowest, grid.half, f.k)
    return (
        np.ascontiguousarray(f.P.transpose(2, 1, 0)),
        np.ascontiguousarray(B.transpose(2, 1, 0)),
    )


def _same_component(sizes: list[int], widths: list[int], isolated: int) -> NDArray[np.bool_]:
    """Return which entries lie within a component, or are an isolated item's own."""
    same = np.zeros((sum(sizes) + isolated, sum(widths) + isolated), dtype=np.bool_)
    row = column = 0
    for size, width in zip(sizes, widths, strict=True):
        same[row : row + size, column : column + width] = True
        row, column = row + size, column + width
    same[row + np.arange(isolated), column + np.arange(isolated)] = True
    return same
