"""Orders of pairs without common ancestors: compare with the lattice of all items."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from questions.enumeration import random_theta
from sequela import Exponential, Model
from sequela.likelihood.parameters import Parameters
from sequela.questions import arrival_functions, order, order_matrix
from sequela.questions.arrival_functions import independent_orders
from sequela.questions.dependence import ancestors, arrivals_on_lattice

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def acting_on(theta, places):
    return [frozenset(ancestors(theta, np.array([place])).tolist()) for place in places]


@quick
@given(st.integers(0, 2**32), st.integers(2, 11), st.sampled_from([0.0, 0.08, 0.2]),
       st.sampled_from([0.2, 1.0, 5.0]))  # fmt: skip
def test_pairs_are_those_of_the_lattice(seed, n, density, rate):
    theta = random_theta(seed, n, density=density)
    places = np.random.default_rng(seed).permutation(n)[: max(2, n - 2)]
    acting = acting_on(theta, places)
    found = independent_orders(Parameters(theta, Exponential(rate)), places, acting, 1)
    _, before = arrivals_on_lattice(theta, rate)
    expected = before[np.ix_(places, places)]
    for i in range(places.size):
        for j in range(places.size):
            if i != j and acting[i].isdisjoint(acting[j]):
                assert found[i, j] == pytest.approx(expected[i, j], rel=1e-9)
            else:
                assert np.isnan(found[i, j])


def test_two_items_in_closed_form():
    theta = np.diag([2.0, -9.0])
    a, b, z = np.exp(2.0), np.exp(-9.0), 0.7
    acting = acting_on(theta, range(2))
    found = independent_orders(Parameters(theta, Exponential(z)), np.arange(2), acting, 1)
    assert found[0, 1] == pytest.approx(a / (a + b + z) * b / (b + z), rel=1e-11)
    assert found[1, 0] == pytest.approx(b / (a + b + z) * a / (a + z), rel=1e-11)


def blocks(n, size):
    """Return a theta of independent blocks. In a block each item acts on the next, in a ring."""
    theta = np.diag(np.random.default_rng(1).normal(-0.5, 0.7, n))
    for start in range(0, n, size):
        for i in range(size):
            theta[start + i, start + (i + 1) % size] = 0.9 if i else -0.6
    return theta


def test_a_matrix_of_blocks_is_that_of_one_lattice(monkeypatch):
    """For four independent blocks of four items, lattices of 2^4 states are enough."""
    model = Model(blocks(16, 4), [f"i{k}" for k in range(16)], observation=Exponential(1.7))
    seen = []
    on_lattice = order.arrivals_on_lattice
    monkeypatch.setattr(
        order,
        "arrivals_on_lattice",
        lambda theta, z: (seen.append(len(theta)), on_lattice(theta, z))[1],
    )
    found = order_matrix(model)
    assert set(seen) == {4}
    assert (found.method.to_numpy() == "exact").all()
    monkeypatch.setattr(order, "_SMALL_LATTICE", 99)
    monkeypatch.setattr(order, "_pairs_by_lattice", _one_lattice)
    expected = order_matrix(model)
    assert seen[-1] == 16
    np.testing.assert_allclose(found.probability, expected.probability, rtol=1e-9)
    np.testing.assert_allclose(found.observed, expected.observed, rtol=1e-9)


def _one_lattice(acting, missing, budget):
    n = len(acting)
    return {frozenset(range(n)): [(i, j) for i in range(n) for j in range(i, n)]}


def test_more_items_than_any_lattice_are_exact():
    """Sixty items in independent blocks of three are computed without simulation."""
    found = order_matrix(Model(blocks(60, 3), [f"i{k}" for k in range(60)]))
    assert found.draws == 0
    assert (found.method.to_numpy() == "exact").all()
    p = found.probability.to_numpy()
    off = ~np.eye(60, dtype=bool)
    np.testing.assert_allclose((p + p.T)[off], 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["ACCURACY", "_MOST_ANCESTORS"])
def test_what_is_not_accurate_or_too_large_is_left_to_lattices(monkeypatch, name):
    theta = blocks(12, 3)
    monkeypatch.setattr(arrival_functions, name, -1)
    found = independent_orders(Parameters(theta), np.arange(12), acting_on(theta, range(12)), 1)
    assert np.isnan(found).all()
