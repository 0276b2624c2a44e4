"""The likelihood and the orders that the sampler of theta computes, compared with other code."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from posteriors import twins
from sequela import Dataset, InputError, Model, evaluate
from sequela.kernels.columns import SHORTCUT_LIMIT
from sequela.kernels.dense_likelihood import set_scores
from sequela.kernels.posterior_sweep import log_likelihoods
from sequela.kernels.sample_orders import sum_sample_orders
from sequela.likelihood import sample_posteriors, sequence_log_likelihood
from sequela.observation import Exponential
from sequela.posteriors import Laplace, LearnedScale, StudentT
from sequela.posteriors.problem import Problem
from sequela.support.jit import call

quick = settings(max_examples=25, deadline=None, derandomize=True, database=None)
ALL_LATTICE = 12


@st.composite
def cases(draw, largest_n=6):
    """Draw a theta, a table and a rate of the observation; some items are above SHORTCUT_LIMIT."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, largest_n))
    stop_rate = draw(st.sampled_from([0.2, 1.0, 5.0]))
    theta = ref.random_theta(rng, n, draw(st.sampled_from([0.5, 1.5])))
    fast = rng.random(n) < draw(st.sampled_from([0.0, 0.4]))
    theta[fast, fast] = np.log(SHORTCUT_LIMIT * stop_rate) + 1.0
    X = rng.random((draw(st.integers(1, 12)), n)) < 0.5
    return theta, X, stop_rate


def problem_of(X, stop_rate=1.0, largest=ALL_LATTICE, prior=None):
    prior = Laplace(scale=LearnedScale(0.6, 0.8)) if prior is None else prior
    return Problem.of(Dataset(X), prior, Exponential(stop_rate), largest)


def values_at(theta, target, orders=()):
    values = np.full(2, np.nan)
    unused = np.empty(np.shape(theta))
    orders = np.array(orders, dtype=np.int64)
    good = call(log_likelihoods, values, unused, theta, target, orders)
    return values, good


@quick
@given(cases())
def test_lattice_part_is_the_log_likelihood_of_all_samples(case):
    theta, X, stop_rate = case
    values, good = values_at(theta, problem_of(X, stop_rate).target)
    assert good
    wanted = evaluate(Model(theta, observation=Exponential(stop_rate)), X, gradient=False)
    assert values[0] == pytest.approx(len(X) * wanted.value, rel=1e-10)
    twin = sum(ref.log_p_set(theta, np.flatnonzero(row), stop_rate=stop_rate) for row in X)
    assert values[0] == pytest.approx(twin, rel=1e-9)
    assert values[1] == 0.0


@quick
@given(cases())
def test_latent_part_is_the_log_likelihood_of_the_sequences(case):
    """Sets of more than two items have latent orders; smaller sets are summed over orders."""
    theta, X, stop_rate = case
    problem = problem_of(X, stop_rate, largest=2)
    state = problem.start(np.random.default_rng(1))
    values, good = values_at(theta, problem.target, state.orders)
    assert good
    model = Model(theta, observation=Exponential(stop_rate))
    start = problem.target.large_start
    orders = [state.orders[a:b].tolist() for a, b in itertools.pairwise(start)]
    large = X[X.sum(axis=1) > 2]
    assert [sorted(order) for order in orders] == [np.flatnonzero(row).tolist() for row in large]
    wanted = len(large) * sequence_log_likelihood(model, orders) if orders else 0.0
    assert values[1] == pytest.approx(wanted, rel=1e-10)
    small = X[X.sum(axis=1) <= 2]
    wanted = len(small) * evaluate(model, small, gradient=False).value if len(small) else 0.0
    assert values[0] == pytest.approx(wanted, rel=1e-10)


def test_large_samples_and_lattice_sets_share_nothing():
    """Every sample is counted once, even if several samples have the same large set."""
    X = np.array([[1, 1, 1], [1, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 1]], dtype=bool)
    target = problem_of(X, largest=2).target
    assert target.large_start.tolist() == [0, 3, 6, 9]
    assert target.total * target.sets.weights[target.lattice].sum() == pytest.approx(2.0)


def test_a_theta_beyond_the_arithmetic_is_told():
    X = np.ones((1, 4), dtype=bool)
    theta = np.full((4, 4), 400.0)
    assert not values_at(theta, problem_of(X).target)[1]
    assert values_at(theta / 100.0, problem_of(X).target)[1]


