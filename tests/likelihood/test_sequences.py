"""Complete, marginal and timed sequences: compare with eqs. (4) to (6) and a closed form."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from mpmath import mp

import reference as ref
from sequela import InputError, Model, log_likelihood
from sequela.likelihood import sequence_log_likelihood
from sequela.observation import Exponential

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)
rates = st.sampled_from([0.01, 0.3, 1.0, 2.5, 100.0])


@st.composite
def moderate(draw, largest_n=7):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, largest_n))
    scale, sparsity = draw(st.sampled_from([0.0, 1.0, 2.0])), draw(st.sampled_from([0, 0.6, 1]))
    theta = ref.random_theta(rng, n, scale, sparsity)
    return theta, draw(st.permutations(range(n)))[: draw(st.integers(0, n))]


@st.composite
def extreme(draw, largest_n=6):
    n = draw(st.integers(1, largest_n))
    entries = st.one_of(st.sampled_from([-30.0, 0.0, 30.0]), st.floats(-30, 30))
    theta = draw(hnp.arrays(float, (n, n), elements=entries, fill=st.nothing()))
    return theta, draw(st.permutations(range(n)))[: draw(st.integers(0, n))]


def mp_log_p_sequence(theta, sigma, *, complete=False):
    """Return log p of a sequence by eqs. (4) and (6) in mpmath, for any theta."""
    with mp.workdps(100):
        exact = ref._mp_matrix(theta)
        extra = 0 if complete else 1
        total = mp.mpf(0)
        for i in range(len(sigma) + extra):
            total -= mp.log(extra + ref._mp_exit_rate(exact, sigma[:i]))
            if i < len(sigma):
                total += mp.log(ref._mp_rate(exact, sigma[:i], sigma[i]))
        return float(total)


def mp_log_p_chain(theta, sigma, t):
    """Return log p(sigma | t) in mpmath by partial fractions, as a sum over the exit rates.

    `reference.mp_log_p_sequence_given_time` is a difference of two CDFs. If an exit rate times t is
    above 1e5, the two CDFs are equal to 1 in 12,800 digits, so their difference is lost. This
    function does not compute such differences.
    """

    def log_p():
        exact = ref._mp_matrix(theta)
        exits = [ref._mp_exit_rate(exact, sigma[:i]) for i in range(len(sigma) + 1)]
        exits = ref._separated(exits)
        p = mp.fprod(ref._mp_rate(exact, sigma[:i], sigma[i]) for i in range(len(sigma)))
        p *= mp.fsum(
            mp.exp(-a * mp.mpf(t)) / mp.fprod(b - a for j, b in enumerate(exits) if j != i)
            for i, a in enumerate(exits)
        )
        return mp.log(p) if p > 0 else mp.nan

    return float(ref._until_stable(log_p))


# --- Against the reference ------------------------------------------------------------------------


@quick
@given(moderate(), rates)
def test_marginal_sequences(model, stop_rate):
    theta, sigma = model
    observed = Model(theta, observation=Exponential(stop_rate))
    value, gradient = sequence_log_likelihood(observed, [sigma], return_gradient=True)
    expected = ref.log_p_sequence(theta, sigma, stop_rate=stop_rate)
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(
        gradient,
        ref.gradient_sequence(theta, sigma, stop_rate=stop_rate),
        rtol=0,
        atol=1e-12,
    )


@quick
@given(moderate())
def test_complete_sequences(model):
    theta, sigma = model
    sigma = [*sigma, *sorted(set(range(len(theta))) - set(sigma))]
    value, gradient = sequence_log_likelihood(theta, [sigma], complete=True, return_gradient=True)
    assert value == pytest.approx(ref.log_p_full_sequence(theta, sigma), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(
        gradient, ref.gradient_full_sequence(theta, sigma), rtol=0, atol=1e-12
    )


@quick
@given(moderate(largest_n=6), st.sampled_from([1e-6, 0.05, 1.0, 6.0, 300.0]))
def test_timed_sequences(model, t):
    theta, sigma = model
    value, gradient = sequence_log_likelihood(theta, [sigma], times=[t], return_gradient=True)
    expected = ref.mp_log_p_sequence_given_time(theta, sigma, t)
    assert value == pytest.approx(expected, rel=1e-11, abs=1e-11)
    numerical = ref.finite_difference_gradient(
        lambda at: sequence_log_likelihood(at, [sigma], times=[t]), theta, 1e-5
    )
    np.testing.assert_allclose(gradient, numerical, rtol=1e-6, atol=1e-6 * max(1.0, abs(expected)))


@quick
@given(moderate(largest_n=4), st.sampled_from([0.1, 1.0, 4.0]))
def test_timed_gradient_against_differences_in_mpmath(model, t):
    theta, sigma = model
    _, gradient = sequence_log_likelihood(theta, [sigma], times=[t], return_gradient=True)
    step = 1e-6
    for i, j in itertools.product(range(len(theta)), repeat=2):
        up, down = theta.copy(), theta.copy()
        up[i, j] += step
        down[i, j] -= step
        difference = ref.mp_log_p_sequence_given_time(
            up, sigma, t
        ) - ref.mp_log_p_sequence_given_time(down, sigma, t)
        width = up[i, j] - down[i, j]
        # The reference function rounds its results to doubles, so their difference loses digits.
        assert gradient[i, j] == pytest.approx(difference / width, rel=1e-5, abs=1e-7)


@settings(quick, max_examples=80)
@given(extreme())
def test_extreme_theta_is_finite_and_right(model):
    theta, sigma = model
    value, gradient = sequence_log_likelihood(theta, [sigma], return_gradient=True)
    assert value == pytest.approx(mp_log_p_sequence(theta, sigma), rel=1e-13, abs=1e-12)
    assert np.isfinite(gradient).all()
    full = [*sigma, *sorted(set(range(len(theta))) - set(sigma))]
    value, gradient = sequence_log_likelihood(theta, [full], complete=True, return_gradient=True)
    assert value == pytest.approx(
        mp_log_p_sequence(theta, full, complete=True), rel=1e-13, abs=1e-12
    )
    assert np.isfinite(gradient).all()


@quick
@given(extreme(largest_n=4), st.sampled_from([1e-10, 1e-2, 1.0, 100.0]))
def test_extreme_theta_at_known_times(model, t):
    theta, sigma = model
    value, gradient = sequence_log_likelihood(theta, [sigma], times=[t], return_gradient=True)
    expected = mp_log_p_chain(theta, sigma, t)
    assert value == pytest.approx(expected, rel=1e-11, abs=1e-11)
    assert np.isfinite(gradient).all()


def test_the_two_twins_of_timed_sequences_agree():
    theta = ref.random_theta(np.random.default_rng(1), 5, 1.0)
    for t in (0.01, 1.0, 10.0):
        assert mp_log_p_chain(theta, [3, 0, 4], t) == pytest.approx(
            ref.mp_log_p_sequence_given_time(theta, [3, 0, 4], t), rel=1e-14
        )


# --- Sums over all orders of a set ----------------------------------------------------------------


@pytest.mark.parametrize("t", [None, 0.8])
def test_all_orders_of_a_set_add_up_to_the_set(t):
    theta = ref.random_theta(np.random.default_rng(3), 7, 0.8)
    S = [1, 2, 4, 6]
    X = np.isin(np.arange(7), S)[None].astype(int)
    times = None if t is None else [t]
    logs, gradients = [], []
    for sigma in itertools.permutations(S):
        value, gradient = sequence_log_likelihood(theta, [sigma], times=times, return_gradient=True)
        logs.append(value)
        gradients.append(gradient)
    value, gradient = log_likelihood(theta, X, times=times, return_gradient=True)
    assert scipy.special.logsumexp(logs) == pytest.approx(value, abs=1e-12)
    weights = np.exp(np.array(logs) - value)
    np.testing.assert_allclose(np.tensordot(weights, gradients, axes=1), gradient, atol=1e-11)


def test_all_complete_sequences_add_up_to_one():
    theta = ref.random_theta(np.random.default_rng(4), 5, 1.0)
    logs = [
        sequence_log_likelihood(theta, [sigma], complete=True)
        for sigma in itertools.permutations(range(5))
    ]
    assert np.exp(logs).sum() == pytest.approx(1.0, abs=1e-13)


def test_mean_over_many_sequences_of_different_lengths():
    """The value and the gradient are means over 45 sequences, of which some are empty."""
    rng = np.random.default_rng(5)
    n = 9
    theta = ref.random_theta(rng, n, 0.8)
    sequences = [rng.permutation(n)[: rng.integers(0, n + 1)].tolist() for _ in range(45)]
    value, gradient = sequence_log_likelihood(
        Model(theta, observation=Exponential(0.4)), sequences, return_gradient=True
    )
    values = [ref.log_p_sequence(theta, sigma, stop_rate=0.4) for sigma in sequences]
    gradients = [ref.gradient_sequence(theta, sigma, stop_rate=0.4) for sigma in sequences]
    assert value == pytest.approx(np.mean(values), rel=1e-13)
    np.testing.assert_allclose(gradient, np.mean(gradients, axis=0), atol=1e-13)


def test_time_zero_with_nothing_is_certain():
    theta = ref.random_theta(np.random.default_rng(6), 4, 1.0)
    value, gradient = sequence_log_likelihood(
        theta, [[], [2, 0], []], times=[0.0, 1.5, 0.0], return_gradient=True
    )
    alone, alone_gradient = sequence_log_likelihood(
        theta, [[2, 0]], times=[1.5], return_gradient=True
    )
    assert value == pytest.approx(alone / 3, rel=1e-14)
    np.testing.assert_allclose(gradient, alone_gradient / 3, rtol=1e-13, atol=1e-16)
    value, gradient = sequence_log_likelihood(theta, [[]], times=[0.0], return_gradient=True)
    assert value == 0.0
    np.testing.assert_array_equal(gradient, 0.0)


# --- Long sequences -------------------------------------------------------------------------------


def waiting_model(steps, fast):
    """Return a theta of which a sequence of `steps` arrivals has a closed form.

    The exit rate is fast + 1 before each arrival, and 1 after the last one. P(sequence | t) is then
    the product of the rates of the arrivals, times exp(-t) P(Gamma(steps) < fast t) / fast^steps.
    The theta has one more item, which does not arrive. Its rate keeps the exit rate constant: it
    grows with each arrival, and falls to 1 after the last one.
    """
    n = steps + 1
    theta = np.zeros((n, n))
    others = n - 1  # the index of the item that does not arrive
    outside = fast + 1.0 - np.arange(steps, 0, -1.0)
    theta[others, others] = math.log(outside[0])
    for a in range(steps - 1):
        theta[a, others] = math.log(outside[a + 1] / outside[a])
    theta[steps - 1, others] = -math.log(outside[-1])  # after the last arrival its rate is 1
    return theta


def log_waiting(steps, fast, t):
    with mp.workdps(40):
        below = mp.gammainc(steps, 0, mp.mpf(fast) * t, regularized=True)
        return float(mp.log(below) - steps * mp.log(fast) - t)


@pytest.mark.parametrize("steps", [3, 8, 16])
@pytest.mark.parametrize("late", [0.3, 0.9, 1.3, 3.0])
def test_sequences_at_known_times_have_a_closed_form(steps, late):
    fast = 100.0
    t = late * steps / fast
    value = sequence_log_likelihood(waiting_model(steps, fast), [range(steps)], times=[t])
    assert value == pytest.approx(log_waiting(steps, fast, t), rel=1e-11)


# A regression test: `contour.transient_chain` ended the integral along a parabola where the factor
# exp(-spread u^2) was small. But if many exit rates are far above the smallest one, another factor
# of the integrand can grow nearly as fast as this factor falls. In this case, the rest of the
# integral is not negligible. The error of log p was 4e-8 for 30 steps, 3e-6 for 50 and 5e-4 for
# 200. Metropolis-Hastings at known times uses the same function.
@pytest.mark.parametrize("steps", [30, 50, 100, 200, 400])
@pytest.mark.parametrize("late", [0.9, 1.3])
def test_long_sequences_at_known_times(steps, late):
    for fast in (5.0 * steps, 2.0 * steps):
        t = late * steps / fast
        value = sequence_log_likelihood(waiting_model(steps, fast), [range(steps)], times=[t])
        assert value == pytest.approx(log_waiting(steps, fast, t), abs=1e-9)


def test_long_marginal_sequences():
    n = 300
    rng = np.random.default_rng(7)
    theta = ref.random_theta(rng, n, 0.05)
    sigma = rng.permutation(n)[:200].tolist()
    value, gradient = sequence_log_likelihood(theta, [sigma], return_gradient=True)
    rate = np.exp(theta.diagonal())
    left = np.ones(n, dtype=bool)
    expected = 0.0
    for i in sigma:
        expected += math.log(rate[i]) - math.log(1.0 + rate[left].sum())
        left[i] = False
        rate *= np.exp(theta[i])
    expected -= math.log(1.0 + rate[left].sum())
    assert value == pytest.approx(expected, rel=1e-12)
    assert np.isfinite(gradient).all()


# A regression test: log p was +118.7 and the gradient infinite, because log-rates above 690 were
# replaced by 690 without an error. Both the right number and an error are accepted here.
def test_log_rates_beyond_a_double_are_right_or_refused():
    n = 26
    theta = np.full((n, n), 30.0)
    try:
        value, gradient = sequence_log_likelihood(
            theta, [range(n)], times=[1.0], return_gradient=True
        )
    except InputError:
        return
    # By time 1 all items have arrived, and all orders have the same probability.
    assert value == pytest.approx(-math.lgamma(n + 1), rel=1e-9)
    assert np.isfinite(gradient).all()


# --- Labels of items, and error messages ----------------------------------------------------------


def test_labels_of_a_frame_and_of_items():
    theta = ref.random_theta(np.random.default_rng(8), 3, 1.0)
    labels = ["A", "B", "C"]
    frame = pd.DataFrame(theta, index=labels, columns=labels)
    value, gradient = sequence_log_likelihood(theta, [[2, 0], [1]], return_gradient=True)
    for found in (
        sequence_log_likelihood(frame, [["C", "A"], ["B"]], return_gradient=True),
        sequence_log_likelihood(theta, [["C", "A"], ["B"]], items=labels, return_gradient=True),
    ):
        assert found[0] == value
        np.testing.assert_array_equal(found[1], gradient)


def test_items_in_another_order_than_the_frame():
    """The rows and columns of the gradient are sorted like `items`, not like the table theta."""
    theta = ref.random_theta(np.random.default_rng(8), 3, 1.0)
    frame = pd.DataFrame(theta, index=list("ABC"), columns=list("ABC"))
    value, gradient = sequence_log_likelihood(
        frame, [["C", "A"]], items=["B", "C", "A"], return_gradient=True
    )
    expected, unpermuted = sequence_log_likelihood(theta, [[2, 0]], return_gradient=True)
    assert value == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(gradient, unpermuted[np.ix_([1, 2, 0], [1, 2, 0])], atol=1e-15)


def test_any_iterable_of_sequences():
    theta = np.zeros((2, 2))
    expected = sequence_log_likelihood(theta, [[0], [1, 0]])
    assert sequence_log_likelihood(theta, ((0,), (1, 0))) == expected
    assert sequence_log_likelihood(theta, (s for s in [[0], np.array([1, 0])])) == expected


@pytest.mark.parametrize(
    ("sequences", "options", "message"),
    [
        ([], {}, "no sequences"),
        ([[0], [1, 1]], {}, "sequence 1 contains 1 twice"),
        ([[2]], {}, "sequence 0 has the item 2; theta has 2 items"),
        ([[-1]], {}, "sequence 0 has the item -1"),
        ([[0], ["a"]], {}, "sequence 1 has the item 'a'.*give `items`"),
        ([[0.0]], {}, r"sequence 0 has the item 0\.0"),
        ([[True]], {}, "sequence 0 has the item True"),
        ("AB", {"items": ["A", "B"]}, "one text"),
        (["AB"], {"items": ["A", "B"]}, "sequence 0 is 'AB'"),
        ([3], {}, "sequence 0 is 3"),
        ([["IDH2"]], {"items": ["IDH1", "TP53"]}, "unknown item 'IDH2'; did you mean 'IDH1'"),
        ([["A"]], {"items": ["A", "A"]}, "duplicate"),
        ([["A"]], {"items": ["A", "B", "C"]}, r"shape \(2, 2\).*3 items"),
        ([[0, 1], [0]], {"complete": True}, "sequence 1 has 1 of the 2 items"),
        ([[0, 1]], {"complete": True, "times": [1.0]}, "cannot be combined with times"),
        ([[0]], {"times": [1.0, 2.0]}, r"times has shape \(2,\).*1 sequences"),
        ([[0], [1]], {"times": [1.0, np.nan]}, "time of sequence 1 is nan"),
        ([[0]], {"times": [-1.0]}, r"time of sequence 0 is -1\.0"),
        ([[0]], {"times": [np.inf]}, "time of sequence 0 is inf"),
        ([[], [0]], {"times": [0.0, 0.0]}, "sequence 1 is observed at time 0"),
        ([[0]], {"n_threads": 0}, "n_threads is 0"),
    ],
)
def test_bad_sequences_are_refused(sequences, options, message):
    with pytest.raises(InputError, match=message):
        sequence_log_likelihood(np.zeros((2, 2)), sequences, **options)


# A regression test: the error was a ValueError of NumPy, which does not name the argument.
def test_times_that_are_no_numbers_are_refused():
    with pytest.raises(InputError, match="times"):
        sequence_log_likelihood(np.zeros((2, 2)), [[0]], times=["soon"])


# A regression test: sorting text and numbers together raised a TypeError.
def test_labels_that_are_numbers():
    theta = pd.DataFrame(np.zeros((2, 2)), index=[1, 2], columns=[1, 2])
    assert sequence_log_likelihood(theta, [[2]], items=[1, 2]) == sequence_log_likelihood(
        theta, [[2]]
    )
