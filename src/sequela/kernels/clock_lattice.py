"""The joint probability of a set and of the number of clock items that are present.

Clock items are independent of all other items and have the same rate. So the number of clock items
that are present is a Markov chain. If j of m clock items are present, the next one arrives at the
rate (m - j) times the rate of one item. The lattice of the set is repeated for each number of clock
items, and no integral over time is needed.
"""

import math

import numpy as np

from sequela.kernels.limits import PRODUCT_LOG_RANGE
from sequela.support.jit import kernel


@kernel
def clock_lattice(p, theta, items, clock_rate, stop_rate):
    """Fill ``p[R, j]``: the probability of observing the subset R of `items` and j clock items.

    Bit b of R stands for ``items[b]``. The other items of theta are absent. The last axis of p is
    the number of clock items, from 0 to m. The probability of visiting the state (R, j), divided by
    the exit rate of the state, is ::

        F(R, j) = (sum_b F(R - b, j) q_b(R - b) + F(R, j - 1) (m - j + 1) r) / exit(R, j)

    where ``q_b(R)`` is the rate of item b in R, r is `clock_rate`, and ``exit(R, j)`` is the sum of
    all rates out of the state, including `stop_rate`. p is F times `stop_rate`.
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
