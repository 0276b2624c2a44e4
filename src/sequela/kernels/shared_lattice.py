"""The likelihood of many sets at once, on the union of their lattices.

The probability of being observed in a state R is the same for all samples:

    time(R) = (sum over b in R of time(R - b) rate_b(R - b)) / (stop rate + all rates in R),
    P(R) = stop rate * time(R),

where time(R) is the expected time in R before the observation. So every subset of an observed set
is evaluated only once, although it may belong to the lattices of many sets. Sets of real data have
many subsets in common: often the union has at most a third as many states as all lattices together.

States are sorted by their bit masks. This is also the sequence of a depth-first walk through a tree
in which the parent of a state is the state without its lowest item. So it is enough to store a
stack, which contains the rates of the states on the path from the empty set to the current state.
From the stack, the rates of the next state are computed by one product per item.
"""

import math

import numpy as np

from sequela.support.jit import helper

# Rows are padded to a multiple of this length, so that loops over rows can be vectorised.
_LANES = 8


@helper
def padded_width(n):
    """Return the length of a row of n entries: a multiple of eight, for vectorised loops."""
    return (n + _LANES - 1) // _LANES * _LANES


@helper
def padded_rates(theta, width, depths):
    """Return two flat arrays: a stack of rates, and the factors exp(theta) of all items.

    Row 0 of the stack has the base rates. The factor of an item on its own rate is 0, because an
    item that is present does not arrive again.
    """
    n = theta.shape[0]
    rates = np.zeros(depths * width)
    factors = np.zeros(n * width)
    for i in range(n):
        rates[i] = math.exp(theta[i, i])
        for j in range(n):
            if i != j:
                factors[i * width + j] = math.exp(theta[i, j])
    return rates, factors


@helper
def multiply(rates, depth, factors, item, width):
    """Fill the row of rates at a depth: the rates of the row above it times the factors of an item.

    Arrays are flat, and rows are given by their offsets. Making views of rows would take more time
    than the arithmetic.
    """
    to = np.uintp(depth * width)
    above = np.uintp((depth - 1) * width)
    by = np.uintp(item * width)
    for c in range(np.uintp(width)):
        rates[to + c] = rates[above + c] * factors[by + c]


@helper
def row_sum(rates, depth, width):
    """Return the sum of a row, computed as eight partial sums (vectorised) in a fixed order."""
    at = np.uintp(depth * width)
    s0 = rates[at]
    s1 = rates[at + np.uintp(1)]
    s2 = rates[at + np.uintp(2)]
    s3 = rates[at + np.uintp(3)]
    s4 = rates[at + np.uintp(4)]
    s5 = rates[at + np.uintp(5)]
    s6 = rates[at + np.uintp(6)]
    s7 = rates[at + np.uintp(7)]
    for block in range(8, width, 8):
        x = at + np.uintp(block)
        s0 += rates[x]
        s1 += rates[x + np.uintp(1)]
        s2 += rates[x + np.uintp(2)]
        s3 += rates[x + np.uintp(3)]
        s4 += rates[x + np.uintp(4)]
        s5 += rates[x + np.uintp(5)]
        s6 += rates[x + np.uintp(6)]
        s7 += rates[x + np.uintp(7)]
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))


@helper
def forward(times, holding, rates, factors, lattice, stop_rate, width):
    """Fill the expected time in each state, and 1 / (the exit rate of the state).

    The first row of `rates` contains the base rates. The other rows are used as a stack.
    """
    states = times.shape[0]
    for s in range(states):
        times[s] = 0.0
    times[0] = 1.0
    for s in range(states):
        depth = lattice.size[s]
        if depth > 0:
            multiply(rates, depth, factors, lattice.item[s], width)
        inverse = 1.0 / (stop_rate + row_sum(rates, depth, width))
        time = times[s] * inverse
        holding[s] = inverse
        times[s] = time
        row = np.uintp(depth * width)
        for step in range(lattice.step_start[s], lattice.step_start[s + 1]):
            times[lattice.step_to[step]] += time * rates[row + np.uintp(lattice.step_item[step])]


@helper
def close_state(total, to, below, row, rates, flow, width):
    """When the walk leaves a state, add its sums to the row of its lowest item and to its parent.

    The sums of a state include those of all states below it in the tree. Four entries are read
    before any entry is written. Otherwise the compiler would use no vectors, because it cannot know
    that the rows do not overlap.
    """
    w = np.uintp(width)
    first = np.uintp(row)
    here = first + w
    t = np.uintp(to)
    for c in range(np.uintp(0), w, np.uintp(4)):
        a = here + c
        b = first + c
        d = t + c
        v0 = below[a] - flow * rates[b]
        v1 = below[a + np.uintp(1)] - flow * rates[b + np.uintp(1)]
        v2 = below[a + np.uintp(2)] - flow * rates[b + np.uintp(2)]
        v3 = below[a + np.uintp(3)] - flow * rates[b + np.uintp(3)]
        u0 = below[b] + v0
        u1 = below[b + np.uintp(1)] + v1
        u2 = below[b + np.uintp(2)] + v2
        u3 = below[b + np.uintp(3)] + v3
        x0 = total[d] + v0
        x1 = total[d + np.uintp(1)] + v1
        x2 = total[d + np.uintp(2)] + v2
        x3 = total[d + np.uintp(3)] + v3
        below[a] = 0.0
        below[a + np.uintp(1)] = 0.0
        below[a + np.uintp(2)] = 0.0
        below[a + np.uintp(3)] = 0.0
        below[b] = u0
        below[b + np.uintp(1)] = u1
        below[b + np.uintp(2)] = u2
        below[b + np.uintp(3)] = u3
        total[d] = x0
        total[d + np.uintp(1)] = x1
        total[d + np.uintp(2)] = x2
        total[d + np.uintp(3)] = x3


