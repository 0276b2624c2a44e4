"""Run ``sequela compare`` with posteriors, repeats and single models."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cli.invoking import run
from sequela import Model, simulate
from sequela.repeats import plan_fits
from sequela.repeats import run as run_plan


@pytest.fixture
def sides(tmp_path):
    rng = np.random.default_rng(1)
    for name in ("one", "two"):
        model = Model(rng.normal(-0.5, 0.7, (3, 3)), ["a", "b", "c"])
        model.save(tmp_path / f"{name}.npz")
        data = simulate(model, 60, random_state=1).to_dataset().without_times()
        plan = plan_fits(data, bootstraps=4, penalties=[0.05], seed=1)
        run_plan(plan, tmp_path / name, backend="threads")
    return tmp_path


def test_repeats_have_intervals_and_leave_tables_and_a_figure(sides):
    done = run("compare", sides / "one", sides / "two", "-o", sides / "out", "--seed", "1")
    assert "first cohort: 4, of the second cohort: 4; orders compared: 3" in done.stdout
    table = pd.read_csv(sides / "out" / "orders.csv")
    assert (table["low"] <= table["high"]).all()
    assert {path.name for path in (sides / "out").iterdir()} == {
        *("interactions.csv", "orders.csv", "orders.png", "run.json"),
    }
    again = run("compare", sides / "one", sides / "two", "-o", sides / "out", code=2)
    assert "exists" in again.stderr
    run("compare", sides / "one", sides / "two", "-o", sides / "out", "--force")


def test_single_models_are_qualified(sides):
    done = run("compare", sides / "one.npz", sides / "two.npz", "--json")
    report = json.loads(done.stdout)
    assert report["models"] == [1, 1]
    assert "single model" in report["notes"][0]
    assert {row["verdict"] for row in report["orders"]} == {"unknown"}
    assert report["orders"][0]["low"] is None
    mixed = run("compare", sides / "one.npz", sides / "two", code=2)
    assert "first is a single model" in mixed.stderr
    lost = run("compare", sides / "nothing", sides / "two", code=2)
    assert "nothing" in lost.stderr


def test_repeats_that_are_not_bootstraps_are_refused(sides):
    data = simulate(np.zeros((2, 2)), 40, random_state=1).to_dataset().without_times()
    run_plan(plan_fits(data, penalties=[0.1, 0.05], seed=1), sides / "path", backend="threads")
    refused = run("compare", sides / "path", sides / "one", code=2)
    assert "--bootstraps" in refused.stderr
