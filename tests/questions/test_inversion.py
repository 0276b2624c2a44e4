"""Inverse Laplace transforms: compare with distributions that have closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gamma

import reference
from sequela import InputError
from sequela.questions.inversion import Inverse

quick = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def phases(*orders):
    """Return an `Inverse` whose chains are sums of exponential times, with the given rates."""
    exits = [np.asarray(rates, dtype=float) for rates in orders]
    means = [np.sum(1 / rates) for rates in exits]
    second = [np.sum(1 / rates**2) + mean**2 for rates, mean in zip(exits, means, strict=True)]
    mean = np.mean(means)

    def transform(points):
        return np.array([(1 / (1 + points[:, None] / rates)).prod(axis=1) for rates in exits])

    at_zero = exits[0][0] if exits[0].size == 1 else 0.0
    pole = min(rates.min() for rates in exits)
    return Inverse(transform, mean, float(np.sqrt(np.mean(second) - mean**2)), pole, at_zero)


@pytest.mark.parametrize("count", [1, 2, 7, 60, 400])
@pytest.mark.parametrize("rate", [1.0, 1e-9, 1e9])
def test_equal_phases_are_a_gamma_distribution(count, rate):
    truth = gamma(count, scale=1 / rate)
    found = phases(np.full(count, rate))
    probabilities = np.array([1e-12, 1e-6, 0.01, 0.3, 0.5, 0.9, 0.9999, 1 - 1e-9])
    quantiles = found.pooled_quantiles(probabilities)
    np.testing.assert_allclose(truth.cdf(quantiles), probabilities, rtol=1e-7)
    np.testing.assert_allclose(quantiles[:-1], truth.ppf(probabilities[:-1]), rtol=1e-7)
    assert found.quantiles(probabilities).tolist() == [quantiles.tolist()]
    times = truth.mean() * np.array([3.0, 0.0, 0.01, 1.0, 1.0, 0.5, 1.7])
    density, before = found.evaluate(times)
    np.testing.assert_allclose(
        density[0], truth.pdf(times), rtol=1e-9, atol=1e-11 * truth.pdf(truth.mean())
    )
    np.testing.assert_allclose(before[0], truth.cdf(times), rtol=1e-9, atol=1e-12)


@given(st.lists(st.floats(-30.0, 30.0), min_size=1, max_size=6), st.floats(-3.0, 3.0))
@quick
def test_rates_may_be_however_far_apart(logs, place):
    rates = np.exp(logs)
    found = phases(rates)
    time = np.exp(place) * np.sum(1 / rates)
    _, before = found.evaluate(np.array([time]))
    assert before[0, 0] == pytest.approx(reference.hypoexponential_cdf(time, rates), abs=1e-11)
    probabilities = [0.001, 0.5, 0.999]
    quantiles = found.pooled_quantiles(np.array(probabilities))
    for probability, t in zip(probabilities, quantiles, strict=True):
        assert reference.hypoexponential_cdf(t, rates) == pytest.approx(probability, rel=1e-9)


def test_a_rare_slow_chain_is_seen_in_the_tail():
    # One of three chains is a million times slower than the other two, so its tail is far beyond
    # the tails of these two.
    found = phases([2.0, 3.0], [5.0, 4.0], [1e-6, 4.0])
    times = np.array([0.3, 3.0, 1e3, 1e6, 1e7])
    density, before = found.evaluate(times)
    for chain, rates in enumerate(([2.0, 3.0], [5.0, 4.0], [1e-6, 4.0])):
        truth = [reference.hypoexponential_cdf(t, rates) for t in times]
        np.testing.assert_allclose(before[chain], truth, atol=1e-11)
        a, b = rates
        slow = a * b / (b - a) * (np.exp(-a * times) - np.exp(-b * times))
        np.testing.assert_allclose(density[chain], slow, rtol=1e-7, atol=1e-13)
    probabilities = np.array([0.1, 0.6, 0.9])
    pooled = found.pooled_quantiles(probabilities)
    np.testing.assert_allclose(found.evaluate(pooled)[1].mean(axis=0), probabilities, rtol=1e-10)
    each = found.quantiles(probabilities)
    np.testing.assert_allclose(np.diagonal(found.evaluate(each[:, 1])[1]), 0.6, rtol=1e-10)


@pytest.mark.parametrize(
    "rates", [[1.0], [1.0, 2.0, 3.0], [1e5, 1.0], [1e-3, 1e3, 1.0], [2.0] * 80]
)
def test_grid_holds_all_of_the_density(rates):
    found = phases(np.array(rates))
    grid = found.grid()
    assert grid[0] == 0.0
    assert np.all(np.diff(grid) > 0)
    density, before = found.evaluate(grid)
    assert before[0, 1] < 1e-8
    assert before[0, -1] > 1 - 1e-8
    assert np.trapezoid(density[0], grid) == pytest.approx(1, abs=1e-3)
    assert np.all(np.diff(before[0]) >= -1e-11)


def test_ends_of_the_time_axis():
    found = phases([1.0, 3.0])
    density, before = found.evaluate(np.array([0.0, 1e-300, 1e-20, 1e4, 1e300]))
    np.testing.assert_allclose(density[0], [0.0, 0.0, 3e-20, 0.0, 0.0], rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(before[0], [0.0, 0.0, 1.5e-40, 1.0, 1.0], rtol=1e-9, atol=1e-300)
    empty = phases([4.0])
    np.testing.assert_allclose(empty.evaluate(np.array([0.0, 1e-300, 1e-9]))[0][0], 4.0, rtol=1e-7)
    assert [x.shape for x in empty.evaluate(np.zeros(0))] == [(1, 0), (1, 0)]


def test_order_and_repetition_of_times_do_not_matter():
    found = phases([1.0, 3.0, 0.2])
    times = np.geomspace(1e-3, 30.0, 40)
    density, before = found.evaluate(times)
    mixed = np.random.default_rng(1).permutation(np.repeat(np.arange(40), 2))
    again = phases([1.0, 3.0, 0.2]).evaluate(times[mixed])
    np.testing.assert_allclose(again[0], density[:, mixed], rtol=1e-11)
    np.testing.assert_allclose(again[1], before[:, mixed], rtol=1e-11)
    for one, two in itertools.pairwise(before[0]):
        assert one < two


def test_what_is_no_transform_is_an_error():
    def broken(points):
        return np.full((1, points.size), np.nan + 0j)

    with pytest.raises(InputError, match="could not be computed"):
        Inverse(broken, 1.0, 1.0, 1.0, 0.0)
