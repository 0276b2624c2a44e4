"""The most likely orders of the known items of a sample: compare with a list of all histories."""

from __future__ import annotations

import heapq
import itertools
import math

import numpy as np
import pandas as pd
import pytest

import reference
from likelihood import partly_known as twin
from questions.enumeration import observed
from sequela import Dataset, Model
from sequela.questions import known_order_search, known_orders, likely_orders
from sequela.settings import Budget

TINY = Budget(work=300.0)
PRESENT, MISSING = [0, 2, 5], [1, 4]
STATEMENTS = {"none": [], "some": [(2, 0, 0.8)], "certain": [(2, 0, 0.8), (0, 5, 1.0)]}


def sample_of(statements=(), row=(1, None, 1, 0, None, 1)):
    return Dataset([row], orders=[[(str(a), str(b), p) for a, b, p in statements]])


def truth_of(theta, statements=(), present=PRESENT, missing=MISSING):
    """Return the probability of each order of the present items, as a mapping."""
    found = {}
    for order, p in twin.posterior(theta, present, missing, statements):
        known = tuple(str(i) for i in order if i in present)
        found[known] = found.get(known, 0.0) + p
    return found


@pytest.mark.parametrize("kind", STATEMENTS)
@pytest.mark.parametrize("seed", range(4))
def test_all_orders_against_an_enumeration(seed, kind):
    theta = reference.random_theta(np.random.default_rng(seed), 6, sparsity=0.2, scale=1.5)
    truth = truth_of(theta, STATEMENTS[kind])
    table = likely_orders(Model(theta), sample_of(STATEMENTS[kind]), 100)
    assert set(table["order"]) == set(truth)
    expected = [truth[order] for order in table["order"]]
    np.testing.assert_allclose(table["probability"], expected, rtol=1e-9)
    assert (np.diff(table["probability"]) <= 1e-12).all()
    assert table["cumulative"].iloc[-1] == pytest.approx(1.0, abs=1e-12)
    assert table.attrs == {"method": "exact", "draws": 0, "seed": None}
    first = likely_orders(Model(theta), sample_of(STATEMENTS[kind]), 2)
    pd.testing.assert_frame_equal(first, table.iloc[:2], check_exact=True)


def test_the_missing_cells_change_the_answer():
    """Item 1 promotes item 2. If it is missing, its effect is averaged, not left out."""
    theta = np.diag([-0.5, 0.0, -2.0])
    theta[1, 2] = 5.0
    present, absent, missing = (
        likely_orders(theta, sample_of(row=row)).set_index("order")["probability"]
        for row in ([1, 1, 1], [1, 0, 1], [1, None, 1])
    )
    first = ("0", "2")
    with_item = sum(p for order, p in present.items() if order.index("0") < order.index("2"))
    assert absent[first] != pytest.approx(with_item, abs=0.05)
    assert min(absent[first], with_item) < missing[first] < max(absent[first], with_item)


def test_missing_items_that_act_on_nothing_do_not_change_the_answer():
    theta = reference.random_theta(np.random.default_rng(3), 4, sparsity=0.2)
    wide = np.diag([0.0] * 4 + [0.3, -0.2])
    wide[:4, :4] = theta
    wide[:4, 4:] = 1.5  # known items may act on the missing items
    known = likely_orders(theta, Dataset([[1, 1, 0, 1]]), 10)
    more = likely_orders(wide, Dataset([[1, 1, 0, 1, None, None]]), 10)
    assert known["order"].tolist() == more["order"].tolist()
    np.testing.assert_allclose(known["probability"], more["probability"], rtol=1e-12)


def test_an_item_that_never_arrives_may_as_well_be_missing():
    theta = reference.random_theta(np.random.default_rng(5), 4, sparsity=0.2)
    theta[3, 3] = -60.0
    theta[:3, 3] = 0.0
    absent = likely_orders(theta, Dataset([[1, 1, 1, 0]]), 10)
    missing = likely_orders(theta, Dataset([[1, 1, 1, None]]), 10)
    assert absent["order"].tolist() == missing["order"].tolist()
    np.testing.assert_allclose(absent["probability"], missing["probability"], rtol=1e-10)


