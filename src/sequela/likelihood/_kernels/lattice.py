"""Marginal sets, exactly: forward and backward over the subsets of one set (section 4.4).

A state R is split into its low bits L (a row of up to 64 states that sit in L1 cache) and its high
bits H. Rates factorise, ``r_j(R) = h_j(H) l_j(L)``, so the exit rates of a tile of rows are one
matrix product, and the gradient two more of the same size (`gemm.add_product`).

Arrays over states, all of shape (rows, width) with row H and column L:

- ``I[R] = 1 / D(R)``, the mean holding time;
- ``F[R]``, the forward weight: probability of passing through R, times I[R];
- ``T[R]``, the backward weight times I[R]: probability of going from R to S by adding just the
  items of S and being observed there, given arrival at R, per unit of the observation rate.

Two habits of Numba show below. Some arguments are zeros and ones held in variables, because it
compiles one more copy of a function for each literal that it is called with. And inner loops that
do not start at 0 count in unsigned integers: an index that might be negative is checked at every
access, and the loop is not vectorised (a factor of 4).

Then p(S) = observation_rate * F[S], the posterior mean time spent in R is
``E[R] = F[R] T[R] / F[S]`` and the posterior probability of the step R -> R + c is
``F[R] r_c(R) T[R + c] / F[S]``.
"""

import math

import numpy as np

from sequela._jit import helper, kernel
from sequela.likelihood._kernels.columns import (
    choose_columns,
    fits_double,
    high_table,
    low_table,
)
from sequela.likelihood._kernels.gemm import add_product, lane_sum

# 2^6 doubles are a row of 512 bytes: long enough for the vector units, short enough that a tile of
# rows and the tables stay in the first two caches. Measured: 5 and 7 bits are both slower.
LOW_BITS = 6
TILE_BITS = 5


def _by_number_of_items():
    """Return the rows of a tile of b bits by their number of items, and where each number begins.

    Rows of as many items do not depend on each other. Solved side by side they hide each other's
    waiting: inside a row nearly every state waits for the one before.
    """
    order = np.zeros((TILE_BITS + 1, 1 << TILE_BITS), np.int64)
    begin = np.zeros((TILE_BITS + 1, TILE_BITS + 2), np.int64)
    for bits in range(TILE_BITS + 1):
        count = np.array([row.bit_count() for row in range(1 << bits)])
        order[bits, : 1 << bits] = np.argsort(count, kind="stable")
        begin[bits, : bits + 2] = np.searchsorted(np.sort(count), np.arange(bits + 2))
    return order, begin


ROW_ORDER, LEVEL_BEGIN = _by_number_of_items()

# So many active items, and half as many as a row has states, are still done one by one.
FEW_ACTIVE = 4


@helper
def split_bits(k):
    """Return (low, tile, top): how many bits index a row, the rows of a tile, and the tiles."""
    low = min(max(k, 3), LOW_BITS)
    if k == LOW_BITS + 1:
        low = LOW_BITS - 1  # four rows, which the matrix product likes better than two
    tile = min(max(k - low, 0), TILE_BITS)
    return low, tile, max(k - low - tile, 0)


@helper
def tile_rates(h, base, table, rate, W, columns, count, k, first, top):
    """Fill ``h[H, c]``, c < count, in tile `top`: base rates times the effects of the high items.

    `first` is the lowest item of the tile's number. As in `high_table`, items present in H are not
    blanked.
    """
    for c in range(count):
        base[c] = rate[columns[c]]
    for b in range(first, k):
        if top >> (b - first) & 1:
            i = columns[b]
            own = base[b]
            for c in range(count):
                base[c] *= W[i, columns[c]]
            base[b] = own
    for H in range(table.shape[0]):
        source = table[H]
        target = h[H]
        for c in range(count):
            target[c] = source[c] * base[c]


