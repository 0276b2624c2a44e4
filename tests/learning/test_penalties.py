"""The value, the proximal step and the subdifferential of each penalty agree with each other."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from learning.problems import kkt_residual, l1
from sequela import InputError
from sequela.learning.penalties import OffDiagonalL1, OnSupport, WithFixed

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)

strengths = st.floats(0.0, 3.0)
sizes = st.integers(1, 4)


def square(n):
    return arrays(float, (n, n), elements=st.one_of(st.just(0.0), st.floats(-4.0, 4.0, width=32)))


matrices = sizes.flatmap(square)

KINDS = {
    "off-diagonal": lambda _, strength: OffDiagonalL1(strength),
    "support": lambda support, _: OnSupport(support),
    "charged support": OnSupport,
    "fixed at zero": lambda support, strength: WithFixed(
        OffDiagonalL1(strength), np.where(support | np.eye(len(support), dtype=bool), np.nan, 0.0)
    ),
}
every_penalty = pytest.mark.parametrize("kind", KINDS)


@st.composite
def cases(draw):
    """Draw a theta, a support whose diagonal may be True or False, a strength, and a seed."""
    n = draw(sizes)
    support = draw(arrays(bool, (n, n)))
    return draw(square(n)), support, draw(strengths), draw(st.integers(0, 2**31))


def made(kind, support, strength):
    return KINDS[kind](support, strength)


def weights_by_hand(kind, support, strength):
    weights = np.full(support.shape, 0.0 if kind == "support" else strength)
    if kind != "off-diagonal":
        weights[~support] = np.inf
    np.fill_diagonal(weights, 0.0)
    return weights


def steps_from(seed, shape):
    """Return one step for all entries if the seed is even. If it is odd, return one per entry."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.01, 2.0, shape) if seed % 2 else float(rng.uniform(0.01, 2.0))


# --- What holds for every penalty -----------------------------------------------------------------


@every_penalty
@quick
@given(case=cases())
def test_value_is_that_of_the_weights(kind, case):
    theta, support, strength, _ = case
    penalty = made(kind, support, strength)
    weights = weights_by_hand(kind, support, strength)
    assert np.array_equal(penalty.weights(len(theta)), weights)
    expected = sum(
        weights[place] * abs(theta[place]) for place in np.ndindex(theta.shape) if theta[place]
    )
    assert penalty.value(theta) == pytest.approx(expected, abs=1e-12)
    assert penalty.value(np.zeros_like(theta)) == 0.0


@every_penalty
@quick
@given(case=cases())
def test_prox_is_the_minimiser(kind, case):
    """Test each entry separately, because the cost is a sum over entries.

    No point of a fine grid may cost less than the entry of the proximal step.
    """
    theta, support, strength, seed = case
    steps = steps_from(seed, theta.shape)
    found = made(kind, support, strength).prox(theta, steps)
    weights = weights_by_hand(kind, support, strength)
    grid = np.linspace(-5.0, 5.0, 2001)
    grid[1000] = 0.0
    for place in np.ndindex(theta.shape):
        step, weight = np.broadcast_to(steps, theta.shape)[place], weights[place]

        def cost(x, centre=theta[place], step=step, weight=weight):
            charge = np.multiply(weight, np.abs(x), out=np.zeros_like(x), where=x != 0.0)
            return (x - centre) ** 2 / (2.0 * step) + charge

        costs = cost(grid)
        assert cost(np.array([found[place]]))[0] <= costs.min() + 1e-12
        assert abs(found[place] - grid[np.argmin(costs)]) <= 0.0051


@every_penalty
@quick
@given(case=cases())
def test_nothing_near_the_proximal_step_costs_less(kind, case):
    """Compare the cost after the step with the cost at points nearby.

    These points differ from the proximal step in all entries, in one entry, or in all entries with
    a finite weight.
    """
    theta, support, strength, seed = case
    penalty = made(kind, support, strength)
    steps = steps_from(seed, theta.shape)
    found = penalty.prox(theta, steps)

    def cost(x):
        return float(np.sum((x - theta) ** 2 / (2.0 * steps))) + penalty.value(x)

    assert np.isfinite(cost(found))
    rng = np.random.default_rng(seed)
    for size in (1e-6, 1e-3, 0.1, 2.0):
        move = size * rng.normal(size=theta.shape)
        one = np.where(np.arange(theta.size) == rng.integers(theta.size), move.ravel(), 0.0)
        inside = np.where(weights_by_hand(kind, support, strength) < np.inf, move, 0.0)
        for direction in (move, one.reshape(theta.shape), inside):
            assert cost(found + direction) >= cost(found) - 1e-9


