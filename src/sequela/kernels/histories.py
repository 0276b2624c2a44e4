"""Draw missing cells and orders together, for samples with too many items for a lattice.

A history is an order of a completed set. One item after the other is removed from the order, and
inserted again at a place that is drawn given the places of all other items. A missing item may also
stay absent.

After q steps, ``e(q)`` is the exit rate of the state without the item, ``e'(q)`` that of the state
with the item, and ``r(q)`` the rate of the item. The weight of the place p relative to absence is
``r(p) / e'(p)`` times the product over q > p of ``W[item, c(q)] e(q) / e'(q)``, where c(q) is the
item of step q. The rates of all states are stored, so an item that stays absent needs few
operations. Most missing items stay absent.
"""

import math

import numpy as np

from sequela.kernels.gemm import lane_sum
from sequela.support.jit import helper, kernel


@helper
def extend(rates, exits, order, length, first, tables):
    """Fill the rates and total exit rates of the states of a history, from state `first` on.

    ``rates[q, j]`` is the rate of item j after q steps; it is 0 if j is present.
    """
    n = tables.rate.shape[0]
    if first == 0:
        for j in range(n):
            rates[0, j] = tables.rate[j]
        exits[0] = tables.stop_rate + lane_sum(rates[0], n)
        first = 1
    for q in range(first, length + 1):
        c = order[q - 1]
        effects = tables.W[c]
        before = rates[q - 1]
        here = rates[q]
        for j in range(n):
            here[j] = before[j] * effects[j]
        here[c] = 0.0
        exits[q] = tables.stop_rate + lane_sum(here, n)


@helper
def place_weights(weights, rates, exits, order, length, item, tables):
    """Fill the weights of all places of an absent item, relative to the weight of leaving it out.

    ``weights[p]``, p from 0 to `length`, is the weight of the place after p other items. Return the
    sum of the weights, or NaN if rounding errors are too large.
    """
    W = tables.W[item]
    begin, end = tables.row_start[item], tables.row_start[item + 1]
    tail = 1.0
    total = 0.0
    for q in range(length, -1, -1):
        here = rates[q]
        exit_with = exits[q] - here[item]
        for at in range(begin, end):
            j = tables.row_item[at]
            exit_with += here[j] * (W[j] - 1.0)
        if exit_with < 1e-6 * exits[q]:  # too many digits are lost by cancellation
            return np.nan
        tail /= exit_with
        weights[q] = here[item] * tail
        total += weights[q]
        if q > 0:
            tail *= W[order[q - 1]] * exits[q]
    return total


@helper
def log_place_weights(weights, rates, exits, order, length, item, tables):
    """Fill the weights of all places of an absent item, relative to the largest weight.

    Unlike in `place_weights`, products may leave the range of a double. Return the sum of the
    weights, and the weight of leaving the item out, which is divided by the same largest weight.
    """
    W = tables.W[item]
    n = tables.rate.shape[0]
    tail = 0.0
    largest = 0.0
    for q in range(length, -1, -1):
        exit_with = tables.stop_rate
        for j in range(n):
            if j != item:
                exit_with += rates[q, j] * W[j]
        weights[q] = math.log(rates[q, item]) - math.log(exit_with) + tail
        largest = max(largest, weights[q])
        if q > 0:
            tail += math.log(W[order[q - 1]]) + math.log(exits[q]) - math.log(exit_with)
    total = 0.0
    for q in range(length + 1):
        weights[q] = math.exp(weights[q] - largest)
        total += weights[q]
    return total, math.exp(-largest)


@helper
def insert_item(order, length, item, place, rates, exits, tables):
    """Insert an item so that `place` items come before it; return the new length."""
    for q in range(length, place, -1):
        order[q] = order[q - 1]
    order[place] = item
    extend(rates, exits, order, length + 1, place + 1, tables)
    return length + 1


@helper
def remove_item(order, length, item, rates, exits, tables):
    """Remove an item; return the new length, and the place of the item (-1 if it was absent)."""
    at = -1
    for q in range(length):
        if order[q] == item:
            at = q
    if at >= 0:
        for q in range(at, length - 1):
            order[q] = order[q + 1]
        length -= 1
        extend(rates, exits, order, length, at + 1, tables)
    return length, at


@helper
def replace_item(order, length, item, may_be_absent, room, tables, rng):
    """Draw a new place of an item; return the new length, or -1 if rates are out of range."""
    weights, rates, exits = room
    length, _ = remove_item(order, length, item, rates, exits, tables)
    absent = 1.0
    total = place_weights(weights, rates, exits, order, length, item, tables)
    if not 1e-200 < total < 1e200:
        total, absent = log_place_weights(weights, rates, exits, order, length, item, tables)
        if not 0.0 < total < np.inf:
            return -1
    left = rng.random() * (total + absent) - absent if may_be_absent else rng.random() * total
    if left < 0.0:
        return length
    place = length
    for q in range(length + 1):
        left -= weights[q]
        if left < 0.0:
            place = q
            break
    return insert_item(order, length, item, place, rates, exits, tables)


