"""Functions of `reference`: compare them with each other, and with results found by hand."""

from __future__ import annotations

import collections
import itertools
import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.special import betaln, logsumexp, polygamma

import reference as ref

# The seeds of statistical checks are fixed. If they were random, each check would fail with this
# probability although the program is correct.
FALSE_ALARM = 1e-6

models = st.builds(
    lambda seed, n, scale, sparsity: ref.random_theta(
        np.random.default_rng(seed), n, scale, sparsity
    ),
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 5),
    scale=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    sparsity=st.sampled_from([0.0, 0.5, 1.0]),
)
stop_rates = st.sampled_from([0.3, 1.0, 2.5])
times = st.sampled_from([0.01, 0.4, 1.0, 5.0])
quick = settings(max_examples=12, deadline=None, derandomize=True, database=None)


@pytest.fixture
def theta():
    return ref.random_theta(np.random.default_rng(20), 6)


def subsets_of(n):
    """Return all sets of n items, sorted by their bit masks."""
    return [[i for i in range(n) if mask >> i & 1] for mask in range(2**n)]


def chi_square_p_value(counts, probabilities):
    """Return the p-value of a chi-square test of these counts, with rare outcomes combined."""
    assert set(counts) <= set(probabilities), "an impossible outcome was drawn"
    outcomes = sorted(probabilities, key=probabilities.get)
    observed = [counts[outcome] for outcome in outcomes]
    expected = [sum(counts.values()) * probabilities[outcome] for outcome in outcomes]
    while expected[0] < 10:  # the chi-square test needs large expected counts
        observed[:2] = [sum(observed[:2])]
        expected[:2] = [sum(expected[:2])]
    assert len(expected) > 2
    return scipy.stats.chisquare(observed, expected).pvalue


# --- Rates and distributions over sets ------------------------------------------------------------


def test_rate_is_that_of_section_2():
    theta = np.log([[0.5, 2.0, 3.0], [5.0, 0.7, 7.0], [11.0, 13.0, 0.9]])
    assert ref.rate(theta, (), 1) == pytest.approx(0.7)
    assert ref.rate(theta, (0,), 1) == pytest.approx(0.7 * 2)  # theta[i, j] is the effect of i on j
    assert ref.rate(theta, (0, 2), 1) == pytest.approx(0.7 * 2 * 13)
    assert ref.exit_rate(theta, ()) == pytest.approx(0.5 + 0.7 + 0.9)
    assert ref.exit_rate(theta, {1}) == pytest.approx(0.5 * 5 + 0.9 * 7)
    assert ref.exit_rate(theta, (0, 1, 2)) == 0


@quick
@given(theta=models)
def test_generator_adds_single_items_and_has_zero_row_sums(theta):
    Q = ref.generator(theta)
    assert Q.sum(axis=1) == pytest.approx(0, abs=1e-12 * np.abs(Q).max())
    for row, column in zip(*np.nonzero(Q - np.diag(np.diag(Q))), strict=True):
        assert Q[row, column] > 0
        assert row & column == row
        assert (row ^ column).bit_count() == 1


@quick
@given(theta=models, stop_rate=stop_rates, t=times)
def test_distributions_over_sets_and_sequences_sum_to_one(theta, stop_rate, t):
    by_set = ref.set_distribution(theta, stop_rate)
    by_sequence = ref.sequence_distribution(theta, stop_rate=stop_rate)
    assert by_set.min() > 0
    assert by_set.sum() == pytest.approx(1)
    assert sum(by_sequence.values()) == pytest.approx(1)
    assert ref.set_distribution_at(theta, t).sum() == pytest.approx(1)


