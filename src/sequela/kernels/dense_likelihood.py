"""The likelihood of all samples at a theta without zeros, with latent orders for large samples.

Draws of a posterior have no zero entries, so every item is a column of every set. Sets of moderate
size are summed over the union of their lattices (`shared_lattice`). A larger sample has an order of
its items as a latent variable, and a partly known sample has a latent history
(`latent_sequences`).
"""

import math

import numpy as np

from sequela.kernels.arguments import BlockSums, SetColumns, ThetaTables
from sequela.kernels.columns import SHORTCUT_LIMIT
from sequela.kernels.latent_histories import redraw_histories
from sequela.kernels.latent_sequences import latent_log_likelihood
from sequela.kernels.lattice import evaluate_block
from sequela.kernels.limits import LARGEST_LOG_RATE
from sequela.kernels.prior_transform import fill_scores
from sequela.kernels.relocation import relocate
from sequela.kernels.shared_lattice import padded_width, shared_log_likelihood
from sequela.support.jit import helper, inlined, kernel

# Number of items that are relocated together.
_BLOCK = 4


@helper
def dense_tables(theta, stop_rate):
    """Return the `ThetaTables` of a theta in which all effects are treated as non-zero."""
    n = theta.shape[0]
    W = np.exp(theta)
    rate = np.empty(n)
    shared = np.empty(n, np.bool_)
    constant = 0.0
    count = 0
    for j in range(n):
        rate[j] = W[j, j]
        W[j, j] = 1.0
        shared[j] = rate[j] <= SHORTCUT_LIMIT * stop_rate
        if shared[j]:
            constant += rate[j]
        else:
            count += 1
    fast = np.empty(count, np.int64)
    row_start = np.empty(n + 1, np.int64)
    row_item = np.empty(n * (n - 1), np.int64)
    place = 0
    count = 0
    for i in range(n):
        row_start[i] = place
        for j in range(n):
            if i != j:
                row_item[place] = j
                place += 1
        if not shared[i]:
            fast[count] = i
            count += 1
    row_start[n] = place
    return ThetaTables(theta, W, rate, row_start, row_item, shared, constant, fast, stop_rate)


@inlined
def lattice_log_likelihood(theta, target, chosen, gradient, want_gradient):
    """Return the log-likelihood of all samples with the sets `chosen`; -inf if rates are too large.

    If `want_gradient`, `gradient` receives the gradient of this log-likelihood.
    """
    n = theta.shape[0]
    sets = target.sets
    tables = dense_tables(theta, target.stop_rate)
    log_p = np.zeros(sets.weights.shape[0])
    in_range = np.ones(sets.weights.shape[0], np.bool_)
    present = np.zeros(n + 1)
    if want_gradient:
        gradient[:] = 0.0
    sums = BlockSums(log_p, in_range, gradient, present)
    evaluate_block(tables, sets, chosen, sums, want_gradient)
    value = 0.0
    for s in chosen:
        if not in_range[s]:
            return -np.inf
        value += sets.weights[s] * log_p[s]
    if want_gradient:
        # Add -rate * time for shared items that are not columns of a set, for all sets together.
        for j in range(n):
            if tables.shared[j]:
                for i in range(n):
                    gradient[i, j] -= present[n if i == j else i] * tables.rate[j]
        gradient *= target.total
    return value * target.total


@inlined
def evaluate(theta, target, orders, values, gradient, want_gradient):
    """Fill the log-likelihoods of lattice sets and large samples, and the gradient of their sum.

    In the gradient, but not in `values`, the log-likelihood of the lattice sets is multiplied by
    the power of the target. Return False if theta is out of range. Callers pass `want_gradient` as
    a variable, because Numba would compile another copy of all called functions for each literal.
    """
    n = theta.shape[0]
    collected = np.empty((n + 1, padded_width(n)))
    value = shared_log_likelihood(
        theta, target.shared, target.stop_rate, collected, want_gradient, 1.0
    )
    if not value > -1e300:
        return False
    if want_gradient:
        for i in range(n):
            for j in range(n):
                gradient[i, j] = target.power * collected[n if i == j else i, j]
    values[0] = value
    values[1] = latent_log_likelihood(theta, target, orders, gradient, want_gradient)
    return values[1] > -1e300


@helper
def dense_columns(theta, items, stop_rate):
    """Return the `SetColumns` of a sample: its own items first, then all others."""
    n = theta.shape[0]
    k = items.shape[0]
    column = np.empty(n, np.int64)
    inside = np.zeros(n, np.bool_)
    for b in range(k):
        column[b] = items[b]
        inside[items[b]] = True
    place = k
    for j in range(n):
        if not inside[j]:
            column[place] = j
            place += 1
    effects = np.empty((k, n))
    rate = np.empty(n)
    for c in range(n):
        rate[c] = math.exp(theta[column[c], column[c]])
        for b in range(k):
            effects[b, c] = 0.0 if b == c else theta[items[b], column[c]]
    return SetColumns(np.exp(effects), effects, rate, 0.0, stop_rate)


@helper
def largest_block(columns):
    """Return how many items can be relocated together without leaving the range of a double."""
    k, n = columns.effects.shape
    highest = 0.0
    lowest = 0.0
    for c in range(n):
        above = math.log(columns.rate[c])
        below = above
        for b in range(k):
            above += max(columns.effects[b, c], 0.0)
            below += min(columns.effects[b, c], 0.0)
        highest = max(highest, above)
        lowest = min(lowest, below)
    return int(LARGEST_LOG_RATE / max(highest - lowest, 1.0))


@helper
def relocate_orders(theta, target, orders, rng):
    """Draw new latent orders given theta: one sweep of block relocation for each large sample.

    Also draw new histories of partly known samples.

    A large sample whose rates leave the range of a double keeps its order in this sweep.
    """
    if target.histories.start.shape[0] > 1:
        redraw_histories(dense_tables(theta, target.stop_rate), target, orders, rng)
    nothing = np.empty((0, 1), np.int64)
    for s in range(target.large_start.shape[0] - 1):
        first = target.large_start[s]
        last = target.large_start[s + 1]
        items = target.large_items[first:last]
        columns = dense_columns(theta, items, target.stop_rate)
        block = min(_BLOCK, largest_block(columns))
        if block < 2:
            continue
        place = np.empty(theta.shape[0], np.int64)
        for b in range(last - first):
            place[items[b]] = b
        order = np.empty(last - first, np.int64)
        for b in range(last - first):
            order[b] = place[orders[first + b]]
        unused = np.zeros((last - first + 1, theta.shape[0] + 1))
        relocate(unused, nothing, order, columns, block, 0, 1, 1 << 60, rng)
        for b in range(last - first):
            orders[first + b] = items[order[b]]


@kernel
def set_scores(scores, theta, slope, target, chosen):
    """Fill one row for each chosen set: the gradient of log p times the square root of its count.

    The gradient is in the coordinates z, and the last column is the derivative by the coordinate of
    the scale. The count is the number of samples with this set. The sum of the outer products of
    the rows is the empirical Fisher information.
    """
    n = theta.shape[0]
    gradient = np.empty((n, n))
    wanted = n > 0
    for row in range(chosen.shape[0]):
        one = chosen[row : row + 1]
        value = lattice_log_likelihood(theta, target, one, gradient, wanted)
        if value > -1e300:
            count = target.sets.weights[chosen[row]] * target.total
            factor = 1.0 / math.sqrt(count)
            fill_scores(scores[row], gradient, theta, slope, factor, target.prior.log_spread)
