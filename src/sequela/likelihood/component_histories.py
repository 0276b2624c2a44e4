"""Compute exact arrival times and orders of a set that consists of small components.

Given the observation time t, components are independent. One pass over the states of a component
gives means and variances of its arrival times, and the orders of its items. The probability that an
item of one component arrived before an item of another component is a double integral, over t and
over the times s before t. The integrand is the probability that the first item is present at s,
times the density of the arrival of the second item at s. The position of an item in the order is
the number of other items that are present when it arrives. The generating function of this number
is a product over the components. In these formulas, the factor of an isolated item has a closed
form.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arguments import PanelPoints
from sequela.kernels.component_times import component_arrivals, states_at_moments
from sequela.likelihood.components import ACCURACY, ComponentSets
from sequela.likelihood.cross_gradient import CROSS_ACCURACY
from sequela.likelihood.decomposition import decompose_by
from sequela.likelihood.grid_distribution import GridDistribution
from sequela.likelihood.history_times import both_ways, moments_before, observation_times
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.linear_algebra import blas_on_one_thread
from sequela.support.progress import WorkProgress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sequela.likelihood.components import ComponentFunction
    from sequela.likelihood.parameters import Parameters

__all__ = ["ComponentHistory"]

# Largest number of values of generating functions that are in memory at the same time.
_MOST_NUMBERS = 1 << 21
# The larger a set, the narrower is the posterior of its observation time: the width decreases with
# the square root of the size. So larger sets need shorter panels. With one panel per doubling of
# the time, the errors of arrival times were 1e-12 for 24 items and 1e-5 for 250 items. The number
# of panels per doubling is sqrt(size / _ITEMS_PER_SPLIT), rounded up.
_ITEMS_PER_SPLIT = 24.0
# Number of Gauss points on each interval of the times before an observation: the smallest number,
# and the number that is added per item of the set.
_LEAST_POINTS = 10
_POINTS_PER_ITEM = 0.5
# If the rate times the time is smaller than this, a power series gives the mean and the second
# moment of the arrival time of an isolated item.
_SERIES = 0.5


class ComponentHistory:
    """The arrival times and orders of one set, computed from its components.

    Parameters
    ----------
    parameters : Parameters
        Theta and the observation.
    items : array of int
        The set, ascending.

    Attributes
    ----------
    time_mean, time_variance : float
        Mean and variance of the observation time given the set.
    arrival_mean, arrival_variance : arrays
        Mean and variance of the arrival time of each item, in the order of `items`.
    error : float
        The largest estimated error of two kinds: the error of the probability of the set, and the
        deviation from 1 of probabilities that must be 1.
    """

    def __init__(self, parameters: Parameters, items: NDArray[np.int64]) -> None:
        self.parameters = parameters
        self.items = items
        solved = self._solve()
        self.error = float(solved.errors[0])
        distribution = GridDistribution(solved.grid, solved.posterior[0])
        self.time_mean = distribution.mean
        self.time_variance = distribution.variance
        self.arrival_mean = np.empty(items.size)
        second = np.empty(items.size)
        # Here, only the orders of items of the same component are filled in. The other orders take
        # longer, and are computed when they are needed for the first time (`_orders`).
        self._within = np.full((items.size, items.size), np.nan)
        components, isolated = solved.parts(0)
        for c in components:
            self._fill_component(solved, solved.functions[c], second)
        for item in solved.decomposition.isolated[isolated]:
            at = np.searchsorted(items, item)
            x = parameters.rate[item] * solved.grid.times
            weighted = solved.posterior[0] * solved.grid.times
            first_share, second_share = _truncated_exponential(x)
            self.arrival_mean[at] = weighted @ first_share
            second[at] = (weighted * solved.grid.times) @ second_share
            self._within[at, at] = 0.0
        self.arrival_variance = second - self.arrival_mean**2

    @property
    def is_accurate(self) -> bool:
        """Whether `error` is at most the largest error that `components` accepts."""
        return self.error <= ACCURACY

    @property
    def before(self) -> NDArray[np.float64]:
        """P(a before b | set) of all pairs of items."""
        return self._orders[0]

    @property
    def place(self) -> NDArray[np.float64]:
        """The probability that each item arrived after exactly 0, 1, ... other items."""
        return self._orders[1]

    def _solve(self) -> ComponentSets:
        sets = [self.items]
        # The adjoint functions depend on the posterior of the time. For large sets this posterior
        # is narrow, so shorter panels are needed to represent these functions.
        splits = int(np.ceil(np.sqrt(max(self.items.size, 1) / _ITEMS_PER_SPLIT)))
        solved = ComponentSets(
            self.parameters, decompose_by(self.parameters.children, sets), sets, splits=splits
        )
        solved.solve(1)
        return solved

    def _fill_component(
        self, solved: ComponentSets, f: ComponentFunction, second: NDArray[np.float64]
    ) -> None:
        at = np.searchsorted(self.items, f.columns[: f.k])
        first = np.empty(f.k)
        squares = np.empty(f.k)
        before = np.empty((f.k, f.k))
        source = f.source(solved.grid, solved.posterior[0])
        error = call(
            component_arrivals, first, squares, before, f.P, f.rates, f.exits, f.slowest,
            solved.grid.half, source, f.k,
        )  # fmt: skip
        self.arrival_mean[at] = first
        second[at] = squares
        self._within[np.ix_(at, at)] = before
        self.error = max(self.error, error)

    @cached_property
    def _orders(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The orders of all pairs and the positions of all items, by integrals over two times."""
        if not self.items.size:
            return np.zeros((0, 0)), np.zeros((0, 0))
        with blas_on_one_thread():
            return self._integrate_orders()

    def _integrate_orders(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        k = self.items.size
        solved = self._solve()
        parts = _Parts(self.parameters, self.items, solved)
        before = np.zeros((k, k))
        # The generating functions of the positions, at the first half of the roots of unity. (The
        # values at the other roots are the complex conjugates of these values.)
        transform = np.zeros((k, k // 2 + 1), dtype=np.complex128)
        error = 0.0
        # In the integral for the probability of a position, the integrand is a product over all
        # items. Therefore larger sets need more Gauss points.
        points = _LEAST_POINTS + int(_POINTS_PER_ITEM * k)
        times, posterior = observation_times(solved, 0)
        with WorkProgress("orders of the items of a sample", times.size) as bar:
            for t, weight in zip(times, posterior, strict=True):
                moments, length = moments_before(float(t), parts.fastest, points)
                states = parts.at(float(t), moments)
                error += weight * states.error
                density = states.arrivals.sum(axis=1)
                before += weight * ((states.present * length) @ density.T)
                _add_places(transform, states, weight * length, parts.members)
                bar.advance()
        known = ~np.isnan(self._within)
        before[known] = self._within[known]
        place = np.maximum(np.fft.irfft(transform, n=k, axis=1), 0.0)
        # The probabilities of the two orders of a pair must add up to 1, and so must the
        # probabilities of all positions of an item.
        error = max(
            error,
            float(np.abs(before + before.T + np.eye(k) - 1.0).max()),
            float(np.abs(place.sum(axis=1) - 1.0).max()),
        )
        if error > CROSS_ACCURACY:
            raise InputError(
                f"the probabilities of orders in a set of {k} items have an error of {error:.1g}, "
                "because the rates of the model differ too much. Use a theta with smaller entries"
            )
        whole = 0.5 * (before + 1.0 - before.T)
        np.fill_diagonal(whole, 0.0)
        return np.clip(whole, 0.0, 1.0), place


class _States:
    """The states of all items of a set, at moments before an observation.

    A part is a component or an isolated item. ``present[b, a]`` is the probability that item b is
    present at moment a. ``arrivals[b, j, a]`` is the density of the arrival of item b at moment a,
    after j other items of its part. ``counts[c][j, a]`` is the probability that j items of part c
    are present. `error` is the largest error of probabilities that must be 1.
    """

    def __init__(self, k: int, widest: int, moments: int) -> None:
        self.present = np.empty((k, moments))
        self.arrivals = np.zeros((k, widest, moments))
        self.counts: list[NDArray[np.float64]] = []
        self.error = 0.0


class _Parts:
    """The components and isolated items of one set, with their states at any moments."""

    def __init__(
        self, parameters: Parameters, items: NDArray[np.int64], solved: ComponentSets
    ) -> None:
        self.parameters = parameters
        self.grid = solved.grid
        self.k = items.size
        components, isolated = solved.parts(0)
        self.functions = [solved.functions[c] for c in components]
        self.tables = [both_ways(f, solved.grid) for f in self.functions]
        self.isolated = solved.decomposition.isolated[isolated]
        # The positions of the items of each part in the set.
        self.members = [np.searchsorted(items, f.columns[: f.k]) for f in self.functions]
        self.members += [np.searchsorted(items, [item]) for item in self.isolated]
        rates = [float(f.exits.max()) for f in self.functions]
        self.fastest = max([*rates, *parameters.rate[self.isolated], 1e-300])
        self.widest = max([f.k for f in self.functions] + [1])

    def at(self, t: float, moments: NDArray[np.float64]) -> _States:
        """Return the states at moments before an observation at t."""
        states = _States(self.k, self.widest, moments.size)
        before = PanelPoints(*self.grid.polynomials(moments))
        after = PanelPoints(*self.grid.polynomials(t - moments))
        for f, (P, B), own in zip(self.functions, self.tables, self.members, strict=False):
            present = np.empty((f.k, moments.size))
            counts = np.empty((f.k + 1, moments.size))
            arrivals = np.empty((f.k, f.k, moments.size))
            worst = call(
                states_at_moments, present, counts, arrivals, P, B, f.rates_by_column, before,
                after, f.scaled_at(self.grid, t), f.k,
            )  # fmt: skip
            states.error = max(states.error, worst)
            states.present[own] = present
            states.arrivals[own, : f.k] = arrivals
            states.counts.append(counts)
        for item, own in zip(self.isolated, self.members[len(self.functions) :], strict=True):
            w = self.parameters.rate[item]
            share = np.expm1(-w * moments) / np.expm1(-w * t)
            states.present[own] = share
            states.arrivals[own, 0] = w * np.exp(-w * moments) / -np.expm1(-w * t)
            states.counts.append(np.stack([1.0 - share, share]))
        return states


def _pieces(moments: int, numbers: int) -> Iterator[slice]:
    """Split the time points into slices whose values need little memory (see `_MOST_NUMBERS`).

    `moments` is the number of time points, and `numbers` is the number of values per time point.
    Each slice has at least one time point.
    """
    step = max(1, _MOST_NUMBERS // max(numbers, 1))
    for start in range(0, moments, step):
        yield slice(start, start + step)


def _add_places(
    transform: NDArray[np.complex128],
    states: _States,
    weights: NDArray[np.float64],
    members: list[NDArray[np.intp]],
) -> None:
    """Add the terms of some moments to `transform`, the Fourier transform of the positions.

    The number of items before an arrival is the sum of the numbers in all parts. The parts are
    independent, so the generating function of the sum is a product. The product over all parts
    except one is the product of all parts before it, times the product of all parts after it.
    """
    k, frequencies = transform.shape
    roots = np.exp(-2j * np.pi * np.arange(frequencies) / k)
    powers = roots[:, None] ** np.arange(max(states.arrivals.shape[1], 1) + 1)
    parts = len(states.counts)
    for here in _pieces(weights.size, (parts + 1) * frequencies):
        factors = [powers[:, : len(c)] @ c[:, here] for c in states.counts]
        right = [np.ones((frequencies, 1), dtype=np.complex128)]
        for factor in factors[:0:-1]:
            right.append(right[-1] * factor)
        left = right[0]
        for part, own in enumerate(members):
            others = left * right[parts - 1 - part] * weights[here]
            arrivals = states.arrivals[own][:, :, here].reshape(-1, others.shape[1])
            # Sum first over the moments, then over the number of items of the same part.
            mixed = (others @ arrivals.T).reshape(frequencies, own.size, -1)
            transform[own] += np.einsum("mbj,mj->bm", mixed, powers[:, :-1])
            left = left * factors[part]


def _truncated_exponential(
    x: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean / t and second moment / t^2 of an exponential time that is truncated at t.

    x is the rate times t. The results are 1/x - 1/(e^x - 1) and 2/x^2 - (1 + 2/x)/(e^x - 1).
    """
    small = np.minimum(x, _SERIES)
    square = small * small
    # 1/(e^x - 1) = 1/x - 1/2 + odd, by the Bernoulli numbers.
    odd = small * _polynomial(square, _BERNOULLI)
    large = np.maximum(x, _SERIES)
    with np.errstate(over="ignore"):
        tail = 1.0 / np.expm1(large)
    first = np.where(x < _SERIES, 0.5 - odd, 1.0 / large - tail)
    # For small x, the terms of order 1/x^2 and 1/x of the second moment cancel. The rest contains
    # odd / x, which is again a power series.
    ratio = _polynomial(square, _BERNOULLI)
    second = np.where(
        x < _SERIES,
        0.5 - 2.0 * ratio - odd,
        2.0 / large**2 - (1.0 + 2.0 / large) * tail,
    )
    return first, second


# The coefficients B_2n / (2n)! of x^2n in x / (e^x - 1) = 1 - x/2 + sum of B_2n x^2n / (2n)!, where
# B_2n are the Bernoulli numbers and n is at least 1.
_BERNOULLI = (
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30240.0,
    -1.0 / 1209600.0,
    1.0 / 47900160.0,
    -691.0 / 1307674368000.0,
)


def _polynomial(x: NDArray[np.float64], coefficients: tuple[float, ...]) -> NDArray[np.float64]:
    value = np.zeros_like(x)
    for c in reversed(coefficients):
        value = value * x + c
    return value
