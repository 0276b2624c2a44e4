"""Observation times that are not exponential: compare with functions of dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import fractional_matrix_power, solve_triangular
from scipy.special import gammaln
from tests.reference import restricted_generator, transition_matrix

from sequela import (
    Budget,
    BudgetError,
    Dataset,
    Exponential,
    Gamma,
    HeavyTailed,
    InputError,
    Likelihood,
    Model,
    fit,
    log_likelihood,
    simulate,
)

KINDS = [Gamma(0.3), Gamma(0.9), Gamma(1.6, mean=2.0), Gamma(2.0), Gamma(3.0, mean=0.5),
         Gamma(4.5), HeavyTailed(1.2), HeavyTailed(2.0, rate=3.0), HeavyTailed(7.0)]  # fmt: skip


def dense_log_p(theta, S, observation, step=0.1):
    """Return log p(S): the integral of density(t) times an entry of a dense matrix exponential.

    The integral is computed by the trapezoidal rule in u, where t is proportional to
    exp(u - exp(-u)). As a function of u, the integrand falls off quickly at both ends.
    """
    Q = restricted_generator(theta, S)
    last = 4.5 if isinstance(observation, Gamma) else 40.0 / observation.shape
    u = np.arange(-5.5, last, step)
    t = np.exp(u - np.exp(-u)) * min(observation.mean_time, 2.0)
    weight = np.exp(observation.log_density(t)) * t * (1.0 + np.exp(-u)) * step
    found = [transition_matrix(Q, x)[0, -1] for x in t]
    return float(np.log(weight @ found))


def small_theta(rng, n):
    theta = rng.normal(0.0, 1.0, (n, n))
    np.fill_diagonal(theta, rng.uniform(-2.0, 1.0, n))
    return theta


def check(theta, S, observation, rng):
    n = len(theta)
    X = np.zeros((1, n), dtype=bool)
    X[0, S] = True
    value, gradient = log_likelihood(Model(theta, observation=observation), X, return_gradient=True)
    assert value == pytest.approx(dense_log_p(theta, S, observation), rel=1e-9, abs=1e-9)
    direction = rng.normal(size=(n, n))
    h = 1e-4
    ahead, back = (dense_log_p(theta + x * direction, S, observation) for x in (h, -h))
    slope = (ahead - back) / (2 * h)
    assert float((gradient * direction).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("observation", KINDS, ids=repr)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 4), data=st.data())
def test_small_sets_agree_with_dense_matrix_exponentials(observation, seed, n, data):
    rng = np.random.default_rng(seed)
    S = sorted(data.draw(st.sets(st.integers(0, n - 1))))
    check(small_theta(rng, n), S, observation, rng)


def complex_generator(theta, S):
    """Return the generator of the subsets of S, numbered by their bits, for a complex theta.

    If an item outside of S arrives, the process leaves these states. So the rates of such items are
    only on the diagonal.
    """
    n, k = len(theta), len(S)
    Q = np.zeros((1 << k, 1 << k), dtype=complex)
    for state in range(1 << k):
        present = [S[b] for b in range(k) if state >> b & 1]
        for j in set(range(n)) - set(present):
            rate = np.exp(theta[j, j] + sum(theta[i, j] for i in present))
            Q[state, state] -= rate
            if j in S:
                Q[state, state | 1 << S.index(j)] += rate
    return Q


def closed_log_p(theta, S, observation):
    """Return log p(S) from functions of the generator Q alone, without its exponential.

    If times have a gamma distribution, p is an entry of the matrix (1 - Q / rate)^(-shape). A
    heavy-tailed time is exponential with a random rate x, and x has a gamma distribution. So p is
    the mean over x of an entry of the matrix x / (x - Q), by the trapezoidal rule in log(x).
    """
    Q = complex_generator(theta, S)
    one = np.eye(len(Q))
    if isinstance(observation, Gamma):
        whole = one - Q / observation.rate
        return np.log(fractional_matrix_power(whole, -observation.shape)[0, -1])
    shape = observation.shape
    scale = observation.mean_time * (shape - 1.0)
    step = 0.1
    log_x = np.arange(-40.0 / shape, 8.0, step)
    log_weight = shape * (log_x + np.log(scale)) - gammaln(shape) - scale * np.exp(log_x)
    end = one[-1].astype(complex)
    p = sum(
        step * np.exp(w + u) * solve_triangular(np.exp(u) * one - Q, end)[0]
        for u, w in zip(log_x, log_weight, strict=True)
        if w > -60.0
    )
    return np.log(p)


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(5, 8),
    observation=st.sampled_from([Gamma(0.3), Gamma(1.6, mean=2.0), Gamma(4.5), HeavyTailed(1.2),
                                 HeavyTailed(2.0, rate=3.0)]),
)  # fmt: skip
def test_sets_of_up_to_eight_items_agree_with_functions_of_the_generator(seed, n, observation):
    """The expected derivative is computed with a complex step, so no digits cancel."""
    rng = np.random.default_rng(seed)
    theta = small_theta(rng, n)
    S = [i for i in range(n) if rng.random() < 0.8]
    X = np.zeros((1, n), dtype=bool)
    X[0, S] = True
    direction = rng.normal(size=(n, n))
    expected = closed_log_p(theta + 1e-20j * direction, S, observation)
    value, gradient = log_likelihood(Model(theta, observation=observation), X, return_gradient=True)
    assert value == pytest.approx(expected.real, rel=1e-9, abs=1e-9)
    slope = expected.imag / 1e-20
    assert float((gradient * direction).sum()) == pytest.approx(slope, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("observation", [Gamma(2.5)], ids=repr)
def test_a_set_of_seven_of_eight_items_agrees(observation):
    rng = np.random.default_rng(8)
    check(small_theta(rng, 8), [0, 1, 2, 3, 5, 6, 7], observation, rng)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 8))
def test_stages_agree_with_powers_of_the_resolvent(seed, n):
    """If the shape is an integer, p is an entry of a power of a matrix, (1 - Q / rate)^(-shape)."""
    rng = np.random.default_rng(seed)
    theta = small_theta(rng, n)
    S = [i for i in range(n) if rng.random() < 0.8]
    X = np.zeros((1, n), dtype=bool)
    X[0, S] = True
    Q = restricted_generator(theta, S)
    for shape in (2, 5, 12):
        inverse = np.linalg.inv(np.eye(len(Q)) - Q / shape)
        expected = np.log(np.linalg.matrix_power(inverse, shape)[0, -1])
        value = log_likelihood(Model(theta, observation=Gamma(shape)), X)
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("observation", KINDS, ids=repr)
def test_gradient_agrees_with_finite_differences(observation):
    rng = np.random.default_rng(3)
    theta = small_theta(rng, 4) * (rng.random((4, 4)) < 0.7)
    X = rng.random((6, 4)) < 0.5
    _, gradient = log_likelihood(Model(theta, observation=observation), X, return_gradient=True)
    h = 1e-5
    for i in range(4):
        for j in range(4):
            step = np.zeros((4, 4))
            step[i, j] = h
            ahead, back = (
                log_likelihood(Model(theta + s * step, observation=observation), X) for s in (1, -1)
            )
            assert gradient[i, j] == pytest.approx((ahead - back) / (2 * h), abs=2e-7)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 6))
def test_probabilities_of_all_sets_add_up_to_1(seed, n):
    rng = np.random.default_rng(seed)
    sets = (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(bool)
    for observation in (Gamma(0.4), Gamma(2.7), HeavyTailed(1.3)):
        model = Model(small_theta(rng, n), observation=observation)
        values = Likelihood(sets).evaluate(model, gradient=False).log_likelihoods
        assert np.exp(values).sum() == pytest.approx(1.0, abs=1e-10)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 8))
def test_shape_1_is_exponential_and_a_large_shape_of_the_tail_nearly_so(seed, n):
    rng = np.random.default_rng(seed)
    theta = small_theta(rng, n)
    X = rng.random((5, n)) < 0.5
    plain, slope = log_likelihood(
        Model(theta, observation=Exponential(0.5)), X, return_gradient=True
    )
    gamma = Model(theta, observation=Gamma(1.0, mean=2.0))
    value, gradient = log_likelihood(gamma, X, return_gradient=True)
    assert value == pytest.approx(plain, abs=1e-12)
    np.testing.assert_allclose(gradient, slope, atol=1e-12)
    # The code for exponential times is used for shape 1. The code for phases is used for a shape
    # close to 1.
    near, near_slope = log_likelihood(
        Model(theta, observation=Gamma(1.0 + 1e-13, mean=2.0)), X, return_gradient=True
    )
    assert near == pytest.approx(plain, abs=1e-9)
    np.testing.assert_allclose(near_slope, slope, atol=1e-9)


def test_a_known_time_does_not_depend_on_the_observation():
    data = Dataset([[1, 0], [1, 1]], times=[0.7, 2.0])
    theta = np.array([[0.3, 1.0], [-0.5, -1.0]])
    plain = log_likelihood(theta, data)
    assert log_likelihood(Model(theta, observation=Gamma(3.0)), data) == plain


@pytest.mark.parametrize("observation", [Gamma(0.5), Gamma(3.0), HeavyTailed(1.5)], ids=repr)
def test_simulated_sets_have_their_probabilities(observation):
    """The shares of 16 sets in 40,000 draws are within 5 standard errors.

    A correct program exceeds this with a probability below 1e-5.
    """
    theta = small_theta(np.random.default_rng(2), 4)
    model = Model(theta, observation=observation)
    drawn = simulate(model, 40_000, random_state=1)
    sets = (np.arange(16)[:, None] >> np.arange(4) & 1).astype(bool)
    p = np.exp(Likelihood(sets).evaluate(model, gradient=False).log_likelihoods)
    places = drawn.to_dataset().values @ (1 << np.arange(4))
    share = np.bincount(places, minlength=16) / 40_000
    assert np.all(np.abs(share - p) < 5.0 * np.sqrt(p / 40_000) + 1e-9)
    again = simulate(model, 40_000, random_state=1, n_threads=2)
    assert np.array_equal(again.observation_times, drawn.observation_times)


def test_a_fit_recovers_base_rates_at_gamma_times():
    theta = np.diag([-1.0, 0.0, -2.0])
    model = Model(theta, observation=Gamma(4.0))
    data = simulate(model, 4000, random_state=3).to_dataset().without_times()
    learned = fit(data, penalty=0.02, observation=Gamma(4.0))
    assert np.abs(learned.theta - theta).max() < 0.12
    assert learned.observation == Gamma(4.0)
    other = fit(data, penalty=0.02)
    assert log_likelihood(learned, data) > log_likelihood(other, data) + 0.01


def test_what_does_not_fit_is_refused():
    X = np.ones((1, 20), dtype=bool)
    model = Model(np.zeros((20, 20)), observation=Gamma(2.0))
    with pytest.raises(BudgetError, match="20 items, which is beyond the budget"):
        Likelihood(X, budget=Budget(memory="1MB")).evaluate(model)
    with pytest.raises(InputError, match="'components' needs exponential observation times"):
        log_likelihood(Model([[0.0]], observation=Gamma(2.0)), [[True]], method="components")
    for wrong in (0.0, -1.0, "two", np.nan):
        with pytest.raises(InputError, match="shape of a Gamma"):
            Gamma(wrong)
    with pytest.raises(InputError, match="above 1"):
        HeavyTailed(0.9)
