"""Orders that would be opposite if items influenced the observation."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sequela import (
    Exponential,
    Gamma,
    InputError,
    Model,
    ObservationEffects,
    fit,
    order_matrix,
    simulate,
)
from sequela.learning import ObservationComparison, compare_observations, fit_observation_effects
from sequela.questions import EffectsCheck, OrderRanges, Verdict, check_effects

ITEMS = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def data():
    truth = Model(
        np.diag([-0.3, -0.5, -0.2, -0.4]), ITEMS,
        observation=ObservationEffects([1.5, -1.0, 1.0, -1.5]),
    )  # fmt: skip
    return simulate(truth, 400, random_state=1).to_dataset().without_times()


@pytest.fixture(scope="module")
def compared(data):
    return compare_observations(data, [Exponential(), Gamma(3.0), "effects"], random_state=1)


@pytest.fixture(scope="module")
def check(data, compared):
    return check_effects(fit(data, penalty=0.01), data, compared, random_state=1)


def made(behind, opposite=True):
    """Return a check of one pair."""
    p = pd.DataFrame([[np.nan, 0.2], [0.8, np.nan]], ["a", "b"], ["a", "b"])
    table = pd.DataFrame(
        {"first": ["a"], "second": ["b"], "probability": [0.9],
         "with_effects": [0.2 if opposite else 0.8], "opposite": [opposite]}
    )  # fmt: skip
    model = Model(np.zeros((2, 2)), ("a", "b"))
    return EffectsCheck(table, model, p if opposite else p.T, behind, 1.0)


def ranges_of(first, second, verdict=Verdict.CAN_TELL):
    table = pd.DataFrame({"first": [first], "second": [second], "verdict": [verdict.value]})
    return OrderRanges(table, Model(np.zeros((2, 2)), ("a", "b")), 0.0, 0, 2.0, 1)


def test_the_probabilities_are_those_of_the_two_models(data, check):
    model = fit(data, penalty=0.01)
    other = fit_observation_effects(data, 0.01, penalty_kind="l1")
    assert check.model.observation == other.observation
    for each, column in ((model, "probability"), (other, "with_effects")):
        p = order_matrix(each, method="simulation", draws=20_000, random_state=1).probability
        expected = [
            p.loc[a, b] for a, b in zip(check.table["first"], check.table["second"], strict=True)
        ]
        assert check.table[column].to_numpy() == pytest.approx(np.array(expected))
    assert len(check.table) == 6
    assert (check.table["probability"] >= 0.5).all()
    assert (check.table["opposite"] == (check.table["with_effects"] < 0.5)).all()
    # Opposite orders come first. They are sorted by the difference, the largest first.
    assert check.table["opposite"].is_monotonic_decreasing
    json.dumps(check.to_json())


def test_the_held_out_difference_is_that_of_the_comparison(data, compared, check):
    totals = compared.held_out.sum(axis=1)
    assert check.behind == pytest.approx(totals[0] - totals[2])
    alone = check_effects(fit(data, penalty=0.01), data, random_state=1)
    assert (alone.behind, alone.behind_se) == (check.behind, check.behind_se)
    timed = fit(data, penalty=0.01, observation=Gamma(3.0))
    other = check_effects(timed, data, compared, random_state=1)
    assert other.behind == pytest.approx(totals[1] - totals[2])


def test_plausible_effects_of_a_comparison():
    held_out = np.zeros((3, 4))
    kinds = (Exponential(), Gamma(2.0), ObservationEffects([0.5]))
    for behind, plausible in ((1.9, True), (2.1, False), (-3.0, True)):
        held_out[2] = -behind / 4.0
        compared = ObservationComparison(kinds, held_out, 0, 2, 1)
        assert compared.effects_behind == pytest.approx((behind, 0.0))
        assert compared.effects_plausible is plausible
    without = ObservationComparison(kinds[:2], held_out[:2], 0, 2, 1)
    assert without.effects_behind is None
    assert not without.effects_plausible
    assert ObservationComparison(kinds, held_out, 2, 2, 1).effects_behind == (0.0, 0.0)


def test_only_opposite_orders_that_the_data_can_tell_get_the_verdict():
    depends = [Verdict.DEPENDS.value]
    for first, second in (("a", "b"), ("b", "a")):
        opposite = made(1.0, opposite=first == "a")
        assert ranges_of(first, second).with_effects(opposite).table["verdict"].tolist() == depends
        other = made(1.0, opposite=first == "b")
        kept = ranges_of(first, second).with_effects(other).table["verdict"].tolist()
        assert kept == ["the data can tell"]
    for verdict in (Verdict.CANNOT_TELL, Verdict.NOT_CHECKED, Verdict.NOT_TRUSTED):
        kept = ranges_of("a", "b", verdict).with_effects(made(1.0)).table["verdict"].tolist()
        assert kept == [verdict.value]
    clear = ranges_of("a", "b")
    assert clear.with_effects(made(2.5)) is clear


def test_findings_name_the_opposite_orders():
    assert made(2.5).findings == ()
    (said,) = made(-1.5).findings
    assert "predicts new samples better by 1.5 nats" in said
    assert "1 of 1 orders are opposite: for example, a before b (0.90; 0.20 with effects)" in said
    (said,) = made(1.5, opposite=False).findings
    assert "worse by only 1.5 nats" in said
    assert said.endswith("All 1 orders are the same in this model")


def test_wrong_arguments(data, compared):
    model = fit(data, penalty=0.01)
    effects = Model(model.theta, ITEMS, observation=ObservationEffects([0.1, 0.0, 0.0, 0.0]))
    with pytest.raises(InputError, match="model has effects on the observation"):
        check_effects(effects, data)
    with pytest.raises(InputError, match="compared has no observation"):
        check_effects(Model(model.theta, ITEMS, observation=Gamma(7.0)), data, compared)
    without = replace(
        compared, observations=compared.observations[:2], held_out=compared.held_out[:2]
    )
    with pytest.raises(InputError, match="compared has no effects"):
        check_effects(model, data, without)


def test_the_check_does_not_depend_on_the_number_of_threads(data):
    model = fit(data, penalty=0.01)
    one, two = (check_effects(model, data, random_state=1, n_threads=k) for k in (1, 2))
    pd.testing.assert_frame_equal(one.table, two.table, check_exact=True)
    assert one.behind == two.behind
