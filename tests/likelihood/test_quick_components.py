"""Evaluation of components by Laplace transforms: compare with functions of time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequela import Dataset, Settings
from sequela.kernels.transforms import transform_forward, transform_gradient
from sequela.likelihood.components import ComponentSets
from sequela.likelihood.decomposition import decompose
from sequela.likelihood.objective import Objective
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.quick_components import QuickComponents, posteriors_of, quick_work
from sequela.observation import Exponential

ITEMS = 22


def problem(seed, links=14):
    """Return a sparse theta, three large sets, and their decomposition into components."""
    rng = np.random.default_rng(seed)
    theta = np.diag(rng.normal(-1.0, 1.0, ITEMS))
    for _ in range(links):
        i, j = rng.choice(ITEMS, 2, replace=False)
        theta[i, j] = rng.normal(0.5, 1.2)
    sets = [np.sort(rng.choice(ITEMS, size, replace=False)) for size in (14, 17, 20)]
    return theta, sets, decompose(theta != 0.0, sets)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 10_000))
def test_value_and_gradient_are_those_of_the_functions_of_time(seed):
    theta, sets, parts = problem(seed)
    parameters = Parameters(theta, Exponential(0.7))
    exact = ComponentSets(parameters, parts, sets)
    exact.solve(1)
    weights = np.array([0.2, 0.5, 0.3])
    slope = exact.gradient(weights, 1)
    found = QuickComponents(parts, sets, posteriors_of(exact)).evaluate(parameters, weights, 1)
    if found is None:
        return  # no result, because the transforms are not precise enough
    assert found[0] == pytest.approx(weights @ exact.log_p, abs=1e-4)
    support = (theta != 0.0) | np.eye(ITEMS, dtype=bool)
    np.testing.assert_allclose(found[1][support], slope[support], atol=1e-3)


def test_it_usually_finds_an_answer_and_to_more_digits():
    errors = []
    for seed in range(20):
        theta, sets, parts = problem(seed)
        parameters = Parameters(theta)
        exact = ComponentSets(parameters, parts, sets)
        exact.solve(1)
        quick = QuickComponents(parts, sets, posteriors_of(exact))
        found = quick.evaluate(parameters, np.ones(3), 1)
        if found is not None:
            errors.append(abs(found[0] - exact.log_p.sum()))
    assert len(errors) >= 18
    assert np.median(errors) < 1e-5


def test_the_times_follow_the_posterior():
    """If theta changes, the stored posteriors of the observation times are updated.

    Here all base rates are multiplied by the same factor.
    """
    theta, sets, parts = problem(3)
    exact = ComponentSets(Parameters(theta), parts, sets)
    exact.solve(1)
    quick = QuickComponents(parts, sets, posteriors_of(exact))
    moved = theta + 0.5 * np.eye(ITEMS)
    again = ComponentSets(Parameters(moved), parts, sets)
    again.solve(1)
    found = quick.evaluate(Parameters(moved), np.ones(3), 1)
    assert found is not None
    assert found[0] == pytest.approx(again.log_p.sum(), abs=1e-4)
    for here, there in zip(quick.posteriors, posteriors_of(again), strict=True):
        assert here == pytest.approx(there, abs=1e-3)


def resolvent(rates, exits, z, k):
    """Return the Laplace transform at z of the probability of the last state, by a linear solve."""
    states = 1 << k
    generator = np.zeros((states, states), dtype=complex)
    for R in range(states):
        generator[R, R] = z + exits[R]
        for c in range(k):
            if not R >> c & 1:
                generator[R | 1 << c, R] = -rates[R, c]
    return np.linalg.solve(generator, np.eye(states)[0])[-1]


def test_transforms_are_the_resolvent_and_their_gradient_is_its_difference():
    rng = np.random.default_rng(2)
    k, columns = 3, 5
    effects = rng.normal(0.0, 1.0, (k + 1, columns))  # the last row of `effects` has the base rates

    def tables(effects):
        rates = np.zeros((1 << k, columns))
        for R in range(1 << k):
            for c in range(columns):
                if c >= k or not R >> c & 1:
                    on = [b for b in range(k) if R >> b & 1 and b != c]
                    rates[R, c] = np.exp(effects[k, c] + effects[on, c].sum())
        return rates, rates.sum(axis=1)

    z = np.array([0.3 + 0.0j, 0.1 + 2.0j, -0.2 + 5.0j])
    weights = np.array([1.0 + 0.5j, -0.3 + 1.0j, 0.7 - 0.2j])

    def value(effects):
        rates, exits = tables(effects)
        return sum(
            (w * resolvent(rates, exits, point, k)).real
            for w, point in zip(weights, z, strict=True)
        )

    rates, exits = tables(effects)
    nodes = np.array([z.real, z.imag])
    T = np.empty((2, 1 << k, z.size))
    transform_forward(T, rates, exits, nodes, k)
    last = [resolvent(rates, exits, point, k) for point in z]
    np.testing.assert_allclose(T[0, -1] + 1j * T[1, -1], last, rtol=1e-12)
    G = np.empty((k + 1, columns))
    transform_gradient(G, T, rates, exits, nodes, np.array([weights.real, weights.imag]), k)
    for b in range(k + 1):
        for c in range(columns):
            if b == c and b < k:
                continue
            step = np.zeros_like(effects)
            step[b, c] = 1e-5
            slope = (value(effects + step) - value(effects - step)) / 2e-5
            assert G[b, c] == pytest.approx(slope, abs=1e-8)


def large_samples():
    """Return 60 samples: 57 small sets and 3 large ones."""
    rng = np.random.default_rng(5)
    X = rng.random((60, ITEMS)) < 0.15
    X[:3] = rng.random((3, ITEMS)) < 0.8
    return Dataset(X.astype(int))


def test_a_quick_objective_has_the_same_value_and_gradient_on_the_support():
    theta, _, _ = problem(1)
    support = (theta != 0.0) | np.eye(ITEMS, dtype=bool)
    answers = []
    for quick in (False, True):
        objective = Objective(
            large_samples(), Exponential(), Settings(random_state=1, n_threads=1), quick=quick
        )
        objective.prepare(support)
        objective.evaluate(theta)  # this call computes the posteriors of the times
        answers.append(objective.evaluate(theta))
    assert answers[1][0] == pytest.approx(answers[0][0], abs=1e-6)
    np.testing.assert_allclose(answers[1][1][support], answers[0][1][support], atol=1e-5)
    assert answers[1][0] != answers[0][0]  # with equal answers, `quick` would have been ignored


def test_many_sets_that_share_components_are_not_quick():
    """If many sets share components, Laplace transforms are slower than functions of time.

    Functions of time are computed once for all sets, but transforms once for each set.
    """
    theta, sets, _ = problem(4)
    few, many = (decompose(theta != 0.0, sets[:1] * count) for count in (1, 200))
    assert quick_work(many) == pytest.approx(200 * quick_work(few))
    assert len(many.components) == len(few.components)
