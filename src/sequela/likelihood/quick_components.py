"""Compute probabilities of large sets by components, with an error of about 1e-5.

This is faster than `components`, which has an error of at most 1e-9 but stores 400 coefficients for
every state. The probability of a set is an integral over the observation time. If the set is large,
the posterior of this time is narrow. So the functions of the components are needed at only about 20
times. At these times they are computed as inverse Laplace transforms (`kernels.transforms`),

    p_c(t) = 1 / (2 pi i) * integral of exp(z t) T_z(c) dz,

on the parabola z = -q + mu (1 + i u)^2, which goes around all poles. Here q is the smallest exit
rate, and mu determines the size of the parabola (Weideman and Trefethen 2007). The trapezoidal rule
converges geometrically. About 20 nodes are enough, and the same nodes are used for all times.

The times cover the posterior of the time at the last evaluation. If the posterior has moved, the
times are moved, too. To estimate the error, the trapezoidal rule is also computed with only every
second node, and the two results are compared. If the error is not small enough, no result is
returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sequela.kernels.components import subset_rates
from sequela.kernels.transforms import transform_forward, transform_gradient
from sequela.support.jit import call
from sequela.support.threads import run_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.components import ComponentSets
    from sequela.likelihood.decomposition import Component, Decomposition
    from sequela.likelihood.parameters import Parameters

__all__ = ["Posterior", "QuickComponents", "posteriors_of", "quick_work"]

# The first point, the last point and the step of the grid of log observation times, relative to the
# mean and in standard deviations. (The posterior of the log time extends farther to the left than
# to the right.)
_BEFORE, _AFTER = -6.5, 4.5
_STEP = 0.5
# The largest accepted posterior probability of the first and the last time together.
_TAIL = 3e-6
# The times are moved until they fit the posterior, in at most this many attempts. They fit if the
# mean has moved by at most _SHIFT standard deviations, the new standard deviation is between
# _NARROW and _WIDE times the old standard deviation, and the tails are within _TAIL.
_MOST_MOVES = 6
_NARROW, _WIDE = 0.75, 1.35
_SHIFT = 0.5
_LEAST_SD, _LARGEST_SD = 0.02, 1.0
# The path crosses the real axis to the right of the first pole, which is minus the smallest exit
# rate. The distance between the two points, in units of 1 / time, is the larger one of
# _LEAST_CROSSING and _CROSSING_PER_ITEM times (number of items of the component + 1).
_LEAST_CROSSING = 4.0
_CROSSING_PER_ITEM = 0.7
# The length of a step is inversely proportional to _FINENESS. The rule ends where the integrand has
# decreased by a factor of exp(-_NEGLIGIBLE).
_FINENESS = 2.4
_NEGLIGIBLE = 15.0
_MOST_NODES = 96
# The largest accepted relative difference between the results with all nodes and with every second
# node, averaged over the posterior. The error with all nodes is about the square of this
# difference.
_HALVED = 1e-2
# The terms after the last node are left out. To account for them, the last term is multiplied by
# this factor and added to the relative difference. The factor is large, because this error is not
# squared.
_LEFT_OUT = 1e3
# For `quick_work`: the number of real numbers per state, and the fixed cost of a set, expressed as
# a number of operations.
_PER_STATE = 60.0
_OVERHEAD = 1e6
_OFFSETS = np.arange(_BEFORE, _AFTER + 0.5 * _STEP, _STEP)


class Posterior(NamedTuple):
    """Mean and standard deviation of the logarithm of the observation time of a set."""

    mean: float
    sd: float


class _Path(NamedTuple):
    """Nodes ``z[0] + i z[1]`` and complex weights of the trapezoidal rule."""

    z: NDArray[np.float64]
    weights: NDArray[np.complex128]

    @classmethod
    def around(cls, slowest: float, size: int, times: NDArray[np.float64]) -> _Path:
        middle = float(np.sqrt(times[0] * times[-1]))
        crossing = max(_LEAST_CROSSING, _CROSSING_PER_ITEM * (size + 1))
        scale = crossing / middle
        step = np.pi / (_FINENESS * scale * float(times[-1]))
        early = scale * float(np.sqrt(times[0] * middle))
        u = step * np.arange(_MOST_NODES)
        decay = early * u * u + 0.5 * (size + 1) * np.log1p(u * u)
        count = int(np.searchsorted(decay, _NEGLIGIBLE)) + 1
        u = u[: min(2 * (count // 2) + 1, _MOST_NODES - 1)]
        root = 1.0 + 1j * u
        z = scale * root * root - slowest
        weights = ((2.0 * step * scale / np.pi) * root).astype(np.complex128)
        weights[0] *= 0.5
        return cls(np.array([z.real, z.imag]), weights)


class _Function:
    """The transforms of one component on a path, and its probabilities at some times.

    `values` are the probabilities. `doubt` is a bound of the relative error of each probability, at
    most 1. It is the relative difference between the results with all nodes and with every second
    node, plus a term for the nodes that are left out.
    """

    def __init__(
        self, rates: NDArray[np.float64], exits: NDArray[np.float64], times: NDArray[np.float64]
    ) -> None:
        self.k = int(exits.size).bit_length() - 1
        self.rates, self.exits = rates, exits
        self.path = _Path.around(float(exits.min()), self.k, times)
        z = self.path.z
        self.T = np.empty((2, exits.size, z.shape[1]))
        call(transform_forward, self.T, rates, exits, z, self.k)
        full = self.T[0, -1] + 1j * self.T[1, -1]
        self.waves = np.exp(np.multiply.outer(times, z[0] + 1j * z[1])) * self.path.weights
        terms = (self.waves * full).real
        # Far from the middle of the times, the error may be larger than the probability itself, and
        # the sum may be negative. The lower bound avoids this.
        self.values = np.maximum(terms.sum(axis=1), 1e-300)
        with np.errstate(over="ignore"):
            change = np.abs(2.0 * terms[:, ::2].sum(axis=1) / self.values - 1.0)
            last = np.abs(terms[:, -1]) / self.values
        # The rule with all nodes and the rule with every second node both leave out the terms after
        # the last node. So their difference does not show the error from leaving out these terms.
        # An estimate of this error is added to the difference.
        self.doubt = np.minimum(change + _LEFT_OUT * last, 1.0)

    def gradient(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gradient of the sum of `shares` times the logarithms of the values."""
        weights = (shares / self.values) @ self.waves
        G = np.empty((self.k + 1, self.rates.shape[1]))
        call(
            transform_gradient, G, self.T, self.rates, self.exits, self.path.z,
            np.array([weights.real, weights.imag]), self.k,
        )  # fmt: skip
        return G


