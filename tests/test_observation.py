"""Test each kind of observation, and that all functions use the observation of the model.

The rate of observation is part of the model. If a function had an argument for it with a default of
1, its answers would be wrong for a model that was learned with another rate.
"""

from __future__ import annotations

import json
import math
from typing import ClassVar

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
import sequela
from sequela import InputError, Model, evaluate, log_likelihood, simulate
from sequela.likelihood import sample_posteriors, sequence_log_likelihood
from sequela.likelihood.parameters import Parameters
from sequela.observation import (
    KINDS,
    Exponential,
    Gamma,
    HeavyTailed,
    Observation,
    ObservationEffects,
    as_observation,
    read_observation,
    take_recorded_observation,
)

quick = settings(max_examples=30, deadline=None, derandomize=True, database=None)

# The seeds of statistical checks are fixed. If they were random, each comparison would fail with
# this probability although the program is correct.
FALSE_ALARM = 1e-6
LARGEST_Z = scipy.stats.norm.isf(FALSE_ALARM / 2)

# Examples of each kind of observation. Add examples of new kinds here: the tests of properties that
# all kinds have in common use all examples.
EXAMPLES = {
    "exponential": [Exponential(), Exponential(0.05), Exponential(2.0), Exponential(300.0)],
    "gamma": [Gamma(0.9), Gamma(1.0, mean=3.0), Gamma(2.5, mean=0.2), Gamma(20.0)],
    "heavy-tailed": [HeavyTailed(5.0), HeavyTailed(30.0, rate=4.0)],
    "effects": [ObservationEffects([0.5, -1.0, 0.0]), ObservationEffects([0.0])],
}
ALL = [observation for listed in EXAMPLES.values() for observation in listed]
every_example = pytest.mark.parametrize("observation", ALL, ids=repr)
# The kind "effects" has no fixed distribution of times: times depend on theta.
with_times = pytest.mark.parametrize(
    "observation", [one for one in ALL if one.kind != "effects"], ids=repr
)


# --- What every kind does -------------------------------------------------------------------------


def test_every_kind_has_examples_above():
    assert EXAMPLES.keys() == KINDS.keys()
    for kind, listed in EXAMPLES.items():
        assert KINDS[kind].kind == kind
        assert listed
        assert all(type(observation) is KINDS[kind] for observation in listed)


@every_example
def test_it_is_an_observation(observation):
    assert isinstance(observation, Observation)
    assert as_observation(observation) is observation


def integral(observation, power):
    """Return the integral of t^power times the density, if the unit of t is the mean time."""
    unit = observation.mean_time
    value, _ = scipy.integrate.quad(
        lambda t: t**power * math.exp(observation.log_density(t * unit)) * unit, 0.0, np.inf
    )
    return value


@with_times
def test_the_density_integrates_to_one_and_has_the_mean_time(observation):
    assert integral(observation, 0) == pytest.approx(1.0, rel=1e-8)
    assert integral(observation, 1) == pytest.approx(1.0, rel=1e-8)
    density = observation.log_density([-1.0, -1e-300, 0.0, 1.0])
    assert density.shape == (4,)
    assert (density[:2] == -np.inf).all()
    assert np.isfinite(density[3])


@with_times
def test_draws_have_the_density_and_its_mean(observation):
    drawn = observation.draw_times(20_000, np.random.default_rng(3)) / observation.mean_time
    assert drawn.shape == (20_000,)
    assert (drawn > 0).all()
    spread = math.sqrt(integral(observation, 2) - 1.0)
    assert abs(drawn.mean() - 1.0) < LARGEST_Z * spread / math.sqrt(drawn.size)
    # The share of draws below `end` must agree with the integral of the density up to `end`.
    for end in (0.1, 0.7, 2.0):
        share, _ = scipy.integrate.quad(
            lambda t: (
                math.exp(observation.log_density(t * observation.mean_time)) * observation.mean_time
            ),
            0.0,
            end,
        )
        below = int((drawn < end).sum())
        assert scipy.stats.binomtest(below, drawn.size, share).pvalue > FALSE_ALARM


