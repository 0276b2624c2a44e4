"""Jumps of two items along the family of Proposition 1: invariants, changes, and Jacobians."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from posteriors import twins
from sequela.kernels.arguments import JumpWay
from sequela.kernels.family_jump import (
    change_order,
    exchange_items,
    follow_effects,
    guide_share,
    log_absent,
    pair_shares,
)
from sequela.kernels.posterior_sweep import COUNTS, change_pairs
from sequela.posteriors import BaseRates, Laplace, Normal, StudentT
from sequela.questions import two_item_family_of

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)
effects = st.floats(-3.0, 3.0)
thetas = st.tuples(effects, effects, effects, effects).map(lambda x: np.reshape(x, (2, 2)))
WIDE = Normal(scale=3.0, base_rates=BaseRates(0.0, 3.0))


def shares(theta):
    """Return the probabilities of the five sequences of two items, by the uncompiled kernel."""
    return np.array(pair_shares.py_func(theta[0, 0], theta[1, 1], theta[0, 1], theta[1, 0]))


@quick
@given(thetas)
def test_shares_are_the_probabilities_of_all_sequences(theta):
    sequences = ref.sequence_distribution(theta)
    wanted = [sequences[order] for order in [(), (0,), (1,), (0, 1), (1, 0)]]
    np.testing.assert_allclose(shares(theta), wanted, rtol=1e-12)
    np.testing.assert_allclose(twins.two_item_sets(theta), wanted, rtol=1e-12)


@quick
@given(thetas)
def test_the_determinant_of_the_map_is_the_product_of_the_set_probabilities(theta):
    """The determinant of d(p1, p2, p12, logit w) / d(theta) is the same in the whole family.

    Therefore jumps within a family need no correction for a change of volume.
    """

    def numbers(theta):
        _, p1, p2, first, second = shares(theta)
        return np.array([p1, p2, first + second, np.log(first / second)])

    h = 1e-5
    jacobian = np.empty((4, 4))
    for column, index in enumerate(np.ndindex(2, 2)):
        change = np.zeros((2, 2))
        change[index] = h
        jacobian[:, column] = (numbers(theta + change) - numbers(theta - change)) / (2 * h)
    p0, p1, p2, first, second = shares(theta)
    wanted = p0 * p1 * p2 * (first + second)
    assert abs(np.linalg.det(jacobian)) == pytest.approx(wanted, rel=1e-4)


def absent(theta, x, y):
    """Return log P(first item absent) and log P(second item absent).

    Another item is present from the start, with the effects x and y on the two items.
    """
    p = ref.set_distribution(theta + np.diag([x, y]))
    return np.log([p[0] + p[2], p[0] + p[1]])


@quick
@given(thetas, effects, effects)
def test_marginals_with_another_item_and_their_derivatives(theta, x, y):
    four = (theta[0, 0], theta[1, 1], theta[0, 1], theta[1, 0])
    found = log_absent.py_func(*four, x, y)
    np.testing.assert_allclose(found[:2], absent(theta, x, y), rtol=1e-9, atol=1e-12)
    h = 1e-5
    by_x = (absent(theta, x + h, y) - absent(theta, x - h, y)) / (2 * h)
    by_y = (absent(theta, x, y + h) - absent(theta, x, y - h)) / (2 * h)
    wanted = [by_x[0], by_y[0], by_x[1], by_y[1]]
    np.testing.assert_allclose(found[2:], wanted, rtol=1e-5, atol=1e-8)


# These functions are not cached, because Numba would not notice changes of the functions that they
# call.
@numba.njit(error_model="numpy")
def follow(theta, z, old, new, i, j, third, unit, prior):
    return follow_effects(theta, z, old, new, i, j, third, unit, prior)


@numba.njit(error_model="numpy")
def jump(state, target, jumps, count, counts, rng):
    change_pairs(state, target, jumps, count, counts, rng)


@numba.njit(error_model="numpy")
def change(theta, z, i, j, way, step, unit, target):
    return change_order(theta, z, i, j, way, step, unit, target)


def four(theta):
    return (theta[0, 0], theta[1, 1], theta[0, 1], theta[1, 0])


@quick
@given(st.integers(0, 2**32 - 1), st.sampled_from([(0, 2, -1), (3, 1, -1), (3, 1, 0), (0, 2, 3)]))
def test_effects_that_follow_have_the_ratio_of_densities_and_volumes(seed, items):
    """The gain is the log Jacobian plus the change of the log prior.

    The opposite jump has the same gain with the opposite sign. In some cases a jump also changes
    the effects of all other items on the two items. In other cases it changes the effects of only
    one other item.
    """
    *pair, third = items
    n, unit = 4, 0.7
    prior = Laplace(scale=unit)
    rng = np.random.default_rng(seed)
    theta = ref.random_theta(rng, n, 1.2)
    old = pair_of(theta, *pair)
    low, high = two_item_family_of(old).interval
    new = two_item_family_of(old).theta(low + (high - low) * rng.uniform(0.05, 0.95))

    def moved(theta, start, end):
        after, z = theta.copy(), np.full((n, n), np.nan)
        shape = twins.shape_of(prior)
        found, gain = follow(after, z, four(start), four(end), *pair, third, unit, shape)
        assert found
        return after, z, gain

    after, z, gain = moved(theta, old, new)
    others = np.array([k for k in range(n) if k not in pair and third in (-1, k)])
    places = [(k, target) for k in others for target in pair]
    rows, columns = np.transpose(places)
    for k in others:
        effects = theta[k, list(pair)], after[k, list(pair)]
        np.testing.assert_allclose(absent(new, *effects[1]), absent(old, *effects[0]), rtol=1e-7)
    jacobian = np.empty((len(places), len(places)))
    h = 1e-5
    for column, place in enumerate(places):
        up, down = theta.copy(), theta.copy()
        up[place] += h
        down[place] -= h
        change = moved(up, old, new)[0] - moved(down, old, new)[0]
        jacobian[:, column] = change[rows, columns] / (2 * h)
    log_prior = scipy.stats.laplace(scale=unit).logpdf
    wanted = np.linalg.slogdet(jacobian)[1]
    wanted += (log_prior(after) - log_prior(theta))[rows, columns].sum()
    # The kernel interpolates the prior by cubics, so its density has only five correct digits.
    assert gain == pytest.approx(wanted, abs=3e-4)
    np.testing.assert_allclose(
        unit * twins.shape_quantile(prior, z[rows, columns]), after[rows, columns], rtol=1e-6
    )
    assert np.isnan(np.delete(z.ravel(), rows * n + columns)).all()
    back, _, loss = moved(after, new, old)
    np.testing.assert_allclose(back, theta, atol=1e-7)
    assert loss == pytest.approx(-gain, abs=1e-5)


# --- Jumps of a chain -----------------------------------------------------------------------------


def coordinates(theta):
    """Return the standard normal coordinates of theta under the prior `WIDE`."""
    z = theta / WIDE.scale
    np.fill_diagonal(z, (np.diag(theta) - WIDE.base_rates.mean) / WIDE.base_rates.sd)
    return z


def jumps_from(theta, target, pair, tries):
    """Yield theta and state after sweeps in which one jump of a pair was the only change.

    Each sweep starts at the same theta. Trajectories have step 0, so they do not move. Sweeps with
    an accepted shift of a row are skipped.
    """
    z = coordinates(theta)
    still = twins.trajectory(len(theta), 0.0)
    for seed in range(tries):
        state = twins.state_at(z)
        rng = np.random.default_rng(seed)
        done = twins.sweep(state, target, still, np.array([pair]), jumps=1, rng=rng)
        if done["jumps accepted"] and not done["shifts accepted"]:
            yield twins.read(state, target)[0], state
        elif not done["shifts accepted"]:
            # A trajectory of step 0 converts z to stretched coordinates and back, which causes
            # rounding errors.
            np.testing.assert_allclose(state.z, z, rtol=1e-14)


def pair_of(theta, i, j, stop_rate=1.0):
    return theta[np.ix_([i, j], [i, j])] - np.log(stop_rate) * np.eye(2)


def logit(theta):
    *_, first, second = shares(theta)
    return np.log(first / second)


@pytest.mark.parametrize("stop_rate", [1.0, 3.0])
def test_a_jump_keeps_the_distribution_of_the_two_items(stop_rate):
    theta = ref.random_theta(np.random.default_rng(7), 4)
    theta[2, 1] = 2.5  # item 2 usually precedes item 1
    target, _ = twins.target_of([], WIDE, 4, stop_rate=stop_rate)
    pair = (2, 1)
    old = pair_of(theta, *pair, stop_rate)
    family = two_item_family_of(old)
    kinds, places = [], []
    for new, _ in jumps_from(theta, target, pair, 12_000):
        now = pair_of(new, *pair, stop_rate)
        assert family.contains(now, rtol=1e-9)
        assert family.order_probability(np.exp(now[0, 0])) == pytest.approx(
            1 / (1 + np.exp(-logit(now))), abs=1e-7
        )
        places.append(logit(now))
        others = np.ones((4, 4), dtype=bool)
        others[np.ix_(pair, pair)] = False
        followed = bool((np.abs(new - theta)[others] > 1e-9).any())
        kinds.append(followed)
        for k in (0, 3):
            others[k, list(pair)] = False
            if followed:
                np.testing.assert_allclose(
                    absent(now, *new[k, list(pair)]), absent(old, *theta[k, list(pair)]), atol=1e-8
                )
            else:
                np.testing.assert_allclose(new[k], theta[k], rtol=1e-11)
        np.testing.assert_allclose(new[others], theta[others], rtol=1e-11)
    # Without data, jumps to both orders are accepted, with and without changes of other effects.
    places = np.array(places) / logit(old)
    for followed, reversed_order in itertools.product([True, False], repeat=2):
        chosen = (np.array(kinds) == followed) & ((places < -0.5) == reversed_order)
        assert chosen.sum() >= 10


def test_a_jump_of_the_only_two_items_keeps_the_likelihood():
    rng = np.random.default_rng(8)
    theta = np.array([[-0.5, 2.0], [0.5, -1.0]])
    target, _ = twins.target_of(twins.simulated_orders(theta, rng, 40), WIDE, 2)
    p = ref.set_distribution(theta)
    sets = [target.sets.items[a:b] for a, b in itertools.pairwise(target.sets.start)]
    wanted = sum(np.log(p[sum(1 << i for i in items)]) for items in sets)
    found = [state.values[0] for _, state in jumps_from(theta, target, (0, 1), 300)]
    assert len(found) >= 50
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_a_share_at_the_end_of_its_range_is_not_left():
    """No jump is made if one of the two orders has a share below 1e-12.

    Jumps are made if the items are rare, but both of their orders have a larger share.
    """
    target, _ = twins.target_of([], WIDE, 2)
    beyond = np.array([[-1.0, 0.0], [-40.0, 1.0]])
    assert 0.0 < shares(beyond)[4] / shares(beyond)[3] < 1e-12
    assert not list(jumps_from(beyond, target, (0, 1), 100))
    rare = np.array([[-12.0, -8.0], [-7.0, -11.0]])
    found = [shares(new) for new, _ in jumps_from(rare, target, (0, 1), 200)]
    assert len(found) >= 10
    sums = np.array([[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 1]])
    np.testing.assert_allclose(np.array(found) @ sums.T, [sums @ shares(rare)] * len(found))


@numba.njit(error_model="numpy")
def guide(logit, level, p0, p1, p2, both, unit, shift, prior):
    return guide_share(logit, level, p0, p1, p2, both, unit, shift, prior)


def guided_from(theta, start, level, prior):
    """Return what `guide_share` returns for a pair whose present logit is `start`.

    The first number is the drawn logit. The second number is the log-ratio of two densities: the
    density of the reverse proposal, divided by the density of this proposal. `level` is the uniform
    random number from which the logit is drawn.
    """
    p0, p1, p2, first, second = shares(theta)
    arguments = (p0, p1, p2, first + second, prior.scale, 0.0, twins.shape_of(prior))
    possible, end, ratio = guide(start, level, *arguments)
    assert possible
    return end, ratio


def density_by_levels(theta, start, end, prior):
    """Return the density of the proposal `end` from `start`: the derivative of level by logit."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if guided_from(theta, start, middle, prior)[0] < end:
            low = middle
        else:
            high = middle
    h = 1e-6 * min(low, 1.0 - low)
    above = guided_from(theta, start, low + h, prior)[0]
    below = guided_from(theta, start, low - h, prior)[0]
    return 2 * h / (above - below)


