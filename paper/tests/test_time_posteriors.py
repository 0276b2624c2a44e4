"""Figure 1: posteriors of the time given clock items, compared with integrals and draws."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad

from sequela import InputError
from sequela.questions import time_posterior
from sequela_paper import Settings, find_experiment, make
from sequela_paper.sources import synthetic
from sequela_paper.time_posteriors import clock_rates, clocks_log_likelihood, time_rule

SIZES = (0, 5, 25, 100)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SEQUELA_DATA", raising=False)
        folder = tmp_path_factory.mktemp("fig1") / "x"
        return folder, make("fig1", Settings(quick=True), folder, backend="threads", workers=1)


@pytest.fixture(scope="module")
def tables(made):
    folder, found = made
    return {name: pd.read_csv(folder / f"{name}.csv") for name in found.record["tables"]}


@pytest.fixture(scope="module")
def truth():
    data, _ = synthetic("two", None)
    return np.asarray(data.values), clock_rates(None, data)


def density(present, rates, t):
    """Return p(S+ | t) p(t), where p(S+ | t) is a product with one factor per clock item."""
    p = np.exp(-t)
    for there, w in zip(present, rates, strict=True):
        p *= 1.0 - np.exp(-w * t) if there else np.exp(-w * t)
    return p


def test_files_and_verdict(made):
    folder, found = made
    names = ["fig1.csv", "fig1_samples.csv", *(f"fig1_densities_{m}.csv" for m in SIZES)]
    names += ["fig1.svg", "fig1.pdf", "fig1.png", "fig1.json"]
    for name in names:
        assert 0 < (folder / name).stat().st_size < 1_000_000, name
    assert max((folder / name).stat().st_size for name in names if name[-3:] == "csv") < 300_000
    assert found.verdict.holds is True
    assert json.loads((folder / "fig1.json").read_text())["holds"] is True


def test_the_rates_are_those_that_made_the_samples(truth):
    """The frequencies of the 200 clock items agree with w / (1 + w), where w is the rate.

    They do not agree if the rates are assigned in reverse order.
    """
    values, rates = truth
    seen = values[:, 2:].mean(axis=0)

    def misfit(w):
        p = w / (1.0 + w)
        return float(((seen - p) ** 2 / (p * (1.0 - p) / len(values))).sum())

    assert rates.size == 200
    assert (
        130.0 < misfit(rates) < 290.0
    )  # a chi-square variable with 200 degrees of freedom is outside these limits with p < 1e-4
    assert misfit(rates[::-1]) > 1000.0


def test_groups_and_true_times_are_those_of_the_data(tables, truth):
    data, _ = synthetic("two", None)
    samples = tables["fig1_samples"]
    for row in samples.itertuples():
        assert data.values[row.sample, 0]
        assert data.values[row.sample, 1] == (row.group == "blue")
        assert row.time == data.times[row.sample]
    assert len(samples) == data.values[:, 0].sum()


def test_without_clocks_all_is_prior(tables):
    table = tables["fig1_densities_0"].set_index("time")
    for column in table:
        np.testing.assert_allclose(table[column], np.exp(-table.index), rtol=6e-4)
    row = tables["fig1"].set_index("m").loc[0]
    assert row["auc"] == pytest.approx(0.5, abs=1e-12)
    assert row["auc_se"] == pytest.approx(0.0, abs=1e-12)
    assert row["overlap"] == pytest.approx(1.0, abs=1e-12)
    # Without clock items, the posterior mean of every sample is the mean of Exp(1).
    np.testing.assert_allclose(tables["fig1_samples"]["mean_0"], 1.0, rtol=1e-9)


@pytest.mark.parametrize("m", [5, 25, 100])
def test_densities_and_means_are_integrals(m, tables, truth):
    values, rates = truth
    samples = tables["fig1_samples"].set_index("sample")
    table = tables[f"fig1_densities_{m}"].set_index("time")
    assert list(table.columns) == [f"sample{k}" for k in samples.index]
    for k in samples.index[:: len(samples) // 5]:
        present = values[k, 2 : 2 + m]
        total, first = (
            # epsabs is 0, because probabilities of sets are tiny.
            quad(
                lambda t, p=power, x=present: t**p * density(x, rates[:m], t), 0, 60,
                limit=400, epsabs=0.0, epsrel=1e-9,
            )[0]
            for power in (0, 1)
        )  # fmt: skip
        np.testing.assert_allclose(
            table[f"sample{k}"], density(present, rates[:m], table.index) / total, rtol=6e-4
        )
        assert samples.loc[k, f"mean_{m}"] == pytest.approx(first / total, rel=1e-6)


def test_densities_are_those_of_the_time_posterior(tables, truth):
    values, rates = truth
    table = tables["fig1_densities_25"].set_index("time").iloc[5::10]
    for k in tables["fig1_samples"]["sample"][::60]:
        found = time_posterior(np.diag(np.log(rates[:25])), values[k, 2:27])
        assert found.method == "exact"
        expected = found.density(table.index.tolist())["density"]
        np.testing.assert_allclose(table[f"sample{k}"], expected, rtol=1e-3)


@pytest.mark.parametrize("m", [5, 100])
def test_separation_is_that_of_drawn_times(m, tables, truth):
    """Compare the AUC with the AUC of drawn times, and the overlap with sums over an even grid."""
    values, rates = truth
    rng = np.random.default_rng(8)
    grid = np.linspace(1e-9, 40.0, 8001)
    drawn, means = {}, {}
    for name, group in tables["fig1_samples"].groupby("group"):
        p = np.stack([density(values[k, 2 : 2 + m], rates[:m], grid) for k in group["sample"]])
        p /= p.sum(axis=1, keepdims=True)
        means[name] = p.mean(axis=0)
        drawn[name] = rng.choice(grid, size=200_000, p=means[name])
    row = tables["fig1"].set_index("m").loc[m]
    later = (drawn["blue"] > drawn["red"]).mean() + (drawn["blue"] == drawn["red"]).mean() / 2
    assert row["auc"] == pytest.approx(later, abs=5 * 0.5 / np.sqrt(200_000))
    overlap = np.minimum(means["red"], means["blue"]).sum()
    assert row["overlap"] == pytest.approx(overlap, abs=3e-3)


def test_error_of_the_auc_is_that_of_other_samples(tables):
    """Compare the standard error of the AUC with the standard error from a bootstrap over samples.

    The bootstrap uses posterior means instead of draws. The AUC of the means is a different number,
    but its standard error is of similar size.
    """
    samples = tables["fig1_samples"]
    red, blue = (samples.loc[samples["group"] == g, "mean_100"].to_numpy() for g in ("red", "blue"))
    rng = np.random.default_rng(1)
    found = [
        (rng.choice(blue, blue.size)[:, None] > rng.choice(red, red.size)).mean()
        for _ in range(200)
    ]
    error = tables["fig1"].set_index("m").loc[100, "auc_se"]
    assert 0.6 < error / np.std(found) < 1.2


def test_verdict_needs_the_separation(tables):
    judge = find_experiment("fig1").judge
    assert judge(tables).holds is True
    for column, values in (
        ("auc", [0.5, 0.6, 0.55, 0.7]),
        ("auc", [0.55, 0.6, 0.65, 0.7]),
        ("overlap", [1.0, 0.9, 0.95, 0.7]),
        ("auc_se", [0.0, 0.1, 0.1, 0.1]),
    ):
        changed = tables["fig1"].assign(**{column: values})
        assert judge({**tables, "fig1": changed}).holds is False


def test_the_picture_shows_the_table(tables):
    figure = find_experiment("fig1").draw(tables)
    assert [ax.get_title() for ax in figure.axes] == [f"m = {m}" for m in SIZES]
    blue = tables["fig1_samples"].query("group == 'blue'").sort_values("time")
    shown = blue.iloc[(len(blue) - 1) // 2]
    for m, ax in zip(SIZES, figure.axes, strict=True):
        (dashed,) = [line for line in ax.lines if line.get_linestyle() == "--"]
        column = tables[f"fig1_densities_{m}"][f"sample{shown['sample']}"]
        np.testing.assert_array_equal(dashed.get_ydata(), column)
        (square,) = [line for line in ax.lines if line.get_marker() == "s"]
        assert square.get_xdata()[0] == shown["time"]
        # Densities of the blue group are drawn above the axis, densities of the red group below it.
        low, high = ax.get_ylim()
        assert low == -high


def test_an_item_that_is_there_was_not_there_at_time_zero():
    found = clocks_log_likelihood(np.array([[True, False]]), np.array([1.0, 2.0]), np.zeros(1))
    assert np.exp(found) == 0.0
    absent = clocks_log_likelihood(np.array([[False, False]]), np.array([1.0, 2.0]), np.zeros(1))
    assert absent.item() == 0.0


def test_the_rule_integrates_over_the_prior():
    times, logs = time_rule(100)
    weights = np.exp(logs)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert weights @ times**3 == pytest.approx(6.0, rel=1e-9)


def test_rates_come_with_the_data_if_there_are_any(tmp_path):
    """The rates are read from the file of the true parameters, where labels identify them."""
    place = tmp_path / "synthetic"
    place.mkdir()
    items = ["item1", "item2", "clock1", "clock2"]
    pd.DataFrame(
        [[0.5, 1, 0, 1, 0], [1.5, 1, 1, 0, 1]], columns=["time", *items], index=["a", "b"]
    ).to_csv(place / "synth2.csv", index_label="sample")
    data, _ = synthetic("two", str(tmp_path))
    with pytest.raises(InputError, match="synth2_theta"):
        clock_rates(str(tmp_path), data)
    order = ["clock2", "item2", "item1", "clock1"]
    pd.DataFrame(np.diag([-3.0, 0.0, 0.0, -2.0]), index=order, columns=order).to_csv(
        place / "synth2_theta.csv"
    )
    np.testing.assert_allclose(clock_rates(str(tmp_path), data), np.exp([-2.0, -3.0]))
