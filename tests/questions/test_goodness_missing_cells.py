"""Goodness of fit of data with missing cells: only known cells are counted, on both sides."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import reference
from questions.drawn_models import posterior_of
from questions.enumeration import observed
from sequela import Dataset, questions, simulate
from sequela.questions import known_sizes

N = 5
ITEMS = list("abcde")
MODEL = observed(reference.random_theta(np.random.default_rng(1), N, scale=0.8), 1.0, ITEMS)
HAS = (np.arange(32)[:, None] >> np.arange(N) & 1).astype(bool)
# In the third panel, no pair with "e" is known. No sample has known cells of both "d" and "e".
PANELS = np.array([[0, 0, 0, 0, 1], [1, 1, 0, 1, 0], [0, 1, 0, 1, 1]], dtype=bool)


def panel_data(size, seed, model=MODEL, patterns=PANELS):
    """Return simulated samples, each with one of the patterns of missing cells."""
    missing = patterns[np.random.default_rng(seed).integers(len(patterns), size=size)]
    drawn = simulate(model, size, random_state=seed).to_dataset().without_times()
    return drawn.with_missing(missing)


def truth_of(missing, model=MODEL):
    """Return the probabilities of sizes, items and pairs among known cells of each sample."""
    p = reference.set_distribution(model.theta, 1.0)
    known = HAS[None] & ~missing[:, None, :]  # samples x sets x items
    sizes = (known.sum(axis=2)[:, :, None] == np.arange(N + 1)) * p[None, :, None]
    items = np.einsum("msi,s->mi", known, p)
    pairs = np.einsum("msi,msj,s->mij", known.astype(float), known.astype(float), p)
    return sizes.sum(axis=1), items, pairs


def agrees(table, shares):
    """Compare with exact expectations; each may be off by five standard errors."""
    expected = shares.sum(axis=0)
    assert np.all(np.abs(table["expected"] - expected) <= 5 * table["se"])
    variance = (shares * (1 - shares)).sum(axis=0)
    counted = variance > 0
    z = (table["observed"] - expected)[counted] / np.sqrt(variance[counted])
    np.testing.assert_allclose(table["z"][counted], z, atol=0.25)
    assert (table["z"][~counted] == 0.0).all()


@pytest.mark.parametrize("groups", [1, 3])
def test_expected_numbers_are_those_of_an_enumeration(groups, monkeypatch):
    if groups > 1:
        monkeypatch.setattr(known_sizes, "_MOST_SIZES", 200_000)
    data = panel_data(400, 3)
    found = questions.goodness_of_fit(MODEL, data, draws=200_000, random_state=2)
    sizes, items, pairs = truth_of(data.missing)
    longest = len(found.sizes)
    assert sizes[:, longest:].sum() == 0.0
    agrees(found.sizes, sizes[:, :longest])
    agrees(found.items, items)
    assert found.items["observed"].tolist() == data.values.sum(axis=0).tolist()
    assert found.items["known"].tolist() == (~data.missing).sum(axis=0).tolist()
    assert found.sizes["observed"].sum() == 400
    assert found.sizes["expected"].sum() == pytest.approx(400)
    table = found.pairs.set_index(["a", "b"])
    for (i, a), (j, b) in itertools.combinations(enumerate(ITEMS), 2):
        known = ~(data.missing[:, i] | data.missing[:, j])
        assert table.loc[(a, b), "known"] == known.sum()
        assert table.loc[(a, b), "observed"] == (data.values[:, i] & data.values[:, j]).sum()
        agrees(table.loc[[(a, b)]], pairs[:, [i], [j]])
    assert table.loc[("d", "e"), ["known", "observed", "expected", "se", "z"]].tolist() == [0.0] * 5


def test_the_reported_error_is_the_spread_over_seeds():
    data = panel_data(200, 5)
    runs = [questions.goodness_of_fit(MODEL, data, draws=300, random_state=k) for k in range(80)]
    rows = min(len(run.sizes) for run in runs)
    expected = np.array([run.sizes["expected"][:rows] for run in runs])
    se = np.array([run.sizes["se"][:rows] for run in runs])
    # The standard deviation over 80 seeds has a relative error of 8%.
    ratio = expected.std(axis=0, ddof=1) / np.sqrt((se**2).mean(axis=0))
    assert np.all(ratio < 1.4)
    assert np.all(ratio[expected.mean(axis=0) > 5] > 0.65)


def test_data_of_the_model_have_z_of_unit_spread():
    z = {"sizes": [], "items": [], "pairs": []}
    for seed in range(40):
        found = questions.goodness_of_fit(
            MODEL, panel_data(300, seed), draws=4_000, random_state=1000 + seed
        )
        z["sizes"].append(found.sizes["z"][:4].to_numpy())
        z["items"].append(found.items["z"].to_numpy())
        z["pairs"].append(found.pairs.sort_values(["a", "b"])["z"].to_numpy()[:9])
    for values in map(np.array, z.values()):
        # The mean of z^2 over 40 seeds has a standard deviation of 0.22, or slightly more for rare
        # events.
        assert np.all(np.abs(np.mean(values**2, axis=0) - 1) < 1.1)
        assert np.mean(values**2) == pytest.approx(1, abs=0.4)
        assert np.abs(values.mean(axis=0)).max() < 0.8


def test_a_panel_that_is_read_as_absent_items_is_found_out():
    data = panel_data(2_000, 1)
    assert questions.goodness_of_fit(MODEL, data, random_state=1).items["z"].abs().max() < 4
    absent = Dataset(data.values, items=data.items)
    assert questions.goodness_of_fit(MODEL, absent, random_state=1).items["z"].min() < -10


def test_samples_with_the_same_missing_cells_are_complete_samples_of_the_other_items():
    """The numbers for the known items are those for complete data of these items."""
    complete = simulate(MODEL, 300, random_state=4).to_dataset().without_times()
    missing = np.zeros((300, N), dtype=bool)
    missing[:, 4] = True
    how = {"draws": 5_000, "random_state": 6}
    one = questions.goodness_of_fit(MODEL, complete, **how)
    two = questions.goodness_of_fit(MODEL, complete.with_missing(missing), **how)
    pd.testing.assert_frame_equal(one.items[:4], two.items[:4], check_exact=True)
    a, b = (run.pairs[run.pairs["b"] != "e"].reset_index(drop=True) for run in (one, two))
    pd.testing.assert_frame_equal(a, b, check_exact=True)
    assert two.items.loc["e", ["observed", "expected", "z", "known"]].tolist() == [0.0] * 4


def test_known_orders_do_not_count():
    data = panel_data(50, 2)
    row = int(np.flatnonzero(data.values[:, [0, 2]].all(axis=1))[0])
    known = Dataset(data, orders={data.samples[row]: [("a", "c")]})
    one, two = (
        questions.goodness_of_fit(MODEL, d, draws=100, random_state=1) for d in (data, known)
    )
    for name in ("sizes", "items", "pairs"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(two, name), check_exact=True)


def test_posterior_predictive_counts_are_of_known_cells():
    """All draws of this posterior are the same model, so the expected counts are known."""
    posterior = posterior_of(np.tile(MODEL.theta, (2, 150, 1, 1)), items=tuple(ITEMS))
    data = panel_data(200, 8)
    found = questions.goodness_of_fit(posterior, data, random_state=1)
    sizes, items, _ = truth_of(data.missing)
    for table, shares in ((found.sizes, sizes), (found.items, items)):
        used = shares[:, : len(table)]
        deviation = np.sqrt((used * (1 - used)).sum(axis=0))
        # Means of 300 counts may be off by 5 standard errors. The constant is for rare sizes.
        away = np.abs(table["expected"] - used.sum(axis=0))
        assert np.all(away < 5 * deviation / np.sqrt(found.models) + 0.02)
    assert found.items["known"].tolist() == (~data.missing).sum(axis=0).tolist()
    assert (found.items["z"].abs() < 5).all()
