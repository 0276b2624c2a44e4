"""The paper's sampler of orders: independent Metropolis-Hastings (appendix E).

The sampler `relocation` needs far fewer operations for the same error. So this sampler is used only
for sets at known times, which `relocation` does not support, and if a user requests it for a
comparison. The uniform proposal draws all permutations with the same probability. The informed
proposal is Algorithm 2 with two errors corrected: Q_val starts at 1, and the last line divides by
the sum of u. For sets of two items, the informed proposal is the exact distribution of the order.
"""

import math

import numpy as np

from sequela.kernels.contour import transient_chain
from sequela.kernels.gemm import lane_dot, lane_sum
from sequela.kernels.relocation import shuffle
from sequela.support.jit import helper, kernel


@kernel
def propose_informed(order, given, columns, rates, u, left, rng):
    """Draw `order` by Algorithm 2, or keep it if `given` is true; return log Q(order).

    `columns` are `SetColumns`; `rates`, `u` and `left` are scratch.
    """
    Wc = columns.Wc
    effects = columns.effects
    rate = columns.rate
    constant = columns.stop_rate + columns.rest
    k, m = Wc.shape
    for c in range(m):
        rates[c] = rate[c]
    for b in range(k):
        left[b] = b
    log_q = 0.0
    for place in range(k):
        remaining = k - place
        largest = -np.inf
        for at in range(remaining):
            v = left[at]
            own = Wc[v]
            # Leave the rate of v out of the sum. If this rate were nearly the whole sum,
            # subtracting it later would lose digits.
            kept = rates[v]
            rates[v] = 0.0
            d = constant + lane_dot(rates, own, m)
            rates[v] = kept
            log_u = -math.log(d)
            for other in range(remaining):
                if other != at:
                    log_u += effects[v, left[other]]
            u[at] = log_u
            largest = max(largest, log_u)
        total = 0.0
        for at in range(remaining):
            u[at] = math.exp(u[at] - largest)
            total += u[at]
        at = 0
        if given:
            while left[at] != order[place]:
                at += 1
        else:
            point = rng.random() * total
            while at < remaining - 1 and point >= u[at]:
                point -= u[at]
                at += 1
        v = left[at]
        log_q += math.log(u[at] / total)
        order[place] = v
        left[at] = left[remaining - 1]
        for c in range(m):
            rates[c] *= Wc[v, c]
        rates[v] = 0.0
    return log_q


@helper
def order_weight(h, hold, exits, order, columns, t):
    """Fill the rates and the mean times spent along `order`; return the log-probability of `order`.

    If the time is unknown (t is NaN), this is the probability of eq. (6) without the factor for the
    rate of the observation. If the time t is known, it is the probability of section 4.2.
    """
    Wc = columns.Wc
    rate = columns.rate
    k, m = Wc.shape
    known = t == t
    log_p = 0.0
    for c in range(m):
        h[0, c] = rate[c]
    for a in range(k + 1):
        total = columns.rest if known else columns.stop_rate + columns.rest
        total += lane_sum(h[a], m)
        if known:
            exits[a] = total
        else:
            hold[a] = 1.0 / total
            log_p -= math.log(total)
        if a < k:
            v = order[a]
            log_p += math.log(h[a, v])
            for c in range(m):
                h[a + 1, c] = h[a, c] * Wc[v, c]
            h[a + 1, v] = 0.0
    if known:
        log_p += transient_chain(t, exits, hold)
    return log_p


@helper
def add_order_gradient(G, times, h, hold, order, later):
    """Add the gradient of log p of one order, multiplied by `times`, to G.

    G has the axes of the array in `lattice.gradient`.
    """
    k = order.shape[0]
    m = later.shape[0] - 1
    for c in range(m + 1):
        later[c] = 0.0
    for a in range(k, -1, -1):
        for c in range(m):
            later[c] -= hold[a] * h[a, c]
        later[m] += hold[a]
        if a < k:
            later[order[a]] += 1.0
        row = G[order[a - 1] if a > 0 else k]
        for c in range(m + 1):
            row[c] += times * later[c]


@kernel
def metropolis(G, order, columns, t, informed, resume, burn_in, draws, rng):
    """Run the chain; add the gradients of `draws` states to G; return the number of acceptances.

    If `resume` is true, the chain continues from `order`. Otherwise it starts from a draw of the
    proposal, and the content of `order` is not used. If the time t is known (not NaN), the orders
    are drawn given t.
    """
    k, m = columns.Wc.shape
    proposal = np.empty(k, np.int64)
    rates = np.empty(m)
    u = np.empty(k)
    left = np.empty(k, np.int64)
    later = np.empty(m + 1)
    h = np.empty((k + 1, m))
    hold = np.empty(k + 1)
    exits = np.empty(k + 1)
    new_h = np.empty((k + 1, m))
    new_hold = np.empty(k + 1)
    current = -np.inf
    accepted = 0
    stayed = 0.0
    drawn = (
        columns.rest < 0.0
    )  # a variable that is False, because Numba would compile another copy for a literal
    if resume:
        log_q = 0.0
        if informed:
            log_q = propose_informed(order, not drawn, columns, rates, u, left, rng)
        current = -log_q + order_weight(h, hold, exits, order, columns, t)
    for draw in range(0 if resume else -1, burn_in + draws):
        if draw == burn_in:
            stayed = 0.0
            accepted = 0
        if informed:
            log_q = propose_informed(proposal, drawn, columns, rates, u, left, rng)
        else:
            for b in range(k):
                proposal[b] = b
            shuffle(proposal, rng)
            log_q = 0.0
        weight = -log_q + order_weight(new_h, new_hold, exits, proposal, columns, t)
        if math.log(1.0 - rng.random()) < weight - current:
            if stayed > 0.0:
                add_order_gradient(G, stayed, h, hold, order, later)
                stayed = 0.0
            current = weight
            h, new_h = new_h, h
            hold, new_hold = new_hold, hold
            for b in range(k):
                order[b] = proposal[b]
            accepted += 1
        if draw >= burn_in:
            stayed += 1.0
    add_order_gradient(G, stayed, h, hold, order, later)
    return accepted