@helper
def holding_times(I, h, base, table, l, rate, W, columns, m, k, rest, observation_rate):
    """Fill ``I[R] = 1 / (observation_rate + exit rate of R)``, tile by tile."""
    low, tile, tops = split_bits(k)
    width = 1 << low
    rows = 1 << tile
    zero = m - m
    one = zero + 1
    flat = h.reshape(-1)
    for top in range(1 << tops):
        tile_rates(h, base, table, rate, W, columns, m, k, low + tile, top)
        block = I[top * rows : (top + 1) * rows]
        for H in range(rows):
            row = top * rows + H
            for b in range(low, k):
                if row >> (b - low) & 1:
                    h[H, b] = 0.0
            exit_rate = block[H]
            for x in range(width):
                exit_rate[x] = observation_rate + rest
        add_product(block, flat, h.shape[1], one, l, zero, width, rows, m)
        for H in range(rows):
            inverse = block[H]
            for x in range(width):
                inverse[x] = 1.0 / inverse[x]


@helper
def arrive(target, source, row, l, h, H, low, k, present):
    """Add to row `target` what comes over a high item, from or to the rows of `source`.

    Forward (`present` 1) from the row without each item that the row has, backward (0) from the row
    with each that it lacks. Two items at a time, which halves the loads and stores of the target.
    """
    width = target.shape[0]
    waiting = -1
    for b in range(low, k):
        if row >> (b - low) & 1 != present:
            continue
        if waiting < 0:
            waiting = b
            continue
        one = source[row ^ 1 << (waiting - low)]
        one_effects = l[waiting]
        one_rate = h[H, waiting]
        other = source[row ^ 1 << (b - low)]
        other_effects = l[b]
        other_rate = h[H, b]
        for x in range(width):
            target[x] += one[x] * (one_effects[x] * one_rate) + other[x] * (
                other_effects[x] * other_rate
            )
        waiting = -1
    if waiting >= 0:
        one = source[row ^ 1 << (waiting - low)]
        one_effects = l[waiting]
        one_rate = h[H, waiting]
        for x in range(width):
            target[x] += one[x] * (one_effects[x] * one_rate)


@helper
def forward(F, I, h, base, table, l, rate, W, columns, k):
    """Fill F: ``F(R) = I(R) * sum_c F(R - c) r_c(R - c)``, tiles in increasing order."""
    low, tile, tops = split_bits(k)
    width = 1 << low
    rows = 1 << tile
    present = k - k + 1
    order = ROW_ORDER[tile]
    begins = LEVEL_BEGIN[tile]
    l0 = l[0]
    l1 = l[1]
    l2 = l[2]
    for top in range(1 << tops):
        tile_rates(h, base, table, rate, W, columns, k, k, low + tile, top)
        for level in range(tile + 1):
            begin = begins[level]
            end = begins[level + 1]
            for at in range(begin, end):
                H = order[at]
                row = top * rows + H
                f = F[row]
                for x in range(width):
                    f[x] = 0.0
                if row == 0:
                    f[0] = 1.0
                arrive(f, F, row, l, h, H, low, k, present)
            # Arrivals of low items, inside the rows: solve eight states, then hand the finished
            # half to its sibling, so that all but the last three bits run on whole vectors.
            for x in range(0, width, 8):
                after = x + 8
                b = 3
                while after < width and not after >> b & 1:
                    b += 1
                size = np.uintp(1 << b)
                there = np.uintp(after)
                here = there - size
                effects = l[b]
                e0_0 = l0[x]
                e0_2 = l0[x + 2]
                e0_4 = l0[x + 4]
                e0_6 = l0[x + 6]
                e1_0 = l1[x]
                e1_1 = l1[x + 1]
                e1_4 = l1[x + 4]
                e1_5 = l1[x + 5]
                e2_0 = l2[x]
                e2_1 = l2[x + 1]
                e2_2 = l2[x + 2]
                e2_3 = l2[x + 3]
                for at in range(begin, end):
                    H = order[at]
                    row = top * rows + H
                    f = F[row]
                    inverse = I[row]
                    r0 = h[H, 0]
                    r1 = h[H, 1]
                    r2 = h[H, 2]
                    f0 = f[x] * inverse[x]
                    f1 = (f[x + 1] + f0 * (r0 * e0_0)) * inverse[x + 1]
                    f2 = (f[x + 2] + f0 * (r1 * e1_0)) * inverse[x + 2]
                    f3 = f[x + 3] + f1 * (r1 * e1_1) + f2 * (r0 * e0_2)
                    f3 = f3 * inverse[x + 3]
                    f4 = (f[x + 4] + f0 * (r2 * e2_0)) * inverse[x + 4]
                    f5 = f[x + 5] + f1 * (r2 * e2_1) + f4 * (r0 * e0_4)
                    f5 = f5 * inverse[x + 5]
                    f6 = f[x + 6] + f2 * (r2 * e2_2) + f4 * (r1 * e1_4)
                    f6 = f6 * inverse[x + 6]
                    f7 = f[x + 7] + f3 * (r2 * e2_3) + f5 * (r1 * e1_5)
                    f7 = (f7 + f6 * (r0 * e0_6)) * inverse[x + 7]
                    f[x] = f0
                    f[x + 1] = f1
                    f[x + 2] = f2
                    f[x + 3] = f3
                    f[x + 4] = f4
                    f[x + 5] = f5
                    f[x + 6] = f6
                    f[x + 7] = f7
                    if after < width:
                        r = h[H, b]
                        for y in range(size):
                            f[there + y] += f[here + y] * (effects[here + y] * r)


