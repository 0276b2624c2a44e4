"""Sample orders of a large set by relocating small random blocks of items.

In each step, `block` items of S are free. The other items (the chain) keep their relative order. In
a state (a, X), the first a items of the chain and the subset X of the free items are present. There
are (k - block + 1) * 2^block states. The recursions are the same as on the full lattice. Given the
chain, they give an exact draw of the places of the free items, and the exact expectation of the
gradient over these places (Rao-Blackwell).

Rates factorise as on the lattice, ``r_c(a, X) = h[a, c] l[c, X]``, where h depends on the chain. A
column is *moving* if an item of S has an effect on it, and *steady* otherwise. In a large set of a
sparse model, most columns are steady. The forward pass and the draw need tables of the moving
columns only. One additional row of ones stands for all steady columns. A sweep divides the items
into random blocks, and relocates every item once.
"""

import numpy as np

from sequela.kernels.gemm import add_product
from sequela.support.jit import helper, kernel


@helper
def shuffle(order, rng):
    """Permute `order` uniformly at random, in place."""
    for i in range(order.shape[0] - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        order[i], order[j] = order[j], order[i]


@helper
def free_tables(l, lT, free, size, Wc, own, m):
    """Fill ``l[c, X]``, the factor by which the free items X change the rate of c; lT is l^T.

    ``own[i]`` is the column of item i itself. The rate of this column is 0 once i is present.
    """
    for c in range(m):
        lT[0, c] = 1.0
    for b in range(size):
        half = 1 << b
        effects = Wc[free[b]]
        for X in range(half):
            source = lT[X]
            target = lT[half + X]
            for c in range(m):
                target[c] = source[c] * effects[c]
            if own[free[b]] < m:
                target[own[free[b]]] = 0.0
    for X in range(1 << size):
        for c in range(m):
            l[c, X] = lT[X, c]


@helper
def chain_rates(h, chain, length, Wc, own, rate, m):
    """Fill ``h[a, c]``: base rate of column c times the effects of the first a chain items."""
    for c in range(m):
        h[0, c] = rate[c]
    for a in range(length):
        effects = Wc[chain[a]]
        source = h[a]
        target = h[a + 1]
        for c in range(m):
            target[c] = source[c] * effects[c]
        if own[chain[a]] < m:
            target[own[chain[a]]] = 0.0


@helper
def step_rates(next_rate, free_rate, h, chain, length, free, size, own, rate, moving):
    """Fill the rates of the steps, without the effects of the free items on them.

    ``next_rate[a]`` is the rate of item a of the chain in row a, and ``free_rate[a, b]`` the rate
    of free item b in row a.
    """
    for a in range(length):
        c = own[chain[a]]
        next_rate[a] = h[a, c] if c < moving else rate[chain[a]]
    for b in range(size):
        c = own[free[b]]
        for a in range(length + 1):
            free_rate[a, b] = h[a, c] if c < moving else rate[free[b]]


@helper
def forward(F, I, scale, next_rate, free_rate, l, chain, length, free, size, own):
    """Fill F for all states (a, X); row a + 1 is divided by ``scale[a]``, the maximum of row a.

    Inside a row, four states are computed one by one: they differ in the first two free items. Then
    the arrivals of one other free item, in a block of finished states, are added to the next block,
    which has the same length (see `recursion.forward`).
    """
    full = 1 << size
    l0 = l[own[free[0]]]
    l1 = l[own[free[1]]]
    for a in range(length + 1):
        f = F[a]
        inverse = I[a]
        if a == 0:
            for X in range(full):
                f[X] = 0.0
            f[0] = 1.0
        else:
            before = F[a - 1]
            effects = l[own[chain[a - 1]]]
            r = next_rate[a - 1] / scale[a - 1]
            for X in range(full):
                f[X] = before[X] * (r * effects[X])
        r0 = free_rate[a, 0]
        r1 = free_rate[a, 1]
        largest = 0.0
        for x in range(0, full, 4):
            f0 = f[x] * inverse[x]
            f1 = (f[x + 1] + f0 * (r0 * l0[x])) * inverse[x + 1]
            f2 = (f[x + 2] + f0 * (r1 * l1[x])) * inverse[x + 2]
            f3 = f[x + 3] + f1 * (r1 * l1[x + 1]) + f2 * (r0 * l0[x + 2])
            f3 *= inverse[x + 3]
            f[x] = f0
            f[x + 1] = f1
            f[x + 2] = f2
            f[x + 3] = f3
            largest = max(largest, f0, f1, f2, f3)
            after = x + 4
            if after < full:
                b = 2
                while not after >> b & 1:
                    b += 1
                r = free_rate[a, b]
                effects = l[own[free[b]]]
                there = np.uintp(after)
                here = there - np.uintp(1 << b)
                for y in range(np.uintp(1 << b)):
                    f[there + y] += f[here + y] * (effects[here + y] * r)
        scale[a] = largest


@helper
def backward(T, F, I, scale, next_rate, free_rate, l, chain, length, free, size, own):
    """Fill T so that F * T is the posterior mean time spent in each state."""
    full = 1 << size
    for a in range(length, -1, -1):
        t = T[a]
        if a == length:
            for X in range(full):
                t[X] = 0.0
            t[full - 1] = 1.0 / F[length, full - 1]
        else:
            effects = l[own[chain[a]]]
            r = next_rate[a] / scale[a]
            after = T[a + 1]
            for X in range(full):
                t[X] = after[X] * (r * effects[X])
        for X in range(full - 1, -1, -1):
            leaving = t[X]
            for b in range(size):
                if not X >> b & 1:
                    leaving += t[X | (1 << b)] * (free_rate[a, b] * l[own[free[b]], X])
            t[X] = leaving * I[a, X]


@helper
def draw(order, F, scale, next_rate, free_rate, l, chain, length, free, size, own, rng):
    """Draw the places of the free items given the order of the chain, beginning with the last."""
    a = length
    X = (1 << size) - 1
    for place in range(length + size - 1, -1, -1):
        from_chain = 0.0
        if a > 0:
            r = next_rate[a - 1] / scale[a - 1]
            from_chain = F[a - 1, X] * (r * l[own[chain[a - 1]], X])
        if X == 0:
            a -= 1
            order[place] = chain[a]
            continue
        total = from_chain
        for b in range(size):
            if X >> b & 1:
                other = X ^ (1 << b)
                total += F[a, other] * (free_rate[a, b] * l[own[free[b]], other])
        u = rng.random() * total
        last = -1
        if u >= from_chain or a == 0:
            u -= from_chain
            for b in range(size):
                if X >> b & 1:
                    other = X ^ (1 << b)
                    last = b
                    u -= F[a, other] * (free_rate[a, b] * l[own[free[b]], other])
                    if u < 0.0:
                        break
        if last >= 0:
            X ^= 1 << last
            order[place] = free[last]
        else:
            a -= 1
            order[place] = chain[a]


@helper
def add_gradient(G, F, T, E, U, V, scale, h, l, lT, chain, length, free, size, m, k):
    """Add to G the expectation of the gradient over the places of the free items.

    G has the axes of G in `lattice.gradient`. The tables h, l and lT must have all columns.
    """
    full = 1 << size
    zero = m - m
    one = zero + 1
    flat = E.reshape(-1)
    for a in range(length + 1):
        for X in range(full):
            E[a, X] = -F[a, X] * T[a, X]
        for c in range(m):
            U[a, c] = 0.0
    for X in range(full):
        for c in range(m + 1):
            V[X, c] = 0.0
    # Minus the expected number of steps, for every column.
    add_product(U, flat, full, one, lT, zero, m, length + 1, full)
    add_product(V, flat, one, full, h, zero, m, full, length + 1)
    for X in range(full):
        for c in range(m):
            V[X, c] *= lT[X, c]
    for a in range(length + 1):
        time = 0.0
        for X in range(full):
            time -= E[a, X]
            V[X, m] -= E[a, X]
        U[a, m] = time
        for c in range(m):
            U[a, c] *= h[a, c]
        # Probabilities of the steps of the free items, and of the next item of the chain.
        for b in range(size):
            c = free[b]
            for X in range(full):
                if not X >> b & 1:
                    g = F[a, X] * (h[a, c] * l[c, X]) * T[a, X | (1 << b)]
                    U[a, c] += g
                    V[X, c] += g
        if a < length:
            c = chain[a]
            r = h[a, c] / scale[a]
            for X in range(full):
                g = F[a, X] * (r * l[c, X]) * T[a + 1, X]
                U[a, c] += g
                V[X, c] += g
    # An item of the chain is present in all rows after its arrival. So its gradient is the sum over
    # these rows. Add up the rows, beginning with the last.
    for a in range(length, 0, -1):
        u = U[a]
        before = U[a - 1]
        g = G[chain[a - 1]]
        for c in range(m + 1):
            g[c] += u[c]
            before[c] += u[c]
    for c in range(m + 1):
        G[k, c] += U[0, c]
    for b in range(size):
        g = G[free[b]]
        for X in range(full):
            if X >> b & 1:
                for c in range(m + 1):
                    g[c] += V[X, c]


@helper
def mean_holding_times(I, h, l, chain, length, free, size, own, rate, moving, rest, stop_rate):
    """Fill ``I[a, X]``, the mean time in the state (a, X), which is 1 / exit rate.

    The exit rate is the sum of the rates of the moving columns and of the absent steady items, plus
    `rest` and `stop_rate`.
    """
    full = 1 << size
    zero = full - full
    one = zero + 1
    absent = np.empty(full)
    for X in range(full):
        absent[X] = stop_rate + rest
        for b in range(size):
            if own[free[b]] == moving and not X >> b & 1:
                absent[X] += rate[free[b]]
    left = 0.0
    for a in range(length, -1, -1):
        if a < length and own[chain[a]] == moving:
            left += rate[chain[a]]
        total = I[a]
        for X in range(full):
            total[X] = left + absent[X]
    add_product(I, h.reshape(-1), h.shape[1], one, l, zero, full, length + 1, moving)
    for a in range(length + 1):
        total = I[a]
        for X in range(full):
            total[X] = 1.0 / total[X]


@helper
def moving_columns(moving, own, Wc):
    """List the moving columns, to which all columns outside S belong; return their number.

    ``own[i]`` receives the position of item i in this list, or the length of the list if i is
    steady.
    """
    k, m = Wc.shape
    count = 0
    for c in range(m):
        steady = c < k
        for b in range(k):
            if b != c and Wc[b, c] != 1.0:
                steady = False
        if c < k:
            own[c] = -1 if steady else count
        if not steady:
            moving[count] = c
            count += 1
    for c in range(k):
        if own[c] < 0:
            own[c] = count
    return count


@helper
def choose_block(free, chain, order, partition, start, is_free):
    """Choose the free items: those of `partition` from `start` on; fill the chain with the others.

    If the end of `partition` is reached, the choice continues at its beginning.
    """
    k = order.shape[0]
    size = free.shape[0]
    for b in range(size):
        free[b] = partition[(start + b) % k]
        is_free[free[b]] = True
    a = 0
    for place in range(k):
        if not is_free[order[place]]:
            chain[a] = order[place]
            a += 1
    for b in range(size):
        is_free[free[b]] = False


@kernel
def relocate(G, kept, order, columns, block, burn_in, sweeps, every, rng):
    """Run `burn_in` and then `sweeps` sweeps from `order`; return the number of terms added to G.

    `order` contains at least two columns (positions in the set). It is changed to the last order.
    `columns` are `SetColumns`. After the burn-in, the conditional expectation of the gradient is
    added to G for only one in `every` blocks. G has the axes of `lattice.gradient`. If `kept` has
    rows, row i receives the order after sweep i (the burn-in is not counted).
    """
    Wc = columns.Wc
    rate = columns.rate
    rest = columns.rest
    stop_rate = columns.stop_rate
    k, m = Wc.shape
    size = max(2, min(block, k))
    full = 1 << size
    length = k - size
    itself = np.arange(k)
    own = np.empty(k, np.int64)
    which = np.empty(m, np.int64)
    moving = moving_columns(which, own, Wc)
    Wm = np.empty((k, moving))
    rate_m = np.empty(moving)
    for q in range(moving):
        rate_m[q] = rate[which[q]]
        for b in range(k):
            Wm[b, q] = Wc[b, which[q]]
    h = np.empty((length + 1, m))
    hm = np.empty((length + 1, moving))
    U = np.empty((length + 1, m + 1))
    V = np.empty((full, m + 1))
    l = np.empty((m, full))
    lT = np.empty((full, m))
    lm = np.ones((moving + 1, full))
    lmT = np.empty((full, moving))
    I = np.empty((length + 1, full))
    F = np.empty((length + 1, full))
    T = np.empty((length + 1, full))
    E = np.empty((length + 1, full))
    scale = np.empty(length + 1)
    next_rate = np.empty(length)
    free_rate = np.empty((length + 1, size))
    chain = np.empty(length, np.int64)
    free = np.empty(size, np.int64)
    is_free = np.zeros(k, np.bool_)
    partition = np.arange(k)
    terms = 0
    blocks = 0
    for sweep in range(burn_in + sweeps):
        shuffle(partition, rng)
        for start in range(0, k, size):
            choose_block(free, chain, order, partition, start, is_free)
            free_tables(lm, lmT, free, size, Wm, own, moving)
            chain_rates(hm, chain, length, Wm, own, rate_m, moving)
            step_rates(next_rate, free_rate, hm, chain, length, free, size, own, rate, moving)
            mean_holding_times(
                I, hm, lm, chain, length, free, size, own, rate, moving, rest, stop_rate
            )
            forward(F, I, scale, next_rate, free_rate, lm, chain, length, free, size, own)
            if sweep >= burn_in:
                if blocks % every == 0:
                    backward(
                        T, F, I, scale, next_rate, free_rate, lm, chain, length, free, size, own
                    )
                    free_tables(l, lT, free, size, Wc, itself, m)
                    chain_rates(h, chain, length, Wc, itself, rate, m)
                    add_gradient(G, F, T, E, U, V, scale, h, l, lT, chain, length, free, size, m, k)
                    terms += 1
                blocks += 1
            draw(order, F, scale, next_rate, free_rate, lm, chain, length, free, size, own, rng)
        row = sweep - burn_in
        if 0 <= row < kept.shape[0]:
            for place in range(k):
                kept[row, place] = order[place]
    return terms
