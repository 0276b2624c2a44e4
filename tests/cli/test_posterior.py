"""Run ``sequela posterior``, and check its output and its files."""

from __future__ import annotations

import json
import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import sequela
from posteriors import stops
from report.made_posterior import made_posterior
from sequela.cli import main
from sequela.questions import check_fit
from sequela.report import posterior_run
from sequela.report.posterior_run import PosteriorReport
from sequela.report.tables import samples_table, write_table

ARGUMENTS = ("--draws", "20", "--chains", "2", "--seed", "1", "--threads", "1")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "samples.csv"
    theta = [[-0.5, 1.5, 0.0], [0.0, -2.0, 0.5], [0.0, 0.0, -1.0]]
    drawn = sequela.simulate(theta, 40, items=["A", "=B", "C"], random_state=1).to_dataset()
    write_table(samples_table(drawn.without_times()), path)
    return path


def run(*arguments):
    return CliRunner().invoke(main, [str(x) for x in arguments])


def test_a_folder_with_draws_tables_and_a_record(table, tmp_path):
    folder = tmp_path / "out"
    shown = run("posterior", table, "-o", folder, *ARGUMENTS)
    assert shown.exit_code == 0, shown.output
    assert "can the data tell" in shown.output
    assert "NOT converged" in shown.output
    assert {p.name for p in folder.iterdir()} == {
        "posterior.npz", "orders.csv", "interactions.csv", "report.html", "run.json",
    }  # fmt: skip
    assert f"Open the report in a browser: {folder / 'report.html'}" in shown.output
    before = (folder / "report.html").read_bytes()
    again = run("report", folder)
    assert again.exit_code == 0, again.output
    assert (folder / "report.html").read_bytes() == before
    found = sequela.Posterior.load(folder / "posterior.npz")
    orders = pd.read_csv(folder / "orders.csv")
    assert orders["probability"].tolist() == found.orders()["probability"].tolist()
    labels = {*orders["first"], *orders["second"]}
    # A spreadsheet would read a label that begins with = as a formula.
    assert not any(label.startswith("=") for label in labels)
    record = json.loads((folder / "run.json").read_text())
    assert record["command"] == "posterior"
    assert record["options"]["random_state"] == 1
    assert record["result"]["converged"] is False


def test_a_posterior_whose_models_do_not_describe_the_data_is_not_trusted(tmp_path):
    """Leave out all empty samples. All items are rare, so no theta describes the other samples."""
    drawn = sequela.simulate(np.diag(8 * [-2.0]), 600, random_state=1).to_dataset()
    lines, verdicts = {}, {}
    for name, kept in (("all", np.full(600, fill_value=True)), ("some", drawn.set_sizes > 0)):
        path, folder = tmp_path / f"{name}.csv", tmp_path / name
        write_table(samples_table(drawn.select_samples(kept).without_times()), path)
        shown = run("posterior", path, "-o", folder, *ARGUMENTS)
        assert shown.exit_code == 0, shown.output
        lines[name] = shown.stdout
        record = json.loads((folder / "run.json").read_text())["result"]["fit_check"]
        assert (not record["findings"]) == (name == "all")
        page = (folder / "report.html").read_text("utf-8")
        assert ("The model does not describe the data well" in page) == (name == "some")
        verdicts[name] = set(pd.read_csv(folder / "orders.csv")["verdict"])
        assert run("report", folder).exit_code == 0
        assert (folder / "report.html").read_text("utf-8") == page
    assert "agree with the model, as far as these tests can show" in lines["all"]
    assert "The model does not describe the data, so its orders cannot be trusted:" in lines["some"]
    assert "samples have no items at all" in lines["some"]
    assert not verdicts["some"] & {"the data can tell", "the data suggest it"}


def test_orders_are_not_trusted_if_the_models_do_not_fit(table, tmp_path):
    """Verdicts change in the table, the JSON and the terminal, but not in the draws."""
    data = sequela.read_table(table).data
    found = made_posterior(data, chains=2, draws=400, spread=0.01)
    sure = found.but(draws=replace(found.draws, orders=0.9 + 0.05 * found.draws.orders))
    early = np.zeros((100, 3), dtype=bool)
    bad = check_fit(sure, early, random_state=1)
    assert not bad.fits
    report = PosteriorReport(sure, tmp_path, bad)
    assert set(sure.orders()["verdict"]) == {"the data can tell"}
    assert set(report.orders()["verdict"]) == {"not trusted: the model does not fit"}
    assert {row["verdict"] for row in report.to_json()["orders"]} == set(report.orders()["verdict"])
    assert report.to_json()["fit_check"]["findings"] == list(bad.findings)


