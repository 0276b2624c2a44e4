"""The items whose rates change while the items of one set arrive, and tables of these rates.

For a set S, only two kinds of items have a rate that depends on the state R (a subset of S). The
first kind are the items of S, whose rate is 0 once they are present. The second kind are the
*active* items outside S: at least one item of S has a non-zero effect on them. These items are the
columns of the tables. All other items contribute one constant to the exit rate, and their gradients
are multiples of times spent (see `docs/maths.md`). So the cost grows with the number of
interactions, not with n.
"""

import math

from sequela.kernels.limits import PRODUCT_LOG_RANGE
from sequela.support.jit import helper, kernel

# The base rates of most items are added up once for all sets, and each set subtracts the base rates
# of its columns from this sum. An item with a base rate above this limit (in units of the
# observation rate) is not part of the sum, because subtracting its rate would lose digits. For
# smaller rates the error is below 1e-13, because mean times are at most (k + 1) / observation rate.
SHORTCUT_LIMIT = 16.0

# If less than this share of the sum remains after the subtraction, too many digits are lost. Then
# the remaining rates are added up one by one.
_CANCELLED = 1e-3


@kernel
def choose_columns(items, tables, room):
    """List the columns of the set `items`; return their number and the sum of all other base rates.

    `tables` are `ThetaTables`. In the `ColumnRoom`, ``columns`` receives first the items of S (bit
    b of a state is column b), and then the active items. ``above`` and ``below`` receive the sums
    of the positive and of the negative effects of S on each column. Added to the log base rate of
    the column, these sums are bounds of its log-rate. ``mark`` is scratch of length n. It must be
    zero when the function is called, and it is zero when the function returns.
    """
    theta = tables.theta
    row_start = tables.row_start
    row_item = tables.row_item
    rate = tables.rate
    shared = tables.shared
    constant = tables.constant
    fast = tables.fast
    columns = room.columns
    above = room.above
    below = room.below
    mark = room.mark
    k = items.shape[0]
    m = k
    for b in range(k):
        columns[b] = items[b]
        mark[items[b]] = b + 1
        above[b] = 0.0
        below[b] = 0.0
    for b in range(k):
        i = items[b]
        for at in range(row_start[i], row_start[i + 1]):
            j = row_item[at]
            where = mark[j] - 1
            if where < 0:
                where = m
                columns[m] = j
                mark[j] = m + 1
                above[m] = 0.0
                below[m] = 0.0
                m += 1
            effect = theta[i, j]
            if effect > 0.0:
                above[where] += effect
            else:
                below[where] += effect
    rest = constant
    for c in range(m):
        if shared[columns[c]]:
            rest -= rate[columns[c]]
    for at in range(fast.shape[0]):
        if mark[fast[at]] == 0:
            rest += rate[fast[at]]
    if rest < _CANCELLED * constant:
        rest = 0.0
        for j in range(rate.shape[0]):
            if mark[j] == 0:
                rest += rate[j]
    for c in range(m):
        mark[columns[c]] = 0
    return m, rest


@helper
def fits_double(k, m, tables, room, rest):
    """Return whether the weights of all orders of the set stay in the range of a double.

    The weight of an order is a product of rates, divided by a product of exit rates. The smallest
    rates and the largest exit rate give a lower bound of this weight.
    """
    theta = tables.theta
    columns = room.columns
    above = room.above
    below = room.below
    largest = tables.stop_rate + rest
    highest = 0.0
    for c in range(m):
        high = theta[columns[c], columns[c]] + above[c]
        highest = max(highest, high)
        largest += math.exp(min(high, PRODUCT_LOG_RANGE))
    if highest > PRODUCT_LOG_RANGE / 2:
        return False
    weight = -(k + 1) * math.log(max(largest, 1.0))
    for c in range(k):
        weight += min(theta[columns[c], columns[c]] + below[c], 0.0)
    return weight > -PRODUCT_LOG_RANGE


@helper
def all_fit_double(largest_set, tables, room):
    """Return whether `fits_double` holds for every set of at most `largest_set` items.

    The test uses all effects together, as if every item were in the set. For usual parameters it
    succeeds, and then single sets need not be tested.
    """
    theta = tables.theta
    row_start = tables.row_start
    row_item = tables.row_item
    above = room.above
    below = room.below
    n = theta.shape[0]
    for j in range(n):
        above[j] = theta[j, j]
        below[j] = theta[j, j]
    for i in range(n):
        for at in range(row_start[i], row_start[i + 1]):
            j = row_item[at]
            effect = theta[i, j]
            if effect > 0.0:
                above[j] += effect
            else:
                below[j] += effect
    largest = tables.stop_rate
    highest = 0.0
    lowest = 0.0
    for j in range(n):
        highest = max(highest, above[j])
        lowest = min(lowest, below[j])
        largest += math.exp(min(above[j], PRODUCT_LOG_RANGE))
    if not highest <= PRODUCT_LOG_RANGE / 2:
        return False
    weight = largest_set * lowest - (largest_set + 1) * math.log(max(largest, 1.0))
    return weight > -PRODUCT_LOG_RANGE


@helper
def low_table(l, W, columns, m, k, bits):
    """Fill ``l[c, L]``: the factor by which the items of L change the rate of column c.

    L is a subset of the first `bits` items. The table is filled by doubling, without exp: the entry
    of L + 2^b is the entry of L times one factor. If column c is an item of L, the entry is 0. If
    the set has only k < `bits` items, the entries of all L with a bit b >= k are also 0.
    """
    for c in range(m):
        row = l[c]
        row[0] = 1.0
        for b in range(bits):
            half = 1 << b
            factor = 0.0 if b == c or b >= k else W[columns[b], columns[c]]
            for x in range(half):
                row[half + x] = row[x] * factor


@helper
def high_table(h, W, columns, m, first, bits):
    """Fill ``h[H, c]``, the transpose of a `low_table`, for `bits` items from item `first` on.

    If column c is an item of H, the entry is not 0. It is the product of the effects of the other
    items of H, which the forward pass needs. Code that sums over columns must set this entry to 0.
    """
    for c in range(m):
        h[0, c] = 1.0
    for b in range(bits):
        half = 1 << b
        i = columns[first + b]
        for H in range(half):
            source = h[H]
            target = h[half + H]
            for c in range(m):
                target[c] = source[c] * W[i, columns[c]]
            target[first + b] = source[first + b]
