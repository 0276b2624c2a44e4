"""The most likely orders of a sample: compare with a list of all its k! orders."""

from __future__ import annotations

import heapq
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from questions.enumeration import (
    labels,
    models,
    observed,
    of_sample,
    random_theta,
    theta_and_rate,
)
from sequela import InputError, Model
from sequela.budget import Budget
from sequela.questions import likely_orders, order_search

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)
TINY = Budget(work=1)


def truth_of(theta, sample, z=1.0):
    """Return a mapping from each order, as a tuple of labels, to its probability."""
    return {tuple(map(str, walk.sigma)): walk.probability for walk in of_sample(theta, sample, z)}


@quick
@given(models(), st.data())
def test_all_orders_against_enumeration(model, data):
    theta, z = theta_and_rate(model)
    size = data.draw(st.integers(0, len(theta)))
    sample = list(data.draw(st.permutations(range(len(theta)))))[:size]
    truth = truth_of(theta, sample, z)
    found = likely_orders(model, sample, math.factorial(size) + 3)
    assert len(found) == math.factorial(size) == found["order"].nunique()
    expected = [truth[order] for order in found["order"]]
    np.testing.assert_allclose(found["probability"], expected, rtol=1e-8)
    # The probabilities never increase, except for rounding errors if they are equal.
    assert (np.diff(np.log(found["probability"])) <= 1e-9).all()
    np.testing.assert_allclose(found["cumulative"], np.cumsum(expected), rtol=1e-9)
    assert found["cumulative"].iloc[-1] == pytest.approx(1.0, abs=1e-9)
    assert (found["se"] == 0.0).all()
    assert found.attrs == {"method": "exact", "draws": 0, "seed": None}


@quick
@given(models(min_items=3), st.integers(1, 5))
def test_the_first_few(model, count):
    theta, z = theta_and_rate(model)
    k = len(theta)
    truth = sorted(truth_of(theta, range(k), z).values(), reverse=True)[:count]
    found = likely_orders(model, range(k), max_orders=count)
    np.testing.assert_allclose(found["probability"], truth, rtol=1e-8)
    assert list(found.index) == list(range(count))


def test_few_items_of_a_large_model():
    """Items that are not in the sample change the probabilities: they could have arrived."""
    theta = reference.random_theta(np.random.default_rng(4), 30, sparsity=0.7)
    sample = [3, 11, 17, 28]
    truth = reference.posterior_orders(theta, sample, 0.5)
    found = likely_orders(observed(theta, 0.5), sample, 24)
    assert len(found) == 24
    for order, probability in zip(found["order"], found["probability"], strict=True):
        assert probability == pytest.approx(truth[tuple(map(int, order))], rel=1e-9)


def test_the_empty_set_and_one_item():
    for sample in ([], ["2"]):
        found = likely_orders(random_theta(1, 3), sample, budget=TINY)
        assert found["order"].tolist() == [tuple(sample)]
        assert found["probability"].tolist() == pytest.approx([1.0])
        assert found["cumulative"].tolist() == pytest.approx([1.0])
        assert found.attrs["method"] == "exact"


def test_ties():
    found = likely_orders(np.zeros((6, 6)), range(5), 1000)
    assert set(found["order"]) == set(itertools.permutations(labels(5)))
    np.testing.assert_allclose(found["probability"], 1.0 / 120.0, rtol=1e-9)
    assert found["order"].iloc[0] == ("0", "1", "2", "3", "4")


@pytest.mark.parametrize("spread", [0.0, 1e-15])
def test_ties_are_not_all_begun(monkeypatch, spread):
    """If all 9! orders are equally probable up to rounding, five of them are found in few steps."""
    pushed = []

    def counted(heap, entry):
        pushed.append(entry)
        push(heap, entry)

    push = heapq.heappush
    monkeypatch.setattr(order_search.heapq, "heappush", counted)
    theta = np.random.default_rng(1).normal(0.0, spread, (9, 9)) + np.diag(np.full(9, -0.7))
    found = likely_orders(theta, range(9), 5)
    np.testing.assert_allclose(found["probability"], 1.0 / math.factorial(9), rtol=1e-9)
    assert found["order"].nunique() == 5
    assert len(pushed) <= 5 * 9 * 9


def test_a_large_set_with_a_known_best_order():
    """If each item promotes the next one, the order of this cascade is the best of all 16!."""
    n = 16
    theta = np.diag(np.full(n, -8.0))
    theta[0, 0] = 0.0
    theta[np.arange(n - 1), np.arange(1, n)] = 9.0
    found = likely_orders(theta, range(n), 3)
    best = tuple(labels(n))
    assert found["order"].iloc[0] == best
    log_p = [reference.log_p_sequence(theta, tuple(map(int, order))) for order in found["order"]]
    ratios = np.log(found["probability"] / found["probability"].iloc[0])
    np.testing.assert_allclose(ratios, np.array(log_p) - log_p[0], atol=1e-9)


def test_beyond_the_budget_within_its_errors():
    theta = random_theta(21, 6, 1.5)
    truth = truth_of(theta, range(6), 1.5)
    z = []
    for seed in range(20):
        found = likely_orders(
            observed(theta, 1.5), range(6), 4, budget=TINY, draws=480, random_state=seed
        )
        assert found.attrs == {"method": "relocation", "draws": 480, "seed": seed}
        exact = np.array([truth[order] for order in found["order"]])
        # Only the probability of the set is sampled. It is a factor that all orders have in common.
        assert np.ptp(np.log(found["probability"] / exact)) < 1e-9
        np.testing.assert_allclose(
            found["se"] / found["probability"], found["se"][0] / found["probability"][0]
        )
        assert (found["se"] > 0.0).all()
        z.append((found["probability"][0] - exact[0]) / found["se"][0])
    # Each z has a t distribution with 15 degrees of freedom.
    assert np.abs(z).max() < 6.0
    assert 0.6 < np.std(z) < 1.7


def test_beyond_the_budget_the_best_orders_are_found():
    theta = random_theta(21, 6, 1.5)
    truth = likely_orders(theta, range(6), 3)
    found = likely_orders(theta, range(6), 3, budget=TINY, random_state=1)
    assert found["order"].tolist() == truth["order"].tolist()
    assert found.attrs["draws"] == 1_600
    many = likely_orders(theta, range(6), 1000, budget=TINY, random_state=1)
    assert many["order"].nunique() == len(many) <= 720
    few = likely_orders(theta, range(6), 1000, budget=TINY, draws=2, random_state=1)
    assert 1 <= len(few) <= few.attrs["draws"] == 16


def test_threads_do_not_change_a_bit():
    theta = random_theta(21, 6, 1.5)
    for budget in (None, TINY):
        one, two = (
            likely_orders(theta, range(6), budget=budget, random_state=3, n_threads=n)
            for n in (1, 2)
        )
        pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_labels_that_look_like_code():
    found = likely_orders(Model(random_theta(1, 2), ["=cmd()", "<b>"]), [True, True])
    assert set(found["order"]) == {("=cmd()", "<b>"), ("<b>", "=cmd()")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_orders": 0}, "max_orders is 0"),
        ({"max_orders": 1.5}, "max_orders is 1.5"),
        ({"draws": 0}, "draws is 0"),
        ({"target_se": 0.1}, "target_se is not used by this function"),
        ({"sample": "0"}, "sample is the text '0'"),
        ({"sample": ["7"]}, "the model has no item '7'"),
    ],
)
def test_arguments_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        likely_orders(np.zeros((3, 3)), **{"sample": ["0", "1"], **options})
