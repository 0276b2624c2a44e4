"""Theta in the forms that the kernels read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.columns import SHORTCUT_LIMIT, choose_columns
from sequela.support.jit import call

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Columns", "Parameters"]


@dataclass(frozen=True)
class Columns:
    """What one set needs of theta: its items first, then the active items outside.

    Attributes
    ----------
    items : array of int
        The columns' items; the first `k` are those of the set.
    k : int
        Size of the set.
    effects : array, (k, m)
        Log-effect of each item of the set on each column (0 on itself).
    rate : array, (m,)
        Base rates of the columns.
    rest : float
        Total rate of all other items, which is constant.
    highest, lowest : float
        Bounds of the log-rates of the columns over all states.
    """

    items: NDArray[np.int64]
    k: int
    effects: NDArray[np.float64]
    rate: NDArray[np.float64]
    rest: float
    highest: float
    lowest: float


class Parameters:
    """A checked theta: effects, base rates, and which effects are not zero.

    `observation_rate` is the rate at which a sample is observed.
    """

    def __init__(self, theta: NDArray[np.float64], observation_rate: float = 1.0) -> None:
        n = theta.shape[0]
        self.theta = theta
        self.n = n
        self.observation_rate = observation_rate
        self.rate = np.exp(np.diagonal(theta))
        self.W = np.exp(theta)
        np.fill_diagonal(self.W, 1.0)  # an item has no effect on itself
        present = theta != 0.0
        np.fill_diagonal(present, val=False)
        self.row_start = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(present.sum(axis=1), out=self.row_start[1:])
        self.row_item = np.nonzero(present)[1].astype(np.int64)
        self.shared = self.rate <= SHORTCUT_LIMIT * observation_rate
        self.constant = float(self.rate[self.shared].sum())
        self.rare = np.nonzero(~self.shared)[0].astype(np.int64)

    def columns(self, items: NDArray[np.int64]) -> Columns:
        """Return the columns of the set `items`."""
        n = self.n
        columns = np.empty(n, dtype=np.int64)
        above = np.empty(n)
        below = np.empty(n)
        k = items.shape[0]
        m, rest = call(
            choose_columns, items, k, self.theta, self.row_start, self.row_item, self.rate,
            self.shared, self.constant, self.rare, columns, above, below,
            np.zeros(n, dtype=np.int64),
        )  # fmt: skip
        columns = columns[:m].copy()
        effects = self.theta[np.ix_(items, columns)]
        effects[np.arange(k), np.arange(k)] = 0.0
        base = self.theta[columns, columns]
        return Columns(
            items=columns,
            k=k,
            effects=np.ascontiguousarray(effects),
            rate=self.rate[columns],
            rest=float(rest),
            highest=float(np.max(base + above[:m], initial=-np.inf)),
            lowest=float(np.min(base + below[:m], initial=np.inf)),
        )

    def spread(self, columns: Columns, G: NDArray[np.float64], into: NDArray[np.float64]) -> None:
        """Add one set's gradient G (layout of `lattice.gradient`) to the n x n array `into`."""
        self._spread(columns, G, -self.rate, into)

    def spread_variance(
        self, columns: Columns, G: NDArray[np.float64], into: NDArray[np.float64]
    ) -> None:
        """Add the variances G of one set's gradient to the n x n array `into`."""
        self._spread(columns, G, self.rate**2, into)

    def _spread(
        self,
        columns: Columns,
        G: NDArray[np.float64],
        per_time: NDArray[np.float64],
        into: NDArray[np.float64],
    ) -> None:
        k = columns.k
        m = columns.items.shape[0]
        full = G[:, m : m + 1] * per_time  # items that are no columns: a multiple of the time
        full[:, columns.items] = G[:, :m]
        own = columns.items[:k]
        full[np.arange(k), own] = 0.0
        into[own] += full[:k]
        into[np.arange(self.n), np.arange(self.n)] += full[k]
