"""The optional parts of a data set: missing cells, known orders and weights."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.data._reading import refuse_all_missing
from sequela.data._statements import read_statements
from sequela.data._weights import read_weights
from sequela.support.errors import InputError
from sequela.support.naming import either

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    import numpy.typing as npt

    from sequela.data._statements import OrderStatement

__all__ = ["PartlyKnown"]

_log = logging.getLogger("sequela")


class PartlyKnown:
    """The part of `Dataset` that is about missing cells, known orders and weights."""

    __slots__ = ("_missing", "_orders", "_weights")

    _missing: npt.NDArray[np.bool_] | None
    _orders: tuple[tuple[OrderStatement, ...], ...] | None
    _weights: npt.NDArray[np.float64] | None
    # The attributes of `Dataset` that this class uses:
    _values: npt.NDArray[np.bool_]
    _items: tuple[str, ...]
    _samples: tuple[str, ...]
    _times: npt.NDArray[np.float64] | None

    @classmethod
    def _trusted(cls, *parts: Any) -> Self:
        raise NotImplementedError

    def _keep(
        self,
        missing: npt.NDArray[np.bool_] | None,
        orders: tuple[tuple[OrderStatement, ...], ...] | None,
        weights: npt.NDArray[np.float64] | None,
    ) -> None:
        # If no cell is missing, `_missing` is None. Then the functions for complete data are used.
        self._missing = None
        if missing is not None and missing.any():
            self._missing = np.ascontiguousarray(missing)
            self._missing.setflags(write=False)
        self._orders = orders if orders is not None and any(orders) else None
        self._weights = weights
        if weights is not None:
            weights.setflags(write=False)

    @property
    def missing(self) -> npt.NDArray[np.bool_] | None:
        """Which cells are missing (read-only, samples x items), or None if no cell is missing.

        A missing cell is False in `values`, so code that reads `values` must also read `missing`.
        """
        return self._missing

    @property
    def orders(self) -> tuple[tuple[OrderStatement, ...], ...] | None:
        """The statements about the order of the items of each sample, or None if there are none."""
        return self._orders

    @property
    def weights(self) -> npt.NDArray[np.float64] | None:
        """The weight of each sample (read-only), or None if no weights were given."""
        return self._weights

    @property
    def total_weight(self) -> float:
        """The sum of the weights; without weights, the number of samples."""
        return float(len(self._samples) if self._weights is None else self._weights.sum())

    @property
    def n_missing(self) -> int:
        """The number of missing cells."""
        return 0 if self._missing is None else int(np.count_nonzero(self._missing))

    @property
    def is_plain(self) -> bool:
        """Whether no cell is missing and nothing is known about orders."""
        return self._missing is None and self._orders is None

    @property
    def known_shares(self) -> npt.NDArray[np.float64]:
        """The (weighted) fraction of the samples that have each item, as an array.

        Missing cells do not count. The value is NaN for an item whose cells are all missing.
        """
        if self._missing is None and self._weights is None:
            return np.asarray(self._values.mean(axis=0))
        weights = np.ones(len(self._samples)) if self._weights is None else self._weights
        known = np.full(len(self._items), weights.sum())
        if self._missing is not None:
            known -= weights @ self._missing
        with np.errstate(invalid="ignore"):
            return np.asarray(weights @ self._values / np.where(known > 0, known, np.nan))

    def with_missing(self, missing: npt.ArrayLike) -> Self:
        """Return the same samples with more missing cells.

        Parameters
        ----------
        missing : array-like of bool, samples x items
            True where it is not known whether the sample has the item. Cells that are already
            missing stay missing. If a statement about the order of a sample names an item, the
            cell of this item must not become missing.

        Examples
        --------
        >>> from sequela.data.dataset import Dataset
        >>> data = Dataset([[1, 0], [1, 1]]).with_missing([[False, True], [False, False]])
        >>> data.n_missing, data.known_shares.tolist()
        (1, [1.0, 1.0])
        """
        cells = np.asarray(missing)
        if cells.dtype.kind != "b" or cells.shape != self._values.shape:
            raise InputError(
                f"missing is an array of type {cells.dtype} and shape {cells.shape}; expected "
                f"booleans of the shape of the data, {self._values.shape}."
            )
        if self._missing is not None:
            cells = cells | self._missing
        refuse_all_missing(cells, self._samples)
        values = self._values & ~cells
        orders = read_statements(self._orders, self._items, self._samples, values)
        parts = (values, self._items, self._samples, self._times)
        return self._trusted(*parts, cells, orders, self._weights)

    def with_weights(self, weights: Iterable[object] | None) -> Self:
        """Return the same samples with these weights; None makes all weights equal.

        A sample of weight 2 counts as two samples, and a sample of weight 0 does not count.

        Parameters
        ----------
        weights : iterable of numbers, or None
            One weight per sample. Weights are finite and not negative, and at least one is
            positive. If a pandas Series has sample ids in its index, they must be in the order of
            the samples.

        Examples
        --------
        >>> from sequela.data.dataset import Dataset
        >>> data = Dataset([[1, 0], [1, 1]]).with_weights([2, 0.5])
        >>> data.weights.tolist(), data.total_weight
        ([2.0, 0.5], 2.5)
        """
        parts = (self._values, self._items, self._samples, self._times)
        read = None if weights is None else read_weights(weights, self._samples)
        return self._trusted(*parts, self._missing, self._orders, read)

    def require_plain(self, what: str) -> Self:
        """Return the data set; raise an error if cells are missing or orders are known.

        Parameters
        ----------
        what : str
            The name of the function that needs complete data, for the error message.
        """
        if self._missing is not None:
            rows = np.flatnonzero(self._missing.any(axis=1))
            raise InputError(
                f"{what} does not support missing cells: {self.n_missing} cells of {rows.size} "
                f"samples are missing, the first in sample {self._samples[rows[0]]!r} (row "
                f"{rows[0]}). Leave these samples or items out"
                + either(" with select_samples or select_items", "")
                + ", or fill in the cells."
            )
        if self._orders is not None:
            row = next(i for i, statements in enumerate(self._orders) if statements)
            raise InputError(
                f"{what} does not support known orders, but sample {self._samples[row]!r} (row "
                f"{row}) has known orders. "
                + either("Use without_orders() to leave them out.", "Leave the known orders out.")
            )
        return self

    def without_orders(self) -> Self:
        """Return the same samples without their known orders.

        Examples
        --------
        >>> from sequela.data.dataset import Dataset
        >>> Dataset([[1, 1]], orders=[[("0", "1")]]).without_orders().orders is None
        True
        """
        parts = (self._values, self._items, self._samples, self._times)
        return self._trusted(*parts, self._missing, None, self._weights)

    def without_weights(self, what: str) -> Self:
        """Return the data set without weights; log a warning that `what` ignores the weights."""
        if self._weights is None:
            return self
        _log.warning("%s counts all samples equally; their weights are ignored", what)
        return self.with_weights(None)

    def _knows_the_same(self, other: PartlyKnown) -> bool:
        if self._missing is None or other._missing is None:
            same = self._missing is other._missing
        else:
            same = np.array_equal(self._missing, other._missing)
        if self._weights is None or other._weights is None:
            same = same and self._weights is other._weights
        else:
            same = same and np.array_equal(self._weights, other._weights)
        return same and self._orders == other._orders

    def _described(self) -> str:
        text = ""
        if self._missing is not None:
            text += f"; {self.n_missing} cells missing in {self._missing.any(axis=1).sum()} samples"
        if self._orders is not None:
            counts = [len(statements) for statements in self._orders if statements]
            text += f"; {sum(counts)} statements about the order of {len(counts)} samples"
        if self._weights is not None:
            text += f"; total weight {self.total_weight:g}"
        return text
