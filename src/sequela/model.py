"""A learned or given chain: theta with the labels of its items and how it came about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela._validation import check_theta

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["Model"]


class Model:
    """The parameters of a chain over sets, with the labels of the items.

    Parameters
    ----------
    theta : array or DataFrame, (n, n)
        theta[i, j] is the log-effect of item i on the rate of item j, theta[j, j] the log base
        rate of item j.
    items : sequence of str or None
        Labels; None takes those of a DataFrame, or "0", "1", ...
    metadata : mapping or None
        How the model came about: penalty, seed, versions. Plain JSON values.

    Examples
    --------
    >>> Model([[0.0, 4.0], [0.0, -4.0]], ["first", "second"])
    <Model: 2 items, 1 interaction>
    """

    def __init__(
        self,
        theta: Any,
        items: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        if items is None and isinstance(theta, pd.DataFrame):
            items = [str(label) for label in theta.columns]
        matrix = check_theta(theta, items)
        matrix.flags.writeable = False
        self._theta = matrix
        n = matrix.shape[0]
        self._items = tuple(str(label) for label in (range(n) if items is None else items))
        self.metadata: dict[str, Any] = dict(metadata or {})

    @property
    def theta(self) -> NDArray[np.float64]:
        """The n x n parameters (read-only)."""
        return self._theta

    @property
    def items(self) -> tuple[str, ...]:
        """Labels of the items."""
        return self._items

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self._items)

    def to_frame(self) -> pd.DataFrame:
        """Return theta as a table: rows act on columns, the diagonal holds log base rates."""
        return pd.DataFrame(self._theta, index=list(self._items), columns=list(self._items))

    def interactions(self) -> pd.DataFrame:
        """Return the interactions that are not zero, the strongest first.

        Examples
        --------
        >>> Model([[0.0, 4.0], [0.0, -4.0]], ["first", "second"]).interactions()
            from      to  effect
        0  first  second     4.0
        """
        off = self._theta.copy()
        np.fill_diagonal(off, 0.0)
        i, j = np.nonzero(off)
        order = np.argsort(-np.abs(off[i, j]), kind="stable")
        labels = np.array(self._items, dtype=object)
        return pd.DataFrame(
            {
                "from": labels[i[order]],
                "to": labels[j[order]],
                "effect": off[i, j][order],
            }
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return self._items == other._items and bool(np.array_equal(self._theta, other._theta))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        count = int(np.count_nonzero(self._theta) - np.count_nonzero(np.diagonal(self._theta)))
        plural = "" if count == 1 else "s"
        return f"<Model: {self.n_items} items, {count} interaction{plural}>"
