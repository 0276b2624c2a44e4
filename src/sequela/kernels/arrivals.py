"""All arrivals of a chain on the lattice of all its items, in one pass over the states."""

import numpy as np

from sequela.support.jit import kernel


@kernel
def sum_arrivals(flow, before, passing, high, low_effects, stop_rate, k, low):
    """Add up the probabilities of all steps R -> R + c before the observation.

    ``flow[c]`` receives the probability that c arrives, ``before[b, c]`` that it does so after b.
    ``high[H, c] * low_effects[L, c]`` is the rate of c in the state with high bits H and low bits
    L, 0 once c is present. ``passing[R]`` is 0 on entry and receives the probability of passing
    through R. All terms are positive: what underflows is nothing beside the rest.
    """
    mask = (1 << low) - 1
    steps = np.empty(k)
    passing[0] = 1.0
    for R in range(1 << k):
        rates = high[R >> low]
        effects = low_effects[R & mask]
        total = stop_rate
        for c in range(k):
            steps[c] = rates[c] * effects[c]
            total += steps[c]
        share = passing[R] / total
        for c in range(k):
            steps[c] *= share
            flow[c] += steps[c]
        for b in range(k):
            if R >> b & 1:
                row = before[b]
                for c in range(k):
                    row[c] += steps[c]
            else:
                passing[R | (1 << b)] += steps[b]
