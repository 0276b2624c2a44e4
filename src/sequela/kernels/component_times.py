"""Arrival times of the items of a component, given a posterior of the observation time.

One pass over the adjoint functions (as for gradients, `components.component_gradient`) gives the
means and second moments of arrival times, and the orders of items of the same component. The order
of two items of different components needs more: the probabilities of the states at times s before
an observation at t. Gradients between components need the same probabilities (`crossing`).
"""

import numpy as np

from sequela.kernels.components import add_later
from sequela.kernels.crossing import all_states
from sequela.kernels.gemm import lane_dot
from sequela.kernels.panels import reverse_time, solve_forward
from sequela.support.jit import helper, kernel


@helper
def times_twice(product, y, half, middle):
    """Fill the coefficients of 2 t y(t), but only up to the highest degree of y."""
    degrees, panels = y.shape
    for n in range(degrees):
        below = n / (2 * n - 1)
        above = (n + 1) / (2 * n + 3)
        for j in range(panels):
            shifted = 0.0
            if n > 0:
                shifted += below * y[n - 1, j]
            if n + 1 < degrees:
                shifted += above * y[n + 1, j]
            product[n, j] = 2.0 * (middle[j] * y[n, j] + half[j] * shifted)


@kernel
def component_arrivals(first, second, before, P, rates, exits, slowest, half, source, k):
    """Fill the mean and second moment of the arrival time of each item, and ``before[b, c]``.

    `source` is the posterior of the observation time, divided by the probability of the component
    at this time. Let L be the adjoint functions of `components.component_gradient` for this source.
    Then P[R](s) L[R](s) is the posterior probability that the state at time s is R and that the
    observation is later. An item that arrives after s is absent at s. So the mean arrival time is
    the integral over s of the probability that the item is absent, and the second moment is the
    integral of 2 s times this probability. ``before[b, c]`` is the probability that c arrives while
    b is present.

    For each item, the probability that it arrives should be 1. Return the largest deviation from 1.
    """
    degrees, panels = P.shape[1:]
    size = degrees * panels
    full = (1 << k) - 1
    room = np.empty((2, degrees, panels))
    reversed_half = half[::-1].copy()
    middle = np.empty(panels)
    edge = 0.0
    for j in range(panels):
        middle[j] = edge + half[j]
        edge += 2.0 * half[j]
    one = np.ones((degrees, panels))
    weight = np.empty((degrees, panels))
    for n in range(degrees):
        for j in range(panels):
            weight[n, j] = 2.0 * half[j] / (2 * n + 1)
    L = np.empty((1 << k, degrees, panels))
    flat = L.reshape((1 << k, size))
    f = np.empty((degrees, panels))
    later = np.empty((degrees, panels))
    here = np.empty((degrees, panels))
    flat_here = here.reshape(size)
    arrived = np.zeros(k)
    for b in range(k):
        first[b] = 0.0
        second[b] = 0.0
        for c in range(k):
            before[b, c] = 0.0
    for R in range(full, -1, -1):
        if full == R:
            reverse_time(f, source, one)
        else:
            for n in range(degrees):
                for j in range(panels):
                    f[n, j] = 0.0
        add_later(f, rates, L, R, k)
        solve_forward(L[R], f, exits[R] - slowest, 0.0, reversed_half, room)
        if full == R:
            continue
        times_twice(later, P[R], half, middle)
        reverse_time(here, later, weight)
        square = lane_dot(flat_here, flat[R], size)
        reverse_time(here, P[R], weight)
        stay = lane_dot(flat_here, flat[R], size)
        for c in range(k):
            if not R >> c & 1:
                first[c] += stay
                second[c] += square
                step = rates[R, c] * lane_dot(flat_here, flat[R | (1 << c)], size)
                arrived[c] += step
                for b in range(k):
                    if R >> b & 1:
                        before[b, c] += step
    worst = 0.0
    for c in range(k):
        worst = max(worst, abs(arrived[c] - 1.0))
    return worst


@kernel
def states_at_moments(X, counts, arrivals, P, B, rates, before, after, total, k):
    """Fill probabilities for the states of a component at moments before its observation.

    The component is observed in its full state, and a is the index of a moment before this
    observation. ``X[b, a]`` is the probability that item b is present. ``counts[j, a]`` is the
    probability that j items are present. ``arrivals[b, j, a]`` is the density of the arrival of b
    after j other items of its component. `total` is the probability that the component has exactly
    its items at the observation. `crossing.presence_and_steps` explains the other arguments. At
    every moment, the probabilities of all states must add up to 1. Return the largest deviation
    from 1.
    """
    states = 1 << k
    p = np.empty(states)
    b = np.empty(states)
    size = np.zeros(states, np.int64)
    for R in range(1, states):
        size[R] = size[R >> 1] + (R & 1)
    worst = 0.0
    for a in range(X.shape[1]):
        all_states(p, P[before.panel[a]], before.values[a])
        all_states(b, B[after.panel[a]], after.values[a])
        for item in range(k):
            X[item, a] = 0.0
            for j in range(k):
                arrivals[item, j, a] = 0.0
        for j in range(k + 1):
            counts[j, a] = 0.0
        found = 0.0
        for R in range(states):
            here = p[R] / total
            joint = here * b[R]
            found += joint
            counts[size[R], a] += joint
            for item in range(k):
                if R >> item & 1:
                    X[item, a] += joint
                else:
                    arrivals[item, size[R], a] += here * rates[item, R] * b[R | (1 << item)]
        worst = max(worst, abs(found - 1.0))
    return worst
