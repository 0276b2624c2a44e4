"""AdaGrad, the solver of the paper, as it is described in section 5 of the paper."""

from typing import ClassVar

import numpy as np
import pytest

from learning.problems import interactions, kkt_residual, l1, mean_log_p, quiet, simulated
from sequela import SetChain, evaluate
from sequela.learning import fitting
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.solvers.adagrad import AdaGrad
from sequela.learning.solvers.contract import Info, Limits, Status
from sequela.learning.solvers.loop import descend_by_gradients


@pytest.fixture(scope="module")
def data():
    return simulated(5, 60, 3, scale=1.0, base=0.5).without_times()


class Exact:
    """A replacement for `Likelihood` that gives exact gradients and records how it is called."""

    made = None
    seeds: ClassVar[list[int]] = []

    def __init__(self, data, **options):
        self.data = data
        self.options = options
        self.asked = []
        if options.get("method") == "metropolis":
            type(self).made = self
            type(self).seeds.append(options["random_state"])

    def skip(self, evaluations):
        self.skipped = evaluations

    def evaluate(self, model, *, gradient=True, **_):
        self.asked.append(model.theta.copy())
        return evaluate(model, self.data, gradient=gradient)


def by_hand(theta, data, iterations, strength, free):
    """Return the thetas that AdaGrad with step 1 visits (Duchi, Hazan and Singer 2011).

    In each iteration x becomes prox(x + g / H), where H is, for each entry, the square root of the
    sum of all g^2 so far.
    """
    total = np.zeros_like(theta)
    visited = []
    for _ in range(iterations):
        visited.append(theta.copy())
        gradient = np.where(free, evaluate(theta, data).gradient, 0.0)
        total = total + gradient**2
        for i, j in np.ndindex(theta.shape):
            if not free[i, j] or total[i, j] == 0.0:
                continue
            step = 1.0 / np.sqrt(total[i, j])
            x = theta[i, j] + step * gradient[i, j]
            if i != j:
                x = np.sign(x) * max(abs(x) - step * strength, 0.0)
            theta[i, j] = x
    visited.append(theta.copy())
    return visited


def test_three_iterations_by_hand(data, monkeypatch):
    """In its first 50 epochs the solver learns only the base rates, and then all entries.

    Before it learns all entries, it draws random interactions between -0.2 and 0.2. Each of the two
    phases computes a gradient at its start and after each of its steps.
    """
    monkeypatch.setattr(fitting, "Likelihood", Exact)
    with quiet():
        learner = SetChain(0.01, solver="adagrad", max_iter=3, random_state=8).fit(data)
    asked = Exact.made.asked
    assert len(asked) == 51 + 4
    diagonal = by_hand(np.zeros((5, 5)), data, 50, 0.01, np.eye(5, dtype=bool))
    np.testing.assert_allclose(asked[:51], diagonal, atol=1e-9)
    assert all(interactions(theta) == 0 for theta in asked[:51])
    start = asked[51]
    off = start[~np.eye(5, dtype=bool)]
    np.testing.assert_allclose(np.diag(start), np.diag(diagonal[50]), atol=1e-9)
    assert (np.abs(off) <= 0.2).all()
    assert len(np.unique(off)) == 20
    assert off.min() < -0.05
    assert off.max() > 0.05
    full = by_hand(start.copy(), data, 3, 0.01, np.ones((5, 5), dtype=bool))
    np.testing.assert_allclose(asked[52:], full[1:], atol=1e-9)
    np.testing.assert_allclose(learner.theta_, full[3], atol=1e-9)


def test_gradients_are_sampled_as_the_paper_says(data, monkeypatch):
    monkeypatch.setattr(fitting, "Likelihood", Exact)
    with quiet():
        SetChain(solver="adagrad", max_iter=1, random_state=1).fit(data)
    options = Exact.made.options
    assert options["method"] == "metropolis"
    assert options["sampling"].chains == 1
    assert options["sampling"].draws == 50
    assert options["sampling"].draws_burn_in == 10


def test_the_first_full_step_is_one_in_every_entry(monkeypatch, data):
    """In the second phase, the first step changes each entry of theta by 1 or -1.

    The sums of squares start again at 0. So in the first step, each entry of the gradient is
    divided by its own absolute value.
    """
    monkeypatch.setattr(fitting, "Likelihood", Exact)
    with quiet():
        learner = SetChain(0.0, solver="adagrad", max_iter=1, random_state=8).fit(data)
    moved = np.abs(learner.theta_ - Exact.made.asked[51])
    np.testing.assert_allclose(moved, 1.0, atol=1e-12)


def test_it_improves_and_repeats_itself(data):
    options = {"solver": "adagrad", "max_iter": 40}
    with quiet():
        short = SetChain(0.02, random_state=4, solver="adagrad", max_iter=1).fit(data)
        one, two = (SetChain(0.02, random_state=4, **options).fit(data) for _ in range(2))
        other = SetChain(0.02, random_state=5, **options).fit(data)
    assert np.array_equal(one.theta_, two.theta_)
    assert one.objective_ == two.objective_
    assert not np.array_equal(one.theta_, other.theta_)
    exact = SetChain(0.02, tol=1e-6).fit(data)
    independent = SetChain(10.0).fit(data)
    assert one.objective_ > short.objective_
    assert one.objective_ > independent.objective_
    assert one.objective_ < exact.objective_ + 1e-9
    # The proximal step makes some of the 20 interactions exactly zero.
    assert interactions(one.theta_) < 20


