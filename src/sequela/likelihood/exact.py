"""Exact value and gradient of many sets: blocks of compiled work, added up in a fixed order."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sequela.kernels.contour import transient_gradient, transient_set
from sequela.kernels.lattice import evaluate_block
from sequela.kernels.passage import (
    exit_rates,
    log_forward,
    log_tables,
    passage_gradient,
)
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.threads import run_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.observations import Observations
    from sequela.likelihood.parameters import Columns, Parameters

__all__ = ["ExactSets", "ExactTimed", "Passage", "plan_blocks"]

# A block's gradient sum, and how long each item was present in it.
_Part: TypeAlias = "tuple[NDArray[np.float64], NDArray[np.float64]]"

# A block should be worth a thread's while, and there should be enough of them to balance; their
# number depends on the problem alone, so that sums are the same for any number of threads.
_BLOCK_WORK = 5e6
_MOST_BLOCKS = 64
_MOST_BLOCK_BYTES = 256e6

# Beyond this log-rate a sum of rates would leave the range of a double.
_HIGHEST_LOG_RATE = 680.0


def plan_blocks(
    sizes: NDArray[np.int64], chosen: NDArray[np.int64], n: int
) -> list[NDArray[np.int64]]:
    """Share the sets among blocks of about equal work, the heaviest first."""
    work = 2.0 ** sizes[chosen] * (6.0 * min(n, 64) + 10.0 * sizes[chosen]) + 5e3
    room = int(_MOST_BLOCK_BYTES / (8.0 * n * n))
    count = max(1, min(_MOST_BLOCKS, room, int(work.sum() / _BLOCK_WORK), chosen.size))
    heap = [(0.0, index) for index in range(count)]
    members: list[list[int]] = [[] for _ in range(count)]
    for at in np.argsort(-work, kind="stable"):
        load, index = heapq.heappop(heap)
        members[index].append(int(chosen[at]))
        heapq.heappush(heap, (load + float(work[at]), index))
    return [np.array(sorted(block), dtype=np.int64) for block in members if block]


class ExactSets:
    """The sets of `blocks`, times unknown: pieces of work, and their sum when all are done."""

    def __init__(
        self,
        parameters: Parameters,
        observations: Observations,
        blocks: list[NDArray[np.int64]],
        log_p: NDArray[np.float64],
        *,
        want_gradient: bool,
    ) -> None:
        self.parameters = parameters
        self.observations = observations
        self.blocks = blocks
        self.log_p = log_p
        self.in_range = np.ones(observations.sizes.size, dtype=np.bool_)
        self.want_gradient = want_gradient

    def work(self, block: NDArray[np.int64]) -> _Part:
        """Fill `log_p` of one block; return its gradient sum and its times (see `scatter`)."""
        n = self.parameters.n
        gradient = np.zeros((n, n) if self.want_gradient else (1, 1))
        present = np.zeros(n + 1)
        given = self.parameters
        seen = self.observations
        call(
            evaluate_block, given.theta, given.W, given.rate, given.row_start, given.row_item,
            given.shared, given.constant, given.rare, given.observation_rate, seen.indptr,
            seen.indices, block, seen.weights, self.log_p, self.in_range, gradient, present,
            self.want_gradient,
        )  # fmt: skip
        return gradient, present

    def finish(self, parts: list[_Part], n_threads: int) -> NDArray[np.float64] | None:
        """Return the weighted gradient; do the sets that the blocks found out of range."""
        gradient = _add_up(self.parameters, parts) if self.want_gradient else None
        if self.in_range.all():
            return gradient
        careful = [int(s) for s in np.nonzero(~self.in_range)[0]]
        done = run_pieces(self._work_carefully, careful, n_threads)
        for s, (value, part) in zip(careful, done, strict=True):
            self.log_p[s] = value
            if gradient is not None and part is not None:
                gradient += self.observations.weights[s] * part
        return gradient

    def _work_carefully(self, s: int) -> tuple[float, NDArray[np.float64] | None]:
        passage = Passage(self.parameters, self.observations.items(s))
        return passage.log_p(), passage.gradient() if self.want_gradient else None


def _add_up(parameters: Parameters, parts: list[_Part]) -> NDArray[np.float64]:
    """Add the blocks in order; give every shared item the gradient -rate * time (`scatter`)."""
    n = parameters.n
    gradient, present = parts[0]
    for other, time in parts[1:]:
        gradient += other
        present += time
    diagonal = gradient.diagonal().copy()
    rate = np.where(parameters.shared, parameters.rate, 0.0)
    seen = np.nonzero(present[:n])[0]
    gradient[seen] -= present[seen, None] * rate
    np.fill_diagonal(gradient, diagonal - present[n] * rate)
    return gradient


class Passage:
    """One set on its lattice in logarithms (kernels of `passage`): slower, right for any theta."""

    def __init__(self, parameters: Parameters, items: NDArray[np.int64]) -> None:
        self.parameters = parameters
        self.columns = check_range(parameters, items)
        self.k = k = self.columns.k
        self.m = m = self.columns.items.size
        self.low = k // 2
        self.low_log = np.zeros((m, 1 << self.low))
        self.high_log = np.zeros((m, 1 << (k - self.low)))
        self.Q = np.empty(1 << k)
        self.log_F = np.empty(1 << k)
        call(
            log_tables, self.low_log, self.high_log, parameters.theta, self.columns.items, m, k,
            self.low,
        )  # fmt: skip
        call(
            exit_rates, self.Q, self.low_log, self.high_log, m, k, self.low, self.columns.rest
        )  # fmt: skip

    def log_p(self) -> float:
        """Return log p(S) at an unknown time."""
        z = self.parameters.observation_rate
        call(log_forward, self.log_F, self.Q, z, self.low_log, self.high_log, self.k, self.low)
        return float(self.log_F[-1] + np.log(z))

    def gradient(self) -> NDArray[np.float64]:
        """Return the n x n gradient of log p(S); call `log_p` before."""
        G = np.empty((self.k + 1, self.m + 1))
        call(
            passage_gradient, G, np.empty(1 << self.k), self.log_F, self.Q,
            self.parameters.observation_rate, self.low_log, self.high_log, self.m, self.k,
            self.low,
        )  # fmt: skip
        return self._spread(G)

    def timed(self, t: float, *, want_gradient: bool) -> tuple[float, NDArray[np.float64] | None]:
        """Return log p(S | t) and its n x n gradient."""
        states = 1 << self.k
        real = [np.empty(states) for _ in range(3)]
        steps = np.zeros((states, max(self.k, 1)))
        crossings = np.empty((states if want_gradient else 1, max(self.k, 1)))
        u = np.empty((2, states))
        eta = np.empty((2, states if want_gradient else 1))
        # The constant rate of all other items is left out and taken into account at the end, for
        # differences of exit rates would drown in it. Q is shifted in place.
        Q = np.empty(states)
        call(exit_rates, Q, self.low_log, self.high_log, self.m, self.k, self.low, 0.0)
        value, tilt = call(
            transient_set, t, Q, self.log_F, real[0], real[1], steps, u, eta, real[2],
            crossings, self.low_log, self.high_log, self.k, self.low, want_gradient,
        )  # fmt: skip
        if np.isnan(value):
            raise InputError(
                f"the likelihood of a set of {self.k} items at time {t:g} is beyond double "
                "precision: rates times the time are too large; scale times or theta down"
            )
        value -= self.columns.rest * t
        if not want_gradient:
            return float(value), None
        G = np.empty((self.k + 1, self.m + 1))
        call(
            transient_gradient, G, real[2], crossings, Q, tilt, self.low_log, self.high_log,
            self.m, self.k, self.low,
        )  # fmt: skip
        return float(value), self._spread(G)

    def _spread(self, G: NDArray[np.float64]) -> NDArray[np.float64]:
        gradient = np.zeros((self.parameters.n, self.parameters.n))
        self.parameters.spread(self.columns, G, gradient)
        return gradient


def check_range(parameters: Parameters, items: NDArray[np.int64]) -> Columns:
    """Return the columns of a set, or raise if its rates cannot be added up in doubles."""
    columns = parameters.columns(items)
    if columns.highest > _HIGHEST_LOG_RATE:
        raise InputError(
            f"theta adds up to a log-rate of {columns.highest:.0f} for a set of {columns.k} "
            f"items, beyond the largest double (about 709); scale the largest entries of theta "
            "down"
        )
    return columns


class ExactTimed:
    """The observations `chosen`, at known times: pieces of work, and their sum."""

    def __init__(
        self,
        parameters: Parameters,
        observations: Observations,
        chosen: NDArray[np.int64],
        log_p: NDArray[np.float64],
        *,
        want_gradient: bool,
    ) -> None:
        self.parameters = parameters
        self.observations = observations
        self.log_p = log_p
        self.want_gradient = want_gradient
        self.blocks: list[NDArray[np.int64]] = []
        if not chosen.size:
            return
        room = int(_MOST_BLOCK_BYTES / (8.0 * parameters.n**2))
        count = min(_MOST_BLOCKS, max(room, 1), chosen.size)
        # Dealt out by size, the largest first, so that the shares are about equal.
        order = chosen[np.argsort(-observations.sizes[chosen], kind="stable")]
        self.blocks = [order[start::count] for start in range(count)]

    def work(self, block: NDArray[np.int64]) -> NDArray[np.float64]:
        """Fill `log_p` of one block; return its weighted gradient."""
        n = self.parameters.n
        total = np.zeros((n, n) if self.want_gradient else (1, 1))
        for s in block:
            t = float(self.observations.times[s])
            if t == 0.0:
                self.log_p[s] = 0.0  # empty at time 0, whatever theta
                continue
            passage = Passage(self.parameters, self.observations.items(s))
            self.log_p[s], part = passage.timed(t, want_gradient=self.want_gradient)
            if part is not None:
                total += self.observations.weights[s] * part
        return total

    def finish(self, parts: list[NDArray[np.float64]]) -> NDArray[np.float64] | None:
        """Return the weighted gradient."""
        return np.sum(parts, axis=0) if self.want_gradient else None
