"""Evidence for an order. Two items alone give none, but with clock items there is evidence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from questions.enumeration import order_table
from reference import set_distribution
from sequela import InputError, Model, SetChain, evaluate, fit, order_probability, simulate
from sequela.learning import refit
from sequela.questions.rivals import reverse_order, rival_orders

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)
PREREQUISITE = np.array([[0.0, 4.0], [0.0, -4.0]])


def with_clocks(first, count, rate=-2.0):
    theta = np.diag([*np.diag(first), *([rate] * count)])
    theta[: len(first), : len(first)] = first
    return theta


def drawn(theta, size, seed):
    return simulate(theta, size, random_state=seed).to_dataset().without_times()


def first_of_two(theta, rate=1.0):
    return order_table(theta, rate)[0][0, 1]


@quick
@given(arrays(float, (2, 2), elements=st.floats(-3.0, 3.0)), st.sampled_from([1.0, 0.3, 4.0]))
def test_reversed_pair_keeps_its_sets_and_turns_its_order(theta, rate):
    turned = reverse_order(theta, 0, 1, rate)
    np.testing.assert_allclose(
        set_distribution(turned, rate), set_distribution(theta, rate), rtol=1e-9
    )
    before, after = first_of_two(theta, rate), first_of_two(turned, rate)
    if abs(before - 0.5) > 1e-9:  # an order with the probability 0.5 has no opposite order
        assert (before > 0.5) == (after < 0.5)
    assert min(after, 1.0 - after) == pytest.approx(0.02, abs=1e-9)


def test_other_items_stay_as_they_are():
    theta = with_clocks(PREREQUISITE, 2)
    theta[2, 0] = 1.0
    turned = reverse_order(theta, 0, 1)
    changed = turned != theta
    assert changed[:2, :2].any()
    changed[:2, :2] = False
    assert not changed.any()


@pytest.mark.parametrize("seed", range(6))
def test_two_items_alone_cannot_tell(seed):
    rng = np.random.default_rng(seed)
    theta = rng.uniform(-1.0, 0.5, (2, 2))
    theta[0, 1] = rng.uniform(1.0, 3.0)
    theta[1, 0] = 0.0
    data = drawn(theta, 400, seed)
    model = fit(data, penalty=0.005)
    found = rival_orders(model, data, least_effect=0.2, search=False, tol=1e-6, random_state=1)
    assert len(found.table) == 1
    # All models of the family of Proposition 1 have the same likelihood, so there is no evidence.
    # The small evidence that is found comes from the weak prior of refits, which shrinks the two
    # models by different amounts.
    row = found.table.iloc[0]
    assert abs(row["evidence"]) < 0.3
    assert row["rival_probability"] < row["probability"] - 0.1


TRUE = with_clocks(PREREQUISITE, 12)
SETS = drawn(TRUE, 500, 5)
MODEL = fit(SETS, penalty=0.01)


def test_clocks_tell():
    found = rival_orders(MODEL, SETS, random_state=1)
    row = found.table.iloc[0]
    assert (row["first"], row["second"]) == ("0", "1")
    assert row["probability"] > 0.9 > 0.5 > row["rival_probability"]
    assert row["evidence"] > 2.0


def test_evidence_is_the_likelihood_lost_by_turning_the_arrow():
    row = rival_orders(MODEL, SETS, search=False, tol=1e-5, random_state=1).table.iloc[0]
    turned = reverse_order(MODEL.theta, 0, 1)
    turned[0, 1] = 0.0
    free = (turned != 0.0) | np.eye(len(turned), dtype=bool)

    def loss(values):
        theta = np.zeros_like(turned)
        theta[free] = values
        found = evaluate(theta, SETS)
        # The squares of the effects belong to the prior of refits (standard deviation 2). The
        # likelihood is a mean over 500 samples, so the prior is divided by 500.
        off = theta - np.diag(np.diag(theta))
        loss = -found.value + np.sum(off**2) / 8.0 / 500
        return loss, -found.gradient[free] + (off / 4.0 / 500)[free]

    other = minimize(loss, turned[free], jac=True, method="L-BFGS-B", options={"maxiter": 500})
    turned[free] = other.x
    here, there = (
        500 * evaluate(theta, SETS).value
        for theta in (refit(MODEL, SETS, tol=1e-6).model.theta, turned)
    )
    lost = here - there
    assert not row["optimum"]  # the fit was constrained to the opposite order
    assert row["evidence"] == pytest.approx(lost, abs=0.1)


def test_search_leaves_a_wrong_order():
    turned = reverse_order(MODEL.theta, 0, 1)
    turned[0, 1] = 0.0
    wrong = refit(Model(turned, MODEL.items, {"penalty": 0.01}), SETS).model
    before = float(order_probability(wrong, "0", "1"))
    assert before < 0.5
    stays = rival_orders(wrong, SETS, search=False, penalty=0.01, random_state=1)
    assert stays.moves == 0
    assert stays.model == wrong
    assert stays.table["evidence"].iloc[0] < -2.0
    found = rival_orders(wrong, SETS, penalty=0.01, random_state=1)
    assert found.moves >= 1
    assert float(order_probability(found.model, "0", "1")) > 0.9


@pytest.mark.parametrize(("seed", "pair"), [(0, ("0", "2")), (2, ("1", "2"))])
def test_a_rival_has_the_opposite_order(seed, pair):
    """Here, the first fit ends at another optimum, in which the order of the pair is the same."""
    theta = np.diag([0.0, -0.5, -0.8, -1.5, -2.0, -2.2, -2.5])
    theta[0, 2], theta[1, 2], theta[0, 3], theta[1, 4] = 1.2, 0.8, 0.9, 0.7
    data = simulate(theta, 250, random_state=seed).to_dataset().without_times()
    pairs = [("0", "1"), ("0", "2"), ("1", "2")]
    table = rival_orders(fit(data, penalty=0.01), data, pairs=pairs, random_state=1).table
    row = table.set_index(["first", "second"]).loc[pair]
    assert row["probability"] > 0.5 > row["rival_probability"]


def test_pairs_by_name_and_in_either_order():
    model = MODEL
    one = rival_orders(model, SETS, pairs=[("0", "1")], search=False, random_state=1).table
    two = rival_orders(model, SETS, pairs=[("1", "0")], search=False, random_state=1).table
    assert one[["first", "second"]].equals(two[["first", "second"]])
    assert one["evidence"].iloc[0] == pytest.approx(two["evidence"].iloc[0], abs=0.02)


def test_threads_change_nothing():
    fitted = SetChain(0.01, random_state=1).fit(SETS)
    one, two = (
        rival_orders(fitted, SETS, random_state=1, n_threads=threads).table for threads in (1, 2)
    )
    assert one.equals(two)


def test_nothing_to_try():
    data = drawn(np.diag([-1.0, -1.0, -1.0]), 100, 1)
    found = rival_orders(fit(data, penalty=0.5), data, random_state=1)
    assert found.table.empty
    assert "evidence" in found.table.columns


def test_items_that_are_never_together():
    data = [{"a"}] * 30 + [{"b", "c"}] * 10 + [{"b"}] * 20 + [set()] * 30 + [{"c"}] * 5
    model = fit(data, penalty=0.02)
    found = rival_orders(model, data, pairs=[("a", "b")], search=False, random_state=1)
    assert np.isfinite(found.table["evidence"]).all()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"least_effect": 0.0}, "least_effect"),
        ({"pairs": [("0", "nine")]}, "nine"),
        ({"pairs": [("0",)]}, "pair"),
        ({"pairs": ["01"]}, "pair"),
        ({"penalty": -1.0}, "penalty"),
        ({"max_pairs": 0}, "max_pairs"),
    ],
)
def test_bad_arguments_are_named(options, named):
    with pytest.raises(InputError, match=named):
        rival_orders(Model(TRUE), SETS, **options)
