"""Estimate gradients from draws of missing cells (`completions`) or histories (`drawn_histories`).

The unknown part of a sample is drawn from its posterior. By Fisher's identity the gradient of log p
of the sample is the mean of the gradients of the draws. This estimate is unbiased. Its error is
estimated from the spread of independent chains.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from sequela.likelihood.components import TimeGrid, time_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sequela.likelihood.parameters import Parameters
    from sequela.likelihood.partial import PartialSet

__all__ = ["BURN_IN", "CHAINS", "FIRST_BURN_IN", "Draws", "independent_log_p", "over_chains"]

# Number of independent chains per sample. The error is estimated from their spread.
CHAINS = 4
# Number of sweeps over all items that are discarded before the first draw: FIRST_BURN_IN for a new
# chain, and BURN_IN for a chain that continues.
FIRST_BURN_IN = 5
BURN_IN = 1
# Number of samples whose integrals over time are computed together.
_TOGETHER = 512


class Draws(ABC):
    """The draws of some samples, sorted by chain. All samples have the same number of draws."""

    @abstractmethod
    def log_p(self, parameters: Parameters, n_threads: int) -> NDArray[np.float64]:
        """Return log p of every draw (samples, draws); NaN if rates are out of range."""

    @abstractmethod
    def gradient(
        self, parameters: Parameters, weights: NDArray[np.float64], n_threads: int
    ) -> NDArray[np.float64]:
        """Return the sum of the gradients of all draws, each times its weight."""


def over_chains(
    draws: Draws,
    parameters: Parameters,
    sample_weights: NDArray[np.float64],
    kept: int,
    n_threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weighted gradient and its variance, from chains with `kept` draws each."""
    each = []
    for chain in range(CHAINS):
        weights = np.zeros((sample_weights.size, CHAINS, kept))
        weights[:, chain] = sample_weights[:, None] / kept
        each.append(draws.gradient(parameters, weights, n_threads))
    stack = np.stack(each)
    return stack.mean(axis=0), stack.var(axis=0, ddof=1) / CHAINS


def independent_log_p(
    parameters: Parameters, partials: Sequence[PartialSet]
) -> NDArray[np.float64]:
    """Return log p of samples in a model without interactions.

    In such a model, items are independent given the observation time t, and items whose cells are
    missing do not influence log p. The integral over t is computed as in `components`, for all
    samples at once.
    """
    rates, stop = parameters.rate, parameters.stop_rate
    present = np.zeros((len(partials), parameters.n))
    absent = np.ones((len(partials), parameters.n))
    for s, known in enumerate(partials):
        present[s, known.present] = 1.0
        absent[s, known.present] = 0.0
        absent[s, known.missing] = 0.0
    largest = int(present.sum(axis=1).max())
    first, last = time_bounds(stop + float(rates.sum()), stop, largest)
    grid = TimeGrid.between(first, last, largest)
    arrived = np.log(-np.expm1(-np.multiply.outer(rates, grid.times)))
    log_p = np.empty(len(partials))
    for at in range(0, len(partials), _TOGETHER):
        some = slice(at, at + _TOGETHER)
        logs = present[some] @ arrived - np.multiply.outer(absent[some] @ rates + stop, grid.times)
        logs += grid.log_weights
        top = logs.max(axis=1, keepdims=True)
        log_p[some] = top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))
    log_p += np.log(stop)
    return log_p
