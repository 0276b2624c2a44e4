"""Draw orders of a set by relocation of blocks or by Metropolis-Hastings.

The state of a Markov chain over the orders of one set is its current order. So no other information
is needed to continue a chain. Chains start from exact draws of the model without interactions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.limits import LARGEST_LOG_RATE
from sequela.kernels.metropolis import metropolis
from sequela.kernels.relocation import relocate
from sequela.likelihood.independent import draw_independent_order
from sequela.likelihood.plan import Way
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.random import Purpose, stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.parameters import Columns, Parameters
    from sequela.settings import Sampling

__all__ = [
    "FIRST_BURN_IN",
    "OrderSampler",
    "draw_orders",
    "in_sampling_range",
    "sampled_columns",
]

# Number of additional burn-in sweeps of a chain that starts from the model without interactions. In
# trials, two or three sweeps were enough.
FIRST_BURN_IN = 8

_LEAST_BLOCK = 2
_NEVER = np.iinfo(np.int64).max


def in_sampling_range(columns: Columns) -> bool:
    """Return whether the set can be sampled without numbers that are too large for a double."""
    return _largest_block(columns) >= _LEAST_BLOCK


def sampled_columns(parameters: Parameters, items: NDArray[np.int64]) -> Columns:
    """Return the columns of a set to sample; raise an error if its rates are out of range."""
    columns = parameters.columns(items)
    if not in_sampling_range(columns):
        raise InputError(
            f"theta allows log-rates between {columns.lowest:.0f} and {columns.highest:.0f} for "
            f"a set of {columns.k} items; sampling needs a range of at most "
            f"{LARGEST_LOG_RATE / _LEAST_BLOCK:.0f}. Use a theta with smaller entries, or increase "
            "the budget so that the set is exact"
        )
    return columns


def _largest_block(columns: Columns) -> int:
    """Return how many items can be relocated together without numbers too large for a double.

    The weights are rescaled only when an item outside the block arrives. Before this, all items of
    the block may arrive, and the product of their rates must not be too large for a double.
    """
    width = max(columns.highest, 0.0) - min(columns.lowest, 0.0)
    return int(LARGEST_LOG_RATE / max(width, 1.0))


@dataclass(frozen=True)
class OrderSampler:
    """How orders of one set are drawn at one theta.

    Attributes
    ----------
    columns : Columns
        The entries of theta that the set needs.
    sampling : Sampling
        Block size, number of sweeps and of proposals.
    way : Way
        Relocation, or Metropolis-Hastings with one of the paper's proposals.
    t : float
        The observation time; NaN if unknown.
    resume : bool
        Whether Metropolis-Hastings continues from the given order. In the paper's method, it does
        not: it starts from a new proposal for every gradient. Relocation always continues.
    """

    columns: Columns
    sampling: Sampling
    way: str = Way.RELOCATION
    t: float = float("nan")
    resume: bool = False

    def start(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw an order from the model without interactions."""
        columns = self.columns
        return draw_independent_order(
            columns.rate[: columns.k], columns.others + columns.stop_rate, self.t, rng
        )

    def advance(
        self, order: NDArray[np.int64], rng: np.random.Generator, *, kept: int, burn_in: int
    ) -> NDArray[np.int64]:
        """Advance a chain by relocation; return `kept` orders, one per sweep.

        `order` is the state of the chain. It is replaced in place by the last order.
        """
        columns = self.columns
        orders = np.empty((kept, columns.k), dtype=np.int64)
        unused = np.zeros((columns.k + 1, columns.n_columns + 1))
        block = min(self.sampling.block, max(_largest_block(columns), _LEAST_BLOCK))
        call(relocate, unused, orders, order, columns.arrays(), block, burn_in, kept, _NEVER, rng)
        return orders

    def gradient(
        self,
        order: NDArray[np.int64],
        rng: np.random.Generator,
        *,
        scale: float = 1.0,
        extra: int = 0,
    ) -> NDArray[np.float64]:
        """Advance a chain, with all effects multiplied by `scale`; return its mean gradient.

        The gradient is an array with the axes of `lattice.gradient`. `extra` is the number of
        additional sweeps that are discarded.
        """
        columns = self.columns
        sampling = self.sampling
        arrays = columns.arrays(scale)
        G = np.zeros((columns.k + 1, columns.n_columns + 1))
        if self.way == Way.RELOCATION:
            block = min(sampling.block, _largest_block(columns))
            # About two gradients per sweep are enough, because two consecutive orders differ in one
            # block only.
            every = max(1, -(-columns.k // block) // 2)
            none_kept = np.empty((0, columns.k), dtype=np.int64)
            burn_in = sampling.burn_in + extra
            terms = call(
                relocate, G, none_kept, order, arrays, block, burn_in, sampling.sweeps, every, rng
            )
        else:
            informed = self.way == Way.METROPOLIS
            burn_in = sampling.draws_burn_in + extra * sampling.draws
            terms = sampling.draws
            call(
                metropolis, G, order, arrays, self.t, informed, self.resume, burn_in, terms, rng
            )  # fmt: skip
        if not np.isfinite(G).all():
            raise InputError(
                f"the weights of a set of {columns.k} items left the range of floating-point "
                f"numbers during sampling (log-rates between {columns.lowest:.0f} and "
                f"{columns.highest:.0f}); use a theta with smaller entries, or increase the budget "
                "so that the set is exact"
            )
        mean: NDArray[np.float64] = G / terms
        return mean


def draw_orders(sampler: OrderSampler, seed: int, index: int) -> NDArray[np.int64]:
    """Return orders (chains, sweeps, k) of a set, drawn by independent chains, one per sweep.

    Entries are positions in the set; `index` is the position of the set in the data.
    """
    sampling = sampler.sampling
    kept = np.empty((sampling.chains, sampling.sweeps, sampler.columns.k), dtype=np.int64)
    for chain in range(sampling.chains):
        rng = stream(seed, Purpose.SAMPLED_POSTERIOR, index, chain)
        kept[chain] = sampler.advance(
            sampler.start(rng), rng, kept=sampling.sweeps, burn_in=sampling.burn_in + FIRST_BURN_IN
        )
    return kept
