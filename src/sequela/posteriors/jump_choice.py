"""Choose the pairs of items for jumps: pairs whose order changes slowly are tried more often.

A jump proposes another order of a pair of items (see `family_jump`). During the warm-up, the share
of the order "a first" of each pair is recorded in all chains. A pair is slow if its share hardly
changes from draw to draw, compared with its variation over all chains. Slow pairs determine how
long a run takes, so they need the most jumps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PairTracks", "order_shares", "pairs_by_slowness"]

# This share of the jumps is divided among the pairs in proportion to their association in the data.
# The rest is divided in proportion to the square of how slowly the order of a pair changes. Without
# the square, hundreds of pairs that change quickly would together get most of the jumps. With the
# third power, a single slow pair gets nearly all jumps, and almost none are left for the other
# pairs of a cascade.
_FLOOR = 0.25
# The largest number of draws per independent draw: larger numbers cannot be estimated well.
_MOST_DRAWS = 200.0
# The list of pairs has one row per pair, and about this many additional rows. The additional rows
# are divided among the pairs in proportion to their weights.
_ROWS = 20_000


def order_shares(
    theta: NDArray[np.float64], pairs: NDArray[np.int64], stop_rate: float
) -> NDArray[np.float64]:
    """Return the share of the order "a first" for each pair, in models of these two items alone."""
    a, b = pairs[:, 0], pairs[:, 1]
    one, two = theta[a, a] - np.log(stop_rate), theta[b, b] - np.log(stop_rate)
    # Let a and b be the base rates, and let "late a" be the rate of a after b has arrived. Then the
    # odds are [a / (1 + 1 / late b)] / [b / (1 + 1 / late a)]. They are computed as logarithms.
    late_two, late_one = two + theta[a, b], one + theta[b, a]
    odds = one - np.logaddexp(0.0, -late_two) - two + np.logaddexp(0.0, -late_one)
    shares: NDArray[np.float64] = 0.5 + 0.5 * np.tanh(0.5 * odds)
    return shares


@dataclass
class PairTracks:
    """Sums of the shares of all pairs, from which the correlation of successive draws is computed.

    Attributes
    ----------
    sums : array (4, pairs)
        Number of shares, their sum, the sum of squares, and the sum of the products of successive
        shares.
    last : array (chains, pairs)
        The shares of the last draw; NaN before the first draw.
    """

    sums: NDArray[np.float64]
    last: NDArray[np.float64]

    @classmethod
    def begin(cls, chains: int, pairs: int) -> PairTracks:
        """Return sums without any draws."""
        return cls(np.zeros((4, pairs)), np.full((chains, pairs), np.nan))

    def add(self, shares: NDArray[np.float64]) -> None:
        """Add the shares (chains, pairs) of one draw."""
        known = np.isfinite(self.last)
        self.sums[0] += known.sum(axis=0)
        self.sums[1] += np.where(known, 0.5 * (shares + self.last), 0.0).sum(axis=0)
        self.sums[2] += np.where(known, 0.5 * (shares**2 + self.last**2), 0.0).sum(axis=0)
        self.sums[3] += np.where(known, shares * self.last, 0.0).sum(axis=0)
        self.last = shares

    def draws_to_forget(self) -> NDArray[np.float64]:
        """Return for each pair how many draws count as one independent draw; 1 if unknown."""
        count, total, squares, products = self.sums
        count = np.maximum(count, 1.0)
        mean = total / count
        variance = squares / count - mean**2
        covariance = products / count - mean**2
        with np.errstate(divide="ignore", invalid="ignore"):
            correlation = np.where(variance > 1e-12, covariance / variance, 0.0)
        most = (_MOST_DRAWS - 1.0) / (_MOST_DRAWS + 1.0)
        correlation = np.clip(correlation, 0.0, most)
        draws: NDArray[np.float64] = (1.0 + correlation) / (1.0 - correlation)
        return draws


def pairs_by_slowness(
    copies: NDArray[np.int64], draws_to_forget: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the indices of the pairs that jumps choose from; slow pairs are repeated more often.

    `copies` are numbers that are larger for pairs with a stronger association in the data. A part
    of the jumps is divided in proportion to `copies`. The rest is divided in proportion to the
    square of `draws_to_forget` - 1.
    """
    slow = np.maximum(draws_to_forget - 1.0, 0.0) ** 2
    if not len(copies) or not slow.sum() > 0.0:
        return np.repeat(np.arange(len(copies)), copies)
    weight = _FLOOR * copies / copies.sum() + (1.0 - _FLOOR) * slow / slow.sum()
    return np.repeat(np.arange(len(copies)), 1 + np.round(_ROWS * weight).astype(np.int64))