@with_times
def test_draws_are_those_of_the_generator(observation):
    one, same, other = (
        observation.draw_times(5, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.isin(one, other).any()


@every_example
def test_a_constant_rate_is_that_of_every_state_and_has_an_exponential_time(observation):
    rate = observation.constant_rate
    if rate is None or observation.kind == "effects":
        return
    for state in ([], [0], [0, 2, 5]):
        assert observation.rate_in(np.array(state, dtype=np.int64)) == rate
    assert observation.mean_time == pytest.approx(1 / rate)
    t = np.array([0.0, 0.3, 2.0]) / rate
    np.testing.assert_allclose(observation.log_density(t), np.log(rate) - rate * t, rtol=1e-13)


@every_example
def test_it_comes_back_from_a_file(observation):
    written = json.dumps(observation.to_json())
    assert json.loads(written)["kind"] == observation.kind
    assert read_observation(json.loads(written)) == observation


@every_example
def test_equal_ones_are_equal_and_cannot_be_changed(observation):
    assert hash(observation) == hash(read_observation(observation.to_json()))
    assert [other for other in ALL if other == observation] == [observation]
    for name in observation.to_json():
        with pytest.raises(AttributeError):
            setattr(observation, name, 5.0)


# --- Exponential ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", ["2", True, 0, 0.0, -1, np.nan, np.inf, -np.inf, None, 1j, [2.0]])
def test_rates_that_are_none(rate):
    with pytest.raises(InputError, match="the rate of an Exponential observation is") as caught:
        Exponential(rate)
    assert repr(rate) in str(caught.value)
    assert "expected a positive finite number" in str(caught.value)


@pytest.mark.parametrize("rate", [2, np.int64(2), np.float32(2.0), 2.0])
def test_rates_are_numbers_of_python(rate):
    """The parameters of kinds are numbers of Python, so that they can be written to files."""
    assert type(Exponential(rate).rate) is float
    assert Exponential(rate) == Exponential(2.0)
    assert Exponential(rate).to_json() == {"kind": "exponential", "rate": 2.0}


def test_none_is_the_observation_of_the_paper():
    assert as_observation(None) == Exponential() == Exponential(1.0)
    assert Exponential(4.0).mean_time == 0.25


@pytest.mark.parametrize(
    "bad", [Exponential, Observation, 2.0, True, "exponential", {"kind": "exponential"}, object()]
)
def test_classes_and_other_objects_are_no_observation(bad):
    with pytest.raises(InputError, match=r"such as sequela\.Exponential\(rate=2\.0\)") as caught:
        as_observation(bad)
    assert f"observation is {bad!r}" in str(caught.value)


# --- Files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"kind": "clockwork"}, "expected an object whose kind is one of 'exponential'.*newer"),
        ({"kind": None, "rate": 1.0}, "kind is one of"),
        ({"kind": ["exponential"]}, "kind is one of"),
        ({"rate": 1.0}, "kind is one of"),
        ({}, "kind is one of"),
        ([], "kind is one of"),
        ("exponential", "kind is one of"),
        (None, "kind is one of"),
        (
            {"kind": "exponential", "shape": 2.0},
            "of kind 'exponential' has other parameters",
        ),
        ({"kind": "exponential", "rate": "2"}, "is '2'; expected a positive finite number"),
        ({"kind": "exponential", "rate": -2.0}, r"is -2\.0; expected a positive finite number"),
    ],
)
def test_what_a_file_cannot_hold(content, message):
    with pytest.raises(InputError, match=message):
        read_observation(content)


def test_what_earlier_versions_wrote():
    """The entry `observation_rate` or `observation` of a record becomes an observation.

    It is removed from the record, and other entries stay.
    """
    record = {"observation_rate": 2.0, "tol": 0.1}
    assert take_recorded_observation(record) == Exponential(2.0)
    assert record == {"tol": 0.1}
    assert take_recorded_observation(record) == Exponential(1.0)
    record["observation"] = {"kind": "exponential", "rate": 3.0}
    assert take_recorded_observation(record) == Exponential(3.0)
    assert record == {"tol": 0.1}


