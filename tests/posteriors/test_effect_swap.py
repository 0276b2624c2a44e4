"""Swaps of interactions among three items: which entries they exchange, and how they are accepted.

`test_moves` checks that swaps leave the posterior unchanged.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import scipy.stats

import reference as ref
from posteriors import twins
from sequela.kernels.column_change import fill_rates, make_rates
from sequela.kernels.effect_swap import (
    choose_swaps,
    swap_effects,
    swap_two,
    swapped_columns,
)
from sequela.kernels.pair_choice import choose_third
from sequela.kernels.prior_transform import fill_theta
from sequela.posteriors import BaseRates, StudentT
from sequela.support.jit import kernel

PRIOR = StudentT(3.0, 0.8, BaseRates(-0.5, 1.0))
TRIPLE = np.array([3, 0, 2])


@kernel
def swap(state, target, pairs, rng):
    n = state.z.shape[0]
    theta, slope = np.empty((n, n)), np.empty((n, n))
    fill_theta(theta, slope, state.z, state.scale, target.prior)
    current = make_rates(n, target)
    fill_rates(current, theta, target)
    return swap_effects(state, current, theta, state.z.copy(), target, pairs, rng)


@kernel
def exchange(entries, triple, first, second):
    swap_two(entries, triple, first, second)


@kernel
def columns_of(triple, chosen):
    return swapped_columns(triple, chosen)


def swapped(first, second):
    """Return the two entries of a 4 x 4 matrix that a swap exchanges."""
    z = np.arange(16.0).reshape(4, 4)
    new = z.copy()
    exchange(new, TRIPLE, first, second)
    moved = np.argwhere(new != z)
    assert new[tuple(moved[0])] == z[tuple(moved[1])]
    assert new[tuple(moved[1])] == z[tuple(moved[0])]
    exchange(new, TRIPLE, first, second)
    np.testing.assert_array_equal(new, z)
    return frozenset(map(tuple, moved.tolist()))


def test_the_numbers_stand_for_the_six_interactions_of_three_items():
    entries = {(i, j) for i in TRIPLE for j in TRIPLE if i != j}
    found = {swapped(a, b) for a, b in combinations(range(6), 2)}
    assert found == {frozenset(two) for two in combinations(entries, 2)}


@pytest.mark.parametrize("numbers", [(0, 1), (0, 5), (2, 3, 0, 4), (1, 1, 1, 1)])
def test_swapped_columns_are_those_of_the_changed_entries(numbers):
    columns = columns_of(TRIPLE, np.array(numbers)).tolist()
    entries = np.array([(i, j) for i in TRIPLE for j in TRIPLE if i != j])
    z = np.zeros((4, 4))
    for k, (i, j) in enumerate(entries):
        z[i, j] = k + 1.0
    changed = set()
    for first, second in zip(numbers[::2], numbers[1::2], strict=True):
        new = z.copy()
        exchange(new, TRIPLE, first, second)
        changed |= set(np.argwhere(new != z)[:, 1].tolist())
    assert len(columns) == len(set(columns))
    assert changed <= set(columns) <= set(TRIPLE.tolist())


def test_all_swaps_are_chosen_equally_often():
    rng, counts = np.random.default_rng(1), Counter()
    for _ in range(15_000):
        chosen = choose_swaps.py_func(rng)
        assert chosen.size in (2, 4)
        counts[frozenset(chosen[:2].tolist())] += 1
    assert len(counts) == 15
    assert scipy.stats.chisquare(list(counts.values())).pvalue > 1e-4


@kernel
def third_of(pairs, a, b, rng):
    return choose_third(pairs, a, b, rng)


def test_a_third_item_is_chosen_from_the_other_pairs_of_two_items():
    pairs = np.array([[0, 1]] * 20 + [[1, 2]] * 6 + [[3, 0]] * 2 + [[4, 5]] * 8)
    rng = np.random.default_rng(1)
    found = Counter(third_of(pairs, 0, 1, rng) for _ in range(4000))
    # All 30 attempts fail with a probability of (28 / 36)^30 = 0.0005.
    assert set(found) <= {2, 3, -1}
    assert found[-1] < 12
    # The standard error is 0.007.
    assert found[2] / (found[2] + found[3]) == pytest.approx(0.75, abs=0.035)
    assert third_of(pairs[:20], 0, 1, rng) == -1


def log_likelihood(theta, orders):
    """Return the log-likelihood of the sets, by the slow reference."""
    return sum(ref.log_p_set(theta, order) for order in orders)


def test_a_swap_is_accepted_with_the_ratio_of_the_likelihoods():
    """Compare how often each swapped matrix is reached with the ratio that the reference gives."""
    rng = np.random.default_rng(3)
    z = rng.standard_normal((3, 3))
    orders = twins.simulated_orders(np.diag([0.0, -0.5, 0.5]), rng, 12)
    target, latent = twins.target_of(orders, PRIOR, 3)
    theta, _, _ = twins.read(twins.state_at(z), target)
    before = log_likelihood(theta, orders)
    pairs, still = np.array([[0, 1], [1, 2], [0, 2]]), twins.trajectory(3, 0.0)
    reached = Counter()
    tries = 20_000
    start = twins.state_at(z, 0.0, latent)
    twins.sweep(start, target, still, sweeps=0, rng=np.random.default_rng(0))
    for _ in range(tries):
        state = twins.state_at(z, 0.0, latent)
        state.values[:] = start.values
        if swap(state, target, pairs, rng):
            after = log_likelihood(twins.read(state, target)[0], orders)
            assert state.values.sum() == pytest.approx(after, abs=1e-9)
            reached[state.z.tobytes()] += 1
        else:
            np.testing.assert_array_equal(state.z, z)
            np.testing.assert_array_equal(state.values, start.values)
    # 70% of the proposals are single swaps. Two swaps are an even permutation, so they never lead
    # to the matrix of a single swap. A correct program fails with a probability of about 1e-5.
    for first, second in combinations(range(6), 2):
        new = z.copy()
        exchange(new, np.array([0, 1, 2]), first, second)
        after = log_likelihood(twins.read(twins.state_at(new), target)[0], orders)
        expected = tries * 0.7 / 15.0 * min(1.0, np.exp(after - before))
        assert abs(reached[new.tobytes()] - expected) < 5.0 * np.sqrt(expected) + 1.0
