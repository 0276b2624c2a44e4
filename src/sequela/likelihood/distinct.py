"""The distinct samples of a data set, with their weights.

Samples are equal if they have the same items, time, missing cells and known orders.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arguments import SetList
from sequela.likelihood.partial import PartialSet
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset

__all__ = ["DistinctSamples", "partly_known_rows"]


@dataclass(frozen=True)
class DistinctSamples:
    """Distinct samples: sets with their observation times, missing cells and known orders.

    Attributes
    ----------
    sets : SetList
        The items of the distinct samples, concatenated. The weight of a distinct sample is its
        share of all samples.
    sizes : array of int
        Sizes of the sets.
    times : array
        Observation times; NaN where unknown.
    inverse : array of int
        For every sample of the data, the position of the distinct sample that is equal to it.
    first : array of int
        For every distinct sample, the first sample of the data that is equal to it.
    partial : array of bool
        Whether the sample has missing cells, or a known order of at least some items.
    """

    sets: SetList
    sizes: NDArray[np.int64]
    times: NDArray[np.float64]
    inverse: NDArray[np.int64]
    first: NDArray[np.int64]
    partial: NDArray[np.bool_]
    _data: Dataset | None = None

    @classmethod
    def of(cls, data: Dataset, *, partial: bool = False) -> DistinctSamples:
        """Return the distinct samples of `data`.

        Partly known samples raise an error, unless `partial` is true.
        """
        if not partial:
            data.require_plain("this question")
        sets = data.compressed()
        sizes = np.diff(sets.indptr)
        times = np.full(data.n_samples, np.nan) if data.times is None else data.times
        impossible = np.nonzero((times == 0.0) & (sizes[sets.inverse] > 0))[0]
        if impossible.size:
            row = int(impossible[0])
            raise InputError(
                f"sample {data.samples[row]!r} (row {row}) is observed at time 0 with "
                f"{int(sizes[sets.inverse[row]])} items; at time 0 no item has arrived yet, so the "
                "probability is zero. Correct the time, or give NaN if it is unknown"
            )
        # A pair (set, time) is stored as a complex number, because NumPy sorts complex numbers much
        # faster than rows. NaN is not equal to itself. Therefore an unknown time is replaced by -1.
        groups = 1 if data.is_plain else data.n_samples
        which_set = sets.inverse * groups + (0 if data.is_plain else _other_knowledge(data))
        keys = which_set + 1j * np.where(np.isnan(times), -1.0, times)
        unique, first, inverse, counts = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        which = unique.real.astype(np.int64) // groups
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
            partial=partly_known_rows(data)[first],
            _data=None if data.is_plain else data,
        )

    def __len__(self) -> int:
        return int(self.sizes.size)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The share of each distinct sample in the total weight of all samples."""
        return self.sets.weights

    @cached_property
    def timed(self) -> NDArray[np.bool_]:
        """Whether the observation time is known."""
        return ~np.isnan(self.times)

    def items(self, index: int) -> NDArray[np.int64]:
        """Return the items of one set."""
        return self.sets.items[self.sets.start[index] : self.sets.start[index + 1]]

    def known(self, index: int) -> PartialSet | None:
        """Return the items, missing cells and known orders of a sample; None if it is complete."""
        return self._known.get(index)

    def as_partial(self, index: int) -> PartialSet:
        """Return the sample as a `PartialSet`, even if it is complete."""
        complete = PartialSet(self.items(index), np.empty(0, dtype=np.int64))
        return self._known.get(index, complete)

    @cached_property
    def has_missing(self) -> bool:
        """Whether any cell is missing."""
        return self._data is not None and self._data.missing is not None

    def missing_table(self, n: int) -> NDArray[np.float64] | None:
        """Return an array (distinct samples, n): 1 for a missing cell, 0 for any other cell.

        Return None if no cell is missing.
        """
        if self._data is None or self._data.missing is None:
            return None
        return self._data.missing[self.first].astype(np.float64).reshape(len(self), n)

    @cached_property
    def _known(self) -> dict[int, PartialSet]:
        data = self._data
        if data is None:
            return {}
        place = {label: j for j, label in enumerate(data.items)}
        found = {}
        for index in map(int, np.flatnonzero(self.partial)):
            row = int(self.first[index])
            missing = np.empty(0, dtype=np.int64)
            if data.missing is not None:
                missing = np.flatnonzero(data.missing[row]).astype(np.int64)
            statements = () if data.orders is None else data.orders[row]
            found[index] = PartialSet(
                self.items(index), missing, tuple((place[a], place[b], p) for a, b, p in statements)
            )
        return found

    def on_whole_lattices(self, chosen: NDArray[np.bool_]) -> DistinctSamples:
        """Return the samples, with the missing items of the `chosen` samples added to their items.

        The chosen samples then no longer count as partly known, because the kernel for complete
        sets can also sum over missing items on the lattice (see `known` in `SetList`).
        """
        lists = [self.items(s) for s in range(len(self))]
        for s in map(int, np.flatnonzero(chosen)):
            lists[s] = np.concatenate([lists[s], self._known[s].missing])
        sizes = np.array([items.size for items in lists], dtype=np.int64)
        start = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum(sizes, out=start[1:])
        sets = SetList(start, np.concatenate(lists), self.weights, self.sizes.astype(np.int64))
        return replace(self, sets=sets, sizes=sizes, partial=self.partial & ~chosen)

    def largest_first(self) -> list[int]:
        """Return the positions of the samples, the largest (and slowest) first."""
        return [int(s) for s in np.argsort(-self.sizes, kind="stable")]


def partly_known_rows(data: Dataset) -> NDArray[np.bool_]:
    """Return which samples have missing cells or known orders."""
    found = np.zeros(data.n_samples, dtype=np.bool_)
    if data.missing is not None:
        found |= data.missing.any(axis=1)
    if data.orders is not None:
        found |= np.array([bool(statements) for statements in data.orders])
    return found


def _other_knowledge(data: Dataset) -> NDArray[np.int64]:
    """Return for each sample a number for its combination of missing cells and known orders."""
    cells = [b""] * data.n_samples
    if data.missing is not None:
        cells = [row.tobytes() for row in np.packbits(data.missing, axis=1)]
    orders = data.orders if data.orders is not None else ((),) * data.n_samples
    numbers: dict[object, int] = {}
    each = [numbers.setdefault(known, len(numbers)) for known in zip(cells, orders, strict=True)]
    return np.array(each, dtype=np.int64)


def _shares(
    data: Dataset, inverse: NDArray[np.intp], counts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the share of the total weight that each distinct sample has."""
    if data.weights is None:
        return np.asarray(counts / data.n_samples)
    if data.total_weight <= 0.0:
        raise InputError(
            f"all {data.n_samples} samples have weight 0; expected at least one positive weight"
        )
    sums = np.bincount(inverse, weights=data.weights, minlength=counts.size)
    return np.asarray(sums / data.total_weight)