# --- A kind from outside --------------------------------------------------------------------------


class Clock:
    """An observation with only the attributes and methods that the protocol demands.

    Code that uses any other attribute fails.
    """

    kind: ClassVar[str] = "clock of a test"
    mean_time = 0.5
    constant_rate: float | None = 2.0

    def rate_in(self, state):  # noqa: ARG002 - the same in all states
        return 2.0

    def log_density(self, times):
        return np.log(2.0) - 2.0 * np.asarray(times)

    def draw_times(self, size, rng):
        return rng.exponential(0.5, size)

    def to_json(self):
        return {"kind": self.kind}


class Irregular(Clock):
    """An observation whose rate depends on the state, which no kernel supports."""

    kind = "irregular"
    constant_rate = None


def test_the_protocol_is_all_that_is_asked(tmp_path, monkeypatch):
    theta = ref.random_theta(np.random.default_rng(1), 3)
    model, usual = (Model(theta, observation=at) for at in (Clock(), Exponential(2.0)))
    X = all_sets(3)
    assert evaluate(model, X).value == evaluate(usual, X).value
    assert sample_posteriors(model, X).time_mean.tolist() == (
        sample_posteriors(usual, X).time_mean.tolist()
    )
    drawn, expected = (simulate(at, 50, random_state=1) for at in (model, usual))
    np.testing.assert_array_equal(drawn.observation_times, expected.observation_times)
    model.save(tmp_path / "m.npz")
    with pytest.raises(InputError, match=r"m\.npz'.*'clock of a test'.*newer version"):
        Model.load(tmp_path / "m.npz")
    monkeypatch.setitem(KINDS, Clock.kind, Clock)
    assert isinstance(Model.load(tmp_path / "m.npz").observation, Clock)


def test_what_no_kernel_can_do_is_refused_by_name():
    model = Model(np.zeros((2, 2)), observation=Irregular())
    X = all_sets(2)
    for ask in (
        lambda: evaluate(model, X),
        lambda: sample_posteriors(model, X),
        lambda: sequence_log_likelihood(model, [[0]]),
        lambda: simulate(model, 5),
        lambda: Parameters.of(model),
    ):
        with pytest.raises(InputError, match=r"kind 'irregular'.*constant rate.*Exponential\(\)"):
            ask()


# --- All functions use the observation of the model -----------------------------------------------

RATE = 2.0


def all_sets(n):
    """Return all sets of n items, sorted as in `reference.set_distribution`."""
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1


def members(row):
    return np.flatnonzero(row).tolist()


@pytest.fixture(scope="module")
def theta():
    return ref.random_theta(np.random.default_rng(7), 4)


@pytest.fixture(scope="module")
def model(theta):
    return Model(theta, ["a", "b", "c", "d"], observation=Exponential(RATE))


@pytest.fixture(scope="module")
def data(model):
    return sequela.Dataset(all_sets(4), items=model.items)


@pytest.fixture(scope="module")
def p(theta):
    """Return the exact probabilities of all sets. At rate 1 they would be clearly different."""
    found = ref.set_distribution(theta, stop_rate=RATE)
    assert np.abs(np.log(found / ref.set_distribution(theta))).max() > 0.5
    return found


def test_likelihoods_are_those_of_the_model(theta, model, data, p):
    found = evaluate(model, data)
    np.testing.assert_allclose(np.exp(found.log_likelihoods), p, rtol=1e-12)
    value, gradient = log_likelihood(model, data, return_gradient=True)
    assert value == found.value == pytest.approx(np.log(p).mean(), rel=1e-13)
    expected = [ref.mp_gradient_set(theta, members(row), stop_rate=RATE) for row in data.values]
    np.testing.assert_allclose(gradient, np.mean(expected, axis=0), atol=1e-13)


