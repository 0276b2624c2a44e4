"""Latent histories of partly known samples in the posterior of theta.

A sample with missing cells or with statements about its order has a history as a latent variable:
an order of its present items and of some of its missing items. Given the history, the sample
contributes the probability of this sequence (Proposition 2). In each sweep, every item is removed
from the history and inserted again (`history_places`), so that every possible history can be
reached. Given the history, the probability of the statements does not depend on theta. So the
statements are not part of the likelihood of theta. They are used when histories are drawn, when
two items of a history are exchanged, and when orders are counted.
"""

import math

import numpy as np

from sequela.kernels.histories import extend, insert_item, remove_item
from sequela.kernels.history_places import redraw_item, weigh_places
from sequela.kernels.latent_sequences import history_length
from sequela.kernels.prior_transform import fill_scores
from sequela.kernels.sequence import MARGINAL, sequence_gradient
from sequela.support.jit import helper, kernel


@helper
def statements_of(histories, s):
    """Return the statements about sample `s`, as described in `history_places.weigh_statements`."""
    first = histories.statement_start[s]
    last = histories.statement_start[s + 1]
    return histories.before[first:last], histories.after[first:last], histories.right[first:last]


@helper
def redraw_histories(tables, target, orders, rng):
    """Draw new histories given theta: one sweep over all items of each partly known sample.

    An item stays where it was if rates leave the range of a double.
    """
    histories = target.histories
    n = tables.rate.shape[0]
    room = (np.empty(n + 1), np.empty((n + 1, n)), np.empty(n + 1))
    order = np.empty(n, np.int64)
    items = np.empty(n, np.int64)
    for s in range(histories.start.shape[0] - 1):
        first = histories.start[s]
        count = histories.start[s + 1] - first
        length = history_length(orders, first, first + count)
        for q in range(length):
            order[q] = orders[first + q]
        extend(room[1], room[2], order, length, 0, tables)
        statements = statements_of(histories, s)
        # The indices of the items of this sample, randomly permuted. The indices below
        # ``histories.present[s]`` are those of its present items.
        for at in range(count):
            items[at] = at
        for at in range(count - 1, 0, -1):
            other = int(rng.random() * (at + 1))
            items[at], items[other] = items[other], items[at]
        for at in range(count):
            item = target.large_items[first + items[at]]
            optional = items[at] >= histories.present[s]
            length = redraw_item(order, length, item, optional, room, tables, statements, rng)
            if length < 0:
                length = -1 - length
        for q in range(count):
            orders[first + q] = order[q] if q < length else -1


@helper
def exchange_in_histories(orders, target, i, j):
    """Exchange the places of two items in the histories that have both.

    A history that would then contradict a certain statement is not changed. Return the log of a
    ratio: the probability of all uncertain statements after the exchange, divided by their
    probability before the exchange. A second call with the same items restores the histories.
    """
    histories = target.histories
    gain = 0.0
    for s in range(histories.start.shape[0] - 1):
        one = -1
        two = -1
        for at in range(histories.start[s], histories.start[s + 1]):
            if orders[at] == i:
                one = at
            elif orders[at] == j:
                two = at
        if one < 0 or two < 0:
            continue
        orders[one] = j
        orders[two] = i
        change = 0.0
        for k in range(histories.statement_start[s], histories.statement_start[s + 1]):
            before = histories.before[k]
            after = histories.after[k]
            if before not in (i, j) and after not in (i, j):
                continue
            place = 0
            other = 0
            for at in range(histories.start[s], histories.start[s + 1]):
                if orders[at] == before:
                    place = at
                elif orders[at] == after:
                    other = at
            holds = place < other
            # `place` and `other` are now the places after the exchange. Compute the places before
            # it, when i and j had each other's places.
            place = two if place == one else (one if place == two else place)
            other = two if other == one else (one if other == two else other)
            if holds and not place < other:
                change += math.log(histories.right[k]) - math.log(1.0 - histories.right[k])
            elif place < other and not holds:
                change += math.log(1.0 - histories.right[k]) - math.log(histories.right[k])
        if change > -np.inf:
            gain += change
        else:
            orders[one] = i
            orders[two] = j
    return gain


@helper
def count_histories(before, tables, target, orders):
    """Add to ``before[a, b]`` the expected number of partly known samples with a before b.

    Only samples that are known to have both items count. For each of them, P(a before b) is
    computed twice. First, a may have any place, and the order of all other items of the history is
    fixed. Second, b may have any place, and the order of all other items is fixed. The mean of
    these two probabilities is added. It has a smaller sampling error than the order in the history
    itself, which is 0 or 1.
    """
    histories = target.histories
    n = tables.rate.shape[0]
    room = (np.empty(n + 1), np.empty((n + 1, n)), np.empty(n + 1))
    order = np.empty(n, np.int64)
    is_known = np.zeros(n, np.bool_)
    for s in range(histories.start.shape[0] - 1):
        first = histories.start[s]
        known = target.large_items[first : first + histories.present[s]]
        if known.shape[0] < 2:
            continue
        for item in known:
            is_known[item] = True
        length = history_length(orders, first, histories.start[s + 1])
        for q in range(length):
            order[q] = orders[first + q]
        statements = statements_of(histories, s)
        extend(room[1], room[2], order, length, 0, tables)
        for item in known:
            length, at = remove_item(order, length, item, room[1], room[2], tables)
            total, _ = weigh_places(order, length, item, room, tables, statements)
            in_range = 0.0 < total < np.inf
            share = 0.0
            for q in range(length):
                if in_range:
                    share = min(share + room[0][q] / total, 1.0)
                else:
                    share = 1.0 if at <= q else 0.0
                if is_known[order[q]]:
                    before[item, order[q]] += 0.5 * share
                    before[order[q], item] += 0.5 * (1.0 - share)
            length = insert_item(order, length, item, at, room[1], room[2], tables)
        for item in known:
            is_known[item] = False


@kernel
def history_scores(scores, theta, slope, target, orders, chosen):
    """Fill one row for each chosen partly known sample: the gradient of log p of its history.

    The coordinates are the same as in `dense_likelihood.set_scores`.
    """
    n = theta.shape[0]
    gradient = np.empty((n, n))
    wanted = n > 0
    start = target.histories.start
    for row in range(chosen.shape[0]):
        first = start[chosen[row]]
        order = orders[first : first + history_length(orders, first, start[chosen[row] + 1])]
        gradient[:] = 0.0
        sequence_gradient(gradient, theta, order, MARGINAL, np.nan, target.stop_rate, wanted, 1.0)
        fill_scores(scores[row], gradient, theta, slope, 1.0, target.prior.log_spread)
