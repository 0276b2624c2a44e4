"""The data structure of all samples: a table of samples and items that cannot be changed.

The data of a user (an array, a DataFrame, a list of sets) are converted to a `Dataset` here.
Invalid data raise an error that names row and column. No other code checks a `Dataset` again.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from sequela.data._distinct_sets import DistinctSets, distinct_sets
from sequela.data._partly_known import PartlyKnown
from sequela.data._reading import (
    SHOWN,
    as_table,
    axis_labels,
    cell_blocks,
    find_positions,
    find_rows,
    listed,
    read_cells,
    read_labels,
    read_members,
    read_times,
    refuse_nothing,
    unknown,
)
from sequela.data._statements import closed, read_statements
from sequela.support.errors import InputError
from sequela.support.frames import is_frame, is_series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    import numpy.typing as npt
    import pandas as pd

    from sequela.data._statements import OrdersLike, OrderStatement

__all__ = ["DataLike", "Dataset", "DistinctSets", "SparseMatrix"]


class SparseMatrix(Protocol):
    """A sparse matrix of SciPy, or an object that can be converted to one."""

    def tocsr(self) -> Any:
        """Return the matrix in the format of compressed sparse rows (CSR)."""
        ...


# The types that all functions with samples accept; `Dataset.coerce` converts them.
DataLike: TypeAlias = (
    "Dataset | pd.DataFrame | pd.Series[Any] | npt.ArrayLike | SparseMatrix"
    " | Sequence[AbstractSet[Any]]"
)


class Dataset(PartlyKnown):
    """An immutable table that says which sample has which items.

    Parameters
    ----------
    values : array-like, DataFrame, SciPy sparse matrix or Dataset
        Samples in rows, items in columns. Every entry is False, True, or exactly 0 or 1. If nobody
        looked for the item, the entry is missing: NaN, None, NA of pandas, or masked. The table is
        copied.
    items : iterable of labels, optional
        One label per column, by position. Default: the columns of a DataFrame, otherwise
        ``"0"``, ``"1"``, ... Labels are stored as strings, so the number 1 becomes ``"1"``.
    samples : iterable of labels, optional
        One id per row, by position. Default: the index of a DataFrame, otherwise ``"0"``,
        ``"1"``, ...
    times : iterable of numbers, optional
        When each sample was observed: a finite number of at least 0, or NaN or None if unknown.
    orders : dict or iterable, optional
        Known orders of items. Each sample has a list of statements ``(before, after)`` or
        ``(before, after, probability)``; see `OrderStatement`. Give a dictionary from sample ids
        to such lists, or one list (or None) per sample.

    Raises
    ------
    InputError
        If anything is invalid; the message names the row and the column.

    Examples
    --------
    >>> data = Dataset([[1, 0], [1, 1], [0, 0]], items=["IDH1", "TP53"], times=[2, 5.5, None])
    >>> data
    Dataset(3 samples x 2 items: 'IDH1', 'TP53'; 0 to 2 items per sample; 2 times known)
    >>> data.set_sizes
    array([1, 2, 0])
    >>> float(data.frequencies["TP53"].round(3))
    0.333

    TP53 was not looked for in the first sample, and IDH1 came first in the second:

    >>> Dataset([[1, None], [1, 1]], items=["IDH1", "TP53"], orders=[None, [("IDH1", "TP53")]])
    Dataset(2 samples x 2 items: 'IDH1', 'TP53'; 1 to 2 items per sample; 1 cells missing in 1 samples; 1 statements about the order of 1 samples)
    """  # noqa: E501 - the line is what Python prints

    __slots__ = ("_items", "_samples", "_times", "_values")

    _values: npt.NDArray[np.bool_]
    _items: tuple[str, ...]
    _samples: tuple[str, ...]
    _times: npt.NDArray[np.float64] | None

    def __init__(
        self,
        values: object,
        *,
        items: Iterable[object] | None = None,
        samples: Iterable[object] | None = None,
        times: Iterable[object] | None = None,
        orders: OrdersLike | None = None,
    ) -> None:
        missing: npt.NDArray[np.bool_] | None = None
        weights: npt.NDArray[np.float64] | None = None
        own_items: Iterable[object] | None = None
        own_samples: Iterable[object] | None = None
        if isinstance(values, Dataset):
            own_items, own_samples = values.items, values.samples
            times = values.times if times is None else times
            orders = values.orders if orders is None else orders
            missing, weights = values.missing, values.weights
            table: Any = values.values
        elif is_frame(values):
            own_items, own_samples = values.columns, values.index
            table = values
        else:
            table = as_table(values)
        n_samples, n_items = table.shape
        if n_samples == 0 or n_items == 0:
            raise InputError(
                f"values has no {'samples (rows)' if n_samples == 0 else 'items (columns)'}: its "
                f"shape is {(n_samples, n_items)}. At least one sample and one item are needed. "
                "Check how the table was filtered, or pass items= if all sets are empty."
            )
        # Labels are read before cells, because the message about an invalid cell names its row and
        # column.
        item_labels = axis_labels("items", items, own_items, n_items)
        sample_labels = axis_labels("samples", samples, own_samples, n_samples)
        cells, unknown_cells = read_cells(
            cell_blocks(table, item_labels), item_labels, sample_labels
        )
        self._store(
            cells,
            item_labels,
            sample_labels,
            read_times(times, sample_labels),
            unknown_cells if missing is None else missing,
            read_statements(orders, item_labels, sample_labels, cells),
            weights,
        )

    def _store(
        self,
        values: npt.NDArray[np.bool_],
        items: tuple[str, ...],
        samples: tuple[str, ...],
        times: npt.NDArray[np.float64] | None,
        missing: npt.NDArray[np.bool_] | None = None,
        orders: tuple[tuple[OrderStatement, ...], ...] | None = None,
        weights: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self._values = np.ascontiguousarray(values)
        self._items = items
        self._samples = samples
        self._times = times
        self._values.setflags(write=False)
        if times is not None:
            times.setflags(write=False)
        self._keep(missing, orders, weights)

    @classmethod
    def _trusted(cls, *parts: Any) -> Dataset:
        """Build a data set from parts of a validated data set, without validating them again."""
        new = cls.__new__(cls)
        new._store(*parts)  # noqa: SLF001  (it is our own)
        return new

    @classmethod
    def from_sets(
        cls,
        sets: Iterable[Iterable[object]],
        *,
        items: Iterable[object] | None = None,
        samples: Iterable[object] | None = None,
        times: Iterable[object] | None = None,
    ) -> Dataset:
        """Build a data set from one collection of labels per sample.

        Parameters
        ----------
        sets : list of sets, lists or tuples of labels
            The items of each sample. A number in a set is the label of an item, not its position.
        items : iterable of labels, optional
            All items, in the order of the columns. They may include items that never occur.
            Default: the labels in `sets`, in the order in which they first occur (the labels of a
            Python set, which has no order, are sorted first).
        samples, times : iterable, optional
            As for `Dataset`. If `sets` is a pandas Series, its index gives the sample ids.

        Returns
        -------
        Dataset

        Examples
        --------
        >>> data = Dataset.from_sets([["TP53"], [], ["IDH1", "TP53"]], samples=["a", "b", "c"])
        >>> data.items
        ('TP53', 'IDH1')
        >>> data.values.astype(int).tolist()
        [[1, 0], [0, 0], [1, 1]]
        """
        if samples is None and is_series(sets):
            samples = sets.index
        rows = listed(sets, "sets")
        ids = axis_labels("samples", samples, None, len(rows))
        names = [f"the set of sample {ids[i]!r} (position {i})" for i in range(len(rows))]
        members = [read_members(row, name) for row, name in zip(rows, names, strict=True)]
        if items is None:
            known = tuple(dict.fromkeys(chain.from_iterable(members)))
        else:
            known = read_labels("items", items)
        column = {label: j for j, label in enumerate(known)}
        values = np.zeros((len(rows), len(known)), dtype=np.bool_)
        for i, labels in enumerate(members):
            for label in labels:
                if label not in column:
                    raise InputError(
                        f"{names[i]} has {unknown(label, known)}, which is not among items. "
                        "Correct the label, or add it to items."
                    )
                values[i, column[label]] = True
        return cls(values, items=known, samples=ids, times=times)

    @classmethod
    def coerce(cls, X: object, times: Iterable[object] | None = None) -> Dataset:
        """Convert data of any supported type to a `Dataset`.

        Parameters
        ----------
        X : Dataset, DataFrame, array-like, sparse matrix, or list of sets or frozensets
            The data. A Dataset is returned unchanged, unless `times` is given.
        times : iterable of numbers, optional
            Observation times; they replace the times of X.

        Returns
        -------
        Dataset

        Examples
        --------
        >>> Dataset.coerce([{"a", "b"}, {"b"}]).items
        ('a', 'b')
        >>> Dataset.coerce([[1, 1], [0, 1]]).items
        ('0', '1')
        """
        if isinstance(X, Dataset) and times is None:
            return X
        if (
            (isinstance(X, list | tuple) or is_series(X))
            and len(X) > 0
            and all(isinstance(x, set | frozenset) for x in X)
        ):
            return cls.from_sets(X, times=times)
        return cls(X, times=times)

    @property
    def values(self) -> npt.NDArray[np.bool_]:
        """The table: a read-only boolean array, samples x items, C-contiguous."""
        return self._values

    @property
    def items(self) -> tuple[str, ...]:
        """The label of each column."""
        return self._items

    @property
    def samples(self) -> tuple[str, ...]:
        """The id of each row."""
        return self._samples

    @property
    def times(self) -> npt.NDArray[np.float64] | None:
        """When each sample was observed (read-only, NaN if unknown); None if no times are given."""
        return self._times

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        return len(self._samples)

    @property
    def n_items(self) -> int:
        """The number of columns."""
        return len(self._items)

    @property
    def set_sizes(self) -> npt.NDArray[np.int64]:
        """The number of items that each sample is known to have."""
        return np.asarray(self._values.sum(axis=1, dtype=np.int64))

    @property
    def frequencies(self) -> pd.Series[float]:
        """The (weighted) fraction of the samples that have each item, with the items as index.

        Missing cells do not count. The value is NaN for an item whose cells are all missing.
        """
        import pandas as pd

        share = self.known_shares
        return pd.Series(share, index=list(self._items), name="frequency")

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a new boolean DataFrame (times and orders are not part of it).

        If cells are missing, the columns have the type "boolean" of pandas, and the missing cells
        are NA.

        Examples
        --------
        >>> Dataset([[1, 0]], items=["a", "b"], samples=["s"]).to_frame()
              a      b
        s  True  False
        """
        import pandas as pd

        table = pd.DataFrame(
            self._values.copy(), index=list(self._samples), columns=list(self._items)
        )
        return table if self._missing is None else table.astype("boolean").mask(self._missing)

    def sets(self) -> list[frozenset[str]]:
        """Return the set of items that each sample is known to have.

        Examples
        --------
        >>> Dataset([[1, 0], [0, 0]], items=["a", "b"]).sets()
        [frozenset({'a'}), frozenset()]
        """
        return [frozenset(self._items[j] for j in np.flatnonzero(row)) for row in self._values]

    def select_items(self, labels: Iterable[object]) -> Dataset:
        """Return a data set with only these items, in the given order, and with all samples.

        Known orders of the remaining items are kept. This includes orders that follow from
        statements about removed items.

        Examples
        --------
        >>> Dataset([[1, 0, 1]], items=["a", "b", "c"]).select_items(["c", "b"]).items
        ('c', 'b')
        """
        chosen = read_labels("items", labels)
        columns = find_positions(chosen, self._items, "items")
        refuse_nothing(columns, "items")
        orders = self._orders
        if orders is not None and set(chosen) != set(self._items):
            orders = tuple(closed(statements, chosen) for statements in orders)
        missing = None if self._missing is None else self._missing[:, columns]
        values = self._values[:, columns]
        parts = (values, chosen, self._samples, self.times, missing, orders)
        return self._trusted(*parts, self._weights)

    def select_samples(self, which: Iterable[object]) -> Dataset:
        """Return a data set with only these samples, in the given order, and with all items.

        Parameters
        ----------
        which : iterable
            Strings are ids, booleans (one per sample) are a mask, and integers are positions,
            even if the ids look like numbers.

        Examples
        --------
        >>> data = Dataset([[1], [0], [1]], samples=["x", "y", "z"])
        >>> data.select_samples(["z", "x"]).samples
        ('z', 'x')
        >>> data.select_samples(data.set_sizes > 0).samples
        ('x', 'z')
        >>> data.select_samples([-1]).samples
        ('z',)
        """
        rows = find_rows(which, self._samples)
        ids = read_labels("the selection of samples", [self._samples[i] for i in rows])
        return self.take_rows(np.array(rows, dtype=np.int64), ids)

    def take_rows(
        self, rows: npt.NDArray[np.int64], samples: tuple[str, ...] | None = None
    ) -> Dataset:
        """Return the samples at these positions; a position may occur several times.

        The new ids are `samples`; by default, they are "0", "1", ...

        Examples
        --------
        >>> Dataset([[1], [0]]).take_rows(np.array([1, 1])).values.tolist()
        [[False], [False]]
        """
        return self._trusted(
            self._values[rows],
            self._items,
            samples or tuple(map(str, range(len(rows)))),
            None if self._times is None else self._times[rows],
            None if self._missing is None else self._missing[rows],
            None if self._orders is None else tuple(self._orders[i] for i in rows),
            None if self._weights is None else self._weights[rows],
        )

    def without_times(self) -> Dataset:
        """Return the same samples without their observation times.

        Examples
        --------
        >>> Dataset([[1, 0]], times=[0.5]).without_times().times is None
        True
        """
        parts = (self._values, self._items, self._samples, None)
        return self._trusted(*parts, self._missing, self._orders, self._weights)

    def most_frequent(self, n: int) -> Dataset:
        """Return a data set of the `n` most frequent items, the most frequent first.

        Equally frequent items keep the order of their columns. Missing cells do not count.

        Examples
        --------
        >>> Dataset([[0, 1, 1], [0, 1, 1]], items=["a", "b", "c"]).most_frequent(2).items
        ('b', 'c')
        """
        is_integer = isinstance(n, int | np.integer) and not isinstance(n, bool)
        if not is_integer or not 1 <= n <= self.n_items:
            raise InputError(f"n must be an integer from 1 to {self.n_items} items; found {n!r}.")
        if self._missing is None and self._weights is None:
            order = np.argsort(-self._values.sum(axis=0, dtype=np.int64), kind="stable")
        else:
            order = np.argsort(-np.nan_to_num(self.known_shares), kind="stable")
        return self.select_items([self._items[j] for j in order[:n]])

    def compressed(self) -> DistinctSets:
        """Return the distinct sets and their counts, sorted by size and then by items.

        Each set has the items that a sample is known to have: missing cells count as absent.

        Examples
        --------
        >>> distinct = Dataset([[1, 1], [0, 1], [1, 1]]).compressed()
        >>> distinct.indptr.tolist(), distinct.indices.tolist()
        ([0, 1, 3], [1, 0, 1])
        >>> distinct.counts.tolist(), distinct.inverse.tolist()
        ([1, 2], [1, 0, 1])
        """
        return distinct_sets(self._values)

    def __len__(self) -> int:
        return self.n_samples

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dataset):
            return NotImplemented
        if (self._items, self._samples) != (other._items, other._samples):
            return False
        if self._times is None or other._times is None:
            same_times = self._times is other._times
        else:
            same_times = np.array_equal(self._times, other._times, equal_nan=True)
        return (
            same_times
            and self._knows_the_same(other)
            and np.array_equal(self._values, other._values)
        )

    # A data set cannot be a dictionary key, because comparing two data sets compares the whole
    # tables, which is slow.
    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Callable[..., Dataset], tuple[object, ...]]:
        parts = (self._values, self._items, self._samples, self._times)
        return self._trusted, (*parts, self._missing, self._orders, self._weights)

    def __repr__(self) -> str:
        sizes = self.set_sizes
        items = ", ".join(repr(label) for label in self._items[:SHOWN])
        known = "" if self._times is None else f"; {np.isfinite(self._times).sum()} times known"
        return (
            f"Dataset({self.n_samples} samples x {self.n_items} items: {items}"
            f"{', ...' if self.n_items > SHOWN else ''}; {sizes.min()} to {sizes.max()} items per "
            f"sample{known}{self._described()})"
        )