def test_more_draws_and_json(table, tmp_path):
    folder = tmp_path / "out"
    assert run("posterior", table, "-o", folder, *ARGUMENTS).exit_code == 0
    refused = run("posterior", table, "-o", folder, *ARGUMENTS)
    assert refused.exit_code == 2
    assert "exists and is not empty" in refused.output
    more = run("posterior", table, "-o", folder, "--continue", "--draws", "5", "--json")
    assert more.exit_code == 0, more.output
    report = json.loads(more.stdout)
    assert report["draws"] == 25
    assert report["seed"] == 1
    assert run("posterior", table, "-o", folder, "--force", *ARGUMENTS).exit_code == 0
    assert sequela.Posterior.load(folder / "posterior.npz").draws.scale.shape == (2, 20)


def test_bad_input_is_explained(table, tmp_path):
    missing = run("posterior", table, "-o", tmp_path / "none", "--continue")
    assert missing.exit_code == 2
    assert "expected the folder of an earlier" in missing.output
    folder = tmp_path / "out"
    assert run("posterior", table, "-o", folder, "--prior", "laplace", "--scale", "0.4",
               *ARGUMENTS).exit_code == 0  # fmt: skip
    changed = run("posterior", table, "-o", folder, "--continue", "--chains", "3")
    assert changed.exit_code == 2
    assert "chains cannot be changed" in changed.output
    assert run("posterior", table, "-o", tmp_path / "x", "--scale", "-1").exit_code == 2


def killed(*_arguments, **_options):
    raise KeyboardInterrupt


def content(folder):
    found = {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix in (".csv", ".html")}
    return found, sequela.Posterior.load(folder / "posterior.npz").theta.tobytes()


@pytest.mark.parametrize("amount", [("--draws", "20"), ("--most-draws", "12")])
@pytest.mark.parametrize("where", ["chains", "batch", "orders.csv", "run.json", "report.html"])
def test_a_run_that_was_killed_ends_as_if_it_had_not_been(
    table, tmp_path, monkeypatch, amount, where
):
    arguments = (*amount, "--chains", "2", "--seed", "1", "--threads", "1", "--most-frequent", "2")
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    whole, folder = tmp_path / "whole" / "out", tmp_path / "killed" / "out"
    assert run("posterior", table, "-o", whole, *arguments).exit_code == 0
    with monkeypatch.context() as patch:
        if where == "chains":
            stops.before_draw(patch, 2 * 55, stops.SINGLE, killed)
        # Stop after 3 draws of each chain, while the second chain makes its next batch of 4 draws.
        elif where == "batch":
            stops.before_draw(patch, 2 * (50 + 3) + 6, stops.GROWING, killed)
        elif where == "run.json":
            patch.setattr(posterior_run, "_run", killed)
        else:
            name = "write_report" if where == "report.html" else "_write_tables"
            patch.setattr(posterior_run, name, killed)
        assert run("posterior", table, "-o", folder, *arguments).exit_code == 130
    if where in ("chains", "batch"):
        saved = sequela.Posterior.load(folder / "posterior.npz")
        assert saved.draws.scale.shape == (2, 5 if where == "chains" else 3)
    assert run("posterior", table, "-o", folder, "--continue").exit_code == 0
    assert content(folder) == content(whole)


def test_more_draws_that_were_killed_are_drawn_again(table, tmp_path, monkeypatch):
    folder = tmp_path / "out"
    assert run("posterior", table, "-o", folder, *ARGUMENTS).exit_code == 0
    for number, seconds, drawn in (
        (0, stops.SINGLE, 20),
        (2 * 1 + 1, stops.GROWING, 21),  # during a batch of 2 draws
        (2 * 2, stops.SINGLE, 23),
    ):
        with monkeypatch.context() as patch:
            stops.before_draw(patch, number, seconds, killed)
            stopped = run("posterior", table, "-o", folder, "--continue", "--draws", "5")
            assert stopped.exit_code == 130
        assert sequela.Posterior.load(folder / "posterior.npz").draws.scale.shape == (2, drawn)
    assert run("posterior", table, "-o", folder, "--continue").exit_code == 0
    assert sequela.Posterior.load(folder / "posterior.npz").draws.scale.shape == (2, 25)
    before = content(folder)
    # The run is complete now, so `--continue` must change nothing.
    again = run("posterior", table, "-o", folder, "--continue")
    assert again.exit_code == 0
    said = "already has all its 25 draws per chain; to draw more, use --draws or --most-draws"
    assert said in again.output
    assert content(folder) == before
    assert run("posterior", table, "-o", folder, "--continue", "--draws", "4").exit_code == 0
    assert sequela.Posterior.load(folder / "posterior.npz").draws.scale.shape == (2, 29)


