"""Which pairs of items jumps are tried for: those whose order changes slowly, more often.

During the warm-up the share of the orders "a first" of each pair (see `family_jump`) is followed in
all chains. A pair whose share is nearly the same from draw to draw, compared with how much it
varies over all chains, is what the run waits for; jumps are what changes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PairTracks", "order_shares", "pair_counts", "pairs_by_slowness"]

# Part of the tries that stays with the association of the pairs in the data.
_FLOOR = 0.25
# Draws that a pair takes to be forgotten, at most: longer ones are not known that well.
_MOST_DRAWS = 200.0
# Rows of the list of pairs that are given out by weight, beside one for each pair.
_ROWS = 4000


def order_shares(
    theta: NDArray[np.float64], pairs: NDArray[np.int64], stop_rate: float
) -> NDArray[np.float64]:
    """Return the share of the orders "a first" in models of two items alone, for all pairs."""
    a, b = pairs[:, 0], pairs[:, 1]
    one, two = theta[a, a] - np.log(stop_rate), theta[b, b] - np.log(stop_rate)
    # The odds are [a / (1 + 1 / late b)] / [b / (1 + 1 / late a)], in logarithms.
    late_two, late_one = two + theta[a, b], one + theta[b, a]
    odds = one - np.logaddexp(0.0, -late_two) - two + np.logaddexp(0.0, -late_one)
    shares: NDArray[np.float64] = 0.5 + 0.5 * np.tanh(0.5 * odds)
    return shares


@dataclass
class PairTracks:
    """Sums over the shares of all pairs, for their correlation between successive draws.

    Attributes
    ----------
    sums : array (4, pairs)
        Number of shares, their sum, the sum of squares, and that of products of successive ones.
    last : array (chains, pairs)
        The shares of the last draw; NaN before the first.
    """

    sums: NDArray[np.float64]
    last: NDArray[np.float64]

    @classmethod
    def begin(cls, chains: int, pairs: int) -> PairTracks:
        """Begin without draws."""
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
        """Return how many draws are worth an independent one, for each pair; 1 if unknown."""
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


def pair_counts(pairs: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how often each of the pairs (m, 2) is among the rows (any number, 2)."""
    places = {tuple(pair): at for at, pair in enumerate(pairs.tolist())}
    found = np.array([places[tuple(row)] for row in rows.tolist()], dtype=np.int64)
    return np.bincount(found, minlength=len(pairs))


def pairs_by_slowness(
    now: NDArray[np.int64], copies: NDArray[np.int64], draws_to_forget: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the places of the pairs that jumps choose from: slow pairs more often.

    A pair is tried as often as `now`, times the draws that it took to be forgotten with so many
    jumps: if jumps are what changes it, all pairs become equally slow. A part of the tries stays
    with the association of the pairs in the data (`copies`).
    """
    slow = now * np.maximum(draws_to_forget - 1.0, 0.0)
    if not len(copies) or not slow.sum() > 0.0:
        return np.repeat(np.arange(len(copies)), copies)
    weight = _FLOOR * copies / copies.sum() + (1.0 - _FLOOR) * slow / slow.sum()
    return np.repeat(np.arange(len(copies)), 1 + np.round(_ROWS * weight).astype(np.int64))
