"""Run ``sequela rivals``, and check its output and its files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from sequela import Model, fit, simulate
from sequela.cli import main
from sequela.cli.rivals import show
from sequela.data.tables import read_table
from sequela.questions import rival_orders


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rivals")
    theta = np.diag([0.0, -4.0, *([-2.0] * 8)])
    theta[0, 1] = 4.0
    names = ["first", "second", *(f"clock {k}" for k in range(8))]
    data = simulate(Model(theta, names).to_frame(), 400, random_state=3).to_dataset()
    data.without_times().to_frame().astype(int).to_csv(folder / "data.csv", index_label="sample")
    samples = read_table(folder / "data.csv").data
    fit(samples, penalty=0.01).save(folder / "model.npz")
    return folder


def run(*arguments):
    return CliRunner().invoke(main, ["rivals", *map(str, arguments)])


def test_the_table_is_that_of_rival_orders(files, tmp_path):
    result = run(files / "model.npz", files / "data.csv", "--seed", 5, "-o", tmp_path / "t.csv",
                 "--json")  # fmt: skip
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    samples = read_table(files / "data.csv").data
    expected = rival_orders(Model.load(files / "model.npz"), samples, random_state=5)
    assert report["seed"] == 5
    assert report["moves"] == expected.moves
    assert [row["evidence"] for row in report["table"]] == expected.table["evidence"].tolist()
    written = pd.read_csv(tmp_path / "t.csv")
    assert written["first"].tolist() == expected.table["first"].tolist()
    shown = run(files / "model.npz", files / "data.csv", "--seed", 5).output
    assert "can the data tell" in shown
    assert "second" in shown


def test_a_pair(files):
    result = run(files / "model.npz", files / "data.csv", "--pair", "clock 1,first", "--json")
    rows = json.loads(result.stdout)["table"]
    assert [{row["first"], row["second"]} for row in rows] == [{"clock 1", "first"}]


def test_nothing_strong_enough(files):
    result = run(files / "model.npz", files / "data.csv", "--least-effect", "50")
    assert result.exit_code == 0
    assert "--least-effect" in result.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--pair", "first"], "expected two items"),
        (["--pair", "first,nine"], "nine"),
        (["--least-effect", "-1"], "--least-effect"),
    ],
)
def test_bad_input_is_explained(files, options, said):
    result = run(files / "model.npz", files / "data.csv", *options)
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(("evidence", "warned"), [(2.5, True), (1.5, False)])
def test_the_evidence_of_one_reversal_does_not_overrule_a_fit(evidence, warned, capsys):
    row = {
        "first": "A", "second": "B", "probability": 0.6, "rival_probability": 0.3,
        "evidence": evidence, "evidence_se": 0.0,
    }  # fmt: skip
    show({"table": [row], "moves": 0})
    assert ("do not report the order" in capsys.readouterr().out) == warned


@pytest.mark.parametrize(
    ("evidence", "rival", "moves", "said"),
    [
        (-1.5, 0.3, 1, ["evidence is below 0", "replaced the given model (1 time)", "2.7"]),
        (0.0, 0.6, 0, ["no model with the opposite order was found"]),
        (1.5, 0.3, 0, []),
    ],
)
def test_an_odd_row_is_explained(evidence, rival, moves, said, capsys):
    row = {
        "first": "A", "second": "B", "probability": 0.7, "rival_probability": rival,
        "evidence": evidence, "evidence_se": 0.0,
    }  # fmt: skip
    show({"table": [row], "moves": moves})
    shown = capsys.readouterr().out
    assert all(text in shown for text in said)
    for text in ("evidence is below 0", "replaced the given model", "no model with the opposite"):
        assert (text in shown) == any(text in part for part in said)
