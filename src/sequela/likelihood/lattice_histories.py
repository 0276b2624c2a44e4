"""Draw histories of a partly known sample from its lattice, backwards in time.

The forward weights of the lattice say how probable each final state is, and, for each state, how
probable it is that a given item arrived last. So a history is drawn item by item: first the final
state, which fills in the missing cells, then the last item, the item before it, and so on. The
draws are exact and independent, and they obey known orders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.passage import Passage

__all__ = ["LatticeHistories", "arrived_last"]


def arrived_last(passage: Passage) -> NDArray[np.float64]:
    """Return the probability that item c arrived last, given the state R: an array (items, states).

    It is 0 if c is not in R, or if known orders make R impossible. Call `passage.log_p` before.
    """
    lattice = passage.lattice
    states = np.arange(1 << passage.k)
    shares = np.zeros((passage.k, states.size))
    for c in range(passage.k):
        R = states[states >> c & 1 == 1]
        before = R ^ (1 << c)
        high, low = before >> lattice.low, before & ((1 << lattice.low) - 1)
        log_rate = lattice.high_log[c, high] + lattice.low_log[c, low]
        possible = passage.log_F[R] > -np.inf
        if lattice.guided:
            log_rate = log_rate + lattice.guide_high[c, high] + lattice.guide_low[c, low]
            possible &= before & lattice.must[c] == lattice.must[c]
        R, before, log_rate = R[possible], before[possible], log_rate[possible]
        log_share = passage.log_F[before] + log_rate - np.log(passage.stop_rate + lattice.Q[R])
        shares[c, R] = np.exp(log_share - passage.log_F[R])
    return shares


class LatticeHistories:
    """Draws of the history of one sample.

    Parameters
    ----------
    passage : Passage
        The lattice of the sample, after `log_p`.
    """

    def __init__(self, passage: Passage) -> None:
        self._passage = passage
        self._ends = np.cumsum(passage.end_shares())
        self._last: dict[int, tuple[list[int], NDArray[np.float64]]] = {}

    def draw(self, rng: np.random.Generator) -> list[int]:
        """Return a history: positions on the lattice, in the order of arrival."""
        state = int(np.searchsorted(self._ends, rng.random() * self._ends[-1], side="right"))
        order = []
        while state:
            items, shares = self._shares(state)
            at = int(np.searchsorted(shares, rng.random() * shares[-1], side="right"))
            order.append(items[at])
            state ^= 1 << items[at]
        return order[::-1]

    def _shares(self, state: int) -> tuple[list[int], NDArray[np.float64]]:
        """Return the items of a state, and the cumulative probabilities that each arrived last."""
        if state not in self._last:
            passage = self._passage
            items = [c for c in range(passage.k) if state >> c & 1]
            before = [state ^ (1 << c) for c in items]
            log_share = np.array(
                [
                    passage.log_F[R] + passage.log_step(R, c)
                    for R, c in zip(before, items, strict=True)
                ]
            )
            self._last[state] = items, np.cumsum(np.exp(log_share - log_share.max()))
        return self._last[state]

    def times(self, order: list[int], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return draws of the times spent before each item of a history and after the last."""
        states = np.cumsum([0, *(1 << c for c in order)])
        exits = self._passage.stop_rate + self._passage.lattice.Q[states]
        held: NDArray[np.float64] = rng.standard_exponential(states.size) / exits
        return held
