"""The distinct sets of a table, in compressed sparse rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["DistinctSets", "distinct_sets"]


@dataclass(frozen=True, slots=True, eq=False)
class DistinctSets:
    """The distinct sets of a `Dataset`, smallest first, in compressed sparse rows.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n_distinct + 1,)
        Set `d` is ``indices[indptr[d]:indptr[d + 1]]``.
    indices : ndarray of int32
        Item positions, ascending within each set.
    counts : ndarray of int64, shape (n_distinct,)
        The number of samples with each set.
    inverse : ndarray of int64, shape (n_samples,)
        For each sample, the position of its set among the distinct sets.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    inverse: npt.NDArray[np.int64]


def distinct_sets(values: npt.NDArray[np.bool_]) -> DistinctSets:
    """Return the distinct rows of a boolean table, sorted by size and then by items."""
    # Make one byte string per row, so that sorting the strings sorts the sets. Each string has the
    # size of the set (high byte first), then the complement of its bits. Because of the complement,
    # sets of the same size are sorted by their items: {0, 3} comes before {1, 2}.
    sizes = values.sum(axis=1, dtype=np.int64).astype(">u4")
    keys = np.hstack([sizes[:, None].view(np.uint8), ~np.packbits(values, axis=1)])
    rows = np.ascontiguousarray(keys).view(f"V{keys.shape[1]}").ravel()
    _, first, inverse, counts = np.unique(
        rows, return_index=True, return_inverse=True, return_counts=True
    )
    indptr = np.zeros(len(first) + 1, dtype=np.int64)
    np.cumsum(sizes[first], out=indptr[1:])
    indices = np.nonzero(values[first])[1].astype(np.int32)
    return DistinctSets(indptr, indices, counts.astype(np.int64), inverse.astype(np.int64))
