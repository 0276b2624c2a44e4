"""Laplace transforms of the probabilities of the states of a component, and their derivatives.

If the component leaves state R at the rate q(R), the transform of its probability is

    T_z(R) = (sum over b in R of r_b(R - b) T_z(R - b)) / (z + q(R)),

where the sum is 1 for the empty state. The transform is computed for all nodes z of a path in the
complex plane together. Real and imaginary parts are separate arrays, so that the compiler can
vectorise the loops.
"""

import numpy as np

from sequela.kernels.gemm import lane_dot
from sequela.support.jit import helper, kernel


@helper
def divide(re, im, z_re, z_im, q):
    """Divide a row by z + q, in place."""
    for m in range(re.shape[0]):
        a = z_re[m] + q
        b = z_im[m]
        size = 1.0 / (a * a + b * b)
        x = re[m]
        y = im[m]
        re[m] = (x * a + y * b) * size
        im[m] = (y * a - x * b) * size


@kernel
def transform_forward(T, rates, exits, z, k):
    """Fill ``T[0, R, m]`` and ``T[1, R, m]``, the real and the imaginary part at the node m.

    ``z[0]`` and ``z[1]`` are the real and imaginary parts of the nodes. `components.subset_rates`
    computes `rates` and `exits`.
    """
    nodes = z.shape[1]
    for R in range(1 << k):
        re = T[0, R]
        im = T[1, R]
        for m in range(nodes):
            re[m] = 1.0 if R == 0 else 0.0
            im[m] = 0.0
        for c in range(k):
            if R >> c & 1:
                before = R ^ (1 << c)
                r = rates[before, c]
                from_re = T[0, before]
                from_im = T[1, before]
                for m in range(nodes):
                    re[m] += r * from_re[m]
                    im[m] += r * from_im[m]
        divide(re, im, z[0], z[1], exits[R])


@kernel
def transform_gradient(G, T, rates, exits, z, weights, k):
    """Fill G, the derivatives of the real part of the sum over m of weights[m] T[full, m].

    ``G[b, c]`` is the derivative by the effect of item b on column c, and ``G[k, c]`` is the
    derivative by the log base rate of column c. ``weights[0]`` and ``weights[1]`` are the real and
    the imaginary parts.
    """
    nodes = z.shape[1]
    columns = rates.shape[1]
    full = (1 << k) - 1
    # Each row of L contains the real parts of all nodes, and then their imaginary parts.
    L = np.empty((1 << k, 2 * nodes))
    here = np.empty(2 * nodes)
    steps = np.empty(columns)
    for b in range(k + 1):
        for c in range(columns):
            G[b, c] = 0.0
    for R in range(full, -1, -1):
        re = L[R, :nodes]
        im = L[R, nodes:]
        for m in range(nodes):
            re[m] = weights[0, m] if full == R else 0.0
            im[m] = weights[1, m] if full == R else 0.0
        for c in range(k):
            if not R >> c & 1:
                r = rates[R, c]
                after = L[R | (1 << c)]
                for m in range(nodes):
                    re[m] += r * after[m]
                    im[m] += r * after[nodes + m]
        divide(re, im, z[0], z[1], exits[R])
        # The real part of a sum of complex products is a scalar product of real numbers, in which
        # the imaginary parts of one factor have the opposite sign.
        for m in range(nodes):
            here[m] = T[0, R, m]
            here[nodes + m] = -T[1, R, m]
        stay = lane_dot(here, L[R], 2 * nodes)
        for c in range(columns):
            steps[c] = -rates[R, c] * stay
        for c in range(k):
            if not R >> c & 1:
                steps[c] += rates[R, c] * lane_dot(here, L[R | (1 << c)], 2 * nodes)
        for c in range(columns):
            G[k, c] += steps[c]
        for b in range(k):
            if R >> b & 1:
                for c in range(columns):
                    if c != b:
                        G[b, c] += steps[c]
