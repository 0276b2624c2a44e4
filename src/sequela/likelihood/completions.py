"""Draw the missing cells of samples that have too many missing cells for a lattice.

A draw gives a completed set, whose probability is then computed exactly. Many draws give the same
completed set, even draws of different samples. So each distinct completed set is evaluated only
once.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sequela.budget import LARGEST_COMPLETED_SET
from sequela.data._distinct_sets import distinct_sets
from sequela.kernels.arguments import SetList
from sequela.kernels.completions import draw_completions
from sequela.kernels.histories import draw_histories
from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.drawn_samples import (
    CHAINS,
    FIRST_BURN_IN,
    Draws,
    over_chains,
)
from sequela.likelihood.exact import ExactWork, plan_blocks
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.random import Purpose, stream
from sequela.support.threads import run_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sequela.likelihood.parameters import Parameters
    from sequela.likelihood.partial import PartialSet
    from sequela.settings import Settings

__all__ = [
    "CHAINS",
    "CompletedSets",
    "SampledCompletions",
    "draw_cells",
]

# Number of samples per piece of work.
_TOGETHER = 64
# Number of draws per chain for the log-likelihood and its gradient.
_VALUE_DRAWS = 16


class CompletedSets(Draws):
    """Completed sets of samples; each distinct completed set is stored once.

    Parameters
    ----------
    rows : array (samples * draws, n) of bool
        The completed sets, sample by sample.
    samples : int
        Number of samples.
    """

    def __init__(self, rows: NDArray[np.bool_], samples: int) -> None:
        self._samples = samples
        found = distinct_sets(rows)
        self.which = found.inverse
        count = found.counts.size
        self.n = rows.shape[1]
        self._sets = DistinctSamples(
            sets=SetList(found.indptr, found.indices.astype(np.int64), np.zeros(count)),
            sizes=np.diff(found.indptr),
            times=np.full(count, np.nan),
            inverse=found.inverse,
            first=np.arange(count),
            partial=np.zeros(count, dtype=np.bool_),
        )
        self._blocks = plan_blocks(self._sets, np.arange(count), self.n)

    def log_p(self, parameters: Parameters, n_threads: int) -> NDArray[np.float64]:
        """Return log p of every draw (samples, draws); NaN where rates are out of range."""
        work = ExactWork(parameters, self._sets, self._blocks, want_gradient=False)
        run_all(work.pieces, n_threads)
        work.finish(n_threads)
        return work.log_p[self.which].reshape(self._samples, -1)

    def gradient(
        self, parameters: Parameters, weights: NDArray[np.float64], n_threads: int
    ) -> NDArray[np.float64]:
        """Return the sum of the gradients of all draws, each times its weight."""
        pooled: NDArray[np.float64] = np.bincount(
            self.which, weights=weights.ravel(), minlength=len(self._sets)
        ).astype(np.float64)
        sets = replace(self._sets, sets=self._sets.sets._replace(weights=pooled))
        blocks = self._blocks
        if np.count_nonzero(pooled) < pooled.size:
            blocks = [b[pooled[b] != 0.0] for b in blocks]
            blocks = [b for b in blocks if b.size]
        work = ExactWork(parameters, sets, blocks, want_gradient=True)
        run_all(work.pieces, n_threads)
        gradient = work.finish(n_threads)
        assert gradient is not None  # noqa: S101 - want_gradient is True
        return gradient


def _draw_some(
    parameters: Parameters, partials: Sequence[PartialSet], kept: int, rng: np.random.Generator
) -> list[NDArray[np.uint8]]:
    """Return draws of the missing cells of a few samples: arrays (chains, draws, missing items)."""
    found = []
    for known in partials:
        drawn = np.zeros((CHAINS, kept, known.missing.size), dtype=np.uint8)
        if known.present.size + known.missing.size <= LARGEST_COMPLETED_SET:
            states = np.zeros((CHAINS, known.missing.size), dtype=np.uint8)
            is_done = call(
                draw_completions, drawn, states, known.present, known.missing, parameters.tables,
                FIRST_BURN_IN, rng,
            )  # fmt: skip
        else:
            is_done = _draw_with_orders(parameters, known, drawn, rng)
        if not is_done:
            raise InputError(
                f"the missing cells of a sample with {known.present.size} known items could not be "
                "drawn, because its rates are outside the range of floating-point numbers; use a "
                "theta with smaller entries"
            )
        found.append(drawn)
    return found


def _draw_with_orders(
    parameters: Parameters,
    known: PartialSet,
    drawn: NDArray[np.uint8],
    rng: np.random.Generator,
) -> bool:
    """Fill `drawn` with the missing cells of drawn histories, which need no lattice."""
    chains, kept, _ = drawn.shape
    n = parameters.n
    states = np.zeros((chains, n), dtype=np.int64)
    for chain in range(chains):
        states[chain, : known.present.size] = rng.permutation(known.present)
    sizes = np.full(chains, known.present.size, dtype=np.int64)
    orders = np.zeros((chains, kept, n), dtype=np.int16)
    lengths = np.zeros((chains, kept), dtype=np.int64)
    if not call(
        draw_histories, orders, lengths, states, sizes, known.present, known.missing,
        parameters.tables, FIRST_BURN_IN, rng,
    ):  # fmt: skip
        return False
    for chain, draw in np.ndindex(chains, kept):
        present = orders[chain, draw, : lengths[chain, draw]]
        drawn[chain, draw] = np.isin(known.missing, present)
    return True


def draw_cells(
    parameters: Parameters,
    partials: Sequence[PartialSet],
    kept: int,
    key: tuple[int, Purpose, tuple[int, ...]],
    n_threads: int,
) -> list[NDArray[np.uint8]]:
    """Return draws of the missing cells of samples: arrays (chains, draws, missing items).

    `key` holds the seed, the purpose and the index of the random streams.
    """
    seed, purpose, index = key
    pieces = [
        partial(
            _draw_some, parameters, partials[at : at + _TOGETHER], kept,
            stream(seed, purpose, *index, at),
        )
        for at in range(0, len(partials), _TOGETHER)
    ]  # fmt: skip
    return [one for part in run_all(pieces, n_threads) for one in part]


def completed_rows(
    partials: Sequence[PartialSet], cells: Sequence[NDArray[np.uint8]], n: int
) -> NDArray[np.bool_]:
    """Return the completed sets as rows, sample by sample, from `cells` (draws, missing items)."""
    rows = np.zeros((sum(len(c) for c in cells), n), dtype=np.bool_)
    at = 0
    for known, drawn in zip(partials, cells, strict=True):
        part = rows[at : at + len(drawn)]
        part[:, known.present] = True
        part[:, known.missing] = drawn.astype(np.bool_)
        at += len(drawn)
    return rows


class SampledCompletions(NamedTuple):
    """Estimates for samples at one theta, computed from drawn cells.

    Attributes
    ----------
    log_p, variance : arrays
        The estimated log-probability of each sample, and the variance of this estimate. Both arrays
        are NaN if the log-probabilities were not requested.
    gradient, gradient_variance : arrays (n, n) or None
        The weighted sum of the gradients of the samples, and the variance of this sum.
    present : list of arrays
        For every sample, the share of the draws in which each missing item is present.
    """

    log_p: NDArray[np.float64]
    variance: NDArray[np.float64]
    gradient: NDArray[np.float64] | None
    gradient_variance: NDArray[np.float64] | None
    present: list[NDArray[np.float64]]

    @classmethod
    def of(
        cls,
        parameters: Parameters,
        partials: Sequence[PartialSet],
        weights: NDArray[np.float64],
        settings: Settings,
        *,
        value: bool,
        gradient: bool,
    ) -> SampledCompletions:
        """Draw the missing cells of samples and compute the requested estimates."""
        threads = settings.threads
        draws = draw_cells(
            parameters, partials, _VALUE_DRAWS, (settings.seed, Purpose.COMPLETIONS, (1,)), threads
        )
        cells = [one.reshape(-1, one.shape[2]) for one in draws]
        present = [c.mean(axis=0) for c in cells]
        nothing = np.full(len(partials), np.nan)
        log_p, variance = nothing, nothing
        if value:
            rng = stream(settings.seed, Purpose.COMPLETIONS, 2)
            log_p, variance = _values(parameters, partials, cells, rng, threads)
        if not gradient:
            return cls(log_p, variance, None, None, present)
        completed = CompletedSets(completed_rows(partials, cells, parameters.n), len(partials))
        slope = over_chains(completed, parameters, weights, _VALUE_DRAWS, threads)
        return cls(log_p, variance, *slope, present)


def _values(
    parameters: Parameters,
    partials: Sequence[PartialSet],
    cells: Sequence[NDArray[np.uint8]],
    rng: np.random.Generator,
    n_threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return estimates of log p of samples by importance sampling, and their variances.

    A proposal T is a completed set whose missing cells are drawn independently of each other. A
    missing item is present in T with about the same frequency as in the draws from the posterior
    (`cells`). Let q(T) be the probability of proposing T. Then the mean of p(T) / q(T) is an
    unbiased estimate of p.
    """
    proposed, log_q = [], []
    for drawn in cells:
        # Add half a draw with the item and half a draw without it, so that no probability of a
        # proposal is 0 or 1.
        share = (drawn.sum(axis=0) + 0.5) / (len(drawn) + 1.0)
        new = rng.random(drawn.shape) < share
        proposed.append(new.astype(np.uint8))
        log_q.append(np.where(new, np.log(share), np.log1p(-share)).sum(axis=1))
    completed = CompletedSets(completed_rows(partials, proposed, parameters.n), len(partials))
    log_w = completed.log_p(parameters, n_threads) - np.array(log_q)
    top = log_w.max(axis=1, keepdims=True)
    weight = np.exp(log_w - top)
    mean = weight.mean(axis=1)
    count = weight.shape[1]
    log_p = top[:, 0] + np.log(mean)
    variance = weight.var(axis=1, ddof=1) / (count * mean**2)
    # If all weights happen to be equal, their variance is 0. The lower bound avoids this value.
    return log_p, np.maximum(variance, 0.25 / count**2)
