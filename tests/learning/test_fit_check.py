"""Test `check_fit`, which tests whether a model describes its data."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from sequela import Dataset, InputError, SetChain, example_theta, simulate
from sequela.questions import check_fit

N = 8


def theta_of(seed):
    rng = np.random.default_rng(seed)
    theta = rng.normal(0.0, 1.0, (N, N)) * (rng.random((N, N)) < 0.2)
    np.fill_diagonal(theta, rng.uniform(-2.0, -0.5, N))
    return theta


def at_times(theta, times, rng):
    """Simulate a set at each of the given observation times, by a slow method."""
    values = np.zeros((len(times), len(theta)), dtype=bool)
    for row, end in zip(values, times, strict=True):
        t = 0.0
        while not row.all():
            rates = np.where(
                row, 0.0, np.exp(np.diag(theta) + row @ (theta - np.diag(np.diag(theta))))
            )
            t += rng.exponential(1.0 / rates.sum())
            if t > end:
                break
            row[rng.choice(len(theta), p=rates / rates.sum())] = True
    return values


def test_the_right_model_is_rarely_doubted():
    """The right model is rejected for at most 4 of 20 data sets.

    At the level of 5%, more than 4 rejections have a probability of 0.3%. The seed is fixed.
    """
    model = theta_of(0)
    data = simulate(model, 20 * 100, random_state=1).to_dataset().values
    doubted = sum(
        not check_fit(model, data[k * 100 : (k + 1) * 100], random_state=k).fits for k in range(20)
    )
    assert doubted <= 4


@pytest.mark.parametrize("seed", range(2))
def test_a_fixed_time_is_noticed(seed):
    rng = np.random.default_rng(seed)
    values = at_times(theta_of(seed), np.ones(400), rng)
    learner = SetChain(0.01, random_state=1).fit(values)
    check = learner.misfit_
    assert not check.fits
    assert any("no item" in finding and "Gamma" in finding for finding in check.findings)
    # The advice to use another kind of observation time says how to check orders with this kind.
    assert any("order_ranges and sequela.posterior are not available" in x for x in check.findings)
    assert check is learner.misfit_


def test_a_few_very_large_sets_are_noticed():
    rng = np.random.default_rng(5)
    theta = np.diag(np.full(20, -2.5))
    values = at_times(theta, rng.exponential(size=400), rng)
    values[:12] = rng.random((12, 20)) < 0.9
    check = SetChain(0.02, random_state=1).fit(values).misfit_
    assert any("Hypermutated" in finding for finding in check.findings)
    row = check.table.set_index("name").loc["large sets"]
    assert row["observed"] > row["expected"] + 5


def test_items_that_exclude_each_other_are_noticed_if_the_model_cannot_know():
    rng = np.random.default_rng(3)
    values = rng.random((500, 2)) < 0.5
    values[:, 1] &= ~values[:, 0]
    independent = np.diag(np.log([0.9, 0.4]))
    check = check_fit(independent, values, random_state=1)
    assert any("together less often" in finding for finding in check.findings)


def test_items_that_exclude_each_other_are_noticed_in_a_large_data_set():
    """Only the test of pairs has a finding, because few sets change."""
    model = np.diag([-2.0, -2.0, *np.full(38, -3.0)])
    values = simulate(model, 4500, random_state=1).to_dataset().values.copy()
    values[:, 1] &= ~values[:, 0]
    check = check_fit(model, values, random_state=1)
    p = check.table.set_index("name")["p"]
    assert p["pairs"] <= 0.01 / len(p)
    assert [finding[:32] for finding in check.findings] == ["0 and 1 occur together less ofte"]


@pytest.mark.parametrize(
    ("shape", "level"), [((400, 6), 0.01), ((400, 6), 0.004), ((5000, 40), 0.01)]
)
def test_every_test_can_have_a_finding(shape, level):
    """All samples have all items, so no simulated data set is as far from the model as the data.

    Then the p-value of each of the five tests must be at most a fifth of the level.
    """
    check = check_fit(np.diag(np.full(shape[1], -3.0)), np.ones(shape), level=level)
    names = check.table["name"].tolist()
    assert names == ["set sizes", "empty sets", "large sets", "pairs", "triples"]
    assert (check.table["p"] <= level / 5 + 1e-12).all()
    assert check.data_sets == {0.01: 999, 0.004: 2499}[level]


def test_the_same_seed_gives_the_same_result_for_any_number_of_threads():
    values = simulate(theta_of(1), 300, random_state=3).to_dataset().values
    one, two = (check_fit(theta_of(2), values, random_state=4, n_threads=k) for k in (1, 2))
    assert one == two
    assert json.loads(json.dumps(one.to_json()))["data_sets"] == 999


def test_known_times_are_left_out():
    data = Dataset(np.ones((5, 3), dtype=bool), times=[1.0, 2.0, np.nan, np.nan, np.nan])
    assert check_fit(np.zeros((3, 3)), data, random_state=1).samples == 3
    timed = Dataset(np.ones((2, 3), dtype=bool), times=[1.0, 2.0])
    check = check_fit(np.zeros((3, 3)), timed, random_state=1)
    assert check.fits
    assert check.tests == ()
    assert check.table.empty


def test_missing_cells_are_missing_from_the_simulated_data_sets_too():
    drawn = simulate(theta_of(1), 300, random_state=7).to_dataset().values.astype(float)
    drawn[:150, :5] = np.nan
    check = check_fit(theta_of(1), drawn, random_state=1)
    assert check.fits
    assert check.samples == 300
    absent = np.nan_to_num(drawn)
    assert not check_fit(theta_of(1), absent, random_state=1).fits


def panel_study(seed, size):
    """Return samples of the model `theta_of(seed % 3)`, each with one of three panels of items."""
    rng = np.random.default_rng(seed)
    panels = np.zeros((3, N), dtype=bool)
    panels[1, :4] = panels[2, 3:] = True
    data = simulate(theta_of(seed % 3), size, random_state=seed).to_dataset().without_times()
    return data.with_missing(panels[rng.integers(3, size=size)])


def test_the_right_model_is_rarely_doubted_if_samples_have_different_panels():
    """At the level of 5%, more than 4 rejections of 20 have a probability of 0.3%."""
    checks = [
        check_fit(theta_of(k % 3), panel_study(k, 80), level=0.05, random_state=k)
        for k in range(20)
    ]
    assert sum(not check.fits for check in checks) <= 4
    assert {check.samples for check in checks} == {80}
    # The p-values of each test are not systematically small.
    for name in ("set sizes", "empty sets", "pairs"):
        p = np.array([check.table.set_index("name").loc[name, "p"] for check in checks])
        assert p.mean() > 0.3


def test_only_known_cells_are_counted():
    data = panel_study(4, 200)
    table = check_fit(theta_of(1), data, random_state=1).table.set_index("name")
    assert table.loc["empty sets", "observed"] == (~data.values.any(axis=1)).sum()
    names = [data.items.index(label) for label in table.loc["pairs", "about"].split(" and ")]
    assert table.loc["pairs", "observed"] == data.values[:, names].all(axis=1).sum()
    known = ~data.missing[:, names].any(axis=1)
    p = simulate(theta_of(1), 200_000, random_state=2).to_dataset().values[:, names]
    expected = known.sum() * p.all(axis=1).mean()
    assert table.loc["pairs", "expected"] == pytest.approx(expected, rel=0.1)


def test_a_sample_without_missing_cells_is_tested_like_complete_data():
    values = simulate(theta_of(1), 300, random_state=3).to_dataset().values
    same = Dataset(values).with_missing(np.zeros_like(values))
    one, two = (check_fit(theta_of(2), given, random_state=4) for given in (values, same))
    assert one == two


def test_cells_that_are_missing_because_of_their_value_are_noticed():
    """Item 0 is known only in samples that have it, so the cells are not missing at random."""
    data = simulate(theta_of(0), 500, random_state=3).to_dataset().without_times()
    missing = np.zeros(data.values.shape, dtype=bool)
    missing[~data.values[:, 0], 0] = True
    check = check_fit(theta_of(0), data.with_missing(missing), random_state=1)
    assert not check.fits
    assert "missing for a reason that has to do with their values" in check.findings[-1]
    assert any("among their known cells" in finding for finding in check.findings)
    complete = check_fit(np.diag(np.full(N, -4.0)), data, random_state=1)
    assert not any("known cells" in finding for finding in complete.findings)


def test_one_item_and_one_sample_are_enough():
    assert check_fit([[0.0]], [[True]], random_state=1).samples == 1


def test_a_pickled_learner_keeps_no_samples():
    values = simulate(example_theta(), 100, random_state=1).to_dataset().without_times()
    learner = SetChain(0.05, random_state=1).fit(values)
    again = pickle.loads(pickle.dumps(learner))  # noqa: S301 - our own bytes
    with pytest.raises(InputError, match="check_fit"):
        _ = again.misfit_
    assert again.model_.n_items == 10


@pytest.mark.parametrize("level", [5, 0.0, 0.0009, float("nan")])
def test_a_level_outside_of_its_range_is_refused(level):
    with pytest.raises(InputError, match=f"level is {level}; expected a number from 0.001 to 1"):
        check_fit([[0.0]], [[True]], level=level)