def test_the_objective_is_that_of_its_theta(data):
    with quiet():
        learner = SetChain(0.02, random_state=4, solver="adagrad", max_iter=20).fit(data)
    value = mean_log_p(learner.theta_, data.values)
    assert learner.objective_ == pytest.approx(value - l1(learner.theta_, 0.02), abs=1e-9)
    assert learner.objective_se_ == 0.0


def test_the_residual_is_that_of_its_theta(data, monkeypatch):
    """The KKT residual that is reported for a theta is computed from the gradient at this theta."""
    monkeypatch.setattr(fitting, "Likelihood", Exact)
    with quiet():
        learner = SetChain(0.02, random_state=4, solver="adagrad", max_iter=7).fit(data)
    gradient = evaluate(learner.theta_, data).gradient
    expected = kkt_residual(learner.theta_, gradient, 0.02)
    assert learner.kkt_residual_ == pytest.approx(expected, abs=1e-12)
    assert learner.kkt_floor_ == 0.0
    for theta, residual in zip(
        Exact.made.asked[51:], learner.history_["kkt_residual"][51:], strict=True
    ):
        expected = kkt_residual(theta, evaluate(theta, data).gradient, 0.02)
        assert residual == pytest.approx(expected, abs=1e-12)


def test_several_starts_differ(data):
    with quiet():
        learner = SetChain(0.02, random_state=4, solver="adagrad", max_iter=5, n_starts=3).fit(data)
        next_seed = SetChain(0.02, random_state=5, solver="adagrad", max_iter=5).fit(data)
    assert [start.width for start in learner.starts_] == [0.2] * 3
    assert not np.array_equal(learner.starts_[0].theta, learner.starts_[1].theta)
    # The second start with one seed differs from the first start with the next seed.
    assert np.abs(learner.starts_[1].theta - next_seed.starts_[0].theta).max() > 1e-3


def test_every_start_of_every_seed_has_its_own_draws(data, monkeypatch):
    monkeypatch.setattr(fitting, "Likelihood", Exact)
    monkeypatch.setattr(Exact, "seeds", [])
    for seed in (4, 5):
        with quiet():
            SetChain(solver="adagrad", max_iter=1, n_starts=2, random_state=seed).fit(data)
    assert len(set(Exact.seeds)) == len(Exact.seeds) == 4


class Ascent:
    """An objective that knows only the gradient of the log-likelihood, not its value."""

    def __init__(self, gradient_at):
        self.gradient_at = gradient_at

    def evaluate(self, theta):
        return np.nan, -self.gradient_at(theta)


def run(gradient_at, theta, max_iter, watch=None):
    """Run AdaGrad from theta, and return its last state, its info and its message."""
    solver, objective = AdaGrad(OffDiagonalL1(0.1)), Ascent(gradient_at)
    limits = Limits(tol=1e-4, max_iter=max_iter)
    start = solver.init(objective, theta), Info(evaluations=1)
    state, info = descend_by_gradients(solver, objective, start, limits, watch)
    return state, info, info.message(limits)


def test_it_stops_when_nothing_moves():
    """The solver stops by the rule of the published program.

    It stops if no entry of theta changed by 0.03 or more over 200 iterations.
    """
    centre = np.array([[0.5, 1.0], [0.05, -0.3]])
    state, info, message = run(lambda theta: centre - theta, np.zeros((2, 2)), max_iter=3000)
    assert info.status is Status.SETTLED
    assert info.status.converged
    assert info.iterations % 200 == 0
    assert info.iterations < 3000
    assert message == "every entry changed by less than 0.03 over 200 iterations"
    np.testing.assert_allclose(state.theta, [[0.5, 0.9], [0.0, -0.3]], atol=0.02)


def test_it_ends_after_max_iter():
    """After 17 steps, 18 gradients were computed: one at the start, and one per step."""
    rng = np.random.default_rng(0)
    state, info, message = run(lambda _: rng.normal(size=(2, 2)), np.zeros((2, 2)), max_iter=17)
    assert not info.status.converged
    assert info.iterations == state.steps_taken == 17
    assert info.evaluations == 18
    assert "ended after 17 iterations (max_iter)" in message


def test_a_watcher_sees_gradients_that_belong_to_theta_and_ends_it():
    centre = np.array([[0.5, 1.0], [0.05, -0.3]])
    seen = []

    def watch(state, info):
        np.testing.assert_array_equal(state.gradient, state.theta - centre)
        seen.append(info.residual == kkt_residual(state.theta, centre - state.theta, 0.1))
        return len(seen) == 4

    _, info, message = run(lambda theta: centre - theta, np.zeros((2, 2)), 10, watch)
    assert seen == [True] * 4
    assert info.status is Status.INTERRUPTED
    assert message.startswith("stopped by the caller")
    assert info.iterations == 3


def test_entries_without_a_gradient_stay():
    """Entries whose gradient is exactly 0 do not change, even by the penalty."""
    theta = np.array([[0.0, 0.15], [0.15, 0.0]])
    state, _, _ = run(lambda _: np.array([[1.0, 0.0], [1.0, 1.0]]), theta, max_iter=3)
    assert state.theta[0, 1] == 0.15
    assert state.theta[1, 0] > 1.0
