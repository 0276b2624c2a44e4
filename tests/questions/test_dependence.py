"""The ancestors of items (items that act on them, directly or not), and restricted models."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from questions.enumeration import models, observed, pair_table, random_theta, theta_and_rate
from sequela.budget import Budget
from sequela.likelihood.parameters import Parameters
from sequela.questions.dependence import (
    ancestors,
    arrival_probabilities,
    arrivals_on_lattice,
    given_state,
    restricted,
)

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)


@quick
@given(st.integers(0, 2**32), st.integers(1, 12), st.sampled_from([0.0, 0.1, 0.3]), st.data())
def test_ancestors_by_powers_of_the_matrix(seed, n, density, data):
    theta = random_theta(seed, n, density=density)
    targets = data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    acts = (theta != 0.0).astype(int)
    np.fill_diagonal(acts, 1)
    reach = np.linalg.matrix_power(acts.astype(object), n) > 0
    expected = np.nonzero(reach[:, targets].any(axis=1))[0]
    found = ancestors(theta, np.array(targets))
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, expected)


def test_ancestors_of_a_line():
    theta = np.zeros((5, 5))
    theta[[0, 1, 2], [1, 2, 3]] = -1.0
    assert ancestors(theta, np.array([3])).tolist() == [0, 1, 2, 3]
    assert ancestors(theta, np.array([4, 1])).tolist() == [0, 1, 4]
    assert ancestors(theta, np.array([0])).tolist() == [0]
    assert np.count_nonzero(theta) == 3  # the calls do not change theta


@quick
@given(models(min_items=1))
def test_arrivals_against_enumeration(model):
    theta, z = theta_and_rate(model)
    flow, before = arrivals_on_lattice(theta, z)
    truth = pair_table(theta, z)
    np.testing.assert_allclose(flow, np.diagonal(truth), rtol=1e-9)
    item_by_item = arrival_probabilities(Parameters.of(model), Budget())
    np.testing.assert_allclose(item_by_item, np.diagonal(truth), rtol=1e-9)
    assert (np.diagonal(before) == 0.0).all()
    np.testing.assert_allclose(before + np.diag(flow), truth, rtol=1e-9)


@quick
@given(models(), st.data())
def test_ancestors_alone_behave_as_in_the_whole_model(model, data):
    theta, z = theta_and_rate(model)
    targets = np.array(
        data.draw(st.lists(st.integers(0, len(theta) - 1), min_size=1, max_size=2, unique=True))
    )
    members = ancestors(theta, targets)
    whole = pair_table(theta, z)[np.ix_(members, members)]
    part = restricted(model, members)
    assert part.items == tuple(model.items[place] for place in members)
    np.testing.assert_allclose(pair_table(*theta_and_rate(part)), whole, rtol=1e-9)


@quick
@given(models(), st.data())
def test_what_follows_a_state(model, data):
    theta, n = model.theta, model.n_items
    state = sorted(data.draw(st.sets(st.integers(0, n - 1), max_size=n)))
    rest, absent = given_state(theta, np.array(state, dtype=np.int64))
    assert sorted([*state, *absent.tolist()]) == list(range(n))
    assert rest.shape == (len(absent), len(absent))
    more = data.draw(st.sets(st.integers(0, n - 1))) - set(state)
    now = [int(np.searchsorted(absent, item)) for item in more]
    for place, item in enumerate(absent):
        if item not in more:
            expected = reference.rate(theta, [*state, *more], item)
            assert reference.rate(rest, now, place) == pytest.approx(expected, rel=1e-9)


def test_a_state_leaves_theta_as_it_was():
    theta = random_theta(1, 4)
    kept = theta.copy()
    given_state(theta, np.array([0, 2]))
    np.testing.assert_array_equal(theta, kept)


def test_items_beyond_the_budget_have_no_exact_probability():
    theta = random_theta(2, 5, density=0.0)
    theta[0, 1] = theta[1, 2] = theta[2, 3] = 1.0
    model = observed(theta, 0.7)
    truth = np.diagonal(pair_table(*theta_and_rate(model)))
    for n in range(1, 4):
        budget = Budget(work=Budget.exact_work(n, n))
        found = arrival_probabilities(Parameters.of(model), budget)
        # Each of the items 0 to 2 acts on the next one, so item k (up to 3) needs a lattice of
        # k + 1 items. Item 4 has no interactions, so it needs a lattice of one item.
        fits = np.array([place < n or place == 4 for place in range(5)])
        np.testing.assert_array_equal(np.isnan(found), ~fits)
        np.testing.assert_allclose(found[fits], truth[fits], rtol=1e-9)
