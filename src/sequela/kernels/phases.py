"""Likelihood of sets if the observation time is not exponential, by phases.

A gamma distributed time is the sum of several exponential times (the *stages*) and one time from a
*mixture* of exponential distributions. A heavy-tailed time comes from a mixture alone. Let T be the
matrix of the rates between states, and let Q be the diagonal matrix of the exit rates. Then the
probabilities of all states are

    p = [r (r + Q - T)^-1]^stages  sum_j w_j r_j (r_j + Q - T)^-1 e_0,

where r is the rate of the stages, w_j and r_j are the weight and the rate of node j of the mixture,
and e_0 is 1 for the empty set and 0 otherwise. So every stage and every node needs one pass over
the lattice of the set. All numbers in these passes are positive. The gradient needs the same passes
backwards, with transposed matrices. All nodes of the mixture are computed together in one
vectorised pass.
"""

import math

import numpy as np

from sequela.kernels.arguments import ColumnRoom
from sequela.kernels.columns import choose_columns, fits_double
from sequela.kernels.lattice import fold_row, scatter
from sequela.support.jit import helper, kernel


@helper
def subset_tables(q, Q, W, rate, columns, m, k, rest):
    """Fill the rate ``q[c, R]`` of each column in each state (0 if present), and their sum Q."""
    states = 1 << k
    for R in range(states):
        Q[R] = rest
    for c in range(m):
        row = q[c]
        row[0] = rate[columns[c]]
        for b in range(k):
            half = 1 << b
            factor = 0.0 if b == c else W[columns[b], columns[c]]
            for x in range(half):
                row[half + x] = row[x] * factor
        for R in range(states):
            Q[R] += row[R]


@helper
def mixture_forward(A, q, Q, rates, k):
    """Fill ``A[R, j]``, the solution of (r_j + Q - T) A = e_0."""
    lanes = rates.shape[0]
    for R in range(1 << k):
        here = A[R]
        start = 1.0 if R == 0 else 0.0
        for j in range(lanes):
            here[j] = start
        for c in range(k):
            if R >> c & 1:
                before = A[R ^ (1 << c)]
                step = q[c, R ^ (1 << c)]
                for j in range(lanes):
                    here[j] += before[j] * step
        for j in range(lanes):
            here[j] /= rates[j] + Q[R]


@helper
def mixture_backward(Y, b, q, Q, rates, k):
    """Fill ``Y[R, j]``, the solution of (r_j + Q - T)^T Y = b, the transposed equation."""
    lanes = rates.shape[0]
    for R in range((1 << k) - 1, -1, -1):
        here = Y[R]
        for j in range(lanes):
            here[j] = b[R]
        for c in range(k):
            if not R >> c & 1:
                after = Y[R | (1 << c)]
                step = q[c, R]
                for j in range(lanes):
                    here[j] += after[j] * step
        for j in range(lanes):
            here[j] /= rates[j] + Q[R]


@helper
def stage_forward(after, before, q, Q, r, k):
    """Fill ``after`` = r (r + Q - T)^-1 ``before``: the probabilities after one more stage."""
    for R in range(1 << k):
        total = r * before[R]
        for c in range(k):
            if R >> c & 1:
                total += after[R ^ (1 << c)] * q[c, R ^ (1 << c)]
        after[R] = total / (r + Q[R])


@helper
def stage_backward(a, b, q, Q, r, k):
    """Fill a with the product of the transposed matrix of `stage_forward` and b."""
    for R in range((1 << k) - 1, -1, -1):
        total = r * b[R]
        for c in range(k):
            if not R >> c & 1:
                total += a[R | (1 << c)] * q[c, R]
        a[R] = total / (r + Q[R])


@helper
def collect_stage(time, ahead, a, v, scale, k):
    """Add the contributions of one stage to derivatives of p, the probability of the set.

    For this stage, `v` is the result of `stage_forward`, `a` is the result of `stage_backward`, and
    `scale` is 1 / rate.

    ``ahead[c, R]`` is the derivative by the rate of the step R -> R + c. ``time[R]`` is minus the
    derivative by the exit rate of R. It equals p times the mean time spent in R.
    """
    for R in range(1 << k):
        weight = v[R] * scale
        time[R] += weight * a[R]
        for c in range(k):
            if not R >> c & 1:
                ahead[c, R] += weight * (a[R | (1 << c)] - a[R])


