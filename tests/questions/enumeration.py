"""Enumerate all sequences of a small model, to compute exact values for the tests of questions.

The enumeration uses only the definition of the model: in the state R, item j arrives at the rate
exp(theta[j, j] + sum over i in R of theta[i, j]), and the sample is observed at the rate z.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from sequela import Model
from sequela.observation import Exponential


class Walk(NamedTuple):
    """One observed sequence, its probability, and the total rate of leaving each of its states."""

    sigma: tuple[int, ...]
    probability: float
    totals: tuple[float, ...]


def walks(theta, z=1.0, sigma=(), weight=1.0, totals=()):
    """Return all sequences that can be observed, including the empty one (for n <= 6)."""
    rates = {
        j: math.exp(theta[j, j] + sum(theta[i, j] for i in sigma))
        for j in range(len(theta))
        if j not in sigma
    }
    total = z + sum(rates.values())
    found = [Walk(sigma, weight * z / total, (*totals, total))]
    for j, rate in rates.items():
        found += walks(theta, z, (*sigma, j), weight * rate / total, (*totals, total))
    return found


def pair_table(theta, z=1.0):
    """Return P(a before b, and both are observed). The diagonal has P(a is observed)."""
    table = np.zeros_like(theta)
    for walk in walks(theta, z):
        for at, b in enumerate(walk.sigma):
            table[b, b] += walk.probability
            for a in walk.sigma[:at]:
                table[a, b] += walk.probability
    return table


def order_table(theta, z=1.0):
    """Return two tables: P(a before b | both are observed), and P(both are observed).

    The diagonal of the first table is NaN. The diagonal of the second is P(a is observed).
    """
    joint = pair_table(theta, z)
    both = joint + joint.T
    np.fill_diagonal(both, np.diagonal(joint))
    probability = joint / both
    np.fill_diagonal(probability, np.nan)
    return probability, both


def of_sample(theta, sample, z=1.0):
    """Return the walks that end in this set, with their probabilities given the set."""
    ending = [walk for walk in walks(theta, z) if set(walk.sigma) == set(sample)]
    total = sum(walk.probability for walk in ending)
    return [walk._replace(probability=walk.probability / total) for walk in ending]


def position_and_arrival(found, item):
    """Return mean and standard deviation of the position and of the arrival time of an item.

    They are moments over the walks in `found`, weighted with their probabilities. Given a walk, the
    times spent in its states are independent and exponential, with the total rates of the states.
    """
    weight, position, mean, second = (np.empty(len(found)) for _ in range(4))
    for row, walk in enumerate(found):
        at = walk.sigma.index(item) + 1
        holds = [1.0 / total for total in walk.totals[:at]]
        weight[row], position[row], mean[row] = walk.probability, at, sum(holds)
        second[row] = sum(h * h for h in holds) + sum(holds) ** 2
    weight /= weight.sum()
    m, a = weight @ position, weight @ mean
    return m, math.sqrt(weight @ position**2 - m**2), a, math.sqrt(weight @ second - a**2)


def random_theta(seed, n, largest=5.0, density=1.0, base=-1.0):
    """Return a random theta.

    A share `density` of its effects is between -`largest` and `largest`. The others are 0.
    """
    rng = np.random.default_rng(seed)
    theta = rng.uniform(-largest, largest, (n, n))
    theta[rng.random((n, n)) >= density] = 0.0
    np.fill_diagonal(theta, rng.uniform(-1.5, 1.5, n) + base)
    return theta


def observed(theta, rate, items=None):
    """Return the model with this theta and this rate of observation."""
    return Model(theta, items, observation=Exponential(rate))


def labels(n):
    """Return the default labels of n items, which are their numbers as text."""
    return [str(i) for i in range(n)]


@st.composite
def models(draw, min_items=2, max_items=6):
    """Draw a model: dense or sparse, with weak or strong effects and some rate of observation."""
    n = draw(st.integers(min_items, max_items))
    theta = random_theta(
        draw(st.integers(0, 2**32)),
        n,
        draw(st.sampled_from([0.5, 2.0, 5.0])),
        draw(st.sampled_from([0.0, 0.2, 0.5, 1.0])),
        draw(st.sampled_from([-3.0, 0.0, 2.0])),
    )
    return observed(theta, draw(st.sampled_from([1.0, 0.3, 4.0])))


def theta_and_rate(model):
    """Return theta and the rate of the observation of a model."""
    return model.theta, model.observation.rate
