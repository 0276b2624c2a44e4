"""Goodness of fit: the counts are correct, and z has variance 1 if data are from the model."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import reference
from questions.enumeration import observed
from sequela import InputError, Model, questions, simulate
from sequela.budget import Budget
from sequela.settings import Settings

ITEMS = list("abcde")


def make_model(seed=1, rate=1.0):
    theta = reference.random_theta(np.random.default_rng(seed), 5, scale=0.8)
    return observed(theta, rate, ITEMS)


def data_of(model, size, seed):
    return simulate(model, size, random_state=seed).to_dataset()


def test_observed_counts_and_exact_expectations():
    model = make_model(rate=0.5)
    data = data_of(model, 300, 1)
    found = questions.goodness_of_fit(model, data, draws=200_000, random_state=2)
    assert (found.draws, found.seed) == (200_000, 2)
    assert found.sizes["observed"].tolist() == np.bincount(data.set_sizes, minlength=6).tolist()
    assert found.sizes["observed"].sum() == 300
    assert found.sizes["expected"].sum() == pytest.approx(300)
    assert found.items["observed"].tolist() == data.values.sum(axis=0).tolist()
    p = reference.set_distribution(model.theta, 0.5)
    has = np.arange(32)[:, None] >> np.arange(5) & 1
    sizes = [p[has.sum(axis=1) == size].sum() for size in range(6)]

    def agrees(table, truth):
        # About twenty expected numbers are compared. Each may be off by five standard errors of the
        # simulation.
        assert np.all(np.abs(table["expected"] - 300 * np.asarray(truth)) < 5 * table["se"])
        share = np.asarray(truth)
        z = (table["observed"] / 300 - share) / np.sqrt(share * (1 - share) / 300)
        np.testing.assert_allclose(table["z"], z, atol=0.25)

    agrees(found.sizes, sizes)
    agrees(found.items, p @ has)
    pairs = found.pairs.set_index(["a", "b"])
    assert len(pairs) == 10
    for (i, a), (j, b) in itertools.combinations(enumerate(ITEMS), 2):
        both = (data.values[:, i] & data.values[:, j]).sum()
        assert pairs.loc[(a, b), "observed"] == both
        agrees(pairs.loc[[(a, b)]], [p[has[:, i] * has[:, j] == 1].sum()])
    assert found.pairs["z"].abs().is_monotonic_decreasing


def test_own_data_have_z_of_unit_spread():
    model = make_model(2)
    items, sizes, pairs = [], [], []
    for seed in range(40):
        found = questions.goodness_of_fit(
            model, data_of(model, 200, seed), draws=4_000, random_state=1000 + seed
        )
        items.append(found.items["z"].to_numpy())
        sizes.append(found.sizes["z"].to_numpy())
        pairs.append(found.pairs.sort_values(["a", "b"])["z"].to_numpy())
    for z in (np.array(items), np.array(sizes), np.array(pairs)):
        # The mean of z^2 over 40 seeds has a standard deviation of 0.22, or slightly more for rare
        # events.
        assert np.all(np.abs(np.mean(z**2, axis=0) - 1) < 1.1)
        assert np.mean(z**2) == pytest.approx(1, abs=0.4)
        assert np.abs(z.mean(axis=0)).max() < 0.8


def test_a_wrong_model_is_found_out():
    model = make_model(3)
    data = data_of(model, 2_000, 1)
    slower = Model(model.theta - 0.7 * np.eye(5), ITEMS)
    found = questions.goodness_of_fit(slower, data, draws=20_000, random_state=1)
    assert (found.items["z"] > 5).any()
    assert found.sizes["z"].abs().max() > 5
    # If a model has the right frequencies but no interactions, only pairs of items show that it is
    # wrong.
    strong = np.diag([-0.5, -3.0])
    strong[0, 1] = 4.0
    data = simulate(strong, 2_000, random_state=1).to_dataset()
    p = data.values.mean(axis=0)
    alone = np.diag(np.log(p / (1 - p)))
    found = questions.goodness_of_fit(alone, data, draws=20_000, random_state=1)
    assert found.items["z"].abs().max() < 4
    assert found.pairs["z"].iloc[0] > 5


def test_what_was_never_drawn_is_rare_not_impossible():
    found = questions.goodness_of_fit(
        np.diag([-400.0, 0.0]), [{"0"}, {"1"}, set()], draws=100, random_state=1
    )
    assert np.isfinite(found.items["z"]).all()
    assert found.items.loc["0", "expected"] == 0
    assert found.items.loc["0", "z"] > 2
    assert np.isfinite(found.sizes["z"]).all()


def test_labels_threads_and_a_single_item():
    model = make_model(4)
    data = data_of(model, 100, 1)
    one, two = (
        questions.goodness_of_fit(model, given_as, draws=9_000, random_state=1, n_threads=n)
        for n, given_as in ((1, data), (2, data.to_frame()[list("ecbda")]))
    )
    for name in ("sizes", "items", "pairs"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(two, name), check_exact=True)
    single = questions.goodness_of_fit([[0.0]], [[1], [0]], draws=100, random_state=1)
    assert len(single.pairs) == 0
    assert single.sizes["observed"].tolist() == [1, 1]


def test_settings_of_other_questions_do_not_disturb():
    """A `Settings` object gives the same result as the same settings passed one by one.

    A setting that has no effect on a question must have its default value.
    """
    model = make_model()
    data = data_of(model, 50, 1)
    options = {"draws": 500, "random_state": 3}
    one = questions.goodness_of_fit(model, data, **options)
    two = questions.goodness_of_fit(model, data, settings=Settings(**options))
    pd.testing.assert_frame_equal(one.items, two.items, check_exact=True)
    with pytest.raises(InputError, match="budget is not used by this function"):
        questions.goodness_of_fit(model, data, settings=Settings(budget=Budget(work=1.0)))
    with pytest.raises(InputError, match=r"settings is 5; expected a sequela\.Settings"):
        questions.goodness_of_fit(model, data, settings=5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 1}, "draws is 1; expected an integer of at least 2"),
        ({"draws": "x"}, "draws is 'x'; expected"),
        ({"target_se": 0.1}, "target_se is not used by this function"),
        ({"random_state": "x"}, "random_state"),
        ({"n_threads": 0}, "n_threads"),
    ],
)
def test_bad_arguments_are_named(options, message):
    model = make_model()
    with pytest.raises(InputError, match=message):
        questions.goodness_of_fit(model, [{"a"}], **options)
    with pytest.raises(InputError, match="are missing"):
        questions.goodness_of_fit(model, [[1, 0]])