@helper
def collect_mixture(time, ahead, Y, A, shares, k):
    """Add the contributions of the mixture, as in `collect_stage`.

    `shares` are the weights of the nodes, each multiplied by the rate of the node.
    """
    lanes = shares.shape[0]
    part = np.empty(lanes)
    for R in range(1 << k):
        for j in range(lanes):
            part[j] = A[R, j] * shares[j]
        total = 0.0
        for j in range(lanes):
            total += part[j] * Y[R, j]
        time[R] += total
        for c in range(k):
            if not R >> c & 1:
                after = Y[R | (1 << c)]
                total = 0.0
                for j in range(lanes):
                    total += part[j] * (after[j] - Y[R, j])
                ahead[c, R] += total


@helper
def gather(G, time, ahead, q, terms, m, k, p):
    """Fill G as `lattice.gradient` does, from the derivatives of p (see `collect_stage`)."""
    states = 1 << k
    for b in range(k + 1):
        for c in range(m + 1):
            G[b, c] = 0.0
    scale = 1.0 / p
    for c in range(m + 1):
        for R in range(states):
            if c == m:
                terms[R] = time[R] * scale
            elif c < k:
                terms[R] = q[c, R] * ahead[c, R] * scale
            else:
                terms[R] = -q[c, R] * time[R] * scale
        G[k, c] = fold_row(G, c, terms, k)


@kernel
def evaluate_phases(tables, sets, chosen, sums, phases, want_gradient):
    """Evaluate the sets `chosen` like `lattice.evaluate_block`, but for times with these `phases`.

    `phases` is a `PhaseTables`.
    """
    log_p = sums.log_p
    in_range = sums.in_range
    n = tables.rate.shape[0]
    lanes = phases.rates.shape[0]
    stages = phases.stages
    r = phases.stage_rate
    largest = 0
    for s in chosen:
        largest = max(largest, sets.start[s + 1] - sets.start[s])
    states = 1 << largest
    q = np.empty((n, states))
    Q = np.empty(states)
    A = np.empty((states, lanes))
    V = np.empty((stages + 1, states))
    Y = np.empty((states if want_gradient else 1, lanes))
    a = np.empty((2, states))
    time = np.empty(states)
    ahead = np.empty((max(largest, 1), states if want_gradient else 1))
    G = np.empty((largest + 1, n + 1))
    shares = phases.weights * phases.rates
    room = ColumnRoom(np.empty(n, np.int64), np.empty(n), np.empty(n), np.zeros(n, np.int64))
    for s in chosen:
        items = sets.items[sets.start[s] : sets.start[s + 1]]
        k = items.shape[0]
        last = (1 << k) - 1
        m, rest = choose_columns(items, tables, room)
        in_range[s] = fits_double(k, m, tables, room, rest)
        if not in_range[s]:
            continue
        subset_tables(q, Q, tables.W, tables.rate, room.columns, m, k, rest)
        mixture_forward(A, q, Q, phases.rates, k)
        for R in range(last + 1):
            total = 0.0
            for j in range(lanes):
                total += shares[j] * A[R, j]
            V[0, R] = total
        for stage in range(stages):
            stage_forward(V[stage + 1], V[stage], q, Q, r, k)
        p = V[stages, last]
        log_p[s] = math.log(p)
        if not want_gradient:
            continue
        for R in range(last + 1):
            time[R] = 0.0
            a[0, R] = 0.0
            for c in range(k):
                ahead[c, R] = 0.0
        a[0, last] = 1.0
        b = a[0]
        other = a[1]
        for stage in range(stages, 0, -1):
            stage_backward(other, b, q, Q, r, k)
            collect_stage(time, ahead, other, V[stage], 1.0 / r, k)
            b, other = other, b
        mixture_backward(Y, b, q, Q, phases.rates, k)
        collect_mixture(time, ahead, Y, A, shares, k)
        gather(G, time, ahead, q, other, m, k, p)
        scatter(sums, sets.weights[s], G, tables, room, m, k)
