"""Swaps of interactions among three items.

In a sparse model, one of two items that occur together has an effect on a third item, or the other
one has it, or the third item has an effect on them. The data often hardly distinguish these models:
in glioblastoma, for example, either CDK4 or MDM2 can prevent the loss of CDKN2A. Models between
them, with a part of each effect, are improbable under a prior that prefers few large effects. So
trajectories rarely pass from one model to the other. Jumps that reverse an order often need such a
passage as well, because the item that comes first has the effects.

A swap exchanges the coordinates of two interactions. All interactions have the same prior, so the
density of the prior does not change. The swaps of a proposal are chosen without regard to the
state, and the reverse sequence of swaps has the same probability. So a proposal is accepted with
the ratio of the likelihoods.
"""

import math

import numpy as np

from sequela.kernels.dense_likelihood import evaluate
from sequela.kernels.prior_transform import fill_theta
from sequela.support.jit import helper, inlined

# The part of the proposals that consist of two swaps.
_TWO = 0.3


@helper
def swap_two(z, triple, first, second):
    """Swap two of the six interactions among three items; the interactions have numbers 0 to 5."""
    a = triple[first // 2]
    b = triple[(first // 2 + 1 + first % 2) % 3]
    c = triple[second // 2]
    d = triple[(second // 2 + 1 + second % 2) % 3]
    z[a, b], z[c, d] = z[c, d], z[a, b]


@helper
def choose_swaps(rng):
    """Return the numbers of the interactions of one or two random swaps, two numbers per swap."""
    count = 2 if rng.random() < _TWO else 1
    chosen = np.empty(2 * count, np.int64)
    for k in range(count):
        chosen[2 * k] = int(6.0 * rng.random())
        chosen[2 * k + 1] = (chosen[2 * k] + 1 + int(5.0 * rng.random())) % 6
    return chosen


@helper
def choose_triple(pairs, rng):
    """Return three items: the two of a random row of `pairs`, and one of another random row.

    So the items of pairs that are listed often are chosen often. The three items are not always
    different.
    """
    triple = np.empty(3, np.int64)
    row = int(rng.random() * pairs.shape[0])
    triple[0] = pairs[row, 0]
    triple[1] = pairs[row, 1]
    row = int(rng.random() * pairs.shape[0])
    triple[2] = pairs[row, int(2.0 * rng.random())]
    return triple


@inlined
def swap_effects(state, target, pairs, rng):
    """Propose to swap interactions among three items; return whether the proposal was accepted."""
    n = state.z.shape[0]
    triple = choose_triple(pairs, rng)
    chosen = choose_swaps(rng)
    level = math.log(rng.random())
    if triple[2] == triple[0] or triple[2] == triple[1]:
        return False
    theta = np.empty((n, n))
    slope = np.empty((n, n))
    values = np.empty(2)
    unwanted = n < 0
    for at in range(0, chosen.shape[0], 2):
        swap_two(state.z, triple, chosen[at], chosen[at + 1])
    in_range = fill_theta(theta, slope, state.z, state.scale, target.prior)
    if in_range and evaluate(theta, target, state.orders, values, slope, unwanted):
        gain = target.power * (values[0] - state.values[0]) + values[1] - state.values[1]
        if level < gain:
            state.values[0] = values[0]
            state.values[1] = values[1]
            return True
    for at in range(chosen.shape[0] - 2, -2, -2):
        swap_two(state.z, triple, chosen[at], chosen[at + 1])
    return False
