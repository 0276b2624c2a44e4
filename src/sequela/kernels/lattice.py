"""Exact likelihood of a set: forward and backward recursion over its subsets (section 4.4).

A state R is split into its low bits L and its high bits H. The low bits are the position of the
state in a row. A row has at most 64 states, so that it fits into the L1 cache. Rates factorise,
``r_j(R) = h_j(H) l_j(L)``. So the exit rates of a tile (up to 32 rows) are one matrix product, and
the gradient needs two more products of the same size (`gemm.add_product`).

Arrays over states, all of shape (rows, width) with row H and column L:

- ``I[R] = 1 / D(R)``, the mean holding time, where D(R) is the sum of all rates out of R, including
the rate of the observation;
- ``F[R]``, the forward weight: the probability of visiting R, times I[R];
- ``T[R]``, the backward weight times I[R]. Given that the process is in R, this is the probability
that it goes from R to S by adding only items of S and is then observed, divided by the observation
rate.

Then p(S) = stop_rate * F[S], the posterior mean time spent in R is
``E[R] = F[R] T[R] / F[S]`` and the posterior probability of the step R -> R + c is
``F[R] r_c(R) T[R + c] / F[S]``.

If a sample has missing cells, S contains the present items and the missing items. The sample may
end in any state that contains all present items. ``F[S]`` is then the sum of F over these states,
and T starts from all of them.

The code takes two properties of Numba into account. First, Numba compiles another copy of a
function for each literal argument. So arguments that are always 0 or 1 are passed as variables
(`zero` and `one`). Second, if an index might be negative, Numba tests it at every access and does
not vectorise the loop. The loop is then 4 times slower. So inner loops that do not start at 0 use
unsigned integers, which cannot be negative.
"""

import math

import numpy as np

from sequela.kernels.arguments import ColumnRoom
from sequela.kernels.columns import (
    all_fit_double,
    choose_columns,
    fits_double,
    high_table,
    low_table,
)
from sequela.kernels.gemm import add_product, lane_sum
from sequela.kernels.recursion import (
    LOW_BITS,
    TILE_BITS,
    backward,
    forward,
    split_bits,
    tile_rates,
)
from sequela.kernels.small_sets import (
    row_backward,
    row_forward,
    row_gradient,
    row_holding_times,
    row_rates,
)
from sequela.support.jit import helper, kernel


@helper
def holding_times(I, h, flat, base, table, l, rate, W, columns, m, k, rest, stop_rate):
    """Fill ``I[R] = 1 / (stop_rate + exit rate of R)``, tile by tile."""
    low, tile, tops = split_bits(k)
    width = 1 << low
    rows = 1 << tile
    zero = m - m
    one = zero + 1
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
                exit_rate[x] = stop_rate + rest
        add_product(block, flat, h.shape[1], one, l, zero, width, rows, m)
        for H in range(rows):
            inverse = block[H]
            for x in range(width):
                inverse[x] = 1.0 / inverse[x]