@pytest.mark.parametrize("prior", [Laplace(0.7), StudentT(df=2.0, scale=0.4)])
def test_a_guided_share_has_the_ratio_of_its_two_proposals(prior):
    """Compare the ratio with densities that do not use the formulas of the kernel.

    The densities of the proposal and of its reverse are computed from drawn logits by numerical
    differentiation.
    """
    rng = np.random.default_rng(5)
    for _ in range(20):
        theta = ref.random_theta(rng, 2, 1.5)
        start = logit(theta)
        end, ratio = guided_from(theta, start, rng.uniform(0.02, 0.98), prior)
        assert end * start < 0
        there = density_by_levels(theta, start, end, prior)
        back = density_by_levels(theta, end, start, prior)
        assert ratio == pytest.approx(np.log(back / there), abs=1e-4)


def test_guided_shares_follow_the_prior_along_the_family():
    """Levels at equal distances give the quantiles of the prior density, up to one cell."""
    prior = StudentT(df=2.0, scale=0.4)
    theta = np.array([[-0.5, 2.5], [0.0, -2.0]])
    p0, p1, p2, first, second = shares(theta)
    both = first + second
    places = np.linspace(-12, 0, 24_001)
    moved = both * scipy.special.expit(places)
    one, two = np.log((p1 + moved) / p0), np.log((p2 + both - moved) / p0)
    effects = np.log(moved / p1) - two, np.log((both - moved) / p2) - one
    density = np.prod([twins.shape_distribution(prior).pdf(x / 0.4) for x in effects], axis=0)
    for rate in (one, two):
        density *= np.exp(-0.5 * ((rate - prior.base_rates.mean) / prior.base_rates.sd) ** 2)
    cumulative = np.cumsum(density) / density.sum()
    levels = np.linspace(0.05, 0.95, 19)
    found = [guided_from(theta, logit(theta), level, prior)[0] for level in levels]
    assert np.abs(found - places[np.searchsorted(cumulative, levels)]).max() < 0.25
    assert np.ptp(found) > 1.0


