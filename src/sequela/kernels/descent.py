"""Coordinate descent on a quadratic model with an L1 penalty, for the steps of `ProximalNewton`."""

from sequela.kernels.gemm import lane_dot
from sequela.support.jit import kernel


@kernel
def descend(d, z, g, weight, gamma, Q, P, curvature, v, sweeps, accuracy):
    """Minimise ``g d + d B d / 2 + sum weight |z + d|`` over d, one coordinate at a time.

    ``B = gamma I - Q P^T`` is the quasi-Newton matrix for the entries of the working set, and
    `curvature` is its diagonal. `v` contains Q^T d and is updated, so that the step of a coordinate
    reads only one row of each matrix. The kernel stops after `sweeps` sweeps over all coordinates,
    or after a sweep in which no step times its curvature reached `accuracy`. Return the number of
    sweeps.
    """
    size, memory = Q.shape
    for sweep in range(sweeps):
        largest = 0.0
        for i in range(size):
            slope = g[i] + gamma * d[i] - lane_dot(P[i], v, memory)
            here = z[i] + d[i]
            target = here - slope / curvature[i]
            threshold = weight[i] / curvature[i]
            if target > threshold:
                there = target - threshold
            elif target < -threshold:
                there = target + threshold
            else:
                there = 0.0
            step = there - here
            if step != 0.0:
                d[i] += step
                for q in range(memory):
                    v[q] += step * Q[i, q]
                largest = max(largest, abs(step) * curvature[i])
        if largest < accuracy:
            return sweep + 1
    return sweeps
