"""The quadratic model of a quasi-Newton step, and its minimiser with an L1 penalty.

The Hessian of the model is the compact form of limited-memory BFGS (Byrd, Nocedal and Schnabel
1994), ``B = gamma I - Q P^T``, restricted to the working set. This code is compiled because its
many small operations took longer in NumPy than the likelihood of a small data set.
"""

import math

import numpy as np

from sequela.kernels.descent import descend
from sequela.kernels.gemm import lane_dot
from sequela.support.jit import helper, kernel

# The diagonal of B is at least this share of gamma.
LEAST_CURVATURE = 1e-3
# The model is minimised until its error is below a share of the KKT residual. The share is the
# smaller one of this number and the square root of the residual (Dembo, Eisenstat and Steihaug
# 1982). A smaller number needs more sweeps, but saves no evaluations: with numbers from 0.001 to
# 0.1, a fit of 20 items needed 37.2 to 37.6 evaluations.
INNER_ACCURACY = 0.03


@helper
def solve_in_place(A, X):
    """Replace X by A^-1 X, by elimination with the largest pivots; A is overwritten."""
    count = A.shape[0]
    columns = X.shape[1]
    for p in range(count):
        best = p
        for i in range(p + 1, count):
            if abs(A[i, p]) > abs(A[best, p]):
                best = i
        if best != p:
            for j in range(p, count):
                kept = A[p, j]
                A[p, j] = A[best, j]
                A[best, j] = kept
            for x in range(columns):
                kept = X[p, x]
                X[p, x] = X[best, x]
                X[best, x] = kept
        pivot = X[p]
        for i in range(p + 1, count):
            factor = A[i, p] / A[p, p]
            if factor != 0.0:
                for j in range(p + 1, count):
                    A[i, j] -= factor * A[p, j]
                row = X[i]
                for x in range(columns):
                    row[x] -= factor * pivot[x]
    for p in range(count - 1, -1, -1):
        row = X[p]
        for j in range(p + 1, count):
            factor = A[p, j]
            above = X[j]
            for x in range(columns):
                row[x] -= factor * above[x]
        inverse = 1.0 / A[p, p]
        for x in range(columns):
            row[x] *= inverse


@helper
def middle_matrix(products, gamma, count):
    """Return the middle matrix of the compact form, given the scalar products of all pairs.

    The blocks of the matrix are gamma S^T S, the part of S^T Y below the diagonal, and minus the
    diagonal of S^T Y.
    """
    middle = np.zeros((2 * count, 2 * count))
    for i in range(count):
        for j in range(count):
            middle[i, j] = gamma * products[i, j]
        for j in range(i):
            middle[i, count + j] = products[i, count + j]
            middle[count + j, i] = products[i, count + j]
        middle[count + i, count + i] = -products[i, count + i]
    return middle


@kernel
def minimise_model(theta, gradient, weights, unit, free, pairs, products, residual, sweeps, target):
    """Fill `target` with the minimiser of the quadratic model plus penalty.

    All arrays over entries are flat. An entry does not change if it is zero and its gradient does
    not exceed the penalty, or if it is not `free` (an empty array means that all entries are free).
    `pairs` contains the steps and then the changes of the gradient, both in the scale of `unit`.
    `products` contains their scalar products. `residual` is the KKT residual, which determines how
    precise the minimiser is, and `sweeps` is the largest number of sweeps. Return the slope of the
    loss in the direction of the target, and the largest change of an entry.
    """
    working = np.empty(theta.shape[0], np.int64)
    size = 0
    smallest = 1.0
    for i in range(theta.shape[0]):
        moves = theta[i] != 0.0 or weights[i] == 0.0 or abs(gradient[i]) > weights[i]
        if moves and (free.shape[0] == 0 or free[i]):
            working[size] = i
            size += 1
            smallest = min(smallest, unit[i])
    memory = pairs.shape[0]
    count = memory // 2
    gamma = 1.0
    Q = np.empty((size, memory))
    P = np.empty((size, memory))
    if count > 0:
        gamma = products[memory - 1, memory - 1] / products[count - 1, memory - 1]
        solved = np.empty((memory, size))
        for q in range(memory):
            row = pairs[q]
            scale = gamma if q < count else 1.0
            for i in range(size):
                solved[q, i] = scale * row[working[i]]
        for i in range(size):
            for q in range(memory):
                Q[i, q] = solved[q, i]
        solve_in_place(middle_matrix(products, gamma, count), solved)
        for i in range(size):
            for q in range(memory):
                P[i, q] = solved[q, i]
    d = np.zeros(size)
    z = np.empty(size)
    g = np.empty(size)
    weight = np.empty(size)
    curvature = np.empty(size)
    for i in range(size):
        at = working[i]
        z[i] = theta[at] / unit[at]
        g[i] = gradient[at] * unit[at]
        weight[i] = weights[at] * unit[at]
        curvature[i] = max(gamma - lane_dot(Q[i], P[i], memory), LEAST_CURVATURE * gamma)
    accuracy = min(INNER_ACCURACY, math.sqrt(residual)) * residual * smallest
    descend(d, z, g, weight, gamma, Q, P, curvature, np.zeros(memory), sweeps, accuracy)
    for i in range(theta.shape[0]):
        target[i] = theta[i]
    slope = 0.0
    farthest = 0.0
    for i in range(size):
        at = working[i]
        # Use z + d and not theta + d * unit. So an entry that becomes zero is exactly zero.
        target[at] = (z[i] + d[i]) * unit[at]
        move = target[at] - theta[at]
        slope += gradient[at] * move
        farthest = max(farthest, abs(move))
    return slope, farthest


@kernel
def largest_violation(theta, gradient, weights, free):
    """Return the KKT residual: the largest distance of minus the gradient from the subdifferential.

    All arrays are flat, and `gradient` is the gradient of the loss. Entries that cannot change are
    left out. These are entries with an infinite weight, and entries that are not `free` (an empty
    array `free` means that all entries are free).
    """
    largest = 0.0
    for i in range(theta.shape[0]):
        weight = weights[i]
        if weight == np.inf or (free.shape[0] > 0 and not free[i]):
            continue
        if theta[i] == 0.0 and weight > 0.0:
            distance = abs(gradient[i]) - weight
        else:
            distance = abs(gradient[i] + weight * np.sign(theta[i]))
        if not distance <= largest:  # also true for NaN
            largest = distance
    return largest