def test_jumps_of_several_pairs_lead_back_in_the_opposite_sequence():
    """The same jumps in the opposite sequence restore theta, and their gain has opposite sign."""
    n = 4
    rng = np.random.default_rng(3)
    theta = ref.random_theta(rng, n)
    target, _ = twins.target_of([], WIDE, n)
    pairs = [(0, 1), (1, 2), (0, 2)]
    ways = [JumpWay(True, 0.3, False, *follow) for follow in ((True, -1), (False, -1), (True, 2))]
    steps = rng.standard_normal(3)

    def moved(theta, sequence):
        after, z, total = theta.copy(), coordinates(theta), 0.0
        for k in sequence:
            possible, gain, _ = change(after, z, *pairs[k], ways[k], steps[k], WIDE.scale, target)
            assert possible
            total += gain
        np.testing.assert_allclose(z, coordinates(after), atol=1e-6)
        return after, total

    there, gain = moved(theta, (0, 1, 2))
    assert np.abs(there - theta).max() > 0.5
    back, loss = moved(there, (2, 1, 0))
    np.testing.assert_allclose(back, theta, atol=1e-6)
    assert loss == pytest.approx(-gain, abs=1e-5)


def test_items_are_exchanged_in_the_latent_orders_that_have_both():
    """Only the orders that contain both items change, and a second exchange restores them."""
    target, orders = twins.target_of([[3, 1, 0], [2, 0], [1, 2, 0], [0, 1]], WIDE, 4, 1)
    now = orders.copy()
    exchange_items.py_func(now, target, 0, 1)
    assert now.tolist() == [3, 0, 1, 2, 0, 0, 2, 1, 1, 0]
    exchange_items.py_func(now, target, 1, 0)
    np.testing.assert_array_equal(now, orders)