@kernel
def draw_histories(kept, lengths, states, sizes, present, missing, tables, burn_in, rng):
    """Draw histories of one sample with several chains; return False if rates are out of range.

    ``states[chain, :sizes[chain]]`` is the state of a chain and is updated. Each chain first
    discards `burn_in` sweeps over all items. ``kept[chain, draw]`` then receives one draw per
    sweep, which has the length ``lengths[chain, draw]``.
    """
    n = tables.rate.shape[0]
    count = present.shape[0] + missing.shape[0]
    room = (np.empty(count + 1), np.empty((count + 1, n)), np.empty(count + 1))
    items = np.empty(count, np.int64)
    for chain in range(states.shape[0]):
        order = states[chain]
        length = sizes[chain]
        extend(room[1], room[2], order, length, 0, tables)
        for sweep in range(burn_in + kept.shape[1]):
            for at in range(count):
                fixed = at < present.shape[0]
                items[at] = present[at] if fixed else -1 - missing[at - present.shape[0]]
            for at in range(count - 1, 0, -1):
                other = int(rng.random() * (at + 1))
                items[at], items[other] = items[other], items[at]
            for at in range(count):
                optional = items[at] < 0
                item = -1 - items[at] if optional else items[at]
                length = replace_item(order, length, item, optional, room, tables, rng)
                if length < 0:
                    return False
            if sweep >= burn_in:
                lengths[chain, sweep - burn_in] = length
                for q in range(length):
                    kept[chain, sweep - burn_in, q] = order[q]
        sizes[chain] = length
    return True


@kernel
def slopes_of_histories(slopes, effects, orders, lengths, tables):
    """Fill the derivative of log p of each history if theta moves in the direction `effects`.

    It is the sum over all entries of the gradient times the entries of `effects`. The diagonal of
    `effects` must be 0.
    """
    n = tables.rate.shape[0]
    rates = np.empty(n)
    sums = np.empty(n)
    for h in range(orders.shape[0]):
        total = 0.0
        for j in range(n):
            rates[j] = tables.rate[j]
            sums[j] = 0.0
        for q in range(lengths[h] + 1):
            exit_rate = tables.stop_rate
            slope = 0.0
            for j in range(n):
                exit_rate += rates[j]
                slope += rates[j] * sums[j]
            total -= slope / exit_rate
            if q < lengths[h]:
                c = orders[h, q]
                total += sums[c]
                for j in range(n):
                    rates[j] *= tables.W[c, j]
                    sums[j] += effects[c, j]
                rates[c] = 0.0
        slopes[h] = total


@kernel
def weigh_histories(gradient, log_p, shares, orders, lengths, tables):
    """Fill the log-probabilities of histories, and add their gradients to `gradient`.

    Each gradient is multiplied by the entry of `shares` for its history. If `shares` is empty, no
    gradient is added.
    """
    n = tables.rate.shape[0]
    most = orders.shape[1]
    rates = np.empty((most + 1, n))
    exits = np.empty(most + 1)
    running = np.empty(n)
    for h in range(orders.shape[0]):
        order = orders[h]
        length = lengths[h]
        total = math.log(tables.stop_rate)
        for j in range(n):
            rates[0, j] = tables.rate[j]
        for q in range(length + 1):
            exits[q] = tables.stop_rate
            for j in range(n):
                exits[q] += rates[q, j]
            total -= math.log(exits[q])
            if q < length:
                c = order[q]
                total += math.log(rates[q, c])
                effects = tables.W[c]
                for j in range(n):
                    rates[q + 1, j] = rates[q, j] * effects[j]
                rates[q + 1, c] = 0.0
        log_p[h] = total
        if shares.shape[0] == 0:
            continue
        # Go from the last state to the first, and let `running` be the sum over the states so far.
        # The item order[q - 1] is present in state q and in all later states, so this sum is the
        # gradient for the effects of this item.
        for j in range(n):
            running[j] = 0.0
        for q in range(length, -1, -1):
            scale = shares[h] / exits[q]
            for j in range(n):
                running[j] -= scale * rates[q, j]
            if q < length:
                running[order[q]] += shares[h]
            if q > 0:
                b = order[q - 1]
                row = gradient[b]
                own = row[b]
                for j in range(n):
                    row[j] += running[j]
                row[b] = own
        for j in range(n):
            gradient[j, j] += running[j]
