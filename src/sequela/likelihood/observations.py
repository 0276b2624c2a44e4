"""The distinct observations of a data set: each pair of a set and a time once, with its count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sequela.support.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset

__all__ = ["Observations"]


@dataclass(frozen=True)
class Observations:
    """Distinct pairs of a set and an observation time.

    Attributes
    ----------
    indptr, indices : arrays of int
        Items of the distinct sets, one after the other.
    sizes : array of int
        Sizes of the sets.
    times : array
        Observation times; NaN where unknown.
    weights : array
        Shares of the samples.
    inverse : array of int
        For every sample its observation.
    first : array of int
        For every observation the first sample that has it.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    sizes: NDArray[np.int64]
    times: NDArray[np.float64]
    weights: NDArray[np.float64]
    inverse: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, data: Dataset) -> Observations:
        """Collect the distinct observations of `data`."""
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
        indptr = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum(sizes[which], out=indptr[1:])
        return cls(
            indptr=indptr,
            indices=np.concatenate(lists).astype(np.int64),
            sizes=sizes[which],
            times=np.where(unique.imag < 0.0, np.nan, unique.imag),
            weights=counts / data.n_samples,
            inverse=inverse.ravel().astype(np.int64),
            first=first.astype(np.int64),
        )

    def items(self, index: int) -> NDArray[np.int64]:
        """Return the items of one observation."""
        return self.indices[self.indptr[index] : self.indptr[index + 1]]
