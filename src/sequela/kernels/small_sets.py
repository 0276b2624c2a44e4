"""The recursions of `lattice` for sets of at most six items, whose lattice is one row.

Most data consist of such sets. With one row, rates need not be split into high and low items. So
there is less preparation before the recursion. For a small set, the preparation takes most of the
time. ``q[c, R]`` is the rate of column c in state R, including the base rate. It is 0 if column c
is in R. It is also 0 in states that do not exist, because a row has at least eight states even if a
set has fewer than three items. Other names have the same meaning as in `lattice`.
"""

import numpy as np

from sequela.support.jit import helper


@helper
def row_rates(q, rate, W, columns, m, k, bits):
    """Fill ``q[c, R]`` for all columns; the entry of R + 2^b is the entry of R times one factor."""
    for c in range(m):
        row = q[c]
        j = columns[c]
        f0 = 0.0
        f1 = 0.0
        f2 = 0.0
        if k > 0 and c != 0:
            f0 = W[columns[0], j]
        if k > 1 and c != 1:
            f1 = W[columns[1], j]
        if k > 2 and c != 2:
            f2 = W[columns[2], j]
        q0 = rate[j]
        q1 = q0 * f0
        q2 = q0 * f1
        q3 = q1 * f1
        row[0] = q0
        row[1] = q1
        row[2] = q2
        row[3] = q3
        row[4] = q0 * f2
        row[5] = q1 * f2
        row[6] = q2 * f2
        row[7] = q3 * f2
        for b in range(3, bits):
            half = 1 << b
            factor = 0.0 if b == c else W[columns[b], j]
            for x in range(half):
                row[half + x] = row[x] * factor


@helper
def row_holding_times(inverse, q, m, width, constant):
    """Fill ``I[R]`` with 1 / (constant + the sum of the rates of all columns)."""
    for x in range(width):
        inverse[x] = constant
    for c in range(m):
        row = q[c]
        for x in range(width):
            inverse[x] += row[x]
    for x in range(width):
        inverse[x] = 1.0 / inverse[x]


@helper
def row_forward(f, inverse, q, width):
    """Fill F: ``F(R) = I(R) * sum_c F(R - c) q_c(R - c)``, eight states at a time.

    The eight states differ in the first three items. The arrivals of one other item, in a block of
    finished states, are then added to the next block, which has the same length. This loop is
    vectorised.
    """
    q0 = q[0]
    q1 = q[1]
    q2 = q[2]
    for x in range(width):
        f[x] = 0.0
    f[0] = 1.0
    for x in range(0, width, 8):
        f0 = f[x] * inverse[x]
        f1 = (f[x + 1] + f0 * q0[x]) * inverse[x + 1]
        f2 = (f[x + 2] + f0 * q1[x]) * inverse[x + 2]
        f3 = (f[x + 3] + f1 * q1[x + 1] + f2 * q0[x + 2]) * inverse[x + 3]
        f4 = (f[x + 4] + f0 * q2[x]) * inverse[x + 4]
        f5 = (f[x + 5] + f1 * q2[x + 1] + f4 * q0[x + 4]) * inverse[x + 5]
        f6 = (f[x + 6] + f2 * q2[x + 2] + f4 * q1[x + 4]) * inverse[x + 6]
        f7 = f[x + 7] + f3 * q2[x + 3] + f5 * q1[x + 5] + f6 * q0[x + 6]
        f[x] = f0
        f[x + 1] = f1
        f[x + 2] = f2
        f[x + 3] = f3
        f[x + 4] = f4
        f[x + 5] = f5
        f[x + 6] = f6
        f[x + 7] = f7 * inverse[x + 7]
        after = x + 8
        if after < width:
            b = 3
            while not after >> b & 1:
                b += 1
            size = np.uintp(1 << b)
            there = np.uintp(after)
            here = there - size
            rates = q[b]
            for y in range(size):
                f[there + y] += f[here + y] * rates[here + y]


