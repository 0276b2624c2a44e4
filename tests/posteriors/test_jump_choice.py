"""The choice of the pairs of items for which jumps are tried."""

from __future__ import annotations

from collections import Counter

import numba
import numpy as np
import pytest
import scipy.stats

import reference as ref
from posteriors import twins
from sequela.kernels.pair_choice import choose_rows
from sequela.posteriors.jump_choice import (
    PairTracks,
    order_shares,
    pairs_by_slowness,
)

PAIRS = np.array([[0, 1], [0, 2], [1, 2]])


@pytest.mark.parametrize("stop_rate", [0.5, 1.0, 3.0])
def test_shares_are_those_of_models_of_two_items(stop_rate):
    theta = ref.random_theta(np.random.default_rng(1), 3, 1.5)
    found = order_shares(theta, PAIRS, stop_rate)
    for share, pair in zip(found, PAIRS, strict=True):
        p = twins.two_item_sets(theta[np.ix_(pair, pair)], stop_rate)
        assert share == pytest.approx(p[3] / (p[3] + p[4]), rel=1e-12)


def test_shares_of_extreme_rates_are_finite():
    theta = np.diag([39.0, -300.0, 0.0])
    theta[1, 0] = 35.0
    shares = order_shares(theta, PAIRS, 1.0)
    assert ((shares >= 0.0) & (shares <= 1.0)).all()


def autoregressive(rng, correlation, draws):
    """Return a Gaussian process with mean 0.5 and this correlation of successive values."""
    x = np.empty(draws)
    x[0] = rng.standard_normal()
    for t in range(1, draws):
        x[t] = correlation * x[t - 1] + np.sqrt(1.0 - correlation**2) * rng.standard_normal()
    return 0.5 + 0.01 * x


def test_draws_to_forget_follow_from_the_correlation():
    """Test pairs with independent, correlated and constant shares, and chains that disagree."""
    rng = np.random.default_rng(2)
    series = np.stack(
        [
            [autoregressive(rng, 0.0, 3000), autoregressive(rng, 0.6, 3000), np.full(3000, 0.3),
             c + 0.01 * rng.standard_normal(3000)]
            for c in range(2)
        ],
        axis=1,
    )  # fmt: skip
    tracks = PairTracks.begin(2, 4)
    np.testing.assert_array_equal(tracks.draws_to_forget(), 1.0)
    for t in range(3000):
        tracks.add(series[:, :, t].T)
    found = tracks.draws_to_forget()
    assert found[0] == pytest.approx(1.0, abs=0.1)
    assert found[1] == pytest.approx(4.0, rel=0.15)
    assert found[2] == 1.0
    assert found[3] == pytest.approx(200.0)


def test_slow_pairs_are_chosen_more_often_and_none_is_left_out():
    copies = np.array([60, 1, 1])
    chosen = pairs_by_slowness(copies, np.array([1.0, 1.0, 9.0]))
    counts = np.bincount(chosen)
    np.testing.assert_allclose(
        counts / len(chosen), [0.25 * 60 / 62, 0.25 / 62, 0.75 + 0.25 / 62], atol=2e-3
    )
    # A pair that is twice as slow gets four times as many jumps.
    slow = np.bincount(pairs_by_slowness(copies[1:], np.array([2.0, 3.0])))
    np.testing.assert_allclose(slow / slow.sum(), [0.15 + 0.125, 0.6 + 0.125], atol=2e-3)
    same = pairs_by_slowness(copies, np.ones(3))
    np.testing.assert_array_equal(same, np.repeat(np.arange(3), copies))
    assert pairs_by_slowness(copies[:0], np.ones(0)).shape == (0,)


@numba.njit
def rows_of_several(rows, pairs, rng):
    return choose_rows(rows, pairs, rng)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_pairs_that_jump_together_differ_and_belong_to_three_items(count):
    pairs = np.array([[0, 1], [0, 1], [2, 0], [1, 2], [3, 4]])
    rng = np.random.default_rng(5)
    rows = np.empty(count, dtype=np.int64)
    seen = Counter()
    for _ in range(4000):
        if not rows_of_several(rows, pairs, rng):
            continue
        chosen = [frozenset(pair) for pair in pairs[rows].tolist()]
        assert len(set(chosen)) == count
        assert count == 1 or len(frozenset.union(*chosen)) == 3
        seen[tuple(rows)] += 1
    assert sum(seen.values()) > 3500
    # All sequences of rows have the same probability, so a sequence is as likely as its reverse.
    assert scipy.stats.chisquare(list(seen.values())).pvalue > 1e-3
    assert len(seen) == {1: 5, 2: 10, 3: 12}[count]


def test_rows_without_three_items_are_not_found():
    pairs = np.array([[0, 1], [2, 3]])
    assert not rows_of_several(np.empty(2, dtype=np.int64), pairs, np.random.default_rng(1))
