"""Solvers do not change their states, and the loop reports how a run ended."""

import dataclasses
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learning.problems import Closed
from sequela.learning.penalties import OffDiagonalL1, OnSupport
from sequela.learning.solvers.adagrad import AdaGrad, AdaGradState
from sequela.learning.solvers.contract import Info, Limits, Status
from sequela.learning.solvers.loop import FIRST_KEPT, begin, descend_by_gradients, solve
from sequela.learning.solvers.proximal_newton import NewtonState, ProximalNewton

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)

LIMITS = Limits(tol=1e-6, max_iter=200)


def curved(seed, n):
    """Return a convex objective that is not quadratic, so that a solver needs several steps."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n * n, n * n)) / n
    b = rng.normal(size=n * n)

    def function(theta):
        x = theta.ravel()
        y = A @ x
        loss = 0.5 * float(x @ x) + float(np.sum(np.log1p(np.exp(y)))) - 3.0 * float(b @ x)
        return loss, (x + A.T @ (1.0 / (1.0 + np.exp(-y))) - 3.0 * b).reshape(n, n)

    return Closed(function)


def bowl(centre):
    """Return the objective that is half the squared distance of theta from `centre`."""
    return Closed(lambda theta: (0.5 * float(np.sum((theta - centre) ** 2)), theta - centre))


def solvers(n, seed=0, strength=0.1):
    support = np.random.default_rng([seed, 1]).random((n, n)) < 0.6
    return {
        "newton": ProximalNewton(OffDiagonalL1(strength), np.full((n, n), 0.7)),
        "newton on a support": ProximalNewton(OnSupport(support, strength), np.ones((n, n))),
        "adagrad": AdaGrad(OffDiagonalL1(strength)),
        "adagrad of base rates": AdaGrad(OffDiagonalL1(strength), diagonal_only=True),
        "adagrad on a support": AdaGrad(OnSupport(support, strength)),
    }


every_solver = pytest.mark.parametrize("name", solvers(1))


def frozen_copy(state):
    """Return a copy of a state with read-only arrays."""

    def copied(value):
        if isinstance(value, tuple):
            return tuple(map(copied, value))
        if isinstance(value, np.ndarray):
            value = value.copy()
            value.flags.writeable = False
        return value

    kept = {f.name: copied(getattr(state, f.name)) for f in dataclasses.fields(state)}
    return type(state)(**kept)


def same_state(one, two):
    """Return whether two states are equal to the last bit."""
    for f in dataclasses.fields(one):
        a, b = getattr(one, f.name), getattr(two, f.name)
        if isinstance(a, tuple):
            if len(a) != len(b) or not all(map(np.array_equal, a, b)):
                return False
        elif not np.array_equal(a, b):
            return False
    return True


def states(solver, objective, theta, steps):
    """Return the state of a solver before its first step and after each of its steps."""
    found = [solver.init(objective, theta)]
    for _ in range(steps):
        moved, _ = solver.step(objective, found[-1])
        if moved is None:
            break
        found.append(moved)
    return found


# --- How it ended, in words -----------------------------------------------------------------------


@pytest.mark.parametrize("status", Status)
def test_every_status_has_a_message_that_tells_its_numbers(status):
    info = Info(
        iterations=123, evaluations=456, objective=-7.5, residual=3.25e-2, floor=1.5e-3,
        status=status,
    )  # fmt: skip
    limits = Limits(tol=2e-5, max_iter=789)
    message = info.message(limits)
    assert message
    assert "{" not in message
    known = {
        "residual": info.residual, "floor": info.floor, "iterations": info.iterations,
        "tol": limits.tol, "max_iter": limits.max_iter,
        "tol_name": "tol", "max_iter_name": "max_iter",
    }  # fmt: skip
    for _, name, form, _ in string.Formatter().parse(status.value):
        if name is not None:
            assert format(known[name], form) in message


@pytest.mark.parametrize("status", Status)
def test_messages_format_before_anything_is_known(status):
    assert "{" not in Info(status=status).message(LIMITS)


def test_messages_tell_endings_apart_and_what_to_do():
    info = Info(iterations=200, residual=0.5, floor=0.01)
    messages = {
        status: dataclasses.replace(info, status=status).message(LIMITS) for status in Status
    }
    assert len(set(messages.values())) == len(Status)
    assert messages[Status.CONVERGED] == "KKT residual 5.00e-01 is within the tolerance 1e-06"
    assert messages[Status.ITERATION_LIMIT] == (
        "KKT residual 5.00e-01 is above the tolerance 1e-06 after 200 iterations; "
        "increase max_iter or tol"
    )
    assert messages[Status.INTERRUPTED].startswith("stopped by the caller")


def test_which_endings_are_optima():
    assert {status for status in Status if status.converged} == {
        Status.CONVERGED,
        Status.AT_MONTE_CARLO_FLOOR,
        Status.SETTLED,
    }
    assert Info().status is Status.RUNNING


@pytest.mark.parametrize("value", [Info(), LIMITS, NewtonState(np.eye(1), 0.0, np.eye(1))])
def test_values_cannot_be_changed(value):
    name = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, 1)


# --- A step is a function of the state ------------------------------------------------------------


@every_solver
@quick
@given(seed=st.integers(0, 2**31), n=st.integers(1, 4))
def test_a_step_leaves_the_state_as_it_was(name, seed, n):
    """A step from a state with read-only arrays raises no error, so it does not change them."""
    solver, objective = solvers(n, seed)[name], curved(seed, n)
    for state in states(solver, objective, np.zeros((n, n)), 5):
        given_state, before = frozen_copy(state), frozen_copy(state)
        solver.step(objective, given_state)
        assert same_state(given_state, before)
        with pytest.raises(dataclasses.FrozenInstanceError):
            given_state.theta = np.zeros((n, n))


@every_solver
@quick
@given(seed=st.integers(0, 2**31), n=st.integers(1, 4))
def test_the_same_state_gives_the_same_step(name, seed, n):
    """Two steps from equal states are equal, because a solver has no memory except its state."""
    solver, objective = solvers(n, seed)[name], curved(seed, n)
    visited = states(solver, objective, np.zeros((n, n)), 6)
    assert len(visited) > 2
    moves = 0
    for state, following in zip(visited[::-1][1:], visited[::-1], strict=False):
        again, evaluations = solvers(n, seed)[name].step(objective, frozen_copy(state))
        assert evaluations >= 1
        assert same_state(again, following)
        moves += not np.array_equal(state.theta, following.theta)
    assert moves > 0


@every_solver
def test_a_state_holds_what_belongs_to_its_theta(name):
    solver, objective = solvers(3)[name], curved(5, 3)
    for state in states(solver, objective, np.zeros((3, 3)), 8):
        loss, gradient = objective.evaluate(state.theta)
        if isinstance(state, NewtonState):
            assert state.loss == loss
            assert np.array_equal(state.gradient, gradient)
            expected = -loss - solver.penalty.value(state.theta)
            assert solver.objective(state) == expected
        else:
            diagonal = "base rates" in name
            expected = np.diag(np.diag(gradient)) if diagonal else gradient
            assert np.array_equal(state.gradient, expected)
            assert np.isnan(solver.objective(state))
        distance = solver.penalty.subdiff_distance(state.theta, -state.gradient)
        assert solver.residual(state) == distance.max()


def test_forgetting_keeps_everything_but_the_memory():
    solver, objective = solvers(3)["newton"], curved(5, 3)
    state = states(solver, objective, np.zeros((3, 3)), 4)[-1]
    assert len(state.steps) == len(state.changes) > 0
    plain = state.forget()
    assert plain.steps == plain.changes == ()
    assert same_state(dataclasses.replace(plain, steps=state.steps, changes=state.changes), state)


# --- How a run ends -------------------------------------------------------------------------------


def test_it_ends_converged():
    centre = np.array([[0.5, 1.0], [0.05, -0.3]])
    solver, objective = solvers(2)["newton"], bowl(centre)
    state, info = solve(solver, objective, begin(solver, objective, np.zeros((2, 2))), LIMITS)
    assert info.status is Status.CONVERGED
    assert info.residual == solver.residual(state) <= LIMITS.tol
    assert info.objective == solver.objective(state)
    assert info.floor == 0.0
    assert info.evaluations == len(objective.asked)
    np.testing.assert_allclose(state.theta, [[0.5, 0.9], [0.0, -0.3]], atol=1e-6)


def test_it_ends_at_once_where_it_begins_at_an_optimum():
    solver, objective = solvers(2)["newton"], bowl(np.zeros((2, 2)))
    _, info = solve(solver, objective, begin(solver, objective, np.zeros((2, 2))), LIMITS)
    assert info.status is Status.CONVERGED
    assert (info.iterations, info.evaluations) == (0, 1)


def test_it_ends_at_the_limit_of_iterations():
    solver, objective = solvers(3)["newton"], curved(5, 3)
    limits = Limits(tol=1e-12, max_iter=3)
    _, info = solve(solver, objective, begin(solver, objective, np.zeros((3, 3))), limits)
    assert info.status is Status.ITERATION_LIMIT
    assert info.iterations == 3
    assert info.residual > 1e-12
    assert info.evaluations == len(objective.asked)


def test_it_ends_where_there_is_no_ascent():
    """If the gradient has the wrong sign, every trial step increases the loss, and the run ends."""
    objective = Closed(lambda theta: (float(np.sum(theta**2)), -2.0 * theta))
    solver = solvers(2)["newton"]
    theta = np.ones((2, 2))
    state, info = solve(solver, objective, begin(solver, objective, theta), LIMITS)
    assert info.status is Status.NO_ASCENT
    assert np.array_equal(state.theta, theta)
    assert info.iterations == 0
    assert info.evaluations == len(objective.asked) == 31


def test_without_ascent_it_tries_again_without_its_memory():
    """If no step improves the objective, the loop discards the quadratic model and tries again.

    If again no step improves it, the run ends. Each of the two searches tries 30 steps.
    """
    honest = curved(5, 3)
    asked = []

    def function(theta):
        asked.append(theta)
        loss, gradient = honest.function(theta)
        return (loss + 100.0 if len(asked) > 6 else loss), gradient

    objective, solver = Closed(function), solvers(3)["newton"]
    seen = []
    _, info = solve(
        solver, objective, begin(solver, objective, np.zeros((3, 3))), LIMITS,
        lambda state, _: bool(seen.append(len(state.steps))),
    )  # fmt: skip
    assert info.status is Status.NO_ASCENT
    assert seen[-2] > 0
    assert seen[-1] == 0
    assert info.evaluations == 6 + 30 + 30


@pytest.mark.parametrize("after", [0, 1, 3])
def test_it_ends_when_the_watcher_says_so_and_goes_on_to_the_same_bits(after):
    solver, objective = solvers(3)["newton"], curved(5, 3)
    whole_seen, seen = [], []

    def remember(into):
        return lambda state, info: bool(into.append((state, info)))

    whole, told = solve(
        solver, objective, begin(solver, objective, np.zeros((3, 3))), LIMITS, remember(whole_seen)
    )
    state, info = solve(
        solver, objective, begin(solver, objective, np.zeros((3, 3))), LIMITS,
        lambda _, info: info.iterations == after,
    )  # fmt: skip
    assert info.status is Status.INTERRUPTED
    assert not info.status.converged
    assert info.iterations == after < told.iterations
    assert same_state(state, whole_seen[after][0])
    again = dataclasses.replace(info, status=Status.RUNNING)
    end, info = solve(solver, objective, (state, again), LIMITS, remember(seen))
    assert same_state(end, whole)
    assert info == told
    assert [info for _, info in seen] == [info for _, info in whole_seen[after:]]


@pytest.mark.parametrize("after", [0, 1, 150, 250])
def test_adagrad_ends_when_the_watcher_says_so_and_goes_on_to_the_same_bits(after):
    """Interrupt and resume in the first or in the second window of 200 iterations.

    The rule for stopping compares theta at the two ends of such a window.
    """
    solver, objective = solvers(3)["adagrad"], curved(5, 3)
    limits = Limits(tol=1e-6, max_iter=300)
    start = solver.init(objective, np.zeros((3, 3))), Info(evaluations=1)
    whole, told = descend_by_gradients(solver, objective, start, limits)
    state, info = descend_by_gradients(
        solver, objective, start, limits, lambda _, info: info.iterations == after
    )
    assert info.status is Status.INTERRUPTED
    assert info.iterations == state.steps_taken == after < told.iterations
    again = dataclasses.replace(info, status=Status.RUNNING)
    end, info = descend_by_gradients(solver, objective, (state, again), limits)
    assert same_state(end, whole)
    np.testing.assert_equal(dataclasses.asdict(info), dataclasses.asdict(told))


def test_adagrad_ends_settled_or_after_its_epochs():
    centre = np.array([[0.5, 1.0], [0.05, -0.3]])
    solver, objective = solvers(2)["adagrad"], bowl(centre)
    start = solver.init(objective, np.zeros((2, 2))), Info(evaluations=1)
    state, info = descend_by_gradients(solver, objective, start, Limits(1e-6, 3000))
    assert info.status is Status.SETTLED
    assert state.settled
    state, info = descend_by_gradients(solver, objective, start, Limits(1e-6, 199))
    assert info.status is Status.EPOCHS_DONE
    assert not state.settled
    assert info.iterations == 199
    # The first phase of the paper, for the base rates, always runs all of its epochs.
    base_rates = solvers(2)["adagrad of base rates"]
    start = base_rates.init(objective, np.zeros((2, 2))), Info(evaluations=1)
    state, info = descend_by_gradients(base_rates, objective, start, Limits(1e-6, 450))
    assert info.status is Status.EPOCHS_DONE
    np.testing.assert_allclose(state.theta, np.diag(np.diag(centre)), atol=1e-3)


@pytest.mark.parametrize(
    ("state", "status"),
    [({"settled": True}, Status.SETTLED), ({}, Status.EPOCHS_DONE)],
    ids=["settled", "epochs"],
)
def test_a_run_that_had_ended_ends_the_same_way_again(state, status):
    objective = bowl(np.zeros((2, 2)))
    nothing = np.zeros((2, 2))
    last = AdaGradState(nothing, nothing, nothing, nothing, steps_taken=7, **state)
    info = Info(iterations=7, evaluations=8)
    end, info = descend_by_gradients(
        solvers(2)["adagrad"], objective, (last, info), Limits(tol=1e-6, max_iter=7)
    )
    assert info.status is status
    assert same_state(end, last)
    assert objective.asked == []


# --- Losses that are infinite somewhere -----------------------------------------------------------


@pytest.mark.parametrize("beyond", [np.nan, 0.0, np.inf], ids=["nan", "zero", "infinite"])
@pytest.mark.parametrize("edge", [3.0, 0.4, 1e-3])
def test_a_line_search_shortens_a_step_into_the_infinite(edge, beyond):
    """The full step leads to an infinite loss. The gradient at this point must not be used."""
    centre = np.full((2, 2), 5.0)

    def function(theta):
        if np.abs(theta).max() > edge:
            return np.inf, np.full_like(theta, beyond)
        return 0.5 * float(np.sum((theta - centre) ** 2)), theta - centre

    objective = Closed(function)
    solver = ProximalNewton(OffDiagonalL1(0.1), np.ones((2, 2)))
    state = solver.init(objective, np.zeros((2, 2)))
    moved, evaluations = solver.step(objective, state)
    tried = [np.abs(theta).max() for theta in objective.asked[1:]]
    assert len(tried) == evaluations > 1
    assert tried[0] > edge
    np.testing.assert_allclose(np.array(tried[1:]) / tried[:-1], 0.5)
    assert np.abs(moved.theta).max() == tried[-1] <= edge < tried[-2]
    assert np.isfinite(moved.loss)
    assert moved.loss < state.loss


@quick
@given(seed=st.integers(0, 2**31), n=st.integers(1, 4), edge=st.floats(0.05, 2.0))
def test_a_run_along_the_edge_ends_inside(seed, n, edge):
    """Even if the loss is infinite at the minimum, the run ends without an exception."""
    smooth = curved(seed, n)

    def function(theta):
        if theta.max() > edge:
            return np.inf, np.zeros_like(theta)
        return smooth.function(theta)

    objective, solver = Closed(function), solvers(n)["newton"]
    state, info = solve(solver, objective, begin(solver, objective, np.zeros((n, n))), LIMITS)
    assert state.theta.max() <= edge
    assert np.isfinite(state.loss)
    assert info.status in (Status.CONVERGED, Status.NO_ASCENT, Status.ITERATION_LIMIT)
    first = solver.objective(solver.init(objective, np.zeros((n, n))))
    assert info.objective >= first


@pytest.mark.parametrize("strength", [0.0, 1e-9, 0.1])
def test_a_beginning_out_of_range_is_no_optimum(strength):
    """If the loss is infinite at the start, the gradient is undefined and the run fails."""
    objective = Closed(lambda theta: (np.inf, np.zeros_like(theta)))
    solver = solvers(2, strength=strength)["newton"]
    theta = np.full((2, 2), 800.0)
    state, info = solve(solver, objective, begin(solver, objective, theta), LIMITS)
    assert info.status is Status.NO_ASCENT
    assert info.residual == np.inf
    assert np.array_equal(state.theta, theta)


# --- Objectives of which a part is sampled --------------------------------------------------------


class Sampled(Closed):
    """A quadratic objective whose gradient has an error that falls with the number of orders."""

    is_sampled = True

    def __init__(self, centre, error, seed=0, shares=()):
        self.centre, self.error = centre, error
        self.rng = np.random.default_rng(seed)
        self.shares = list(shares)
        self.kept = []
        self.drawn_at = []
        super().__init__(self.noisy)

    def noisy(self, theta):
        away = theta - self.centre
        return 0.5 * float(np.sum(away**2)) + float(np.sum(self.noise * theta)), away + self.noise

    @property
    def effective(self):
        return self.shares.pop(0) if self.shares else 1.0

    def draw(self, theta, kept):
        self.kept.append(kept)
        self.drawn_at.append(theta.copy())
        self.noise = self.rng.normal(0.0, self.error / np.sqrt(kept), theta.shape)

    def gradient_error(self, theta):
        return np.full_like(theta, self.error / np.sqrt(self.kept[-1]))


CENTRE = np.array([[0.5, 1.0], [0.05, -0.3]])


def test_it_ends_at_the_monte_carlo_floor():
    """The number of orders is doubled up to 64. Then the residual is below the Monte Carlo floor.

    The run then ends, although the residual is above the tolerance. Because of sampling errors, the
    run cannot reach this tolerance.
    """
    objective, solver = Sampled(CENTRE, error=0.08), solvers(2)["newton"]
    state, info = solve(solver, objective, begin(solver, objective, np.zeros((2, 2))), LIMITS)
    assert info.status is Status.AT_MONTE_CARLO_FLOOR
    assert info.floor == pytest.approx(4.0 * 0.08 / np.sqrt(64))
    assert LIMITS.tol < info.residual <= info.floor
    assert objective.kept[0] == FIRST_KEPT
    assert objective.kept == sorted(objective.kept)
    assert objective.kept[-1] == state.kept == 64
    assert np.array_equal(objective.drawn_at[-1], state.theta)
    assert info.evaluations == len(objective.asked)
    np.testing.assert_allclose(state.theta, [[0.5, 0.9], [0.0, -0.3]], atol=0.1)


def test_it_ends_sooner_where_the_error_is_within_the_tolerance():
    objective, solver = Sampled(CENTRE, error=1e-5), solvers(2)["newton"]
    limits = Limits(tol=1e-3, max_iter=200)
    state, info = solve(solver, objective, begin(solver, objective, np.zeros((2, 2))), limits)
    assert info.status is Status.AT_MONTE_CARLO_FLOOR
    assert state.rounds == 1
    assert objective.kept == [FIRST_KEPT, FIRST_KEPT]
    assert info.residual <= limits.tol


def test_it_ends_above_the_floor_where_its_iterations_are_spent():
    objective, solver = Sampled(CENTRE, error=0.01), solvers(2)["newton"]
    limits = Limits(tol=1e-6, max_iter=1)
    _, info = solve(solver, objective, begin(solver, objective, np.zeros((2, 2))), limits)
    assert info.status is Status.ABOVE_MONTE_CARLO_FLOOR
    assert not info.status.converged
    assert info.iterations == 1
    assert "increase max_iter" in info.message(limits)


def test_orders_that_no_longer_count_are_drawn_anew_and_not_doubled():
    """If fewer than half of the orders are effective, the same number of new orders is drawn."""
    objective = Sampled(CENTRE, error=1e-5, shares=[1.0, 0.49, 0.51])
    solver = ProximalNewton(OffDiagonalL1(0.1), np.full((2, 2), 0.3))
    limits = Limits(tol=1e-3, max_iter=200)
    _, info = solve(solver, objective, begin(solver, objective, np.zeros((2, 2))), limits)
    assert info.status is Status.AT_MONTE_CARLO_FLOOR
    assert objective.kept == [FIRST_KEPT] * 3
    start, stale, arrived = objective.drawn_at
    assert np.abs(stale - start).max() > 0.01
    assert np.abs(arrived - stale).max() > 0.01
