"""The distinct samples of a data set: each pair of a set and a time once, with its weight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arguments import SetList
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset

__all__ = ["DistinctSamples"]


@dataclass(frozen=True)
class DistinctSamples:
    """Distinct pairs of a set and an observation time.

    Attributes
    ----------
    sets : SetList
        Their items, one set after the other, and their weights: shares of the samples.
    sizes : array of int
        Sizes of the sets.
    times : array
        Observation times; NaN where unknown.
    inverse : array of int
        For every sample of the data the place of its pair here.
    first : array of int
        For every pair the first sample that has it.
    """

    sets: SetList
    sizes: NDArray[np.int64]
    times: NDArray[np.float64]
    inverse: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, data: Dataset) -> DistinctSamples:
        """Collect the distinct samples of `data`."""
        data.require_plain("this evaluation of the likelihood")
        sets = data.compressed()
        sizes = np.diff(sets.indptr)
        times = np.full(data.n_samples, np.nan) if data.times is None else data.times
        impossible = np.nonzero((times == 0.0) & (sizes[sets.inverse] > 0))[0]
        if impossible.size:
            row = int(impossible[0])
            raise InputError(
                f"sample {data.samples[row]!r} (row {row}) is observed at time 0 with "
                f"{int(sizes[sets.inverse[row]])} items; at time 0 nothing has happened yet, so "
                "its probability is zero. Correct the time, or give NaN for unknown"
            )
        # Pairs as complex numbers, which are sorted by both parts, and much sooner than rows. NaN
        # is not equal to itself, so unknown times get a number that no time can have.
        keys = sets.inverse + 1j * np.where(np.isnan(times), -1.0, times)
        unique, first, inverse, counts = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        which = unique.real.astype(np.int64)
        lists = [sets.indices[sets.indptr[s] : sets.indptr[s + 1]] for s in which]
        start = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum(sizes[which], out=start[1:])
        return cls(
            sets=SetList(
                start=start,
                items=np.concatenate(lists).astype(np.int64),
                weights=_shares(data, inverse.ravel(), counts),
            ),
            sizes=sizes[which],
            times=np.where(unique.imag < 0.0, np.nan, unique.imag),
            inverse=inverse.ravel().astype(np.int64),
            first=first.astype(np.int64),
        )

    def __len__(self) -> int:
        return int(self.sizes.size)

    @property
    def weights(self) -> NDArray[np.float64]:
        """Shares of the samples."""
        return self.sets.weights

    @cached_property
    def timed(self) -> NDArray[np.bool_]:
        """Whether the observation time is known."""
        return ~np.isnan(self.times)

    def items(self, index: int) -> NDArray[np.int64]:
        """Return the items of one set."""
        return self.sets.items[self.sets.start[index] : self.sets.start[index + 1]]

    def largest_first(self) -> list[int]:
        """Return the places in order of falling size: long pieces of work first."""
        return [int(s) for s in np.argsort(-self.sizes, kind="stable")]


def _shares(
    data: Dataset, inverse: NDArray[np.intp], counts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the share of the samples that have each pair, counted by their weights."""
    if data.weights is None:
        return np.asarray(counts / data.n_samples)
    sums = np.bincount(inverse, weights=data.weights, minlength=counts.size)
    return np.asarray(sums / data.total_weight)