@pytest.mark.parametrize(
    ("number", "seconds", "drawn"),
    [
        (2 * 3 + 1, stops.SINGLE, 0),
        (2 * 50 + 1, stops.SINGLE, 1),
        (2 * 60, stops.SINGLE, 11),
        # stopped during a batch of 8 draws; the batch is finished first
        (2 * 57 + 11, stops.GROWING, 15),
    ],
)
def test_a_signal_leaves_a_run_that_goes_on_to_its_planned_end(
    table, tmp_path, monkeypatch, number, seconds, drawn
):
    whole, folder = tmp_path / "whole", tmp_path / "out"
    assert run("posterior", table, "-o", whole, *ARGUMENTS).exit_code == 0
    with monkeypatch.context() as patch:
        stops.before_draw(patch, number, seconds, lambda: signal.raise_signal(signal.SIGTERM))
        stopped = run("posterior", table, "-o", folder, *ARGUMENTS, "--json")
    assert stopped.exit_code == 130
    assert json.loads(stopped.stdout)["draws"] == drawn
    record = json.loads((folder / "run.json").read_text())
    assert record["result"] == ({"interrupted": True} if drawn else {})
    if not drawn:  # the run was stopped in its warm-up
        refused = run("report", folder)
        assert refused.exit_code == 2
        assert "has no draws yet" in refused.output
    assert run("posterior", table, "-o", folder, "--continue").exit_code == 0
    ended, wanted = (sequela.Posterior.load(at / "posterior.npz") for at in (folder, whole))
    assert ended.draws.scale.shape == (2, 20)
    assert ended.theta.tobytes() == wanted.theta.tobytes()


def test_a_second_signal_ends_a_run_in_the_middle_of_a_batch(table, tmp_path, monkeypatch):
    folder = tmp_path / "out"

    def signals():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        stops.before_draw(patch, 2 * 57 + 3, stops.GROWING, signals)
        assert run("posterior", table, "-o", folder, *ARGUMENTS).exit_code == 130
    assert sequela.Posterior.load(folder / "posterior.npz").draws.scale.shape == (2, 7)


def test_refused_data_leave_no_folder_and_change_none(table, tmp_path):
    gaps = tmp_path / "gaps.csv"
    gaps.write_text("A,B\n0,1\n1,\n", "utf-8")
    refused = run("posterior", gaps, "-o", tmp_path / "new")
    assert refused.exit_code == 2
    assert "the value is missing" in refused.output
    assert not (tmp_path / "new").exists()
    made = tmp_path / "made"
    assert run("posterior", table, "-o", made, *ARGUMENTS).exit_code == 0
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    assert run("posterior", gaps, "-o", made, "--force").exit_code == 2
    assert {path.name: path.read_bytes() for path in made.iterdir()} == before


def test_missing_cells_and_known_orders(tmp_path):
    """The known orders are part of the run: a continued run and the report read them again."""
    rows = 8 * ["1,1,0"] + 6 * ["1,0,NA"] + 6 * ["0,0,1"] + 4 * ["NA,1,1"] + 6 * ["0,0,0"]
    table, orders, folder = (tmp_path / name for name in ("gaps.csv", "orders.csv", "out"))
    lines = [f"s{k},{row}" for k, row in enumerate(rows)]
    table.write_text("sample,A,B,C\n" + "\n".join(lines) + "\n", "utf-8")
    known = [f"s{k},A,B,{p}" for k, p in enumerate((1, 1, 0.9, 1))]
    orders.write_text("sample,before,after,probability\n" + "\n".join(known) + "\n", "utf-8")
    whole = run("posterior", table, "-o", tmp_path / "whole", *ARGUMENTS, "--orders", orders)
    assert whole.exit_code == 0, whole.output
    assert "10 cells of 2 items and 10 samples" in whole.output
    short = [*ARGUMENTS, "--draws", "12", "--orders", orders]
    assert run("posterior", table, "-o", folder, *short).exit_code == 0
    more = run("posterior", table, "-o", folder, "--continue", "--draws", "8", "--threads", "1")
    assert more.exit_code == 0, more.output
    one, two = (sequela.Posterior.load(x / "posterior.npz") for x in (tmp_path / "whole", folder))
    assert one.fingerprint == two.fingerprint
    assert one.draws.theta.shape == two.draws.theta.shape
    record = json.loads((folder / "run.json").read_text())
    assert record["options"]["orders"] == str(orders)
    assert run("report", folder).exit_code == 0
    orders.write_text("sample,before,after\ns0,B,A\n", "utf-8")
    changed = run("report", folder)
    assert changed.exit_code == 2
    assert "is not the file that the run was made from" in changed.output