@quick
@given(theta=models, stop_rate=stop_rates)
def test_four_ways_to_the_probability_of_a_set(theta, stop_rate):
    everything = ref.set_distribution(theta, stop_rate)
    for mask, S in enumerate(subsets_of(len(theta))):
        expected = math.log(everything[mask])
        for log_p in (ref.log_p_set, ref.log_p_set_permutations, ref.mp_log_p_set):
            found = log_p(theta, S, stop_rate=stop_rate)
            assert found == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_set_distribution_is_the_integral_over_time(theta):
    Q = ref.generator(theta[:3, :3])
    integral, _ = scipy.integrate.quad_vec(
        lambda t: 0.7 * math.exp(-0.7 * t) * ref.transition_matrix(Q, t)[0], 0, np.inf, epsrel=1e-7
    )
    assert integral == pytest.approx(ref.set_distribution(theta[:3, :3], 0.7), rel=1e-6)


def test_items_outside_the_set_slow_it_down(theta):
    """A set is less probable if the model also has items that are not in the set."""
    small = theta[:3, :3]
    assert ref.log_p_set(theta, range(3)) < ref.log_p_set(small, range(3)) - 0.1


@pytest.mark.parametrize("s", [0.55, 0.8, 1.0])
def test_proposition_1_family_with_the_corrected_interval(s):
    alpha = 4.0
    true = np.array([[0.0, alpha], [0.0, -alpha]])
    p0, p1, p2, _ = p = ref.set_distribution(true)
    interval = p1 / p0, (1 - p0 - p2) / p0
    assert interval == pytest.approx((0.5, 1.00916), abs=1e-5)
    assert np.log(interval) == pytest.approx((-0.693, 0.009), abs=5e-4)
    w22 = 1 / p0 - 1 - s
    w21 = (1 - p0 - p2 - p0 * s) / (p2 * s)
    w12 = (p0 * s - p1) / (p1 * w22)
    assert ref.set_distribution(np.log([[s, w12], [w21, w22]])) == pytest.approx(p)


# --- Given the time -------------------------------------------------------------------------------


@quick
@given(theta=models, t=times)
def test_three_ways_to_the_probability_of_a_set_given_time(theta, t):
    everything = ref.set_distribution_at(theta, t)
    for mask, S in enumerate(subsets_of(len(theta))):
        if everything[mask] > 1e-6:  # the error of expm is relative to its largest entry
            expected = pytest.approx(math.log(everything[mask]), abs=1e-8)
            assert ref.log_p_set_given_time(theta, S, t) == expected
            assert ref.mp_log_p_set_given_time(theta, S, t) == expected


@quick
@given(theta=models, t=times)
def test_sequences_given_time_by_expm_and_by_the_closed_form(theta, t):
    for k in range(len(theta) + 1):
        sigma = tuple(range(len(theta)))[::-1][:k]
        closed_form = ref.mp_log_p_sequence_given_time(theta, sigma, t)
        if closed_form > -12:
            found = ref.log_p_sequence_given_time(theta, sigma, t)
            assert found == pytest.approx(closed_form, abs=1e-8)


def test_set_given_time_is_the_sum_over_orders_however_stiff():
    rng = np.random.default_rng(5)
    theta = rng.uniform(-30, 30, (5, 5))
    for t in (1e-9, 0.3, 40.0):
        S = (0, 2, 3)
        orders = [
            ref.mp_log_p_sequence_given_time(theta, sigma, t) for sigma in itertools.permutations(S)
        ]
        found = ref.mp_log_p_set_given_time(theta, S, t)
        assert found == pytest.approx(logsumexp(orders), rel=1e-12)