@helper
def row_backward(t, inverse, q, width, last, need):
    """Fill T: ``T(R) = I(R) * (end(R) + sum_c q_c(R) T(R + c))``, where `last` is the state S.

    end(R) is 1 in the states with all bits of `need`, because the sample may be observed in them,
    and 0 in all other states.
    """
    q0 = q[0]
    q1 = q[1]
    q2 = q[2]
    for x in range(width):
        t[x] = 0.0
    for x in range(need, last + 1):
        if x & need == need:
            t[x] = 1.0
    for x in range(width - 8, -1, -8):
        t7 = t[x + 7] * inverse[x + 7]
        t6 = (t[x + 6] + t7 * q0[x + 6]) * inverse[x + 6]
        t5 = (t[x + 5] + t7 * q1[x + 5]) * inverse[x + 5]
        t4 = (t[x + 4] + t5 * q0[x + 4] + t6 * q1[x + 4]) * inverse[x + 4]
        t3 = (t[x + 3] + t7 * q2[x + 3]) * inverse[x + 3]
        t2 = (t[x + 2] + t3 * q0[x + 2] + t6 * q2[x + 2]) * inverse[x + 2]
        t1 = (t[x + 1] + t3 * q1[x + 1] + t5 * q2[x + 1]) * inverse[x + 1]
        t0 = t[x] + t1 * q0[x] + t2 * q1[x] + t4 * q2[x]
        t[x] = t0 * inverse[x]
        t[x + 1] = t1
        t[x + 2] = t2
        t[x + 3] = t3
        t[x + 4] = t4
        t[x + 5] = t5
        t[x + 6] = t6
        t[x + 7] = t7
        if x > 0:
            b = 3
            while not x >> b & 1:
                b += 1
            size = np.uintp(1 << b)
            there = np.uintp(x)
            here = there - size
            rates = q[b]
            for y in range(size):
                t[here + y] += t[there + y] * rates[here + y]


@helper
def fold(G, column, v, k, bits):
    """Set ``G[b, column]``, b < k, to the sum of the entries of v that have bit b.

    ``G[k, column]`` is set to the sum of all entries. The entries of the upper half are those with
    the highest bit, so their sum is the result for this bit. The upper half is then added to the
    lower half, and the same is done for the next bit. Sums that do not depend on each other are
    computed together.
    """
    for b in range(bits - 1, 2, -1):
        half = 1 << b
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        for x in range(0, half, 4):
            s0 += v[half + x]
            s1 += v[half + x + 1]
            s2 += v[half + x + 2]
            s3 += v[half + x + 3]
        for x in range(half):
            v[x] += v[half + x]
        G[b, column] = (s0 + s2) + (s1 + s3)
    if k > 2:
        G[2, column] = (v[4] + v[6]) + (v[5] + v[7])
    v0 = v[0] + v[4]
    v1 = v[1] + v[5]
    v2 = v[2] + v[6]
    v3 = v[3] + v[7]
    if k > 1:
        G[1, column] = v2 + v3
    v0 += v2
    v1 += v3
    if k > 0:
        G[0, column] = v1
    G[k, column] = v0 + v1


@helper
def row_gradient(G, F, T, total, scratch, q, m, k, bits):
    """Fill G as `lattice.gradient` does, one column after the other.

    T must be followed by half a row of finite numbers. For the step of c in a state that already
    has item c, the code reads T at another state or beyond the end. The rate of this step is 0, so
    the value does not matter.
    """
    width = 1 << bits
    scale = 1.0 / total
    f = scratch[0]
    e = scratch[1]
    v = scratch[2]
    for x in range(width):
        f[x] = F[x] * scale
        e[x] = f[x] * T[x]
    for c in range(m):
        rates = q[c]
        if c < k:
            bit = np.uintp(1 << c)
            for x in range(np.uintp(width)):
                v[x] = rates[x] * (f[x] * (T[x + bit] - T[x]))
        else:
            for x in range(width):
                v[x] = -rates[x] * e[x]
        fold(G, c, v, k, bits)
    fold(G, m, e, k, bits)
