"""Draw histories of samples with too many items for a lattice, with their missing cells.

A draw is an order of a completed set. Its probability and gradient are simple products and sums, so
sets may have any size. In comparison with `completions` the error is larger, because orders are
drawn as well.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.kernels.histories import draw_histories, weigh_histories
from sequela.likelihood.drawn_samples import (
    BURN_IN,
    CHAINS,
    FIRST_BURN_IN,
    DrawnSamples,
    Draws,
    independent_log_p,
    over_chains,
)
from sequela.likelihood.parameters import Parameters
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.random import Purpose, stream
from sequela.support.threads import run_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sequela.likelihood.partial import PartialSet
    from sequela.observation import Observation
    from sequela.settings import Settings

__all__ = ["DrawnHistories", "sample_histories"]

_VALUE_DRAWS = 16
_VALUE_NODES = 12
# Histories per piece of work, and samples whose chains share a stream of random numbers. They do
# not depend on the number of threads, so that sums do not either.
_TOGETHER = 4096
_SAMPLES_TOGETHER = 32


class Histories(Draws):
    """The states of the chains of some samples, and their draws.

    Parameters
    ----------
    states, sizes : arrays (samples, chains, n) and (samples, chains)
        The current order of each chain, and its length.
    kept, lengths : arrays (samples, chains, draws, n) and (samples, chains, draws)
        The orders that were drawn, and their lengths.
    """

    def __init__(
        self,
        states: NDArray[np.int64],
        sizes: NDArray[np.int64],
        kept: NDArray[np.int64],
        lengths: NDArray[np.int64],
    ) -> None:
        self.states = states
        self.sizes = sizes
        self.kept = kept
        self.lengths = lengths

    @classmethod
    def at_first(
        cls, partials: Sequence[PartialSet], n: int, rng: np.random.Generator
    ) -> Histories:
        """Return chains that start at random orders of the present items."""
        states = np.zeros((len(partials), CHAINS, n), dtype=np.int64)
        sizes = np.zeros((len(partials), CHAINS), dtype=np.int64)
        for s, known in enumerate(partials):
            sizes[s] = known.present.size
            for chain in range(CHAINS):
                states[s, chain, : known.present.size] = rng.permutation(known.present)
        nothing = np.zeros((len(partials), CHAINS, 0, n), dtype=np.int64)
        return cls(states, sizes, nothing, nothing[..., 0])

    def moved(
        self,
        parameters: Parameters,
        partials: Sequence[PartialSet],
        kept: int,
        key: tuple[int, tuple[int, ...]],
        n_threads: int,
    ) -> Histories:
        """Return the chains after `kept` draws each; `key` is a seed and an index for streams."""
        burn_in = BURN_IN if self.kept.shape[2] else FIRST_BURN_IN
        shape = (len(partials), CHAINS, kept)
        new = Histories(
            self.states.copy(), self.sizes.copy(),
            np.zeros((*shape, parameters.n), dtype=np.int64), np.zeros(shape, dtype=np.int64),
        )  # fmt: skip

        def some(first: int) -> None:
            rng = stream(key[0], Purpose.COMPLETIONS, *key[1], first)
            for s in range(first, min(first + _SAMPLES_TOGETHER, len(partials))):
                known = partials[s]
                if not call(
                    draw_histories, new.kept[s], new.lengths[s], new.states[s], new.sizes[s],
                    known.present, known.missing, parameters.tables, burn_in, rng,
                ):  # fmt: skip
                    raise InputError(
                        f"the rates of a sample of {known.present.size} items are beyond the range "
                        "of a double; use a theta with smaller entries"
                    )

        starts = range(0, len(partials), _SAMPLES_TOGETHER)
        run_all([partial(some, first) for first in starts], n_threads)
        return new

    def _weigh(
        self,
        parameters: Parameters,
        chosen: NDArray[np.int64],
        shares: NDArray[np.float64],
        n_threads: int,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return log p of the chosen draws and, with shares, the sum of their gradients."""
        n = parameters.n
        orders, lengths = self.kept.reshape(-1, n), self.lengths.ravel()
        log_p = np.empty(chosen.size)

        def some(first: int) -> NDArray[np.float64]:
            here = chosen[first : first + _TOGETHER]
            gradient = np.zeros((n, n))
            call(
                weigh_histories, gradient, log_p[first : first + _TOGETHER],
                shares[first : first + _TOGETHER], orders[here], lengths[here], parameters.tables,
            )  # fmt: skip
            return gradient

        total = np.zeros((n, n))
        starts = range(0, chosen.size, _TOGETHER)
        for part in run_all([partial(some, first) for first in starts], n_threads):
            total += part
        return log_p, total

    def log_p(self, parameters: Parameters, n_threads: int) -> NDArray[np.float64]:
        """Return log p of every draw (samples, draws)."""
        every = np.arange(self.lengths.size)
        log_p, _ = self._weigh(parameters, every, np.empty(0), n_threads)
        return log_p.reshape(len(self.states), -1)

    def gradient(
        self, parameters: Parameters, weights: NDArray[np.float64], n_threads: int
    ) -> NDArray[np.float64]:
        """Return the sum of the gradients of all draws, each times its weight."""
        chosen = np.flatnonzero(weights)
        return self._weigh(parameters, chosen, weights.ravel()[chosen], n_threads)[1]