@helper
def backward(T, I, h, base, table, l, rate, W, columns, k):
    """Fill T: ``T(R) = I(R) * sum_c r_c(R) T(R + c)``, T(S) = I(S), tiles in decreasing order."""
    low, tile, tops = split_bits(k)
    width = 1 << low
    rows = 1 << tile
    last = (1 << k) - 1
    present = k - k
    order = ROW_ORDER[tile]
    begins = LEVEL_BEGIN[tile]
    l0 = l[0]
    l1 = l[1]
    l2 = l[2]
    for top in range((1 << tops) - 1, -1, -1):
        tile_rates(h, base, table, rate, W, columns, k, k, low + tile, top)
        for level in range(tile, -1, -1):
            begin = begins[level]
            end = begins[level + 1]
            for at in range(begin, end):
                H = order[at]
                row = top * rows + H
                t = T[row]
                for x in range(width):
                    t[x] = 0.0
                if row == last >> low:
                    t[last & (width - 1)] = 1.0
                arrive(t, T, row, l, h, H, low, k, present)
            for x in range(width - 8, -1, -8):
                b = 3
                while x > 0 and not x >> b & 1:
                    b += 1
                size = np.uintp(1 << b)
                there = np.uintp(x)
                here = there - size
                effects = l[b]
                e0_0 = l0[x]
                e0_2 = l0[x + 2]
                e0_4 = l0[x + 4]
                e0_6 = l0[x + 6]
                e1_0 = l1[x]
                e1_1 = l1[x + 1]
                e1_4 = l1[x + 4]
                e1_5 = l1[x + 5]
                e2_0 = l2[x]
                e2_1 = l2[x + 1]
                e2_2 = l2[x + 2]
                e2_3 = l2[x + 3]
                for at in range(begin, end):
                    H = order[at]
                    row = top * rows + H
                    t = T[row]
                    inverse = I[row]
                    r0 = h[H, 0]
                    r1 = h[H, 1]
                    r2 = h[H, 2]
                    t7 = t[x + 7] * inverse[x + 7]
                    t6 = (t[x + 6] + t7 * (r0 * e0_6)) * inverse[x + 6]
                    t5 = (t[x + 5] + t7 * (r1 * e1_5)) * inverse[x + 5]
                    t4 = t[x + 4] + t5 * (r0 * e0_4) + t6 * (r1 * e1_4)
                    t4 = t4 * inverse[x + 4]
                    t3 = (t[x + 3] + t7 * (r2 * e2_3)) * inverse[x + 3]
                    t2 = t[x + 2] + t3 * (r0 * e0_2) + t6 * (r2 * e2_2)
                    t2 = t2 * inverse[x + 2]
                    t1 = t[x + 1] + t3 * (r1 * e1_1) + t5 * (r2 * e2_1)
                    t1 = t1 * inverse[x + 1]
                    t0 = t[x] + t1 * (r0 * e0_0) + t2 * (r1 * e1_0)
                    t[x] = (t0 + t4 * (r2 * e2_0)) * inverse[x]
                    t[x + 1] = t1
                    t[x + 2] = t2
                    t[x + 3] = t3
                    t[x + 4] = t4
                    t[x + 5] = t5
                    t[x + 6] = t6
                    t[x + 7] = t7
                    if x > 0:
                        r = h[H, b]
                        for y in range(size):
                            t[here + y] += t[there + y] * (effects[here + y] * r)