def test_a_sample_without_missing_cells_has_the_same_bits():
    theta = reference.random_theta(np.random.default_rng(5), 4)
    whole = Dataset([[1, 1, 1, 0]])
    same = whole.with_missing(np.zeros((1, 4), dtype=bool))
    one, two = likely_orders(theta, {"0", "1", "2"}), likely_orders(theta, same)
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_a_sample_with_fewer_than_two_known_items_has_one_order():
    theta = reference.random_theta(np.random.default_rng(5), 3)
    for row, order in (([0, None, None], ()), ([1, None, 0], ("0",))):
        table = likely_orders(theta, Dataset([row]))
        assert table["order"].tolist() == [order]
        assert table["probability"].tolist() == [1.0]


def test_equally_probable_orders_are_not_all_begun(monkeypatch):
    pushed = []

    def counted(heap, entry):
        pushed.append(entry)
        push(heap, entry)

    push = heapq.heappush
    monkeypatch.setattr(known_order_search.heapq, "heappush", counted)
    theta = np.random.default_rng(1).normal(0.0, 1e-15, (9, 9)) + np.diag(np.full(9, -0.7))
    found = likely_orders(theta, Dataset([[1] * 7 + [None] * 2]), 5)
    np.testing.assert_allclose(found["probability"], 1.0 / math.factorial(7), rtol=1e-9)
    assert found["order"].nunique() == 5
    assert 0 < len(pushed) <= 5 * 7 * 7


def test_the_bound_is_never_below_the_best_probability():
    theta = reference.random_theta(np.random.default_rng(8), 6, sparsity=0.1, scale=2.0)
    truth = truth_of(theta)
    best = likely_orders(theta, sample_of(), 1)
    assert best["probability"][0] == pytest.approx(max(truth.values()), rel=1e-9)


def test_drawn_orders_have_exact_probabilities_if_the_search_takes_too_long(monkeypatch):
    theta = reference.random_theta(np.random.default_rng(6), 6, sparsity=0.2)
    monkeypatch.setattr(known_orders, "_MOST_STEPS", 3)
    found = likely_orders(theta, sample_of(STATEMENTS["some"]), 100, random_state=1)
    assert found.attrs == {"method": "histories", "draws": 1600, "seed": 1}
    truth = truth_of(theta, STATEMENTS["some"])
    expected = [truth[order] for order in found["order"]]
    np.testing.assert_allclose(found["probability"], expected, rtol=1e-9)
    assert (found["se"] == 0.0).all()
    assert found["cumulative"].iloc[-1] > 0.95


@pytest.mark.parametrize("kind", ["large lattice", "beyond the budget"])
def test_shares_of_drawn_histories_are_within_their_errors(kind, monkeypatch):
    theta = reference.random_theta(np.random.default_rng(7), 6, sparsity=0.2)
    truth = truth_of(theta)
    options = {"budget": TINY} if kind == "beyond the budget" else {}
    monkeypatch.setattr(known_orders, "_LARGEST_SEARCHED", 2)
    z = []
    for seed in range(10):
        found = likely_orders(theta, sample_of(), 3, draws=400, random_state=seed, **options)
        assert found.attrs == {"method": "histories", "draws": 400, "seed": seed}
        z += [
            (p - truth[order]) / se
            for order, p, se in zip(found["order"], found["probability"], found["se"], strict=True)
        ]
    assert np.abs(z).max() < 5.0
    assert 0.3 < np.std(z) < 1.6
    assert set(itertools.chain.from_iterable(found["order"])) == {"0", "2", "5"}


