"""Run ``sequela plan``, and check its output and its files."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import sequela
from cli.invoking import run
from sequela.report.tables import samples_table, write_table

pytestmark = pytest.mark.filterwarnings("ignore::sequela.posteriors.NotConvergedWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table of three items, and a posterior of two of these items."""
    place = tmp_path_factory.mktemp("plan")
    theta = [[0.0, 3.0, 0.0], [0.0, -3.0, 0.0], [0.0, 0.0, -2.5]]
    drawn = sequela.simulate(theta, 80, items=["A", "B", "rare"], random_state=1).to_dataset()
    write_table(samples_table(drawn.without_times()), place / "samples.csv")
    run("posterior", place / "samples.csv", "-o", place / "certainty", "--most-frequent", 2,
        "--draws", 60, "--seed", 1)  # fmt: skip
    return place


def arguments(folder):
    return ["plan", folder / "certainty", folder / "samples.csv", "A", "B", "--samples", "0,40",
            "--clocks", "0,5", "--studies", 30, "--seed", 2]  # fmt: skip


def test_a_table_a_picture_and_what_they_mean(folder, tmp_path):
    written, picture = tmp_path / "plan.csv", tmp_path / "plan.png"
    shown = run(*arguments(folder), "-o", written, "--plot", picture).output
    assert "With the 80 samples of DATA, the probability that A usually comes before B is" in shown
    assert "right order called" in shown
    assert "Number of simulated studies of each size: 30; seed: 2" in shown
    assert picture.read_bytes()[:4] == b"\x89PNG"
    table = pd.read_csv(written)
    assert table[["samples", "clocks"]].to_numpy().tolist() == [[0, 0], [40, 0], [0, 5], [40, 5]]
    report = json.loads(run(*arguments(folder), "--json").stdout)
    assert report["seed"] == 2
    assert report["method"] == "reweight"
    assert [row["right"] for row in report["table"]] == table["right"].tolist()


def test_errors_say_what_to_do(folder, tmp_path):
    wrong = run(*arguments(folder), "--clocks", "many", code=2)
    assert "--clocks is 'many'; expected whole numbers" in wrong.output
    assert "no known format" in run(*arguments(folder), "--plot", "plan.doc", code=2).output
    (tmp_path / "plan.csv").write_text("mine")
    assert "--force" in run(*arguments(folder), "-o", tmp_path / "plan.csv", code=2).output
    asked = arguments(folder)
    assert "no item 'C'" in run(*asked[:3], "A", "C", code=2).output
    assert "without posterior.npz" in run("plan", tmp_path, *asked[2:], code=2).output


@pytest.mark.parametrize("method", ["reweight", "check"])
def test_missing_cells_and_known_orders(method, tmp_path):
    rows = 8 * ["1,1,0"] + 6 * ["1,0,NA"] + 6 * ["0,0,1"] + 4 * ["NA,1,1"] + 6 * ["0,0,0"]
    table, orders, folder = (tmp_path / name for name in ("gaps.csv", "orders.csv", "out"))
    lines = [f"s{k},{row}" for k, row in enumerate(rows)]
    table.write_text("sample,A,B,C\n" + "\n".join(lines) + "\n", "utf-8")
    orders.write_text("sample,before,after,probability\ns0,A,B,0.9\ns1,A,B,1\n", "utf-8")
    made = run("posterior", table, "-o", folder, "--orders", orders, "--draws", 20, "--seed", 1,
               "--threads", 1)  # fmt: skip
    assert made.exit_code == 0, made.output
    asked = ["plan", folder, table, "A", "B", "--samples", "0,20", "--clocks", "0,3", "--method",
             method, "--studies", 3, "--seed", 2, "--threads", 1]  # fmt: skip
    without = run(*asked, code=2)
    assert "the same missing cells and known orders (--orders)" in without.output
    report = json.loads(run(*asked, "--orders", orders, "--json").stdout)
    assert report["samples"] == len(rows)
    assert [(row["samples"], row["clocks"]) for row in report["table"]] == [
        (0, 0), (20, 0), (0, 3), (20, 3)
    ]  # fmt: skip
