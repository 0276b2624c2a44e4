"""The likelihood of a theta that differs from the current one in a few columns.

Jumps and swaps change only the base rates of two or three items and the effects on these items.
These are two or three columns of theta. In a state of the shared lattice, all other rates stay the
same. So the exit rate of a state changes by the differences of two or three rates, instead of being
a new sum over all items. With 50 items this takes a fifth of the time of a full evaluation.

A difference loses digits if a rate that is removed was much larger than all others together. In
this case the likelihood is computed in full.
"""

import math

import numpy as np

from sequela.kernels.arguments import CurrentRates
from sequela.kernels.latent_sequences import count_sequences, fill_factors, sum_sequences
from sequela.kernels.prior_transform import LARGEST_THETA
from sequela.kernels.shared_lattice import (
    multiply,
    padded_rates,
    padded_width,
    row_sum,
    shared_log_likelihood,
)
from sequela.support.jit import helper

# The largest number of columns that a proposal changes.
MOST_COLUMNS = 3
# If an exit rate falls below this part of its earlier value, more than four digits may be lost.
_LEAST_PART = 1e-4


@helper
def make_rates(n, target):
    """Return `CurrentRates` with arrays of the right sizes; `fill_rates` fills them."""
    states = target.shared.size.shape[0]
    return CurrentRates(
        np.empty((n, n)),
        np.empty((n, n)),
        np.empty(n),
        np.empty(states),
        np.empty(target.shared.way_from.shape[0]),
        np.empty((MOST_COLUMNS, states)),
        np.empty((MOST_COLUMNS, states)),
        np.empty((MOST_COLUMNS, n)),
        np.empty((MOST_COLUMNS, n)),
        np.empty(states),
        np.empty(states),
        np.empty(states),
    )


@helper
def fill_rates(current, theta, target):
    """Fill the factors, and all rates on the shared lattice, at a theta."""
    n = theta.shape[0]
    lattice = target.shared
    for i in range(n):
        for j in range(n):
            current.theta[i, j] = theta[i, j]
    fill_factors(current.factors, current.base, theta)
    width = padded_width(n)
    rates, factors = padded_rates(theta, width, lattice.largest + 1)
    # `ways` is sorted by the states to which the steps lead, but the loop below visits the states
    # from which the steps start. So `filled` counts, for each state, the steps to it whose rates
    # are already stored. Of all steps to a state, the loop meets the step at which the highest item
    # arrives first, because the state without this item has the smallest bit mask. `ways` has the
    # same sequence.
    filled = np.zeros(lattice.size.shape[0], np.int64)
    for s in range(lattice.size.shape[0]):
        depth = lattice.size[s]
        if depth > 0:
            multiply(rates, depth, factors, lattice.item[s], width)
        current.exits[s] = target.stop_rate + row_sum(rates, depth, width)
        row = depth * width
        for step in range(lattice.step_start[s], lattice.step_start[s + 1]):
            to = lattice.step_to[step]
            current.ways[lattice.way_start[to] + filled[to]] = rates[row + lattice.step_item[step]]
            filled[to] += 1


@helper
def change_factors(current, theta, columns):
    """Compute the columns of the factors at a proposed theta, and put them into `current`.

    The columns of the current theta are kept in `old_factors`.
    """
    n = theta.shape[0]
    for x in range(columns.shape[0]):
        c = columns[x]
        for i in range(n):
            current.old_factors[x, i] = current.factors[i, c]
            new = math.exp(theta[i, c]) if i != c else 0.0
            current.new_factors[x, i] = new
            current.factors[i, c] = new
        current.old[x, 0] = current.base[c]
        current.base[c] = math.exp(theta[c, c])
        current.new[x, 0] = current.base[c]


@helper
def restore_factors(current, columns):
    """Restore the base rates and the columns of the factors of the current theta."""
    for x in range(columns.shape[0]):
        c = columns[x]
        for i in range(current.factors.shape[0]):
            current.factors[i, c] = current.old_factors[x, i]
        current.base[c] = current.old[x, 0]


@helper
def change_exits(current, columns, lattice):
    """Fill the rates of the changed items in all states, and the new exit rates."""
    states = current.exits.shape[0]
    for s in range(states):
        current.new_exits[s] = current.exits[s]
    for x in range(columns.shape[0]):
        old = current.old[x]
        new = current.new[x]
        before = current.old_factors[x]
        after = current.new_factors[x]
        current.new_exits[0] += new[0] - old[0]
        for s in range(1, states):
            above = lattice.parent[s]
            item = lattice.item[s]
            old[s] = old[above] * before[item]
            new[s] = new[above] * after[item]
            current.new_exits[s] += new[s] - old[s]


