"""Draw missing cells from their posterior, a few items at a time.

A few missing items are drawn together, because chains then mix faster than with one item at a time.
In this step, the values of all other missing cells stay the same. The probabilities of all states
of these items are proportional to forward weights of one lattice (see `lattice`). This lattice
contains the items that are present, and the items that are drawn.
"""

import numpy as np

from sequela.kernels.arguments import ColumnRoom
from sequela.kernels.columns import choose_columns
from sequela.support.jit import helper, kernel

# Number of missing items that are drawn together.
TOGETHER = 3


@helper
def forward_weights(F, exits, rates, items, k, tables, room):
    """Fill the forward weights F of all subsets of the first k `items`.

    `exits` and `rates` are scratch.
    """
    W = tables.W
    states = 1 << k
    m, rest = choose_columns(items[:k], tables, room)
    columns = room.columns
    for R in range(states):
        exits[R] = tables.stop_rate + rest
        F[R] = 0.0
    for c in range(m):
        # Row c of `rates` has the rates of item c of the set, which the steps below need. The rates
        # of all other columns are only added to the exit rates. So row k is used again for each of
        # them.
        row = rates[min(c, k)]
        j = columns[c]
        row[0] = tables.rate[j]
        for b in range(k):
            half = 1 << b
            factor = 0.0 if b == c else W[columns[b], j]
            for R in range(half):
                row[half + R] = row[R] * factor
        for R in range(states):
            exits[R] += row[R]
    F[0] = 1.0
    for R in range(states):
        F[R] /= exits[R]
        here = F[R]
        for c in range(k):
            if not R >> c & 1:
                F[R | (1 << c)] += here * rates[c, R]


@helper
def draw_together(state, chosen, scratch, sample, tables, room, rng):
    """Draw new values of some missing items; return False if rates are out of range.

    `chosen` are the positions of these items in the array of missing items, and `state` receives
    their new values.
    """
    F, exits, rates, items = scratch
    present, missing = sample
    fixed = present.shape[0]
    for b in range(fixed):
        items[b] = present[b]
    for at in range(missing.shape[0]):
        taken = False
        for place in chosen:
            taken = taken or place == at
        if state[at] and not taken:
            items[fixed] = missing[at]
            fixed += 1
    count = chosen.shape[0]
    for b in range(count):
        items[fixed + b] = missing[chosen[b]]
    k = fixed + count
    forward_weights(F, exits, rates, items, k, tables, room)
    need = (1 << fixed) - 1
    total = 0.0
    for v in range(1 << count):
        total += F[need | v << fixed]
    if not 0.0 < total < np.inf:
        return False
    left = rng.random() * total
    v = 0
    while v < (1 << count) - 1:
        left -= F[need | v << fixed]
        if left < 0.0:
            break
        v += 1
    for b in range(count):
        state[chosen[b]] = v >> b & 1
    return True


@kernel
def draw_completions(kept, states, present, missing, tables, burn_in, rng):
    """Draw missing cells of one sample with several chains; return False if rates are out of range.

    ``states[chain]`` is the state of a chain, which is updated. It has one entry per missing item:
    1 if the item is present, and 0 if it is absent. Each chain first discards `burn_in` sweeps over
    all missing items. ``kept[chain, draw]`` then receives one draw per sweep.
    """
    n = tables.rate.shape[0]
    count = missing.shape[0]
    size = present.shape[0] + count
    room = ColumnRoom(np.empty(n, np.int64), np.empty(n), np.empty(n), np.zeros(n, np.int64))
    F = np.empty(1 << size)
    exits = np.empty(1 << size)
    rates = np.empty((size + 1, 1 << size))
    items = np.empty(size, np.int64)
    scratch = (F, exits, rates, items)
    order = np.arange(count)
    for chain in range(states.shape[0]):
        state = states[chain]
        for sweep in range(burn_in + kept.shape[1]):
            for at in range(count - 1, 0, -1):
                other = int(rng.random() * (at + 1))
                order[at], order[other] = order[other], order[at]
            for start in range(0, count, TOGETHER):
                chosen = order[start : start + TOGETHER]
                if not draw_together(state, chosen, scratch, (present, missing), tables, room, rng):
                    return False
            if sweep >= burn_in:
                kept[chain, sweep - burn_in] = state
    return True
