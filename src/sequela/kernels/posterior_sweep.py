"""One sweep of a Markov chain over theta: trajectories, jumps, swaps, shifts, scale, latent orders.

Each move leaves the posterior (or its heated version) invariant. Different moves reach different
parts of it. The mathematics is in `docs/posterior.md`.
"""

import math

import numpy as np

from sequela.kernels.arguments import JumpWay
from sequela.kernels.column_change import fill_rates, make_rates, restore_columns, try_columns
from sequela.kernels.dense_likelihood import evaluate, relocate_orders
from sequela.kernels.effect_swap import swap_effects
from sequela.kernels.family_jump import change_order, exchange_items
from sequela.kernels.hamiltonian import fill_force, hamiltonian_move
from sequela.kernels.latent_histories import exchange_in_histories
from sequela.kernels.pair_choice import choose_rows, choose_third, items_of_rows
from sequela.kernels.prior_transform import (
    LARGEST_THETA,
    copy_entries,
    fill_theta,
    interaction_coordinate,
    log_scale,
    shape_inverse,
    shape_value,
)
from sequela.support.jit import helper, inlined, kernel

# The entries of the counts of `advance`: numbers of moves that were tried and accepted.
COUNTS = (
    "trajectories",
    "acceptance",
    "gradients",
    "jumps tried",
    "jumps accepted",
    "shifts tried",
    "shifts accepted",
    "scales tried",
    "scales accepted",
    "swaps tried",
    "swaps accepted",
)

# Standard deviations of the steps of the logit of a share: of the usual short steps and of the long
# steps; and the share of the jumps that make a long step.
_NEAR = 1.0
_FAR = 2.5
_FAR_SHARE = 0.3
# The share of the jumps of one pair that go to the opposite order. (If several pairs jump together,
# all of them go to the opposite order.) And the share of jumps to the opposite order that are
# guided by the prior (see `family_jump`).
_OPPOSITE = 0.75
_GUIDED = 0.85
# The share of all jumps in which the effects of all other items follow the pair, and the share of
# the jumps of one pair in which only the effects of a third item follow. For 2,300 samples with a
# cascade, _FOLLOWING = 0.1 gave 21 effective draws, but 0.3 and 0.5 gave about 900. In data of
# glioblastoma, guided jumps of CDK4(A) and MDM2(A) are accepted with a probability of 0.0005 if the
# effects of all items follow, 0.0013 if none follow, and 0.0031 if only those of CDKN2A(D) follow.
_FOLLOWING = 0.3
_ONE_FOLLOWING = 0.4
# The share of the jumps that change the orders of two or all three pairs of three items.
_SEVERAL = 0.3
# The share of the jumps that exchange items in latent orders and histories, if the jump changes
# which item mostly comes first.
_EXCHANGING = 0.3
# Typical size of a shift of a whole row of theta, and of a step of the coordinate of the scale.
_SHIFT = 0.5
_SCALE_STEP = 0.5
_SCALE_TRIES = 2


@inlined
def shift_row(state, target, rng):
    """Propose to add the same number to all effects of one item; return whether it was accepted.

    An item that slows all later items has nearly the same effect on the data as one that makes the
    observation earlier. So the data determine the mean of a row of theta less well than the
    differences within it.
    """
    n = state.z.shape[0]
    prior = target.prior
    unit = math.exp(log_scale(state.scale, prior))
    theta = np.empty((n, n))
    slope = np.empty((n, n))
    fill_theta(theta, slope, state.z, state.scale, prior)
    i = int(rng.random() * n)
    shift = _SHIFT * rng.standard_normal()
    level = math.log(rng.random())
    z = state.z.copy()
    gain = 0.0
    for j in range(n):
        if j != i:
            gain += 0.5 * z[i, j] ** 2 + math.log(slope[i, j])
            theta[i, j] += shift
            z[i, j], density = interaction_coordinate(theta[i, j], unit, prior)
            gain += density
    if not theta.max() < LARGEST_THETA:
        return False
    values = np.empty(2)
    unwanted = n < 0
    if not evaluate(theta, target, state.orders, values, slope, unwanted):
        return False
    gain += target.power * (values[0] - state.values[0]) + values[1] - state.values[1]
    if not level < gain:
        return False
    copy_entries(state.z, z)
    state.values[0] = values[0]
    state.values[1] = values[1]
    return True


@helper
def change_scale(state, prior, rng):
    """Propose another scale of the prior while theta stays; return whether it was accepted.

    The likelihood does not change, so this move is fast. Trajectories change the scale and theta
    together; the two moves complement each other.
    """
    n = state.z.shape[0]
    proposed = state.scale[0] + _SCALE_STEP * rng.standard_normal()
    ratio = math.exp(prior.log_spread * (state.scale[0] - proposed))
    gain = 0.5 * state.scale[0] ** 2 - 0.5 * proposed**2
    z = state.z.copy()
    for i in range(n):
        for j in range(n):
            if i != j:
                value, before = shape_value(state.z[i, j], prior)
                z[i, j] = shape_inverse(value * ratio, prior)
                _, after = shape_value(z[i, j], prior)
                gain += 0.5 * (state.z[i, j] ** 2 - z[i, j] ** 2)
                gain += math.log(before) - math.log(after) + math.log(ratio)
    if not math.log(rng.random()) < gain:
        return False
    copy_entries(state.z, z)
    state.scale[0] = proposed
    return True


