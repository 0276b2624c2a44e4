"""Comparison of two cohorts by the differences of all pairs of draws, one of each cohort."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from questions.drawn_models import posterior_of
from sequela import InputError, Model, fit, order_probability, simulate
from sequela.questions import compare
from sequela.questions.comparison import _interval

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)
numbers = st.lists(st.sampled_from([-1.5, -1.0, 0.0, 0.25, 2.0]), min_size=1, max_size=6)


@quick
@given(first=numbers, second=numbers, level=st.floats(0.1, 0.95))
def test_intervals_are_those_of_all_pairs(first, second, level):
    """Compare with a slow version that lists all pairs of draws of the two cohorts."""
    apart = [b - a for a, b in itertools.product(first, second)]
    low, high, larger = _interval(np.array(first), np.array(second), level)
    tail = (1.0 - level) / 2.0
    assert low == pytest.approx(np.quantile(apart, tail))
    assert high == pytest.approx(np.quantile(apart, 1.0 - tail))
    share = sum(1.0 if x > 0 else 0.5 if x == 0 else 0.0 for x in apart) / len(apart)
    assert larger == pytest.approx(share)
    swapped = _interval(np.array(second), np.array(first), level)
    assert swapped[2] == pytest.approx(1.0 - larger)
    assert (swapped[0], swapped[1]) == (pytest.approx(-high), pytest.approx(-low))


def cloud(centre, seed, spread=0.3, draws=40):
    rng = np.random.default_rng(seed)
    return centre + rng.normal(0.0, spread, (2, draws, *centre.shape))


def test_posteriors_are_compared_draw_by_draw():
    here, there = np.zeros((3, 3)), np.zeros((3, 3))
    here[0, 1], there[0, 1] = 2.0, -2.0
    sides = posterior_of(cloud(here, 1)), posterior_of(cloud(there, 2))
    found = compare(*sides, random_state=1, n_threads=1)
    assert found.models == (80, 80)
    assert found.is_certain
    top = found.interactions.iloc[0]
    assert (top["from"], top["to"], top["verdict"]) == ("a", "b", "differs")
    flat = [side.draws.theta.reshape(-1, 3, 3) for side in sides]
    for row in found.interactions.itertuples(index=False):
        i, j = "abc".index(row[0]), "abc".index(row[1])
        assert row.first == pytest.approx(flat[0][:, i, j].mean())
        assert row.second == pytest.approx(flat[1][:, i, j].mean())
        assert row.low <= row.difference <= row.high
    for row in found.orders.itertuples(index=False):
        values = [
            [float(order_probability(Model(theta, list("abc")), row.a, row.b)) for theta in side]
            for side in flat
        ]
        assert row.first == pytest.approx(np.mean(values[0]))
        assert (row.low, row.high, row.larger) == pytest.approx(
            _interval(np.array(values[0]), np.array(values[1]), 0.9)
        )
        assert row.first >= 0.5
    turned = compare(*reversed(sides), random_state=1)
    back = turned.interactions.set_index(["from", "to"])["difference"]
    there = found.interactions.set_index(["from", "to"])["difference"]
    np.testing.assert_allclose(back.loc[there.index], -there)


def test_equal_cohorts_differ_as_rarely_as_the_level_says():
    """If the true difference of two cohorts is zero, about 90% of the intervals contain zero.

    Each posterior is a normal distribution around a random estimate, and its standard deviation is
    the error of this estimate. There are 20 comparisons of 6 interactions. At the level of 90%, 12
    of these 120 interactions are expected to be called different. If they were independent, the
    probability of more than 24 would be below 0.001.
    """
    rng = np.random.default_rng(3)
    called = 0
    for seed in range(20):
        centres = rng.normal(0.0, 0.3, (2, 3, 3))
        sides = [posterior_of(cloud(c, 10 * seed + k)) for k, c in enumerate(centres)]
        found = compare(*sides, max_models=80, random_state=1)
        called += int((found.interactions["verdict"] == "differs").sum())
    assert 1 <= called <= 24


def test_repeats_of_fits_have_intervals_and_zeros_count_half():
    truth = np.array([[0.5, 1.5, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
    data = simulate(truth, 150, random_state=1).to_dataset().without_times()
    rng = np.random.default_rng(1)
    repeats = [
        fit(data.take_rows(rng.integers(150, size=150)), penalty=0.05, random_state=1)
        for _ in range(12)
    ]
    found = compare(repeats, repeats)
    assert found.models == (12, 12)
    np.testing.assert_allclose(found.interactions["larger"], 0.5)
    assert not (found.interactions["verdict"] == "differs").any()
    few = compare(repeats[:3], repeats[:3])
    assert "has only 3 models" in few.notes[0]


def test_two_single_models_are_compared_without_certainty():
    one = Model(ref.random_theta(np.random.default_rng(1), 3, 1.0), list("abc"))
    two = Model(ref.random_theta(np.random.default_rng(2), 3, 1.0), list("abc"))
    found = compare(one, two)
    assert not found.is_certain
    assert set(found.orders["verdict"]) == {"unknown"}
    assert found.orders["low"].isna().all()
    assert "single model" in found.notes[0]
    assert "difference" not in found.sentences()[0]
    by_array = compare(one.theta.tolist(), two.theta)
    assert by_array.models == (1, 1)


def test_only_items_of_both_are_compared():
    one = Model(np.eye(3), ["a", "b", "c"])
    two = Model(np.eye(4), ["c", "x", "a", "y"])
    found = compare(one, two)
    assert set(found.orders["a"]) | set(found.orders["b"]) == {"a", "c"}
    assert "3 and 4 items, of which 2 are in both" in found.notes[-1]
    with pytest.raises(InputError, match="'b', which is not an item of both"):
        compare(one, two, items=["a", "b"])
    with pytest.raises(InputError, match="share 0 items"):
        compare(one, Model(np.eye(2), ["x", "y"]))
    with pytest.raises(InputError, match="first is a single model"):
        compare(one, [one, one])
    with pytest.raises(InputError, match="different items"):
        compare([one, two], [one, one])