# --- Gradients ------------------------------------------------------------------------------------


def scores_at(problem, theta, slope, chosen):
    scores = np.zeros((len(chosen), problem.n**2 + 1))
    call(set_scores, scores, theta, slope, problem.target, np.asarray(chosen, dtype=np.int64))
    return scores


@quick
@given(cases())
def test_scores_sum_to_the_gradient(case):
    """With slopes of 1, the score of a set is its gradient times the square root of its count."""
    theta, X, stop_rate = case
    problem = problem_of(X, stop_rate)
    target = problem.target
    counts = target.sets.weights * target.total
    n = problem.n
    scores = scores_at(problem, theta, np.ones((n, n)), target.lattice)
    gradient = (np.sqrt(counts)[:, None] * scores[:, : n * n]).sum(axis=0).reshape(n, n)
    wanted = evaluate(Model(theta, observation=Exponential(stop_rate)), X).gradient
    np.testing.assert_allclose(gradient, len(X) * wanted, rtol=1e-8, atol=1e-9)


@quick
@given(cases(largest_n=4), st.integers(0, 2**32 - 1))
def test_scores_are_derivatives_in_the_coordinates(case, seed):
    """The scores of each set are compared with finite differences in z and in the scale."""
    _, X, stop_rate = case
    problem = problem_of(X, stop_rate, prior=StudentT(scale=LearnedScale(0.6, 0.8)))
    target = problem.target
    n = problem.n
    z = np.random.default_rng(seed).standard_normal((n, n))
    counts = np.round(target.sets.weights * target.total)
    sets = [target.sets.items[a:b] for a, b in itertools.pairwise(target.sets.start)]
    theta, slope, _ = twins.read(twins.state_at(z, 0.3), target)
    scores = scores_at(problem, theta, slope, target.lattice)
    for s, items in enumerate(sets):

        def log_p(coordinates, items=items):
            at = twins.state_at(coordinates[:-1].reshape(n, n), coordinates[-1])
            return ref.log_p_set(twins.read(at, target)[0], items, stop_rate=stop_rate)

        at = np.append(z.ravel(), 0.3)
        wanted = np.sqrt(counts[s]) * ref.finite_difference_gradient(log_p, at, 1e-5)
        np.testing.assert_allclose(scores[s], wanted, rtol=1e-5, atol=1e-7)


def test_a_fixed_scale_gets_no_score():
    X = np.array([[1, 1], [1, 0]], dtype=bool)
    problem = problem_of(X, prior=Laplace(scale=0.5))
    scores = scores_at(problem, ref.random_theta(np.random.default_rng(1), 2), np.ones((2, 2)), [1])
    assert scores[0, -1] == 0.0
    assert scores[0, :-1].any()


@pytest.mark.parametrize("scale", [0.5, LearnedScale(0.5, 0.7)])
@pytest.mark.parametrize("power", [1.0, 0.4])
@pytest.mark.parametrize("largest", [1, ALL_LATTICE])
def test_the_error_of_the_energy_falls_with_the_third_power_of_the_step(scale, power, largest):
    """The energy error of one step is of order 3 in the step only if the force is right.

    The force must be the gradient of the energy, which includes the prior, lattice sets, latent
    orders, power and scale. With any other force, the error is of order 1. Each trajectory has one
    step. The mean of 1 - acceptance is proportional to the error.
    """
    n, stop_rate = 3, 2.0
    rng = np.random.default_rng(3)
    prior = StudentT(scale=scale)
    theta = ref.random_theta(rng, n)
    orders = twins.simulated_orders(theta, rng, 12, stop_rate)
    target, latent = twins.target_of(orders, prior, n, largest, stop_rate)
    assert (latent.size > 0) == (largest == 1)
    target = target._replace(power=power)
    z = rng.standard_normal((n, n))
    lost = []
    for step in (2e-2, 1e-2):
        how = twins.trajectory(
            n, step, most_steps=1, rng=np.random.default_rng(4), learned=scale != 0.5
        )
        tries = 200
        total = 0.0
        for seed in range(tries):
            state = twins.state_at(z, 0.3, latent)
            done = twins.sweep(state, target, how, rng=np.random.default_rng(seed))
            total += 1.0 - done["acceptance"]
        lost.append(total / tries)
    assert 1e-9 < lost[1] < 1e-3
    assert 6.5 < lost[0] / lost[1] < 9.5


