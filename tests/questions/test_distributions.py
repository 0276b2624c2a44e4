"""Probabilities of sets, sequences and items: compare with enumeration and dense matrices."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from questions.enumeration import observed
from sequela import Dataset, InputError, Model, questions, simulate
from sequela.budget import Budget
from sequela.settings import Sampling

quick = settings(max_examples=25, deadline=None, derandomize=True, database=None)
SAMPLED = Budget(work=1.0)


def labels(S):
    return [str(item) for item in S]


def subsets(n):
    return [[j for j in range(n) if mask >> j & 1] for mask in range(1 << n)]


@st.composite
def cases(draw, max_items=4, scale=3.0):
    n = draw(st.integers(1, max_items))
    entries = st.one_of(st.just(0.0), st.floats(-scale, scale))
    theta = np.array(draw(st.lists(entries, min_size=n * n, max_size=n * n))).reshape(n, n)
    return theta, draw(st.sampled_from([1.0, 0.3, 6.0]))


# --- Sets -----------------------------------------------------------------------------------------


@given(cases())
@quick
def test_sets(case):
    theta, rate = case
    model = observed(theta, rate)
    found = [questions.set_probability(model, labels(S)) for S in subsets(len(theta))]
    truth = reference.set_distribution(theta, rate)
    np.testing.assert_allclose([float(x) for x in found], truth, rtol=1e-9)
    assert sum(float(x) for x in found) == pytest.approx(1, abs=1e-12)
    assert {(x.se, x.method, x.draws, x.seed) for x in found} == {(0.0, "exact", 0, None)}


@given(cases(), st.sampled_from([0.05, 1.0, 7.0]))
@quick
def test_sets_at_a_known_time(case, time):
    theta, _ = case
    found = [
        float(questions.set_probability(theta, labels(S), time=time)) for S in subsets(len(theta))
    ]
    np.testing.assert_allclose(
        found, reference.set_distribution_at(theta, time), rtol=1e-7, atol=1e-11
    )
    assert sum(found) == pytest.approx(1, abs=1e-9)


def test_sets_at_time_zero():
    theta = reference.random_theta(np.random.default_rng(1), 3)
    assert float(questions.set_probability(theta, [], time=0)) == 1.0
    assert float(questions.set_probability(theta, ["1"], time=0)) == 0.0


def test_blocks_are_independent_given_the_time():
    rng = np.random.default_rng(2)
    a, b = reference.random_theta(rng, 3), reference.random_theta(rng, 2)
    both = np.block([[a, np.zeros((3, 2))], [np.zeros((2, 3)), b]])

    def p(theta, S, time=1.3):
        return float(questions.set_probability(theta, labels(S), time=time))

    assert p(both, [0, 2, 4]) == pytest.approx(p(a, [0, 2]) * p(b, [1]), rel=1e-9)


@pytest.mark.parametrize("time", [None, 1.2])
def test_sampled_sets(time):
    # At a known time, chains with so few proposals are precise only if interactions are weak.
    scale = 1.5 if time is None else 0.6
    theta = reference.random_theta(np.random.default_rng(3), 7, scale=scale)
    S = labels(range(6))
    exact = float(questions.set_probability(theta, S, time=time))
    z = []
    for seed in range(12):
        found = questions.set_probability(theta, S, time=time, budget=SAMPLED, random_state=seed)
        assert found.method == ("relocation" if time is None else "metropolis")
        assert found.seed == seed
        assert found.draws > 10
        # Compare logarithms. The standard error of a logarithm is the relative error of the value.
        z.append(np.log(found.value / exact) / (found.se / found.value))
    assert np.abs(z).max() < 6
    assert 0.1 < np.mean(np.square(z)) < 3.8
    one, two = (
        questions.set_probability(theta, S, time=time, budget=SAMPLED, random_state=5, n_threads=n)
        for n in (1, 2)
    )
    assert one == two


# --- Sequences ------------------------------------------------------------------------------------


@given(cases())
@quick
def test_sequences(case):
    theta, rate = case
    model = observed(theta, rate)
    n = len(theta)
    total = 0.0
    for k in range(n + 1):
        for sigma in itertools.permutations(range(n), k):
            found = questions.sequence_probability(model, labels(sigma))
            truth = math.exp(reference.log_p_sequence(theta, sigma, rate))
            assert found == pytest.approx(truth, rel=1e-10)
            total += found
    assert total == pytest.approx(1, abs=1e-11)


def test_orders_of_a_set_add_up_to_it():
    theta = reference.random_theta(np.random.default_rng(4), 5)
    orders = [questions.sequence_probability(theta, x) for x in itertools.permutations("0134")]
    assert sum(orders) == pytest.approx(
        float(questions.set_probability(theta, ["0", "1", "3", "4"]))
    )


# --- Items ----------------------------------------------------------------------------------------


@given(cases(max_items=5))
@quick
def test_frequencies(case):
    theta, rate = case
    found = questions.item_frequencies(observed(theta, rate))
    p = reference.set_distribution(theta, rate)
    masks = np.arange(len(p))
    truth = [p[masks >> j & 1 == 1].sum() for j in range(len(theta))]
    np.testing.assert_allclose(found["model"], truth, rtol=1e-9)
    assert list(found.index) == labels(range(len(theta)))
    assert (found["se"] == 0).all()
    assert (found["method"] == "exact").all()
    assert list(found.columns) == ["model", "se", "method"]
    assert found.attrs == {"draws": 0, "seed": None}


def test_frequencies_of_a_large_sparse_model_are_exact_item_by_item():
    rng = np.random.default_rng(5)
    theta = np.diag(rng.normal(-1, 1, 60))
    theta[0, 1], theta[2, 1], theta[1, 3] = 1.0, -2.0, 3.0
    found = questions.item_frequencies(theta)
    p = reference.set_distribution(theta[:4, :4])
    masks = np.arange(16)
    truth = [p[masks >> j & 1 == 1].sum() for j in range(4)]
    np.testing.assert_allclose(found["model"][:4], truth, rtol=1e-10)
    w = np.exp(np.diagonal(theta)[4:])
    np.testing.assert_allclose(found["model"][4:], w / (1 + w), rtol=1e-10)


def test_simulated_frequencies():
    theta = reference.random_theta(np.random.default_rng(6), 5)
    exact = questions.item_frequencies(theta)["model"]
    z = []
    for seed in range(30):
        found = questions.item_frequencies(theta, budget=SAMPLED, draws=2_000, random_state=seed)
        assert (found["method"] == "simulation").all()
        assert found.attrs == {"draws": 2_000, "seed": seed}
        z.append((found["model"] - exact) / found["se"])
    # The mean of z^2 over 30 seeds has a standard deviation of 0.26. It may be off by five of
    # these.
    assert np.all(np.abs(np.mean(np.square(z), axis=0) - 1) < 1.3)
    found = questions.item_frequencies(theta, budget=SAMPLED, target_se=0.003, random_state=1)
    assert found["se"].max() <= 0.003
    assert ((found["model"] - exact).abs() < 6 * 0.003).all()
    one, two = (
        questions.item_frequencies(theta, budget=SAMPLED, draws=9000, random_state=1, n_threads=n)
        for n in (1, 2)
    )
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_frequencies_beside_data():
    theta = reference.random_theta(np.random.default_rng(7), 4)
    model = Model(theta, list("abcd"))
    drawn = simulate(model, 400, random_state=1).to_dataset()
    found = questions.item_frequencies(model, drawn.to_frame()[list("dbca")])
    expected = drawn.values.mean(axis=0)
    assert found["data"].tolist() == expected.tolist()
    p = found["model"]
    np.testing.assert_allclose(found["z"], (expected - p) / np.sqrt(p * (1 - p) / 400))
    assert found["z"].abs().max() < 4.5
    rough = questions.item_frequencies(model, drawn, budget=SAMPLED, draws=400, random_state=2)
    p = rough["model"]
    spread = np.sqrt(p * (1 - p) / 400 + rough["se"] ** 2)
    np.testing.assert_allclose(rough["z"], (expected - p) / spread)
    wrong = questions.item_frequencies(model, Dataset(~drawn.values, items=model.items))
    assert wrong["z"].abs().max() > 8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: questions.set_probability(m, "a"), "sample is the text 'a'; expected a list"),
        (lambda m: questions.set_probability(m, [], time=-1), "time is -1; expected a finite"),
        (lambda m: questions.set_probability(m, [], time=np.nan), "time is nan; expected a finite"),
        (lambda m: questions.set_probability(m, [], time="x"), "time is 'x'; expected a finite"),
        (lambda m: questions.set_probability(m, [], draws=100), "draws is not used by this"),
        (lambda m: questions.sequence_probability(m, {"a"}), "a set has no order; expected a list"),
        (lambda m: questions.sequence_probability(m, "ab"), "sequence is the text 'ab'; expected"),
        (lambda m: questions.sequence_probability(m, [True, False, True]), "true/false entries"),
        (lambda m: questions.sequence_probability(m, ["a", "a"]), "sequence contains 'a' more"),
        (lambda m: questions.sequence_probability(m, 5), "sequence is 5; expected a list"),
        (lambda m: questions.item_frequencies(m, draws=1, budget=SAMPLED), "draws is 1; expected"),
        (lambda m: questions.item_frequencies(m, [{"x"}]), "x"),
        (lambda m: questions.item_frequencies(m, n_threads=0), "n_threads"),
        (lambda m: questions.item_frequencies(m, sampling=Sampling()), "sampling is not used"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call(Model(np.ones((3, 3)), ["a", "b", "c"]))
