"""Divergence between two models: compare with an enumeration of all sequences."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from questions.enumeration import observed
from sequela import BudgetError, InputError, Model, questions
from sequela.questions import divergence
from sequela.questions.divergence import sequence_log_probabilities

quick = settings(max_examples=30, deadline=None, derandomize=True, database=None)


def labels(S):
    return [str(item) for item in S]


def marginal(theta, chosen, rate=1.0):
    """Return the probability of each sequence of the chosen items; other items are hidden."""
    found = defaultdict(float)
    for sigma, p in reference.sequence_distribution(theta, rate).items():
        found[tuple(item for item in sigma if item in chosen)] += p
    return found


def divergence_by_enumeration(one, two, chosen, rate=1.0):
    p, q = marginal(one, chosen, rate), marginal(two, chosen, rate)
    return sum(x * math.log(x / q[sigma]) for sigma, x in p.items())


@st.composite
def pairs(draw, scale=2.5):
    n = draw(st.integers(1, 5))
    entries = st.one_of(st.just(0.0), st.floats(-scale, scale))
    one, two = (
        np.array(draw(st.lists(entries, min_size=n * n, max_size=n * n))).reshape(n, n)
        for _ in range(2)
    )
    chosen = draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    return one, two, chosen, draw(st.sampled_from([1.0, 0.3, 6.0]))


@given(pairs())
@quick
def test_marginal_sequences_with_hidden_items(case):
    theta, _, chosen, rate = case
    truth = marginal(theta, chosen, rate)
    logs = sequence_log_probabilities(observed(theta, rate), np.array(chosen))
    assert len(logs) == sum(math.perm(len(chosen), k) for k in range(len(chosen) + 1))
    found = {key: math.exp(log_p) for key, log_p in logs.items()}
    for key, p in found.items():
        assert p == pytest.approx(truth[tuple(chosen[place] for place in key)], rel=1e-9)
    assert sum(found.values()) == pytest.approx(1, abs=1e-11)


@given(pairs())
@quick
def test_exact_divergence(case):
    one, two, chosen, rate = case
    truth = divergence_by_enumeration(one, two, chosen, rate)
    one, two = observed(one, rate), observed(two, rate)
    found = questions.sequence_divergence(one, two, labels(chosen))
    assert found.value == pytest.approx(truth, rel=1e-8, abs=1e-12)
    assert (found.se, found.method, found.draws, found.seed) == (0.0, "exact", 0, None)
    same = questions.sequence_divergence(one, one, labels(chosen))
    assert same.value == 0.0


def test_another_rate_of_observation_is_another_model():
    theta = reference.random_theta(np.random.default_rng(8), 3)
    one, two = observed(theta, 0.5), observed(theta, 2.0)
    p, q = marginal(theta, [0, 2], 0.5), marginal(theta, [0, 2], 2.0)
    truth = sum(x * math.log(x / q[sigma]) for sigma, x in p.items())
    found = questions.sequence_divergence(one, two, ["0", "2"])
    assert found.value == pytest.approx(truth, rel=1e-9)


def test_other_models_are_apart():
    rng = np.random.default_rng(1)
    theta = reference.random_theta(rng, 4)
    for i, j in itertools.product(range(4), range(4)):
        other = theta.copy()
        other[i, j] += 0.1
        assert questions.sequence_divergence(theta, other).value > 1e-7
        assert questions.sequence_divergence(other, theta).value > 1e-7


def test_fewer_items_say_less():
    rng = np.random.default_rng(2)
    one, two = reference.random_theta(rng, 5), reference.random_theta(rng, 5)
    values = [questions.sequence_divergence(one, two, labels(range(k))).value for k in range(1, 6)]
    assert values == sorted(values)


def test_labels_decide_which_items_are_compared():
    theta = reference.random_theta(np.random.default_rng(3), 4)
    other = reference.random_theta(np.random.default_rng(4), 4)
    one, two = Model(theta, list("abcd")), Model(other, list("abcd"))
    order = [2, 0, 3, 1]
    turned = Model(other[np.ix_(order, order)], ["c", "a", "d", "b"])
    truth = divergence_by_enumeration(theta, other, [0, 3])
    chosen = [True, False, False, True]
    for items in (["a", "d"], ["d", "a"], {"a", "d"}, chosen, iter(["a", "d"])):
        given_as = list(items) if not isinstance(items, (list, set)) else items
        for second in (two, turned):
            found = questions.sequence_divergence(one, second, given_as)
            assert found.value == pytest.approx(truth, rel=1e-9)
    # By default, the items that are in both models are compared. Other items are hidden.
    part = Model(other, ["x", "b", "y", "d"])
    found = questions.sequence_divergence(one, part)
    assert found.value == pytest.approx(divergence_by_enumeration(theta, other, [1, 3]), rel=1e-9)


def test_extreme_rates_in_logarithms():
    # In `two`, the rate of item 0 is e^-400 instead of 1, so log P(item 0) is lower by about 400.
    one = np.diag([0.0, 0.0])
    two = np.diag([-400.0, 0.0])
    found = questions.sequence_divergence(one, two, ["0"])
    assert found.value == pytest.approx(0.5 * (math.log(0.5) + 400) + 0.5 * math.log(0.5), rel=1e-9)
    both = questions.sequence_divergence(np.zeros((2, 2)), np.full((2, 2), -400.0))
    p = marginal(np.zeros((2, 2)), [0, 1])
    log_q = {(): 0, (0,): -400, (1,): -400, (0, 1): -1200, (1, 0): -1200}
    truth = sum(x * (math.log(x) - log_q[sigma]) for sigma, x in p.items())
    assert both.value == pytest.approx(truth, rel=1e-9)
    fast = questions.sequence_divergence(np.full((3, 3), 400.0), np.full((3, 3), 300.0))
    assert fast.value == pytest.approx(0.0, abs=1e-12)
    counted = questions.sequence_divergence(
        one, two, ["0"], method="auto", draws=2_000, random_state=1
    )
    assert counted == found


def simulated(one, two, monkeypatch, which, seeds, **options):
    """Return one estimate of the divergence of p from q per seed.

    `which` says what is simulated instead of computed exactly: "p", "q" or "both".
    """
    limits = {"p": [False, True], "q": [True, False], "both": [False, False]}[which]
    found = []
    for seed in seeds:
        answers = iter(limits)
        monkeypatch.setattr(divergence, "_is_small", lambda *_, answers=answers: next(answers))
        found.append(questions.sequence_divergence(one, two, random_state=seed, **options))
    return found


@pytest.mark.parametrize("which", ["p", "q", "both"])
def test_simulation_is_right_within_calibrated_errors(monkeypatch, which):
    rng = np.random.default_rng(5)
    one = reference.random_theta(rng, 3, scale=0.7)
    two = reference.random_theta(rng, 3, scale=0.7)
    truth = divergence_by_enumeration(one, two, [0, 1, 2])
    found = simulated(one, two, monkeypatch, which, range(24), draws=20_000)
    assert {x.method for x in found} == {"simulation"}
    z = np.array([(x.value - truth) / x.se for x in found])
    # Each z has a t distribution with 19 degrees of freedom. In about one of a thousand tests, the
    # mean of z^2 over the 24 seeds is outside these limits.
    assert 0.35 < np.mean(z**2) < 2.4
    assert abs(z.mean()) < 0.9
    assert np.abs(z).max() < 5.5


def test_simulation_of_equal_models_is_about_zero():
    theta = reference.random_theta(np.random.default_rng(6), 3)
    found = questions.sequence_divergence(
        theta, theta, method="simulation", draws=20_000, random_state=1
    )
    assert abs(found.value) < 5 * found.se
    assert found.se < 0.005
    # The true divergence is 0. Without the correction of the bias by the jackknife, the mean of the
    # values would be about 15 / 500, which is six standard deviations of the mean.
    values = [
        questions.sequence_divergence(
            theta, theta, method="simulation", draws=500, random_state=seed
        ).value
        for seed in range(40)
    ]
    assert abs(np.mean(values)) < 0.012


def test_simulation_by_seed_threads_and_target():
    rng = np.random.default_rng(7)
    one, two = reference.random_theta(rng, 4), reference.random_theta(rng, 4)
    options = {"method": "simulation", "random_state": 3}
    a, b = (
        questions.sequence_divergence(one, two, draws=9_000, n_threads=n, **options) for n in (1, 2)
    )
    assert a == b
    assert (a.draws, a.seed) == (9_000, 3)
    found = questions.sequence_divergence(one, two, ["0", "1"], target_se=0.004, **options)
    assert found.se <= 0.004
    assert found.value == pytest.approx(divergence_by_enumeration(one, two, [0, 1]), abs=0.024)


def test_too_large_for_exact():
    theta = np.diag(np.zeros(9))
    with pytest.raises(BudgetError, match="too many sequences of 9 items"):
        questions.sequence_divergence(theta, theta, method="exact")
    dense = np.full((30, 30), 0.1)
    with pytest.raises(BudgetError, match="hidden items"):
        questions.sequence_divergence(dense, dense, ["0"], method="exact")
    auto = questions.sequence_divergence(theta, theta, draws=2_000, random_state=1)
    assert auto.method == "simulation"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: questions.sequence_divergence(m, m, "ab"), "items is the text 'ab'; expected"),
        (lambda m: questions.sequence_divergence(m, m, 5), "items is 5; expected a list"),
        (lambda m: questions.sequence_divergence(m, m, []), "items has 0 items"),
        (lambda m: questions.sequence_divergence(m, m, ["x"]), "no item 'x'"),
        (lambda m: questions.sequence_divergence(m, m, method="x"), "method is 'x'; expected"),
        (lambda m: questions.sequence_divergence(m, np.zeros((3, 3))), "items has 0 items"),
        (
            lambda m: questions.sequence_divergence(m, m, method="simulation", draws=0),
            "draws is 0; expected",
        ),
        (
            lambda m: questions.sequence_divergence(m, m, method="simulation", target_se="x"),
            "target_se is 'x'; expected",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call(Model(np.zeros((3, 3)), ["a", "b", "c"]))
