"""Mean positions and arrival times of items over all samples: compare with an enumeration."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from questions.enumeration import observed, position_and_arrival, random_theta, walks
from sequela import BudgetError, InputError, Model
from sequela.budget import Budget
from sequela.questions import item_arrivals

MODEL = Model(random_theta(13, 4, 2.0), ["a", "b", "c", "d"])
MEANS = ["position_mean", "arrival_mean"]
ERRORS = ["position_se", "arrival_se"]


def truth_of(theta, z=1.0):
    found = walks(theta, z)
    rows = []
    for item in range(len(theta)):
        seen = [walk for walk in found if item in walk.sigma]
        share = sum(walk.probability for walk in seen)
        rows.append((share, *position_and_arrival(seen, item)))
    columns = ["observed", "position_mean", "position_sd", "arrival_mean", "arrival_sd"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize(("seed", "n", "z"), [(13, 4, 1.0), (1, 6, 0.4), (2, 2, 3.0)])
def test_within_errors_of_the_enumeration(seed, n, z):
    theta = random_theta(seed, n, 2.0)
    truth = truth_of(theta, z).set_axis([str(i) for i in range(n)])
    found = item_arrivals(observed(theta, z), random_state=1)
    assert found["position_mean"].is_monotonic_increasing
    assert found.attrs == {"draws": 100_000, "seed": 1}
    assert found.index.name == "item"
    found = found.loc[truth.index]
    spread = np.sqrt(truth["observed"] * (1.0 - truth["observed"]) / 100_000)
    assert (np.abs(found["observed"] - truth["observed"]) / spread).max() < 5.0
    for name in ("position", "arrival"):
        gap = np.abs(found[f"{name}_mean"] - truth[f"{name}_mean"])
        assert (gap <= 5.0 * found[f"{name}_se"]).all()
        # Items are observed thousands of times, so standard errors are right to a few per cent.
        np.testing.assert_allclose(found[f"{name}_sd"], truth[f"{name}_sd"], rtol=0.15)
        expected = truth[f"{name}_sd"] / np.sqrt(1e5 * truth["observed"])
        np.testing.assert_allclose(found[f"{name}_se"], expected, rtol=0.15)


def test_errors_are_calibrated():
    truth = truth_of(MODEL.theta).set_axis(list(MODEL.items))
    z = []
    for seed in range(40):
        found = item_arrivals(MODEL, draws=3_000, random_state=seed, n_threads=1).loc[truth.index]
        z.append((found[MEANS] - truth[MEANS]).to_numpy() / found[ERRORS].to_numpy())
    z = np.array(z)
    assert abs(z.mean()) < 0.3
    assert 0.85 < z.std() < 1.15


def test_some_items_in_any_order():
    whole = item_arrivals(MODEL, draws=2_000, random_state=1)
    part = item_arrivals(MODEL, ["d", "b"], draws=2_000, random_state=1)
    pd.testing.assert_frame_equal(part, whole.loc[part.index], check_exact=True)
    assert set(part.index) == {"b", "d"}
    assert part["position_mean"].is_monotonic_increasing


def test_an_item_that_never_comes():
    found = item_arrivals(np.diag([0.0, -40.0]), draws=500, random_state=1)
    assert found.index.tolist() == ["0", "1"]
    assert found.loc["1", "observed"] == 0.0
    assert found.loc["1"].drop("observed").isna().all()
    assert found.loc["0"].notna().all()
    # An item that is observed once has a mean, but no standard error.
    once = item_arrivals(np.diag([-8.0]), draws=3_000, random_state=6)
    assert once.loc["0", "observed"] * 3_000 == pytest.approx(1.0)
    assert once.loc["0", "position_mean"] == 1.0
    assert once.loc["0", ["position_sd", "position_se", "arrival_sd"]].isna().all()
    none = item_arrivals(np.diag([-40.0, -40.0]), draws=500, random_state=1)
    assert (none["observed"] == 0.0).all()
    assert none["position_mean"].isna().all()


def test_target_is_reached_and_can_be_repeated():
    found = item_arrivals(MODEL, target_se=0.006, random_state=5)
    assert 0.004 < found["position_se"].max() <= 0.006
    again = item_arrivals(MODEL, draws=found.attrs["draws"], random_state=found.attrs["seed"])
    pd.testing.assert_frame_equal(found, again, check_exact=True)
    assert found.attrs == again.attrs


def test_targets_out_of_reach():
    with pytest.raises(BudgetError, match="target_se 1e-06 cannot be reached: after 10,000 draws"):
        item_arrivals(MODEL, target_se=1e-6, random_state=5)
    with pytest.raises(BudgetError, match="never observed"):
        item_arrivals(np.diag([-2.0, -40.0]), target_se=0.1, random_state=5)


def test_a_few_sightings_are_not_precise():
    """To reach a target for the standard error, each item must be in enough draws.

    Each item is in about six of 10,000 draws, and is the first item in each of them. So the
    standard error of its position is 0, but this must not end the drawing.
    """
    theta = np.diag([-7.4, -7.4])
    first = item_arrivals(theta, draws=10_000, random_state=1)
    assert (first["observed"] * 10_000).between(2, 19).all()
    assert (first["position_se"] == 0.0).all()
    found = item_arrivals(theta, target_se=0.01, random_state=1)
    assert found.attrs["draws"] > 10_000
    assert (found["observed"] * found.attrs["draws"] >= 20).all()


def test_threads_do_not_change_a_bit():
    one, two = (item_arrivals(MODEL, draws=150_000, random_state=3, n_threads=n) for n in (1, 2))
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_labels_that_look_like_code():
    names = ["=cmd()", "<b>", "c", "d"]
    found = item_arrivals(Model(MODEL.theta, names), ["<b>", "=cmd()"], draws=200, random_state=1)
    assert set(found.index) == {"<b>", "=cmd()"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"items": []}, "items is empty"),
        ({"items": "a"}, r"expected a list of items: \['a'\]"),
        ({"items": ["e"]}, "the model has no item 'e'"),
        ({"draws": 1}, "draws is 1"),
        ({"draws": 5, "target_se": 0.1}, "both given"),
        ({"budget": Budget()}, "budget is not used by this function"),
        ({"n_threads": 0}, "n_threads is 0"),
    ],
)
def test_arguments_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        item_arrivals(MODEL, **options)