@every_penalty
@quick
@given(case=cases())
def test_the_distance_is_zero_exactly_where_the_proximal_step_stays(kind, case):
    """Compare `subdiff_distance` with the proximal step, prox(theta + step * gradient).

    If the penalty is finite and the distance is 0, this step does not move theta. Otherwise, the
    step moves an entry by `step` times its distance, or less if the entry reaches zero before.
    """
    theta, support, strength, seed = case
    penalty = made(kind, support, strength)
    weights = weights_by_hand(kind, support, strength)
    theta = np.where(weights < np.inf, theta, 0.0)
    rng = np.random.default_rng(seed)
    within = np.where(weights < np.inf, weights, 10.0)
    optimal = within * np.where(theta == 0.0, rng.uniform(-1.0, 1.0, theta.shape), np.sign(theta))
    assert penalty.subdiff_distance(theta, optimal).max() == 0.0
    step = float(rng.uniform(0.05, 1.0))
    np.testing.assert_allclose(penalty.prox(theta + step * optimal, step), theta, atol=1e-12)

    gradient = optimal + np.where(rng.random(theta.shape) < 0.5, rng.normal(size=theta.shape), 0.0)
    distance = penalty.subdiff_distance(theta, gradient)
    assert (distance >= 0.0).all()
    moved = np.abs(penalty.prox(theta + step * gradient, step) - theta)
    room = np.where(theta == 0.0, np.inf, np.abs(theta))
    np.testing.assert_array_less(np.minimum(step * distance, room) - 1e-9, moved)
    assert (moved <= step * distance + 1e-9).all()


@every_penalty
@quick
@given(case=cases())
def test_nothing_is_changed_that_was_given(kind, case):
    theta, support, strength, seed = case
    penalty = made(kind, support.copy(), strength)
    steps = steps_from(seed, theta.shape)
    given_theta, given_steps = theta.copy(), np.array(steps)
    penalty.value(theta)
    penalty.prox(theta, steps)
    penalty.subdiff_distance(theta, theta)
    with contextlib.suppress(ValueError):  # changing a returned weight may raise an error
        penalty.weights(len(theta))[:] = 7.0
    assert np.array_equal(penalty.weights(len(theta)), weights_by_hand(kind, support, strength))
    assert np.array_equal(theta, given_theta)
    assert np.array_equal(steps, given_steps)


@every_penalty
@quick
@given(case=cases())
def test_without_a_step_nothing_moves(kind, case):
    """A step of 0 moves no entry. AdaGrad uses it for entries whose gradient was always 0."""
    theta, support, strength, seed = case
    penalty = made(kind, support, strength)
    assert np.array_equal(penalty.prox(theta, 0.0), theta)
    steps = np.random.default_rng(seed).choice([0.0, 0.5], theta.shape)
    expected = np.where(steps == 0.0, theta, penalty.prox(theta, 0.5))
    assert np.array_equal(penalty.prox(theta, steps), expected)


# --- The penalty on all interactions --------------------------------------------------------------


@quick
@given(strengths, matrices)
def test_value_is_the_sum_over_interactions(strength, theta):
    assert OffDiagonalL1(strength).value(theta) == pytest.approx(l1(theta, strength), abs=1e-12)


def test_base_rates_cost_nothing_at_any_strength():
    """Without interactions, the penalty is exactly 0.

    If the base rates were added and subtracted again, a large strength would multiply the rounding
    errors.
    """
    for seed in range(20):
        theta = np.diag(np.random.default_rng(seed).normal(size=6))
        assert OffDiagonalL1(1e9).value(theta) == 0.0


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


# --- The penalty on a support ---------------------------------------------------------------------


def test_the_penalty_of_a_support():
    support = np.array([[True, True], [False, True]])
    theta = np.array([[0.3, -2.0], [0.0, 0.1]])
    gradient = np.array([[0.2, -0.4], [5.0, 0.0]])
    free, charged = OnSupport(support), OnSupport(support, 0.5)
    np.testing.assert_array_equal(free.weights(2), [[0.0, 0.0], [np.inf, 0.0]])
    np.testing.assert_array_equal(charged.weights(2), [[0.0, 0.5], [np.inf, 0.0]])
    assert (free.value(theta), charged.value(theta)) == (0.0, 1.0)
    np.testing.assert_allclose(free.subdiff_distance(theta, gradient), [[0.2, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(charged.subdiff_distance(theta, gradient), [[0.2, 0.1], [0.0, 0.0]])


@quick
@given(case=cases(), strength=st.sampled_from([0.0, 0.7]))
def test_outside_its_support_the_value_is_infinite(case, strength):
    theta, support, _, seed = case
    penalty = OnSupport(support, strength)
    outside = ~support & ~np.eye(len(theta), dtype=bool)
    inside = np.where(outside, 0.0, theta)
    assert penalty.value(inside) == pytest.approx(l1(inside, strength), abs=1e-12)
    for place in np.argwhere(outside):
        left = inside.copy()
        left[tuple(place)] = (-1.0) ** seed * 1e-12
        assert penalty.value(left) == np.inf
