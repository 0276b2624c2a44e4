"""Compare the method over all sets with sequela, a dense linear solver and finite differences."""

import numpy as np
import pytest

import reference as ref
from learning.problems import kkt_residual, l1
from sequela import Dataset, SetChain, evaluate, example_theta, simulate
from sequela_paper.full_state_space import FullStateSpace

METHODS = ["substitution", "sweeps"]


def problem(n, seed=0, samples=60):
    rng = np.random.default_rng([n, seed])
    theta = rng.normal(0.0, 1.2, (n, n))
    theta[np.diag_indices(n)] -= 0.5
    return theta, Dataset(rng.random((samples, n)) < rng.uniform(0.1, 0.7, n))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_value_and_gradient_are_those_of_the_engine(n, method):
    theta, data = problem(n)
    value, gradient = FullStateSpace(data, method).evaluate(theta)
    found = evaluate(theta, data, method="exact")
    assert value == pytest.approx(found.value, rel=1e-10)
    np.testing.assert_allclose(gradient, found.gradient, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_value_is_that_of_the_dense_solve(method):
    theta, data = problem(4, seed=1)
    p = ref.set_distribution(theta)
    expected = np.log(p[data.values @ (1 << np.arange(4))]).mean()
    assert FullStateSpace(data, method).evaluate(theta)[0] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_gradient_is_that_of_finite_differences(method):
    theta, data = problem(3, seed=2)
    space = FullStateSpace(data, method)
    gradient = space.evaluate(theta)[1]
    step = 1e-5
    for i in range(3):
        for j in range(3):
            up, down = theta.copy(), theta.copy()
            up[i, j] += step
            down[i, j] -= step
            slope = (space.evaluate(up)[0] - space.evaluate(down)[0]) / (2 * step)
            assert gradient[i, j] == pytest.approx(slope, abs=1e-8)


@pytest.fixture(scope="module")
def drawn():
    theta = example_theta().to_numpy()[:6, :6]
    return simulate(theta, 200, random_state=1).to_dataset().without_times()


@pytest.mark.parametrize("method", METHODS)
def test_it_learns_to_an_optimum(drawn, method):
    found = FullStateSpace(drawn, method).learn(0.02)
    again = evaluate(found.theta, drawn, method="exact")
    assert found.finished
    assert found.objective == pytest.approx(again.value - l1(found.theta, 0.02), abs=1e-10)
    assert kkt_residual(found.theta, again.gradient, 0.02) <= 1.001e-4
    assert np.count_nonzero(found.theta) < 36  # zeros are exact
    learner = SetChain(0.02, progress=False).fit(drawn)
    assert found.objective == pytest.approx(learner.objective_, abs=1e-4)


def test_it_stops_at_the_limit_of_time(drawn):
    found = FullStateSpace(drawn).learn(0.02, time_limit=0.0)
    assert not found.finished
    assert found.evaluations == 1
    assert np.isfinite(found.objective)
