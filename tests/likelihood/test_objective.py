"""The objective of a solver: exact sets, orders that are reweighted, and extreme thetas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

import reference as ref
from sequela import Budget, BudgetError, Dataset, InputError, Model, Sampling, evaluate
from sequela.likelihood.objective import Objective
from sequela.likelihood.reweighting import DrawnOrders
from sequela.observation import Exponential
from sequela.settings import Settings

# The seeds of statistical checks are fixed. If they were random, each comparison would fail with
# this probability although the program is correct.
FALSE_ALARM = 1e-5

NOTHING_FITS = Budget(work=1.0)


def table(n, *sets):
    X = np.zeros((len(sets), n), dtype=int)
    for row, S in zip(X, sets, strict=True):
        row[list(S)] = 1
    return X


def objective_of(X, *, times=None, rate=1.0, **settings):
    settings = {"random_state": 1, "n_threads": 1, **settings}
    return Objective(Dataset(X, times=times), Exponential(rate), Settings(**settings))


def exact_loss(theta, X, rate=1.0, times=None):
    found = evaluate(Model(theta, observation=Exponential(rate)), X, times=times, n_threads=1)
    assert set(found.methods) == {"exact"}
    return -found.value, -found.gradient


# --- Exact sets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.3, 1.0, 2.0])
def test_loss_and_gradient_are_minus_those_of_the_evaluation(rate):
    """The data are 80 sets of many sizes, of which some are equal. They fill several blocks."""
    rng = np.random.default_rng(1)
    n = 12
    theta = ref.random_theta(rng, n, 0.5, sparsity=0.4)
    X = (rng.random((80, n)) < 0.5).astype(int)
    X[20:30] = X[5]
    objective = objective_of(X, rate=rate)
    assert not objective.is_sampled
    loss, gradient = objective.evaluate(theta)
    expected = exact_loss(theta, X, rate)
    assert loss == pytest.approx(expected[0], rel=1e-14)
    np.testing.assert_allclose(gradient, expected[1], rtol=0, atol=1e-14)
    by_hand = [ref.log_p_set(theta, np.flatnonzero(row), stop_rate=rate) for row in X[:30]]
    assert objective_of(X[:30], rate=rate).evaluate(theta)[0] == pytest.approx(
        -np.mean(by_hand), rel=1e-11
    )


def test_known_and_unknown_times_side_by_side():
    rng = np.random.default_rng(2)
    theta = ref.random_theta(rng, 5, 0.7)
    X = (rng.random((20, 5)) < 0.5).astype(int)
    times = np.where(rng.random(20) < 0.5, np.nan, rng.uniform(0.2, 3.0, 20))
    loss, gradient = objective_of(X, times=times, rate=0.4).evaluate(theta)
    expected = exact_loss(theta, X, 0.4, times)
    assert loss == pytest.approx(expected[0], rel=1e-14)
    np.testing.assert_allclose(gradient, expected[1], rtol=0, atol=1e-14)


def test_nothing_is_drawn_where_all_is_exact():
    theta = ref.random_theta(np.random.default_rng(3), 4)
    objective = objective_of(table(4, [0, 1], [2]))
    before = objective.evaluate(theta)
    objective.draw(theta, kept=5)
    assert (objective.draws, objective.effective, objective.large) == (0, 1.0, [])
    after = objective.evaluate(theta)
    assert after[0] == before[0] == objective.evaluate_lattices(theta)[0]
    np.testing.assert_array_equal(objective.gradient_error(theta), 0.0)


# --- Rates and times out of range -----------------------------------------------------------------


@pytest.mark.parametrize("entry", [200.0, 500.0, 800.0, 1e4, np.inf, np.nan])
def test_rates_out_of_range_are_an_infinite_loss(entry):
    """A line search may try any theta. An extreme theta gives an infinite loss, not an error."""
    X = table(5, range(4), [0], [])
    theta = np.full((5, 5), entry)
    objective = objective_of(X)
    loss, gradient = objective.evaluate(theta)
    assert loss == np.inf
    np.testing.assert_array_equal(gradient, np.zeros((5, 5)))
    if entry <= 500.0:
        with pytest.raises(InputError, match="log-rate of"):
            evaluate(theta, X)
    # After an extreme theta, the objective can evaluate a normal one.
    near = ref.random_theta(np.random.default_rng(1), 5)
    assert objective.evaluate(near)[0] == pytest.approx(exact_loss(near, X)[0], rel=1e-14)


def test_one_set_out_of_range_is_enough():
    """The loss is infinite if any set reaches a rate that is out of range.

    Here this is the rate of item 1, but only in samples that have item 0.
    """
    theta = np.zeros((3, 3))
    theta[0, 1], theta[1, 1] = 400.0, 400.0
    assert np.isfinite(objective_of(table(3, [2], [])).evaluate(theta)[0])
    assert objective_of(table(3, [2], [], [0, 2])).evaluate(theta)[0] == np.inf


@pytest.mark.parametrize("entry", [-600.0, -800.0, -2000.0])
@pytest.mark.parametrize("where", [(0, 1), (1, 1), (2, 2)])
def test_rates_below_every_double_are_in_range(entry, where):
    """Rates that are too small for a double are in range: their logarithms are still correct."""
    theta = ref.random_theta(np.random.default_rng(1), 3)
    theta[where] = entry
    sets = [[0, 1], [0], []]
    loss, gradient = objective_of(table(3, *sets)).evaluate(theta)
    values = [ref.mp_log_p_set(theta, S, digits=2000) for S in sets]
    gradients = [ref.mp_gradient_set(theta, S, digits=2000) for S in sets]
    assert loss == pytest.approx(-np.mean(values), rel=1e-13)
    np.testing.assert_allclose(gradient, -np.mean(gradients, axis=0), rtol=0, atol=1e-12)


def test_times_out_of_range_are_an_infinite_loss():
    theta = np.diag([600.0, 0.0])
    X, times = table(2, [1]), [1e200]
    with pytest.raises(InputError, match="cannot be computed in double precision"):
        evaluate(np.diag([500.0, 0.0]), X, times=times)
    assert objective_of(X, times=times).evaluate(theta)[0] == np.inf


@pytest.mark.parametrize("entry", [90.0, 500.0, 800.0])
def test_sampled_sets_out_of_range_are_an_infinite_loss(entry):
    """The range of rates is smaller for sampled sets, because products of rates must be doubles."""
    n = 5
    objective = objective_of(table(n, range(4), [0]), budget=NOTHING_FITS)
    start = np.diag(np.full(n, -1.0))
    objective.draw(start, kept=3)
    loss, gradient = objective.evaluate(np.full((n, n), entry))
    assert loss == np.inf
    np.testing.assert_array_equal(gradient, np.zeros((n, n)))
    assert np.isfinite(objective.evaluate(start)[0])


# --- Drawn orders ---------------------------------------------------------------------------------


@pytest.fixture
def model():
    """Return a theta without interactions, a similar theta, and sets of 0 to 7 items."""
    rng = np.random.default_rng(4)
    n = 8
    start = np.diag(rng.normal(-0.5, 0.5, n))
    near = start + rng.normal(0.0, 0.15, (n, n))
    X = table(n, range(7), range(1, 8), [0, 2, 4, 5, 7], [3], [])
    return start, near, X


SAMPLING = Sampling(chains=8, block=3)


def sampled(X, rate=1.0, **settings):
    """Return an objective that draws orders for sets of five or more items."""
    n = X.shape[1]
    budget = Budget(work=Budget.exact_work(4, n))
    objective = objective_of(X, rate=rate, **{"budget": budget, "sampling": SAMPLING, **settings})
    assert sorted(large.items.size for large in objective.large) == [5, 7, 7]
    assert objective.is_sampled
    return objective


@pytest.mark.parametrize("rate", [1.0, 2.0])
def test_the_loss_is_exact_at_a_start_without_interactions(model, rate):
    """At the theta at which orders are drawn, the loss is exact and all orders have equal weights.

    The loss is exact because this theta has no interactions, so log p(S) needs no sampling.
    """
    start, _, X = model
    objective = sampled(X, rate)
    objective.draw(start, kept=4)
    loss, _ = objective.evaluate(start)
    assert loss == pytest.approx(exact_loss(start, X, rate)[0], rel=1e-9)
    assert objective.effective == pytest.approx(1.0, abs=1e-12)
    assert objective.draws == 1


def test_exact_sets_alone(model):
    start, near, X = model
    objective = sampled(X)
    objective.draw(start, kept=4)
    loss, gradient = objective.evaluate_lattices(near)
    small = X.sum(axis=1) < 5
    expected = exact_loss(near, X[small])
    share = small.mean()
    assert loss == pytest.approx(share * expected[0], rel=1e-12)
    np.testing.assert_allclose(gradient, share * expected[1], rtol=0, atol=1e-14)


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_reweighted_orders_give_loss_and_gradient_elsewhere(model, rate):
    """The errors of the loss, and of the gradient along random directions, have mean zero.

    Loss and gradient are ratios of two means over the 400 drawn orders of a set. Such a ratio has
    a bias of about 1 / 400, which is far below the spread of the results for the 30 seeds.
    """
    start, near, X = model
    expected, slope = exact_loss(near, X, rate)
    directions = np.random.default_rng(5).normal(size=(slope.size, 3))
    losses, slopes = [], []
    for seed in range(30):
        objective = sampled(X, rate, random_state=seed)
        objective.draw(start, kept=50)
        loss, gradient = objective.evaluate(near)
        losses.append(loss - expected)
        slopes.append((gradient - slope).ravel() @ directions)
        assert 0.1 < objective.effective < 1.0
    assert 0 < np.std(losses) < 0.05
    assert scipy.stats.ttest_1samp(losses, 0.0).pvalue > FALSE_ALARM
    assert scipy.stats.ttest_1samp(np.array(slopes), 0.0).pvalue.min() > FALSE_ALARM
    # The losses at the two thetas differ by more than 0.1. So the test would notice orders that are
    # not reweighted.
    assert abs(exact_loss(start, X, rate)[0] - expected) > 0.1


def test_the_gradient_is_the_derivative_of_the_loss(model):
    """The gradient agrees with finite differences of the loss. A line search relies on this."""
    start, near, X = model
    objective = sampled(X, rate=0.7)
    objective.draw(start, kept=6)
    _, gradient = objective.evaluate(near)
    numerical = ref.finite_difference_gradient(lambda at: objective.evaluate(at)[0], near, 1e-5)
    np.testing.assert_allclose(gradient, numerical, rtol=1e-6, atol=1e-8)


def test_the_effective_share_falls_with_the_distance(model):
    start, near, X = model
    objective = sampled(X)
    objective.draw(start, kept=20)
    shares = []
    for distance in (0.0, 0.5, 1.0, 2.0, 4.0):
        objective.evaluate(start + distance * (near - start))
        shares.append(objective.effective)
    assert shares[0] == pytest.approx(1.0, abs=1e-12)
    assert (np.diff(shares) < 0).all()
    assert shares[-1] > 0


def test_new_orders_carry_the_loss_along(model):
    """After a new draw, the loss is unchanged, and all orders have the same weight again."""
    start, near, X = model
    objective = sampled(X)
    objective.draw(start, kept=20)
    before, old_gradient = objective.evaluate(near)
    assert objective.effective < 0.99
    old_orders = [large.orders.copy() for large in objective.large]
    objective.draw(near, kept=30)
    after, gradient = objective.evaluate(near)
    assert after == pytest.approx(before, rel=1e-13)
    assert objective.effective == pytest.approx(1.0, abs=1e-12)
    assert objective.draws == 2
    assert not np.array_equal(gradient, old_gradient)
    for large, old in zip(objective.large, old_orders, strict=True):
        assert large.orders.shape == (8, 30, large.items.size)
        assert not np.array_equal(large.orders[:, :20], old)


def test_a_set_that_becomes_sampled_does_not_change_the_estimates_of_the_others(model):
    start, near, X = model
    same, changed = sampled(X), sampled(X)
    for objective in (same, changed):
        objective.draw(start, kept=20)
    new = DrawnOrders(changed.large[0].items, changed.large[0].weight)
    changed.large[0] = new
    for objective in (same, changed):
        objective.draw(near, kept=20)
    log_p = [large.offset for large in same.large]
    assert [large.offset for large in changed.large[1:]] == log_p[1:]
    # The new set has no orders from an earlier draw. So the stored value is log p of the set in the
    # model without interactions.
    alone = np.diag(np.diagonal(near))
    assert new.offset == pytest.approx(ref.log_p_set(alone, new.items), abs=1e-10)
    assert new.offset != pytest.approx(log_p[0], abs=1e-3)


def test_the_reported_error_of_the_gradient_is_right(model):
    """Test one entry of the gradient per seed: the effect of one of the items 0 to 5 on item 6.

    With C chains, the difference from the exact value, divided by its standard error, has a t
    distribution with C - 1 degrees of freedom (see test_sampled).
    """
    _, near, X = model
    X = X[:1]
    truth = exact_loss(near, X)[1]
    z = []
    for seed in range(60):
        objective = objective_of(
            X, budget=NOTHING_FITS, sampling=Sampling(chains=8, block=2), random_state=seed
        )
        objective.draw(near, kept=10)
        gap = objective.evaluate(near)[1] - truth
        error = objective.gradient_error(near)
        i, j = seed % 6, 6
        z.append(gap[i, j] / error[i, j])
        assert (error[7, :7] == 0).all()  # item 7 is absent, so its effects are not used
    scores = scipy.stats.norm.ppf(scipy.stats.t.cdf(z, 7))
    assert 2 * scipy.stats.norm.sf(abs(scores.sum()) / math.sqrt(len(z))) > FALSE_ALARM
    below = scipy.stats.chi2.cdf((scores**2).sum(), len(z))
    assert 2 * min(below, 1 - below) > FALSE_ALARM


# --- Seeds, threads, and continued fits -----------------------------------------------------------


def drawn_and_evaluated(objective, start, near):
    objective.draw(start, kept=5)
    first = objective.evaluate(near)
    objective.draw(near, kept=7)
    return [*first, *objective.evaluate(start), objective.gradient_error(near)]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_threads_do_not_change_a_bit_and_seeds_do(model):
    start, near, X = model
    found = drawn_and_evaluated(sampled(X), start, near)
    assert same(found, drawn_and_evaluated(sampled(X, n_threads=3), start, near))
    assert not same(found, drawn_and_evaluated(sampled(X, random_state=2), start, near))


def test_every_start_has_streams_of_its_own(model):
    start, near, X = model
    objective = sampled(X)
    first = drawn_and_evaluated(objective, start, near)
    objective.restart(1)
    assert (objective.draws, objective.start, objective.effective) == (0, 1, 1.0)
    second = drawn_and_evaluated(objective, start, near)
    assert not same(first, second)
    objective.restart(0)
    assert same(first, drawn_and_evaluated(objective, start, near))
    other = sampled(X)
    other.restart(1)
    assert same(second, drawn_and_evaluated(other, start, near))


def test_chains_have_streams_of_their_own(model):
    """Chains must have different draws. With equal draws, the standard error would be too small."""
    start, _, X = model
    objective = sampled(X)
    objective.draw(start, kept=6)
    for large in objective.large:
        drawn = {orders.tobytes() for orders in large.orders}
        assert len(drawn) == SAMPLING.chains


def test_an_interrupted_fit_goes_on_with_the_same_orders(model):
    start, near, X = model
    objective = sampled(X)
    objective.draw(start, kept=5)
    objective.evaluate(near)
    state = {name: np.array(value) for name, value in objective.arrays().items()}
    other = sampled(X)
    other.restore(state)
    assert other.effective == objective.effective
    assert (other.draws, other.start) == (objective.draws, objective.start)
    for kept in (None, 4):
        if kept:
            objective.draw(near, kept)
            other.draw(near, kept)
        assert same(objective.evaluate(near), other.evaluate(near))
        assert same(objective.evaluate(start), other.evaluate(start))


# --- What cannot be fitted ------------------------------------------------------------------------


def test_known_times_beyond_the_budget_are_refused_by_name():
    data = Dataset(table(8, [0], range(6)), samples=["small", "large"], times=[1.0, 2.0])
    budget = Budget(work=Budget.exact_work(5, 8, timed=True))
    with pytest.raises(BudgetError, match=r"'large' \(row 1\) has 6 items and a known time.*NaN"):
        Objective(data, Exponential(), Settings(budget=budget))
    enough = Budget(work=Budget.exact_work(6, 8, timed=True))
    assert not Objective(data, Exponential(), Settings(budget=enough)).is_sampled


def test_items_at_time_zero_are_refused_by_name():
    data = Dataset(table(3, [1], [0, 2]), samples=["early", "late"], times=[2.0, 0.0])
    with pytest.raises(InputError, match=r"'late' \(row 1\).*time 0"):
        Objective(data, Exponential(), Settings())


# --- Components or orders -------------------------------------------------------------------------


def test_large_components_are_slower_than_orders_and_small_ones_are_not():
    """Each of `length` items acts on the next one, so these items form one component."""
    n = 40
    objective = objective_of(table(n, [0], [1, 2], range(30)))
    slower = []
    for length in (1, 2, 8, 16, 20):
        support = np.eye(n, dtype=bool)
        support[np.arange(length - 1), np.arange(1, length)] = True
        slower.append(objective.is_slower_than_orders(support))
    assert slower == [False, False, False, True, True]


def test_predicted_seconds_add_up_and_grow_with_the_work():
    rng = np.random.default_rng(5)
    few = Objective(Dataset(rng.random((20, 14)) < 0.3), Exponential(), Settings(random_state=1))
    many = Objective(Dataset(rng.random((20, 14)) < 0.8), Exponential(), Settings(random_state=1))
    assert few.seconds == 0.0
    for objective in (few, many):
        theta = np.zeros((14, 14))
        objective.evaluate(theta)
        once = objective.seconds
        objective.evaluate(theta)
        assert objective.seconds == pytest.approx(2.0 * once)
    assert many.seconds > 2.0 * few.seconds