@pytest.mark.parametrize("log_w", [-30.0, 0.0, 30.0])
@pytest.mark.parametrize("t", [1e-6, 1.0, 30.0])
def test_identical_independent_items_given_time(log_w, t):
    """Test equal exit rates, for which the closed form divides by 0.

    All items have the rate w, so sets of the same size have equal exit rates. p(S | t) has a factor
    1 - exp(-wt) for each item of S, and a factor exp(-wt) for each other item.
    """
    theta, S = log_w * np.eye(6), (1, 2, 4, 5)
    wt = mp.exp(log_w) * t
    expected = float(4 * mp.log(-mp.expm1(-wt)) - 2 * wt)
    assert ref.mp_log_p_set_given_time(theta, S, t) == pytest.approx(expected, rel=1e-13)
    arrived = float(wt / mp.expm1(wt))  # the derivative of log(1 - exp(-wt)) by log w
    gradient = ref.mp_gradient_set_given_time(theta, S, t)
    diagonal = [arrived if i in S else -float(wt) for i in range(6)]
    assert np.diag(gradient) == pytest.approx(diagonal, rel=1e-13, abs=1e-30)


def test_hypoexponential_cdf_against_gamma_and_against_expm():
    # If the rates are equal, this is a gamma distribution, and the closed form divides by 0.
    for y in (0.01, 1.0, 7.0):
        expected = scipy.stats.gamma.cdf(y, 5, scale=1 / 3)
        assert ref.hypoexponential_cdf(y, [3.0] * 5) == pytest.approx(expected, rel=1e-12)
    for gap in (0.0, 1e-15, 1e-12, 1e-9, 1e-3):
        rates = [0.5, 0.5 + gap, 2.0, 7.0]
        Q = np.diag([*np.negative(rates), 0.0]) + np.diag(rates, 1)
        expected = ref.transition_matrix(Q, 1.5)[0, -1]
        assert ref.hypoexponential_cdf(1.5, rates) == pytest.approx(expected, rel=1e-12)
    assert ref.hypoexponential_cdf(1.5, [2.0, 0.0]) == 0


# --- Gradients ------------------------------------------------------------------------------------


