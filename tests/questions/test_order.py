"""Probabilities of orders: compare with an enumeration of all sequences."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import sequela.questions.order as module
from questions.enumeration import (
    labels,
    models,
    observed,
    of_sample,
    order_table,
    random_theta,
    theta_and_rate,
)
from sequela import BudgetError, InputError, Model, order_matrix, order_probability
from sequela.budget import Budget
from sequela.settings import Settings

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)
TINY = Budget(work=1)
MIXED = Model(random_theta(5, 4, 1.5), ["a", "b", "c", "d"])


def off(table):
    values = np.asarray(table)
    return values[~np.eye(len(values), dtype=bool)]


def same(one, two):
    for name in ("probability", "se", "observed", "method"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(two, name), check_exact=True)
    assert (one.draws, one.seed) == (two.draws, two.seed)


# --- Exact ----------------------------------------------------------------------------------------


@quick
@given(models())
def test_exact_against_enumeration(model):
    found = order_matrix(model, method="exact")
    probability, both = order_table(*theta_and_rate(model))
    np.testing.assert_allclose(found.probability, probability, rtol=1e-9)
    np.testing.assert_allclose(found.observed, both, rtol=1e-9)
    assert (found.method == "exact").all(axis=None)
    assert (found.se == 0.0).all(axis=None)
    assert (found.draws, found.seed) == (0, None)


@quick
@given(models(max_items=5))
def test_observed_is_that_of_the_dense_solve(model):
    theta, z = theta_and_rate(model)
    sets = reference.set_distribution(theta, z)
    found = order_matrix(model).observed.to_numpy()
    masks = np.arange(len(sets))
    for a, b in itertools.product(range(len(theta)), repeat=2):
        has_both = (masks >> a & 1) & (masks >> b & 1)
        assert found[a, b] == pytest.approx(sets @ has_both, rel=1e-8)


@quick
@given(models(min_items=3), st.data())
def test_a_part_of_the_items(model, data):
    """The result lists the chosen items in the given order. Only their ancestors are needed."""
    theta, z = theta_and_rate(model)
    asked = data.draw(st.permutations(range(len(theta))))[: data.draw(st.integers(2, 3))]
    found = order_matrix(model, asked)
    probability, both = order_table(theta, z)
    np.testing.assert_allclose(found.probability, probability[np.ix_(asked, asked)], rtol=1e-9)
    np.testing.assert_allclose(found.observed, both[np.ix_(asked, asked)], rtol=1e-9)
    assert list(found.probability.index) == list(found.probability) == [str(i) for i in asked]
    one = order_probability(model, asked[0], asked[1])
    other = order_probability(model, asked[1], asked[0])
    assert float(one) == pytest.approx(probability[asked[0], asked[1]], rel=1e-9)
    assert float(one) + float(other) == pytest.approx(1.0, abs=1e-12)
    assert (one.se, one.method, one.draws, one.seed) == (0.0, "exact", 0, None)


@quick
@given(models(), st.data())
def test_relabelling_items_relabels_answers(model, data):
    theta, z = theta_and_rate(model)
    turn = list(data.draw(st.permutations(range(len(theta)))))
    names = [f"gene {i}" for i in range(len(theta))]
    found = order_matrix(observed(theta, z, names))
    turned = order_matrix(observed(theta[np.ix_(turn, turn)], z, [names[i] for i in turn]), names)
    pd.testing.assert_frame_equal(found.probability, turned.probability, rtol=1e-9)
    pd.testing.assert_frame_equal(found.observed, turned.observed, rtol=1e-9)


@quick
@given(models(max_items=5), st.integers(0, 1000))
def test_items_that_act_on_nothing_change_nothing(model, seed):
    """Add 40 items that act on no other item. They must not change the answer or need a lattice."""
    theta, z = theta_and_rate(model)
    n = len(theta)
    rng = np.random.default_rng(seed)
    larger = np.zeros((n + 40, n + 40))
    larger[:n] = rng.uniform(-3.0, 3.0, (n, n + 40))
    larger[:n, :n] = theta
    larger[np.arange(n, n + 40), np.arange(n, n + 40)] = rng.uniform(-3.0, 3.0, 40)
    found = order_matrix(observed(larger, z), range(n), method="exact")
    np.testing.assert_allclose(found.probability, order_table(theta, z)[0], rtol=1e-9)


def blocks_of(sizes, seed=0):
    theta = np.zeros((sum(sizes), sum(sizes)))
    start = 0
    for index, size in enumerate(sizes):
        part = slice(start, start + size)
        theta[part, part] = random_theta(seed + index, size, 2.0)
        start += size
    return theta


def test_blocks_share_their_clock():
    """Test orders of two items of different blocks.

    The blocks do not interact, but the items depend on the same observation time.
    """
    theta = blocks_of([3, 3, 3, 3, 3, 3, 3, 3])
    found = order_matrix(observed(theta, 0.7), method="exact", budget=Budget(work=1e4))
    for one, two in itertools.combinations(range(8), 2):
        places = [*range(3 * one, 3 * one + 3), *range(3 * two, 3 * two + 3)]
        probability, both = order_table(theta[np.ix_(places, places)], 0.7)
        np.testing.assert_allclose(found.probability.iloc[places, places], probability, rtol=1e-9)
        np.testing.assert_allclose(found.observed.iloc[places, places], both, rtol=1e-9)


def test_pairs_share_lattices(monkeypatch):
    """All 66 pairs of 12 items in three independent blocks are computed from three lattices."""
    sizes = []
    solve = module.arrivals_on_lattice

    def counted(theta, rate):
        sizes.append(len(theta))
        return solve(theta, rate)

    monkeypatch.setattr(module, "arrivals_on_lattice", counted)
    theta = blocks_of([4, 4, 4])
    budget = Budget(work=Budget.exact_work(8, 8))
    found = order_matrix(theta, method="exact", budget=budget, n_threads=1)
    assert sorted(sizes) == [4, 4, 4]
    # If functions of time are not used, each pair of blocks needs one lattice of its eight items.
    monkeypatch.setattr(module, "_SMALL_LATTICE", 12)
    whole = order_matrix(theta, method="exact")
    assert sizes[3:] == [8, 8, 8]
    pd.testing.assert_frame_equal(found.probability, whole.probability, rtol=1e-9)
    pd.testing.assert_frame_equal(found.observed, whole.observed, rtol=1e-9)


# --- Simulated ------------------------------------------------------------------------------------


def test_simulation_is_within_its_errors():
    theta = random_theta(3, 5, 2.0, base=0.0)
    probability, both = order_table(theta, 0.5)
    found = order_matrix(observed(theta, 0.5), method="simulation", random_state=1)
    assert (found.method == "simulation").all(axis=None)
    assert (found.draws, found.seed) == (100_000, 1)
    assert np.isnan(np.diagonal(found.probability)).all()
    assert (np.diagonal(found.se) == 0.0).all()
    assert (off(found.se) > 0.0).all()
    assert np.abs(off(found.probability) - off(probability)).max() < 0.05
    # There are ten different z-scores. With a random seed, this check would fail with a probability
    # of about 1 / 200,000.
    assert np.abs((off(found.probability) - off(probability)) / off(found.se)).max() < 5.0
    spread = np.sqrt(both * (1.0 - both) / found.draws)
    assert np.abs((found.observed - both) / spread).max(axis=None) < 5.0
    np.testing.assert_allclose(
        off(found.probability + found.probability.T), 1.0, rtol=0, atol=1e-12
    )


def test_errors_of_simulation_are_calibrated():
    truth = order_table(MIXED.theta)[0]
    z = []
    for seed in range(40):
        found = order_matrix(
            MIXED, method="simulation", draws=2_000, random_state=seed, n_threads=1
        )
        z.append(((found.probability - truth) / found.se).to_numpy()[np.triu_indices(4, 1)])
    z = np.array(z)
    # There are 240 z-scores: 40 for each of six pairs. Scores of different pairs may be correlated.
    # The standard deviation of the 40 scores of a pair has an error of 0.11.
    assert abs(z.mean()) < 0.3
    assert 0.85 < z.std() < 1.15
    assert ((z.std(axis=0) > 0.6) & (z.std(axis=0) < 1.5)).all()


def test_target_is_reached_and_can_be_repeated():
    found = order_probability(MIXED, "a", "b", method="simulation", target_se=0.004, random_state=7)
    assert 0.0 < found.se <= 0.004
    again = order_probability(
        MIXED, "a", "b", method="simulation", draws=found.draws, random_state=found.seed
    )
    assert found == again
    assert found.method == "simulation"
    # The standard error is not much below its target, so few draws were made without need.
    assert found.se > 0.003


def test_a_target_out_of_reach():
    with pytest.raises(BudgetError, match=r"target_se 1e-07 cannot be reached.* draws would be"):
        order_probability(MIXED, "a", "b", method="simulation", target_se=1e-7, random_state=1)


def test_threads_do_not_change_a_bit():
    for options in (
        {"method": "simulation", "draws": 150_000},
        {"budget": Budget(work=Budget.exact_work(3, 3)), "draws": 70_000},
        {"given": ["a", "b", "c", "d"], "budget": TINY, "draws": 100},
    ):
        one, two = (order_matrix(MIXED, random_state=3, n_threads=n, **options) for n in (1, 2))
        same(one, two)
        assert one.draws >= options["draws"]


def test_pairs_beyond_the_budget_are_simulated_and_the_others_exact():
    theta = blocks_of([2, 2, 2, 2])
    # enough for a lattice of one block of items, but not of two blocks
    budget = Budget(work=Budget.exact_work(3, 3))
    found = order_matrix(theta, budget=budget, random_state=2)
    truth = order_matrix(theta, method="exact")
    inside = np.kron(np.eye(4), np.ones((2, 2))) > 0
    assert (found.method.to_numpy() == np.where(inside, "exact", "simulation")).all()
    np.testing.assert_allclose(
        found.probability.to_numpy()[inside], truth.probability.to_numpy()[inside], rtol=1e-9
    )
    assert (found.se.to_numpy()[inside] == 0.0).all()
    z = (found.probability - truth.probability).to_numpy()[~inside] / found.se.to_numpy()[~inside]
    assert np.abs(z).max() < 5.0
    assert np.abs(z).max() > 0.0
    with pytest.raises(BudgetError, match=r"depends on 4 items.* 2\^4 states"):
        order_matrix(theta, budget=budget, method="exact")


def test_never_seen_together():
    theta = np.diag([0.0, -30.0, 0.0])
    found = order_matrix(theta, method="simulation", draws=100, random_state=1)
    assert np.isnan(found.probability.loc["0", "1"])
    assert found.se.loc["0", "1"] == np.inf
    assert found.pairs()["probability"].isna().tolist() == [False, True, True]
    with pytest.raises(BudgetError, match=r"in 100 draws '0' and '1' were never observed"):
        order_probability(theta, 0, 1, method="simulation", draws=100, random_state=1)
    assert float(order_probability(theta, 0, 1)) == pytest.approx(
        order_table(theta)[0][0, 1], rel=1e-9
    )


def test_draws_that_all_agree_have_an_error():
    theta = np.array([[4.0, 0.0], [0.0, -9.0]]) + np.array([[0.0, 9.0], [0.0, 0.0]])
    found = order_probability(theta, 0, 1, method="simulation", draws=1000, random_state=1)
    truth = order_table(theta)[0][0, 1]
    assert float(found) == 1.0
    assert truth < 1.0
    assert 1.0 - truth < 5 * found.se < 0.02


def test_items_so_rare_that_both_underflow():
    with pytest.raises(InputError, match="numerically zero"):
        order_probability(np.diag([-450.0, -450.0]), 0, 1)


# --- In a sample ----------------------------------------------------------------------------------


def before_in(theta, sample, z):
    table = np.zeros((len(sample), len(sample)))
    for walk in of_sample(theta, sample, z):
        for a, b in itertools.combinations(walk.sigma, 2):
            table[sample.index(a), sample.index(b)] += walk.probability
    np.fill_diagonal(table, np.nan)
    return table


@quick
@given(models(), st.data())
def test_given_a_sample_against_enumeration(model, data):
    theta, z = theta_and_rate(model)
    size = data.draw(st.integers(2, len(theta)))
    sample = list(data.draw(st.permutations(range(len(theta)))))[:size]
    truth = before_in(theta, sample, z)
    found = order_matrix(model, sample, given=sample, method="exact")
    np.testing.assert_allclose(found.probability, truth, rtol=1e-8, atol=1e-14)
    assert (found.observed == 1.0).all(axis=None)
    assert (found.se == 0.0).all(axis=None)
    one = order_probability(model, sample[1], sample[0], given=set(sample))
    assert float(one) == pytest.approx(truth[1, 0], rel=1e-8, abs=1e-14)
    assert one.method == "exact"
    # Without `items`, the result has the items of the sample, sorted as in the model.
    whole = order_matrix(model, given=sample)
    assert list(whole.probability) == [str(i) for i in sorted(sample)]


def test_a_sample_beyond_the_budget_is_within_its_errors():
    theta = random_theta(8, 6, 2.0)
    truth = before_in(theta, list(range(6)), 1.5)[np.triu_indices(6, 1)]
    z = []
    for seed in range(20):
        found = order_matrix(
            observed(theta, 1.5), given=range(6), budget=TINY, draws=480, random_state=seed
        )
        assert (found.method == "relocation").all(axis=None)
        upper = np.triu_indices(6, 1)
        z.append((found.probability.to_numpy()[upper] - truth) / found.se.to_numpy()[upper])
    z = np.array(z)
    # Standard errors are estimated from 16 chains, so each of the 300 z-scores has a t distribution
    # with 15 degrees of freedom.
    assert np.abs(z).max() < 6.0
    assert 0.8 < z.std() < 1.35


def test_a_sample_beyond_the_budget_reaches_its_target():
    options = {"given": range(6), "budget": TINY}
    theta = random_theta(8, 6, 2.0)
    found = order_matrix(theta, target_se=0.006, random_state=4, **options)
    assert found.se.max(axis=None) <= 0.006
    assert found.draws > 1_600
    same(found, order_matrix(theta, draws=found.draws, random_state=4, **options))
    with pytest.raises(BudgetError, match=r"cannot be reached: after 1,600 draws"):
        order_matrix(theta, target_se=1e-6, random_state=4, **options)


def test_orders_that_all_agree_have_an_error():
    """Although item 0 is first in all drawn orders, the standard error is not 0."""
    theta = np.zeros((3, 3))
    theta[0, 1:] = 12.0
    theta[1, 1] = theta[2, 2] = -12.0
    found = order_probability(theta, 0, 1, given=range(3), budget=TINY, random_state=1)
    truth = before_in(theta, [0, 1, 2], 1.0)[0, 1]
    assert float(found) == 1.0 > truth
    assert 1.0 - truth < 5 * found.se < 0.01
    assert found.draws == 1_600


def test_only_exact_of_a_sample():
    theta = np.zeros((40, 40))
    given_items = ["0", "1", "2"]
    # The 37 items without effects do not increase the cost. If the method "auto" computes a sample
    # exactly, "exact" must not refuse it.
    budget = Budget(work=Budget.exact_work(3, 3))
    assert (order_matrix(theta, given=given_items, budget=budget).method == "exact").all(axis=None)
    order_matrix(theta, given=given_items, budget=budget, method="exact")
    with pytest.raises(BudgetError, match="a set of 3 items is beyond the budget"):
        order_matrix(theta, given=given_items, budget=TINY, method="exact")


# --- Arguments and results ------------------------------------------------------------------------


def test_pairs_lists_the_surest_first():
    found = order_matrix(MIXED)
    listed = found.pairs()
    assert {frozenset(x) for x in zip(listed["first"], listed["second"], strict=True)} == {
        frozenset(x) for x in itertools.combinations("abcd", 2)
    }
    assert listed["probability"].is_monotonic_decreasing
    assert (listed["probability"] >= 0.5).all()
    truth, both = (
        pd.DataFrame(x, index=MIXED.items, columns=MIXED.items) for x in order_table(MIXED.theta)
    )
    for row in listed.itertuples():
        assert row.probability == pytest.approx(truth.loc[row.first, row.second], rel=1e-9)
        assert row.observed == pytest.approx(both.loc[row.first, row.second], rel=1e-9)
        assert (row.se, row.method) == (0.0, "exact")
    assert list(listed.index) == list(range(6))


def test_equal_items_come_in_either_order():
    found = order_matrix(observed(np.full((3, 3), 0.3), 2.0))
    np.testing.assert_allclose(off(found.probability), 0.5, rtol=1e-12)
    assert len(found.pairs()) == 3


def test_labels_are_only_text():
    names = ["=cmd()", "<b>", "a, b", "TP53"]
    found = order_matrix(Model(MIXED.theta, names))
    assert list(found.probability.index) == list(found.se) == names
    np.testing.assert_array_equal(found.probability, order_matrix(MIXED).probability)
    assert set(found.pairs()["first"]) <= set(names)
    one = order_probability(Model(MIXED.theta, names), "=cmd()", "<b>")
    assert float(one) == pytest.approx(order_table(MIXED.theta)[0][0, 1], rel=1e-9)
    with pytest.raises(InputError, match="no item '<c>'; closest: '<b>'"):
        order_probability(Model(MIXED.theta, names), "=cmd()", "<c>")


def test_the_same_random_state_again():
    options = {"method": "simulation", "draws": 500}
    one = order_matrix(MIXED, random_state=5, **options)
    same(one, order_matrix(MIXED, random_state=5, **options))
    other = order_matrix(MIXED, random_state=6, **options)
    assert not one.probability.equals(other.probability)
    fresh = order_matrix(MIXED, **options)
    same(fresh, order_matrix(MIXED, random_state=fresh.seed, **options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"items": ["a"]}, "items has 1 items; an order needs two"),
        ({"items": []}, "items has 0 items; an order needs two"),
        ({"items": ["a", "a"]}, "contains 'a' more than once"),
        ({"items": "ab"}, r"expected a list of items: \['ab'\]"),
        ({"items": ["a", "z"]}, "no item 'z'"),
        ({"method": "magic"}, "expected 'auto', 'exact' or 'simulation'"),
        ({"draws": 0}, "draws is 0"),
        ({"draws": 2.5}, "draws is 2.5"),
        ({"target_se": 0.0}, "target_se is 0.0"),
        ({"target_se": 0.1, "draws": 10}, "both given"),
        ({"budget": 3}, "expected a sequela.Budget"),
        ({"n_threads": 0}, "n_threads is 0"),
        ({"given": ["a", "b"], "items": ["a", "c"]}, "the sample does not have 'c'"),
        ({"given": ["a"]}, "items has 1 items; an order needs two"),
        ({"given": []}, "items has 0 items; an order needs two"),
        ({"given": ["a", "b"], "method": "simulation"}, "use 'auto' or 'exact'"),
        ({"given": ["a", "b"], "draws": 1}, "draws is 1"),
    ],
)
def test_arguments_are_checked_where_all_is_exact_too(options, message):
    with pytest.raises(InputError, match=message):
        order_matrix(MIXED, **options)


def test_settings_as_keywords_or_as_one_object():
    options = {"draws": 500, "random_state": 5, "n_threads": 1}
    one = order_matrix(MIXED, method="simulation", **options)
    same(one, order_matrix(MIXED, method="simulation", settings=Settings(**options)))
    changed = Settings(random_state=5, draws=7)
    same(one, order_matrix(MIXED, method="simulation", settings=changed, draws=500))
    with pytest.raises(TypeError, match=r"'n_thread'\. Did you mean 'n_threads'\?"):
        order_matrix(MIXED, n_thread=1)


def test_two_of_the_same_item():
    with pytest.raises(InputError, match="'a' more than once"):
        order_probability(MIXED, "a", "a")


def test_labels_of_a_model_without():
    assert list(order_matrix(MIXED.theta).probability) == labels(4)