@helper
def fold_rows(G, first_bit, bits, first, last, U, h):
    """Multiply U by h; then add to ``G[first_bit + b]`` the sum of the rows with bit b.

    For the columns `first` to `last`. Folding halves: the upper half is the sum for the highest
    bit, then joins the lower half. All bits together cost two passes. Row 0 of U is left with the
    sum over all rows.
    """
    for H in range(1 << bits):
        u = U[H]
        r = h[H]
        for c in range(np.uintp(first), np.uintp(last)):
            u[c] *= r[c]
    for b in range(bits - 1, -1, -1):
        half = 1 << b
        g = G[first_bit + b]
        for H in range(half):
            u = U[H]
            upper = U[half + H]
            for c in range(np.uintp(first), np.uintp(last)):
                g[c] += upper[c]
                u[c] += upper[c]


@helper
def fold_row(G, column, v, bits):
    """Add to ``G[b, column]`` the sum of the entries of v with bit b; return the sum of all."""
    for b in range(bits - 1, -1, -1):
        half = 1 << b
        contained = 0.0
        for x in range(half):
            contained += v[half + x]
            v[x] += v[half + x]
        G[b, column] += contained
    return v[0]


@helper
def gradient_of_row(G, F, T, flat_T, scratch, l, rate, columns, m, k):
    """Fill G as `gradient` does, for a lattice of one row, one column of G after the other.

    For the small sets that most data are made of: less is prepared, and with few active items
    there is nothing to gain from products.
    """
    width = F.shape[1]
    bits = k
    scale = 1.0 / F[0, (1 << k) - 1]
    weights = F[0]
    t = T[0]
    f = scratch[0]
    e = scratch[1]
    v = scratch[2]
    for b in range(k):
        for c in range(m + 1):
            G[b, c] = 0.0
    for x in range(width):
        f[x] = weights[x] * scale
        e[x] = f[x] * t[x]
    for c in range(m):
        effects = l[c]
        r = rate[columns[c]]
        if c < k:
            bit = np.uintp(1 << c)
            for x in range(np.uintp(width)):
                v[x] = (r * effects[x]) * (f[x] * (flat_T[x + bit] - t[x]))
        else:
            for x in range(width):
                v[x] = -(r * effects[x]) * e[x]
        G[k, c] = fold_row(G, c, v, bits)
    G[k, m] = fold_row(G, m, e, bits)


