"""Arrivals and orders by components: compare with lattices, closed forms and drawn orders."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from sequela import Budget, Exponential, InputError, Sampling
from sequela.likelihood import component_histories, sample_posteriors
from sequela.likelihood.component_histories import ComponentHistory
from sequela.likelihood.components import ACCURACY
from sequela.likelihood.decomposition import components_of
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.passage import Passage
from sequela.questions import order_matrix, sample_arrivals, set_probability

quick = settings(max_examples=30, deadline=None, derandomize=True, database=None)
# The limit for the size of z-scores. The size of a standard normal variable is above it with a
# probability of 7e-6.
FALSE_ALARM_Z = 4.5


def assert_same(theta, items, rate=1.0):
    """Compare with the lattice. Tolerances are relative for moments and absolute for orders."""
    parameters = Parameters(np.asarray(theta, dtype=float), Exponential(rate))
    items = np.array(sorted(items), dtype=np.int64)
    history = ComponentHistory(parameters, items)
    passage = Passage.of(parameters, items)
    passage.log_p()
    expected = passage.moments()
    assert history.is_accurate
    assert history.time_mean == pytest.approx(expected.times[0], rel=1e-10)
    variance = expected.times[1] - expected.times[0] ** 2
    assert history.time_variance == pytest.approx(variance, rel=1e-9)
    np.testing.assert_allclose(history.arrival_mean, expected.arrival_mean, rtol=1e-9)
    # The lattice gives the variance as a difference of moments, which loses digits. So the
    # tolerance is relative to the second moment, not to the variance.
    difference = history.arrival_variance - (expected.arrival_second - expected.arrival_mean**2)
    assert (np.abs(difference) <= 1e-9 * expected.arrival_second).all()
    np.testing.assert_allclose(history.before, expected.before, rtol=0, atol=1e-9)
    np.testing.assert_allclose(history.place, expected.place, rtol=0, atol=1e-9)


@st.composite
def sparse_models(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 17))
    theta = np.diag(rng.normal(draw(st.floats(-4.0, 1.0)), draw(st.floats(0.0, 2.0)), n))
    scale = draw(st.sampled_from([0.5, 2.0, 5.0]))
    for _ in range(draw(st.integers(0, n)) if n > 1 else 0):
        i, j = rng.choice(n, 2, replace=False)
        theta[i, j] = rng.normal(0.0, scale)
    size = draw(st.integers(0, min(n, 14)))
    return (
        theta,
        set(rng.choice(n, size, replace=False).tolist()),
        draw(st.sampled_from([0.2, 1.0, 5.0])),
    )


@quick
@given(sparse_models())
def test_history_is_that_of_the_lattice(problem):
    theta, items, rate = problem
    parts, _ = components_of(np.array(sorted(items), int), Parameters(theta).children)
    if max((part.size for part in parts), default=0) <= 8:
        assert_same(theta, items, rate)


def chain(n, effect, base):
    theta = np.diag(np.full(n, base))
    theta[np.arange(n - 1), np.arange(1, n)] = effect
    return theta


CASES = {
    "isolated items only": (np.diag(np.linspace(-4.0, 1.0, 16)), range(14)),
    "equal rates": (np.diag(np.full(16, -1.0)), range(13)),
    "one component": (chain(9, 2.0, -2.0), range(9)),
    "extreme entries": (chain(8, 25.0, -20.0), range(6)),
    "inhibition": (chain(8, -25.0, -1.0), range(6)),
    "rates that differ by 1e8": (
        np.diag(np.array([9.0, -9.4, 9.0, -9.4, 0.0, 0.0, 0.0])) + 2.0 * np.eye(7, k=1),
        {0, 1, 2, 3, 5},
    ),
    "isolated rates that differ by 1e8": (np.diag(np.array([9.0, -9.4, 0.0, -1.0])), {0, 1, 3}),
    "the empty set": (chain(5, 1.0, -1.0), set()),
    "one item": (np.diag([0.5, -1.0]), {1}),
}


@pytest.mark.parametrize("name", CASES)
def test_special_cases(name):
    assert_same(*CASES[name])


def test_a_common_child_outside_couples_its_parents():
    theta = np.diag([-1.0, -1.5, 0.5, -2.0])
    theta[0, 2] = 2.0
    theta[1, 2] = 1.5
    assert_same(theta, {0, 1, 3})


@pytest.mark.parametrize("x", [1e-12, 1e-3, 0.3, 0.4999, 0.5, 2.0, 60.0, 900.0])
def test_moments_of_an_exponential_arrival_before_t(x):
    with mpmath.workdps(40):
        x_ = mpmath.mpf(x)
        whole = 1 - mpmath.exp(-x_)
        density = lambda s: x_ * mpmath.exp(-x_ * s) / whole  # noqa: E731
        knots = [0, min(1, 5 / x_), min(1, 40 / x_), 1]
        expected = [mpmath.quad(lambda s, m=m: s**m * density(s), knots) for m in (1, 2)]
    found = component_histories._truncated_exponential(np.array([x]))
    assert found[0][0] == pytest.approx(float(expected[0]), rel=1e-12)
    assert found[1][0] == pytest.approx(float(expected[1]), rel=1e-12)


def sparse_theta(n, seed=3):
    """Return a theta in which items interact only in groups of three, so components are small."""
    theta = np.diag(np.random.default_rng(seed).normal(-0.5, 0.6, n))
    for i in range(0, n - 2, 3):
        theta[i, i + 1], theta[i + 1, i + 2] = 1.5, -0.8
    return theta


def test_large_sets_against_drawn_orders():
    """For a set of 33 items, sampled moments, orders and positions agree with exact values."""
    n = 36
    theta = sparse_theta(n)
    row = np.ones((1, n), dtype=int)
    row[0, [4, 20, 35]] = 0
    exact = sample_posteriors(theta, row)
    assert exact.methods[0] == "components"
    assert exact.time_se[0] == 0.0
    drawn = sample_posteriors(
        theta,
        row,
        budget=Budget(work=1.0),
        sampling=Sampling(chains=24, sweeps=60),
        random_state=2,
    )
    assert drawn.methods[0] == "relocation"
    k = int(row.sum())
    present = exact.present(0)
    z = [(drawn.time_mean - exact.time_mean) / drawn.time_se]
    arrival_se, place_se = drawn.mean_errors(0)
    z.append(
        (drawn.arrival_mean - exact.arrival_mean)[0, present] / arrival_se,
    )
    z.append((drawn.place(0) - exact.place(0)) @ np.arange(k) / place_se)
    upper = np.triu_indices(k, 1)
    se = np.maximum(drawn.before_se(0), 0.5 / (24 * 60))
    z.append(((drawn.before(0) - exact.before(0)) / se)[upper])
    everything = np.concatenate(z)
    # Standard errors are estimated from 24 chains, so the z-scores have a t distribution, in which
    # large values are more frequent than in a normal distribution.
    assert np.abs(everything).max() < 1.5 * FALSE_ALARM_Z
    assert 0.7 < np.sqrt((everything**2).mean()) < 1.5


def test_large_sets_obey_the_laws_of_orders():
    n = 80
    theta = sparse_theta(n)
    history = ComponentHistory(Parameters(theta), np.arange(n))
    before, place = history.before, history.place
    np.testing.assert_allclose(before + before.T + np.eye(n), 1.0, rtol=0, atol=1e-12)
    # Each item has one position, and each position has one item. The mean position of an item,
    # counted from 0, is the mean number of earlier items.
    np.testing.assert_allclose(place.sum(axis=1), 1.0, rtol=0, atol=1e-8)
    np.testing.assert_allclose(place.sum(axis=0), 1.0, rtol=0, atol=1e-8)
    np.testing.assert_allclose(place @ np.arange(n), before.sum(axis=0), rtol=0, atol=1e-7)
    # All items arrive before the observation.
    assert history.arrival_mean.max() < history.time_mean


@pytest.mark.parametrize("k", [100, 250])
def test_narrow_posteriors_are_resolved(k):
    """A large set has a narrow posterior of the time, so there must be enough panels of time."""
    theta = sparse_theta(k + 3)
    history = ComponentHistory(Parameters(theta), np.arange(k))
    assert history.error < 1e-12
    equal = ComponentHistory(Parameters(np.diag(np.full(k, -1.0))), np.arange(k))
    # All items are equal, so each item has the same mean arrival time. This is the mean over the
    # times of the first to the last arrival. The rate of leaving a state is the sum of the rate of
    # the observation and the rates of all absent items.
    rates = 1.0 + np.exp(-1.0) * np.arange(k, -1, -1)
    arrivals = np.cumsum(1.0 / rates)
    np.testing.assert_allclose(equal.time_mean, arrivals[-1], rtol=1e-11)
    np.testing.assert_allclose(equal.arrival_mean, arrivals[:-1].mean(), rtol=1e-11)


def test_equal_items_come_in_any_order():
    history = ComponentHistory(Parameters(np.diag(np.full(50, -1.0))), np.arange(50))
    off = ~np.eye(50, dtype=bool)
    np.testing.assert_allclose(history.before[off], 0.5, rtol=0, atol=1e-9)
    np.testing.assert_allclose(history.place, 0.02, rtol=0, atol=1e-9)


def test_questions_about_a_sample_take_components():
    theta = sparse_theta(30)
    sample = [str(i) for i in range(28)]
    orders = order_matrix(theta, sample[:3], given=sample)
    assert set(orders.method.to_numpy().ravel()) == {"components"}
    assert orders.draws == 0
    assert orders.seed is None
    assert (orders.se.to_numpy() == 0.0).all()
    arrivals = sample_arrivals(theta, sample)
    assert arrivals.attrs["method"] == "components"
    assert arrivals.attrs["draws"] == 0
    # The positions of the 28 items are 1 to 28, in some order, so their sum is fixed.
    assert arrivals["position_mean"].sum() == pytest.approx(28 * 29 / 2, rel=1e-9)
    exact = order_matrix(theta, sample[:3], given=sample, method="exact")
    np.testing.assert_array_equal(exact.probability, orders.probability)
    estimate = set_probability(theta, sample)
    assert (estimate.method, estimate.draws, estimate.se) == ("components", 0, 0.0)


def test_lattice_and_components_agree_where_both_fit():
    """Sets of 15 items are computed by components.

    If the zeros of theta are replaced by tiny effects, all items interact and the lattice is used.
    """
    theta = sparse_theta(16)
    X = np.ones((1, 16), dtype=int)
    X[0, 15] = 0
    found = sample_posteriors(theta, X)
    assert found.methods[0] == "components"
    dense = theta.copy()
    dense[theta == 0.0] = 1e-14
    expected = sample_posteriors(dense, X)
    assert expected.methods[0] == "exact"
    np.testing.assert_allclose(found.arrival_mean, expected.arrival_mean, rtol=1e-9)
    np.testing.assert_allclose(found.before(0), expected.before(0), rtol=0, atol=1e-9)


def test_an_inaccurate_history_gives_way(monkeypatch):
    """If the estimated error of the computation by components is too large, lattices are used."""
    theta = sparse_theta(16)
    X = np.ones((1, 16), dtype=int)
    monkeypatch.setattr(ComponentHistory, "is_accurate", property(lambda _: False))
    assert sample_posteriors(theta, X).methods[0] == "exact"


def test_the_error_is_found_where_arrivals_are_lost(monkeypatch):
    """If the source term is wrong by 1e-7, the probabilities of arrivals do not add up to 1."""
    theta = chain(5, 1.0, -1.0)
    from sequela.likelihood.components import ComponentFunction

    right = ComponentFunction.source
    monkeypatch.setattr(
        ComponentFunction, "source", lambda self, *a: right(self, *a) * (1.0 + 1e-7)
    )
    history = ComponentHistory(Parameters(theta), np.arange(5))
    assert history.error > ACCURACY


def test_orders_that_do_not_add_up_are_refused(monkeypatch):
    monkeypatch.setattr(component_histories, "CROSS_ACCURACY", 0.0)
    history = ComponentHistory(Parameters(sparse_theta(6)), np.arange(6))
    with pytest.raises(InputError, match="rates of the model differ too much"):
        _ = history.before


def test_small_sets_are_those_of_all_orders():
    theta = ref.random_theta(np.random.default_rng(1), 5, 1.0, 0.6)
    history = ComponentHistory(Parameters(theta), np.array([0, 2, 3, 4]))
    np.testing.assert_allclose(
        history.before, ref.posterior_before(theta, [0, 2, 3, 4]), rtol=0, atol=1e-9
    )
