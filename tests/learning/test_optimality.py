"""Fits are optimal and better than their starts. Independent gradients are used to check this."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import reference as ref
from learning.problems import (
    Closed,
    gradient_by_differences,
    interactions,
    kkt_residual,
    l1,
    mean_log_p,
    quiet,
    simulated,
    table,
)
from sequela import SetChain, evaluate
from sequela.learning.independent_fit import fit_independent
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.solvers.contract import Limits, Status
from sequela.learning.solvers.loop import begin, solve
from sequela.learning.solvers.proximal_newton import ProximalNewton
from sequela.observation import Exponential

quick = settings(max_examples=25, deadline=None, derandomize=True, database=None)
few = settings(quick, max_examples=6)


def random_table(seed, n, size):
    rng = np.random.default_rng(seed)
    return (rng.random((size, n)) < rng.uniform(0.1, 0.9, n)).astype(int)


@quick
@given(
    st.integers(0, 2**31),
    st.integers(1, 4),
    st.integers(1, 40),
    st.sampled_from([0.001, 0.01, 0.05, 0.3]),
    st.sampled_from([1.0, 0.3, 5.0]),
    st.sampled_from([1, 2]),
)
def test_the_end_is_optimal(seed, n, size, penalty, stop_rate, n_starts):
    """Check the KKT residual with finite differences of a likelihood by dense linear algebra."""
    X = random_table(seed, n, size)
    tol = 1e-4
    with quiet():
        learner = SetChain(
            penalty, tol=tol, observation=Exponential(stop_rate), n_starts=n_starts,
            random_state=1,
        ).fit(X)  # fmt: skip
    theta = learner.theta_
    assert learner.converged_
    assert np.isfinite(theta).all()
    # If p(S) of one of the sets is small, the gradient by finite differences is off by about 1e-7.
    gradient = gradient_by_differences(theta, X, stop_rate=stop_rate)
    assert kkt_residual(theta, gradient, penalty) <= tol + 1e-6
    assert learner.kkt_residual_ == pytest.approx(kkt_residual(theta, gradient, penalty), abs=1e-6)
    value = mean_log_p(theta, X, stop_rate=stop_rate)
    assert learner.objective_ == pytest.approx(value - l1(theta, penalty), abs=1e-8)


@few
@given(st.integers(0, 2**31), st.integers(2, 3), st.sampled_from([0.01, 0.1]), st.booleans())
def test_the_end_is_optimal_where_times_are_known(seed, n, penalty, all_known):
    rng = np.random.default_rng(seed)
    X = random_table(seed, n, 10)
    times = rng.exponential(1.0, 10) + 0.05
    if not all_known:
        times[rng.permutation(10)[:4]] = np.nan
    with quiet():
        learner = SetChain(penalty, tol=1e-4).fit(X, times=times)
    gradient = gradient_by_differences(learner.theta_, X, times)
    assert learner.converged_
    assert kkt_residual(learner.theta_, gradient, penalty) <= 1e-4 + 2e-6
    value = mean_log_p(learner.theta_, X, times) - l1(learner.theta_, penalty)
    assert learner.objective_ == pytest.approx(value, abs=1e-7)


def test_the_papers_gradient_agrees():
    """Check the KKT residual with the gradient of the paper above eq. (7): a mean over orders."""
    X = random_table(3, 4, 25)
    learner = SetChain(0.02, tol=1e-6).fit(X)
    gradient = np.mean(
        [ref.gradient_set_permutations(learner.theta_, np.flatnonzero(row)) for row in X], axis=0
    )
    assert kkt_residual(learner.theta_, gradient, 0.02) <= 1.001e-6


@settings(quick, max_examples=12)
@given(st.integers(0, 2**31), st.integers(2, 6), st.sampled_from([0.0, 0.003, 0.03]))
def test_every_iteration_is_an_ascent_from_the_independent_model(seed, n, penalty):
    X = random_table(seed, n, 30)
    with quiet():
        learner = SetChain(penalty, max_iter=60).fit(X)
    sets, counts = np.unique(X.astype(float), axis=0, return_counts=True)
    start = fit_independent(sets, counts / counts.sum())
    objective = learner.history_["objective"].to_numpy()
    # A fit computes its start, the independent model, with less precision than `fit_independent`
    # above. So the two objectives differ slightly.
    assert objective[0] == pytest.approx(start.value, abs=1e-8)
    assert (np.diff(objective) >= 0.0).all()
    assert objective[-1] == learner.objective_
    assert learner.objective_ >= start.value - 1e-9
    assert learner.history_["kkt_residual"].iloc[-1] == learner.kkt_residual_
    assert learner.history_["evaluations"].iloc[-1] == learner.n_evaluations_
    assert learner.history_["interactions"].iloc[-1] == interactions(learner.theta_)
    assert learner.history_["seconds"].is_monotonic_increasing


def test_what_is_not_needed_is_exactly_zero():
    data = simulated(8, 200, 2).without_times()
    theta = SetChain(0.02).fit(data).theta_
    off = np.abs(theta[~np.eye(8, dtype=bool)])
    assert 0 < np.count_nonzero(off) < 40
    assert off[off > 0.0].min() > 1e-6


def test_a_smaller_tolerance_is_met_and_not_worse():
    data = simulated(6, 200, 3).without_times()
    loose, tight = (SetChain(0.01, tol=tol).fit(data) for tol in (1e-2, 1e-8))
    assert loose.kkt_residual_ <= 1e-2
    assert tight.kkt_residual_ <= 1e-8
    assert tight.n_iter_ > loose.n_iter_
    assert tight.objective_ >= loose.objective_
    gradient = evaluate(tight.theta_, data).gradient
    assert kkt_residual(tight.theta_, gradient, 0.01) <= 1.01e-8


def test_without_penalty_the_likelihood_is_maximal():
    data = simulated(3, 500, 4, scale=0.4, base=1.0, sparsity=0.0).without_times()
    learner = SetChain(0, tol=1e-6).fit(data)
    assert np.abs(evaluate(learner.theta_, data).gradient).max() <= 1.01e-6


@quick
@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 4))
@example(0, 1, 1)
def test_hopeless_data_end_finite(seed, n, size):
    """With few samples and no penalty, most entries have no finite optimum. Fits stay finite."""
    with quiet():
        learner = SetChain(0.0, tol=1e-5, max_iter=100).fit(random_table(seed, n, size))
    assert np.isfinite(learner.theta_).all()
    assert np.isfinite(learner.objective_)
    assert learner.objective_ <= 1e-12


@pytest.mark.parametrize("seed", [1004, 1017, 1025, 1042, 1051])
def test_a_trial_step_out_of_range_is_not_the_end(seed):
    """If a line search tries a rate above e^500, it must shorten the step and raise no error."""
    with quiet():
        learner = SetChain(0.01, tol=1e-3, n_starts=3, random_state=seed).fit(
            [[0, 1, 0, 1, 0]], times=[0.63782707]
        )
    assert np.isfinite(learner.theta_).all()
    assert len(learner.starts_) == 3


def test_one_iteration_is_not_enough_and_says_so():
    data = simulated(6, 200, 3).without_times()
    said = "KKT residual .* after 1 iterations; increase max_iter"
    with pytest.warns(ConvergenceWarning, match=said):
        learner = SetChain(0.005, max_iter=1).fit(data)
    assert not learner.converged_
    assert learner.n_iter_ == 1
    assert learner.kkt_residual_ > 1e-4


def test_the_arithmetic_has_a_limit_and_it_is_told():
    data = simulated(4, 100, 5).without_times()
    with pytest.warns(ConvergenceWarning):
        learner = SetChain(0.01, tol=1e-30, max_iter=300).fit(data)
    assert not learner.converged_
    assert learner.kkt_residual_ < 1e-6


# --- The solver on problems whose solution is known -----------------------------------------------


def minimised(evaluate_it, theta, penalty, *, tol, max_iter=500, unit=1.0):
    """Minimise loss plus penalty from theta, and return the last state and its info."""
    objective = Closed(evaluate_it)
    solver = ProximalNewton(penalty, np.full_like(theta, unit))
    return solve(solver, objective, begin(solver, objective, theta), Limits(tol, max_iter))


@quick
@given(st.integers(0, 2**31), st.integers(1, 6), st.floats(0.0, 1.0), st.sampled_from([1.0, 30.0]))
def test_a_quadratic_with_a_known_end(seed, n, strength, condition):
    """The loss is a sum over entries of theta, so each entry has a closed solution.

    The solution is `centre` after soft thresholding.
    """
    rng = np.random.default_rng(seed)
    centre = rng.normal(0.0, 1.0, (n, n))
    curvature = rng.uniform(1.0, condition, (n, n))
    penalty = OffDiagonalL1(strength)

    def evaluate_it(theta):
        away = theta - centre
        return 0.5 * float(np.sum(curvature * away**2)), curvature * away

    state, info = minimised(evaluate_it, np.zeros((n, n)), penalty, tol=1e-7)
    assert info.status is Status.CONVERGED
    expected = penalty.prox(centre, 1.0 / curvature)
    np.testing.assert_allclose(state.theta, expected, atol=1e-6)
    assert np.array_equal(state.theta == 0.0, expected == 0.0)


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_a_correlated_quadratic(seed):
    """Compare with the proximal gradient method, which is slow but reliable."""
    rng = np.random.default_rng(seed)
    n = 4
    A = rng.normal(size=(n * n, n * n))
    A = A @ A.T + 0.1 * np.eye(n * n)
    b = rng.normal(size=n * n) * 5.0
    penalty = OffDiagonalL1(1.0)

    def evaluate_it(theta):
        x = theta.ravel()
        return 0.5 * float(x @ A @ x) - float(b @ x), (A @ x - b).reshape(n, n)

    slow = np.zeros((n, n))
    step = 1.0 / np.linalg.eigvalsh(A).max()
    for _ in range(20000):
        slow = penalty.prox(slow - step * evaluate_it(slow)[1], step)
    state, info = minimised(evaluate_it, np.zeros((n, n)), penalty, tol=1e-8)
    np.testing.assert_allclose(state.theta, slow, atol=1e-5)
    assert info.evaluations < 300
    # The rounding error of a difference of two losses is larger than the gains of the last steps,
    # and it depends on the processor. So the solver must not need these differences.
    assert info.status is Status.CONVERGED


def test_a_loss_that_is_infinite_somewhere_is_avoided():
    """The loss has a logarithm of theta, so it is infinite if an entry is zero or negative."""

    def evaluate_it(theta):
        if (theta <= 0.0).any():
            return np.inf, np.full_like(theta, np.nan)
        return float(np.sum(theta - np.log(theta))), 1.0 - 1.0 / theta

    state, info = minimised(
        evaluate_it, np.full((2, 2), 0.01), OffDiagonalL1(0.5), unit=10.0, tol=1e-8, max_iter=200
    )
    assert info.status is Status.CONVERGED
    np.testing.assert_allclose(state.theta, [[1.0, 1 / 1.5], [1 / 1.5, 1.0]], atol=1e-6)


# --- Separation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [0.0, 0.01])
@pytest.mark.parametrize("times", [None, 0.7])
@pytest.mark.parametrize(
    "sets",
    [
        [[0, 1]],
        [[]],
        [[0, 1, 2]],
        [[0], [0, 1], [0, 2]],
        [[0, 1], [0, 1], []],
        [[0, 1], [2], [2], [0, 1, 2], []],
        [[0], [1], [2]],
    ],
)
def test_separated_data_end_finite(sets, times, penalty):
    X = table(3, sets)
    given_times = None if times is None else np.full(len(sets), times)
    with quiet():
        learner = SetChain(penalty, max_iter=200, n_starts=2, random_state=0).fit(
            X, times=given_times
        )
    assert np.isfinite(learner.theta_).all()
    assert np.isfinite([learner.objective_, learner.kkt_residual_]).all()
    assert np.isfinite(learner.score_samples(X, times=given_times)).all()
