"""The model without interactions: optimum, value and gradient, for sets of any size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import reference as ref
from learning.problems import simulated, table
from sequela import Dataset, Model, evaluate
from sequela.learning.independent_fit import (
    LARGEST_LOG_RATE,
    SMALLEST_LOG_RATE,
    fit_independent,
    grid_posterior,
)
from sequela.learning.largest_penalty import independent_gradient
from sequela.observation import Exponential

quick = settings(max_examples=30, deadline=None, derandomize=True, database=None)


def distinct(X):
    sets, counts = np.unique(np.asarray(X, dtype=float), axis=0, return_counts=True)
    return sets, counts / counts.sum()


def log_p(log_rates, items, stop_rate=1.0):
    """Return log p(S) of independent items, by the trapezoidal rule over log t (20,001 points).

    The integrand is analytic and vanishes at both ends, so the rule is exact up to rounding errors.
    A test compares it with `reference.log_p_set_independent`, which takes seconds.
    """
    x = np.linspace(-60.0, 8.0, 20001)
    t = np.exp(x)
    rates = np.exp(log_rates)
    absent = np.delete(rates, items).sum() + stop_rate
    logs = x - absent * t + np.log(stop_rate)
    for rate in rates[items]:
        logs += np.log(-np.expm1(-rate * t))
    return logsumexp(logs) + np.log(x[1] - x[0])


@quick
@given(st.integers(0, 2**31), st.integers(1, 7), st.sampled_from([1.0, 0.3, 4.0]))
def test_it_is_the_optimum_over_base_rates(seed, n, stop_rate):
    rng = np.random.default_rng(seed)
    X = (rng.random((40, n)) < rng.uniform(0.1, 0.9, n)).astype(int)
    X[0], X[1] = 0, 1  # so that no item is always or never present
    observation = Exponential(stop_rate)
    fit = fit_independent(*distinct(X), observation)
    found = evaluate(Model(np.diag(fit.log_rates), observation=observation), X)
    assert np.abs(np.diag(found.gradient)).max() < 2e-6
    assert fit.value == pytest.approx(found.value, abs=1e-10)


def test_one_item_is_closed():
    """A single item of rate w is present with probability w / (rate of the observation + w)."""
    fit = fit_independent(np.array([[0.0], [1.0]]), np.array([0.3, 0.7]), Exponential(2.0))
    assert np.exp(fit.log_rates[0]) == pytest.approx(2.0 * 0.7 / 0.3, rel=1e-6)
    assert fit.value == pytest.approx(0.3 * np.log(0.3) + 0.7 * np.log(0.7), abs=1e-12)


def test_large_sets_agree_with_the_reference():
    rng = np.random.default_rng(3)
    n = 70
    X = np.zeros((6, n))
    for row, k in zip(X, (0, 1, 5, 30, 60, 60), strict=True):
        row[rng.permutation(n)[:k]] = 1.0
    sets, weights = distinct(X)
    fit = fit_independent(sets, weights)
    truth = [log_p(fit.log_rates, np.flatnonzero(row)) for row in sets]
    assert fit.value == pytest.approx(weights @ truth, abs=1e-9)
    large = np.flatnonzero(X[-1])
    by_reference = ref.log_p_set_independent(np.diag(fit.log_rates), large, digits=20)
    assert log_p(fit.log_rates, large) == pytest.approx(by_reference, abs=1e-10)


def test_hundreds_of_items():
    """Test a set of 267 items, which is the size of the largest set in the glioblastoma data."""
    rng = np.random.default_rng(4)
    X = (rng.random((12, 410)) < 0.03).astype(float)
    X[0] = rng.permutation(np.arange(410) < 267)
    X = X[:, X.sum(axis=0) > 0]
    sets, weights = distinct(X)
    fit = fit_independent(sets, weights)
    truth = [log_p(fit.log_rates, np.flatnonzero(row)) for row in sets]
    assert fit.value == pytest.approx(weights @ truth, abs=1e-8)
    large = np.flatnonzero(sets[np.argmax(sets.sum(axis=1))])
    t, posterior = grid_posterior(np.isin(np.arange(len(X.T)), large) * 1.0, np.exp(fit.log_rates))
    assert posterior.sum() == pytest.approx(1.0, abs=1e-12)
    # At a rate of the observation of 1, the derivative of log p(S) by this rate is 1 - E[t | S].
    step = 1e-4
    slope = (log_p(fit.log_rates, large, 1 + step) - log_p(fit.log_rates, large, 1 - step)) / step
    assert t @ posterior == pytest.approx(1.0 - slope / 2.0, abs=1e-6)


@pytest.mark.parametrize("stop_rate", [1e-3, 0.01, 0.1, 10.0, 100.0, 1e4])
def test_the_unit_of_time_does_not_matter(stop_rate):
    """If the rate of observation is multiplied by a factor, so are all base rates."""
    sets, weights = distinct(simulated(6, 200, 1).values)
    one = fit_independent(sets, weights)
    other = fit_independent(sets, weights, Exponential(stop_rate))
    assert other.value == pytest.approx(one.value, abs=1e-8)
    np.testing.assert_allclose(other.log_rates, one.log_rates + np.log(stop_rate), atol=1e-4)


def test_shares_are_what_counts():
    X = simulated(5, 60, 2).values
    once = fit_independent(*distinct(X))
    thrice = fit_independent(*distinct(np.repeat(X, 3, axis=0)))
    np.testing.assert_allclose(once.log_rates, thrice.log_rates, atol=1e-10)


def test_items_without_a_best_rate_stay_finite():
    sets = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 1.0]])
    fit = fit_independent(sets, np.array([0.5, 0.5]))
    assert np.isfinite(fit.value)
    assert SMALLEST_LOG_RATE <= fit.log_rates[1] < -8.0
    assert 4.0 < fit.log_rates[0] <= LARGEST_LOG_RATE
    assert abs(fit.log_rates[2]) < 1e-3


@quick
@given(
    st.integers(0, 2**31),
    st.integers(1, 9),
    st.sampled_from([0.5, 2.0, 4.0]),
    st.sampled_from([1.0, 0.2, 7.0]),
)
def test_gradient_in_closed_form(seed, n, spread, stop_rate):
    rng = np.random.default_rng(seed)
    log_rates = rng.normal(-1.0, spread, n).clip(-12.0, 6.0)
    items = np.flatnonzero(rng.random(n) < 0.6)
    model = Model(np.diag(log_rates), observation=Exponential(stop_rate))
    exact = evaluate(model, table(n, [items])).gradient
    found = independent_gradient(items, np.exp(log_rates), stop_rate)
    np.testing.assert_allclose(found, exact, atol=1e-8)


def test_gradient_of_a_set_of_eighteen_items():
    rng = np.random.default_rng(8)
    log_rates = rng.normal(-1.0, 1.5, 26)
    items = np.sort(rng.permutation(26)[:18])
    exact = evaluate(np.diag(log_rates), table(26, [items]), method="exact").gradient
    np.testing.assert_allclose(independent_gradient(items, np.exp(log_rates)), exact, atol=1e-9)


def test_gradient_of_a_set_of_sixty_items():
    """Compare with components and with sampling. Compare the diagonal with finite differences."""
    rng = np.random.default_rng(9)
    n, k = 64, 60
    log_rates = rng.normal(-0.5, 1.0, n)
    items = np.sort(rng.permutation(n)[:k])
    found = independent_gradient(items, np.exp(log_rates))
    for j in (items[0], items[30], int(np.setdiff1d(np.arange(n), items)[0])):
        values = []
        for step in (1e-4, -1e-4):
            moved = log_rates.copy()
            moved[j] += step
            values.append(log_p(moved, items))
        assert found[j, j] == pytest.approx((values[0] - values[1]) / 2e-4, abs=1e-6)
    data = Dataset(table(n, [items]))
    exact = evaluate(np.diag(log_rates), data)
    assert (exact.samples["method"] == "components").all()
    np.testing.assert_allclose(found, exact.gradient, atol=1e-9)
    sampled = evaluate(np.diag(log_rates), data, method="relocation", random_state=1)
    assert (sampled.samples["method"] == "relocation").all()
    some = np.ix_(items[:20], np.arange(0, n, 3))
    z = (sampled.gradient - found)[some] / sampled.gradient_se[some]
    # z has a t distribution with 15 degrees of freedom. Large values are more frequent than in a
    # normal distribution.
    assert np.abs(z[np.isfinite(z)]).max() < 7.0


@quick
@given(st.integers(0, 2**31), st.integers(1, 40))
def test_the_grid_resolves_rates_of_all_sizes(seed, n):
    rng = np.random.default_rng(seed)
    log_rates = rng.uniform(SMALLEST_LOG_RATE, LARGEST_LOG_RATE, n)
    present = rng.random(n) < 0.5
    t, posterior = grid_posterior(present * 1.0, np.exp(log_rates))
    # The mean time is minus the derivative of log(p(S) / r) by r, where r is the rate of the
    # observation.
    items = np.nonzero(present)[0]
    h = 1e-4
    up, down = (log_p(log_rates, items, 1.0 + s * h) - np.log(1.0 + s * h) for s in (1, -1))
    assert posterior @ t == pytest.approx(-(up - down) / (2 * h), rel=1e-5)