@dataclass(frozen=True)
class _Answer:
    """Log p of a set, its gradient, and the posterior of its time."""

    log_p: float
    gradient: NDArray[np.float64]
    posterior: Posterior


class QuickComponents:
    """Sets whose probabilities are computed by quick components, for any theta on a support.

    Parameters
    ----------
    decomposition : Decomposition
        The components and isolated items of the sets.
    sets : sequence of arrays
        The items of the sets.
    posteriors : list of Posterior
        The approximate posterior of the observation time of each set, which every evaluation
        updates.
    """

    def __init__(
        self,
        decomposition: Decomposition,
        sets: list[NDArray[np.int64]],
        posteriors: list[Posterior],
    ) -> None:
        self.decomposition = decomposition
        self.sets = sets
        self.posteriors = posteriors

    def evaluate(
        self, parameters: Parameters, weights: NDArray[np.float64], n_threads: int
    ) -> tuple[float, NDArray[np.float64]] | None:
        """Return the weighted sum of log p and its gradient on the support.

        The result is None if the error could be larger than about 1e-5.
        """
        tables = run_all(
            [partial(_rates, parameters, c) for c in self.decomposition.components], n_threads
        )
        found = run_all(
            [partial(self._one, parameters, tables, s) for s in range(len(self.sets))], n_threads
        )
        value, gradient = 0.0, np.zeros((parameters.n, parameters.n))
        for s, answer in enumerate(found):
            if answer is None:
                return None
            self.posteriors[s] = answer.posterior
            value += float(weights[s]) * answer.log_p
            gradient += weights[s] * answer.gradient
        return value, gradient

    def _one(
        self,
        parameters: Parameters,
        tables: list[tuple[NDArray[np.float64], NDArray[np.float64]]],
        s: int,
    ) -> _Answer | None:
        lists = self.decomposition.lists
        parts = lists.components[lists.component_start[s] : lists.component_start[s + 1]]
        places = lists.isolated[lists.isolated_start[s] : lists.isolated_start[s + 1]]
        isolated = self.decomposition.isolated[places]
        touched = np.zeros(parameters.n, dtype=np.bool_)
        touched[self.sets[s]] = True
        for c in parts:
            touched[list(self.decomposition.components[c].children)] = True
        rate = parameters.rate
        drop = parameters.stop_rate + float(rate[~touched].sum())
        where = self.posteriors[s]
        for _ in range(_MOST_MOVES):
            logs = where.mean + where.sd * _OFFSETS
            times = np.exp(logs)
            functions = [_Function(tables[c][0], tables[c][1], times) for c in parts]
            wt = np.multiply.outer(rate[isolated], times)
            rest = np.log(-np.expm1(-wt)).sum(axis=0) - drop * times + logs
            mass, largest = _masses(rest, functions)
            total = float(mass.sum())
            if not total > 0.0:
                return None
            shares = mass / total
            mean = float(shares @ logs)
            sd = float(np.sqrt(shares @ (logs - mean) ** 2))
            fits = abs(mean - where.mean) <= _SHIFT * where.sd
            fits &= _NARROW * where.sd <= sd <= _WIDE * where.sd
            fits &= float(shares[0] + shares[-1]) <= _TAIL
            step = where.sd * _STEP
            found = Posterior(mean, float(np.clip(sd, _LEAST_SD, _LARGEST_SD)))
            if fits:
                break
            where = found
        else:
            return None
        doubt = sum(float(shares @ f.doubt) for f in functions)
        if doubt > _HALVED:
            return None
        log_p = largest + float(np.log(total * step * parameters.stop_rate))
        gradient = np.zeros((parameters.n, parameters.n))
        for c, function in zip(parts, functions, strict=True):
            _spread(self.decomposition.components[c], function.gradient(shares), gradient)
        diagonal = np.zeros(parameters.n)
        diagonal[isolated] = (wt / np.expm1(wt)) @ shares
        diagonal[~touched] = -rate[~touched] * float(shares @ times)
        gradient[np.diag_indices(parameters.n)] += diagonal
        return _Answer(log_p, gradient, found)


