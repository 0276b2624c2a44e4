"""The joint probability of a set and of the number of clock items that are present with it.

Clock items are independent of everything, and all have the same rate, so that their number is a
Markov chain of its own: with j of m present the next one arrives at rate (m - j) times theirs. The
lattice of the set is repeated once for each number, and no integral over time is needed.
"""

import math

import numpy as np

from sequela.kernels.limits import PRODUCT_LOG_RANGE
from sequela.support.jit import kernel


@kernel
def clock_lattice(p, theta, items, clock_rate, stop_rate):
    """Fill ``p[R, j]``: the probability of observing the subset R of `items` and j clock items.

    R counts in bits, bit b for ``items[b]``; the number of clock items is the last index of p.
    Items that are not in `items` are absent. The probability of passing through (R, j) is ::

        F(R, j) = (sum_b F(R - b, j) q_b(R - b) + F(R, j - 1) (m - j + 1) r) / exit(R, j)

    with ``exit(R, j)`` the sum of all rates out of it, and p is F times the stop rate.
    """
    n = theta.shape[0]
    k = items.shape[0]
    m = p.shape[1] - 1
    states = 1 << k
    log_rates = np.empty((states, n))
    rates = np.zeros((states, k))
    bit = np.zeros(n, np.int64)
    for b in range(k):
        bit[items[b]] = 1 << b
    for j in range(n):
        log_rates[0, j] = theta[j, j]
    for R in range(states):
        if R > 0:
            b = 0
            while not R >> b & 1:
                b += 1
            source = R & (R - 1)
            i = items[b]
            for j in range(n):
                log_rates[R, j] = log_rates[source, j] + (0.0 if i == j else theta[i, j])
        total = stop_rate
        for j in range(n):
            if not R & bit[j]:
                total += math.exp(min(log_rates[R, j], PRODUCT_LOG_RANGE))
        for b in range(k):
            if not R >> b & 1:
                rates[R, b] = math.exp(min(log_rates[R, items[b]], PRODUCT_LOG_RANGE))
        for c in range(m + 1):
            inflow = 1.0 if R == 0 and c == 0 else 0.0
            for b in range(k):
                if R >> b & 1:
                    source = R ^ (1 << b)
                    inflow += p[source, c] * rates[source, b]
            if c > 0:
                inflow += p[R, c - 1] * (m - c + 1) * clock_rate
            p[R, c] = inflow / (total + (m - c) * clock_rate)
    p *= stop_rate
