"""The penalty: a proximal step that solves its problem, and a distance that is one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from learning.problems import kkt_residual, l1
from sequela import InputError
from sequela.learning.penalties import OffDiagonalL1

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)

strengths = st.floats(0.0, 3.0)
matrices = st.integers(1, 4).flatmap(
    lambda n: arrays(
        float, (n, n), elements=st.one_of(st.just(0.0), st.floats(-4.0, 4.0, width=32))
    )
)


@quick
@given(strengths, matrices)
def test_value_is_the_sum_over_interactions(strength, theta):
    assert OffDiagonalL1(strength).value(theta) == pytest.approx(l1(theta, strength), abs=1e-12)


@quick
@given(strengths, matrices, st.floats(0.01, 2.0), st.integers(0, 2**31))
def test_prox_solves_its_problem(strength, theta, step, seed):
    """Against every point of a fine grid, entry by entry: the problem is a sum over entries."""
    rng = np.random.default_rng(seed)
    steps = step * rng.uniform(0.5, 2.0, theta.shape) if seed % 2 else step
    found = OffDiagonalL1(strength).prox(theta, steps)
    grid = np.linspace(-5.0, 5.0, 2001)
    for i, j in np.ndindex(theta.shape):
        s = np.broadcast_to(steps, theta.shape)[i, j]
        weight = 0.0 if i == j else strength

        def cost(x, centre=theta[i, j], s=s, weight=weight):
            return (x - centre) ** 2 / (2.0 * s) + weight * np.abs(x)

        assert cost(found[i, j]) <= cost(grid).min() + 1e-12
        assert abs(found[i, j] - grid[np.argmin(cost(grid))]) <= 0.0051


@quick
@given(strengths, matrices, st.floats(0.01, 2.0))
def test_prox_keeps_base_rates_and_signs(strength, theta, step):
    found = OffDiagonalL1(strength).prox(theta, step)
    assert np.array_equal(np.diag(found), np.diag(theta))
    assert (found * theta >= 0.0).all()
    assert (np.abs(found) <= np.abs(theta)).all()


@quick
@given(strengths, matrices, st.integers(0, 2**31))
def test_distance_is_to_the_nearest_subgradient(strength, theta, seed):
    gradient = np.random.default_rng(seed).normal(0.0, 2.0, theta.shape)
    distance = OffDiagonalL1(strength).subdiff_distance(theta, gradient)
    for i, j in np.ndindex(theta.shape):
        if i == j:
            allowed = np.zeros(1)
        elif theta[i, j] == 0.0:
            allowed = np.linspace(-strength, strength, 4001)
        else:
            allowed = np.array([strength * np.sign(theta[i, j])])
        assert distance[i, j] == pytest.approx(np.abs(gradient[i, j] - allowed).min(), abs=1e-3)
    assert distance.max() == pytest.approx(kkt_residual(theta, gradient, strength), abs=1e-12)


@quick
@given(strengths, matrices, st.floats(0.1, 1.0), st.integers(0, 2**31))
def test_where_the_distance_is_zero_the_proximal_step_stays(strength, theta, step, seed):
    penalty = OffDiagonalL1(strength)
    gradient = penalty.weights(len(theta)) * np.where(
        theta == 0.0, np.random.default_rng(seed).uniform(-1.0, 1.0, theta.shape), np.sign(theta)
    )
    assert penalty.subdiff_distance(theta, gradient).max() == 0.0
    np.testing.assert_allclose(penalty.prox(theta + step * gradient, step), theta, atol=1e-12)


def test_without_strength_every_entry_must_have_no_gradient():
    distance = OffDiagonalL1(0).subdiff_distance(np.zeros((2, 2)), np.full((2, 2), -0.3))
    assert np.array_equal(distance, np.full((2, 2), 0.3))


@pytest.mark.parametrize("good", [0, 1, 0.5, np.float32(0.25), np.float64(0.1), np.int64(2)])
def test_good_strengths(good):
    assert OffDiagonalL1(good).weights(2).tolist() == [[0.0, float(good)], [float(good), 0.0]]


@pytest.mark.parametrize(
    "bad", [-1e-9, float("nan"), float("inf"), None, "0.1", [0.1], np.array([0.1]), 1j]
)
def test_bad_strengths_are_refused(bad):
    with pytest.raises(InputError, match=r"penalty is .*; expected a finite number of at least 0"):
        OffDiagonalL1(bad)
