"""The range of orders that the data allow: compare with brute force. Also baseline and limits."""

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from sequela import (
    Dataset,
    InputError,
    Model,
    SetChain,
    Settings,
    fit,
    log_likelihood,
    order_probability,
    simulate,
)
from sequela.learning.refitting import PRIOR_SD, WarmFits
from sequela.learning.solvers.contract import Limits
from sequela.questions import order_baseline, order_ranges, two_item_family
from sequela.questions.order_paths import Point, range_of
from sequela.questions.order_profile import HeldFits, move_order, order_log_odds

COUNTS = {(0, 0): 160, (1, 0): 80, (0, 1): 20, (1, 1): 140}
PAIR = Dataset([list(s) for s, count in COUNTS.items() for _ in range(count)], items=["a", "b"])


@pytest.fixture(scope="module")
def clocked():
    """Return data of ten items: item 0 promotes item 1, and the others are clock items."""
    theta = np.diag([0.0, -4.0] + 8 * [0.0])
    theta[0, 1] = 4.0
    return simulate(theta, 1000, random_state=1).to_dataset().without_times()


@pytest.fixture(scope="module")
def learner(clocked):
    return SetChain(0.02, random_state=1).fit(clocked)


@pytest.mark.parametrize("penalty", [0.001, 0.02])
def test_two_items_alone_cannot_tell(penalty):
    check = order_ranges(fit(PAIR, penalty=penalty), PAIR, random_state=1)
    row = check.table.iloc[0]
    assert row["low"] < 0.3
    assert row["high"] > 0.95
    assert row["verdict"] == "the data cannot tell"
    assert row["evidence"] < 2.0


def test_range_of_two_items_is_the_profile_by_brute_force():
    """Compare the range of an order with a profile of the log-likelihood.

    A probability of the order is in the range if the best model that has this probability is within
    two nats of the best model. By Proposition 1, the probabilities of the sets determine a family
    of models of two items. The number `share` (from 0 to 1) selects a model of the family, and with
    it the probability of the order. So the profile at a share is a maximum over the three free
    probabilities of the sets.
    """

    def profile(share):
        def loss(logits):
            p = np.exp(np.append(logits, 0.0))
            p /= p.sum()
            family = two_item_family(*p[:3])
            low, high = family.interval
            theta = family.theta(low + share * (high - low))
            fits = sum(c * np.log(q) for c, q in zip(COUNTS.values(), p, strict=True))
            return -fits + 0.5 * (theta[0, 1] ** 2 + theta[1, 0] ** 2) / PRIOR_SD**2

        start = np.log(np.array(list(COUNTS.values())[:3]) / COUNTS[1, 1])
        options = {"xatol": 1e-7, "fatol": 1e-7, "maxiter": 4000}
        return -minimize(loss, start, method="Nelder-Mead", options=options).fun

    row = order_ranges(fit(PAIR, penalty=0.01), PAIR, random_state=1).table.iloc[0]
    sign = 1.0 if row["first"] == "a" else -1.0

    def share(p):
        return p if sign > 0 else 1.0 - p

    shares = np.linspace(0.02, 0.98, 49)
    values = np.array([profile(s) for s in shares])
    best = values.max()
    allowed = shares[best - values <= 2.0]
    ends = sorted([share(row["low"]), share(row["high"])])
    assert ends == pytest.approx([allowed.min(), allowed.max()], abs=0.03)
    sides = [values[shares > 0.5].max(), values[shares < 0.5].max()]
    assert sign * row["evidence"] == pytest.approx(sides[0] - sides[1], abs=0.1)


def test_a_clock_excludes_the_wrong_order(learner, clocked):
    check = order_ranges(learner, clocked, pairs=[("1", "0")], random_state=1)
    row = check.table.iloc[0]
    assert (row["first"], row["second"]) == ("0", "1")
    assert row["low"] > 0.5
    assert row["evidence"] > 2.0
    assert row["low"] <= row["probability"] <= row["high"]
    assert row["verdict"] == "the data can tell"
    assert row["baseline"] == "agrees"
    assert check.moves == 0
    assert check.model == learner.model_
    assert check.sentences() == [
        f"0 before 1: {row['probability']:.2f}; the data allow {row['low']:.2f} to "
        f"{row['high']:.2f} (the data can tell)"
    ]


def penalised(theta, data, penalty):
    """Return the penalised log-likelihood, summed over all samples."""
    off = np.abs(theta).sum() - np.abs(np.diag(theta)).sum()
    return len(data) * (float(log_likelihood(Model(theta, data.items), data)) - penalty * off)