@helper
def gradient(G, F, T, flat_T, scratch, E, U, VS, VA, h, base, table, l, lT, rate, W, columns, m, k):
    """Fill ``G[b, c]``, the derivative of log p(S) by the effect of item b on column c.

    ``G[k, c]`` is the derivative by the column's own log base rate. Column m is about time:
    ``G[b, m]`` is the posterior mean time that item b has been present, ``G[k, m]`` the mean
    observation time.

    VS (items of S) and VA (active items, transposed) collect sums over rows for each L; U sums
    over L for each row. U and VA lack the other factor of the rate, which the folding applies.

    `flat_T` is T as one row, with half a row of finite numbers beyond its end; `scratch` has room
    for two rows.
    """
    low, tile, tops = split_bits(k)
    width = 1 << low
    rows = 1 << tile
    first = low + tile
    bits = min(k, low)
    last = (1 << k) - 1
    scale = 1.0 / F[last >> low, last & (width - 1)]
    active = m - k
    zero = m - m
    one = zero + 1
    flat_E = E.reshape(-1)
    for b in range(k + 1):
        for c in range(m + 1):
            G[b, c] = 0.0
        for x in range(width):
            VS[b, x] = 0.0
    for x in range(width):
        for c in range(k, m):
            VA[x, c] = 0.0
    in_row = VS[k]
    terms = scratch[0]
    f = scratch[1]
    for top in range(1 << tops):
        tile_rates(h, base, table, rate, W, columns, m, k, first, top)
        for H in range(rows):
            row = top * rows + H
            weights = F[row]
            t = T[row]
            e = E[H]
            u = U[H]
            # F(R) / F(S) first: the product with T alone could leave the range of a double.
            for x in range(width):
                f[x] = weights[x] * scale
                e[x] = f[x] * t[x]
                in_row[x] += e[x]
            time = lane_sum(e, width)
            for b in range(low, k):
                if row >> (b - low) & 1:
                    G[b, m] += time
            # Items of S: probability of the step minus its expected number. A low item's step leads
            # to the state 2^c places on; where the item is present that is another row's state, and
            # its effect on itself, 0, takes that out again.
            for c in range(k):
                if c < low:
                    at = row * width + (1 << c)
                elif row >> (c - low) & 1:
                    u[c] = 0.0
                    continue
                else:
                    at = (row | 1 << (c - low)) * width
                after = flat_T[at : at + width]
                v = VS[c]
                effects = l[c]
                r = h[H, c]
                for x in range(width):
                    d = effects[x] * (f[x] * (after[x] - t[x]))
                    v[x] += r * d
                    terms[x] = d
                u[c] = lane_sum(terms, width)
            # Active items: minus the expected number of steps, by the two products below.
            for x in range(width):
                e[x] = -e[x]
            for c in range(k, m):
                u[c] = 0.0
        if active > 0:
            add_product(VA, flat_E, one, E.shape[1], h, k, m, width, rows)
        if k > low:
            if active > 0:
                add_product(U, flat_E, E.shape[1], one, lT, k, m, rows, width)
            fold_rows(G, low, tile, zero, m, U, h)
            for b in range(first, k):
                if top >> (b - first) & 1:
                    for c in range(m):
                        G[b, c] += U[0, c]
    for c in range(k):
        G[k, c] = fold_row(G, c, VS[c], bits)
    G[k, m] = fold_row(G, m, in_row, bits)
    if active > 0:
        fold_rows(G, zero, bits, k, m, VA, lT)
        for c in range(k, m):
            G[k, c] = VA[0, c]


@helper
def scatter(gradient_sum, present_sum, weight, G, rate, shared, rare, columns, mark, m, k):
    """Add one set's gradient to the n x n sum, times `weight`.

    Items that are no column of this set have the gradient -rate * time. For the shared ones it is
    added once for all sets at the end, from `present_sum`, so here the columns of this set get it
    back.
    """
    n = rate.shape[0]
    for b in range(k + 1):
        lasting = weight * G[b, m]
        present_sum[columns[b] if b < k else n] += lasting
        for c in range(m):
            j = columns[c]
            g = weight * G[b, c]
            if shared[j]:
                g += rate[j] * lasting
            if b == k:
                gradient_sum[j, j] += g
            elif b != c:
                gradient_sum[columns[b], j] += g
    if rare.shape[0] > 0:
        for c in range(m):
            mark[columns[c]] = 1
        for j in rare:
            if mark[j] == 0:
                for b in range(k):
                    gradient_sum[columns[b], j] -= weight * rate[j] * G[b, m]
                gradient_sum[j, j] -= weight * rate[j] * G[k, m]
        for c in range(m):
            mark[columns[c]] = 0


