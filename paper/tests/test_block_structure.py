"""The quick form of figure 11: the block, its curve, and the curves of randomly sorted items."""

import numpy as np
import pandas as pd
import pytest

from learning.problems import l1, real_data
from sequela import evaluate
from sequela_paper import Settings, make
from sequela_paper.block_structure import judge, shares_within
from sequela_paper.sources import glioblastoma


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper") / "fig11"
    settings = Settings(quick=True, data=real_data())
    return make("fig11", settings, folder, backend="threads", workers=1)


@pytest.fixture(scope="module")
def read(made):
    return {path.stem: pd.read_csv(path) for path in made.files if path.suffix == ".csv"}


def theta_of(read):
    items = read["fig11_items"]
    theta = np.diag(items["log_rate"].to_numpy())
    for one in read["fig11"].itertuples():
        theta[one.from_place - 1, one.to_place - 1] = one.effect
    return theta


def test_files(made):
    names = {path.name for path in made.files}
    assert {f"fig11.{suffix}" for suffix in ("csv", "svg", "pdf", "png", "json")} <= names


def test_theta_has_the_objective_that_is_stated(made, read):
    data = glioblastoma(str(real_data())).most_frequent(50)
    assert tuple(read["fig11_items"]["item"]) == data.items
    np.testing.assert_allclose(read["fig11_items"]["frequency"], data.frequencies)
    found = evaluate(theta_of(read), data, gradient=False, random_state=3)
    fit = read["fig11_fit"].iloc[0]
    error = np.hypot(found.value_se, fit["objective_se"])
    assert fit["converged"]
    apart = abs(found.value - l1(theta_of(read), 0.01) - fit["objective"])
    # If no set is sampled, `error` is 0.
    assert apart <= max(5.0 * error, 1e-9)
    assert made.verdict.numbers["objective"] == pytest.approx(-12.693, abs=0.01)


def test_the_curve_and_the_block(made, read):
    sizes = np.abs(theta_of(read))
    np.fill_diagonal(sizes, 0.0)
    shares = [sizes[:b, :b].sum() / sizes.sum() for b in range(1, 51)]
    np.testing.assert_allclose(read["fig11_curve"]["share"], shares, atol=1e-12)
    block = next(b for b in range(1, 51) if sizes[:b, :b].sum() >= 0.9 * sizes.sum())
    numbers = made.verdict.numbers
    assert numbers["block"] == block
    assert numbers["interactions"] == np.count_nonzero(sizes)
    silent = (sizes.sum(axis=0) + sizes.sum(axis=1) == 0).sum()
    assert numbers["items_without_interactions"] == silent
    assert made.verdict.holds is True
    assert f"between the {block} most frequent" in made.verdict.text


def test_random_orders_are_far_from_it(made, read):
    curve = read["fig11_curve"]
    assert (curve["random_low"] <= curve["random_median"]).all()
    assert (curve["random_median"] <= curve["random_high"]).all()
    assert curve["share"][19] > curve["random_high"][19]
    assert made.verdict.numbers["block"] < made.verdict.numbers["random_smallest_block"]


def test_shares_within_any_order():
    rng = np.random.default_rng(1)
    sizes = np.where(rng.random((12, 12)) < 0.2, rng.random((12, 12)), 0.0)
    np.fill_diagonal(sizes, 0.0)
    for _ in range(5):
        order = rng.permutation(12)
        moved = sizes[np.ix_(order, order)]
        expected = [moved[:b, :b].sum() / sizes.sum() for b in range(1, 13)]
        np.testing.assert_allclose(shares_within(sizes, order), expected, atol=1e-12)
    mean = np.mean([shares_within(sizes, rng.permutation(12)) for _ in range(4000)], axis=0)
    b = np.arange(1, 13)
    np.testing.assert_allclose(mean, b * (b - 1) / (12 * 11), atol=0.02)


def test_spread_interactions_are_no_block(read):
    """If the interacting items are not the most frequent items, the claim is not confirmed.

    For this, the numbers of the items are permuted, and the effects stay the same.
    """
    rng = np.random.default_rng(2)
    place = rng.permutation(50)
    table = read["fig11"].copy()
    for column in ("from_place", "to_place"):
        table[column] = place[table[column] - 1] + 1
    sizes = np.zeros((50, 50))
    sizes[table["from_place"] - 1, table["to_place"] - 1] = table["effect"].abs()
    curve = read["fig11_curve"].assign(share=shares_within(sizes, np.arange(50)))
    verdict = judge({**read, "fig11": table, "fig11_curve": curve})
    assert verdict.holds is False
