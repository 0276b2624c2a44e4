"""Sets at known times: compare with matrix exponentials, mpmath, and sums of positive terms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reference as ref
from sequela import Dataset, InputError, Model, evaluate, log_likelihood
from sequela.likelihood.careful_times import LARGEST_CAREFUL_SET, careful_set
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.passage import Passage
from sequela.observation import Exponential

quick = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def table(n, *sets):
    X = np.zeros((len(sets), n), dtype=int)
    for row, S in zip(X, sets, strict=True):
        row[list(S)] = 1
    return X


def at_time(theta, S, t):
    return log_likelihood(theta, table(len(theta), S), times=[t], return_gradient=True, n_threads=1)


def assert_relative(found, expected, rtol):
    """Compare entry by entry. The tolerance is rtol times the larger of 1 and the expected size."""
    np.testing.assert_array_less(
        np.abs(found - expected), rtol * np.maximum(1.0, np.abs(expected)), strict=False
    )


@st.composite
def moderate(draw, largest_n=5):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, largest_n))
    scale, sparsity = draw(st.sampled_from([0.0, 0.5, 1.0, 2.0])), draw(st.sampled_from([0, 0.6]))
    theta = ref.random_theta(rng, n, scale, sparsity)
    return theta, sorted(draw(st.sets(st.integers(0, n - 1))))


@st.composite
def extreme(draw, largest_n=3):
    n = draw(st.integers(1, largest_n))
    entries = st.one_of(st.sampled_from([-30.0, 0.0, 30.0]), st.floats(-30, 30))
    theta = draw(hnp.arrays(float, (n, n), elements=entries, fill=st.nothing()))
    return theta, sorted(draw(st.sets(st.integers(0, n - 1))))


def uniformised(theta, S, t):
    """Return log p(S | t) by uniformisation: a Poisson mixture of powers of a stochastic matrix.

    All terms are positive, so no digits cancel, for sets of any size. The number of terms grows
    with the largest exit rate times t.
    """
    S = sorted(S)
    states = np.arange(1 << len(S))
    present = {item: (states >> bit & 1).astype(bool) for bit, item in enumerate(S)}
    exits = np.zeros(states.size)
    rates = {}
    for j in range(len(theta)):
        log_rate = np.full(states.size, theta[j, j])
        for i in S:
            if i != j:
                log_rate += np.where(present[i], theta[i, j], 0.0)
        rates[j] = np.where(present[j], 0.0, np.exp(log_rate)) if j in S else np.exp(log_rate)
        exits += rates[j]
    q = exits.max()
    weights = np.zeros(states.size)
    weights[0] = 1.0
    log_scale, total = 0.0, -np.inf
    for terms in range(int(q * t + 40 * math.sqrt(q * t)) + 200):
        if weights[-1] > 0:
            log_poisson = -q * t + terms * math.log(q * t) - math.lgamma(terms + 1)
            total = np.logaddexp(total, math.log(weights[-1]) + log_scale + log_poisson)
        after = weights * (1 - exits / q)
        for bit, item in enumerate(S):
            before = states[~present[item]]
            after[before | 1 << bit] += weights[before] * rates[item][before] / q
        log_scale += math.log(after.max())
        weights = after / after.max()
    return total


# --- Against the reference ------------------------------------------------------------------------


@quick
@given(moderate(), st.sampled_from([0.03, 0.4, 1.0, 3.0]))
def test_value_is_that_of_the_matrix_exponential(model, t):
    theta, S = model
    p = ref.set_distribution_at(theta, t)[sum(1 << i for i in S)]
    value = log_likelihood(theta, table(len(theta), S), times=[t])
    assert math.exp(value) == pytest.approx(p, rel=1e-9, abs=1e-13)


@quick
@given(moderate(largest_n=4), st.sampled_from([1e-9, 1e-3, 0.2, 1.0, 7.0, 200.0]))
def test_value_and_gradient_are_right_to_many_digits(model, t):
    theta, S = model
    value, gradient = at_time(theta, S, t)
    assert_relative(value, ref.mp_log_p_set_given_time(theta, S, t), 1e-11)
    assert_relative(gradient, ref.mp_gradient_set_given_time(theta, S, t), 1e-10)


@quick
@given(moderate(), st.sampled_from([0.1, 1.0, 5.0]))
def test_gradient_is_the_finite_difference(model, t):
    theta, S = model
    X = table(len(theta), S)
    _, gradient = at_time(theta, S, t)
    numerical = ref.finite_difference_gradient(
        lambda at: log_likelihood(at, X, times=[t]), theta, 1e-5
    )
    assert_relative(gradient, numerical, 1e-6)


@pytest.mark.parametrize("k", [6, 8, 10, 12])
@pytest.mark.parametrize("t", [0.05, 0.8, 4.0])
def test_larger_sets_against_uniformisation(k, t):
    theta = ref.random_theta(np.random.default_rng(k), k + 3, 0.4)
    value = log_likelihood(theta, table(k + 3, range(1, k + 1)), times=[t])
    assert value == pytest.approx(uniformised(theta, range(1, k + 1), t), abs=1e-10)


@pytest.mark.parametrize("k", [7, 10])
def test_gradient_of_larger_sets_along_random_directions(k):
    """Compare the gradient with central differences of `uniformised`, in which no digits cancel."""
    rng = np.random.default_rng(k)
    n, S, t, step = k + 2, range(k), 0.9, 1e-5
    theta = ref.random_theta(rng, n, 0.5, sparsity=0.3)
    _, gradient = at_time(theta, S, t)
    for _ in range(3):
        direction = rng.normal(size=(n, n))
        up, down = (uniformised(theta + s * step * direction, S, t) for s in (1, -1))
        assert np.sum(gradient * direction) == pytest.approx((up - down) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("k", [8, 12])
@pytest.mark.parametrize("slow", [-6.0, -2.0])
def test_fast_arrivals_and_then_a_long_wait(k, slow):
    """Item 0 slows all other items, so there are fast exit rates and slow exit rates.

    Such a gap between exit rates is difficult for the contour integral of the kernel.
    """
    theta = np.zeros((k + 4, k + 4))
    np.fill_diagonal(theta, np.linspace(0.5, 1.5, k + 4))
    theta[0] = slow
    theta[0, 0] = 0.0
    for t in (0.2, 1.0):
        value = log_likelihood(theta, table(k + 4, range(k)), times=[t])
        assert value == pytest.approx(uniformised(theta, range(k), t), abs=1e-9)


@pytest.mark.parametrize("t", [1e-3, 0.5, 3.0, 40.0])
def test_independent_items_have_a_closed_form(t):
    """If items are independent, p(S | t) is a product. Test 80 items with different rates."""
    n, S = 80, [0, 5, 63, 64, 65, 79]
    log_w = np.linspace(-4.0, 1.0, n)
    w = np.exp(log_w)
    inside = np.isin(np.arange(n), S)
    value, gradient = at_time(np.diag(log_w), S, t)
    expected = np.log(-np.expm1(-w[inside] * t)).sum() - w[~inside].sum() * t
    assert_relative(value, expected, 1e-12)
    exact = np.where(inside, w * t / np.expm1(w * t), -w * t)
    assert_relative(gradient.diagonal(), exact, 1e-11)


def test_it_integrates_to_the_marginal_likelihood():
    """By eq. (1), p(S) is the integral of exp(-t) p(S | t). Another kernel computes p(S)."""
    theta = ref.random_theta(np.random.default_rng(3), 6, 0.8)
    S = [0, 2, 3, 5]
    nodes, weights = np.polynomial.laguerre.laggauss(60)
    X = np.repeat(table(6, S), nodes.size, axis=0)
    found = evaluate(theta, X, times=nodes, gradient=False)
    total = np.dot(weights, np.exp(found.log_likelihoods))
    assert math.log(total) == pytest.approx(log_likelihood(theta, table(6, S)), abs=1e-6)


# --- Very large and very small rates and times ----------------------------------------------------


@settings(quick, max_examples=40)
@given(extreme(), st.sampled_from([1e-12, 1e-3, 1.0, 50.0]))
def test_extreme_theta_is_finite_and_right(model, t):
    theta, S = model
    value, gradient = at_time(theta, S, t)
    assert_relative(value, ref.mp_log_p_set_given_time(theta, S, t), 1e-11)
    assert_relative(gradient, ref.mp_gradient_set_given_time(theta, S, t), 1e-9)


@st.composite
def huge(draw):
    n = draw(st.integers(2, 3))
    entries = st.one_of(st.sampled_from([-100.0, -30.0, 0.0, 30.0, 100.0]), st.floats(-100, 100))
    theta = draw(hnp.arrays(float, (n, n), elements=entries, fill=st.nothing()))
    return theta, sorted(draw(st.sets(st.integers(0, n - 1), min_size=1)))


@settings(quick, max_examples=60)
@given(huge(), st.sampled_from([1e-3, 1.0, 50.0]))
def test_huge_theta_is_right(model, t):
    """The script verification/known_times.py tests 2,000 more problems of this kind."""
    theta, S = model
    value, gradient = at_time(theta, S, t)
    assert_relative(value, ref.mp_log_p_set_given_time(theta, S, t), 1e-8)
    assert_relative(gradient, ref.mp_gradient_set_given_time(theta, S, t), 1e-8)


def test_a_chain_that_lingers_where_it_should_not():
    """Differences of nearly equal exit rates lose digits. With doubles, p would be 13% wrong."""
    theta = np.array([[25.0, 0.0, 30.0], [0.0, -20.0, -28.0], [-30.0, 4.5, 24.3]])
    for S in ([0, 1], [0, 1, 2]):
        value, gradient = at_time(theta, S, 0.5)
        assert_relative(value, ref.mp_log_p_set_given_time(theta, S, 0.5), 1e-12)
        assert_relative(gradient, ref.mp_gradient_set_given_time(theta, S, 0.5), 1e-10)
        alone = log_likelihood(theta, table(3, S), times=[0.5], n_threads=1)
        assert alone == value


@pytest.mark.parametrize("want_gradient", [False, True])
def test_large_sets_that_doubles_cannot_hold_are_refused(want_gradient):
    n = LARGEST_CAREFUL_SET + 2
    theta = np.diag(np.linspace(-3.0, 3.0, n))
    theta[-1, -1] = 30.0  # this item is absent, although its rate is e^30
    theta[0, -1] = 1e-9
    X = table(n, range(n - 1))
    with pytest.raises(InputError, match="rates times the time are too large"):
        evaluate(theta, X, times=[1.0], gradient=want_gradient)


def test_the_careful_arithmetic_agrees_with_doubles_where_these_are_right():
    theta = ref.random_theta(np.random.default_rng(8), 5, 1.0)
    parameters = Parameters.of(Model(theta))
    columns = parameters.columns(np.array([0, 2, 3]))
    passage = Passage(parameters, columns)
    value, G, lost = passage._in_doubles(0.7, want_gradient=True)
    careful, exact = careful_set(parameters, columns, 0.7, want_gradient=True)
    assert value == pytest.approx(careful, rel=1e-12)
    np.testing.assert_allclose(G, exact, rtol=1e-9, atol=1e-11)
    assert lost < 1e-11


@pytest.mark.parametrize("t", [1e-250, 1e-100, 1e-20])
def test_tiny_times(t):
    """If t is small, p(S | t) is nearly t^k times a number that does not depend on t."""
    theta = ref.random_theta(np.random.default_rng(2), 4, 1.0)
    for S in ([], [1], [0, 3], [0, 1, 2, 3]):
        value, gradient = at_time(theta, S, t)
        # The chain spends a tiny time in each state, so only the rates of the items that arrive
        # contribute to the gradient.
        near = ref.mp_log_p_set_given_time(theta, S, 1e-20)
        assert value - len(S) * math.log(t) == pytest.approx(
            near - len(S) * math.log(1e-20), abs=1e-9
        )
        assert np.isfinite(gradient).all()
        np.testing.assert_allclose(gradient.diagonal(), np.isin(np.arange(4), S), atol=1e-9)


@pytest.mark.parametrize("t", [1e3, 1e6])
def test_the_full_set_is_certain_in_the_end(t):
    theta = ref.random_theta(np.random.default_rng(5), 4, 0.5)
    value, gradient = at_time(theta, range(4), t)
    assert value == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-9)


# A regression test, like test_exact.test_tiny_rates_of_observation: the exit rate of the full set
# was computed by subtraction, and was 2e-16 instead of 0. Multiplied by t = 1e9, this is an error
# of 2e-7 in log p.
@pytest.mark.parametrize("t", [1e9, 1e12])
def test_the_full_set_is_certain_after_a_very_long_time(t):
    theta = np.full((3, 3), -0.3)
    value, _ = at_time(theta, range(3), t)
    assert value == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("outside", [20.0, 25.0, 30.0])
def test_huge_gradients_have_small_relative_errors(outside):
    """The gradient is about minus the rate of an absent item, which is up to exp(30).

    The item is absent at time 1, so log p contains minus its rate.
    """
    theta = np.array([[0.0, 0.3], [0.0, outside]])
    for S in ([], [0]):
        value, gradient = at_time(theta, S, 1.0)
        expected = ref.mp_gradient_set_given_time(theta, S, 1.0)
        assert value == pytest.approx(ref.mp_log_p_set_given_time(theta, S, 1.0), rel=1e-14)
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-4)


# A regression test: the result was NaN if all exit rates were above 1e16 / t. The kernel added its
# number `tilt` to the exit rates, and `tilt` was lost by rounding.
@pytest.mark.parametrize(
    ("outside", "effect", "t"), [(30.0, 0.0, 1e3), (30.0, 30.0, 1e4), (40.0, 0.0, 1.0)]
)
def test_exit_rates_beyond_1e16(outside, effect, t):
    theta = np.array([[0.0, effect], [0.0, outside]])
    for S in ([], [0]):
        value, gradient = at_time(theta, S, t)
        assert value == pytest.approx(ref.mp_log_p_set_given_time(theta, S, t), rel=1e-12)
        np.testing.assert_allclose(
            gradient, ref.mp_gradient_set_given_time(theta, S, t), rtol=1e-9, atol=1e-4
        )


@pytest.mark.parametrize("S", [[], [1]])
@pytest.mark.parametrize("gradient", [False, True])
def test_rates_times_a_time_beyond_every_double_are_refused(S, gradient):
    """With a rate of exp(500), log p is finite at the time 1e80.

    At the time 1e200 it is beyond the range of doubles, so the call must be refused.
    """
    theta = np.diag([500.0, 0.0])
    assert np.isfinite(evaluate(theta, table(2, S), times=[1e80], gradient=gradient).value)
    with pytest.raises(InputError, match=r"at time 1e\+200 cannot be computed"):
        evaluate(theta, table(2, S), times=[1e200], gradient=gradient)


# --- Data sets ------------------------------------------------------------------------------------


def test_time_zero_with_nothing_is_certain_whatever_theta():
    theta = ref.random_theta(np.random.default_rng(1), 3, 2.0)
    value, gradient = log_likelihood(
        theta, table(3, [], []), times=[0.0, 0.0], return_gradient=True
    )
    assert value == 0.0
    np.testing.assert_array_equal(gradient, np.zeros((3, 3)))


def test_time_zero_adds_nothing_to_other_samples():
    theta = ref.random_theta(np.random.default_rng(1), 3, 1.0)
    value, gradient = log_likelihood(
        theta, table(3, [], [0, 1]), times=[0.0, 1.3], return_gradient=True
    )
    alone, alone_gradient = at_time(theta, [0, 1], 1.3)
    assert value == pytest.approx(alone / 2, rel=1e-14)
    np.testing.assert_allclose(gradient, alone_gradient / 2, rtol=1e-13)


def test_time_zero_with_items_is_refused_by_name():
    data = Dataset(table(3, [1], [0, 2]), samples=["early", "late"], times=[2.0, 0.0])
    with pytest.raises(InputError, match=r"'late' \(row 1\).*time 0.*2 items"):
        log_likelihood(np.zeros((3, 3)), data)


def test_known_and_unknown_times_side_by_side():
    """The likelihood of a sample does not depend on the other samples."""
    rng = np.random.default_rng(6)
    n = 6
    theta = ref.random_theta(rng, n, 0.7)
    sets = [[], [0], [0], [0], [1, 4], [1, 4], [2, 3, 5], range(6), range(6)]
    times = [np.nan, 0.5, np.nan, 0.5, 2.0, 3.0, np.nan, 1.0, np.nan]
    found = evaluate(theta, table(n, *sets), times=times)
    gradients = []
    for S, t, value in zip(sets, times, found.log_likelihoods, strict=True):
        if np.isnan(t):
            assert value == pytest.approx(ref.log_p_set(theta, S), abs=1e-11)
            gradients.append(ref.mp_gradient_set(theta, S))
        else:
            assert value == pytest.approx(ref.log_p_set_given_time(theta, S, t), abs=1e-9)
            gradients.append(at_time(theta, S, t)[1])
    assert found.value == pytest.approx(found.log_likelihoods.mean(), rel=1e-13)
    np.testing.assert_allclose(found.gradient, np.mean(gradients, axis=0), atol=1e-12)


def test_times_of_the_dataset_and_times_of_the_call():
    theta = ref.random_theta(np.random.default_rng(6), 3, 0.7)
    X = table(3, [0, 1], [2])
    data = Dataset(X, times=[0.4, 2.0])
    assert log_likelihood(theta, data) == log_likelihood(theta, X, times=[0.4, 2.0])
    assert log_likelihood(theta, data, times=[1.0, 1.0]) == log_likelihood(
        theta, X, times=[1.0, 1.0]
    )
    assert log_likelihood(theta, data, times=[np.nan, np.nan]) == log_likelihood(theta, X)


def test_the_rate_of_observation_does_not_matter_when_times_are_known():
    theta = ref.random_theta(np.random.default_rng(6), 3, 0.7)
    X = table(3, [0, 1], [2])
    values = {
        evaluate(Model(theta, observation=Exponential(rate)), X, times=[0.4, 2.0]).value
        for rate in (0.1, 1, 9)
    }
    assert len(values) == 1
