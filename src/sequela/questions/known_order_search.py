"""The most likely orders of the known items of a sample with missing cells.

The probability of an order of the known items is a sum over all histories in which the known items
have this order: over the missing items that are present, and over their places. Seen backwards in
time, a history is a Markov chain on the lattice of the known and the missing items: `arrived_last`
returns the probabilities of its steps. So for the last few known items, one vector, with an entry
per set of missing items, has the total probability of all histories that end with these known
items.

An A* search extends the most promising of these vectors. Its bound is the probability of the best
completion if the next known item could depend on the set of missing items. The true probability is
never larger, so complete orders are found in the order of their probabilities.
"""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from sequela.likelihood.lattice_histories import arrived_last

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sequela.likelihood.passage import Passage

__all__ = ["KnownOrders"]

# Bounds are compared after rounding, so that rounding errors do not decide between equal bounds.
_DIGITS = 9


class KnownOrders:
    """Probabilities of the orders of the known items of one sample.

    Parameters
    ----------
    passage : Passage
        The lattice of the sample, after `log_p`. Its first `n_known` items are known to be present,
        the others are missing.
    n_known : int
        Number of known items.
    """

    def __init__(self, passage: Passage, n_known: int) -> None:
        self.n_known = n_known
        self.n_missing = passage.k - n_known
        shape = (1 << self.n_missing, 1 << n_known)
        last = arrived_last(passage).reshape(passage.k, *shape)
        # The first axis is the item, the second the set of missing items, the third the set of
        # known items.
        self._known_last, self._missing_last = last[:n_known], last[n_known:]
        self._ends = passage.end_shares().reshape(shape)[:, -1]
        sets = np.arange(shape[0])
        sizes = np.array([int(m).bit_count() for m in sets])
        # For each size and each missing item j: the sets of this size with j, and without j.
        self._without = [
            (j, left, left ^ (1 << j))
            for size in range(1, self.n_missing + 1)
            for j in range(self.n_missing)
            for left in [sets[(sizes == size) & (sets >> j & 1 == 1)]]
        ]
        self._largest_first = sorted(self._without, key=lambda step: -int(sizes[step[1][0]]))

    def start(self) -> NDArray[np.float64]:
        """Return the probability of visiting each set of missing items with all known items."""
        return self._visits(self._ends, (1 << self.n_known) - 1)

    def extend(self, visits: NDArray[np.float64], state: int, item: int) -> NDArray[np.float64]:
        """Return the probability of visiting each set of missing items before `item` arrived.

        `visits` are these probabilities while the set of known items is `state`. `item` is the item
        of `state` that arrived last, so the result is for the set without `item`.
        """
        return self._visits(visits * self._known_last[item, :, state], state ^ (1 << item))

    def probability(self, order: tuple[int, ...]) -> float:
        """Return the probability of an order of all known items."""
        state = (1 << self.n_known) - 1
        visits = self.start()
        for item in order[::-1]:
            entered = visits * self._known_last[item, :, state]
            state ^= 1 << item
            visits = self._visits(entered, state)
        return float(entered.sum()) if order else 1.0

    def _visits(self, entered: NDArray[np.float64], state: int) -> NDArray[np.float64]:
        """Return the probability of visiting each set of missing items.

        The set of known items is `state`, and the calculation goes backwards in time. `entered` has
        the probability of each set of missing items at the moment when the set of known items
        becomes `state`. After this moment (seen backwards), missing items leave one by one.
        """
        visits = entered.copy()
        steps = self._missing_last[:, :, state]
        for j, left, after in self._largest_first:
            # Each set receives at most one contribution in this line.
            visits[after] += visits[left] * steps[j, left]
        return visits

    def bounds(self) -> NDArray[np.float64]:
        """Return an upper bound of the probability of the best order of a set of known items.

        Entry (m, X) is for a history that is, seen backwards, in the set m of missing items and the
        set X of known items.
        """
        best = np.ones((1 << self.n_missing, 1 << self.n_known))
        states = np.arange(1 << self.n_known)
        sizes = np.array([int(X).bit_count() for X in states])
        for size in range(1, self.n_known + 1):
            here = states[sizes == size]
            best[:, here] = 0.0
            for item in range(self.n_known):
                with_item = here[here >> item & 1 == 1]
                value = self._best_after(best, with_item, item)
                best[:, with_item] = np.maximum(best[:, with_item], value)
        return best

    def _best_after(
        self, best: NDArray[np.float64], states: NDArray[np.int64], item: int
    ) -> NDArray[np.float64]:
        """Return the bounds for the `states` if `item` is the last known item to arrive in them."""
        value: NDArray[np.float64] = (
            self._known_last[item][:, states] * best[:, states ^ (1 << item)]
        )
        steps = self._missing_last[:, :, states]
        for j, left, after in self._without:
            value[left] += steps[j, left] * value[after]
        return value

    def best_orders(self, most_steps: int) -> Iterator[tuple[float, tuple[int, ...]] | None]:
        """Yield probabilities and orders, the most probable first.

        Yield None, and stop, if the search needs more than `most_steps` steps.
        """
        bounds = self.bounds()
        full = (1 << self.n_known) - 1
        ties = count(1)
        # Each entry of the heap is an unfinished order. It has the negative logarithm of the bound,
        # a tie-breaker that prefers new entries, the set of known items that are not ordered yet,
        # the order of all other known items, and the probabilities of the sets of missing items
        # before the first of these other items arrived.
        heap: list[tuple[float, int, int, tuple[int, ...], NDArray[np.float64]]]
        heap = [(0.0, 0, full, (), self._ends)]
        for _ in range(most_steps):
            if not heap:
                return
            _, _, state, order, entered = heapq.heappop(heap)
            if state == 0:
                yield float(entered.sum()), order
                continue
            visits = self._visits(entered, state)
            for item in range(self.n_known):
                if not state >> item & 1:
                    continue
                after = visits * self._known_last[item, :, state]
                bound = float(after @ bounds[:, state ^ (1 << item)])
                if bound > 0.0:  # otherwise, the order contradicts a known order
                    loss = -round(float(np.log(bound)), _DIGITS)
                    rest = state ^ (1 << item)
                    heapq.heappush(heap, (loss, -next(ties), rest, (item, *order), after))
        yield None
