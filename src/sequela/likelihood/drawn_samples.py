"""Samples of a fit that are drawn: the part that missing cells and whole histories share.

At some theta, the unknown part of a sample is drawn from its posterior. By Fisher's identity the
gradient of log p of the sample is the mean of the gradients of the draws. It is unbiased, and its
error is estimated from the spread of independent chains. At another theta, each draw is weighted by
the ratio of its probabilities there and at the first theta.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.likelihood.independent import log_p_independent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sequela.likelihood.parameters import Parameters
    from sequela.likelihood.partial import PartialSet
    from sequela.settings import Settings

__all__ = ["BURN_IN", "CHAINS", "FIRST_BURN_IN", "DrawnSamples", "Draws", "over_chains"]

# Independent chains per sample; their spread is the error.
CHAINS = 4
# Sweeps over all items before the first draw of new chains, and of chains that continue.
FIRST_BURN_IN = 5
BURN_IN = 1


class Draws(ABC):
    """The draws of some samples: the same number for every sample, chain by chain."""

    @abstractmethod
    def log_p(self, parameters: Parameters, n_threads: int) -> NDArray[np.float64]:
        """Return log p of every draw (samples, draws); NaN if rates are out of range."""

    @abstractmethod
    def gradient(
        self, parameters: Parameters, weights: NDArray[np.float64], n_threads: int
    ) -> NDArray[np.float64]:
        """Return the sum of the gradients of all draws, each times its weight."""


class DrawnSamples(ABC):
    """The drawn samples of a fit, and their likelihood at any theta.

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
        The effective share of the draws at the last evaluation: a mean over the samples.
    """

    name: str

    def __init__(
        self, partials: Sequence[PartialSet], weights: NDArray[np.float64], n: int
    ) -> None:
        self.partials = list(partials)
        self.weights = weights
        self.n = n
        self.effective = 1.0
        self._draws: Draws | None = None
        self._drawn: NDArray[np.float64] = np.empty((0, 0))
        self._offset: NDArray[np.float64] = np.empty(0)

    @property
    @abstractmethod
    def most_kept(self) -> int:
        """The largest number of draws per chain with which an evaluation is fast enough."""

    @abstractmethod
    def _advance(
        self, parameters: Parameters, kept: int, settings: Settings, index: tuple[int, ...]
    ) -> Draws:
        """Advance the chains and return their draws."""

    @abstractmethod
    def _arrays(self) -> dict[str, Any]:
        """Return the chains and their draws."""

    @abstractmethod
    def _restored(self, state: dict[str, Any]) -> Draws:
        """Restore the chains from `_arrays`, and return their draws."""

    def draw(
        self, parameters: Parameters, kept: int, settings: Settings, index: tuple[int, ...]
    ) -> None:
        """Draw at theta; later evaluations use these draws."""
        if self._draws is None:
            self._offset = np.array([independent_log_p(parameters, k) for k in self.partials])
        else:
            self._offset = self._weigh(self._draws, parameters, settings.threads)[1]
        self._draws = self._advance(parameters, kept, settings, index)
        self._drawn = self._draws.log_p(parameters, settings.threads)

    def _weigh(
        self, draws: Draws, parameters: Parameters, n_threads: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the shares of the draws of every sample, and its log p."""
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

    def gradient_variance(self, parameters: Parameters, n_threads: int) -> NDArray[np.float64]:
        """Return the variance of the gradient, at the theta of the last draw."""
        assert self._draws is not None  # noqa: S101 - something was drawn before
        return over_chains(
            self._draws, parameters, self.weights, self._drawn.shape[1] // CHAINS, n_threads
        )[1]

    def arrays(self) -> dict[str, Any]:
        """Return the arrays that a checkpoint needs to continue with the same draws."""
        if self._draws is None:
            return {}
        state = {
            "drawn": self._drawn,
            "offset": self._offset,
            "effective": np.array(self.effective),
            **self._arrays(),
        }
        return {f"{self.name}_{key}": value for key, value in state.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the `arrays` of an earlier run."""
        start = f"{self.name}_"
        own = {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}
        if not own:
            return
        self._drawn = own["drawn"]
        self._offset = own["offset"]
        self.effective = float(own["effective"])
        self._draws = self._restored(own)


def over_chains(
    draws: Draws,
    parameters: Parameters,
    sample_weights: NDArray[np.float64],
    kept: int,
    n_threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the gradient and its variance from all chains, which have `kept` draws each."""
    each = []
    for chain in range(CHAINS):
        weights = np.zeros((sample_weights.size, CHAINS, kept))
        weights[:, chain] = sample_weights[:, None] / kept
        each.append(draws.gradient(parameters, weights, n_threads))
    stack = np.stack(each)
    return stack.mean(axis=0), stack.var(axis=0, ddof=1) / CHAINS


def independent_log_p(parameters: Parameters, known: PartialSet) -> float:
    """Return log p of a sample without interactions, where missing items do not matter."""
    rates = parameters.rate
    outside = np.ones(parameters.n, dtype=np.bool_)
    outside[known.present] = False
    outside[known.missing] = False
    others = float(rates[outside].sum())
    return log_p_independent(rates[known.present], others, parameters.stop_rate)
