"""The next item: compare with its definition. Later states: compare with matrix exponentials."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from questions.enumeration import observed
from sequela import InputError, Model, questions
from sequela.budget import Budget
from sequela.questions import next_item

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def labels(S):
    return [str(item) for item in S]


@st.composite
def cases(draw, scale=3.0):
    n = draw(st.integers(1, 6))
    entries = st.one_of(st.just(0.0), st.floats(-scale, scale))
    theta = np.array(draw(st.lists(entries, min_size=n * n, max_size=n * n))).reshape(n, n)
    return theta, sorted(draw(st.sets(st.integers(0, n - 1))))


def present_at(theta, state, time):
    """Return P(item is present after `time`, given the state now) by a matrix exponential."""
    start = sum(1 << item for item in state)
    p = reference.transition_matrix(reference.generator(theta), time)[start]
    masks = np.arange(len(p))
    return np.array([p[masks >> j & 1 == 1].sum() for j in range(len(theta))])


# --- The next step --------------------------------------------------------------------------------


@given(cases(), st.sampled_from([1.0, 0.3, 6.0]))
@quick
def test_next_step_is_a_race(case, rate):
    theta, state = case
    found = questions.next_items(observed(theta, rate), labels(state))
    absent = [j for j in range(len(theta)) if j not in state]
    assert sorted(found.items.index) == labels(absent)
    total = reference.exit_rate(theta, state)
    for j in absent:
        row, own = found.items.loc[str(j)], reference.rate(theta, state, j)
        assert row["rate"] == pytest.approx(own)
        assert row["probability"] == pytest.approx(own / (rate + total))
        assert row["share"] == pytest.approx(own / total)
    assert found.observed_first == pytest.approx(rate / (rate + total))
    assert found.items["probability"].sum() + found.observed_first == pytest.approx(1)
    assert found.waiting_time == pytest.approx(1 / (rate + total))
    assert found.next_item_time == (pytest.approx(1 / total) if absent else np.inf)
    assert found.items["probability"].is_monotonic_decreasing


def test_next_step_of_the_full_state():
    found = questions.next_items(observed(np.zeros((2, 2)), 4.0), ["0", "1"])
    assert len(found.items) == 0
    assert (found.observed_first, found.waiting_time, found.next_item_time) == (1.0, 0.25, np.inf)


def test_next_step_with_rates_beyond_doubles():
    theta = np.array([[0.0, 500.0, 500.0], [0.0, 450.0, 0.0], [0.0, 0.0, 449.0]])
    found = questions.next_items(theta, ["0"])
    assert found.items["rate"].tolist() == [np.inf, np.inf]
    share = 1 / (1 + np.exp(-1))
    assert found.items["probability"].tolist() == pytest.approx([share, 1 - share])
    assert found.items["share"].tolist() == pytest.approx([share, 1 - share])
    assert found.observed_first == 0.0
    rare = questions.next_items(theta.T - 2 * np.diag(np.diagonal(theta)), ["1", "2"])
    assert rare.items["probability"].tolist() == pytest.approx([1.0])
    never = questions.next_items(np.full((2, 2), -500.0), ["0"])
    assert never.observed_first == 1.0
    assert never.items["share"].tolist() == pytest.approx([1.0])


# --- Within a time --------------------------------------------------------------------------------


@given(cases(), st.sampled_from([0.01, 0.4, 2.0, 10.0]))
@quick
def test_items_within_a_time(case, time):
    theta, state = case
    found = questions.items_within(theta, time, labels(state), draws=20_000, random_state=1)
    truth = present_at(theta, state, time)
    assert sorted(found.index) == labels(j for j in range(len(theta)) if j not in state)
    assert found["probability"].is_monotonic_decreasing
    for item, row in found.iterrows():
        # A simulated value may be off by 5.5 standard errors.
        error = 1e-9 if row["method"] == "exact" else 5.5 * row["se"]
        assert row["probability"] == pytest.approx(truth[int(item)], abs=error, rel=1e-9)
    exact = (found["method"] == "exact").all()
    assert exact == (found["se"].sum() == 0)
    assert found.attrs == ({"draws": 0, "seed": None} if exact else {"draws": 20_000, "seed": 1})


def test_items_within_grow_with_time_from_nothing_to_all():
    theta = reference.random_theta(np.random.default_rng(1), 5)
    before = np.zeros(5)
    for time in (0, 0.01, 0.1, 1.0, 10.0, 100.0):
        found = questions.items_within(theta, time).loc[labels(range(5)), "probability"].to_numpy()
        assert (found >= before).all()
        before = found
    assert (questions.items_within(theta, 0)["probability"] == 0).all()
    late = questions.items_within(theta, 1e6, draws=1000, random_state=1)
    assert (late["probability"] == 1).all()
    alone = questions.items_within(np.diag([0.0, -3.0]), 1e300)
    assert alone["probability"].tolist() == [1.0, 1.0]


def test_time_zero_with_rates_beyond_doubles():
    theta = np.array([[400.0, 400.0], [400.0, 400.0]])
    assert questions.items_within(theta, 0, ["0"])["probability"].tolist() == [0.0]
    assert questions.items_within(theta, 1e-3, ["0"])["probability"].tolist() == [1.0]


def test_simulation_is_right_within_calibrated_errors(monkeypatch):
    monkeypatch.setattr(next_item, "_MAX_LATTICE_ITEMS", 0)
    theta = reference.random_theta(np.random.default_rng(2), 5)
    truth = present_at(theta, [1], 0.8)
    z = []
    for seed in range(40):
        found = questions.items_within(theta, 0.8, ["1"], draws=2_000, random_state=seed)
        assert (found["method"] == "simulation").all()
        z.append(
            [(found.loc[j, "probability"] - truth[int(j)]) / found.loc[j, "se"] for j in "0234"]
        )
    # The mean of z^2 over 40 seeds has a standard deviation of 0.22. It may be off by five of
    # these.
    assert np.all(np.abs(np.mean(np.square(z), axis=0) - 1) < 1.1)
    assert np.abs(z).max() < 5.5


def test_beyond_the_budget_is_simulated_and_target_is_reached():
    theta = reference.random_theta(np.random.default_rng(3), 6)
    theta[:, 5], theta[5, :] = 0.0, 0.0
    tiny = Budget(work=1.0)
    found = questions.items_within(theta, 1.0, budget=tiny, target_se=0.002, random_state=1)
    assert found["method"].to_dict() == {**dict.fromkeys("01234", "simulation"), "5": "exact"}
    assert found["se"].max() <= 0.002
    assert found.loc["5", "se"] == 0
    assert found.loc["5", "probability"] == pytest.approx(1 - np.exp(-1))
    truth = present_at(theta, [], 1.0)
    for item, row in found.iterrows():
        assert row["probability"] == pytest.approx(truth[int(item)], abs=6 * row["se"] + 1e-12)
    one, two = (
        questions.items_within(theta, 1.0, budget=tiny, draws=9_000, random_state=1, n_threads=n)
        for n in (1, 2)
    )
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_blocks_do_not_matter_to_each_other():
    rng = np.random.default_rng(4)
    a, b = reference.random_theta(rng, 3), reference.random_theta(rng, 3)
    both = np.block([[a, np.zeros((3, 3))], [np.zeros((3, 3)), b]])
    alone = questions.items_within(a, 0.7, ["1"])
    beside = questions.items_within(both, 0.7, ["1", "4"], items=["0", "2"])
    assert beside["probability"].to_dict() == pytest.approx(
        alone["probability"].to_dict(), rel=1e-12
    )


def test_some_items_by_name():
    theta = reference.random_theta(np.random.default_rng(5), 4)
    model = Model(theta, list("abcd"))
    all_of_them = questions.items_within(model, 1.0, {"b"})
    some = questions.items_within(model, 1.0, [False, True, False, False], items=["d", "a"])
    assert set(some.index) == {"a", "d"}
    assert some["probability"].to_dict() == all_of_them.loc[["a", "d"], "probability"].to_dict()
    order = [2, 0, 3, 1]
    turned = Model(theta[np.ix_(order, order)], ["c", "a", "d", "b"])
    again = questions.items_within(turned, 1.0, {"b"})["probability"]
    assert again.to_dict() == pytest.approx(all_of_them["probability"].to_dict(), rel=1e-11)
    assert len(questions.items_within(model, 1.0, list("abcd"))) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: questions.next_items(m, "a"), "state is the text 'a'; expected a list"),
        (lambda m: questions.next_items(m, ["x"]), "no item 'x'"),
        (lambda m: questions.items_within(m, -1), "time is -1; expected a finite number"),
        (lambda m: questions.items_within(m, np.inf), "time is inf; expected a finite number"),
        (lambda m: questions.items_within(m, np.nan), "time is nan; expected a finite number"),
        (lambda m: questions.items_within(m, "1"), "time is '1'; expected a finite number"),
        (lambda m: questions.items_within(m, True), "time is True; expected a finite number"),
        (lambda m: questions.items_within(m, 1, ["a"], items=["b", "a"]), "items has 'a', which"),
        (lambda m: questions.items_within(m, 1, items="ab"), "items is the text 'ab'; expected"),
        (lambda m: questions.items_within(m, 1, budget=1), "budget is 1; expected"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call(Model(np.zeros((3, 3)), ["a", "b", "c"]))
