"""Derivatives of log p by effects between items of different components, which are zero in theta.

Let i and j belong to different components. Given the observation time t, the derivative of log p(S)
by the effect of i on j is the integral over s in [0, t] of

    P(i is present at s | t) (density of the arrival of j at s - mean rate of j at s | t),

because the two factors are independent. Both factors are computed from the probabilities of the
states of a component, forward from 0 to s and backward from t to s. For every s, the sum over all
states of the products of these probabilities must be the probability of the component at t. As a
check, the kernels return the error of this sum.
"""

import numpy as np

from sequela.kernels.components import add_later
from sequela.kernels.gemm import lane_dot
from sequela.kernels.panels import solve_forward
from sequela.support.jit import helper, kernel


@kernel
def component_backward(B, rates, exits, slowest, half, k):
    """Fill ``B[R]``, the probability of going from state R to the full state in time t, on panels.

    As in `components.component_forward`, the probability is multiplied by exp(slowest t).
    """
    degrees, panels = B.shape[1:]
    full = (1 << k) - 1
    room = np.empty((2, degrees, panels))
    f = np.empty((degrees, panels))
    for R in range(full, -1, -1):
        for n in range(degrees):
            for j in range(panels):
                f[n, j] = 0.0
        add_later(f, rates, B, R, k)
        solve_forward(B[R], f, exits[R] - slowest, 1.0 if full == R else 0.0, half, room)


@helper
def all_states(into, coefficients, values):
    """Fill the values of all states at one time, from ``coefficients[n, R]`` of its panel."""
    states = coefficients.shape[1]
    for R in range(states):
        into[R] = 0.0
    for n in range(values.shape[0]):
        v = values[n]
        row = coefficients[n]
        for R in range(states):
            into[R] += v * row[R]


@helper
def flow_of(p, rates, b, shift, states):
    """Return the sum over R of ``p[R] rates[R] b[R + shift]``, as four sums in a fixed order.

    With four sums, the compiler can use vector instructions, and the result has the same bits on
    every thread (see `support.jit`).
    """
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    whole = states - states % 4
    after = b[shift:]
    for R in range(0, whole, 4):
        s0 += p[R] * rates[R] * after[R]
        s1 += p[R + 1] * rates[R + 1] * after[R + 1]
        s2 += p[R + 2] * rates[R + 2] * after[R + 2]
        s3 += p[R + 3] * rates[R + 3] * after[R + 3]
    rest = 0.0
    for R in range(whole, states):
        rest += p[R] * rates[R] * after[R]
    return (s0 + s2) + (s1 + s3) + rest


@kernel
def presence_and_steps(X, Y, worst, component, moments, totals, needed):
    """Fill ``X[b, a]`` and ``Y[c, a]`` for moments a before observation times.

    X is the probability that item b of the component is present at that moment. Y is the density of
    the arrival of column c minus its mean rate at that moment. Both are conditional on the event
    that the component has exactly its items at the observation time q. The probability of this
    event is ``totals[q]``. `component` contains the functions and rates of the component
    (`CrossTables`), and `moments` contains the moments between 0 and the observation times
    (`Moments`). Only the observation times q with ``needed[q]`` are computed. At every moment, the
    probabilities of all states must add up to 1. ``worst[q]`` receives the largest deviation from 1
    over the moments before q.
    """
    P, B, rates = component.forward, component.backward, component.rates
    m, states = rates.shape
    k = X.shape[0]
    p = np.empty(states)
    # `flow_of` also computes the step of an item that is already present. The rate of this step is
    # 0, but the index of its next state can be beyond the last state. So b is twice as long as p.
    b = np.zeros(2 * states)
    joint = np.empty(states)
    for q in range(needed.shape[0]):
        worst[q] = 0.0
        if not needed[q]:
            continue
        inverse = 1.0 / totals[q]
        for a in range(moments.start[q], moments.start[q + 1]):
            all_states(p, P[moments.before.panel[a]], moments.before.values[a])
            all_states(b[:states], B[moments.after.panel[a]], moments.after.values[a])
            for R in range(states):
                p[R] *= inverse
                joint[R] = p[R] * b[R]
            for c in range(m):
                Y[c, a] = -lane_dot(joint, rates[c], states)
            for c in range(k):
                Y[c, a] += flow_of(p, rates[c], b, 1 << c, states)
            # The states with the highest item are the upper half of `joint`. Their sum is the
            # result for this item. The upper half is then added to the lower half, which is treated
            # in the same way for the next item.
            for item in range(k - 1, -1, -1):
                half = 1 << item
                contained = 0.0
                for R in range(half):
                    contained += joint[half + R]
                    joint[R] += joint[half + R]
                X[item, a] = contained
            worst[q] = max(worst[q], abs(joint[0] - 1.0))


@kernel
def add_pairs(total, products, pooled, rows, columns):
    """Add ``products[r, c]``, times a weight, to the entry of `total` for its pair of items.

    One item belongs to row r, the other to column c (`Places`). The weight is
    ``pooled[rows.part[r], columns.part[c]]``, the sum of the weights of the sets that contain both
    parts.
    """
    for r in range(products.shape[0]):
        into = total[rows.item[r]]
        weights = pooled[rows.part[r]]
        for c in range(products.shape[1]):
            into[columns.item[c]] += products[r, c] * weights[columns.part[c]]
