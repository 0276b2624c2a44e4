"""The recursions of `lattice`: forward and backward weights over the subsets of one set.

A state is split into low bits and high bits. The low bits are the position in a row of states. Rows
are grouped into tiles: the lowest of the high bits are the number of the row in its tile, and the
other high bits are the number of the tile. Names and arrays have the same meaning as in `lattice`.
"""

import numpy as np

from sequela.support.jit import helper

# A row has 2^6 doubles, which are 512 bytes. This is long enough for vector instructions, and short
# enough that a tile of rows and the tables fit into the first two caches. 5 and 7 bits were both
# slower.
LOW_BITS = 6
TILE_BITS = 5

# ROW_ORDER[b] lists the rows of a tile of b bits, sorted by their number of items. The rows with i
# items begin at LEVEL_BEGIN[b, i]. These rows do not depend on each other, so they are computed
# together. This is faster, because inside one row nearly every state must wait for the result of
# another state.
ROW_ORDER = np.zeros((TILE_BITS + 1, 1 << TILE_BITS), np.int64)
LEVEL_BEGIN = np.zeros((TILE_BITS + 1, TILE_BITS + 2), np.int64)
for _bits in range(TILE_BITS + 1):
    _count = np.array([row.bit_count() for row in range(1 << _bits)])
    ROW_ORDER[_bits, : 1 << _bits] = np.argsort(_count, kind="stable")
    LEVEL_BEGIN[_bits, : _bits + 2] = np.searchsorted(np.sort(_count), np.arange(_bits + 2))


@helper
def split_bits(k):
    """Return (low, tile, top), the numbers of bits for a row, for rows of a tile, and for tiles."""
    low = min(max(k, 3), LOW_BITS)
    if k == LOW_BITS + 1:
        # Use four rows, because with two rows the matrix product would be slower.
        low = LOW_BITS - 1
    tile = min(max(k - low, 0), TILE_BITS)
    return low, tile, max(k - low - tile, 0)


@helper
def tile_rates(h, base, table, rate, W, columns, count, k, first, top):
    """Fill ``h[H, c]`` in tile `top`, for c < count: base rates times effects of the high items.

    The number of the tile says which of the items from `first` on are present, with one bit per
    item. As in `high_table`, entries of items that are present in H are not set to 0.
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
def arrive(target, source, row, l, h, H, low, k, present):
    """Add to row `target` the contributions of the rows of `source` that differ in one high item.

    In the forward recursion (`present` is 1), these are the rows that lack one of the high items of
    this row. In the backward recursion (`present` is 0), they are the rows that have one more high
    item. Two items are added at a time, because this halves the memory access to the target.
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
    """Fill F, from the first tile to the last: ``F(R) = I(R) * sum_c F(R - c) r_c(R - c)``."""
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
            # Arrivals of low items stay inside a row. Compute eight states one by one: they differ
            # in the lowest three items. Then one higher item b can arrive in a whole block of
            # finished states. Add these arrivals to the next block, which has the same length, in a
            # vectorised loop.
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
def backward(T, I, h, base, table, l, rate, W, columns, k, need):
    """Fill T, from the last tile to the first; see below for the formula.

    ``T(R) = I(R) * (end(R) + sum_c r_c(R) T(R + c))``. A sample may end in the states that have all
    bits of `need`: end(R) is 1 in these states and 0 elsewhere.
    """
    low, tile, tops = split_bits(k)
    width = 1 << low
    rows = 1 << tile
    need_high = need >> low
    need_low = need & (width - 1)
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
                if row & need_high == need_high:
                    for x in range(need_low, width):
                        if x & need_low == need_low:
                            t[x] = 1.0
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
