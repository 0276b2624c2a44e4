"""Hamiltonian Monte Carlo in the coordinates of `prior_transform`.

The metric is the identity (the prior) plus a low-rank part (the information of the data), so that
both its product with a vector and a draw of momenta cost a few times the rank times the number of
coordinates.
"""

import math

import numpy as np

from sequela.kernels.dense_likelihood import evaluate
from sequela.kernels.prior_transform import fill_theta
from sequela.support.jit import helper


@helper
def velocities(p, trajectory):
    """Return the inverse metric times the momenta."""
    along = np.dot(trajectory.directions, p)
    for k in range(along.shape[0]):
        along[k] *= trajectory.shrink[k]
    return p - np.dot(trajectory.directions.T, along)


@helper
def draw_momenta(size, trajectory, rng):
    """Draw momenta from the normal distribution whose precision is the inverse metric."""
    p = np.empty(size)
    for at in range(size):
        p[at] = rng.standard_normal()
    along = np.dot(trajectory.directions, p)
    for k in range(along.shape[0]):
        along[k] *= 1.0 / math.sqrt(1.0 - trajectory.shrink[k]) - 1.0
    return p + np.dot(trajectory.directions.T, along)


@helper
def kick(p, time, gradient, slope, theta, q, spread):
    """Change the momenta by the force at theta over a time; the last one belongs to the scale."""
    n = theta.shape[0]
    pull = 0.0
    for i in range(n):
        for j in range(n):
            at = i * n + j
            p[at] += time * (gradient[i, j] * slope[i, j] - q[at])
            if i != j:
                pull += gradient[i, j] * theta[i, j]
    if spread > 0.0:
        p[n * n] += time * (pull * spread - q[n * n])


@helper
def energy(values, power, q, p, velocity):
    """Return minus the Hamiltonian: log-density minus kinetic energy."""
    return power * values[0] + values[1] - 0.5 * np.sum(q * q) - 0.5 * np.sum(p * velocity)


@helper
def hamiltonian_move(state, target, trajectory, rng):
    """Run one trajectory from the state, and accept or reject its end.

    Return (acceptance probability, number of gradients). The number of leapfrog steps is uniform
    between 1 and the largest number, and the step size varies by a tenth, so that no periodic orbit
    is followed for ever.
    """
    n = state.z.shape[0]
    prior = target.prior
    spread = prior.log_spread
    theta = np.empty((n, n))
    slope = np.empty((n, n))
    gradient = np.empty((n, n))
    values = np.empty(2)
    q = np.empty(n * n + 1)
    q[: n * n] = state.z.reshape(-1)
    q[n * n] = state.scale[0]
    z = q[: n * n].reshape((n, n))
    scale = q[n * n :]
    fill_theta(theta, slope, z, scale, prior)
    if not evaluate(theta, target, state.orders, values, gradient, True):
        return 0.0, 1
    p = draw_momenta(n * n + 1, trajectory, rng)
    if spread == 0.0:
        p[n * n] = 0.0
    velocity = velocities(p, trajectory)
    start = energy(values, target.power, q, p, velocity)
    steps = 1 + int(rng.random() * trajectory.most_steps)
    length = trajectory.step * (0.9 + 0.2 * rng.random())
    for at in range(steps + 1):
        time = 0.5 * length if at == 0 or at == steps else length
        kick(p, time, gradient, slope, theta, q, spread)
        if at == steps:
            break
        q += length * velocities(p, trajectory)
        in_range = fill_theta(theta, slope, z, scale, prior)
        if not in_range or not evaluate(theta, target, state.orders, values, gradient, True):
            return 0.0, at + 2
    velocity = velocities(p, trajectory)
    end = energy(values, target.power, q, p, velocity)
    accept = math.exp(min(0.0, end - start)) if end == end else 0.0
    if rng.random() < accept:
        state.z[:] = z
        state.scale[0] = scale[0]
        state.values[:] = values
    return accept, steps + 1