def test_the_seed_decides_and_threads_do_not():
    theta = reference.random_theta(np.random.default_rng(7), 6, sparsity=0.2)
    how = {"budget": TINY, "draws": 200}
    one, two, other = (
        likely_orders(theta, sample_of(), random_state=s, n_threads=n, **how)
        for s, n in ((3, 1), (3, 2), (4, 1))
    )
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert not one.equals(other)


def test_other_rates_of_the_observation_only_change_the_unit_of_time():
    theta = reference.random_theta(np.random.default_rng(9), 6, sparsity=0.2)
    one = likely_orders(theta, sample_of(), 10)
    three = likely_orders(observed(theta + np.log(3.0) * np.eye(6), 3.0), sample_of(), 10)
    np.testing.assert_allclose(one["probability"], three["probability"], rtol=1e-10)


@pytest.mark.parametrize("row", [(1, None, 1, 0, None, 1), (1, 0, 1, 0, 0, 1)])
def test_drawn_known_orders_have_the_same_bits_for_any_threads(row):
    theta = reference.random_theta(np.random.default_rng(7), 6, sparsity=0.2)
    one, two, other = (
        likely_orders(
            theta, sample_of(STATEMENTS["certain"], row), random_state=seed, n_threads=threads,
            budget=TINY, draws=200,
        )
        for seed, threads in ((3, 1), (3, 2), (4, 1))
    )  # fmt: skip
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert not one.equals(other)


@pytest.mark.parametrize("kind", ["some", "certain"])
@pytest.mark.parametrize("missing", [MISSING, []], ids=["missing", "complete"])
def test_known_orders_beyond_the_budget_are_drawn(kind, missing):
    theta = reference.random_theta(np.random.default_rng(7), 6, sparsity=0.2)
    row = [None if j in missing else int(j in PRESENT) for j in range(6)]
    truth = truth_of(theta, STATEMENTS[kind], missing=missing)
    z = []
    for seed in range(6):
        found = likely_orders(
            theta, sample_of(STATEMENTS[kind], row), 2, draws=400, random_state=seed, budget=TINY
        )
        assert found.attrs == {"method": "histories", "draws": 400, "seed": seed}
        assert (found["se"] > 0.0).all()
        # All orders of a complete sample share the error of the estimated probability of the set.
        z += [
            (p - truth[order]) / se
            for order, p, se in zip(found["order"], found["probability"], found["se"], strict=True)
        ]
    assert np.abs(z).max() < 5.0
    assert 0.3 < np.std(z) < 1.8


def test_the_best_orders_of_a_large_complete_sample_obey_its_known_orders():
    """The known orders leave few orders of the 24 items, so their probabilities can be listed."""
    n = 24
    theta = np.diag(np.full(n, -0.5))
    theta[0, 1], theta[5, 0] = 3.0, 2.0
    names = [(str(k), str(k + 1)) for k in range(2, n - 1)]
    # The order of 22 items is known. The other two items may be at any place, but 1 is before 0.
    data = Dataset([[1] * n], orders=[[*names, ("1", "0")]])
    best = likely_orders(theta, data, 3, draws=400, random_state=1)
    assert best.attrs["method"] == "histories"
    assert best["probability"].is_monotonic_decreasing
    exact = exact_probabilities(theta, n)
    for order, p, se in zip(best["order"], best["probability"], best["se"], strict=True):
        assert abs(p - exact[order]) < 6.0 * se
        assert se < 0.2 * p


def exact_probabilities(theta, n):
    """Return P(order) of all orders in which 2, 3, ... n - 1 come in turn, and 1 before 0."""
    log_p = {}
    for one, zero in itertools.combinations(range(n), 2):
        order = list(range(2, n))
        order.insert(one, 1)
        order.insert(zero, 0)
        log_p[tuple(map(str, order))] = reference.log_p_sequence(theta, order)
    total = np.logaddexp.reduce(list(log_p.values()))
    return {order: float(np.exp(value - total)) for order, value in log_p.items()}
