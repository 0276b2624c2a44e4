"""Draw missing cells and orders together, for samples with too many items for their lattice.

A draw is a history: an order of a completed set. The probability of a history is a simple product
and its gradient a simple sum, so sets may have any size. The error is larger than in `completions`,
because orders are drawn as well.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.kernels.histories import draw_histories, slopes_of_histories, weigh_histories
from sequela.likelihood.drawn_samples import (
    BURN_IN,
    CHAINS,
    FIRST_BURN_IN,
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

# For an estimate of log p by an integral along a path of models (`sample_histories`): the number of
# histories per point of the path, the smallest and the largest number of draws per chain, and the
# number of points.
_VALUE_HISTORIES = 2e4
_VALUE_DRAWS = (2, 16)
_VALUE_NODES = 12
# In a fit: the largest number of copies of all samples together, and the largest number of
# histories of all copies together. A sample with a large weight has several copies, and each copy
# has its own chains.
_MOST_COPIES = 2e4
_MOST_HISTORIES = 6.4e5
# Number of histories per piece of work; and number of samples whose chains share a stream of random
# numbers. The two numbers do not depend on the number of threads, so the results do not depend on
# it either.
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
        kept: NDArray[np.int16],
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
        nothing = np.zeros((len(partials), CHAINS, 0), dtype=np.int64)
        return cls(states, sizes, nothing[..., None].astype(np.int16), nothing)

    def moved(
        self,
        parameters: Parameters,
        partials: Sequence[PartialSet],
        kept: int,
        key: tuple[int, tuple[int, ...]],
        n_threads: int,
    ) -> Histories:
        """Return the chains after they have made `kept` draws each.

        `key` holds the seed and the index of the random streams.
        """
        burn_in = BURN_IN if self.kept.shape[2] else FIRST_BURN_IN
        shape = (len(partials), CHAINS, kept)
        new = Histories(
            self.states.copy(), self.sizes.copy(),
            np.zeros((*shape, parameters.n), dtype=np.int16), np.zeros(shape, dtype=np.int64),
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
                        f"the rates of a sample of {known.present.size} items are outside the "
                        "range of floating-point numbers; use a theta with smaller entries"
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
        """Return log p of the `chosen` draws, and the sum of their gradients.

        Each gradient is multiplied by the entry of `shares` for its draw. If `shares` is empty, the
        sum is 0.
        """
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

    def slopes(
        self, parameters: Parameters, effects: NDArray[np.float64], n_threads: int
    ) -> NDArray[np.float64]:
        """Return the derivative of log p of every draw if theta moves in the direction `effects`.

        The diagonal of `effects` is 0. The result is an array (samples, chains, draws).
        """
        slopes = np.empty(self.lengths.size)
        orders, lengths = self.kept.reshape(-1, parameters.n), self.lengths.ravel()

        def some(first: int) -> None:
            here = slice(first, first + _TOGETHER)
            call(
                slopes_of_histories, slopes[here], effects, orders[here], lengths[here],
                parameters.tables,
            )  # fmt: skip

        run_all([partial(some, first) for first in range(0, slopes.size, _TOGETHER)], n_threads)
        return slopes.reshape(self.lengths.shape)

    def gradient(
        self, parameters: Parameters, weights: NDArray[np.float64], n_threads: int
    ) -> NDArray[np.float64]:
        """Return the sum of the gradients of all draws, each times its weight."""
        chosen = np.flatnonzero(weights)
        return self._weigh(parameters, chosen, weights.ravel()[chosen], n_threads)[1]


class DrawnHistories:
    """The samples of a fit whose histories are drawn, and their likelihood at any theta.

    If theta differs from the theta of the draws, each draw is weighted by the ratio of its
    probabilities at the two thetas. A sample with a large weight has several copies, each with its
    own chains, so that all draws have about the same weight.

    Parameters
    ----------
    partials : list of PartialSet
        The samples.
    weights : array
        The share of each sample in the data.
    n : int
        Number of items.

    Attributes
    ----------
    effective : float
        The effective number of draws divided by the number of draws, averaged over the samples,
        at the last evaluation.
    """

    def __init__(
        self, partials: Sequence[PartialSet], weights: NDArray[np.float64], n: int
    ) -> None:
        unit = max(float(np.median(weights)), float(weights.sum()) / _MOST_COPIES)
        copies = np.maximum(1, np.rint(weights / unit)).astype(np.int64)
        self.distinct = partials
        self.partials = [known for known, c in zip(partials, copies, strict=True) for _ in range(c)]
        self.weights = np.repeat(weights / copies, copies)
        self._copies = copies
        self.n = n
        self.effective = 1.0
        self._draws: Histories | None = None
        self._drawn: NDArray[np.float64] = np.empty((0, 0))
        self._offset: NDArray[np.float64] = np.empty(0)

    @property
    def most_kept(self) -> int:
        """The largest number of draws per chain with which an evaluation is still fast enough."""
        return int(np.clip(_MOST_HISTORIES / CHAINS / len(self.partials), 4, 64))

    def draw(
        self, parameters: Parameters, kept: int, settings: Settings, index: tuple[int, ...]
    ) -> None:
        """Draw new histories at theta; later evaluations use these draws."""
        before = self._draws
        if before is None:
            self._offset = np.repeat(independent_log_p(parameters, self.distinct), self._copies)
            rng = stream(settings.seed, Purpose.COMPLETIONS, 4, *index)
            before = Histories.at_first(self.partials, self.n, rng)
        else:
            self._offset = self._weigh(before, parameters, settings.threads)[1]
        key = (settings.seed, (5, *index))
        self._draws = before.moved(parameters, self.partials, kept, key, settings.threads)
        self._drawn = self._draws.log_p(parameters, settings.threads)

    def _weigh(
        self, draws: Histories, parameters: Parameters, n_threads: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return, for every sample, the weights of its draws (with the sum 1) and its log p."""
        with np.errstate(invalid="ignore"):
            log_ratio = draws.log_p(parameters, n_threads) - self._drawn
            top = log_ratio.max(axis=1, keepdims=True)
            weight = np.exp(log_ratio - top)
        total = weight.sum(axis=1, keepdims=True)
        shares = weight / total
        effective = 1.0 / np.sum(shares**2, axis=1) / shares.shape[1]
        self.effective = float(self.weights @ effective / self.weights.sum())
        return shares, self._offset + (top + np.log(total))[:, 0] - np.log(shares.shape[1])

    def evaluate(self, parameters: Parameters, n_threads: int) -> tuple[float, NDArray[np.float64]]:
        """Return the weighted sum of log p and its gradient; NaN if rates are out of range."""
        assert self._draws is not None  # noqa: S101 - something was drawn before
        shares, log_p = self._weigh(self._draws, parameters, n_threads)
        value = float(self.weights @ log_p)
        if not np.isfinite(value):
            return value, np.zeros((self.n, self.n))
        return value, self._draws.gradient(parameters, shares * self.weights[:, None], n_threads)

    def new_value(
        self, parameters: Parameters, observation: Observation, settings: Settings
    ) -> tuple[float, float]:
        """Return an estimate of the weighted sum of log p from new draws, and its variance."""
        weights = np.add.reduceat(self.weights, np.cumsum(self._copies) - self._copies)
        log_p, variance, _, _ = sample_histories(
            parameters, self.distinct, weights, observation, settings
        )
        return float(weights @ log_p), float(weights**2 @ variance)

    def gradient_variance(self, parameters: Parameters, n_threads: int) -> NDArray[np.float64]:
        """Return the variance of the gradient, at the theta of the last draw."""
        assert self._draws is not None  # noqa: S101 - something was drawn before
        kept = self._drawn.shape[1] // CHAINS
        return over_chains(self._draws, parameters, self.weights, kept, n_threads)[1]

    def arrays(self) -> dict[str, Any]:
        """Return the arrays that a checkpoint needs to continue with the same draws."""
        if self._draws is None:
            return {}
        state = {
            "drawn": self._drawn,
            "offset": self._offset,
            "effective": np.array(self.effective),
            **vars(self._draws),
        }
        return {f"history_{key}": value for key, value in state.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the `arrays` of an earlier run."""
        if "history_drawn" not in state:
            return
        self._drawn = state["history_drawn"]
        self._offset = state["history_offset"]
        self.effective = float(state["history_effective"])
        self._draws = Histories(
            *(state[f"history_{key}"] for key in ("states", "sizes", "kept", "lengths"))
        )


def sample_histories(
    parameters: Parameters,
    partials: Sequence[PartialSet],
    weights: NDArray[np.float64],
    observation: Observation,
    settings: Settings,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return estimates of log p, their variances, the weighted gradient, and its variance.

    If all effects are zero, log p is known. Along a path of models, all effects grow from zero to
    the effects of theta. The derivative of log p along this path is a mean over drawn histories.
    Log p at theta is the known value at the start of the path plus the integral of this derivative.
    """
    nodes, factors = np.polynomial.legendre.leggauss(_VALUE_NODES)
    log_p = independent_log_p(parameters, partials)
    each = np.zeros((len(partials), CHAINS))
    theta = parameters.theta
    effects = theta - np.diag(np.diagonal(theta))
    threads = settings.threads
    kept = int(np.clip(_VALUE_HISTORIES / CHAINS / len(partials), *_VALUE_DRAWS))
    rng = stream(settings.seed, Purpose.COMPLETIONS, 7)
    histories = Histories.at_first(partials, parameters.n, rng)
    for at, point in enumerate([*((nodes + 1.0) / 2.0), 1.0]):
        scaled = Parameters(np.diag(np.diagonal(theta)) + point * effects, observation)
        histories = histories.moved(scaled, partials, kept, (settings.seed, (6, at)), threads)
        if at < nodes.size:
            slopes = histories.slopes(scaled, effects, threads)
            each += factors[at] / 2.0 * slopes.mean(axis=2)
    gradient, variance = over_chains(histories, parameters, weights, kept, threads)
    return log_p + each.mean(axis=1), each.var(axis=1, ddof=1) / CHAINS, gradient, variance
