"""Penalised log-likelihoods in plain NumPy, independent of the kernels of sequela.

The probability of a set is the sum of eq. (6) of the paper over its orders (section 4.4). It is
computed by a recursion over the subsets of the set. This module scores the thetas of all tools, so
that no tool is scored by its own code. theta[i, j] is the effect of i on j, as in sequela.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

# Largest number of rates in memory at the same time. If there are more, they are computed in blocks
# of columns.
_BLOCK = 1 << 22
# Lists of subsets are cached for sets of at most this many items. Longer lists are too large.
_KEPT_LISTS = 12


def penalty_of(theta: np.ndarray, strength: float) -> float:
    """Return the L1 penalty; base rates are not penalised."""
    return float(strength * (np.abs(theta).sum() - np.abs(np.diagonal(theta)).sum()))


def log_likelihoods(theta: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return log p of every row of X; the observation time is exponential with rate 1."""
    distinct, which = np.unique(np.asarray(X, dtype=bool), axis=0, return_inverse=True)
    found = np.array([log_probability(theta, np.nonzero(row)[0]) for row in distinct])
    return found[which.ravel()]


def objective(theta: np.ndarray, X: np.ndarray, strength: float) -> float:
    """Return the mean log-likelihood of X minus the penalty (eq. 3)."""
    return float(log_likelihoods(theta, X).mean()) - penalty_of(theta, strength)


def log_probability(theta: np.ndarray, items: np.ndarray) -> float:
    """Return log p of one set, by a recursion over its subsets in order of size.

    A subset is a number whose bit b stands for items[b]. The rate of item j in the subset R is
    exp(theta[j, j]) times the product of exp(theta[i, j]) over all i in R. If j is in R, the rate
    is 0. To obtain this, the factor of j on itself is set to 0.
    """
    k = items.size
    base = np.exp(np.diagonal(theta))
    factors = np.exp(theta[items])
    factors[np.arange(k), items] = 0.0
    leaving = np.ones(1 << k)
    arriving = np.empty((k, 1 << k))
    place = {int(item): b for b, item in enumerate(items)}
    width = max(1, _BLOCK >> k)
    for first in range(0, base.size, width):
        columns = slice(first, first + width)
        rates = np.empty((1 << k, base[columns].size))
        rates[0] = base[columns]
        for b in range(k):
            np.multiply(rates[: 1 << b], factors[b, columns], out=rates[1 << b : 2 << b])
        leaving += rates.sum(axis=1)
        for item, b in place.items():
            if first <= item < first + width:
                arriving[b] = rates[:, item - first]
    passing = np.zeros(1 << k)
    passing[0] = 1.0 / leaving[0]
    for level in range(1, k + 1):
        for b, subsets in _levels(k)[level] if k <= _KEPT_LISTS else _level(k, level):
            before = subsets ^ (1 << b)
            passing[subsets] += passing[before] * arriving[b, before]
        here = _subsets(k)[level]
        passing[here] /= leaving[here]
    with np.errstate(divide="ignore"):
        return float(np.log(passing[-1]))


@lru_cache(maxsize=32)
def _subsets(k: int) -> list[np.ndarray]:
    """Return the subsets of k items, by size."""
    every = np.arange(1 << k, dtype=np.int32)
    sizes = np.bitwise_count(every) if hasattr(np, "bitwise_count") else _count_bits(every, k)
    order = np.argsort(sizes, kind="stable").astype(np.int32)
    return np.split(order, np.cumsum(np.bincount(sizes))[:-1])


def _count_bits(every: np.ndarray, k: int) -> np.ndarray:
    return sum((every >> b & 1 for b in range(k)), np.zeros_like(every))


def _level(k: int, level: int) -> list[tuple[int, np.ndarray]]:
    """Return, for each item, the subsets of size `level` that contain it."""
    here = _subsets(k)[level]
    return [(b, here[(here >> b & 1).astype(bool)]) for b in range(k)]


@lru_cache(maxsize=32)
def _levels(k: int) -> list[list[tuple[int, np.ndarray]]]:
    return [_level(k, level) for level in range(k + 1)]


def seconds_of_scoring(sizes: np.ndarray, n: int) -> float:
    """Return the predicted seconds of `log_likelihoods` for distinct sets of these sizes."""
    k = np.asarray(sizes, dtype=float)
    return float(np.sum(2e-4 + 2.0**k * (3e-9 * n + 4e-8 * k)))