@helper
def add_groups(ends, times, lattice, stop_rate, first, last):
    """Return the log-likelihood of the groups from `first` to `last` - 1 (see `SharedLattice`).

    Its derivatives with respect to the times in all states are added to `ends`.
    """
    value = 0.0
    for g in range(first, last):
        total = 0.0
        for at in range(lattice.end_start[g], lattice.end_start[g + 1]):
            total += times[lattice.end[at]]
        value += lattice.group_count[g] * math.log(stop_rate * total)
        for at in range(lattice.end_start[g], lattice.end_start[g + 1]):
            ends[lattice.end[at]] += lattice.group_count[g] / total
    return value


@helper
def backward(collected, times, holding, rates, factors, lattice, ends, absence):
    """Fill ``collected[i, j]`` with the derivative of the log-likelihood for the effect of i on j.

    The last row contains the derivatives for the log base rates. A derivative is the expected
    number of arrivals of j while i is present, minus the expected integral of the rate of j over
    this time. For the derivative, `absence` must be 1. If it is 0, the integral is left out. `ends`
    has the derivative of the log-likelihood with respect to the time in each state.

    When the walk leaves a state, the sums of this state and of the states below it in the tree are
    added to the row of its lowest item, and to its parent.
    """
    states = times.shape[0]
    n = collected.shape[0] - 1
    width = collected.shape[1]
    total = np.zeros((n + 1) * width)
    ahead = np.empty(states)
    below = np.zeros((lattice.largest + 2) * width)
    chain = np.empty(lattice.largest + 1, np.int64)
    filled = lattice.size[states - 1]
    for s in range(states - 1, -1, -1):
        depth = lattice.size[s]
        if depth >= filled and s + 1 < states:
            # The stack does not contain the rates of this state and of some of its parents.
            t = s
            for d in range(depth, filled - 1, -1):
                chain[d] = lattice.item[t]
                t = lattice.parent[t]
            for d in range(filled, depth + 1):
                multiply(rates, d, factors, chain[d], width)
        filled = depth
        row = np.uintp(depth * width)
        # The sums of a state are stored one row below the row of its parent. The first row of
        # `below` is not used, because it would belong to the parent of the empty set.
        here = row + np.uintp(width)
        time = times[s]
        gain = ends[s]
        for step in range(lattice.step_start[s], lattice.step_start[s + 1]):
            item = np.uintp(lattice.step_item[step])
            part = rates[row + item] * ahead[lattice.step_to[step]]
            gain += part
            below[here + item] += part * time
        ahead[s] = gain * holding[s]
        flow = absence * time * ahead[s]
        to = (lattice.item[s] if depth > 0 else n) * width
        close_state(total, to, below, row, rates, flow, width)
    for i in range(n + 1):
        for j in range(width):
            collected[i, j] = total[i * width + j]


@helper
def shared_log_likelihood(theta, lattice, stop_rate, collected, want_gradient, absence):
    """Return the log-likelihood of all samples on the lattice; NaN or -inf if rates are too large.

    If `want_gradient` is true, `collected` is filled as described in `backward`.
    """
    width = collected.shape[1]
    rates, factors = padded_rates(theta, width, lattice.largest + 1)
    states = lattice.size.shape[0]
    times = np.empty(states)
    holding = np.empty(states)
    forward(times, holding, rates, factors, lattice, stop_rate, width)
    value = 0.0
    ends = np.zeros(states)
    for at in range(lattice.observed.shape[0]):
        s = lattice.observed[at]
        value += lattice.samples[s] * math.log(stop_rate * times[s])
        ends[s] = lattice.samples[s] / times[s]
    value += add_groups(ends, times, lattice, stop_rate, 0, lattice.group_count.shape[0])
    if want_gradient and value > -1e300:
        backward(collected, times, holding, rates, factors, lattice, ends, absence)
    return value


@helper
def shared_orders(before, theta, lattice, stop_rate):
    """Fill ``before[a, b]``: the expected number of samples on the lattice with a before b.

    Only samples in which both items are known to be present count. Return False if a probability
    underflows.
    """
    n = theta.shape[0]
    width = padded_width(n)
    collected = np.empty((n + 1, width))
    states = lattice.size.shape[0]
    times = np.empty(states)
    holding = np.empty(states)
    before[:] = 0.0
    # Here p = -1 stands for the complete samples, and every other p for one combination of missing
    # cells. All samples with the same combination have the same known cells.
    for p in range(-1, lattice.pattern_start.shape[0] - 1):
        rates, factors = padded_rates(theta, width, lattice.largest + 1)
        forward(times, holding, rates, factors, lattice, stop_rate, width)
        ends = np.zeros(states)
        value = 0.0
        if p < 0:
            for at in range(lattice.observed.shape[0]):
                s = lattice.observed[at]
                value += lattice.samples[s] * math.log(stop_rate * times[s])
                ends[s] = lattice.samples[s] / times[s]
        else:
            value = add_groups(
                ends, times, lattice, stop_rate,
                lattice.pattern_start[p], lattice.pattern_start[p + 1],
            )  # fmt: skip
        if not value > -1e300:
            return False
        backward(collected, times, holding, rates, factors, lattice, ends, 0.0)
        for a in range(n):
            for b in range(n):
                if a != b and (p < 0 or (lattice.is_known[p, a] and lattice.is_known[p, b])):
                    before[a, b] += collected[a, b]
    return True
