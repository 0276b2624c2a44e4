"""Compare the evaluation of sets by components with that by lattices.

The tests compare the value, the full gradient and the posterior of the time. The code for lattices
does not use panels of time, decompositions or integrals, and `test_exact` compares it with slow
reference functions.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequela import Budget, BudgetError, Exponential, InputError, evaluate
from sequela.kernels.panels import DEGREES, solve_once
from sequela.likelihood import components, cross_gradient, plan
from sequela.likelihood.components import ComponentSets, TimeGrid
from sequela.likelihood.cross_gradient import CROSS_ACCURACY, CrossGradient
from sequela.likelihood.cross_times import COARSE, FINE
from sequela.likelihood.decomposition import acting, components_of, decompose
from sequela.likelihood.independent import log_p_independent
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.passage import Passage
from sequela.questions import time_posterior

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def table(n, *sets):
    X = np.zeros((len(sets), n), dtype=int)
    for row, S in zip(X, sets, strict=True):
        row[list(S)] = 1
    return X


def by_components(theta, sets, rate=1.0):
    """Return the evaluated sets, the mean of their full gradients, and its estimated error."""
    parameters = Parameters(np.asarray(theta, dtype=float), Exponential(rate))
    sets = [np.array(sorted(S), dtype=np.int64) for S in sets]
    solved = ComponentSets(parameters, decompose(theta != 0.0, sets), sets)
    solved.solve(1)
    weights = np.full(len(sets), 1.0 / len(sets))
    cross = CrossGradient(solved)
    gradient = solved.gradient(weights, 1) + cross.gradient(weights, 1)
    return solved, gradient, cross.error


def assert_same(theta, sets, rate=1.0):
    solved, gradient, error = by_components(theta, sets, rate)
    parameters = Parameters(theta, Exponential(rate))
    expected = []
    total = np.zeros_like(theta)
    for S in sets:
        passage = Passage.of(parameters, np.array(sorted(S), dtype=np.int64))
        expected.append(passage.log_p())
        total += passage.gradient() / len(sets)
    np.testing.assert_allclose(solved.log_p, expected, rtol=1e-11, atol=1e-11)
    assert solved.is_accurate
    np.testing.assert_allclose(gradient, total, rtol=0, atol=1e-9 * max(1.0, np.abs(total).max()))
    assert error < CROSS_ACCURACY


@st.composite
def sparse_models(draw, largest=13):
    """Draw a theta with few interactions, sets of its items, and a rate of the observation."""
    n = draw(st.integers(3, largest + 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    theta = np.diag(rng.normal(draw(st.floats(-4.0, 1.0)), draw(st.floats(0.0, 2.0)), n))
    scale = draw(st.sampled_from([0.5, 2.0, 6.0]))
    for _ in range(draw(st.integers(0, n))):
        i, j = rng.choice(n, 2, replace=False)
        theta[i, j] = rng.normal(0.0, scale)
    sizes = draw(st.lists(st.integers(0, min(n, largest)), min_size=1, max_size=3))
    sets = [set(rng.choice(n, size, replace=False).tolist()) for size in sizes]
    return theta, sets, draw(st.sampled_from([0.2, 1.0, 5.0]))


@quick
@given(sparse_models())
def test_value_and_gradient_are_those_of_the_lattice(problem):
    theta, sets, rate = problem
    children = acting(theta != 0.0)
    largest = max(
        (c.size for S in sets for c in components_of(np.array(sorted(S), int), children)[0]),
        default=0,
    )
    if largest <= 9:
        assert_same(theta, sets, rate)


@quick
@given(sparse_models())
def test_coarse_gradient_serves_a_solver(problem):
    theta, sets, rate = problem
    parameters = Parameters(theta, Exponential(rate))
    sets = [np.array(sorted(S), dtype=np.int64) for S in sets]
    solved = ComponentSets(parameters, decompose(theta != 0.0, sets), sets)
    if max((f.k for f in solved.functions), default=0) > 7:
        return
    solved.solve(1)
    weights = np.full(len(sets), 1.0 / len(sets))
    fine, coarse = (CrossGradient(solved, p).gradient(weights, 1) for p in (FINE, COARSE))
    # The tolerance of a fit is 1e-4, so errors of 1e-5 in its gradient do no harm.
    np.testing.assert_allclose(coarse, fine, rtol=0, atol=1e-5 * max(1.0, np.abs(fine).max()))


def test_gradient_does_not_depend_on_portions(monkeypatch):
    rng = np.random.default_rng(4)
    theta = np.diag(rng.normal(-2.0, 1.0, 14)) + 1.5 * np.eye(14, k=1) * (np.arange(14) % 3 > 0)
    sets = [set(rng.choice(14, size, replace=False).tolist()) for size in (3, 8, 10, 11)]
    expected = by_components(theta, sets)[1]
    # If little memory is allowed, each point in time is evaluated separately, and matrix products
    # have few rows.
    monkeypatch.setattr(cross_gradient, "_MOST_BYTES", 1.0)
    monkeypatch.setattr(cross_gradient, "_MOST_ROWS", 2)
    monkeypatch.setattr(cross_gradient, "_MOST_SUM_BYTES", 1.0)
    np.testing.assert_allclose(by_components(theta, sets)[1], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("cost", [0.0, 1.0])
def test_gradient_is_the_same_for_all_sets_at_once_and_each_alone(monkeypatch, cost):
    rng = np.random.default_rng(5)
    theta = np.diag(rng.normal(-2.0, 1.0, 14)) + 1.5 * np.eye(14, k=1) * (np.arange(14) % 3 > 0)
    sets = [set(rng.choice(14, size, replace=False).tolist()) for size in (8, 10, 11)]
    expected = by_components(theta, sets)[1]
    # There are two ways to compute the gradient: for all sets at once, or for each set alone. The
    # cheaper way is used. Here the costs are made up: the first way costs 0 or 100, and the second
    # way costs 1.
    most = max(len(S) for S in sets)

    def judged(self, own, alone):
        together = own.size + alone.size > most
        return 100.0 * cost if together else 1.0

    monkeypatch.setattr(cross_gradient._Products, "_cost", judged)
    np.testing.assert_allclose(by_components(theta, sets)[1], expected, rtol=0, atol=1e-13)


def chain(n, effect, base):
    theta = np.diag(np.full(n, base))
    theta[np.arange(n - 1), np.arange(1, n)] = effect
    return theta


CASES = {
    "isolated items only": (np.diag(np.linspace(-4.0, 1.0, 16)), set(range(14))),
    "equal rates": (np.diag(np.full(16, -1.0)), set(range(13))),
    "one component": (chain(9, 2.0, -2.0), set(range(9))),
    "extreme entries": (chain(8, 25.0, -20.0), set(range(6))),
    "inhibition": (chain(8, -25.0, -1.0), set(range(6))),
    "rates that differ by 1e8": (
        np.diag(np.array([9.0, -9.4, 9.0, -9.4, 0.0, 0.0, 0.0])) + 2.0 * np.eye(7, k=1),
        {0, 1, 2, 3, 5},
    ),
    "the empty set": (chain(5, 1.0, -1.0), set()),
}


@pytest.mark.parametrize("name", CASES)
def test_special_cases(name):
    theta, items = CASES[name]
    assert_same(theta, [items])


def test_a_common_child_outside_couples_its_parents():
    """Two items that act on the same absent item belong to one component.

    They are coupled, because the rate of the absent item depends on both.
    """
    theta = np.diag([-1.0, -1.5, 0.5, -2.0])
    theta[0, 2] = 2.0
    theta[1, 2] = 1.5
    parts, isolated = components_of(np.array([0, 1, 3]), acting(theta != 0.0))
    assert [(c.items, c.children) for c in parts] == [((0, 1), (2,))]
    assert isolated == [3]
    assert_same(theta, [{0, 1, 3}, {0, 3}, {0, 1, 2, 3}])


def test_components_are_the_same_in_every_set():
    """A component that occurs in several sets has the same children in all of them.

    The children are the absent items on which its items act. A child that is present belongs to the
    component.
    """
    theta = np.diag(np.full(6, -1.0))
    theta[0, 1] = theta[2, 3] = theta[4, 3] = 1.0
    children = acting(theta != 0.0)
    listed = decompose(theta != 0.0, [np.array(S) for S in ([0, 1, 5], [0, 1, 2, 4], [2, 3, 4])])
    assert {c.items for c in listed.components} == {(0, 1), (2, 4), (2, 3, 4)}
    assert listed.isolated.tolist() == [5]
    for component in listed.components:
        outside = {j for i in component.items for j in children[i]} - set(component.items)
        assert set(component.children) == outside


@pytest.mark.parametrize("k", [80, 267, 600])
def test_large_sets_without_interactions_have_their_closed_form(k):
    rng = np.random.default_rng(k)
    rates = np.exp(rng.normal(-3.0, 1.0, k + 50))
    parameters = Parameters(np.diag(np.log(rates)))
    sets = [np.arange(k)]
    solved = ComponentSets(parameters, decompose(parameters.theta != 0.0, sets), sets)
    solved.solve(1)
    expected = log_p_independent(rates[:k], float(rates[k:].sum()))
    assert solved.log_p[0] == pytest.approx(expected, rel=1e-12)
    assert solved.posterior.sum() == pytest.approx(1.0)


def test_a_large_set_agrees_with_sampling():
    """Compare 40 items, of which some interact. The value may be off by 4.5 standard errors."""
    rng = np.random.default_rng(5)
    theta = np.diag(rng.normal(-1.5, 0.7, 50))
    for i in range(0, 24, 4):
        theta[i, i + 1] = 1.5
        theta[i + 1, i + 2] = -1.0
    X = table(50, range(40))
    exact = evaluate(theta, X)
    assert exact.methods.tolist() == ["components"]
    assert exact.value_se == 0.0
    sampled = evaluate(theta, X, method="relocation", random_state=1)
    assert abs(sampled.value - exact.value) < 4.5 * sampled.value_se
    z = (sampled.gradient - exact.gradient)[:40] / np.maximum(sampled.gradient_se[:40], 1e-9)
    assert np.abs(z).max() < 8.0  # 2,000 entries with a t distribution
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.4


def test_by_name():
    theta = chain(6, 1.0, -1.0)
    X = table(6, range(4), [0], [])
    found = evaluate(theta, X, method="components")
    assert found.methods.tolist() == ["components"] * 3
    assert found.value == pytest.approx(evaluate(theta, X).value, rel=1e-12)
    with pytest.raises(InputError, match="does not support known observation times"):
        evaluate(theta, X, times=[1.0, 1.0, 1.0], method="components")
    with pytest.raises(BudgetError, match="a component of 4 items"):
        evaluate(theta, X, method="components", budget=Budget(work=1e5))


def test_what_the_panels_cannot_resolve_is_refused(monkeypatch):
    """If the estimated error of a result is above the limit, the result is not returned."""
    theta = chain(5, 3.0, -1.0)
    X = table(5, range(5))
    evaluate(theta, X, method="components")
    monkeypatch.setattr(components, "ACCURACY", 1e-17)
    with pytest.raises(InputError, match="has an error of"):
        evaluate(theta, X, method="components")


def test_threads_change_no_bit():
    rng = np.random.default_rng(1)
    theta = np.diag(rng.normal(-1.0, 0.5, 40))
    theta[0, 1] = theta[2, 3] = theta[3, 4] = 1.0
    X = (rng.random((6, 40)) < 0.6).astype(int)
    one = evaluate(theta, X, method="components", n_threads=1)
    two = evaluate(theta, X, method="components", n_threads=2)
    np.testing.assert_array_equal(one.gradient, two.gradient)
    np.testing.assert_array_equal(one.log_likelihoods, two.log_likelihoods)


# --- Functions of time ----------------------------------------------------------------------------


@quick
@given(
    st.lists(st.floats(0.01, 300.0), min_size=2, max_size=8, unique=True),
    st.floats(0.02, 20.0),
)
def test_a_sequence_of_phases_has_its_closed_form(rates, t):
    """The probability of the last phase has a small relative error, even if it is tiny."""
    gaps = np.abs(np.subtract.outer(rates, rates))[~np.eye(len(rates), dtype=bool)]
    if gaps.min() < 1e-3:
        return
    grid = TimeGrid.between(1.0 / max(rates), 40.0, 10)
    slowest = min(rates)
    y = np.zeros((DEGREES, grid.half.size))
    solve_once(y, np.zeros_like(y), rates[0] - slowest, 1.0, grid.half)
    for rate in rates[1:]:
        source = y.copy()
        solve_once(y, source, rate - slowest, 0.0, grid.half)
    panel, values = grid.polynomials(np.array([t]))
    found = float(values[0] @ y[:, panel[0]]) * math.exp(-slowest * t)
    with mpmath.workdps(80):
        exact = mpmath.mpf(0)
        for i, a in enumerate(rates):
            product = mpmath.mpf(1)
            for j, b in enumerate(rates):
                if j != i:
                    product *= mpmath.mpf(b) - mpmath.mpf(a)
            exact += mpmath.exp(-mpmath.mpf(a) * mpmath.mpf(t)) / product
    assert found == pytest.approx(float(exact), rel=1e-9)


def test_the_grid_integrates_and_projects():
    grid = TimeGrid.between(0.1, 30.0, 50)
    weights = np.exp(grid.log_weights)
    assert np.sum(weights * np.exp(-grid.times)) == pytest.approx(1.0 - math.exp(-grid.edges[-1]))
    density = np.exp(-grid.times) * grid.times**3
    projected = grid.values(grid.project(weights * density))
    assert np.sum(weights * projected) == pytest.approx(np.sum(weights * density))


# --- The posterior of the observation time --------------------------------------------------------


def test_the_time_of_a_sample_is_that_of_its_lattice(monkeypatch):
    rng = np.random.default_rng(5)
    theta = np.diag(rng.normal(-1.5, 0.7, 20))
    for i in range(0, 12, 4):
        theta[i, i + 1] = 1.5
        theta[i + 1, i + 2] = -1.0
    sample = [str(i) for i in range(16)]
    found = time_posterior(theta, sample)
    assert (found.method, found.draws, found.mean_se) == ("components", 0, 0.0)
    monkeypatch.setattr(plan, "LEAST_COMPONENT_SET", 99)
    lattice = time_posterior(theta, sample)
    assert lattice.method == "exact"
    assert found.mean == pytest.approx(lattice.mean, rel=1e-11)
    assert found.variance == pytest.approx(lattice.variance, rel=1e-9)
    chances = [0.001, 0.05, 0.5, 0.95, 0.999]
    quantiles, expected = found.quantile(chances), lattice.quantile(chances)
    np.testing.assert_allclose(quantiles["time"], expected["time"], rtol=1e-9)
    assert (quantiles["se"] == 0.0).all()
    times = [0.0, 0.3, 1.0, 3.0, 1e4]
    np.testing.assert_allclose(found.density(times), lattice.density(times), atol=1e-10)
    whole = found.density()
    steps = np.diff(whole.index)
    area = float(
        np.sum(steps * (whole["density"].to_numpy()[1:] + whole["density"].to_numpy()[:-1]) / 2)
    )
    assert area == pytest.approx(1.0, abs=1e-3)
