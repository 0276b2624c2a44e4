"""Swaps of interactions among three items.

Suppose that items 1 and 2 often occur together. In a sparse model, item 1 has an effect on a third
item, or item 2 has this effect, or the third item has an effect on items 1 and 2. The data often
hardly distinguish these models: in glioblastoma, for example, either CDK4 or MDM2 can prevent the
loss of CDKN2A. A model between two of these models has several weaker effects. It is improbable
under a prior that prefers few large effects. So trajectories rarely pass from one model to another.
Jumps that reverse an order often need such a change of the model as well, because the item that
comes first has the effects.

A swap exchanges the coordinates of two interactions. All interactions have the same prior, so the
density of the prior does not change. The swaps of a proposal are chosen without regard to the
state, and the reverse sequence of swaps has the same probability. So the probability of accepting a
proposal depends only on the ratio of the likelihoods.
"""

import math

import numpy as np

from sequela.kernels.column_change import try_columns
from sequela.kernels.pair_choice import choose_third
from sequela.support.jit import helper

# The share of the proposals that consist of two swaps. The others consist of one swap.
_TWO = 0.3


@helper
def interaction_of(triple, number):
    """Return the two items of the interaction with this `number` (0 to 5) among three items."""
    return triple[number // 2], triple[(number // 2 + 1 + number % 2) % 3]


@helper
def swap_two(entries, triple, first, second):
    """Swap two of the six interactions among three items; the interactions have numbers 0 to 5."""
    a, b = interaction_of(triple, first)
    c, d = interaction_of(triple, second)
    entries[a, b], entries[c, d] = entries[c, d], entries[a, b]


@helper
def swapped_columns(triple, chosen):
    """Return the different columns that contain the chosen interactions."""
    columns = np.empty(3, np.int64)
    count = 0
    for number in chosen:
        _, item = interaction_of(triple, number)
        known = False
        for x in range(count):
            known = known or columns[x] == item
        if not known:
            columns[count] = item
            count += 1
    return columns[:count]


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
def swap_effects(state, current, theta, z, target, pairs, rng):
    """Propose to swap interactions among three items; return whether the proposal was accepted.

    The items are those of a random row of `pairs` and a third one (see `choose_third`).

    `theta` and `z` are those of the state, before and after this call.
    """
    row = int(rng.random() * pairs.shape[0])
    triple = np.array([pairs[row, 0], pairs[row, 1], 0])
    triple[2] = choose_third(pairs, triple[0], triple[1], rng)
    chosen = choose_swaps(rng)
    level = math.log(rng.random())
    if triple[2] < 0:
        return False
    # All interactions have the same scale. So theta can be swapped like its coordinates.
    for at in range(0, chosen.shape[0], 2):
        swap_two(theta, triple, chosen[at], chosen[at + 1])
        swap_two(z, triple, chosen[at], chosen[at + 1])
    columns = swapped_columns(triple, chosen)
    return try_columns(state, current, theta, z, columns, state.orders, 0.0, target, level)
