"""Components: groups of items that influence one another (see docs/maths.md).

Given the observation time, the components of a set are independent. Two items belong to the same
component if one acts on the other, or if both act on the same item outside the set. The probability
that a component has exactly its items at time t is a function of time. It is stored on panels
(`panels`), and computed by a recursion over the subsets of the component. The likelihood of the set
is one integral over time of the product of these functions.
"""

import math

import numpy as np

from sequela.kernels.gemm import lane_dot
from sequela.kernels.panels import reverse_time, solve_forward
from sequela.support.jit import helper, kernel


@kernel
def subset_rates(rates, exits, theta, columns, k):
    """Fill ``rates[R, c]``, the rate of column c in state R, and ``exits[R]``, their sum.

    The first k columns are the items of the component, whose rate is 0 once they are present. The
    other columns are the items outside the set on which the component acts.
    """
    m = columns.shape[0]
    for c in range(m):
        rates[0, c] = math.exp(theta[columns[c], columns[c]])
    for b in range(k):
        half = 1 << b
        for R in range(half):
            for c in range(m):
                if c == b:
                    rates[half + R, c] = 0.0
                else:
                    rates[half + R, c] = rates[R, c] * math.exp(theta[columns[b], columns[c]])
    for R in range(1 << k):
        total = 0.0
        for c in range(m):
            total += rates[R, c]
        exits[R] = total


@helper
def add_source(f, rates, P, R, k):
    """Fill f with the flow of probability into state R from all states with one item less."""
    degrees, panels = f.shape
    for n in range(degrees):
        for j in range(panels):
            f[n, j] = 0.0
    for c in range(k):
        if R >> c & 1:
            before = R ^ (1 << c)
            r = rates[before, c]
            source = P[before]
            for n in range(degrees):
                for j in range(panels):
                    f[n, j] += r * source[n, j]


@helper
def add_later(f, rates, later, R, k):
    """Add to f the functions of all states R + c, each times the rate of the step R -> R + c."""
    degrees, panels = f.shape
    for c in range(k):
        if not R >> c & 1:
            r = rates[R, c]
            after = later[R | (1 << c)]
            for n in range(degrees):
                for j in range(panels):
                    f[n, j] += r * after[n, j]


@kernel
def component_forward(P, rates, exits, slowest, half, k):
    """Fill ``P[R]``, the probability of state R at time t, times exp(slowest t), on panels.

    `slowest` is the smallest exit rate. Without the factor exp(slowest t), all functions would
    decrease at least as fast as exp(-slowest t), and their values at late times would be lost in
    rounding.
    """
    degrees, panels = P.shape[1:]
    room = np.empty((2, degrees, panels))
    f = np.zeros((degrees, panels))
    solve_forward(P[0], f, exits[0] - slowest, 1.0, half, room)
    for R in range(1, 1 << k):
        add_source(f, rates, P, R, k)
        solve_forward(P[R], f, exits[R] - slowest, 0.0, half, room)


@kernel
def component_gradient(G, P, rates, exits, slowest, half, source, k):
    """Fill G, the derivatives of the integral of source(t) P[full](t).

    ``G[b, c]`` is the derivative by the effect of item b on column c, and ``G[k, c]`` is the
    derivative by the log base rate of column c. Column m contains times: ``G[b, m]`` is the time
    during which item b is present, and ``G[k, m]`` is the total time.

    The adjoint functions L[R] solve -L[R]' = sum over c of r_c(R) L[R + c] - q(R) L[R]. For the
    full state, the source is added to the right side. The derivatives are integrals of P[R] r_c(R)
    (L[R + c] - L[R]). L is stored in reversed time, because `solve_forward` can then solve its
    equation.
    """
    degrees, panels = P.shape[1:]
    size = degrees * panels
    m = rates.shape[1]
    full = (1 << k) - 1
    room = np.empty((2, degrees, panels))
    reversed_half = half[::-1].copy()
    one = np.ones((degrees, panels))
    weight = np.empty((degrees, panels))
    for n in range(degrees):
        for j in range(panels):
            weight[n, j] = 2.0 * half[j] / (2 * n + 1)
    L = np.empty((1 << k, degrees, panels))
    flat = L.reshape((1 << k, size))
    f = np.empty((degrees, panels))
    here = np.empty((degrees, panels))
    flat_here = here.reshape(size)
    for b in range(k + 1):
        for c in range(m + 1):
            G[b, c] = 0.0
    steps = np.empty(m + 1)
    for R in range(full, -1, -1):
        if full == R:
            reverse_time(f, source, one)
        else:
            for n in range(degrees):
                for j in range(panels):
                    f[n, j] = 0.0
        add_later(f, rates, L, R, k)
        solve_forward(L[R], f, exits[R] - slowest, 0.0, reversed_half, room)
        reverse_time(here, P[R], weight)
        stay = lane_dot(flat_here, flat[R], size)
        for c in range(m):
            steps[c] = -rates[R, c] * stay
        for c in range(k):
            if not R >> c & 1:
                steps[c] += rates[R, c] * lane_dot(flat_here, flat[R | (1 << c)], size)
        steps[m] = stay
        for c in range(m + 1):
            G[k, c] += steps[c]
        for b in range(k):
            if R >> b & 1:
                for c in range(m + 1):
                    if c != b:
                        G[b, c] += steps[c]


@kernel
def integrate_sets(log_p, posterior, components, isolated, lists, drop, times, log_weights):
    """Integrate over time: fill log p of each set and the posterior probabilities of its time.

    ``components[c, i]`` is the log-probability of component c at time i. ``isolated[a, i]`` is the
    log-probability that the isolated item a is present at time i. `lists` contains the components
    and isolated items of each set (`ProductLists`). ``drop[s]`` is the sum of the rates of the
    observation and of all absent items on which set s does not act. ``posterior[s]`` sums to 1.
    """
    count = times.shape[0]
    for s in range(log_p.shape[0]):
        row = posterior[s]
        for i in range(count):
            row[i] = log_weights[i] - drop[s] * times[i]
        for at in range(lists.component_start[s], lists.component_start[s + 1]):
            part = components[lists.components[at]]
            for i in range(count):
                row[i] += part[i]
        for at in range(lists.isolated_start[s], lists.isolated_start[s + 1]):
            part = isolated[lists.isolated[at]]
            for i in range(count):
                row[i] += part[i]
        largest = row[0]
        for i in range(count):
            largest = max(largest, row[i])
        total = 0.0
        for i in range(count):
            # Numbers below exp(-700) are negligible. They are set to 0, because arithmetic with
            # denormal numbers would be slow.
            row[i] = math.exp(row[i] - largest) if row[i] - largest > -700.0 else 0.0
            total += row[i]
        for i in range(count):
            row[i] /= total
        log_p[s] = largest + math.log(total)


@kernel
def pool_posteriors(component_sums, isolated_sums, posterior, weights, lists):
    """Add each set's posterior, times its weight, to the sums of its components and isolated items.

    ``posterior[s]`` contains the probabilities of the times, from `integrate_sets`.
    """
    count = posterior.shape[1]
    for s in range(posterior.shape[0]):
        row = posterior[s]
        w = weights[s]
        for at in range(lists.component_start[s], lists.component_start[s + 1]):
            into = component_sums[lists.components[at]]
            for i in range(count):
                into[i] += w * row[i]
        for at in range(lists.isolated_start[s], lists.isolated_start[s + 1]):
            into = isolated_sums[lists.isolated[at]]
            for i in range(count):
                into[i] += w * row[i]