@pytest.mark.parametrize("method", ["relocation", "metropolis", "metropolis-uniform"])
def test_sampled_likelihoods_are_those_of_the_model(theta, model, method):
    """The tolerance is 8 standard errors, because they are estimated from only 16 chains.

    A t variable with 15 degrees of freedom exceeds it about once in a million runs.
    """
    found = evaluate(model, [set("abcd")], method=method, random_state=1)
    expected = ref.log_p_set(theta, range(4), stop_rate=RATE)
    assert abs(found.value - expected) < 1e-9 + 8 * found.value_se
    assert abs(expected - ref.log_p_set(theta, range(4))) > 0.3


def test_sequences_are_those_of_the_model(theta, model):
    for sigma in ((), (2,), (3, 0), (1, 0, 3, 2)):
        found = sequence_log_likelihood(model, [[model.items[j] for j in sigma]])
        assert found == pytest.approx(ref.log_p_sequence(theta, sigma, stop_rate=RATE), abs=1e-12)


def test_simulations_are_those_of_the_model(model, p):
    drawn = simulate(model, 100_000, random_state=1)
    counts = np.bincount(drawn.to_dataset().values @ (1 << np.arange(4)), minlength=16)
    assert (p * len(drawn)).min() > 10
    assert scipy.stats.chisquare(counts, p * len(drawn)).pvalue > FALSE_ALARM
    # The mean time is 0.5, and the standard deviation of an exponential time is equal to its mean.
    z = (drawn.observation_times.mean() - 0.5) / (0.5 / math.sqrt(len(drawn)))
    assert abs(z) < LARGEST_Z


def test_posteriors_are_those_of_the_model(theta, model, data, p):
    found = sample_posteriors(model, data)
    for row, S in enumerate(map(members, data.values)):
        mean, variance = ref.posterior_time_moments(theta, S, stop_rate=RATE)
        assert found.time_mean[row] == pytest.approx(mean, rel=1e-12)
        assert found.time_variance[row] == pytest.approx(variance, rel=1e-11)
        before = ref.posterior_before(theta, S, stop_rate=RATE)
        np.testing.assert_allclose(found.before(row), before, atol=1e-13)
    # The posterior mean of the time, averaged over all sets by their probabilities, is the mean
    # time.
    assert np.dot(p, found.time_mean) == pytest.approx(0.5, rel=1e-12)


def test_sampled_posteriors_are_those_of_the_model(theta, model):
    """The tolerance is 8 standard errors, because they are estimated from only 16 chains.

    A t variable with 15 degrees of freedom exceeds it about once in a million runs.
    """
    found = sample_posteriors(model, [set("abcd")], budget=sequela.Budget(work=1.0), random_state=1)
    assert list(found.methods) == ["relocation"]
    mean, _ = ref.posterior_time_moments(theta, range(4), stop_rate=RATE)
    assert abs(found.time_mean[0] - mean) < 1e-9 + 8 * found.time_se[0]
    assert abs(mean - ref.posterior_time_moments(theta, range(4))[0]) > 0.3


def test_questions_are_about_the_model(theta, model, p):
    """Questions have no argument for the rate of observation. They use the rate of the model."""
    from sequela.questions.clock import pseudo_times, time_posterior
    from sequela.questions.distributions import (
        item_frequencies,
        sequence_probability,
        set_probability,
    )
    from sequela.questions.order import order_probability

    for a, b in ((0, 1), (2, 0), (3, 1)):
        found = order_probability(model, model.items[a], model.items[b])
        expected = ref.order_probability_by_enumeration(theta, a, b, stop_rate=RATE)
        assert float(found) == pytest.approx(expected, rel=1e-9)
        drawn = order_probability(
            model, model.items[a], model.items[b], method="simulation", random_state=1
        )
        assert abs(float(drawn) - expected) < LARGEST_Z * drawn.se
    assert float(set_probability(model, {"a", "c"})) == pytest.approx(p[0b0101], rel=1e-12)
    expected = math.exp(ref.log_p_sequence(theta, (2, 0), stop_rate=RATE))
    assert sequence_probability(model, ["c", "a"]) == pytest.approx(expected, rel=1e-12)
    shares = item_frequencies(model)["model"].to_numpy()
    np.testing.assert_allclose(shares, p @ all_sets(4), rtol=1e-9)
    mean, _ = ref.posterior_time_moments(theta, [0, 2], stop_rate=RATE)
    assert time_posterior(model, {"a", "c"}).mean == pytest.approx(mean, rel=1e-9)
    assert pseudo_times(model, [{"a", "c"}])["mean"].item() == pytest.approx(mean, rel=1e-9)