@helper
def jump_pairs(state, current, theta, z, target, pairs, rng):
    """Try a jump of one random pair of items, or of two or three pairs of the same three items.

    `theta` and `z` are those of the state, before and after this call. Return whether the jump was
    accepted.
    """
    unit = math.exp(log_scale(state.scale, target.prior))
    orders = state.orders
    exchanges = rng.random() < _EXCHANGING
    several = theta.shape[0] > 2 and rng.random() < _SEVERAL
    rows = np.empty(2 + int(2.0 * rng.random()) if several else 1, np.int64)
    level = math.log(rng.random())
    if not choose_rows(rows, pairs, rng):
        return False
    items = items_of_rows(pairs, rows)
    # If several pairs jump together, the effects of other items follow all of them or none.
    kind = rng.random()
    gain = 0.0
    possible = True
    for at in rows:
        if not possible:
            break
        reflect = rng.random() < _OPPOSITE or several
        width = _FAR if rng.random() < _FAR_SHARE else _NEAR
        guided = reflect and rng.random() < _GUIDED
        i = pairs[at, 0]
        j = pairs[at, 1]
        third = -1
        if kind < _ONE_FOLLOWING and not several:
            third = choose_third(pairs, i, j, rng)
        follow = third >= 0 or kind >= 1.0 - _FOLLOWING
        way = JumpWay(reflect, width, guided, follow, third)
        step = rng.random() if guided else rng.standard_normal()
        possible, more, crossed = change_order(theta, z, i, j, way, step, unit, target)
        gain += more
        if crossed and exchanges and orders.shape[0] > 0:
            orders = orders.copy()
            exchange_items(orders, target, i, j)
            gain += exchange_in_histories(orders, target, i, j)
    if not possible:
        restore_columns(theta, z, state, current, items)
        return False
    return try_columns(state, current, theta, z, items, orders, gain, target, level)


@helper
def change_pairs(state, target, pairs, count, counts, rng):
    """Try `count` jumps of pairs, and as many swaps of interactions."""
    n = state.z.shape[0]
    theta = np.empty((n, n))
    slope = np.empty((n, n))
    z = np.empty((n, n))
    fill_theta(theta, slope, state.z, state.scale, target.prior)
    copy_entries(z, state.z)
    current = make_rates(n, target)
    fill_rates(current, theta, target)
    for _ in range(count):
        counts[3] += 1.0
        if jump_pairs(state, current, theta, z, target, pairs, rng):
            counts[4] += 1.0
        if pairs.shape[0] > 1:
            counts[9] += 1.0
            if swap_effects(state, current, theta, z, target, pairs, rng):
                counts[10] += 1.0


@kernel
def advance(state, target, trajectory, pairs, per_sweep, sweeps, counts, force, rng):
    """Advance a chain by `sweeps` sweeps with `per_sweep` jumps and `per_sweep` swaps each.

    Jumps and swaps choose random rows of `pairs` (rows, 2). So pairs that are listed several times
    are tried more often.
    Numbers of moves are added to `counts`; see `COUNTS`.

    `force` receives the gradient of the log-density in the stretched coordinates, unless it is
    empty.

    Return False if the state is out of range, which can only happen at a start. With 0 sweeps, only
    this check is done.
    """
    n = state.z.shape[0]
    theta = np.empty((n, n))
    slope = np.empty((n, n))
    unwanted = n < 0
    in_range = fill_theta(theta, slope, state.z, state.scale, target.prior)
    if not in_range or not evaluate(theta, target, state.orders, state.values, slope, unwanted):
        return False
    for _ in range(sweeps):
        accept, gradients = hamiltonian_move(state, target, trajectory, rng)
        counts[0] += 1.0
        counts[1] += accept
        counts[2] += gradients
        if pairs.shape[0] > 0 and per_sweep > 0:
            change_pairs(state, target, pairs, per_sweep, counts, rng)
        counts[5] += 1.0
        if shift_row(state, target, rng):
            counts[6] += 1.0
        if target.prior.log_spread > 0.0:
            for _ in range(_SCALE_TRIES):
                counts[7] += 1.0
                if change_scale(state, target.prior, rng):
                    counts[8] += 1.0
        if state.orders.shape[0] > 0:
            fill_theta(theta, slope, state.z, state.scale, target.prior)
            relocate_orders(theta, target, state.orders, rng)
            evaluate(theta, target, state.orders, state.values, slope, unwanted)
    if force.shape[0] > 0:
        wanted = n > 0
        gradient = np.empty((n, n))
        fill_theta(theta, slope, state.z, state.scale, target.prior)
        evaluate(theta, target, state.orders, state.values, gradient, wanted)
        spread = target.prior.log_spread
        fill_force(force, gradient, slope, theta, state.z, state.scale, spread)
    return True


@kernel
def read_theta(theta, slope, z, scale, prior):
    """Fill theta and its derivatives by the coordinates z; return whether theta is in range."""
    return fill_theta(theta, slope, z, scale, prior)


@kernel
def write_coordinates(z, theta, scale, prior):
    """Fill the coordinates z of a theta."""
    n = z.shape[0]
    unit = math.exp(log_scale(scale, prior))
    for i in range(n):
        for j in range(n):
            if i == j:
                z[i, j] = (theta[i, j] - prior.base_mean) / prior.base_sd
            else:
                z[i, j], _ = interaction_coordinate(theta[i, j], unit, prior)


@kernel
def log_likelihoods(values, gradient, theta, target, orders):
    """Fill the log-likelihoods of lattice sets and large samples, and the gradient of their sum.

    Return whether theta is in range.
    """
    wanted = theta.shape[0] > 0
    return evaluate(theta, target, orders, values, gradient, wanted)