@helper
def fold_rows(G, first_bit, bits, first, last, U, h):
    """Multiply U by h; then add to ``G[first_bit + b]`` the sum of the rows with bit b.

    Only the columns `first` to `last` are used. The rows of the upper half are those with the
    highest bit, so their sum is the result for this bit. The upper half is then added to the lower
    half, and the same is done for the next bit. For all bits together, this takes as many
    operations as two passes over U. At the end, row 0 of U contains the sum over all rows.
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
    """Add to ``G[b, column]`` the sum of all v[x] where x has bit b; return the sum of all v[x].

    The entries of v are overwritten.
    """
    for b in range(bits - 1, -1, -1):
        half = 1 << b
        contained = 0.0
        for x in range(half):
            contained += v[half + x]
            v[x] += v[half + x]
        G[b, column] += contained
    return v[0]


@helper
def gradient(
    G, F, T, flat_T, total, scratch, E, U, VS, VA, h, base, table, l, lT, rate, W, columns, m, k
):
    """Fill ``G[b, c]``, the derivative of log p(S) by the effect of item b on column c.

    ``G[k, c]`` is the derivative by the log base rate of column c. Column m contains times: ``G[b,
    m]`` is the posterior mean time for which item b has been present, and ``G[k, m]`` is the mean
    observation time.

    VS (items of S) and VA (active items, transposed) contain sums over rows for each L. U contains
    sums over L for each row. U does not yet include the factor h of the rates, and VA does not yet
    include the factor l. `fold_rows` multiplies by these factors.

    `flat_T` is T as one row, followed by half a row of finite numbers. `scratch` must have at least
    two rows.
    """
    low, tile, tops = split_bits(k)
    width = 1 << low
    rows = 1 << tile
    first = low + tile
    bits = min(k, low)
    scale = 1.0 / total
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
            # First divide by the total, because F(R) times T could be too large or too small for a
            # double.
            for x in range(width):
                f[x] = weights[x] * scale
                e[x] = f[x] * t[x]
                in_row[x] += e[x]
            time = lane_sum(e, width)
            for b in range(low, k):
                if row >> (b - low) & 1:
                    G[b, m] += time
            # For items of S, the term is the probability of the step minus the expected number of
            # such steps. The step of a low item c leads to the state at the distance 2^c. If item c
            # is already present, there is no such step, and another state is read at this distance.
            # This does no harm: its entry of `effects` is 0, and so is the term.
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
            # For active items, the terms are minus the expected numbers of steps. Two matrix
            # products below compute them.
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
def scatter(sums, weight, G, tables, room, m, k):
    """Add the gradient of one set to the n x n sum, times `weight`.

    Items that are not columns of this set have the gradient -rate * time. For shared items (see
    `columns.SHORTCUT_LIMIT`), this term is added at the end, for all items and all sets together,
    from ``present``. The columns of this set must not get this term, so rate * time is added to
    them here.
    """
    gradient_sum = sums.gradient
    present_sum = sums.present
    rate = tables.rate
    shared = tables.shared
    fast = tables.fast
    columns = room.columns
    mark = room.mark
    n = rate.shape[0]
    back = room.above  # reuse the memory of this array, whose values are no longer needed
    for c in range(m):
        j = columns[c]
        back[c] = rate[j] if shared[j] else 0.0
    for b in range(k):
        lasting = weight * G[b, m]
        present_sum[columns[b]] += lasting
        g = G[b]
        target = gradient_sum[columns[b]]
        for c in range(b):
            target[columns[c]] += weight * g[c] + back[c] * lasting
        for c in range(b + 1, m):
            target[columns[c]] += weight * g[c] + back[c] * lasting
    lasting = weight * G[k, m]
    present_sum[n] += lasting
    for c in range(m):
        gradient_sum[columns[c], columns[c]] += weight * G[k, c] + back[c] * lasting
    if fast.shape[0] > 0:
        for c in range(m):
            mark[columns[c]] = 1
        for j in fast:
            if mark[j] == 0:
                for b in range(k):
                    gradient_sum[columns[b], j] -= weight * rate[j] * G[b, m]
                gradient_sum[j, j] -= weight * rate[j] * G[k, m]
        for c in range(m):
            mark[columns[c]] = 0


@helper
def end_weight(F, last, need):
    """Return the sum of F over the states in which a sample may end: with all bits of `need`."""
    if need == last:
        return F[last]
    total = 0.0
    for R in range(need, last + 1):
        if R & need == need:
            total += F[R]
    return total


@kernel
def evaluate_block(tables, sets, chosen, sums, want_gradient):
    """Evaluate the sets `chosen`; add their weighted gradients to the sums of this block.

    `tables` are `ThetaTables`, `sets` is a `SetList`, and `sums` are `BlockSums`. If the forward
    weights of a set might be too large or too small for a double, its entry of ``in_range`` is set
    to False, and nothing else is computed for this set. Another kernel must then evaluate this set
    in logarithms.
    """
    W = tables.W
    rate = tables.rate
    stop_rate = tables.stop_rate
    log_p = sums.log_p
    in_range = sums.in_range
    n = rate.shape[0]
    largest = 3
    for s in chosen:
        largest = max(largest, sets.start[s + 1] - sets.start[s])
    states = 1 << largest
    width = 1 << LOW_BITS
    rows = 1 << TILE_BITS
    most = max(n, 4)
    I_ = np.empty(states)
    F_ = np.empty(states)
    T_ = np.empty(states + width)
    table_ = np.empty((rows, most))
    h = np.zeros((rows, most))
    flat_h = h.reshape(-1)
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
    room = ColumnRoom(columns, np.empty(most), np.empty(most), np.zeros(n, np.int64))
    all_fit = all_fit_double(largest, tables, room)
    # Make views of the arrays for the size of this set. Making them takes as long as evaluating a
    # small set. So make them only if the size has changed, which happens rarely, because the sets
    # are sorted by size.
    size = -1
    for s in chosen:
        items = sets.items[sets.start[s] : sets.start[s + 1]]
        k = items.shape[0]
        m, rest = choose_columns(items, tables, room)
        in_range[s] = all_fit or fits_double(k, m, tables, room, rest)
        if not in_range[s]:
            continue
        if k != size:
            size = k
            low, tile, tops = split_bits(k)
            wide = 1 << low
            high = 1 << (tile + tops)
            I = I_[: high * wide].reshape((high, wide))
            F = F_[: high * wide].reshape((high, wide))
            T = T_[: high * wide].reshape((high, wide))
            l = l_[: most * wide].reshape((most, wide))
            lT = lT_[: wide * most].reshape((wide, most))
            VS = VS_[: (k + 1) * wide].reshape((k + 1, wide))
            VA = VA_[: wide * most].reshape((wide, most))
            E = E_[: wide << tile].reshape((1 << tile, wide))
            table = table_[: 1 << tile]
        last = (1 << k) - 1
        need = last if sets.known.shape[0] == 0 else (1 << sets.known[s]) - 1
        if k <= LOW_BITS:
            # A row has at least eight states, even if the set has fewer than three items.
            for b in range(k, 3):
                for x in range(wide):
                    l[b, x] = 0.0
            row_rates(l, rate, W, columns, m, k, low)
            row_holding_times(I_, l, m, wide, stop_rate + rest)
            row_forward(F_, I_, l, wide)
            total = end_weight(F_, last, need)
            if want_gradient:
                for x in range(wide, wide + wide // 2):
                    T_[x] = 0.0
                row_backward(T_, I_, l, wide, last, need)
                row_gradient(G, F_, T_, total, scratch, l, m, k, low)
        else:
            low_table(l, W, columns, m, k, low)
            high_table(table, W, columns, m, low, tile)
            holding_times(I, h, flat_h, base, table, l, rate, W, columns, m, k, rest, stop_rate)
            forward(F, I, h, base, table, l, rate, W, columns, k)
            total = end_weight(F_, last, need)
            if want_gradient:
                for x in range(high * wide, high * wide + wide // 2):
                    T_[x] = 0.0
                backward(T, I, h, base, table, l, rate, W, columns, k, need)
                for c in range(k, m):
                    for x in range(wide):
                        lT[x, c] = l[c, x]
                gradient(
                    G, F, T, T_, total, scratch, E, U, VS, VA, h, base, table, l, lT, rate, W,
                    columns, m, k,
                )  # fmt: skip
        log_p[s] = math.log(stop_rate * total)
        if want_gradient:
            scatter(sums, sets.weights[s], G, tables, room, m, k)