@pytest.mark.parametrize("scale", [0.5, LearnedScale(0.5, 0.7)])
@pytest.mark.parametrize("power", [1.0, 0.6])
def test_forces_are_the_gradient_of_the_log_density(scale, power):
    """The forces on theta and on the scale agree with finite differences, with latent orders."""
    n = 3
    rng = np.random.default_rng(5)
    orders = twins.simulated_orders(ref.random_theta(rng, n), rng, 12, 1.0)
    target, latent = twins.target_of(orders, StudentT(scale=scale), n, 1)
    target = target._replace(power=power)
    assert latent.size > 0

    def evaluated(q, force=twins.NOTHING):
        z, log_rise = twins.unstretched_place(q, n)
        state = twins.state_at(z, q[-1], latent)
        twins.sweep(state, target, twins.trajectory(n, 0.1), sweeps=0, force=force, rng=rng)
        prior = log_rise - 0.5 * (z**2).sum() - (0.5 * q[-1] ** 2 if scale != 0.5 else 0.0)
        return power * state.values[0] + state.values[1] + prior

    q = rng.standard_normal(n * n + 1)
    force = np.full(n * n + 1, np.nan)
    evaluated(q, force)
    wanted = ref.finite_difference_gradient(evaluated, q, 1e-5)
    np.testing.assert_allclose(force, wanted, atol=1e-6)


# --- Orders of samples ----------------------------------------------------------------------------


def before_of(problem, theta, orders=()):
    before = np.full((problem.n, problem.n), np.nan)
    orders = np.array(orders, dtype=np.int64)
    good = call(sum_sample_orders, before, theta, problem.target, orders)
    return before, good


@quick
@given(cases())
def test_orders_of_samples_are_those_of_sample_posteriors(case):
    theta, X, stop_rate = case
    before, good = before_of(problem_of(X, stop_rate), theta)
    assert good
    posteriors = sample_posteriors(Model(theta, observation=Exponential(stop_rate)), X)
    wanted = np.zeros_like(theta)
    for row in range(len(X)):
        items = np.flatnonzero(X[row])
        wanted[np.ix_(items, items)] += posteriors.before(row)
    np.testing.assert_allclose(before, wanted, rtol=1e-9, atol=1e-11)
    both = X.T.astype(float) @ X
    off = ~np.eye(len(theta), dtype=bool)
    np.testing.assert_allclose((before + before.T)[off], both[off], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("fast", [10.0, 25.0, 39.0])
def test_a_very_fast_item_does_not_blur_the_others(fast):
    """After the arrival of an item, its rate must be exactly 0, even if it was very large before.

    A rounding error of a very large rate could exceed the rates of the other items.
    """
    theta = np.array([[fast, 1.0, -1.0], [0.5, -1.0, 0.7], [0.3, -0.4, -0.5]])
    X = np.array([[1, 1, 1]], dtype=bool)
    before, good = before_of(problem_of(X), theta)
    assert good
    wanted = ref.posterior_before(theta, [0, 1, 2])
    np.testing.assert_allclose(before, wanted, rtol=1e-10)


def test_large_samples_count_by_their_latent_orders():
    X = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 0]], dtype=bool)
    problem = problem_of(X, largest=2)
    theta = ref.random_theta(np.random.default_rng(2), 3)
    before, good = before_of(problem, theta, [2, 0, 1, 1, 2, 0])
    assert good
    wanted = np.zeros((3, 3))
    for order in ([2, 0, 1], [1, 2, 0]):
        for place, a in enumerate(order):
            wanted[a, order[place + 1 :]] += 1.0
    wanted[:2, :2] += ref.posterior_before(theta, [0, 1])
    np.testing.assert_allclose(before, wanted, rtol=1e-10)


def test_a_probability_that_underflows_is_told():
    theta = np.full((2, 2), -390.0)
    assert not before_of(problem_of(np.ones((1, 2), dtype=bool)), theta)[1]


def test_known_times_are_refused():
    data = Dataset(np.array([[1, 0], [0, 1]]), times=[np.nan, 2.0])
    with pytest.raises(InputError, match=r"row 1\) has a known observation time.*without_times"):
        Problem.of(data, Laplace(), Exponential(), ALL_LATTICE)
    Problem.of(data.without_times(), Laplace(), Exponential(), ALL_LATTICE)