def _rates(
    parameters: Parameters, component: Component
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    columns = component.columns
    rates = np.empty((1 << component.size, columns.size))
    exits = np.empty(1 << component.size)
    call(subset_rates, rates, exits, parameters.theta, columns, component.size)
    return rates, exits


def _masses(
    rest: NDArray[np.float64], functions: list[_Function]
) -> tuple[NDArray[np.float64], float]:
    """Return the joint density of the set and its time, at all times, divided by a factor.

    `rest` is the logarithm of all factors of the density that do not belong to components. The
    logarithm of the factor is the second result.
    """
    largest = float(rest.max())
    mass = np.exp(rest - largest)
    for function in functions:
        mass = mass * function.values
    return mass, largest


def _spread(component: Component, G: NDArray[np.float64], gradient: NDArray[np.float64]) -> None:
    """Add G, the derivatives by the columns of a component, to the n x n array `gradient`."""
    columns, k = component.columns, component.size
    part = G[:k].copy()
    part[np.arange(k), np.arange(k)] = 0.0
    gradient[np.ix_(columns[:k], columns)] += part
    gradient[columns, columns] += G[k]


def quick_work(decomposition: Decomposition) -> float:
    """Return the number of operations of one evaluation by quick components.

    The result can be compared with the result of `work_of_components`.
    """
    parts = decomposition.components
    used = decomposition.lists.components
    states = sum(2.0 ** parts[c].size * (3 * parts[c].size + 30) for c in used)
    return float(_PER_STATE * states + _OVERHEAD * (decomposition.lists.component_start.size - 1))


def posteriors_of(solved: ComponentSets) -> list[Posterior]:
    """Return the posteriors of the observation times of sets that were solved exactly."""
    logs = np.log(solved.grid.times)
    means = solved.posterior @ logs
    squares = solved.posterior @ (logs * logs)
    sds = np.sqrt(np.maximum(squares - means * means, _LEAST_SD**2))
    return [Posterior(float(m), float(sd)) for m, sd in zip(means, sds, strict=True)]
