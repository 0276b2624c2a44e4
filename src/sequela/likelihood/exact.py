"""Evaluate many sets exactly, in blocks whose results are added in a fixed order."""

from __future__ import annotations

import heapq
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arguments import BlockSums
from sequela.kernels.lattice import evaluate_block
from sequela.kernels.phases import evaluate_phases
from sequela.likelihood.partial import evaluate_partial, lattices_of
from sequela.likelihood.passage import Known, Passage, in_range
from sequela.support.jit import call
from sequela.support.threads import run_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from sequela.likelihood.distinct import DistinctSamples
    from sequela.likelihood.parameters import Parameters
    from sequela.likelihood.partial import PartialLattice, PartialSet

__all__ = ["ExactWork", "plan_blocks"]

# The work of a block (number of operations), the largest number of blocks, and the largest number
# of bytes for the gradients of all blocks. A block should be large enough to keep a thread busy,
# and there should be enough blocks to share them evenly among the threads. The number of blocks
# does not depend on the number of threads. So the results do not depend on it either.
_BLOCK_WORK = 5e6
_MOST_BLOCKS = 64
_MOST_BLOCK_BYTES = 256e6


def plan_blocks(
    distinct: DistinctSamples, chosen: NDArray[np.int64], n: int
) -> list[NDArray[np.int64]]:
    """Distribute the chosen sets over blocks of about equal work.

    Sets at known times and partly known sets are in separate blocks, because these sets are
    evaluated one by one.

    Parameters
    ----------
    distinct : DistinctSamples
        All sets.
    chosen : array of int
        The positions of the chosen sets.
    n : int
        Number of items.
    """
    alone = distinct.timed[chosen] | distinct.partial[chosen]
    return _untimed_blocks(distinct.sizes, chosen[~alone], n) + _blocks_one_by_one(
        distinct.sizes, chosen[alone], n
    )


def _untimed_blocks(
    sizes: NDArray[np.int64], chosen: NDArray[np.int64], n: int
) -> list[NDArray[np.int64]]:
    if not chosen.size:
        return []
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


def _blocks_one_by_one(
    sizes: NDArray[np.int64], chosen: NDArray[np.int64], n: int
) -> list[NDArray[np.int64]]:
    if not chosen.size:
        return []
    room = int(_MOST_BLOCK_BYTES / (8.0 * n**2))
    count = min(_MOST_BLOCKS, max(room, 1), chosen.size)
    # Distribute the sets in order of decreasing size, so that all blocks have about the same work.
    order = chosen[np.argsort(-sizes[chosen], kind="stable")]
    # Make the array contiguous, because a kernel is compiled for one layout of its arguments.
    return [order[start::count].copy() for start in range(count)]