def test_some_jumps_to_the_opposite_order_exchange_the_items_of_latent_orders():
    theta = np.array([[0.0, 3.0, 0.0], [0.0, -3.0, 0.0], [0.0, 0.0, 0.0]])
    target, latent = twins.target_of([[2, 0, 1]], WIDE, 3, 1)
    z, still = coordinates(theta), twins.trajectory(3, 0.0)
    exchanged = {True: 0, False: 0}
    for seed in range(1500):
        state = twins.state_at(z, 0.0, latent)
        # A whole sweep would draw the orders again after the jumps, so only the jumps are called.
        counts, rng = np.zeros(len(COUNTS)), np.random.default_rng(seed)
        twins.sweep(state, target, still, rng=np.random.default_rng(0), sweeps=0)
        jump(state, target, np.array([[0, 1]]), 1, counts, rng)
        if counts[4] and logit(pair_of(twins.read(state, target)[0], 0, 1)) < 0.0:
            exchanged[state.orders.tolist() == [2, 1, 0]] += 1
        else:
            assert state.orders.tolist() == [2, 0, 1]
    # After a jump to the opposite order, "0 before 1" is unlikely. So most accepted jumps exchange
    # the two items.
    assert exchanged[True] >= 10
    assert exchanged[True] > exchanged[False]
