"""Compute the exact likelihood of sets of any size by components. This requires a sparse theta.

Given the observation time t, the components of a set (`decomposition`) are independent, so

    p(S) = integral of stop_rate exp(-stop_rate t) prod_c p_c(t) prod_i (1 - exp(-w_i t)) exp(-v t),

with the components c, the isolated items i and their base rates w_i, and the total rate v of the
absent items on which no item of S acts. The functions p_c come from `kernels.components`, on panels
of time that double in length. The integral uses Gauss's rule on each panel. A component that
several sets share is evaluated only once. Its gradient is also computed only once. For this
purpose, the posteriors of the times of these sets are first added up, each multiplied by the weight
of its set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.components import (
    component_forward,
    component_gradient,
    integrate_sets,
    pool_posteriors,
    subset_rates,
)
from sequela.kernels.limits import PRODUCT_LOG_RANGE
from sequela.kernels.panels import DEGREES, legendre_at
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.threads import run_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sequela.likelihood.decomposition import Component, Decomposition
    from sequela.likelihood.parameters import Parameters

__all__ = [
    "ACCURACY",
    "MOST_PANELS",
    "ComponentFunction",
    "ComponentSets",
    "TimeGrid",
    "in_component_range",
    "integral_work",
    "time_bounds",
]

# The largest number of panels. A set with a rate above 2^(MOST_PANELS - 12) could need more panels,
# so this set is evaluated by another method.
MOST_PANELS = 56
# The largest accepted relative error of a probability.
ACCURACY = 1e-9
# Number of Gauss points per panel: the smallest number, and the number that is added per item of
# the largest set. Larger sets need more points, because the integrand of a set of k items changes
# by a factor of up to 2^k on a panel [h, 2h].
_LEAST_POINTS = 32
_POINTS_PER_ITEM = 0.45
# The usual number of panels. It is enough if rates differ by a factor of at most a million, as in
# most data sets.
_USUAL_PANELS = 20


@lru_cache(maxsize=16)
def _gauss(points: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights of Gauss's rule, and the Legendre polynomials at the nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    polynomials = np.polynomial.legendre.legvander(nodes, DEGREES - 1).astype(np.float64)
    return nodes, weights, polynomials


def points_for(largest_set: int) -> int:
    """Return the number of points per panel for sets of at most `largest_set` items."""
    # Round up to multiples of 16, so that Gauss's rule is computed for few different numbers of
    # points.
    wanted = _LEAST_POINTS + int(_POINTS_PER_ITEM * largest_set)
    return -(-wanted // 16) * 16


@dataclass(frozen=True)
class TimeGrid:
    """Panels of time that begin at 0 and double in length, with Gauss points on each panel.

    Attributes
    ----------
    edges : array (panels + 1,)
        The bounds of the panels.
    points : int
        Number of points per panel.
    """

    edges: NDArray[np.float64]
    points: int

    @classmethod
    def between(cls, first: float, last: float, largest_set: int, splits: int = 1) -> TimeGrid:
        """Return the grid whose first panel ends at `first` and whose last panel ends after `last`.

        There are `splits` panels per doubling of the time.
        """
        count = max(1, int(np.ceil(np.log2(max(last / first, 1.0)))))
        edges = np.concatenate([[0.0], first * 2.0 ** (np.arange(splits * count + 1) / splits)])
        return cls(edges, points_for(largest_set))

    @cached_property
    def half(self) -> NDArray[np.float64]:
        """Half the lengths of the panels."""
        return np.diff(self.edges) / 2.0

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """The points of all panels, in order of time."""
        nodes = _gauss(self.points)[0]
        return (self.edges[:-1, None] + self.half[:, None] * (1.0 + nodes)).ravel()

    @cached_property
    def log_weights(self) -> NDArray[np.float64]:
        """Logarithms of the weights of the points."""
        return np.log(self.half[:, None] * _gauss(self.points)[1]).ravel()

    def values(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of a function at all points.

        `coefficients` are its Legendre coefficients (degrees, panels).
        """
        return (_gauss(self.points)[2] @ coefficients).T.ravel()

    def polynomials(
        self, times: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the panel of each time, and the polynomials of this panel at this time.

        The polynomials are those of Legendre; their array has the axes time and degree.
        """
        panel = np.empty(times.size, dtype=np.int64)
        values = np.empty((times.size, DEGREES))
        call(legendre_at, panel, values, self.edges, times)
        return panel, values

    def project(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the coefficients of a function of time that replaces weights at the points.

        The integral of this function times a polynomial (of a degree below DEGREES on each panel)
        is the weighted sum of the values of the polynomial at the points.
        """
        moments = _gauss(self.points)[2].T @ weights.reshape(-1, self.points).T
        scale = (2.0 * np.arange(DEGREES) + 1.0)[:, None] / (2.0 * self.half)[None, :]
        projected: NDArray[np.float64] = np.ascontiguousarray(moments * scale)
        return projected


class ComponentFunction:
    """The probability of having exactly the items of one component, as a function of time."""

    def __init__(self, parameters: Parameters, component: Component) -> None:
        self.component = component
        self.k = component.size
        self.columns = component.columns
        self.rates = np.empty((1 << self.k, self.columns.size))
        self.exits = np.empty(1 << self.k)
        call(subset_rates, self.rates, self.exits, parameters.theta, self.columns, self.k)
        self.slowest = float(self.exits.min())
        self.P: NDArray[np.float64] = np.empty((0, 0, 0))
        self.scaled: NDArray[np.float64] = np.empty(0)

    def solve(self, grid: TimeGrid) -> NDArray[np.float64]:
        """Compute the function on the grid; return the log-probability at all points."""
        self.P = np.empty((1 << self.k, DEGREES, grid.half.size))
        call(component_forward, self.P, self.rates, self.exits, self.slowest, grid.half, self.k)
        # The lower bound avoids log(0). A time with such a small probability has no weight in the
        # integral.
        self.scaled = np.maximum(grid.values(self.P[-1]), 1e-300)
        log_p: NDArray[np.float64] = np.log(self.scaled) - self.slowest * grid.times
        return log_p

    @cached_property
    def rates_by_column(self) -> NDArray[np.float64]:
        """The rates as an array (columns, states)."""
        return np.ascontiguousarray(self.rates.T)

    def scaled_at(self, grid: TimeGrid, t: float) -> float:
        """Return the probability at time t, times exp(smallest exit rate * t), after `solve`."""
        panel, polynomials = grid.polynomials(np.array([t]))
        return float(polynomials[0] @ self.P[-1][:, panel[0]])

    def log_at(self, grid: TimeGrid, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-probability at the given times; call `solve` first."""
        panel, polynomials = grid.polynomials(times)
        values = np.einsum("tn,nt->t", polynomials, self.P[-1][:, panel])
        log_p: NDArray[np.float64] = np.log(np.maximum(values, 1e-300)) - self.slowest * times
        return log_p

    def tails(self, grid: TimeGrid) -> NDArray[np.float64]:
        """Return the size of the last two coefficients on each panel, relative to the function.

        If the polynomials approximate the function well, their coefficients decrease geometrically.
        The size of the last coefficients is then an upper bound of the error of the approximation.
        """
        last = np.abs(self.P[-1][-2:]).sum(axis=0)
        largest = np.abs(self.scaled.reshape(-1, grid.points)).max(axis=1)
        relative: NDArray[np.float64] = last / np.maximum(largest, 1e-300)
        return relative

    def source(self, grid: TimeGrid, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the source of the adjoint functions, as Legendre coefficients.

        At each point of the grid, the source is the weight of the point divided by the scaled
        probability. Very small weights are replaced by 0.
        """
        largest = max(float(weights.max(initial=0.0)), 1e-300)
        return grid.project(np.where(weights > 1e-30 * largest, weights, 0.0) / self.scaled)

    def gradient(self, grid: TimeGrid, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gradient of the weighted sum of log p over the points.

        The array has the axes of G in the kernel `component_gradient`.
        """
        source = self.source(grid, weights)
        G = np.empty((self.k + 1, self.columns.size + 1))
        call(
            component_gradient, G, self.P, self.rates, self.exits, self.slowest, grid.half, source,
            self.k,
        )  # fmt: skip
        return G


def time_bounds(fastest: float, drop: float, size: int) -> tuple[float, float]:
    """Return the end of the first panel, and a time after which the posterior is negligible.

    "The posterior" is the posterior of the observation time of a set of `size` items. Given the
    order of the items, this time is a sum of size + 1 exponential holding times, whose rates lie
    between `drop` and `fastest`. All functions of time change little on the first panel, which ends
    at 1 / fastest. The probability of a time after the second result is far below rounding errors.
    """
    first = 1.0 / fastest
    steps = size + 1.0
    last = (steps + 10.0 * np.sqrt(steps) + 45.0) / drop
    return first, max(last, 2.0 * first)


class ComponentSets:
    """Sets whose probabilities are computed by components, at one theta.

    Parameters
    ----------
    parameters : Parameters
        Theta and the observation.
    decomposition : Decomposition
        The components and isolated items of the sets.
    sets : sequence of arrays
        The items of each set. The sets are in the sequence of `decomposition.lists`.
    splits : int
        Number of panels per doubling of the time. One is enough to represent p_c(t), the
        probability of a component at time t. The posterior of the time of a large set is narrower
        and may need more.

    Attributes
    ----------
    log_p : array
        After `solve`: log-probabilities of the sets.
    posterior : array (sets, points)
        After `solve`: for each set, the posterior probability that the observation time is each of
        the points `grid.times`. A row sums to 1.
    errors : array
        After `solve`: upper bounds of the relative errors of the probabilities.
    """

    def __init__(
        self,
        parameters: Parameters,
        decomposition: Decomposition,
        sets: Sequence[NDArray[np.int64]],
        *,
        splits: int = 1,
    ) -> None:
        self.parameters = parameters
        self.splits = splits
        self.decomposition = decomposition
        self.sets = sets
        self.functions = [ComponentFunction(parameters, c) for c in decomposition.components]
        self.drop = np.array([self._drop(s) for s in range(len(sets))])
        self.grid = self._grid()
        self.log_p = np.empty(len(sets))
        self.posterior = np.empty((len(sets), self.grid.times.size))
        self.errors = np.full(len(sets), np.nan)

    def parts(self, s: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions of the components and of the isolated items of a set."""
        lists = self.decomposition.lists
        return (
            lists.components[lists.component_start[s] : lists.component_start[s + 1]],
            lists.isolated[lists.isolated_start[s] : lists.isolated_start[s + 1]],
        )

    @cached_property
    def touched(self) -> NDArray[np.bool_]:
        """A table (sets, items): whether the item is in the set, or the set acts on the item.

        The rates of all other items are constant.
        """
        found = np.zeros((len(self.sets), self.parameters.n), dtype=np.bool_)
        for s, items in enumerate(self.sets):
            found[s, items] = True
            for c in self.parts(s)[0]:
                found[s, list(self.decomposition.components[c].children)] = True
        return found

    def _drop(self, s: int) -> float:
        free = self.parameters.rate[~self.touched[s]]
        return self.parameters.stop_rate + float(free.sum())

    def _grid(self) -> TimeGrid:
        first, last = np.inf, 0.0
        rate = self.parameters.rate
        for s, items in enumerate(self.sets):
            components, isolated = self.parts(s)
            fastest = self.drop[s] + float(rate[self.decomposition.isolated[isolated]].sum())
            fastest += sum(float(self.functions[c].exits.max()) for c in components)
            slow = self.drop[s] + sum(self.functions[c].slowest for c in components)
            bounds = time_bounds(fastest, slow, len(items))
            first, last = min(first, bounds[0]), max(last, bounds[1])
        largest = max(len(items) for items in self.sets)
        return TimeGrid.between(first, last, largest, self.splits)

    def log_joint(self, s: int, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the joint log-density of set `s` and its observation time, up to a constant.

        The result has one entry for each of the given times.
        """
        components, isolated = self.parts(s)
        log_density: NDArray[np.float64] = -float(self.drop[s]) * times
        for c in components:
            log_density += self.functions[c].log_at(self.grid, times)
        rates = self.parameters.rate[self.decomposition.isolated[isolated]]
        with np.errstate(divide="ignore"):
            log_density += np.log(-np.expm1(-np.multiply.outer(rates, times))).sum(axis=0)
        return log_density

    def solve(self, n_threads: int) -> None:
        """Fill `log_p` and `posterior`."""
        grid = self.grid
        logs = run_all([partial(f.solve, grid) for f in self.functions], n_threads)
        components = np.array(logs).reshape(len(logs), grid.times.size)
        rates = self.parameters.rate[self.decomposition.isolated]
        with np.errstate(divide="ignore"):
            isolated = np.log(-np.expm1(-np.multiply.outer(rates, grid.times)))
        call(
            integrate_sets, self.log_p, self.posterior, components, isolated,
            self.decomposition.lists, self.drop, grid.times, grid.log_weights,
        )  # fmt: skip
        self.log_p += np.log(self.parameters.stop_rate)
        self._judge()

    @property
    def is_accurate(self) -> bool:
        """Whether all errors are within `ACCURACY`."""
        return bool((self.errors <= ACCURACY).all())

    def require_accuracy(self) -> None:
        """Raise an error if the relative error of a probability may be larger than `ACCURACY`."""
        if not self.is_accurate:
            s = int(np.nanargmax(self.errors))
            raise InputError(
                f"the probability of a set of {self.sets[s].size} items by components has an error "
                f"of {self.errors[s]:.1g}, because the rates of the model differ too much. Use "
                "method='relocation', or a theta with smaller entries"
            )

    def _judge(self) -> None:
        """Fill `errors`: errors of the polynomials, averaged over the posterior of the time."""
        if not self.functions:
            self.errors = np.zeros(len(self.sets))
            return
        tails = np.array([f.tails(self.grid) for f in self.functions])
        mass = self.posterior.reshape(len(self.sets), -1, self.grid.points).sum(axis=2)
        self.errors = np.array(
            [float((mass[s] * tails[self.parts(s)[0]]).sum()) for s in range(len(self.sets))]
        )

    def gradient(self, weights: NDArray[np.float64], n_threads: int) -> NDArray[np.float64]:
        """Return the weighted sum of the gradients, after `solve`.

        Entries between items of different components remain 0. `cross_gradient` computes them.
        """
        n = self.parameters.n
        grid = self.grid
        gradient = np.zeros((n, n))
        component_sums = np.zeros((len(self.functions), grid.times.size))
        isolated_sums = np.zeros((self.decomposition.isolated.size, grid.times.size))
        call(
            pool_posteriors, component_sums, isolated_sums, self.posterior, weights,
            self.decomposition.lists,
        )  # fmt: skip
        parts = run_all(
            [
                partial(f.gradient, grid, sums)
                for f, sums in zip(self.functions, component_sums, strict=True)
            ],
            n_threads,
        )
        for f, G in zip(self.functions, parts, strict=True):
            own = f.columns[: f.k]
            part = G[: f.k, :-1].copy()
            part[np.arange(f.k), np.arange(f.k)] = 0.0
            gradient[np.ix_(own, f.columns)] += part
            gradient[f.columns, f.columns] += G[f.k, :-1]
        items = self.decomposition.isolated
        wt = np.multiply.outer(self.parameters.rate[items], grid.times)
        with np.errstate(over="ignore"):
            gradient[items, items] += (isolated_sums * (wt / np.expm1(wt))).sum(axis=1)
        self._add_free(gradient, weights)
        return gradient

    def _add_free(self, gradient: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Add the derivatives with respect to the base rates of items with constant rates.

        Each derivative is -rate * mean time.
        """
        means = weights * (self.posterior @ self.grid.times)
        lasting = np.where(self.touched, 0.0, means[:, None]).sum(axis=0)
        gradient[np.diag_indices(self.parameters.n)] -= self.parameters.rate * lasting


def integral_work(sets: Sequence[NDArray[np.int64]]) -> float:
    """Return the approximate number of operations for the integrals over time of sets."""
    points = points_for(max((items.size for items in sets), default=0))
    return _USUAL_PANELS * points * float(sum(items.size for items in sets))


def in_component_range(parameters: Parameters, component: Component) -> bool:
    """Return whether the functions of a component stay in the range of a double."""
    theta = parameters.theta
    columns = component.columns
    k = component.size
    effects = theta[np.ix_(columns[:k], columns)]
    effects[np.arange(k), np.arange(k)] = 0.0
    base = theta[columns, columns]
    highest = base + np.maximum(effects, 0.0).sum(axis=0)
    lowest = base + np.minimum(effects, 0.0).sum(axis=0)
    if highest.max() > np.log(2.0) * (MOST_PANELS - 12):
        return False
    return bool(np.minimum(lowest[:k], 0.0).sum() > -PRODUCT_LOG_RANGE)
