"""The metric of trajectories and their step size."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import reference as ref
from posteriors import twins
from sequela import Dataset
from sequela.kernels.hamiltonian import stretch, subtract_along
from sequela.observation import Exponential
from sequela.posteriors import Laplace, LearnedScale, StudentT
from sequela.posteriors import metric as metric_module
from sequela.posteriors.metric import Metric, estimate_metric, refine_metric, unit_metric
from sequela.posteriors.problem import Problem
from sequela.posteriors.step_size import StepSize
from sequela.posteriors.stretching import stretched_place


def problem_of(n, samples, largest=12, prior=None, seed=1):
    X = np.random.default_rng(seed).random((samples, n)) < 0.4
    prior = StudentT(scale=LearnedScale(0.5, 1.0)) if prior is None else prior
    return Problem.of(Dataset(X), prior, Exponential(), largest)


def information_of(problem, states):
    """Return the empirical Fisher information by finite differences, averaged over the states."""
    target, n = problem.target, problem.n
    total = np.zeros((n * n + 1, n * n + 1))
    for s, state in itertools.product(target.lattice, states):
        items = target.sets.items[target.sets.start[s] : target.sets.start[s + 1]]

        def log_p(q, items=items):
            at = twins.state_at(twins.unstretched_place(q, n)[0], q[-1])
            return ref.log_p_set(twins.read(at, target)[0], items)

        score = ref.finite_difference_gradient(log_p, stretched_place(state), 1e-5)
        total += target.sets.weights[s] * target.total * np.outer(score, score)
    return total / len(states)


@pytest.mark.parametrize(("n", "samples"), [(2, 60), (3, 40), (4, 12)])
@pytest.mark.parametrize("chains", [1, 3])
def test_the_metric_is_the_empirical_information(n, samples, chains):
    """The number of sets is larger than the number of coordinates in some cases, smaller in others.

    Compare with finite differences of the reference.
    """
    problem = problem_of(n, samples)
    states = [problem.start(np.random.default_rng(seed)) for seed in range(chains)]
    metric = estimate_metric(problem, states)
    rank = len(metric.information)
    np.testing.assert_allclose(metric.directions @ metric.directions.T, np.eye(rank), atol=1e-9)
    assert metric.directions.flags.c_contiguous
    wanted = information_of(problem, states)
    found = metric.directions.T @ np.diag(metric.information) @ metric.directions
    # Directions with an information below 0.2 are left out.
    eigenvalues, vectors = np.linalg.eigh(wanted)
    kept = eigenvalues > 0.2
    assert rank == kept.sum() > 0
    wanted = (vectors[:, kept] * eigenvalues[kept]) @ vectors[:, kept].T
    np.testing.assert_allclose(found, wanted, atol=1e-3, rtol=1e-4)


def test_many_sets_are_shared_among_the_chains(monkeypatch):
    """If there are many sets, each chain evaluates a part of them.

    Two chains at the same state must give the result of one chain that evaluates all sets.
    """
    problem = problem_of(3, 40)
    states = [problem.start(np.random.default_rng(seed)) for seed in range(2)]
    monkeypatch.setattr(metric_module, "_MOST_ROWS", 1)
    shared = estimate_metric(problem, [states[0], states[0]])
    monkeypatch.undo()
    whole = estimate_metric(problem, [states[0]])
    np.testing.assert_allclose(shared.information, whole.information, rtol=1e-8)
    monkeypatch.setattr(metric_module, "_MOST_ROWS", 1)
    assert not np.allclose(estimate_metric(problem, states).information[0], whole.information[0])


def test_a_fixed_scale_has_no_part_in_the_metric():
    problem = problem_of(3, 40, prior=Laplace(scale=0.5))
    metric = estimate_metric(problem, [problem.start(np.random.default_rng(1))])
    assert len(metric.information) > 3
    np.testing.assert_allclose(metric.directions[:, -1], 0.0, atol=1e-12)


def test_without_lattice_sets_the_metric_is_that_of_the_prior():
    problem = Problem.of(Dataset(np.ones((3, 3), dtype=bool)), Laplace(), Exponential(), 2)
    metric = estimate_metric(problem, [problem.start(np.random.default_rng(1))])
    assert not metric.directions.any()
    assert not metric.information.any()


def test_variances_along_directions():
    metric = Metric(np.eye(2, 5), np.array([3.0, 0.5]))
    np.testing.assert_allclose(1.0 - metric.shrink(1.0), [1 / 4, 1 / 1.5])
    np.testing.assert_allclose(1.0 - metric.shrink(0.5), [1 / 2.5, 1 / 1.25])
    assert not unit_metric(2).shrink(1.0).any()
    assert unit_metric(2).directions.shape == (1, 5)


# --- Draws ----------------------------------------------------------------------------------------


def covariance_of(metric, power=1.0):
    shrink = metric.shrink(power)
    size = metric.directions.shape[1]
    return np.eye(size) - (metric.directions.T * shrink) @ metric.directions


def normal_draws(seed, draws, size=10):
    """Return a covariance, normal draws with this covariance, and forces at the draws.

    A force is the gradient of the log-density plus 0.3. A constant must not change the result.
    """
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.standard_normal((size, size)))[0]
    covariance = (turned * np.geomspace(0.05, 8.0, size)) @ turned.T
    x = rng.multivariate_normal(rng.standard_normal(size), covariance, draws)
    return covariance, x, -(x - x.mean(axis=0)) @ np.linalg.inv(covariance) + 0.3


def some_metric():
    rng = np.random.default_rng(3)
    return Metric(np.linalg.qr(rng.standard_normal((10, 4)))[0].T, np.array([5.0, 2.0, 1.0, 0.5]))


@pytest.mark.parametrize("before", [unit_metric(3), some_metric()])
@pytest.mark.parametrize("power", [1.0, 0.4])
def test_draws_of_a_normal_distribution_give_its_covariance(before, power, monkeypatch):
    """If the previous metric has almost no weight, 14 draws give the exact covariance."""
    for name, value in (("_TRUST", 1e-10), ("_LEAST_FACTOR", 1.0), ("_LEAST_INFORMATION", 0.0)):
        monkeypatch.setattr(metric_module, name, value)
    covariance, x, forces = normal_draws(1, 14)
    found = refine_metric(before, x, forces, power)
    rank = len(found.information)
    np.testing.assert_allclose(found.directions @ found.directions.T, np.eye(rank), atol=1e-9)
    np.testing.assert_allclose(covariance_of(found, power), covariance, atol=1e-5)


def test_draws_and_the_metric_before_are_weighed():
    """A wrong metric moves towards the variances of the draws; a right metric is kept."""
    covariance, x, forces = normal_draws(2, 400)
    found = refine_metric(unit_metric(3), x, forces)
    directions = np.linalg.eigh(covariance)[1]
    reached = np.diagonal(directions.T @ covariance_of(found) @ directions)
    wanted = np.diagonal(directions.T @ covariance @ directions)
    assert (np.abs(np.log(reached)) <= np.abs(np.log(wanted)) + 0.1).all()
    assert reached[0] < 0.2
    assert reached[-1] > 3.0
    values, vectors = np.linalg.eigh(covariance)
    right = Metric(np.ascontiguousarray(vectors.T), 1.0 / values - 1.0)
    np.testing.assert_allclose(
        covariance_of(refine_metric(right, x, forces)), covariance, atol=0.1, rtol=0.1
    )
    assert refine_metric(right, x[:5], forces[:5]) is right


def test_no_power_makes_a_variance_negative():
    wide = Metric(np.eye(1, 5), np.array([-0.8]))
    assert 1.0 - wide.shrink(1.0)[0] == pytest.approx(5.0)
    assert 1.0 - wide.shrink(2.0)[0] == pytest.approx(10.0)


# --- Step size ------------------------------------------------------------------------------------


def dual_averaging(acceptances, first, target=0.8, gamma=0.1, delay=10.0, kappa=0.75):
    """Return all steps and the averaged step of Algorithm 5 of Hoffman and Gelman (2014)."""
    mu, error, log_mean, steps = np.log(3.0 * first), 0.0, 0.0, [first]
    for t, acceptance in enumerate(acceptances, 1):
        error += (target - acceptance - error) / (t + delay)
        log_step = mu - np.sqrt(t) / gamma * error
        log_mean += t**-kappa * (log_step - log_mean)
        steps.append(np.exp(log_step))
    return steps, np.exp(log_mean)


def test_step_sizes_follow_dual_averaging():
    acceptances = np.random.default_rng(1).random(50)
    wanted, averaged = dual_averaging(acceptances, 0.2)
    step = StepSize().update(0.3).restart(0.2)
    found = [step.step]
    for acceptance in acceptances:
        step = step.update(float(acceptance))
        found.append(step.step)
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    assert step.finish().step == pytest.approx(averaged, rel=1e-10)
    assert step.finish().count == 50
    assert StepSize().finish() == StepSize()


@pytest.mark.parametrize("first", [1e-4, 0.1, 10.0])
def test_the_step_size_with_an_acceptance_of_80_percent_is_found(first):
    """The simulated acceptance falls from 1 to 0 as the step grows, and is 0.8 at a step of 0.5."""
    rng = np.random.default_rng(2)
    step = StepSize().restart(first)
    for _ in range(600):
        acceptance = np.exp(np.log(0.8) * (step.step / 0.5) ** 2)
        step = step.update(float(np.clip(acceptance + 0.05 * rng.standard_normal(), 0.0, 1.0)))
    assert step.finish().step == pytest.approx(0.5, rel=0.08)


@pytest.mark.parametrize("rank", [1, 16, 37])
def test_products_with_the_directions_are_right_in_double_and_single_precision(rank):
    rng = np.random.default_rng(rank)
    directions = np.linalg.qr(rng.standard_normal((50, rank)))[0].T.copy()
    metric = Metric(directions, rng.exponential(size=rank) * 20.0)
    shrink, x = metric.shrink(1.0), rng.standard_normal(50)
    wanted = x - (directions.T * shrink) @ (directions @ x)
    stretched = x.copy()
    stretch.py_func(stretched, -shrink, directions)
    np.testing.assert_allclose(stretched, wanted, atol=1e-13)
    assert np.abs(wanted - x).max() > 0.1
    subtract_along.py_func(x, shrink, metric.rounded)
    np.testing.assert_allclose(x, wanted, atol=2e-6)
