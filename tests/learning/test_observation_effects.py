"""Effects of items on the observation: compared with brute force and with the program mhn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequela import (
    InputError,
    Likelihood,
    Model,
    ObservationEffects,
    log_likelihood,
    order_matrix,
    pseudo_times,
    simulate,
)
from sequela.learning import fit_observation_effects
from sequela.learning.observation_effects import symmetric_penalty

# The script tools/make_omhn_values.py computed these values with mhn 1.2.3.
THEIRS = json.loads(Path(__file__).with_name("omhn_values.json").read_text("utf-8"))
LOG_THETA = np.array(THEIRS["log_theta"])
SAMPLES = np.array(THEIRS["samples"], dtype=bool)


def all_sets(n):
    return (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(bool)


def ours(log_theta, items=None):
    """Return our model from a table of mhn.

    In this table columns act on rows, and the last row has the effects on the observation.
    """
    return Model(log_theta[:-1].T, items, observation=ObservationEffects(log_theta[-1]))


def brute_force(theta, omega):
    """Return P(S) of all sets by a recursion over the states, from which one item arrives."""
    n = len(theta)
    sets = all_sets(n)
    reached = np.zeros(1 << n)
    reached[0] = 1.0
    observed = np.zeros(1 << n)
    off = theta - np.diag(np.diag(theta))
    for state, row in enumerate(sets):
        rates = np.where(row, 0.0, np.exp(np.diag(theta) + row @ off))
        stop = np.exp(omega[row].sum())
        total = rates.sum() + stop
        observed[state] = reached[state] * stop / total
        for j in np.flatnonzero(rates):
            reached[state | 1 << j] += reached[state] * rates[j] / total
    return observed


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 6))
def test_probabilities_are_those_of_a_sum_over_all_paths(seed, n):
    rng = np.random.default_rng(seed)
    theta, omega = rng.normal(size=(n, n)), rng.normal(size=n)
    model = Model(theta, observation=ObservationEffects(omega))
    values = Likelihood(all_sets(n)).evaluate(model, gradient=False).log_likelihoods
    np.testing.assert_allclose(np.exp(values), brute_force(theta, omega), rtol=1e-10)


def test_the_likelihood_is_that_of_mhn():
    model = ours(LOG_THETA)
    values = Likelihood(all_sets(5)).evaluate(model, gradient=False).log_likelihoods
    np.testing.assert_allclose(np.exp(values), THEIRS["probabilities"], rtol=1e-10)
    value, gradient = log_likelihood(model, SAMPLES, return_gradient=True)
    assert value == pytest.approx(THEIRS["score"], abs=1e-11)
    np.testing.assert_allclose(gradient.T, np.array(THEIRS["gradient"])[:-1], atol=1e-10)


def test_the_penalty_is_that_of_mhn_and_its_slope_is_right():
    theta, omega = LOG_THETA[:-1].T.copy(), LOG_THETA[-1].copy()
    value, by_theta, by_omega = symmetric_penalty(theta, omega)
    assert value == pytest.approx(THEIRS["symmetric_penalty"], abs=1e-12)
    rng = np.random.default_rng(1)
    d, e, h = rng.normal(size=(5, 5)), rng.normal(size=5), 1e-6
    ahead, back = (symmetric_penalty(theta + s * d, omega + s * e)[0] for s in (h, -h))
    slope = (by_theta * d).sum() + by_omega @ e
    assert (ahead - back) / (2 * h) == pytest.approx(slope, rel=1e-6)


def test_a_fit_is_at_least_as_good_as_that_of_mhn():
    model = fit_observation_effects(SAMPLES, THEIRS["penalty"])
    assert model.metadata["converged"]
    assert model.metadata["objective"] >= THEIRS["objective"] - 1e-6
    cost = symmetric_penalty(model.theta, np.array(model.observation.omega))[0]
    again = log_likelihood(model, SAMPLES) - THEIRS["penalty"] * cost
    assert again == pytest.approx(model.metadata["objective"], abs=1e-10)
    np.testing.assert_allclose(model.theta.T, np.array(THEIRS["learned"])[:-1], atol=0.05)


def test_files_of_mhn_come_back(tmp_path):
    model = ours(LOG_THETA, list("abcde"))
    model.to_mhn(tmp_path / "model.csv")
    lines = (tmp_path / "model.csv").read_text().splitlines()
    assert lines[-1].startswith('"Observation",')
    assert Model.from_mhn(tmp_path / "model.csv") == model
    # This file has no names of items.
    unlabelled = [",0,1", "0,-1.0,0.5", "1,0.25,-2.0", "2,0.75,0.0"]
    (tmp_path / "plain.csv").write_text("\n".join(unlabelled))
    read = Model.from_mhn(tmp_path / "plain.csv")
    assert read.observation == ObservationEffects([0.75, 0.0])
    assert read.theta.tolist() == [[-1.0, 0.25], [0.5, -2.0]]
    model.save(tmp_path / "model.npz")
    assert Model.load(tmp_path / "model.npz") == model
    (tmp_path / "wrong.csv").write_text(",a,b\na,1,2\nb,3,4\nc,5,6\n")
    with pytest.raises(InputError, match="'Observation'"):
        Model.from_mhn(tmp_path / "wrong.csv")


def test_draws_have_the_probabilities_and_the_times_of_the_effects():
    """Test the shares of the sets, and the mean time between the first and the next event.

    The limit is 5 standard errors. Correct draws exceed it with a probability below 1e-5.
    """
    theta = np.array([[0.0, 1.0], [-1.0, -0.5]])
    omega = np.array([1.5, -1.0])
    model = Model(theta, observation=ObservationEffects(omega))
    drawn = simulate(model, 40_000, random_state=1)
    share = np.bincount(drawn.to_dataset().values @ [1, 2], minlength=4) / 40_000
    p = brute_force(theta, omega)
    assert np.all(np.abs(share - p) < 5 * np.sqrt(p / 40_000))
    # The mean time in a state is the inverse of its total rate, which includes the rate of the
    # observation.
    some = np.flatnonzero(drawn.set_sizes)
    only_first = some[drawn.sequence[drawn.indptr[some]] == 0]
    start = drawn.indptr[only_first]
    arrived = drawn.arrival_times[start]
    longer = drawn.set_sizes[only_first] > 1
    left = np.where(
        longer,
        drawn.arrival_times[np.minimum(start + 1, len(drawn.sequence) - 1)],
        drawn.observation_times[only_first],
    )
    held = left - arrived
    expected = 1.0 / (np.exp(-0.5 + 1.0) + np.exp(1.5))
    assert held.mean() == pytest.approx(expected, abs=5 * held.std() / np.sqrt(held.size))


def test_orders_are_those_of_the_model_without_effects():
    model = ours(LOG_THETA)
    with_effects = order_matrix(model, random_state=1, draws=50_000).probability
    without = order_matrix(model.without_observation_effects()).probability
    assert np.nanmax(np.abs(with_effects - without).to_numpy()) < 0.03


def test_what_is_not_known_is_refused():
    model = ours(LOG_THETA, list("abcde"))
    with pytest.raises(InputError, match="'effects'"):
        pseudo_times(model, SAMPLES)
    with pytest.raises(InputError, match="effects of 2 items, but theta has 3"):
        Model(np.zeros((3, 3)), observation=ObservationEffects([0.0, 1.0]))
    for wrong in ("ab", [np.nan], None):
        with pytest.raises(InputError, match="omega is"):
            ObservationEffects(wrong)
    assert model.with_items(list("edcba")).observation.omega == model.observation.omega[::-1]
    assert ObservationEffects([0.0, 0.0]).constant_rate == 1.0