class DrawnHistories(DrawnSamples):
    """The samples of a fit whose histories are drawn, and their weights at any theta."""

    name = "history"
    _draws: Histories | None

    @property
    def most_kept(self) -> int:
        """The largest number of draws per chain with which an evaluation is fast enough."""
        return int(np.clip(64 * 100 / max(len(self.partials), 1), 4, 64))

    def _advance(
        self, parameters: Parameters, kept: int, settings: Settings, index: tuple[int, ...]
    ) -> Histories:
        before = self._draws
        if before is None:
            rng = stream(settings.seed, Purpose.COMPLETIONS, 4, *index)
            before = Histories.at_first(self.partials, self.n, rng)
        key = (settings.seed, (5, *index))
        return before.moved(parameters, self.partials, kept, key, settings.threads)

    def _arrays(self) -> dict[str, Any]:
        return {} if self._draws is None else dict(vars(self._draws))

    def _restored(self, state: dict[str, Any]) -> Histories:
        return Histories(state["states"], state["sizes"], state["kept"], state["lengths"])


def sample_histories(
    parameters: Parameters,
    partials: Sequence[PartialSet],
    weights: NDArray[np.float64],
    observation: Observation,
    settings: Settings,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return log p of samples, their variances, the weighted gradient, and its variance.

    Without effects log p is known. Its derivative along the path on which all effects grow from
    zero to theta is a mean over drawn histories. The value is the integral along this path.
    """
    nodes, factors = np.polynomial.legendre.leggauss(_VALUE_NODES)
    log_p = np.array([independent_log_p(parameters, known) for known in partials])
    each = np.zeros((len(partials), CHAINS))
    theta = parameters.theta
    effects = theta - np.diag(np.diagonal(theta))
    threads = settings.threads
    rng = stream(settings.seed, Purpose.COMPLETIONS, 7)
    histories = Histories.at_first(partials, parameters.n, rng)
    for at, point in enumerate([*((nodes + 1.0) / 2.0), 1.0]):
        scaled = Parameters(np.diag(np.diagonal(theta)) + point * effects, observation)
        histories = histories.moved(
            scaled, partials, _VALUE_DRAWS, (settings.seed, (6, at)), threads
        )
        if at == nodes.size:
            break
        one = np.zeros((len(partials), CHAINS, _VALUE_DRAWS))
        for s, chain in np.ndindex(each.shape):
            one[s, chain] = 1.0 / _VALUE_DRAWS
            slope = histories.gradient(scaled, one, 1)
            one[s, chain] = 0.0
            each[s, chain] += factors[at] / 2.0 * float(np.sum(slope * effects))
    gradient, variance = over_chains(histories, parameters, weights, _VALUE_DRAWS, threads)
    return log_p + each.mean(axis=1), each.var(axis=1, ddof=1) / CHAINS, gradient, variance
