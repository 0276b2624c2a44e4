"""What acts on what, and the chain seen through some of its items."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from questions.enumeration import chains, pair_table, random_theta
from sequela import Budget
from sequela.questions.dependence import (
    ancestors,
    arrivals_on_lattice,
    fits_lattice,
    given_state,
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
    assert np.count_nonzero(theta) == 3  # theta is left as it was


@quick
@given(chains(least=1))
def test_arrivals_against_enumeration(chain):
    theta, z = chain
    flow, before = arrivals_on_lattice(theta, z)
    truth = pair_table(theta, z)
    np.testing.assert_allclose(flow, np.diagonal(truth), rtol=1e-9)
    assert (np.diagonal(before) == 0.0).all()
    np.testing.assert_allclose(before + np.diag(flow), truth, rtol=1e-9)


@quick
@given(chains(), st.data())
def test_the_chain_seen_through_ancestors_is_the_same(chain, data):
    theta, z = chain
    targets = np.array(
        data.draw(st.lists(st.integers(0, len(theta) - 1), min_size=1, max_size=2, unique=True))
    )
    members = ancestors(theta, targets)
    whole = pair_table(theta, z)[np.ix_(members, members)]
    part = pair_table(theta[np.ix_(members, members)], z)
    np.testing.assert_allclose(part, whole, rtol=1e-9)


@quick
@given(chains(), st.data())
def test_the_chain_that_goes_on_from_a_state(chain, data):
    theta, _ = chain
    n = len(theta)
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


def test_what_fits():
    assert fits_lattice(15, Budget())
    assert not fits_lattice(60, Budget(memory=1e300, work=1e300))
    for n in range(1, 12):
        assert fits_lattice(n, Budget(work=Budget.exact_work(n, n)))
        assert not fits_lattice(n + 1, Budget(work=Budget.exact_work(n, n)))