def test_gradient_of_sequences(theta):
    for sigma in itertools.permutations(range(3)):
        found = ref.gradient_full_sequence(theta[:3, :3], sigma)
        expected = ref.finite_difference_gradient(
            lambda x, sigma=sigma: ref.log_p_full_sequence(x, sigma), theta[:3, :3]
        )
        assert found == pytest.approx(expected, abs=1e-8)
    for sigma in [(), (4,), (2, 5, 0), (5, 4, 3, 2, 1, 0)]:
        found = ref.gradient_sequence(theta, sigma, stop_rate=0.6)
        expected = ref.finite_difference_gradient(
            lambda x, sigma=sigma: ref.log_p_sequence(x, sigma, stop_rate=0.6), theta
        )
        assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("S", [(), (3,), (4, 1), (0, 2, 5), (0, 1, 3, 4), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("stop_rate", [1.0, 0.4])
def test_gradient_of_sets(theta, S, stop_rate):
    by_orders = ref.gradient_set_permutations(theta, S, stop_rate=stop_rate)
    by_subsets = ref.mp_gradient_set(theta, S, stop_rate=stop_rate)
    by_differences = ref.finite_difference_gradient(
        lambda x: ref.log_p_set(x, S, stop_rate=stop_rate), theta
    )
    assert by_subsets == pytest.approx(by_orders, abs=1e-12)
    assert by_subsets == pytest.approx(by_differences, abs=1e-8)


def test_gradient_of_a_set_given_time(theta):
    S = (0, 2, 5)
    found = ref.mp_gradient_set_given_time(theta, S, 0.8)
    expected = ref.finite_difference_gradient(lambda x: ref.log_p_set_given_time(x, S, 0.8), theta)
    assert found == pytest.approx(expected, abs=1e-7)


def test_full_sequences_sum_to_one_and_are_what_observation_at_a_late_time_sees(theta):
    theta = theta[:4, :4]
    for sigma in itertools.permutations(range(4)):
        late = ref.log_p_sequence(theta, sigma, stop_rate=1e-9)
        assert late == pytest.approx(ref.log_p_full_sequence(theta, sigma), abs=1e-6)
    total = sum(
        math.exp(ref.log_p_full_sequence(theta, sigma))
        for sigma in itertools.permutations(range(4))
    )
    assert total == pytest.approx(1)


# --- Extreme theta --------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [30.0, 300.0])
def test_extreme_theta_in_mpmath(bound):
    """Compare p(S) and its gradient with sums over orders, for rates up to exp(1500)."""
    rng = np.random.default_rng(int(bound))
    theta, S = rng.uniform(-bound, bound, (5, 5)), (0, 1, 3)
    with mp.workdps(120):
        exact = ref._mp_matrix(theta)

        def log_p(x):
            total = mp.mpf(0)
            for sigma in itertools.permutations(S):
                p = 1 / (1 + ref._mp_exit_rate(x, sigma))
                for i, item in enumerate(sigma):
                    p *= ref._mp_rate(x, sigma[:i], item)
                    p /= 1 + ref._mp_exit_rate(x, sigma[:i])
                total += p
            return mp.log(total)

        expected = log_p(exact)
        step = mp.mpf(10) ** -30
        gradient = np.zeros((5, 5))
        for index in np.ndindex(5, 5):
            up, down = exact.copy(), exact.copy()
            up[index] += step
            down[index] -= step
            gradient[index] = (log_p(up) - log_p(down)) / (2 * step)
    assert ref.mp_log_p_set(theta, S) == pytest.approx(float(expected), rel=1e-14)
    assert ref.mp_gradient_set(theta, S) == pytest.approx(gradient, rel=1e-12, abs=1e-40)


def test_more_digits_change_nothing():
    theta, S = np.random.default_rng(3).uniform(-40, 40, (8, 8)), (0, 1, 2, 4, 5, 7)
    assert ref.mp_log_p_set(theta, S, digits=60) == ref.mp_log_p_set(theta, S, digits=200)
    few, many = (ref.mp_gradient_set(theta, S, digits=digits) for digits in (60, 200))
    assert few == pytest.approx(many, rel=1e-12, abs=1e-40)


# --- Independent items ----------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("S", [(), (0, 3), (0, 1, 2, 3, 4, 5)])
@pytest.mark.parametrize("stop_rate", [1.0, 0.2])
def test_independent_items_by_quadrature(scale, S, stop_rate):
    theta = np.diag(np.random.default_rng(8).uniform(-scale, scale, 6))
    found = ref.log_p_set_independent(theta, S, stop_rate=stop_rate)
    expected = ref.mp_log_p_set(theta, S, stop_rate=stop_rate)
    assert found == pytest.approx(expected, rel=1e-13)


def test_many_identical_independent_items():
    """As an integral over y = exp(-wt), p(S) is a beta function: B(1/w + m - k, k + 1) / w."""
    w, m, k = 0.3, 100, 78
    expected = betaln(1 / w + m - k, k + 1) - math.log(w)
    found = ref.log_p_set_independent(math.log(w) * np.eye(m), range(k))
    assert found == pytest.approx(expected, rel=1e-11)


def test_independent_items_refuse_interactions(theta):
    with pytest.raises(ValueError, match="diagonal"):
        ref.log_p_set_independent(theta, (0, 1))


# --- Times and orders, given one observed set -----------------------------------------------------


@pytest.mark.parametrize("S", [(), (1,), (0, 2, 5), (0, 1, 3, 4)])
@pytest.mark.parametrize("stop_rate", [1.0, 0.4])
def test_time_moments_by_enumeration_and_by_quadrature(theta, S, stop_rate):
    found = ref.posterior_time_moments(theta, S, stop_rate=stop_rate)
    expected = ref.posterior_time_moments_by_quadrature(theta, S, stop_rate=stop_rate)
    assert found == pytest.approx(expected, rel=1e-7)


def test_time_density_has_these_moments(theta):
    S = (0, 2, 5)
    t = np.linspace(0, 60, 601)
    density = [ref.posterior_time_density(theta, S, x, stop_rate=0.8) for x in t]
    mass, first, second = (scipy.integrate.simpson(density * t**power, x=t) for power in range(3))
    expected = ref.posterior_time_moments(theta, S, stop_rate=0.8)
    assert mass == pytest.approx(1, rel=1e-4)
    assert (first, second - first**2) == pytest.approx(expected, rel=1e-4)


def test_time_moments_of_identical_independent_items():
    """Check Lemma 1 with the Jacobian that the paper omits, and two numbers from the paper."""
    w, m, k = 0.3, 20, 6
    a, b = 1 / w + m - k, k + 1
    mean = float(polygamma(0, a + b) - polygamma(0, a)) / w
    variance = float(polygamma(1, a) - polygamma(1, a + b)) / w**2
    assert (mean, variance) == pytest.approx((1.15883, 0.19374), abs=5e-6)
    found = ref.posterior_time_moments(math.log(w) * np.eye(m), range(k))
    assert found == pytest.approx((mean, variance), rel=1e-10)


def test_arrivals_of_one_item_and_of_two():
    # If the only item is observed, its arrival time is Exp(1 + w). The time from there to the
    # observation is Exp(1), because exponential times have no memory.
    theta = np.log([[2.0]])
    assert ref.posterior_arrival_moments(theta, (0,))[0] == pytest.approx((1 / 3, 1 / 9))
    assert ref.posterior_time_moments(theta, (0,)) == pytest.approx((1 / 3 + 1, 1 / 9 + 1))
    # If there are two items of rate w, the time until the first arrival is Exp(1 + 2w), and the
    # time from the first to the second arrival is Exp(1 + w).
    theta = np.log(2.0) * np.eye(2)
    early, late = 1 / 5, 1 / 5 + 1 / 3
    mean, variance = ref.posterior_arrival_moments(theta, (0, 1))[1]
    assert mean == pytest.approx((early + late) / 2)
    within = (1 / 25 + (1 / 25 + 1 / 9)) / 2
    assert variance == pytest.approx(within + ((late - early) / 2) ** 2)


def test_before_is_antisymmetric_and_consistent_with_orders(theta):
    S = (0, 2, 3, 5)
    before = ref.posterior_before(theta, S)
    assert before + before.T == pytest.approx(1 - np.eye(4))
    # The mean position of an item, counted from 0, is the mean number of items before it.
    orders = ref.posterior_orders(theta, S)
    for column, item in enumerate(S):
        position = sum(weight * sigma.index(item) for sigma, weight in orders.items())
        assert before[:, column].sum() == pytest.approx(position)


def test_order_probability_over_all_sequences_and_over_all_sets(theta):
    theta, (a, b) = theta[:4, :4], (1, 3)
    p = ref.set_distribution(theta, 0.7)
    first = both = 0.0
    for mask, S in enumerate(subsets_of(4)):
        if a in S and b in S:
            before = ref.posterior_before(theta, S, stop_rate=0.7)
            first += p[mask] * before[S.index(a), S.index(b)]
            both += p[mask]
    found = ref.order_probability_by_enumeration(theta, a, b, stop_rate=0.7)
    assert found == pytest.approx(first / both)
    reverse = ref.order_probability_by_enumeration(theta, b, a, stop_rate=0.7)
    assert found + reverse == pytest.approx(1)


# --- Algorithms 1 and 2 ---------------------------------------------------------------------------


@pytest.mark.parametrize("stop_rate", [1.0, 0.3])
def test_simulation_against_exact_distributions(stop_rate):
    theta = ref.random_theta(np.random.default_rng(11), 3) + np.eye(3)
    rng = np.random.default_rng(12)
    draws = [ref.simulate_sequence(theta, rng, stop_rate) for _ in range(8000)]
    for t_obs, items, arrivals in draws:
        assert len(items) == len(arrivals)
        assert [0, *arrivals, t_obs] == sorted([0, *arrivals, t_obs])

    counts = collections.Counter(tuple(items) for _, items, _ in draws)
    exact = ref.sequence_distribution(theta, stop_rate=stop_rate)
    assert chi_square_p_value(counts, exact) > FALSE_ALARM

    # Given the set {0, 1}, compare the observation times and the arrival times of item 0.
    S = (0, 1)
    seen = [draw for draw in draws if set(draw[1]) == set(S)]
    assert len(seen) > 300
    arrival = [times[items.index(0)] for _, items, times in seen]
    for values, (mean, variance) in [
        (
            [t_obs for t_obs, _, _ in seen],
            ref.posterior_time_moments(theta, S, stop_rate=stop_rate),
        ),
        (arrival, ref.posterior_arrival_moments(theta, S, stop_rate=stop_rate)[0]),
    ]:
        z = (np.mean(values) - mean) / math.sqrt(variance / len(values))
        assert abs(z) < scipy.stats.norm.isf(FALSE_ALARM / 2)


def test_simulation_given_time_against_expm():
    """Compare draws that are observed in a short interval of time with p(S | t) at its middle.

    In an interval of width 0.1, p(S | t) is nearly linear: the error is far below the sampling
    error of a thousand draws.
    """
    theta = ref.random_theta(np.random.default_rng(13), 2)
    rng = np.random.default_rng(14)
    counts = collections.Counter()
    for _ in range(20_000):
        t_obs, items, _ = ref.simulate_sequence(theta, rng)
        if abs(t_obs - 0.7) < 0.05:
            counts[frozenset(items)] += 1
    assert counts.total() > 800
    p = ref.set_distribution_at(theta, 0.7)
    exact = {frozenset(S): p[mask] for mask, S in enumerate(subsets_of(2))}
    assert chi_square_p_value(counts, exact) > FALSE_ALARM


@quick
@given(theta=models, stop_rate=stop_rates)
def test_informed_proposal_is_a_distribution_and_exact_for_two_items(theta, stop_rate):
    """For sets of at most two items, the proposal has the exact distribution of orders."""
    for S in subsets_of(len(theta))[:16]:
        exact = ref.posterior_orders(theta, S, stop_rate=stop_rate)
        q = {
            sigma: math.exp(ref.log_q_informed(theta, S, sigma, stop_rate=stop_rate))
            for sigma in exact
        }
        assert sum(q.values()) == pytest.approx(1)
        if len(S) <= 2:
            assert q == pytest.approx(exact)


def test_informed_proposal_is_not_exact_for_three_items(theta):
    """For three items the proposal does not have the exact distribution of orders."""
    S = (0, 2, 5)
    exact = ref.posterior_orders(theta, S)
    q = [math.exp(ref.log_q_informed(theta, S, sigma)) for sigma in exact]
    assert np.abs(np.array(q) - list(exact.values())).max() > 0.01


def test_informed_draws_follow_their_log_q(theta):
    S = (0, 2, 5)
    rng = np.random.default_rng(15)
    counts = collections.Counter()
    for _ in range(1500):
        sigma, log_q = ref.draw_informed_proposal(theta, S, rng)
        counts[sigma] += 1
        assert log_q == pytest.approx(ref.log_q_informed(theta, S, sigma))
    exact = {
        sigma: math.exp(ref.log_q_informed(theta, S, sigma)) for sigma in itertools.permutations(S)
    }
    assert chi_square_p_value(counts, exact) > FALSE_ALARM


def test_random_theta_has_the_asked_sparsity_and_scale():
    rng = np.random.default_rng(16)
    theta = ref.random_theta(rng, 40, scale=2.0, sparsity=0.75)
    others = theta[~np.eye(40, dtype=bool)]
    assert np.count_nonzero(np.diag(theta)) == 40
    # Each tolerance is five standard deviations of an estimate from 1,560 entries.
    assert np.mean(others == 0) == pytest.approx(0.75, abs=0.055)
    assert np.std(others[others != 0]) == pytest.approx(2.0, abs=0.36)
