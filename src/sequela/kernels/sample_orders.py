"""Which of two items came first in the observed samples, at one theta without zeros."""

import math

import numpy as np

from sequela.support.jit import helper, kernel


@helper
def add_lattice_orders(before, theta, items, weight, stop_rate):
    """Add ``weight * P(a before b | S)`` to ``before[a, b]`` for all pairs of the set `items`.

    Rates are sums in logarithms first. Everything after that is a probability, so that nothing
    overflows.
    """
    n = theta.shape[0]
    k = items.shape[0]
    states = 1 << k
    log_rates = np.empty((states, n))
    rates = np.empty((states, k))
    holding = np.empty(states)
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
        # Rates of items that R has are left out, not subtracted: they may be larger than the rest
        # by more than a double has digits.
        total = stop_rate
        for j in range(n):
            if not R & bit[j]:
                total += math.exp(log_rates[R, j])
        for b in range(k):
            rates[R, b] = 0.0 if R >> b & 1 else math.exp(log_rates[R, items[b]])
        holding[R] = 1.0 / total
    # passing[R]: the probability of passing through R; ahead[R]: of going on from R to S and being
    # observed there.
    passing = np.zeros(states)
    passing[0] = 1.0
    for R in range(states):
        share = passing[R] * holding[R]
        for b in range(k):
            if not R >> b & 1:
                passing[R | 1 << b] += share * rates[R, b]
    ahead = np.zeros(states)
    ahead[states - 1] = stop_rate * holding[states - 1]
    for R in range(states - 2, -1, -1):
        total = 0.0
        for b in range(k):
            if not R >> b & 1:
                total += rates[R, b] * ahead[R | 1 << b]
        ahead[R] = total * holding[R]
    if not ahead[0] > 0.0:
        return False
    factor = weight / ahead[0]
    for R in range(states):
        share = passing[R] * holding[R] * factor
        for a in range(k):
            if R >> a & 1:
                continue
            step = share * rates[R, a] * ahead[R | 1 << a]
            for b in range(k):
                if b != a and not R >> b & 1:
                    before[items[a], items[b]] += step
    return True


@kernel
def sum_sample_orders(before, theta, target, orders):
    """Fill ``before[a, b]``: the expected number of samples in which a came before b.

    Large samples count by their latent orders. Return False if a probability underflows.
    """
    sets = target.sets
    before[:] = 0.0
    for s in target.lattice:
        items = sets.items[sets.start[s] : sets.start[s + 1]]
        if items.shape[0] > 1:
            weight = sets.weights[s] * target.total
            if not add_lattice_orders(before, theta, items, weight, target.stop_rate):
                return False
    for s in range(target.large_start.shape[0] - 1):
        order = orders[target.large_start[s] : target.large_start[s + 1]]
        for a in range(order.shape[0]):
            for b in range(a + 1, order.shape[0]):
                before[order[a], order[b]] += 1.0
    return True
