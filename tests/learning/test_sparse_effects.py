"""Effects on the observation with an L1 penalty: fits are optimal and recover true effects."""

from __future__ import annotations

import numpy as np
import pytest

from sequela import InputError, Model, ObservationEffects, log_likelihood, simulate
from sequela.learning import fit_observation_effects
from sequela.learning.sparse_effects import EFFECT_WEIGHT

THETA = np.array([[-0.5, 2.0, 0.0, 0.0], [0.0, -1.5, 0.0, 0.0], [0.0, 0.0, -1.0, 0.0],
                  [0.0, 0.0, -1.5, 0.0]])  # fmt: skip
OMEGA = np.array([1.5, 0.0, -1.5, 1.0])
PENALTY = 0.01
N = len(THETA)


def drawn(size, seed=1):
    model = Model(THETA, observation=ObservationEffects(OMEGA))
    return simulate(model, size, random_state=seed).to_dataset().without_times().values


def probabilities(point):
    """Return P(S) of all sets from a dense linear system.

    `point` has the rows of theta, and then omega, the effects on the observation.
    """
    theta, omega = point[:N], point[N]
    rates = np.zeros((1 << N, 1 << N))
    stop = np.zeros(1 << N)
    for state in range(1 << N):
        present = [i for i in range(N) if state >> i & 1]
        stop[state] = np.exp(omega[present].sum())
        for j in set(range(N)) - set(present):
            rates[state, state | 1 << j] = np.exp(theta[j, j] + theta[present, j].sum())
    outflow = np.diag(rates.sum(axis=1) + stop)
    visited = np.linalg.solve((outflow - rates).T, np.eye(1 << N)[0])
    return stop * visited


def loss(point, counts):
    return -float(counts @ np.log(probabilities(point))) / counts.sum()


def slope(point, counts, step=1e-5):
    """Return the gradient of the loss by central differences."""
    found = np.zeros(point.shape)
    for at in np.ndindex(point.shape):
        change = np.zeros(point.shape)
        change[at] = step
        found[at] = (loss(point + change, counts) - loss(point - change, counts)) / (2 * step)
    return found


def penalty_weights():
    weights = np.full((N + 1, N), PENALTY)
    np.fill_diagonal(weights, 0.0)
    weights[N] = EFFECT_WEIGHT * PENALTY
    return weights


def as_point(model):
    return np.vstack([model.theta, model.observation.omega])


def count(values):
    return np.bincount(values @ (1 << np.arange(N)), minlength=1 << N).astype(float)


@pytest.fixture(scope="module")
def learned():
    values = drawn(400)
    return values, fit_observation_effects(values, PENALTY, penalty_kind="l1", tol=1e-6)


def test_the_optimality_conditions_hold(learned):
    """The size of a gradient is the penalty of its entry, or less if this entry is 0."""
    values, model = learned
    assert model.metadata["converged"]
    point, weights = as_point(model), penalty_weights()
    gradient = slope(point, count(values))
    zero = point == 0.0
    assert zero.sum() >= 4  # the penalty sets entries to exactly 0
    assert np.all(np.abs(gradient[zero]) <= weights[zero] + 1e-5)
    balance = gradient + weights * np.sign(point)
    assert np.abs(balance[~zero]).max() < 1e-5


def test_proximal_gradient_steps_find_the_same_model(learned):
    """Compare with a slow implementation: gradient steps, each followed by soft thresholding."""
    values, model = learned
    counts, weights = count(values), penalty_weights()
    start = np.vstack(
        [np.diag(np.log(values.mean(axis=0) / (1 - values.mean(axis=0)))), np.zeros(N)]
    )

    def objective(point):
        return loss(point, counts) + float((weights * np.abs(point)).sum())

    point, best, length = start, objective(start), 1.0
    for _ in range(150):
        moved = point - length * slope(point, counts)
        new = np.sign(moved) * np.maximum(np.abs(moved) - length * weights, 0.0)
        if objective(new) > best:
            length /= 2
            continue
        point, best = new, objective(new)
        length *= 1.2
    assert -model.metadata["objective"] == pytest.approx(best, abs=2e-4)
    assert objective(as_point(model)) == pytest.approx(-model.metadata["objective"], abs=1e-10)


def test_effects_are_recovered_from_many_samples():
    """The L1 penalty finds the true effects of six items. The symmetric penalty does not."""
    omega = np.array([1.5, -1.0, 0.8, 0.0, 0.0, -1.2])
    theta = np.diag(np.linspace(-1.0, 0.5, 6))
    theta[0, 3], theta[4, 1] = 2.0, -1.5
    truth = Model(theta, observation=ObservationEffects(omega))
    values = simulate(truth, 20_000, random_state=1).to_dataset().without_times()
    sparse = fit_observation_effects(values, 0.001, penalty_kind="l1")
    assert np.abs(sparse.observation.omega - omega).max() < 0.3
    assert sparse.theta[0, 3] > 1.5
    assert sparse.theta[4, 1] < -0.4
    symmetric = fit_observation_effects(values, 0.001)
    assert np.abs(symmetric.observation.omega - omega).max() > 1.0


def test_without_a_penalty_the_likelihood_is_that_of_the_symmetric_fit():
    values = drawn(400)
    sparse, symmetric = (
        fit_observation_effects(values, 0.0, penalty_kind=kind, tol=1e-5)
        for kind in ("l1", "symmetric")
    )
    assert log_likelihood(sparse, values) == pytest.approx(
        log_likelihood(symmetric, values), abs=1e-5
    )


def test_the_bits_do_not_depend_on_threads_and_unknown_penalties_are_refused():
    values = drawn(200)
    one, two = (
        fit_observation_effects(values, PENALTY, penalty_kind="l1", n_threads=k) for k in (1, 2)
    )
    np.testing.assert_array_equal(as_point(one), as_point(two))
    with pytest.raises(InputError, match="penalty_kind is 'l2'"):
        fit_observation_effects(values, PENALTY, penalty_kind="l2")
