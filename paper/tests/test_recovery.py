"""Figure 2: recovery of the true model against the number of clock items."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sequela_paper import Settings, find_experiment, make
from sequela_paper.recovery import task
from sequela_paper.sources import synthetic

SETTING = {"folder": None, "clock_seed": 1, "iterations": 30}


def test_quick_form(tmp_path):
    settings = Settings(quick=True, repeats=1, solver="ours")
    made = make("fig2", settings, tmp_path / "x", backend="threads", workers=2)
    assert {p.suffix for p in made.files} == {".csv", ".svg", ".pdf", ".png", ".json"}
    summary = pd.read_csv(tmp_path / "x" / "fig2_summary.csv")
    ours = summary[summary["curve"] == "ours"]
    # Without clocks the data cannot tell the order, so a wrong order is learned.
    for dataset in ("two", "five"):
        part = ours[ours["dataset"] == dataset].sort_values("m")
        assert part["mean"].iloc[-1] < part["mean"].iloc[0]
    known = summary[summary["curve"] == "known times"].set_index("dataset")["mean"]
    assert known["two"] < 0.05
    assert known["five"] < 0.1


def test_both_solvers_see_the_same_clocks(monkeypatch):
    seen = []
    import sequela_paper.recovery as module

    monkeypatch.setattr(module, "_ours", lambda sets, *_: seen.append(sets.items) or {})
    monkeypatch.setattr(module, "_paper_solver", lambda sets, *_: seen.append(sets.items) or {})
    for solver, seed in (("ours", 1), ("adagrad", 2)):
        task(dataset="five", solver=solver, m=7, repetition=3, seed=seed, **SETTING)
    task(dataset="five", solver="ours", m=7, repetition=4, seed=1, **SETTING)
    assert seen[0] == seen[1] != seen[2]
    assert len(seen[0]) == 12
    assert seen[0][:5] == synthetic("five", None)[1].items


def test_the_papers_solver_runs():
    found = task(dataset="two", solver="adagrad", m=2, repetition=0, seed=3, **SETTING)
    assert np.isfinite(found["kl"])
    assert found["kl"] > 0.0


def rows(ours, theirs, known, *, repetitions=4):
    made = []
    for dataset, value in known.items():
        made.append((dataset, "known times", 0, 0, value))
        for solver, values in (("ours", ours), ("adagrad", theirs)):
            for m, kl in values[dataset].items():
                made += [(dataset, solver, m, r, kl + 0.001 * r) for r in range(repetitions)]
    frame = pd.DataFrame(made, columns=["dataset", "solver", "m", "repetition", "kl"])
    return frame.assign(folder="", clock_seed=0, iterations=0, seconds=1.0, kl_refit=np.nan)


@pytest.mark.parametrize(
    ("last", "theirs", "known", "holds"),
    [
        (0.05, 0.05, 0.044, True),
        (0.30, 0.05, 0.044, False),  # our divergence does not decrease to the dashed line
        (0.05, 0.02, 0.044, False),  # the paper's solver is better than ours
        (0.05, 0.05, 0.080, False),  # the dashed line is not where it is in the paper
    ],
)
def test_the_verdict_can_fail(last, theirs, known, holds):
    experiment = find_experiment("fig2")
    two = {0: 0.46, 25: 0.016}
    results = rows(
        {"two": two, "five": {0: 0.4, 40: last}},
        {"two": two, "five": {0: 0.4, 40: theirs}},
        {"two": 0.0153, "five": known},
    )
    tables = experiment.tables(results, Settings())
    assert experiment.judge(tables).holds is holds