@helper
def are_precise(current):
    """Return whether the new exit rates, which were computed as differences, are precise."""
    precise = True
    for s in range(current.exits.shape[0]):
        precise = precise and current.new_exits[s] > _LEAST_PART * current.exits[s]
    return precise


@helper
def set_ways(current, rates, columns, lattice):
    """Write the rates (columns, states) of some items into the rates of the lattice's steps."""
    for x in range(columns.shape[0]):
        c = columns[x]
        for at in range(lattice.item_start[c], lattice.item_start[c + 1]):
            way = lattice.item_way[at]
            current.ways[way] = rates[x, lattice.way_from[way]]


@helper
def sum_states(current, target):
    """Return the log-likelihood of all samples on the lattice, from `ways` and `new_exits`."""
    lattice = target.shared
    times = current.times
    holding = current.holding
    for s in range(times.shape[0]):
        holding[s] = 1.0 / current.new_exits[s]
    times[0] = holding[0]
    for s in range(1, times.shape[0]):
        total = 0.0
        for way in range(lattice.way_start[s], lattice.way_start[s + 1]):
            total += times[lattice.way_from[way]] * current.ways[way]
        times[s] = total * holding[s]
    value = 0.0
    for s in lattice.observed:
        value += lattice.samples[s] * math.log(target.stop_rate * times[s])
    for g in range(lattice.group_count.shape[0]):
        total = 0.0
        for at in range(lattice.end_start[g], lattice.end_start[g + 1]):
            total += times[lattice.end[at]]
        value += lattice.group_count[g] * math.log(target.stop_rate * total)
    return value


@helper
def evaluate_change(values, current, theta, columns, target, orders):
    """Fill `values` as `dense_likelihood.evaluate` does, for a proposed theta.

    The proposed theta differs from the current theta only in the columns `columns`.
    `orders` are the latent orders and histories of the proposal. After this call, `keep_change` or
    `undo_change` must be called. Return False if theta is out of range.
    """
    lattice = target.shared
    change_factors(current, theta, columns)
    change_exits(current, columns, lattice)
    unused = np.empty((theta.shape[0] + 1, padded_width(theta.shape[0])))
    unwanted = theta.shape[0] < 0
    set_ways(current, current.new, columns, lattice)
    if are_precise(current):
        values[0] = sum_states(current, target)
    else:
        values[0] = shared_log_likelihood(theta, lattice, target.stop_rate, unused, unwanted, 1.0)
    values[1] = 0.0
    if values[0] > -1e300 and count_sequences(target) > 0:
        values[1] = sum_sequences(
            theta, current.factors, current.base, target, orders, unused, unwanted
        )
    return values[0] > -1e300 and values[1] > -1e300


@helper
def keep_change(current, theta, columns, target):
    """Make the proposed theta of `evaluate_change` the current one."""
    n = theta.shape[0]
    if not are_precise(current):
        fill_rates(current, theta, target)
        return
    for s in range(current.exits.shape[0]):
        current.exits[s] = current.new_exits[s]
    for x in range(columns.shape[0]):
        for i in range(n):
            current.theta[i, columns[x]] = theta[i, columns[x]]


@helper
def undo_change(current, columns, target):
    """Return to the theta before `evaluate_change`."""
    restore_factors(current, columns)
    set_ways(current, current.old, columns, target.shared)


@helper
def try_columns(state, current, theta, z, columns, orders, gain, target, level):
    """Accept a proposal that changes some columns of theta and its coordinates z, or undo it.

    The proposal has the latent orders and histories `orders`. `gain` is the log of the ratio of
    prior densities, Jacobians and proposals, and `level` the log of a uniform random number. If the
    proposal is accepted, it is copied to `state` and `current`. Otherwise, `theta` and `z` are set
    back to those of `state`. Return whether the proposal was accepted.
    """
    values = np.empty(2)
    in_range = True
    for c in columns:
        for i in range(theta.shape[0]):
            in_range = in_range and theta[i, c] < LARGEST_THETA
    accepted = False
    if in_range:
        if evaluate_change(values, current, theta, columns, target, orders):
            gain += target.power * (values[0] - state.values[0]) + values[1] - state.values[1]
            accepted = level < gain
        if not accepted:
            undo_change(current, columns, target)
    if not accepted:
        restore_columns(theta, z, state, current, columns)
        return False
    keep_change(current, theta, columns, target)
    for c in columns:
        for i in range(theta.shape[0]):
            state.z[i, c] = z[i, c]
    state.orders[:] = orders
    state.values[0] = values[0]
    state.values[1] = values[1]
    return True


@helper
def restore_columns(theta, z, state, current, columns):
    """Set columns of theta and its coordinates z to those of the state."""
    for c in columns:
        for i in range(theta.shape[0]):
            theta[i, c] = current.theta[i, c]
            z[i, c] = state.z[i, c]