def test_a_reversed_model_is_replaced_by_the_better_one(learner, clocked):
    theta = move_order(learner.theta_, 0, 1, -2.0)
    bad = Model(theta, learner.model_.items, {"penalty": 0.02})
    check = order_ranges(bad, clocked, pairs=[("0", "1")], random_state=1)
    assert check.moves >= 1
    values = [penalised(t, clocked, 0.02) for t in (check.model.theta, theta, learner.theta_)]
    assert values[0] - values[1] == pytest.approx(check.gain, abs=1e-6)
    assert check.gain > 1.0
    assert values[0] >= values[2] - 0.01
    assert check.table["first"].tolist() == ["0"]


def test_threads_do_not_change_a_bit(learner, clocked):
    one, two = (
        order_ranges(learner, clocked, max_pairs=2, random_state=3, n_threads=threads)
        for threads in (1, 2)
    )
    assert one.table.equals(two.table)
    assert one.evaluations == two.evaluations


def test_pairs_beyond_the_work_are_named_as_not_checked(learner, clocked):
    check = order_ranges(
        learner, clocked, pairs=[("0", "1"), ("2", "3")], max_evaluations=1, random_state=1
    )
    assert check.table["checked"].tolist() == [False, False]
    assert set(check.table["verdict"]) == {"not checked"}
    assert check.table[["low", "high", "evidence"]].isna().all(axis=None)
    assert check.sentences() == []


def test_pairs_of_an_item_with_a_missing_cell_are_checked():
    """Pairs of an item with a missing cell must be checked. Once they were left out silently."""
    table = PAIR.to_frame().astype(float)
    table.iloc[0, 0] = np.nan
    data = Dataset(table)
    check = order_ranges(fit(data, penalty=0.01), data, random_state=1)
    assert check.table[["first", "second"]].to_numpy().tolist() in ([["a", "b"]], [["b", "a"]])
    assert check.table["checked"].all()


def test_no_interactions_no_rows():
    data = Dataset([[0, 0], [1, 0], [0, 1], [1, 1]], items=["a", "b"])
    check = order_ranges(fit(data, penalty=1.0), data)
    assert check.table.empty
    assert check.table.columns[:8].tolist() == [
        "first", "second", "probability", "low", "high", "evidence", "baseline", "verdict",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"within": 0.0}, "within"),
        ({"within": "two"}, "within"),
        ({"pairs": ["ab"]}, "pair"),
        ({"pairs": [("a", "z")]}, "'z'"),
        ({"max_pairs": 0}, "max_pairs"),
        ({"max_evaluations": 0}, "max_evaluations"),
        ({"penalty": -1.0}, "penalty"),
        ({"tol": 0.0}, "tol"),
    ],
)
def test_bad_input_is_named(wrong, named):
    with pytest.raises(InputError, match=named):
        order_ranges(Model(np.eye(2), ["a", "b"]), PAIR, **wrong)


finite = st.floats(-3.0, 3.0)


@given(st.lists(finite, min_size=4, max_size=4), st.floats(0.2, 5.0))
def test_gradient_of_the_log_odds_by_differences(entries, rate):
    theta = np.array(entries).reshape(2, 2)
    _, gradient = order_log_odds(theta, 0, 1, rate)
    for place, part in zip([(0, 0), (1, 1), (0, 1), (1, 0)], gradient, strict=True):
        step = np.zeros((2, 2))
        step[place] = 1e-5
        up, down = (order_log_odds(theta + s, 0, 1, rate)[0] for s in (step, -step))
        assert (up - down) / 2e-5 == pytest.approx(part, abs=1e-6)


@given(st.lists(finite, min_size=4, max_size=4), st.floats(-3.0, 3.0))
def test_a_moved_pair_has_the_log_odds_and_the_sets_of_the_family(entries, target):
    theta = np.array(entries).reshape(2, 2)
    moved = move_order(theta, 0, 1, target)
    assert order_log_odds(moved, 0, 1)[0] == pytest.approx(target, abs=1e-6)
    back = move_order(moved, 0, 1, order_log_odds(theta, 0, 1)[0])
    if abs(order_log_odds(theta, 0, 1)[0]) < 4.0:
        np.testing.assert_allclose(back, theta, atol=1e-5)


points = st.builds(Point, st.floats(0.01, 0.99), st.floats(0.0, 20.0))


