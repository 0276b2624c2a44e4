"""Kinds of observation: they are compared by held-out likelihood, and used in other functions."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sequela import (
    Exponential,
    Gamma,
    HeavyTailed,
    InputError,
    Model,
    ObservationEffects,
    SetChainCV,
    fit,
    log_likelihood,
    order_matrix,
    pseudo_times,
    simulate,
)
from sequela.learning import compare_observations, fit_observation_effects, penalty_max
from sequela.learning.observations import ObservationComparison, _choose, _read_kinds
from sequela.observation import parse_observation
from sequela.questions import item_frequencies, time_posterior

THETA = np.array([[-0.5, 1.5, 0.0], [0.0, -1.5, 0.0], [0.0, 0.0, -0.3]])


# Data of these eight independent items say much about the distribution of the observation times.
# Data of three items say little.
CLOCKS = np.diag(np.linspace(-1.5, 0.5, 8))


def drawn(observation, size, seed, theta=THETA):
    model = Model(theta, observation=observation)
    return simulate(model, size, random_state=seed).to_dataset().without_times()


@pytest.mark.parametrize(
    ("truth", "expected"),
    [(Gamma(6.0), "gamma"), (HeavyTailed(1.3), "heavy-tailed"), (Exponential(), "exponential")],
)
def test_the_right_kind_is_chosen(truth, expected):
    kinds = [Exponential(), Gamma(6.0), HeavyTailed(1.3)]
    data = drawn(truth, 800, 1, CLOCKS)
    compared = compare_observations(data, kinds, folds=2, random_state=1)
    assert compared.observation.kind == expected
    table = compared.table
    assert table["chosen"].sum() == 1
    assert table["gain"].iloc[0] == 0.0
    assert json.loads(json.dumps(compared.to_json()))["chosen"]["kind"] == expected


def test_the_comparison_does_not_depend_on_the_number_of_threads():
    data = drawn(Gamma(3.0), 100, 2)
    one, two = (
        compare_observations(
            data, [Exponential(), Gamma(3.0)], folds=2, random_state=1, n_threads=k
        )
        for k in (1, 2)
    )
    np.testing.assert_array_equal(one.held_out, two.held_out)


def test_effects_are_chosen_where_they_are_true_and_not_elsewhere():
    """The comparison chooses the kind "effects" if and only if the data have such effects.

    Here items act only on the observation. A model without such effects can describe this only with
    many interactions.
    """
    effects = ObservationEffects(np.array([1.5, -1.5, 1.0, -1.0, 1.2, -1.2]))
    kinds = [Exponential(), Gamma(3.0), "effects"]
    for truth, expected in ((effects, "effects"), (Exponential(), "exponential")):
        data = drawn(truth, 800, 1, np.diag(np.linspace(-1.0, 0.5, 6)))
        compared = compare_observations(data, kinds, folds=3, random_state=1)
        assert compared.observation.kind == expected
        learned = compared.observations[2]
        assert isinstance(learned, ObservationEffects)
        whole = fit_observation_effects(data, 0.01, penalty_kind="l1", tol=1e-3)
        assert learned == whole.observation
        # The effects of `truth` are strong, and they are learned with the right signs. If there are
        # no effects, the learned effects are small.
        size = np.sign(effects.omega) * learned.omega
        assert size.min() > 0.2 if truth is effects else np.abs(learned.omega).max() < 0.5
    assert json.loads(json.dumps(compared.to_json()))["table"][2]["chosen"] is False


@pytest.mark.parametrize(
    ("gains", "error", "expected"),
    [
        ((0.0, 4.9, 0.0), 1.0, 0),  # the gain of 4.9 nats is below the five nats that are needed
        ((0.0, 5.1, 0.0), 1.0, 1),
        ((0.0, 5.1, 0.0), 6.0, 0),  # the gain of 5.1 nats is below its standard error of 6
        ((0.0, 5.1, 5.9), 1.0, 1),  # the kind "effects" (the last gain) needs six nats
        ((0.0, 5.1, 6.1), 1.0, 2),
        ((0.0, -9.0, -7.0), 1.0, 0),
    ],
)
def test_another_kind_needs_enough_nats_and_its_standard_error(gains, error, expected):
    size = 400
    noise = np.tile([1.0, -1.0], size // 2)
    noise *= error / (noise.std(ddof=1) * np.sqrt(size))
    held_out = np.array([np.full(size, gain / size) + (gain != 0.0) * noise for gain in gains])
    held_out += np.random.default_rng(1).normal(size=size)  # the same noise is added to all kinds
    assert _choose(held_out, (Exponential(), Gamma(2.0), "effects")) == expected


def test_effects_are_not_compared_if_times_are_known():
    data = drawn(Exponential(), 30, 1)
    times = np.full(30, np.nan)
    times[0] = 1.0
    with pytest.raises(InputError, match="known times"):
        compare_observations(data, [Exponential(), "effects"], times=times)
    with pytest.raises(InputError, match="observations has 'effect'"):
        compare_observations(data, [Exponential(), "effect"])
    kinds = _read_kinds("any", timed=True)
    assert "effects" in _read_kinds("any", timed=False)
    assert "effects" not in kinds
    assert len(kinds) == len(_read_kinds("any", timed=False)) - 1


def test_wrong_comparisons_are_refused():
    data = drawn(Exponential(), 10, 1)
    with pytest.raises(InputError, match="'gamma'"):
        compare_observations(data, "weibull")
    with pytest.raises(InputError, match="at least one"):
        compare_observations(data, [])
    with pytest.raises(InputError, match="folds is 11"):
        compare_observations(data, folds=11)
    for wrong in ("weibull:2", "gamma:two", "gamma:-1", "exponential:2"):
        with pytest.raises(InputError):
            parse_observation(wrong)
    assert parse_observation("heavy:3") == HeavyTailed(3.0)


@pytest.mark.parametrize("observation", [Gamma(0.7), Gamma(3.0), HeavyTailed(4.0)], ids=repr)
def test_pseudo_times_agree_with_simulated_times(observation):
    """Compare means and quantiles with the times of simulated samples that have the same set."""
    model = Model(THETA, observation=observation)
    draws = simulate(model, 200_000, random_state=1)
    values = draws.to_dataset().values
    for row in ([0, 0, 0], [1, 0, 1], [1, 1, 1]):
        own = draws.observation_times[(values == np.array(row, dtype=bool)).all(axis=1)]
        times = pseudo_times(model, np.array([row], dtype=bool)).iloc[0]
        assert times["mean"] == pytest.approx(own.mean(), abs=5 * own.std() / np.sqrt(own.size))
        assert times["sd"] == pytest.approx(own.std(), rel=0.1)
        for name, probability in (("q05", 0.05), ("q50", 0.5), ("q95", 0.95)):
            below = float((own < times[name]).mean())
            assert below == pytest.approx(probability, abs=0.003 + 5 * 0.5 / np.sqrt(own.size))


def test_shape_1_has_the_times_of_the_exponential_model():
    from sequela.questions.phase_times import phase_times
    from sequela.samples import as_samples
    from sequela.settings import Settings

    plain = pseudo_times(THETA, [[True, False, True]]).iloc[0]
    near = Model(THETA, observation=Gamma(1.0))
    data = as_samples(near, np.array([[True, False, True]]))
    found = phase_times(near, data, {"q50": 0.5}, Settings()).iloc[0]
    assert found["mean"] == pytest.approx(plain["mean"], rel=1e-6)
    assert found["q50"] == pytest.approx(plain["q50"], rel=2e-3)


def test_the_penalty_is_chosen_at_these_times_too():
    data = drawn(Gamma(3.0), 200, 4)
    largest = penalty_max(data, observation=Gamma(3.0))
    assert len(fit(data, penalty=1.02 * largest, observation=Gamma(3.0)).interactions()) == 0
    assert len(fit(data, penalty=0.9 * largest, observation=Gamma(3.0)).interactions()) > 0
    learner = SetChainCV(observation=Gamma(3.0), penalties=[0.02], folds=2, random_state=1).fit(
        data
    )
    assert learner.model_.observation == Gamma(3.0)


def test_a_fit_takes_effects_on_the_observation_that_are_given():
    effects = ObservationEffects([0.5, 0.0, -0.5])
    data = drawn(effects, 200, 5)
    learned = fit(data, penalty=0.0, observation=effects, tol=1e-5)
    plain = fit(data, penalty=0.0, tol=1e-5)
    assert log_likelihood(learned, data) == pytest.approx(log_likelihood(plain, data), abs=1e-6)
    assert learned.observation == effects


def test_orders_and_frequencies_are_simulated():
    model = Model(THETA, observation=Gamma(3.0))
    orders = order_matrix(model, random_state=1, draws=20_000)
    assert orders.draws == 20_000
    draws = simulate(model, 20_000, random_state=5)
    share = item_frequencies(model, random_state=1, draws=20_000)["model"].to_numpy()
    assert np.abs(share - draws.frequencies.to_numpy()).max() < 0.02


def test_what_does_not_know_these_times_says_so():
    model = Model(THETA, observation=Gamma(3.0))
    with pytest.raises(InputError, match="kind 'gamma'"):
        time_posterior(model, [True, False, False])
    with pytest.raises(InputError, match="missing cells"):
        log_likelihood(model, [[True, None, False]])


@pytest.mark.parametrize(
    ("kinds", "chosen", "beyond"),
    [
        ([Exponential(), Gamma(2.0), Gamma(30.0)], 2, Gamma(60.0)),
        ([Exponential(), Gamma(2.0), Gamma(30.0)], 1, None),
        ([Exponential(), Gamma(0.5), Gamma(2.0)], 1, Gamma(0.25)),
        ([Exponential(), Gamma(2.0), Gamma(30.0)], 0, None),
        ([Exponential(), Gamma(2.0), Gamma(150.0)], 2, None),  # there is no larger shape
        ([Exponential(), HeavyTailed(1.5), HeavyTailed(5.0)], 1, HeavyTailed(1.25)),
        ([Exponential(), HeavyTailed(1.5), HeavyTailed(5.0)], 2, None),  # then exponential
    ],
)
def test_a_chosen_shape_at_the_end_of_the_list_names_a_shape_beyond(kinds, chosen, beyond):
    compared = ObservationComparison(tuple(kinds), np.zeros((3, 4)), chosen, 5, 1)
    assert compared.beyond == beyond
