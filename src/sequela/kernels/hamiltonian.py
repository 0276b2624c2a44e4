"""Hamiltonian Monte Carlo in the coordinates of `stretched_coordinates`.

The log-density is the log-density of a normal distribution (the reference) plus a remainder. The
precision matrix of the reference is the precision matrix of the prior plus a low-rank matrix with
the information of the data. Motion under the reference alone is a rotation, which is computed
exactly. Only the remainder is integrated in finite steps. The data have little information about
most directions, so the remainder is small and steps can be long (Shahbaba et al. 2014, "Split
Hamiltonian Monte Carlo").
"""

import math

import numpy as np

from sequela.kernels.dense_likelihood import evaluate
from sequela.kernels.prior_transform import copy_entries, fill_theta
from sequela.kernels.stretched_coordinates import (
    fill_stretched,
    fill_unstretched,
    stretched_prior,
)
from sequela.support.jit import helper, inlined

# Number of directions that are read together.
_BLOCK = 16


@helper
def stretch(x, factors, directions):
    """Multiply the part of x along each direction by 1 plus a factor.

    Directions are read in blocks that fit into the cache, so that they are read from memory only
    once.
    """
    change = np.zeros(x.shape[0])
    for first in range(0, directions.shape[0], _BLOCK):
        block = directions[first : first + _BLOCK]
        along = np.dot(block, x)
        for k in range(along.shape[0]):
            along[k] *= factors[first + k]
        change += np.dot(along, block)
    for at in range(x.shape[0]):
        x[at] += change[at]


@helper
def subtract_along(x, shrink, rounded):
    """Subtract `shrink` times the part of x along each direction from x, in single precision.

    This takes half the time of `stretch`, which computes in double precision. The result is used
    only for the force in `kick`, where rounding does no harm: a motion under any force that depends
    only on the position preserves volumes and is reversible, so the sampler remains exact.
    """
    y = x.astype(np.float32)
    change = np.zeros(x.shape[0], np.float32)
    for first in range(0, rounded.shape[0], _BLOCK):
        block = rounded[first : first + _BLOCK]
        along = np.dot(block, y)
        for k in range(along.shape[0]):
            along[k] *= np.float32(shrink[first + k])
        change += np.dot(along, block)
    for at in range(x.shape[0]):
        x[at] -= change[at]


@helper
def draw_velocities(v, moving, trajectory, rng):
    """Draw the first `moving` velocities from the normal distribution of the reference.

    The other velocities must be 0. Return the kinetic energy. It is half the squared length of the
    standard normal vector from which the velocities are computed.
    """
    for at in range(moving):
        v[at] = rng.standard_normal()
    kinetic = 0.5 * np.sum(v * v)
    factors = np.sqrt(1.0 - trajectory.shrink) - 1.0
    stretch(v, factors, trajectory.directions)
    return kinetic


@helper
def kinetic_energy(v, trajectory):
    """Return the kinetic energy of velocities."""
    along = np.dot(trajectory.directions, v)
    kinetic = np.sum(v * v)
    for k in range(along.shape[0]):
        kinetic += along[k] ** 2 * trajectory.shrink[k] / (1.0 - trajectory.shrink[k])
    return 0.5 * kinetic


@helper
def fill_force(force, gradient, slope, theta, z, scale, spread):
    """Fill the gradient of the log-density by the coordinates. The entry of a fixed scale is 0."""
    n = theta.shape[0]
    pull = 0.0
    for i in range(n):
        for j in range(n):
            if i == j:
                force[i * n + j] = gradient[i, j] * slope[i, j] - z[i, j]
            else:
                rise, _, push = stretched_prior(z[i, j])
                force[i * n + j] = gradient[i, j] * slope[i, j] * rise + push
                pull += gradient[i, j] * theta[i, j]
    force[n * n] = pull * spread - scale[0] if spread > 0.0 else 0.0


@helper
def kick(v, time, force, q, trajectory):
    """Add to the velocities: `time` times (the force minus the force of the reference).

    `v` contains only the coordinates that move. `force` is overwritten.
    """
    subtract_along(force, trajectory.shrink, trajectory.rounded)
    for at in range(v.shape[0]):
        v[at] += time * (force[at] + q[at] - trajectory.centre[at])


@helper
def rotate(q, v, angle, centre):
    """Move positions and velocities under the reference: rotate them around its centre."""
    c = math.cos(angle)
    s = math.sin(angle)
    for at in range(v.shape[0]):
        away = q[at] - centre[at]
        q[at] = centre[at] + c * away + s * v[at]
        v[at] = c * v[at] - s * away


@helper
def log_prior(z, scale):
    """Return the log-density of the prior in the stretched coordinates, without its constant."""
    n = z.shape[0]
    total = -0.5 * scale[0] ** 2
    for i in range(n):
        for j in range(n):
            if i == j:
                total -= 0.5 * z[i, j] ** 2
            else:
                _, density, _ = stretched_prior(z[i, j])
                total += density
    return total


@helper
def log_density(values, power, z, scale):
    """Return the log-density of the target in the stretched coordinates, without its constant."""
    return power * values[0] + values[1] + log_prior(z, scale)


@inlined
def hamiltonian_move(state, target, trajectory, rng):
    """Run one trajectory from the state, and accept or reject its end.

    Return (acceptance probability, number of gradients). The number of steps is drawn uniformly
    between the smallest and the largest allowed number, and the step size varies by up to a tenth.
    So trajectories do not repeat a periodic orbit.
    """
    n = state.z.shape[0]
    prior = target.prior
    spread = prior.log_spread
    wanted = n > 0
    theta = np.empty((n, n))
    slope = np.empty((n, n))
    gradient = np.empty((n, n))
    values = np.empty(2)
    force = np.empty(n * n + 1)
    q = np.empty(n * n + 1)
    q[n * n] = state.scale[0]
    fill_stretched(q, state.z)
    z = np.empty((n, n))
    copy_entries(z, state.z)
    scale = q[n * n :]
    fill_theta(theta, slope, z, scale, prior)
    if not evaluate(theta, target, state.orders, values, gradient, wanted):
        return 0.0, 1
    # A fixed scale does not move, and no direction contains it.
    moving = n * n + 1 if spread > 0.0 else n * n
    v = np.zeros(n * n + 1)
    start = -draw_velocities(v, moving, trajectory, rng)
    start += log_density(values, target.power, z, scale)
    few = trajectory.fewest_steps
    steps = few + int(rng.random() * (trajectory.most_steps - few + 1))
    length = trajectory.step * (0.9 + 0.2 * rng.random())
    for at in range(steps + 1):
        time = 0.5 * length if at == 0 or at == steps else length
        fill_force(force, gradient, slope, theta, z, scale, spread)
        kick(v[:moving], time, force, q, trajectory)
        if at == steps:
            break
        rotate(q, v[:moving], length, trajectory.centre)
        fill_unstretched(z, q)
        in_range = fill_theta(theta, slope, z, scale, prior)
        if not in_range or not evaluate(theta, target, state.orders, values, gradient, wanted):
            return 0.0, at + 2
    end = log_density(values, target.power, z, scale) - kinetic_energy(v, trajectory)
    accept = math.exp(min(0.0, end - start)) if end == end else 0.0
    if rng.random() < accept:
        copy_entries(state.z, z)
        state.scale[0] = scale[0]
        state.values[0] = values[0]
        state.values[1] = values[1]
    return accept, steps + 1
