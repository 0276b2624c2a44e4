"""Missing cells and orders drawn together, for samples with too many items for a lattice.

A history is an order of a completed set. One item after the other is taken out of it and put back
at a place that is drawn given all others; a missing item may also stay out. Two passes along the
history, without and with the item, give the weights of all places: ``w(p)`` is the product over
the states before p as they are, the step of the item, and the states from p on with the item.
"""

import math

import numpy as np

from sequela.support.jit import helper, kernel


@helper
def place_weights(weights, rates, order, length, item, tables):
    """Fill the log-weights of all places of an item; return that of leaving it out.

    ``weights[p]``, p from 0 to `length`, is for the place after p others; `rates` is scratch.
    """
    W = tables.W[item]
    n = tables.rate.shape[0]
    for j in range(n):
        rates[j] = tables.rate[j]
    before = 0.0
    after = 0.0
    for q in range(length + 1):
        without = tables.stop_rate
        present = tables.stop_rate
        for j in range(n):
            without += rates[j]
            present += rates[j] * W[j]
        present -= rates[item]  # W of an item on itself is 1
        log_without = math.log(without)
        log_present = math.log(present)
        # Up to q without the item, then its step; what follows is added below.
        weights[q] = before - log_without + math.log(rates[item]) - after
        before -= log_without
        after -= log_present
        if q < length:
            c = order[q]
            before += math.log(rates[c])
            after += math.log(rates[c] * W[c])
            effects = tables.W[c]
            for j in range(n):
                rates[j] *= effects[j]
            rates[c] = 0.0
    for q in range(length + 1):
        weights[q] += after
    return before


@helper
def replace_item(order, length, item, may_be_absent, weights, rates, tables, rng):
    """Draw the place of an item anew; return the new length, or -1 out of range."""
    at = -1
    for q in range(length):
        if order[q] == item:
            at = q
    if at >= 0:
        for q in range(at, length - 1):
            order[q] = order[q + 1]
        length -= 1
    absent = place_weights(weights, rates, order, length, item, tables)
    largest = absent if may_be_absent else -np.inf
    for q in range(length + 1):
        largest = max(largest, weights[q])
    if not -np.inf < largest < np.inf:
        return -1
    total = math.exp(absent - largest) if may_be_absent else 0.0
    left = -total
    for q in range(length + 1):
        weights[q] = math.exp(weights[q] - largest)
        total += weights[q]
    left += rng.random() * total
    if left < 0.0:
        return length
    place = length
    for q in range(length + 1):
        left -= weights[q]
        if left < 0.0:
            place = q
            break
    for q in range(length, place, -1):
        order[q] = order[q - 1]
    order[place] = item
    return length + 1


@kernel
def draw_histories(kept, lengths, states, sizes, present, missing, tables, burn_in, rng):
    """Draw histories of one sample by several chains; return False out of range.

    ``states[chain, :sizes[chain]]`` is where a chain stands; ``kept[chain, draw]`` of the length
    ``lengths[chain, draw]`` are its draws, one per sweep over all items.
    """
    n = tables.rate.shape[0]
    rates = np.empty(n)
    weights = np.empty(n + 1)
    count = present.shape[0] + missing.shape[0]
    items = np.empty(count, np.int64)
    for chain in range(states.shape[0]):
        order = states[chain]
        length = sizes[chain]
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
                length = replace_item(order, length, item, optional, weights, rates, tables, rng)
                if length < 0:
                    return False
            if sweep >= burn_in:
                lengths[chain, sweep - burn_in] = length
                for q in range(length):
                    kept[chain, sweep - burn_in, q] = order[q]
        sizes[chain] = length
    return True


@kernel
def weigh_histories(gradient, log_p, shares, orders, lengths, tables):
    """Fill the log-probabilities of histories; add to `gradient` theirs, each times its share.

    Without shares (an empty array) no gradient is added.
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
        # The sum over the states from q on is what the item that came at q - 1 takes part in.
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