@given(st.lists(st.lists(points, min_size=1, max_size=5), max_size=4), st.floats(0.1, 5.0))
def test_ranges_hold_all_allowed_points_and_grow(paths, within):
    paths = [*paths, [Point(0.7, 0.0)]]
    low, high, evidence = range_of(paths, within)
    for path in paths:
        for point in path:
            assert point.drop > within or low <= point.probability <= high
    wide_low, wide_high, same = range_of(paths, 2.0 * within)
    assert wide_low <= low + 1e-9
    assert wide_high >= high - 1e-9
    assert same == evidence
    assert evidence >= 0.0


def test_baseline_is_the_mean_size_by_hand():
    sets = [{"a"}, {"a", "b"}, {"b", "c", "a"}, {"c"}]
    table = order_baseline(sets).set_index("item")
    assert table["mean_size"].to_dict() == {"a": 2.0, "b": 2.5, "c": 2.0}
    assert table["samples"].to_dict() == {"a": 3, "b": 2, "c": 2}


def test_the_default_check_is_limited_by_the_predicted_time_of_its_evaluations(monkeypatch):
    module = importlib.import_module("sequela.questions.order_ranges")
    theta = np.diag([0.0, -4.0, -1.0])
    theta[0, 1] = 4.0
    sets = simulate(theta, 300, random_state=1).to_dataset().without_times()
    learner = fit(sets, penalty=0.02)
    free = order_ranges(learner, sets, random_state=1)
    monkeypatch.setattr(module, "_LEAST_SECONDS", 1e-9)
    monkeypatch.setattr(module, "_MOST_SECONDS", 1e-9)
    short = order_ranges(learner, sets, random_state=1)
    assert free.table["checked"].all()
    assert not short.table["checked"].any()
    assert short.evaluations < free.evaluations


@pytest.mark.parametrize("seed", [1, 2])
def test_the_search_gives_the_ranges_of_a_slow_search(seed, monkeypatch):
    """Compare with a slow search.

    The slow search has short steps and precise fits, and its paths do not end at other paths.
    """
    paths = importlib.import_module("sequela.questions.order_paths")
    profile = importlib.import_module("sequela.questions.order_profile")
    rng = np.random.default_rng(seed)
    theta = np.diag(rng.normal(-1.0, 1.0, 6))
    theta[0, 1], theta[2, 3], theta[3, 4], theta[1, 4] = 2.5, 2.0, 1.5, -1.5
    sets = simulate(theta, 400, random_state=seed).to_dataset().without_times()
    learner = SetChain(0.01, random_state=1).fit(sets)
    quick = order_ranges(learner, sets, random_state=1, max_pairs=4)
    slow_constants = {
        paths: {"_STEP": 0.2, "_LONGEST": 0.2, "_SHORTEST": 0.2, "_MOST_STEPS": 60, "_APART": -1.0},
        profile: {"_LEAST_GAIN": 1e-4, "_STEEPEST": 0.01, "_STEEPEST_HELD": 0.01,
                  "_NEAR_ENTRIES": -1.0},
    }  # fmt: skip
    for module, constants in slow_constants.items():
        for name, value in constants.items():
            monkeypatch.setattr(module, name, value)
    slow = order_ranges(learner, sets, random_state=1, max_pairs=4, max_evaluations=10**6)
    assert quick.evaluations < 0.5 * slow.evaluations
    assert quick.table["verdict"].tolist() == slow.table["verdict"].tolist()
    np.testing.assert_allclose(quick.table["evidence"], slow.table["evidence"], atol=0.15)
    # Every end of a range belongs to a model that was found. So a wider range is a better one. With
    # seed 1, the quick search finds an end at 0.81, and the slow search only one at 0.60.
    for narrower in (
        quick.table["low"] - slow.table["low"],
        slow.table["high"] - quick.table["high"],
    ):
        assert (narrower < 0.04).all()


def test_a_probability_is_that_of_the_order_matrix(clocked, learner):
    held = HeldFits(
        WarmFits(clocked, learner.model_.observation, Settings(random_state=1), Limits(1e-4, 50)),
        0.02,
        Settings(random_state=1),
    )
    wanted = order_probability(learner.model_, "0", "1")
    assert held.probability(learner.theta_, (0, 1)) == pytest.approx(float(wanted), abs=1e-12)
    assert held.probability(learner.theta_, (1, 0)) == pytest.approx(1.0 - float(wanted), abs=1e-12)
