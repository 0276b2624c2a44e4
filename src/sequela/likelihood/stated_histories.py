"""Draw histories of one sample given statements about its order.

`drawn_histories` draws histories without statements, for many samples at once. This module takes
statements into account. It is used for samples that are too large for a lattice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.stated_histories import draw_stated_histories
from sequela.likelihood.drawn_histories import Histories
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.random import Purpose, stream
from sequela.support.threads import run_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sequela.likelihood.parameters import Parameters
    from sequela.likelihood.partial import PartialSet

__all__ = ["STATED_CHAINS", "StatedHistories", "random_order", "reports"]

# Number of independent chains. The error is estimated from their spread.
STATED_CHAINS = 8
# Smallest and largest number of sweeps that a new chain discards. If the order of k items is known,
# a chain needs about k * k sweeps to forget its start, because items cannot pass each other.
_BURN_IN = (50, 1000)
# Number of sweeps that a chain discards if it continues.
_WARM_BURN_IN = 5
# Largest number of sweeps of one call of the kernel, so that Ctrl-C is not ignored for long.
_SWEEPS = 500


class StatedHistories:
    """Draws of the history of one sample, from several chains.

    Attributes
    ----------
    orders : array (chains, draws, n)
        The orders that were drawn.
    lengths : array (chains, draws)
        The numbers of their items.
    """

    def __init__(self, orders: NDArray[np.int16], lengths: NDArray[np.int64]) -> None:
        self.orders = orders
        self.lengths = lengths

    @classmethod
    def drawn(
        cls,
        parameters: Parameters,
        known: PartialSet,
        kept: int,
        key: tuple[int, tuple[int, ...]],
        n_threads: int,
        before: StatedHistories | None = None,
    ) -> StatedHistories:
        """Return `kept` draws of each chain.

        `key` holds the seed and the index of the streams. If `before` is None, chains start at
        random orders. Otherwise they start at the last draws of `before`, which come from a similar
        distribution.
        """
        n = parameters.n
        orders = np.zeros((STATED_CHAINS, kept, n), dtype=np.int16)
        lengths = np.zeros((STATED_CHAINS, kept), dtype=np.int64)
        statements = _arrays(known)
        stated = len({item for a, b, _ in known.statements for item in (a, b)})
        burn_in = _WARM_BURN_IN if before else int(np.clip(stated**2, *_BURN_IN))

        def one(chain: int) -> None:
            rng = stream(key[0], Purpose.COMPLETIONS, *key[1], chain)
            order = np.zeros(n, dtype=np.int64)
            if before is None:
                length = known.present.size
                certain = [(a, b) for a, b, p in known.statements if p == 1.0]
                order[:length] = random_order(rng.permutation(known.present).tolist(), certain)
            else:
                length = int(before.lengths[chain, -1])
                order[:] = before.orders[chain, -1]
            # First the sweeps of the burn-in, whose draws are not kept, and then the other sweeps.
            unused = np.zeros((0, n), dtype=np.int16), np.zeros(0, dtype=np.int64)
            pieces = [(*unused, min(_SWEEPS, burn_in - at)) for at in range(0, burn_in, _SWEEPS)]
            for first in range(0, kept, _SWEEPS):
                here = slice(first, first + _SWEEPS)
                pieces.append((orders[chain, here], lengths[chain, here], 0))
            for kept_orders, kept_lengths, discarded in pieces:
                length = call(
                    draw_stated_histories, kept_orders, kept_lengths, order, length,
                    (known.present, known.missing), parameters.tables, statements, discarded, rng,
                )  # fmt: skip
                if length < 0:
                    raise InputError(
                        f"the rates of a sample of {known.present.size} items are outside the "
                        "range of floating-point numbers; use a theta with smaller entries"
                    )

        run_all([partial(one, chain) for chain in range(STATED_CHAINS)], n_threads)
        return cls(orders, lengths)

    def sequences(self) -> list[list[int]]:
        """Return all draws as lists of items, chain after chain."""
        flat = self.orders.reshape(-1, self.orders.shape[2])
        return [o[:k].tolist() for o, k in zip(flat, self.lengths.ravel(), strict=True)]

    def log_p(self, parameters: Parameters, n_threads: int) -> NDArray[np.float64]:
        """Return the log-probability of each draw as a sequence, without the statements."""
        found: NDArray[np.float64] = self._as_histories().log_p(parameters, n_threads)[0]
        return found

    def slopes(
        self, parameters: Parameters, effects: NDArray[np.float64], n_threads: int
    ) -> NDArray[np.float64]:
        """Return the derivative of log p of every draw if theta moves in the direction `effects`.

        The result is an array (chains, draws).
        """
        found: NDArray[np.float64] = self._as_histories().slopes(parameters, effects, n_threads)[0]
        return found

    def _as_histories(self) -> Histories:
        no_states = np.zeros((1, STATED_CHAINS, 0), dtype=np.int64)
        sizes = np.zeros((1, STATED_CHAINS), dtype=np.int64)
        return Histories(no_states, sizes, self.orders[None], self.lengths[None])

    def holds(self, statement: tuple[int, int, float]) -> NDArray[np.bool_]:
        """Return in which draws (chains, draws) the first item came before the second."""
        before, after, _ = statement
        at = np.arange(self.orders.shape[2])
        inside = at < self.lengths[..., None]
        place = [np.argmax((self.orders == item) & inside, axis=2) for item in (before, after)]
        found: NDArray[np.bool_] = place[0] < place[1]
        return found


def reports(draws: StatedHistories, known: PartialSet) -> NDArray[np.float64]:
    """Return the log-probability of all statements for each draw (chains, draws)."""
    total = np.zeros(draws.lengths.shape)
    for statement in known.statements:
        p = statement[2]
        with np.errstate(divide="ignore"):
            total += np.where(draws.holds(statement), np.log(p), np.log1p(-p))
    return total


def _arrays(known: PartialSet) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    sides = np.array([(a, b) for a, b, _ in known.statements], dtype=np.int64).reshape(-1, 2)
    right = np.array([p for _, _, p in known.statements], dtype=np.float64)
    return np.ascontiguousarray(sides[:, 0]), np.ascontiguousarray(sides[:, 1]), right


def random_order(items: Sequence[int], certain: Sequence[tuple[int, int]]) -> list[int]:
    """Return the items in an order that agrees with certain statements.

    In each pair of `certain`, the first item comes before the second. If `items` have a random
    sequence, the order is random, too.
    """
    order: list[int] = []
    waiting = list(items)
    while waiting:
        late = {after for before, after in certain if before not in order}
        order.append(next(item for item in waiting if item not in late))
        waiting = [item for item in waiting if item != order[-1]]
    return order
