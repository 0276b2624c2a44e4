"""Orders of a large set, sampled by relocating small random blocks exactly.

All items of S but `block` of them keep their relative order: the chain. The free ones may stand
anywhere, so a state is (a, X): the first a chain items and the subset X of the free ones are
present; (k - block + 1) * 2^block states in all. On them run the same recursions as on the full
lattice, which give an exact draw of the free items' places given the rest, and the exact
conditional expectation of the gradient over those places (Rao-Blackwell).

Rates factorise as on the lattice, ``r_c(a, X) = h[a, c] l[c, X]``, with h along the chain.
A sweep relocates every item once, in a random partition into blocks.
"""

import numpy as np

from sequela._jit import kernel
from sequela.likelihood._kernels.gemm import add_product


@kernel
def shuffle(order, rng):
    """Permute `order` uniformly at random, in place."""
    for i in range(order.shape[0] - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        order[i], order[j] = order[j], order[i]


@kernel
def free_tables(l, lT, free, block, Wc, m):
    """Fill ``l[c, X]`` and its transpose: effect of the free items of X on column c."""
    for c in range(m):
        lT[0, c] = 1.0
    for b in range(block):
        half = 1 << b
        effects = Wc[free[b]]
        for X in range(half):
            source = lT[X]
            target = lT[half + X]
            for c in range(m):
                target[c] = source[c] * effects[c]
            target[free[b]] = 0.0
    for X in range(1 << block):
        for c in range(m):
            l[c, X] = lT[X, c]


@kernel
def chain_rates(h, chain, length, Wc, rate, m):
    """Fill ``h[a, c]``: base rate of column c times the effects of the first a chain items."""
    for c in range(m):
        h[0, c] = rate[c]
    for a in range(length):
        effects = Wc[chain[a]]
        source = h[a]
        target = h[a + 1]
        for c in range(m):
            target[c] = source[c] * effects[c]
        target[chain[a]] = 0.0


@kernel
def forward(F, I, scale, h, l, chain, length, free, block):
    """Fill F over (a, X), each row divided by ``scale[a]`` to stay in range."""
    full = 1 << block
    for a in range(length + 1):
        f = F[a]
        for X in range(full):
            f[X] = 0.0
        if a == 0:
            f[0] = 1.0
        else:
            c = chain[a - 1]
            r = h[a - 1, c]
            before = F[a - 1]
            for X in range(full):
                f[X] = before[X] * (r * l[c, X])
        for X in range(full):
            arrived = f[X]
            for b in range(block):
                if X >> b & 1:
                    other = X ^ (1 << b)
                    arrived += f[other] * (h[a, free[b]] * l[free[b], other])
            f[X] = arrived * I[a, X]
        largest = 0.0
        for X in range(full):
            largest = max(largest, f[X])
        scale[a] = largest
        inverse = 1.0 / largest
        for X in range(full):
            f[X] *= inverse


@kernel
def backward(T, F, I, scale, h, l, chain, length, free, block):
    """Fill T such that F * T is the posterior mean time spent in each state."""
    full = 1 << block
    for a in range(length, -1, -1):
        t = T[a]
        if a == length:
            for X in range(full):
                t[X] = 0.0
            t[full - 1] = 1.0 / F[length, full - 1]
        else:
            c = chain[a]
            r = h[a, c] / scale[a + 1]
            after = T[a + 1]
            for X in range(full):
                t[X] = after[X] * (r * l[c, X])
        for X in range(full - 1, -1, -1):
            leaving = t[X]
            for b in range(block):
                if not X >> b & 1:
                    leaving += t[X | (1 << b)] * (h[a, free[b]] * l[free[b], X])
            t[X] = leaving * I[a, X]


@kernel
def draw(order, F, scale, h, l, chain, length, free, block, rng):
    """Draw the free items' places given the chain, backwards from the full set; fill `order`."""
    a = length
    X = (1 << block) - 1
    for place in range(length + block - 1, -1, -1):
        total = 0.0
        if a > 0:
            c = chain[a - 1]
            total = F[a - 1, X] * (h[a - 1, c] * l[c, X]) / scale[a]
        from_chain = total
        for b in range(block):
            if X >> b & 1:
                other = X ^ (1 << b)
                total += F[a, other] * (h[a, free[b]] * l[free[b], other])
        u = rng.random() * total
        last = -1
        if u >= from_chain or a == 0:
            u -= from_chain
            for b in range(block):
                if X >> b & 1:
                    other = X ^ (1 << b)
                    last = b
                    u -= F[a, other] * (h[a, free[b]] * l[free[b], other])
                    if u < 0.0:
                        break
        if last >= 0:
            X ^= 1 << last
            order[place] = free[last]
        else:
            a -= 1
            order[place] = chain[a]


@kernel
def add_gradient(G, F, T, E, U, V, scale, h, l, lT, chain, length, free, block, m, k):
    """Add to G (layout of `lattice.gradient`) its expectation over the free items' places."""
    full = 1 << block
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
    add_product(U, flat, full, one, lT, length + 1, full, m)
    add_product(V, flat, one, full, h, full, length + 1, m)
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
        # Probabilities of the steps: of the free items, and of the chain's next one.
        for b in range(block):
            c = free[b]
            for X in range(full):
                if not X >> b & 1:
                    g = F[a, X] * (h[a, c] * l[c, X]) * T[a, X | (1 << b)]
                    U[a, c] += g
                    V[X, c] += g
        if a < length:
            c = chain[a]
            r = h[a, c] / scale[a + 1]
            for X in range(full):
                g = F[a, X] * (r * l[c, X]) * T[a + 1, X]
                U[a, c] += g
                V[X, c] += g
    # A chain item is present in all later rows: sums from the end.
    for a in range(length, 0, -1):
        u = U[a]
        before = U[a - 1]
        g = G[chain[a - 1]]
        for c in range(m + 1):
            g[c] += u[c]
            before[c] += u[c]
    for c in range(m + 1):
        G[k, c] += U[0, c]
    for b in range(block):
        g = G[free[b]]
        for X in range(full):
            if X >> b & 1:
                for c in range(m + 1):
                    g[c] += V[X, c]


@kernel
def relocate(G, order, Wc, rate, rest, observation_rate, block, burn_in, sweeps, every, rng):
    """Run `burn_in` and then `sweeps` sweeps from `order`; return how many terms G received.

    `order` holds columns (places in the set) and is left at the chain's last state. ``Wc[b, c]``
    is the effect of item b of S on column c, `rate` the columns' base rates. Every `every`-th
    block adds its conditional expectation of the gradient to G, layout as in `lattice.gradient`.
    """
    k, m = Wc.shape
    block = min(block, k)
    most = 1 << block
    h = np.empty((k + 1, m))
    U = np.empty((k + 1, m + 1))
    V = np.empty((most, m + 1))
    l_ = np.empty(m * most)
    lT_ = np.empty(m * most)
    I_ = np.empty((k + 1) * most)
    F_ = np.empty((k + 1) * most)
    T_ = np.empty((k + 1) * most)
    E_ = np.empty((k + 1) * most)
    scale = np.empty(k + 1)
    chain = np.empty(k, np.int64)
    free = np.empty(block, np.int64)
    is_free = np.zeros(k, np.bool_)
    partition = np.arange(k)
    one = m // m
    terms = 0
    blocks = 0
    for sweep in range(burn_in + sweeps):
        shuffle(partition, rng)
        for start in range(0, k, block):
            size = min(block, k - start)
            full = 1 << size
            length = k - size
            for b in range(size):
                free[b] = partition[start + b]
                is_free[free[b]] = True
            a = 0
            for place in range(k):
                if not is_free[order[place]]:
                    chain[a] = order[place]
                    a += 1
            for b in range(size):
                is_free[free[b]] = False
            l = l_[: m * full].reshape((m, full))
            lT = lT_[: m * full].reshape((full, m))
            I = I_[: (k + 1) * full].reshape((k + 1, full))
            F = F_[: (k + 1) * full].reshape((k + 1, full))
            free_tables(l, lT, free, size, Wc, m)
            chain_rates(h, chain, length, Wc, rate, m)
            for a in range(length + 1):
                for X in range(full):
                    I[a, X] = observation_rate + rest
            add_product(I, h.reshape(-1), m, one, l, length + 1, m, full)
            for a in range(length + 1):
                for X in range(full):
                    I[a, X] = 1.0 / I[a, X]
            forward(F, I, scale, h, l, chain, length, free, size)
            if sweep >= burn_in:
                if blocks % every == 0:
                    T = T_[: (k + 1) * full].reshape((k + 1, full))
                    E = E_[: (k + 1) * full].reshape((k + 1, full))
                    backward(T, F, I, scale, h, l, chain, length, free, size)
                    add_gradient(
                        G, F, T, E, U, V, scale, h, l, lT, chain, length, free, size, m, k
                    )
                    terms += 1
                blocks += 1
            draw(order, F, scale, h, l, chain, length, free, size, rng)
    return terms
