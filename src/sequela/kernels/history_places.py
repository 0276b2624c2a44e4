"""Draw the place of an item in the history of a sample, given statements about the order.

The weight of each place is computed as in `histories`. It is then multiplied by the probability of
the statements if the item is at this place and all other items stay where they are. If rates are
out of range, the history does not change.
"""

import numpy as np

from sequela.kernels.histories import (
    insert_item,
    log_place_weights,
    place_weights,
    remove_item,
)
from sequela.support.jit import helper


@helper
def weigh_statements(weights, order, length, item, statements):
    """Multiply the weights of the places of an item by the probabilities of its statements.

    `statements` are three arrays, with one entry per statement: the item that arrived first
    according to the statement, the other item, and the probability that the statement is right.
    Return the sum of the weights.
    """
    before, after, right = statements
    for k in range(before.shape[0]):
        if item not in (before[k], after[k]):
            continue
        is_first = item == before[k]
        other = after[k] if is_first else before[k]
        at = 0
        while order[at] != other:
            at += 1
        # At the places 0 to `at`, the item comes before the other item of the statement.
        for p in range(length + 1):
            weights[p] *= right[k] if is_first == (p <= at) else 1.0 - right[k]
    total = 0.0
    for p in range(length + 1):
        total += weights[p]
    return total


@helper
def weigh_places(order, length, item, room, tables, statements):
    """Fill the weights of all places of an absent item, given the statements about the order.

    Return the sum of the weights, and the weight of leaving the item out. If rates are out of
    range, the sum is 0, infinite or NaN.
    """
    weights, rates, exits = room
    known = statements[0].shape[0] > 0
    absent = 1.0
    total = place_weights(weights, rates, exits, order, length, item, tables)
    # A NaN means that not all weights were filled. Then they must be computed from logarithms.
    if known and total == total:
        total = weigh_statements(weights, order, length, item, statements)
    if not 1e-200 < total < 1e200:
        total, absent = log_place_weights(weights, rates, exits, order, length, item, tables)
        if known:
            total = weigh_statements(weights, order, length, item, statements)
    return total, absent


@helper
def redraw_item(order, length, item, may_be_absent, room, tables, statements, rng):
    """Draw a new place of an item; return the new length.

    If rates are out of range, the item stays where it was, and the result is -1 - length.
    `statements` has the form that `weigh_statements` describes.
    """
    weights, rates, exits = room
    length, at = remove_item(order, length, item, rates, exits, tables)
    total, absent = weigh_places(order, length, item, room, tables, statements)
    if not 0.0 < total < np.inf:
        if at >= 0:
            length = insert_item(order, length, item, at, rates, exits, tables)
        return -1 - length
    left = rng.random() * (total + absent) - absent if may_be_absent else rng.random() * total
    if left < 0.0:
        return length
    place = -1
    for q in range(length + 1):
        if weights[q] > 0.0:
            place = q
        left -= weights[q]
        if left < 0.0:
            break
    return insert_item(order, length, item, place, rates, exits, tables)
