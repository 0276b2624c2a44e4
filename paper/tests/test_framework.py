"""Test what all experiments share: settings, records, files, verdicts and the page of results."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest

from sequela import InputError
from sequela.repeats import Plan
from sequela_paper import NAMES, Settings, Verdict, find_experiment, make
from sequela_paper.page import page_text, write_page
from sequela_paper.running import judge_again
from sequela_paper.slips import slips
from sequela_paper.sources import TRUE_MODELS, check_files, data_folder, synthetic

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "paper" / "results"


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_is_described(name):
    one = find_experiment(name)
    assert one.name == name
    assert one.title
    assert one.claim
    assert one.where.startswith(("Figure ", "Table "))
    assert one.task.startswith("sequela_paper.")
    settings = Settings(quick=True, data=Path("data"))
    full = one.cases(Settings(data=Path("data")))
    assert len(Plan(one.task, one.cases(settings), 1)) <= len(Plan(one.task, full, 1))
    assert callable(Plan(one.task, full, 1).function())


def test_the_papers_repetitions():
    def count(name, **fixed):
        cases = find_experiment(name).cases(Settings(data=Path("data")))
        return sum(all(case.get(k) == v for k, v in fixed.items()) for case in cases)

    assert count("fig2", dataset="five", m=40, solver="ours") == 96
    assert count("fig2", dataset="two", m=25, solver="ours") == 96
    assert count("fig3", kind="ours", others=100) == 24
    assert count("fig3", kind="ours", others=10, pairs=["TP53/IDH1"]) == 24
    assert find_experiment("fig10").repeats == 20


@pytest.mark.parametrize(
    ("options", "ours", "adagrad"),
    [
        ({}, 96, 6),
        ({"quick": True}, 3, 1),
        ({"repeats": 5}, 5, 5),
        ({"repeats": 50}, 50, 6),
        ({"repeats": 50, "solver_repeats": 9}, 50, 9),
        ({"solver": "ours"}, 96, 0),
        ({"solver": "adagrad"}, 0, 96),
        ({"solver": "adagrad", "repeats": 7}, 0, 7),
    ],
)
def test_repetitions_of_each_solver(options, ours, adagrad):
    settings = Settings(**options)
    found = [settings.repetitions(s, full=96, quick=3, slow=(6, 1)) for s in ("ours", "adagrad")]
    assert found == [ours, adagrad]


@pytest.mark.parametrize(
    ("options", "named"),
    [({"solver": "sgd"}, "sgd"), ({"repeats": 0}, "repeats"), ({"solver_repeats": 0}, "solver_r")],
)
def test_bad_settings_are_named(options, named):
    with pytest.raises(InputError, match=named):
        Settings(**options)


def test_unknown_experiment_and_the_closest():
    with pytest.raises(InputError, match="Did you mean 'fig2'"):
        find_experiment("fig22")


def test_missing_data_are_named(tmp_path, monkeypatch):
    monkeypatch.delenv("SEQUELA_DATA", raising=False)
    assert data_folder(None) is None
    with pytest.raises(InputError, match="--data"):
        make("fig3", Settings(quick=True), tmp_path / "x")
    with pytest.raises(InputError, match=r"mutations\.txt"):
        make("fig3", Settings(quick=True, data=tmp_path), tmp_path / "x")
    with pytest.raises(InputError, match="no data folder"):
        data_folder(tmp_path / "nowhere")
    assert not (tmp_path / "x").exists()
    check_files(None, (), "fig4")


def test_data_are_drawn_where_there_are_none():
    data, truth = synthetic("five", None)
    assert (data.n_samples, data.n_items) == (500, 205)
    assert truth.theta.tolist() == TRUE_MODELS["five"].tolist()
    assert data.items[:5] == truth.items
    assert data.times is not None


def test_a_cut_off_run_goes_on_and_shares_are_collected(tmp_path):
    settings = Settings(quick=True)
    whole = make("fig6", settings, tmp_path / "whole", backend="threads", workers=1)
    place = tmp_path / "shares"
    assert make("fig6", settings, place, backend="threads", workers=1, share=(0, 2)) is None
    with pytest.raises(InputError, match="missing"):
        make("fig6", settings, place, collect_only=True)
    done = {p.name: p.stat().st_mtime_ns for p in (place / "records").glob("0*.json")}
    make("fig6", settings, place, backend="threads", workers=1, share=(1, 2))
    after = {p.name: p.stat().st_mtime_ns for p in (place / "records").glob("0*.json")}
    assert done.items() <= after.items()
    again = make("fig6", settings, place, collect_only=True)
    assert again.verdict == whole.verdict
    assert (place / "fig6.svg").read_bytes() == (tmp_path / "whole" / "fig6.svg").read_bytes()
    with pytest.raises(InputError, match="another plan"):
        make("fig6", Settings(quick=True, seed=5), place)


def test_verdict_in_a_word():
    words = [Verdict(holds, "").word for holds in (True, False, None)]
    assert words == ["confirmed", "not confirmed", "open"]


def test_slips_have_their_numbers():
    texts = dict(slips())
    # Numerical integration of the posterior gives the first two numbers (mean and variance). The
    # third is the mean by the formula of the paper as printed.
    assert "1.15883" in texts["Lemma 1"]
    assert "0.19374" in texts["Lemma 1"]
    assert "1.10351" in texts["Lemma 1"]
    assert "1.00916" in texts["Proposition 1"]


# --- What is in the repository --------------------------------------------------------------------


def kept():
    return sorted(p.name for p in KEPT.iterdir()) if KEPT.is_dir() else []


def test_kept_results_are_of_the_paper():
    assert set(kept()) == set(NAMES)


def test_a_page_judges_anew(tmp_path):
    shutil.copytree(KEPT / "fig5", tmp_path / "fig5")
    path = tmp_path / "fig5" / "fig5.json"
    first = json.loads(path.read_text())
    path.write_text(json.dumps({**first, "holds": False, "verdict": "as it was once"}))
    write_page(tmp_path, tmp_path / "page.md")
    assert json.loads(path.read_text()) == first
    assert "as it was once" not in (tmp_path / "page.md").read_text()


@pytest.mark.parametrize("name", kept())
def test_kept_verdicts_follow_from_the_kept_tables(name):
    record = json.loads((KEPT / name / f"{name}.json").read_text())
    found = judge_again(KEPT / name, record)
    assert (found.holds, found.text) == (record["holds"], record["verdict"])
    assert not record["settings"]["quick"]
    assert (KEPT / name / f"{name}.svg").is_file()
    text = json.dumps(record)
    assert os.sep + "work" not in text
    for table in record["tables"]:
        frame = pd.read_csv(KEPT / name / f"{table}.csv")
        assert len(frame) > 0
        assert "folder" not in frame.columns


def test_the_page_is_what_the_files_say():
    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    assert page == page_text(KEPT), "run `make results`"


def test_a_page_needs_results(tmp_path):
    with pytest.raises(InputError, match="no result"):
        page_text(tmp_path)
