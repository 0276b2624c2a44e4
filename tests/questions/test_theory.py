"""The theory of the paper: compare with integrals, dense matrices and enumerations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import digamma, polygamma

import reference
import sequela
from sequela import InputError, Model
from sequela.observation import Exponential
from sequela.questions import (
    TwoItemFamily,
    identical_items_posterior,
    time_constants,
    two_item_family,
    two_item_family_of,
)

PAPER = np.array([[0.0, 4.0], [0.0, -4.0]])
effects = st.floats(-4.0, 4.0)
thetas = st.tuples(effects, effects, effects, effects).map(lambda x: np.reshape(x, (2, 2)))
quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)
inner = st.floats(0.001, 0.999)


# --- Lemma 1 --------------------------------------------------------------------------------------


def moments_by_quadrature(w, m, k):
    """Return mean and variance of a density proportional to (1 - e^-wt)^k e^-wt(m-k) e^-t."""

    def density(t):
        return (-math.expm1(-w * t)) ** k * math.exp(-t * (1 + w * (m - k)))

    peak = math.log1p(k * w / (1 + w * (m - k))) / w
    ends = [0.0, peak, peak + 1, peak + 10, peak + 60]

    def integral(f):
        return sum(
            quad(f, a, b, epsabs=0, epsrel=1e-11)[0] for a, b in itertools.pairwise(ends) if a < b
        )

    total = integral(density)
    mean = integral(lambda t: t * density(t)) / total
    return mean, integral(lambda t: (t - mean) ** 2 * density(t)) / total


@pytest.mark.parametrize(
    ("w", "m", "k"),
    [(0.3, 20, 6), (0.3, 20, 0), (0.3, 20, 20), (2.5, 7, 3), (0.01, 100, 1), (1.0, 1, 1)],
)
def test_lemma_1_against_quadrature(w, m, k):
    expected = moments_by_quadrature(w, m, k)
    np.testing.assert_allclose(identical_items_posterior(w, m, k), expected, rtol=1e-8)


def test_lemma_1_in_the_notes():
    mean, variance = identical_items_posterior(0.3, 20, 6)
    assert mean == pytest.approx(1.15883, abs=5e-6)
    assert variance == pytest.approx(0.19374, abs=5e-6)


@quick
@given(st.floats(0.01, 20.0), st.integers(0, 60), st.data())
def test_lemma_1_is_that_of_a_beta_distribution(w, m, data):
    k = data.draw(st.integers(0, m))
    alpha, beta = 1 / w + (m - k), k + 1
    mean = (digamma(alpha + beta) - digamma(alpha)) / w
    variance = (polygamma(1, alpha) - polygamma(1, alpha + beta)) / w**2
    np.testing.assert_allclose(identical_items_posterior(w, m, k), (mean, variance), rtol=1e-9)


def test_lemma_1_against_the_engine():
    w, m, k = 0.7, 9, 4
    past = sequela.likelihood.sample_posteriors(np.log(w) * np.eye(m), [[1] * k + [0] * (m - k)])
    expected = past.time_mean[0], past.time_variance[0]
    np.testing.assert_allclose(identical_items_posterior(w, m, k), expected, rtol=1e-10)


def test_without_items_the_time_is_as_before():
    assert identical_items_posterior(0.3, 0, 0) == (1.0, 1.0)


def test_extreme_rates_lose_no_digits():
    """At w = 1e-12, the formula with differences of psi functions has only four correct digits."""
    assert identical_items_posterior(1e-12, 10, 3) == pytest.approx((4.0, 4.0), rel=1e-10)
    assert identical_items_posterior(1e308, 10, 10) == pytest.approx((1.0, 1.0), rel=1e-10)


def test_variance_falls_as_one_over_m():
    w, t = 0.5, 1.2
    present = 1 - math.exp(-w * t)
    limit = present / (1 - present) / w**2  # the limit of m * variance for large m, in the proof
    scaled = []
    for m in (100, 1000, 10_000, 100_000):
        _, variance = identical_items_posterior(w, m, round(present * m))
        scaled.append(abs(m * variance - limit) / limit)
    assert scaled[0] < 0.1
    assert scaled[-1] < 1e-4
    assert scaled == sorted(scaled, reverse=True)


def test_the_bounds_of_theorem_1_hold():
    """Test the bounds with 20,000 items, for which the O() terms of the theorem are negligible.

    The number k of present items is its expected value.
    """
    m = 20_000
    for w in (0.2, 1.0, 2.0):
        for t in (0.5, 1.0, 2.0):
            k = round(m * (1 - math.exp(-w * t)))
            mean, variance = identical_items_posterior(w, m, k)
            C1, C2 = time_constants(w, t)
            assert abs(mean - t) < C1 * math.sqrt(math.log(m) / m)
            assert variance < C2 / m


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 5, 1), "w is 0.0; expected a finite number above 0"),
        ((-1.0, 5, 1), "w is -1.0"),
        ((math.nan, 5, 1), "w is nan"),
        (("fast", 5, 1), "w is 'fast'"),
        ((1.0, -5, 1), "m is -5; expected an integer of at least 0"),
        ((1.0, 5, 1.5), "k is 1.5"),
        ((1.0, 5, 6), "k is 6 but m is 5"),
    ],
)
def test_lemma_1_refuses(arguments, message):
    with pytest.raises(InputError, match=message):
        identical_items_posterior(*arguments)


# --- Theorem 1 ------------------------------------------------------------------------------------


def test_constants_are_the_papers():
    for w, t in [(0.3, 2.0), (1.7, 0.4)]:
        found = time_constants(w, t)
        assert all(isinstance(C, float) for C in found)
        C2 = (2 - math.exp(-w * t)) / (w**2 * math.exp(-w * t))
        assert found == pytest.approx((math.exp(w * t) / w, C2))


def test_constants_broadcast():
    w, t = np.linspace(0.1, 4.0, 5), np.array([[0.5], [1.0], [2.0]])
    C1, C2 = time_constants(w, t)
    assert C1.shape == C2.shape == (3, 5)
    for i, j in np.ndindex(3, 5):
        assert (C1[i, j], C2[i, j]) == pytest.approx(time_constants(float(w[j]), float(t[i, 0])))


def test_best_rate_falls_with_the_time():
    """The best rate is the w at which C1 is smallest. It must be 1 / t."""
    w = np.geomspace(0.05, 20, 4001)
    for t in (0.5, 1.0, 2.0, 4.0):
        C1, _ = time_constants(w, t)
        assert w[np.argmin(C1)] == pytest.approx(1 / t, rel=2e-3)


def test_constants_may_be_infinite():
    assert time_constants(100.0, 100.0) == (math.inf, math.inf)


@pytest.mark.parametrize(
    ("w", "t", "message"),
    [([1.0, 0.0], 1.0, "w is 0.0"), (1.0, [0.0, -2.0], "t is -2.0"), (1.0, None, "t is None")],
)
def test_constants_refuse(w, t, message):
    with pytest.raises(InputError, match=message):
        time_constants(w, t)


# --- Proposition 1 --------------------------------------------------------------------------------


def inside(family, share):
    low, high = family.interval
    return low + share * (high - low)


def test_the_papers_interval():
    low, high = two_item_family_of(PAPER).interval
    assert low == pytest.approx(0.5)
    assert high == pytest.approx(1.00916, abs=5e-6)
    assert np.log([low, high]) == pytest.approx([-0.693, 0.009], abs=5e-4)


@quick
@given(thetas, inner)
def test_all_sets_keep_their_probability(theta, share):
    family = two_item_family_of(theta)
    at = family.theta(inside(family, share))
    assert np.isfinite(at).all()
    expected = reference.set_distribution(theta)
    np.testing.assert_allclose(reference.set_distribution(at), expected, rtol=1e-9)
    mine = [family.p0, family.p1, family.p2, family.p12]
    np.testing.assert_allclose(mine, expected, rtol=1e-9)


@quick
@given(thetas)
def test_a_model_lies_in_its_family(theta):
    family = two_item_family_of(theta)
    assert family.contains(theta)
    s = math.exp(theta[0, 0])
    low, high = family.interval
    assert low <= s <= high
    # If s is near an end of the interval, its distance from this end has few correct digits. So the
    # tolerance is larger there.
    digits = 1e-13 / min(s - low, high - s) * high
    np.testing.assert_allclose(family.theta(s), theta, atol=1e-9 + 2 * digits)


@quick
@given(thetas, inner)
def test_order_probability_against_enumeration(theta, share):
    family = two_item_family_of(theta)
    s = inside(family, share)
    expected = reference.order_probability_by_enumeration(family.theta(s), 0, 1)
    assert family.order_probability(s) == pytest.approx(expected, rel=1e-6)
    assert family.order_probability(s) == pytest.approx(share, rel=1e-6)
    own = reference.order_probability_by_enumeration(theta, 0, 1)
    assert family.order_probability(math.exp(theta[0, 0])) == pytest.approx(own, abs=1e-9)


@quick
@given(thetas)
def test_at_the_ends_one_item_never_follows(theta):
    family = two_item_family_of(theta)
    low, high = family.interval
    first, last = family.theta(low), family.theta(high)
    assert first[0, 1] == -np.inf
    assert last[1, 0] == -np.inf
    assert np.isfinite(first).sum() == np.isfinite(last).sum() == 3
    assert family.order_probability(low) == 0.0
    assert family.order_probability(high) == 1.0
    assert family.contains(first)
    assert family.contains(last)
    np.testing.assert_allclose(
        reference.set_distribution(first), reference.set_distribution(theta), rtol=1e-9
    )


@quick
@given(thetas)
def test_exchanging_the_items_exchanges_the_answer(theta):
    family, mirrored = two_item_family_of(theta), two_item_family_of(theta[::-1, ::-1])
    s = inside(family, 0.3)
    other = math.exp(family.theta(s)[1, 1])  # the base rate of item 2 in the same model
    np.testing.assert_allclose(mirrored.theta(other), family.theta(s)[::-1, ::-1], atol=1e-6)
    assert mirrored.order_probability(other) == pytest.approx(0.7, rel=1e-6)


def test_the_printed_formulas():
    """The formulas printed in Proposition 1 of the paper are right for s inside the interval."""
    family = two_item_family_of(PAPER)
    p0, p1, p2 = family.p0, family.p1, family.p2
    for s in (0.6, 0.8, 1.0):
        w22 = 1 / p0 - 1 - s
        expected = [[s, (p0 * s - p1) / (p1 * w22)], [(1 - p0 - p2 - p0 * s) / (p2 * s), w22]]
        np.testing.assert_allclose(np.exp(family.theta(s)), expected, rtol=1e-9)


def test_from_probabilities_and_from_theta_agree():
    p0, p1, p2, p12 = reference.set_distribution(PAPER)
    family = two_item_family(p0, p1, p2)
    assert isinstance(family, TwoItemFamily)
    assert family.p12 == pytest.approx(p12)
    np.testing.assert_allclose(family.interval, two_item_family_of(PAPER).interval)


def test_arrays_of_s():
    family = two_item_family(0.5, 0.2, 0.1)
    s = np.linspace(*family.interval, 6).reshape(2, 3)
    assert family.theta(s).shape == (2, 3, 2, 2)
    np.testing.assert_array_equal(family.theta(s)[1, 0], family.theta(s[1, 0]))
    np.testing.assert_allclose(family.order_probability(s).ravel(), np.linspace(0, 1, 6), atol=1e-9)


def test_models_and_frames():
    frame = pd.DataFrame(PAPER, index=["a", "b"], columns=["a", "b"])
    expected = two_item_family_of(PAPER)
    assert two_item_family_of(frame) == two_item_family_of(Model(frame)) == expected
    assert expected.contains(Model(frame))


def test_other_models_are_not_contained():
    family = two_item_family_of(PAPER)
    changed = PAPER.copy()
    changed[1, 0] = 1e-3
    assert not family.contains(changed)
    assert family.contains(changed, rtol=1e-2)


@pytest.mark.parametrize(
    "theta", [[[1.0, 50.0], [-250.0, 300.0]], [[-200.0, 150.0], [210.0, -190.0]]]
)
def test_extreme_effects(theta):
    theta = np.array(theta)
    family = two_item_family_of(theta)
    mine = np.log([family.p0, family.p1, family.p2, family.p12])
    expected = [reference.mp_log_p_set(theta, S) for S in [(), (0,), (1,), (0, 1)]]
    np.testing.assert_allclose(mine, expected, rtol=1e-12)
    assert family.contains(family.theta(inside(family, 0.5)))


@pytest.mark.parametrize(("end", "step"), [(0, -1e-3), (0, -1e-9), (1, 1e-9), (1, 1.0)])
def test_beyond_the_interval(end, step):
    family = two_item_family_of(PAPER)
    s = family.interval[end] + step
    for ask in (family.theta, family.order_probability):
        with pytest.raises(InputError, match=r"expected 0\.5 to 1\.00915\d* .*negative"):
            ask(s)


def test_rounding_at_the_ends_is_forgiven():
    family = two_item_family_of(PAPER)
    low, high = family.interval
    assert family.order_probability(np.nextafter(low, 0)) == 0.0
    assert family.order_probability(np.nextafter(high, 2)) == 1.0


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ((0.0, 0.5, 0.2), "p0 is 0 .*expected a positive number"),
        ((0.5, 0.0, 0.2), "p1 is 0 .*item 1 is never observed alone, and item 2 would"),
        ((0.5, 0.2, 0.0), "p2 is 0 .*item 2 is never observed alone, and item 1 would"),
        ((0.5, 0.3, 0.2), r"p0 \+ p1 \+ p2 is 1 .*expected a sum below 1"),
        ((0.5, 0.3, 0.4), r"p0 \+ p1 \+ p2 is 1.2"),
        ((0.5, -0.1, 0.4), "p1 is -0.1; expected a finite number of at least 0"),
        ((math.nan, 0.1, 0.4), "p0 is nan"),
        ((0.5, 0.1, "half"), "p2 is 'half'"),
    ],
)
def test_impossible_probabilities(probabilities, message):
    with pytest.raises(InputError, match=message):
        two_item_family(*probabilities)


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        (np.zeros((3, 3)), "expected a model of two items"),
        ([[0.0, 1.0]], "expected a square"),
        (np.array([[0.0, np.inf], [0.0, 0.0]]), r"theta\[0, 1\] is inf"),
        (np.array([[-np.inf, 0.0], [0.0, 0.0]]), r"theta\[0, 0\] is -inf"),
        (np.array([[0.0, -np.inf], [-np.inf, 0.0]]), "expected a sum below 1"),
        ([[0.0, -60.0], [-60.0, 0.0]], "cannot be distinguished"),
        (pd.DataFrame(PAPER, index=["a", "b"], columns=["b", "a"]), "labelled differently"),
    ],
)
def test_impossible_models(theta, message):
    with pytest.raises(InputError, match=message):
        two_item_family_of(theta)


def test_the_family_is_about_observation_at_rate_1():
    model = Model([[0.0, 4.0], [0.0, -4.0]], observation=Exponential(2.0))
    with pytest.raises(InputError, match=r"rate=2\.0.*expected a rate of 1"):
        two_item_family_of(model)
