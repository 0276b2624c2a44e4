"""Compute the entries of the gradient between items of different components.

The KKT residual needs these entries of the gradient. The corresponding entries of theta are zero.
So a step that changes only the non-zero entries of theta does not need them. Each entry is an
integral over the observation time and over the points in time before it, the *moments*
(`kernels.crossing`). The contribution of an item depends only on its own component and on the time.
So it is evaluated once for all sets that contain the component. These sets differ only in the
weights of the times.

The entry (i, j) is simpler if j is an isolated item or has a constant rate. The density of the
arrival of j, minus its mean rate, then does not depend on the moment. The inner integral needs only
the time during which item i is present, and one small matrix product per set is enough. Sets of
hundreds of items consist almost entirely of such items.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arguments import CrossTables, Places
from sequela.kernels.crossing import add_pairs, component_backward, presence_and_steps
from sequela.kernels.panels import DEGREES
from sequela.likelihood.cross_times import FINE, SharedTimes, moments_before
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.threads import run_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.kernels.arguments import Moments
    from sequela.likelihood.components import ComponentFunction, ComponentSets
    from sequela.likelihood.cross_times import Precision

__all__ = ["CROSS_ACCURACY", "CrossGradient"]

# Largest accepted error. The error is estimated from the probability of a component at time t. This
# probability can be computed from the states at any moment before t, and the result must be the
# same for all moments.
CROSS_ACCURACY = 1e-8
# Largest number of bytes for the tables of all components. If the tables for all times would need
# more, the times are divided into portions.
_MOST_BYTES = 3e8
# Largest number of bytes for partial sums of the gradient, and largest number of partial sums. The
# number of sums depends only on the problem, not on the number of threads. So the results do not
# depend on the number of threads either.
_MOST_SUM_BYTES = 2.5e8
_MOST_SUMS = 16
# Largest number of rows in one matrix product.
_MOST_ROWS = 512
# If the rate times the time is smaller than this, a power series gives the share of the time in
# which an item is present.
_SMALL = 1e-2


class CrossGradient:
    """The entries of the gradient that `ComponentSets.gradient` leaves at 0.

    Parameters
    ----------
    solved : ComponentSets
        The sets, after `solve`.
    precision : Precision
        How finely the integrals over time are evaluated.

    Attributes
    ----------
    error : float
        After `gradient`: the largest estimated error of a set.
    """

    def __init__(self, solved: ComponentSets, precision: Precision = FINE) -> None:
        self.solved = solved
        self.parameters = solved.parameters
        self.error = 0.0
        self._precision = precision
        functions = solved.functions
        sizes = [f.k for f in functions]
        widths = [f.columns.size for f in functions]
        # The first row and the first column of each component in the tables of all components.
        self._row_start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._column_start = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        self._isolated = solved.decomposition.isolated

    def gradient(self, weights: NDArray[np.float64], n_threads: int) -> NDArray[np.float64]:
        """Return the weighted sum of the gradients of all sets. Entries within components are 0."""
        self._shared = SharedTimes(self.solved, self._precision)
        times = self._shared.times
        self._pooled = self._shared.pooled(weights)
        self._members = self._membership()
        # For each observation time: the mean time for which each item of a component has been
        # present, and the error of each component.
        self._lasting = np.zeros((self._row_start[-1], times.size))
        self._worst = np.zeros((len(self.solved.functions), times.size))
        n = self.parameters.n
        count = int(max(1, min(_MOST_SUMS, _MOST_SUM_BYTES / (8.0 * n * n))))
        totals = [np.zeros((n, n)) for _ in range(count)]
        for portion in self._portions():
            self._between_components(portion, totals, n_threads)
        pieces = [
            partial(self._onto_steady, range(at, len(self.solved.sets), count), weights, totals[at])
            for at in range(count)
        ]
        run_all(pieces, n_threads)
        self._judge()
        total = totals[0]
        for more in totals[1:]:
            total += more
        return total

    def _membership(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return two tables of 0 and 1: the components, and the isolated items, of each set."""
        solved = self.solved
        components = np.zeros((len(solved.sets), len(solved.functions)))
        isolated = np.zeros((len(solved.sets), self._isolated.size))
        for s in range(len(solved.sets)):
            own, alone = solved.parts(s)
            components[s, own] = 1.0
            isolated[s, alone] = 1.0
        return components, isolated

    def _fastest(self) -> float:
        exits = [float(f.exits.max()) for f in self.solved.functions]
        return float(max([*exits, *self.parameters.rate[self._isolated], 1e-300]))

    def _portions(self) -> list[NDArray[np.int64]]:
        """Return the positions of times in portions that are small enough for the memory."""
        times = self._shared.times
        if not self.solved.functions:
            return []
        moments = moments_before(times[-1:], self._fastest(), self.solved.grid, self._precision)[1]
        per_time = 8.0 * moments.size * (self._row_start[-1] + self._column_start[-1])
        count = int(np.ceil(times.size * per_time / _MOST_BYTES))
        return np.array_split(np.arange(times.size), max(1, min(count, times.size)))

    def _between_components(
        self, portion: NDArray[np.int64], totals: list[NDArray[np.float64]], n_threads: int
    ) -> None:
        """Add the entries of the gradient for columns of components, for a portion of the times."""
        functions = self.solved.functions
        moments, at, lengths = moments_before(
            self._shared.times[portion], self._fastest(), self.solved.grid, self._precision
        )
        # Start with the largest components, which take longest.
        order = sorted(range(len(functions)), key=lambda c: -functions[c].k)
        done = run_all([partial(self._tables, c, portion, moments) for c in order], n_threads)
        tables = dict(zip(order, done, strict=True))
        pieces = [
            partial(_Products(self, portion, moments, (at, lengths), tables).add, first, into)
            for first, into in enumerate(totals)
        ]
        run_all([partial(piece, len(totals)) for piece in pieces], n_threads)

    def _tables(
        self, c: int, portion: NDArray[np.int64], moments: Moments
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return X and Y of `presence_and_steps` for a component, at all moments."""
        f: ComponentFunction = self.solved.functions[c]
        needed = self._members[0][:, c] @ self._pooled[:, portion] > 0.0
        X = np.empty((f.k, int(moments.start[-1])))
        Y = np.empty((f.columns.size, X.shape[1]))
        if not needed.any():
            return X, Y
        half = self.solved.grid.half
        B = np.empty((1 << f.k, DEGREES, half.size))
        call(component_backward, B, f.rates, f.exits, f.slowest, half, f.k)
        component = CrossTables(
            np.ascontiguousarray(f.P.transpose(2, 1, 0)),
            np.ascontiguousarray(B.transpose(2, 1, 0)),
            f.rates_by_column,
        )
        times = self._shared.times[portion]
        scaled = np.exp(self._shared.log_components[c, portion] + f.slowest * times)
        worst = np.empty(portion.size)
        call(presence_and_steps, X, Y, worst, component, moments, scaled, needed)
        self._worst[c, portion] = worst
        return X, Y

    def _onto_steady(
        self, chosen: range, weights: NDArray[np.float64], total: NDArray[np.float64]
    ) -> None:
        """Add the gradient entries of columns that are isolated items or have constant rates.

        Only the contributions of the sets at the positions `chosen` are added.
        """
        solved = self.solved
        rate = self.parameters.rate
        times = self._shared.times
        wt = np.multiply.outer(rate[self._isolated], times)
        lasting = np.concatenate([self._lasting, times * _present_share(wt)])
        with np.errstate(over="ignore"):
            # The density of the arrival minus the mean rate. This difference is the same at every
            # moment.
            steps = rate[self._isolated][:, None] / np.expm1(wt)
        for s in chosen:
            components, isolated = solved.parts(s)
            own = [np.arange(self._row_start[c], self._row_start[c + 1]) for c in components]
            places = np.concatenate([*own, self._row_start[-1] + isolated])
            rows = np.concatenate(
                [*(solved.functions[c].columns[: solved.functions[c].k] for c in components),
                 self._isolated[isolated]]
            )  # fmt: skip
            at = self._shared.points[s]
            present = lasting[np.ix_(places, at)] * (weights[s] * self._shared.weights[s])
            entries = present @ steps[np.ix_(isolated, at)].T
            same = np.arange(isolated.size)
            entries[same + rows.size - isolated.size, same] = 0.0
            total[np.ix_(rows, self._isolated[isolated])] += entries
            # If the rate of the column is constant, the entry is minus this rate, times the time
            # during which the item of the row is present.
            steady = np.where(solved.touched[s], 0.0, rate)
            total[rows] -= np.multiply.outer(present.sum(axis=1), steady)

    def _judge(self) -> None:
        """Store the largest estimated error of all sets; raise an error if it is too large."""
        for s, at in enumerate(self._shared.points):
            found = self._worst[np.ix_(self.solved.parts(s)[0], at)].sum(axis=0)
            self.error = max(self.error, float(found @ self._shared.weights[s]))
        if self.error > CROSS_ACCURACY:
            raise InputError(
                f"the gradient between components has an error of {self.error:.1g}, because the "
                "rates of the model differ too much. Use a theta with smaller entries"
            )


class _Products:
    """Multiply the tables X and Y of components at some times, and add the products to a sum.

    The kernel `crossing.presence_and_steps` computes X and Y.
    """

    def __init__(
        self,
        cross: CrossGradient,
        portion: NDArray[np.int64],
        moments: Moments,
        weighed: tuple[NDArray[np.float64], NDArray[np.float64]],
        tables: dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]],
    ) -> None:
        self.cross = cross
        self.portion = portion
        self.moments = moments
        self.at, self.lengths = weighed
        self.tables = tables

    def add(self, first: int, total: NDArray[np.float64], every: int) -> None:
        """Add the products at the times `first`, `first + every`, ..."""
        for place in range(first, self.portion.size, every):
            self._add_time(place, total)

    def _add_time(self, place: int, total: NDArray[np.float64]) -> None:
        """Add the products at one time, for all sets together or set by set, whichever is faster.

        If all sets are computed together, every pair of components is computed once. This includes
        pairs that no set contains.
        """
        cross = self.cross
        sets = np.nonzero(cross._pooled[:, self.portion[place]])[0]  # noqa: SLF001 - part of it
        parts = [cross.solved.parts(int(s)) for s in sets]
        active = np.unique(np.concatenate([own for own, _ in parts]))
        alone = np.unique(np.concatenate([isolated for _, isolated in parts]))
        each = sum(self._cost(own, isolated) for own, isolated in parts)
        if self._cost(active, alone) <= each:
            self._add_sets(place, sets, (active, alone), total)
            return
        for s, part in zip(sets, parts, strict=True):
            self._add_sets(place, np.array([s]), part, total)

    def _cost(self, components: NDArray[np.int64], isolated: NDArray[np.int64]) -> float:
        """Return the number of (row, column) pairs of these components and isolated items."""
        cross = self.cross
        rows = np.diff(cross._row_start)[components].sum() + isolated.size  # noqa: SLF001
        return float(rows) * float(np.diff(cross._column_start)[components].sum())  # noqa: SLF001

    def _add_sets(
        self,
        place: int,
        sets: NDArray[np.int64],
        parts: tuple[NDArray[np.int64], NDArray[np.int64]],
        total: NDArray[np.float64],
    ) -> None:
        """Add the products of the components and isolated items of some sets at one time."""
        active, alone = parts
        if not active.size:
            return
        cross = self.cross
        functions = [cross.solved.functions[c] for c in active]
        q = int(self.portion[place])
        here = slice(int(self.moments.start[place]), int(self.moments.start[place + 1]))
        X = np.concatenate([self.tables[c][0][:, here] for c in active]) * self.lengths[here]
        Y = np.concatenate([self.tables[c][1][:, here] for c in active])
        row_start = cross._row_start  # noqa: SLF001
        own = np.concatenate([np.arange(row_start[c], row_start[c + 1]) for c in active])
        cross._lasting[own, q] = X.sum(axis=1)  # noqa: SLF001
        index = np.arange(active.size)
        rows = Places(
            np.concatenate([f.columns[: f.k] for f in functions]),
            np.repeat(index, [f.k for f in functions]),
        )
        columns = Places(
            np.concatenate([f.columns for f in functions]),
            np.repeat(index, [f.columns.size for f in functions]),
        )
        together = cross._members[0][np.ix_(sets, active)]  # noqa: SLF001
        weighted = cross._pooled[sets, q][:, None] * together  # noqa: SLF001
        pairs = together.T @ weighted
        np.fill_diagonal(pairs, 0.0)
        _add_products(total, X, Y, pairs, (rows, columns))
        if alone.size:
            items = cross._isolated[alone]  # noqa: SLF001
            w = cross.parameters.rate[items][:, None]
            t = float(cross._shared.times[q])  # noqa: SLF001
            X = np.expm1(-w * self.at[here]) / np.expm1(-w * t) * self.lengths[here]
            pairs = cross._members[1][np.ix_(sets, alone)].T @ weighted  # noqa: SLF001
            _add_products(total, X, Y, pairs, (Places(items, np.arange(alone.size)), columns))


def _add_products(
    total: NDArray[np.float64],
    X: NDArray[np.float64],
    Y: NDArray[np.float64],
    pairs: NDArray[np.float64],
    places: tuple[Places, Places],
) -> None:
    """Add the product of every row of X with every column of Y to `total`, in blocks of rows."""
    rows, columns = places
    pairs = np.ascontiguousarray(pairs)
    for first in range(0, X.shape[0], _MOST_ROWS):
        some = slice(first, first + _MOST_ROWS)
        part = Places(rows.item[some], rows.part[some])
        call(add_pairs, total, X[some] @ Y.T, pairs, part, columns)


def _present_share(wt: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean share of the time [0, t] during which an isolated item is present.

    The item is known to be present at t. If its rate is w, the share is 1 / (1 - exp(-wt)) - 1 /
    wt.
    """
    small = np.minimum(wt, _SMALL)
    large = np.maximum(wt, _SMALL)
    series = 0.5 + small / 12.0 - small**3 / 720.0
    return np.where(wt < _SMALL, series, -1.0 / np.expm1(-large) - 1.0 / large)