@kernel
def evaluate_block(
    theta,
    W,
    rate,
    row_start,
    row_item,
    shared,
    constant,
    rare,
    observation_rate,
    indptr,
    indices,
    chosen,
    weights,
    log_p,
    in_range,
    gradient_sum,
    present_sum,
    want_gradient,
):
    """Evaluate the sets `chosen`; add their weighted gradients to the sums of this block.

    A set whose weights might leave the range of a double gets ``in_range`` False and nothing else:
    the log-domain kernel does it.
    """
    n = rate.shape[0]
    largest = 3
    for s in chosen:
        largest = max(largest, indptr[s + 1] - indptr[s])
    states = 1 << largest
    width = 1 << LOW_BITS
    rows = 1 << TILE_BITS
    most = max(n, 4)
    I_ = np.empty(states)
    F_ = np.empty(states)
    T_ = np.empty(states + width)
    table_ = np.empty((rows, most))
    h = np.zeros((rows, most))
    U = np.empty((rows, most))
    l_ = np.empty(most * width)
    lT_ = np.empty(most * width)
    VS_ = np.empty((largest + 1) * width)
    VA_ = np.empty(most * width)
    E_ = np.empty(rows * width)
    scratch = np.empty((3, width))
    base = np.empty(most)
    G = np.empty((largest + 1, most + 1))
    columns = np.empty(most, np.int64)
    above = np.empty(most)
    below = np.empty(most)
    mark = np.zeros(n, np.int64)
    for s in chosen:
        items = indices[indptr[s] : indptr[s + 1]]
        k = items.shape[0]
        m, rest = choose_columns(
            items,
            k,
            theta,
            row_start,
            row_item,
            rate,
            shared,
            constant,
            rare,
            columns,
            above,
            below,
            mark,
        )
        in_range[s] = fits_double(k, m, theta, columns, above, below, rest, observation_rate)
        if not in_range[s]:
            continue
        low, tile, tops = split_bits(k)
        wide = 1 << low
        high = 1 << (tile + tops)
        I = I_[: high * wide].reshape((high, wide))
        F = F_[: high * wide].reshape((high, wide))
        l = l_[: most * wide].reshape((most, wide))
        table = table_[: 1 << tile]
        # A row has eight states even where a set has fewer than three items.
        for b in range(k, 3):
            for x in range(wide):
                l[b, x] = 0.0
        low_table(l, W, columns, m, k, low)
        high_table(table, W, columns, m, low, tile)
        holding_times(I, h, base, table, l, rate, W, columns, m, k, rest, observation_rate)
        forward(F, I, h, base, table, l, rate, W, columns, k)
        last = (1 << k) - 1
        log_p[s] = math.log(observation_rate * F[last >> low, last & (wide - 1)])
        if want_gradient:
            T = T_[: high * wide].reshape((high, wide))
            for x in range(high * wide, high * wide + wide // 2):
                T_[x] = 0.0
            VS = VS_[: (k + 1) * wide].reshape((k + 1, wide))
            VA = VA_[: wide * most].reshape((wide, most))
            E = E_[: wide << tile].reshape((1 << tile, wide))
            lT = lT_[: wide * most].reshape((wide, most))
            backward(T, I, h, base, table, l, rate, W, columns, k)
            if high == 1 and m - k <= FEW_ACTIVE + wide // 2:
                gradient_of_row(G, F, T, T_, scratch, l, rate, columns, m, k)
            else:
                for c in range(k, m):
                    for x in range(wide):
                        lT[x, c] = l[c, x]
                gradient(
                    G, F, T, T_, scratch, E, U, VS, VA, h, base, table, l, lT, rate, W, columns,
                    m, k,
                )  # fmt: skip
            scatter(
                gradient_sum, present_sum, weights[s], G, rate, shared, rare, columns, mark, m, k
            )
