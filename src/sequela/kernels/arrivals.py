"""Probabilities of all arrivals before the observation, computed in one pass over all states."""

import numpy as np

from sequela.support.jit import kernel


@kernel
def sum_arrivals(flow, before, passing, high, low_effects, stop_rate, k, low):
    """Add up the probabilities of all steps R -> R + c before the observation.

    ``flow[c]`` receives the probability that c arrives, and ``before[b, c]`` the probability that c
    arrives after b. ``high[H, c] * low_effects[L, c]`` is the rate of c in the state with high bits
    H and low bits L; it is 0 if c is present. ``passing[R]`` must be 0 when the kernel is called.
    It receives the probability that the process visits R. All terms are positive, so terms that
    underflow are negligible.

    The steps are added up over all L for each H, and over all H for each L. So the kernel tests
    only once per sum, and not in every state, which items are present.
    """
    width = 1 << low
    steps = np.empty(k)
    of_high = np.empty(k)
    of_low = np.zeros((width, k))
    passing[0] = 1.0
    for H in range(1 << (k - low)):
        rates = high[H]
        for c in range(k):
            of_high[c] = 0.0
        for L in range(width):
            R = H << low | L
            effects = low_effects[L]
            row = of_low[L]
            total = stop_rate
            for c in range(k):
                steps[c] = rates[c] * effects[c]
                total += steps[c]
            share = passing[R] / total
            for c in range(k):
                steps[c] *= share
                of_high[c] += steps[c]
                row[c] += steps[c]
            for b in range(k):
                if not R >> b & 1:
                    passing[R | (1 << b)] += steps[b]
        for b in range(low, k):
            if H >> (b - low) & 1:
                for c in range(k):
                    before[b, c] += of_high[c]
    for L in range(width):
        for c in range(k):
            flow[c] += of_low[L, c]
        for b in range(low):
            if L >> b & 1:
                for c in range(k):
                    before[b, c] += of_low[L, c]
