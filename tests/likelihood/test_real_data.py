"""Compare with mhn on real data. The data files are not part of the project."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import reference as ref
from sequela import Dataset, evaluate, log_likelihood

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("SEQUELA_DATA") or ROOT.parent / "shared" / "data")

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"no data in {FOLDER}; set SEQUELA_DATA to the folder that has them"
)


def need(*names):
    path = FOLDER.joinpath(*names)
    if not path.exists():
        pytest.skip(f"the file {path} does not exist")
    return path


@pytest.fixture(scope="module")
def schill():
    return pd.read_csv(need("gbm", "schill20.csv"))


@pytest.fixture(scope="module")
def glioblastoma():
    """Return 378 samples of 821 items: mutated genes, amplifications (A) and deletions (D)."""
    mutations = pd.read_csv(
        need("gbm", "mutations.txt"), sep="\t", skiprows=1, index_col=0, dtype=str,
        keep_default_na=False,
    )  # fmt: skip
    copies = pd.read_csv(
        need("gbm", "cna.txt"), sep="\t", skiprows=1, index_col=0, dtype=str, keep_default_na=False
    ).apply(pd.to_numeric, errors="coerce")
    altered = pd.concat(
        [
            ~mutations.isin(["WT", "NS", "NA", ""]),
            (copies > 1).rename(index="{}(A)".format),
            (copies < -1).rename(index="{}(D)".format),
        ]
    ).T
    groups = json.loads(need("gbm", "merge.json").read_text())
    merged = {
        new: altered[[name for name in old if name in altered]].any(axis=1)
        for new, old in groups.items()
    }
    gone = {name for old in groups.values() for name in old} & set(altered)
    altered = pd.concat([altered.drop(columns=list(gone)), pd.DataFrame(merged)], axis=1)
    frequency = altered.mean().sort_values(ascending=False, kind="stable")
    return altered[frequency[frequency > 0].index]


def test_the_20_item_table_at_zero(schill):
    """The program mhn 1.2.3 gives the expected value."""
    assert schill.shape == (261, 20)
    value = log_likelihood(np.zeros((20, 20)), schill)
    assert value == pytest.approx(-10.213862, abs=5e-7)


@pytest.mark.parametrize(("n", "expected"), [(10, -6.524436), (15, -8.619733), (20, -10.306298)])
def test_glioblastoma_at_zero(glioblastoma, n, expected):
    """The program mhn 1.2.3 gives the expected values."""
    assert glioblastoma.shape == (378, 821)
    value = log_likelihood(np.zeros((n, n)), glioblastoma.iloc[:, :n])
    assert value == pytest.approx(expected, abs=5e-7)


def test_every_sample_of_the_20_item_table(schill):
    """At a random theta, samples of up to 6 items agree with the dense reference function."""
    theta = ref.random_theta(np.random.default_rng(1), 20, 0.7, sparsity=0.8)
    found = evaluate(theta, schill)
    rows = np.flatnonzero(schill.to_numpy().sum(axis=1) <= 6)[:60]
    for row in rows:
        S = np.flatnonzero(schill.to_numpy()[row])
        assert found.log_likelihoods[row] == pytest.approx(ref.log_p_set(theta, S), abs=1e-10)


def test_the_densest_tumours_are_evaluated_by_components(glioblastoma):
    data = Dataset(glioblastoma.iloc[:, :100].astype(int))
    assert data.set_sizes.max() == 78
    theta = np.diag(np.log(data.frequencies.to_numpy()))
    theta[0, 1] = theta[4, 1] = 0.7
    found = evaluate(theta, data, random_state=1)
    shown = found.samples
    assert (shown["method"][shown["size"] <= 12] == "exact").all()
    assert (shown["method"][shown["size"] > 20] == "components").all()
    assert set(shown["method"]) == {"exact", "components"}
    assert found.value_se == 0.0
    assert np.isfinite(found.gradient).all()
    assert np.isfinite(shown["log_likelihood"]).all()


def test_true_times_are_likelier_than_shuffled_ones():
    """The file has 500 samples with observation times, simulated from a model with 200 items."""
    table = pd.read_csv(need("synthetic", "synth2.csv"))
    theta = pd.read_csv(need("synthetic", "synth2_theta.csv"), index_col=0)
    items = [name for name in table.columns if name not in ("sample", "time")]
    chosen = table[table[items].sum(axis=1) <= 8].head(25)
    assert len(chosen) >= 10
    theta = theta.loc[items, items]
    true = log_likelihood(theta, chosen[items], times=chosen["time"])
    wrong = log_likelihood(theta, chosen[items], times=chosen["time"].to_numpy()[::-1])
    unknown = evaluate(theta, chosen[items])
    assert true > wrong + 1
    assert np.isfinite(unknown.gradient).all()