class ExactWork:
    """The exact evaluation of sets at one theta, divided into pieces that threads can share.

    Parameters
    ----------
    parameters : Parameters
        Theta and the observation.
    distinct : DistinctSamples
        All sets.
    blocks : list of arrays
        The positions of the sets that are evaluated exactly, in blocks, from `plan_blocks`.
    want_gradient : bool
        Whether to compute the gradient.
    lattices : callable or None
        A function that returns the lattices of a partly known sample (`partial.lattices_of`). None
        means lattices that give the complete gradient at theta.

    Attributes
    ----------
    log_p : array
        Log-probability of each distinct sample; NaN for samples that are not evaluated exactly.
    beyond : list of int
        After `finish`: the sets that could not be evaluated, because their rates are too large for
        a double. Their log p is NaN.
    """

    def __init__(
        self,
        parameters: Parameters,
        distinct: DistinctSamples,
        blocks: list[NDArray[np.int64]],
        *,
        want_gradient: bool,
        lattices: Callable[[int, PartialSet], Sequence[PartialLattice]] | None = None,
    ) -> None:
        self.parameters = parameters
        self.lattices = self._at_theta if lattices is None else lattices
        self.distinct = distinct
        self.blocks = blocks
        self.want_gradient = want_gradient
        self.log_p = np.full(len(distinct), np.nan)
        self.beyond: list[int] = []
        self._in_range = np.ones(len(distinct), dtype=np.bool_)
        n = parameters.n
        self._sums = [
            BlockSums(
                self.log_p,
                self._in_range,
                np.zeros((n, n) if want_gradient else (1, 1)),
                np.zeros(n + 1),
            )
            for _ in blocks
        ]

    @property
    def pieces(self) -> list[Callable[[], None]]:
        """One function per block. The functions may run in any thread and in any order."""
        return [
            partial(self._one_by_one if self._is_alone(block[0]) else self._together, block, sums)
            for block, sums in zip(self.blocks, self._sums, strict=True)
        ]

    def _is_alone(self, s: int) -> bool:
        return bool(self.distinct.timed[s] or self.distinct.partial[s])

    def _together(self, block: NDArray[np.int64], sums: BlockSums) -> None:
        phases = self.parameters.phases
        if phases is not None:
            call(
                evaluate_phases, self.parameters.tables, self.distinct.sets, block, sums, phases,
                self.want_gradient,
            )  # fmt: skip
            return
        call(
            evaluate_block, self.parameters.tables, self.distinct.sets, block, sums,
            self.want_gradient,
        )  # fmt: skip

    def _one_by_one(self, block: NDArray[np.int64], sums: BlockSums) -> None:
        for s in map(int, block):
            t = float(self.distinct.times[s])
            if t == 0.0:
                self.log_p[s] = 0.0  # at time 0 the set is empty for every theta
                continue
            known = self.distinct.known(s)
            if known is not None:
                self.log_p[s], part = evaluate_partial(
                    self.parameters, known, t, self.lattices(s, known),
                    want_gradient=self.want_gradient,
                )  # fmt: skip
            else:
                columns = self.parameters.columns(self.distinct.items(s))
                if not in_range(columns):
                    continue
                passage = Passage(self.parameters, columns)
                self.log_p[s], part = passage.timed(t, want_gradient=self.want_gradient)
            if part is not None and not np.isnan(self.log_p[s]):
                np.add(sums.gradient, self.distinct.weights[s] * part, out=sums.gradient)

    def _at_theta(self, s: int, known: PartialSet) -> list[PartialLattice]:  # noqa: ARG002
        return lattices_of(known, self.parameters.children, full_gradient=self.want_gradient)

    def finish(self, n_threads: int) -> NDArray[np.float64] | None:
        """Evaluate the sets that the blocks skipped; return the weighted gradient of all sets."""
        done = self._carefully(n_threads)
        # Test the sum first, which is fast: it is NaN if any entry is NaN.
        if self.blocks and np.isnan(self.log_p.sum()):
            lacking = np.isnan(self.log_p)
            places = np.concatenate(self.blocks)
            self.beyond = places[lacking[places]].tolist()
        if not self.want_gradient:
            return None
        gradient = self._add_up()
        for s, part in done:
            if part is not None:
                gradient += self.distinct.weights[s] * part
        return gradient

    def _carefully(self, n_threads: int) -> list[tuple[int, NDArray[np.float64] | None]]:
        """Evaluate in logarithms the sets whose products of rates may be out of range."""
        if self._in_range.all():
            return []
        careful = [int(s) for s in np.nonzero(~self._in_range)[0]]
        done = run_all([partial(self._in_logs, s) for s in careful], n_threads)
        return list(zip(careful, done, strict=True))

    def _in_logs(self, s: int) -> NDArray[np.float64] | None:
        columns = self.parameters.columns(self.distinct.items(s))
        # If phases represent the observation time, a set cannot be evaluated in logarithms.
        if not in_range(columns) or self.parameters.phases is not None:
            return None
        needed = self.distinct.sets.known
        known = Known(n_present=int(needed[s])) if needed.size else None
        passage = Passage(self.parameters, columns, known)
        self.log_p[s] = passage.log_p()
        return passage.gradient() if self.want_gradient else None

    def _add_up(self) -> NDArray[np.float64]:
        """Add the sums of all blocks in order; then add -rate * time for every shared item.

        `kernels.lattice.scatter` explains why this term is added at the end.
        """
        parameters = self.parameters
        n = parameters.n
        if not self._sums:
            return np.zeros((n, n))
        gradient, present = self._sums[0].gradient, self._sums[0].present
        for sums in self._sums[1:]:
            gradient += sums.gradient
            present += sums.present
        rate = np.where(parameters.shared, parameters.rate, 0.0)
        diagonal = gradient.diagonal() - present[n] * rate
        gradient -= present[:n, None] * rate
        gradient.ravel()[:: n + 1] = diagonal
        return gradient