# --- The unit of time is arbitrary ----------------------------------------------------------------


@st.composite
def pairs(draw):
    """Draw a rate, a model with this rate, and the same model in other units, with rate 1."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 4))
    theta = ref.random_theta(rng, n, draw(st.sampled_from([0.0, 1.0, 2.0])))
    rate = 10.0 ** draw(st.floats(-4, 4))
    return (
        rate,
        Model(theta, observation=Exponential(rate)),
        Model(theta - np.log(rate) * np.eye(n)),
    )


@quick
@given(pairs())
def test_a_rate_and_slower_items_have_the_same_sets(pair):
    """The probabilities of sets depend only on the base rates divided by the rate r.

    So the same probabilities are found with the rate 1 and base rates divided by r.
    """
    rate, model, rescaled = pair
    X = all_sets(model.n_items)
    expected = ref.set_distribution(model.theta, stop_rate=rate)
    np.testing.assert_allclose(expected, ref.set_distribution(rescaled.theta), rtol=1e-9)
    found, other = evaluate(model, X), evaluate(rescaled, X)
    np.testing.assert_allclose(found.log_likelihoods, np.log(expected), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.log_likelihoods, other.log_likelihoods, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.gradient, other.gradient, rtol=0, atol=1e-10)


@quick
@given(pairs())
def test_a_rate_and_slower_items_have_times_in_proportion(pair):
    rate, model, rescaled = pair
    X = all_sets(model.n_items)
    found, other = sample_posteriors(model, X), sample_posteriors(rescaled, X)
    np.testing.assert_allclose(found.time_mean * rate, other.time_mean, rtol=1e-9)
    np.testing.assert_allclose(found.time_variance * rate**2, other.time_variance, rtol=1e-8)
    np.testing.assert_allclose(found.arrival_mean * rate, other.arrival_mean, rtol=1e-9)
    for row in range(len(X)):
        np.testing.assert_allclose(found.before(row), other.before(row), atol=1e-10)
    # The posterior mean of the time, averaged over all sets by their probabilities, is the mean
    # time.
    p = np.exp(evaluate(model, X, gradient=False).log_likelihoods)
    assert np.dot(p, found.time_mean) == pytest.approx(model.observation.mean_time, rel=1e-9)
    # At known times the rate of observation has no effect. Only the unit of time is different.
    t = np.linspace(0.1, 3.0, len(X))
    np.testing.assert_allclose(
        evaluate(model, X, times=t / rate, gradient=False).log_likelihoods,
        evaluate(rescaled, X, times=t, gradient=False).log_likelihoods,
        rtol=1e-8,
        atol=1e-8,
    )


@pytest.mark.parametrize("rate", [0.01, 2.0, 300.0])
def test_a_rate_and_slower_items_draw_the_same(theta, rate):
    """If two models differ only in the unit of time, so do their draws with the same seed."""
    found = simulate(Model(theta, observation=Exponential(rate)), 2000, random_state=1)
    other = simulate(Model(theta - np.log(rate) * np.eye(4)), 2000, random_state=1)
    np.testing.assert_array_equal(found.sequence, other.sequence)
    np.testing.assert_array_equal(found.indptr, other.indptr)
    np.testing.assert_allclose(found.arrival_times * rate, other.arrival_times, rtol=1e-9)
    np.testing.assert_allclose(found.observation_times * rate, other.observation_times, rtol=1e-12)
