"""Theta as a smooth function of coordinates whose prior is a standard normal distribution.

An interaction is ``scale * h(z)``, where h maps a standard normal variable z to a variable with the
shape of the prior (Laplace, Student t, ...). In the coordinates z, every prior is a standard normal
distribution. So it has no kink at 0 and no heavy tails, which would disturb Hamiltonian
trajectories. With a Laplace prior, the steps of trajectories can be five times as long in z as in
theta itself.

h is an odd function. It is given by its values and slopes at equidistant nodes, and it is a cubic
function between them. Whatever the nodes are, h defines a proper prior, because the density of
theta is the density of z divided by the slope.
"""

import math

from sequela.support.jit import helper

# If theta has a larger entry, it is out of range: its posterior density is taken to be 0.
LARGEST_THETA = 40.0


@helper
def shape_value(z, prior):
    """Return h(z) and its slope."""
    nodes = prior.nodes
    last = nodes.shape[1] - 1
    x = abs(z)
    at = int(x / prior.step)
    if at >= last:
        slope = nodes[1, last]
        value = nodes[0, last] + slope * (x - last * prior.step)
    else:
        t = x / prior.step - at
        rise = nodes[0, at + 1] - nodes[0, at]
        left = nodes[1, at] * prior.step
        right = nodes[1, at + 1] * prior.step
        square = 3.0 * rise - 2.0 * left - right
        cube = left + right - 2.0 * rise
        value = nodes[0, at] + t * (left + t * (square + t * cube))
        slope = (left + t * (2.0 * square + 3.0 * t * cube)) / prior.step
    return (value if z >= 0.0 else -value), slope


@helper
def shape_inverse(value, prior):
    """Return the z with h(z) = value, by Newton's method inside a bracket."""
    nodes = prior.nodes
    last = nodes.shape[1] - 1
    x = abs(value)
    if x >= nodes[0, last]:
        z = last * prior.step + (x - nodes[0, last]) / nodes[1, last]
        return z if value >= 0.0 else -z
    low = 0
    high = last
    while high - low > 1:
        middle = (low + high) // 2
        if nodes[0, middle] <= x:
            low = middle
        else:
            high = middle
    below = low * prior.step
    above = high * prior.step
    z = below + (above - below) * (x - nodes[0, low]) / (nodes[0, high] - nodes[0, low])
    for _ in range(60):
        found, slope = shape_value(z, prior)
        if found > x:
            above = z
        else:
            below = z
        better = z - (found - x) / slope
        if not (below < better < above):
            better = 0.5 * (below + above)
        done = abs(better - z) <= 1e-15 * (1.0 + z)
        z = better
        if done:
            break
    return z if value >= 0.0 else -z


@helper
def copy_entries(target, source):
    """Copy a square matrix entry by entry.

    An assignment of whole arrays would take Numba five more seconds to compile.
    """
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@helper
def log_scale(scale, prior):
    """Return the log of the scale of the interactions."""
    return prior.log_median + prior.log_spread * scale[0]


@helper
def fill_theta(theta, slope, z, scale, prior):
    """Fill theta and its slopes (derivatives by z); return whether all entries are in range."""
    n = z.shape[0]
    unit = math.exp(log_scale(scale, prior))
    largest = -math.inf
    for i in range(n):
        for j in range(n):
            if i == j:
                theta[i, j] = prior.base_mean + prior.base_sd * z[i, j]
                slope[i, j] = prior.base_sd
            else:
                value, rise = shape_value(z[i, j], prior)
                theta[i, j] = unit * value
                slope[i, j] = unit * rise
            largest = max(largest, theta[i, j])
    return largest < LARGEST_THETA


@helper
def interaction_coordinate(value, unit, prior):
    """Return the coordinate z of an interaction, and the log-density of its prior.

    Constants that depend neither on the interaction nor on the scale are left out.
    """
    z = shape_inverse(value / unit, prior)
    _, slope = shape_value(z, prior)
    return z, -0.5 * z * z - math.log(slope * unit)


@helper
def base_coordinate(value, prior):
    """Return the coordinate z of a log base rate, and the log-density of its prior."""
    z = (value - prior.base_mean) / prior.base_sd
    return z, -0.5 * z * z


@helper
def fill_scores(scores, gradient, theta, slope, factor, log_spread):
    """Fill a row of scores: `factor` times the gradient, in the coordinates z and of the scale.

    `gradient` is the gradient with respect to theta. The last entry of `scores` is the derivative
    with respect to the coordinate of the scale.
    """
    n = theta.shape[0]
    pull = 0.0
    for i in range(n):
        for j in range(n):
            scores[i * n + j] = factor * gradient[i, j] * slope[i, j]
            if i != j:
                pull += gradient[i, j] * theta[i, j]
    scores[n * n] = factor * pull * log_spread
