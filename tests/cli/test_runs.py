"""Run commands one after the other: from a table to a model and its answers."""

from __future__ import annotations

import csv
import json
import shlex

import numpy as np
import pandas as pd
import pytest

import sequela
from cli.invoking import run
from sequela.cli.plan import plan
from sequela.data.examples import example_path, example_samples
from sequela.questions import Verdict
from sequela.report.folder_answers import folder_ranges

LABELS = ["=cmd()", "a,b", "+1", "plain"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return the path of a small table whose labels could break the output of commands."""
    rng = np.random.default_rng(1)
    theta = np.diag([0.3, -0.5, 0.0, -1.0])
    theta[0, 1] = 1.5
    drawn = sequela.simulate(theta, 120, items=LABELS, random_state=rng).to_dataset()
    path = tmp_path_factory.mktemp("data") / "samples.csv"
    frame = drawn.to_frame().astype(int)
    frame.insert(0, "time", drawn.times)
    frame.to_csv(path, index_label="sample")
    return path


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    """Return the folder of a fit of `table`, with figures."""
    made = tmp_path_factory.mktemp("fits") / "fit"
    run("fit", table, "-o", made, "--times", "time", "--seed", 5, "--figures", "svg")
    return made


def test_a_fit_leaves_everything_in_one_folder(folder, table):
    model = sequela.Model.load(folder / "model.npz")
    assert list(model.items) == LABELS
    data = sequela.Dataset(pd.read_csv(table, index_col=[0, 1]).droplevel("time"))
    times = pd.read_csv(table)["time"]
    expected = sequela.SetChain(0.01, n_starts=5, random_state=5).fit(data, times=times)
    assert np.array_equal(model.theta, expected.theta_)
    assert sequela.Model.from_csv(folder / "theta.csv") == model
    record = json.loads((folder / "run.json").read_text())
    assert record["options"]["seed"] == 5
    assert record["data"]["samples"] == 120
    assert record["result"]["objective"] == expected.objective_
    figures = {path.name for path in (folder / "figures").iterdir()}
    assert {"theta.svg", "orders.svg", "timeline.svg", "frequencies.svg"} <= figures
    pseudo = pd.read_csv(folder / "pseudo_times.csv", index_col="sample")
    assert len(pseudo) == 120
    asked = sequela.pseudo_times(model, data)
    assert pseudo["mean"].to_numpy() == pytest.approx(asked["mean"].to_numpy(), rel=1e-15)


def test_no_cell_of_a_table_is_a_formula(folder):
    for path in folder.glob("*.csv"):
        with path.open(newline="") as file:
            for row in csv.reader(file):
                for cell in row:
                    number = cell.lstrip("+-").replace(".", "").replace("e-", "").isdigit()
                    assert number or not cell.startswith(("=", "+", "-", "@")), (path, cell)


def test_figures_show_labels_as_text(folder):
    text = (folder / "figures" / "theta.svg").read_text()
    assert "=cmd()" in text


def test_a_run_is_repeated_bit_for_bit(folder, table, tmp_path):
    again = tmp_path / "again"
    done = run("fit", "--repeat", folder, "-o", again, "--figures", "none", "--threads", 1)
    assert "the same as in the run that was repeated, bit for bit" in done.stdout
    assert sequela.Model.load(again / "model.npz") == sequela.Model.load(folder / "model.npz")
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().replace("1", "0", 1))
    refused = run("fit", other, "--repeat", folder, "-o", tmp_path / "no", code=2)
    assert "SHA-256" in refused.stderr
    assert not (tmp_path / "no").exists()
    changed = run("fit", "--repeat", folder, "-o", tmp_path / "no", "--penalty", "0.1", code=2)
    assert "--penalty cannot be changed" in changed.stderr


def test_an_existing_folder_is_kept(folder, table, tmp_path):
    before = (folder / "run.json").read_bytes()
    refused = run("fit", table, "-o", folder, "--times", "time", code=2)
    assert "--force" in refused.stderr
    assert (folder / "run.json").read_bytes() == before
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("years of work")
    refused = run("fit", table, "-o", foreign, "--times", "time", "--force", code=2)
    assert "was not made by sequela" in refused.stderr
    assert (foreign / "thesis.tex").read_text() == "years of work"
    assert (
        "should be made, does not exist"
        in run("fit", table, "-o", tmp_path / "a" / "b", code=2).stderr
    )


def test_force_replaces_an_earlier_fit_and_a_failure_does_not(table, tmp_path, monkeypatch):
    made = tmp_path / "fit"
    options = ("--times", "time", "--figures", "none", "--seed", 1, "--starts", 1, "--no-check")
    run("fit", table, "-o", made, *options)
    (made / "mine.txt").write_text("a note")
    from sequela.report import fit_folder

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fit_folder, "write_table", fail)
    failed = run("fit", table, "-o", made, *options, "--force", code=1)
    assert (made / "mine.txt").exists()
    assert (made / "model.npz").exists()
    kept = tmp_path / "fit.incomplete"
    assert str(kept) in failed.stderr
    assert sequela.Model.load(kept / "model.npz") == sequela.Model.load(made / "model.npz")
    monkeypatch.undo()
    run("fit", table, "-o", made, *options, "--force")
    assert not (made / "mine.txt").exists()
    # Only the incomplete folder that the error message named is left.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fit", "fit.incomplete"]


def test_every_command_tells_how_it_read_its_table(folder, table, tmp_path):
    """Like `sequela import`, each command says which column has the ids and what was dropped."""
    mine = tmp_path / "mine.csv"
    frame = pd.read_csv(table).drop(columns="time").rename(columns={"sample": "tumour"})
    frame["tumour"] = [f"T{number}" for number in frame["tumour"]]
    frame.to_csv(mine, index=False)
    told = "sequela: mine.csv: the first column ('tumour') was read as sample ids."
    commands = {
        "fit": ("fit", mine, "-o", tmp_path / "fit", "--figures", "none", "--seed", 1),
        "path": ("path", mine, "--penalties", 2),
        "repeat": ("repeat", mine, "-o", tmp_path / "r", "--seeds", 1, "--backend", "threads"),
        "score": ("score", folder, mine),
        "time": ("time", folder, mine, "-o", tmp_path / "times.csv"),
        "rivals": ("rivals", folder, mine, "--least-effect", 50),
        "plot": ("plot", "sizes", folder, mine, "-o", tmp_path / "sizes.svg"),
    }
    for name, command in commands.items():
        done = run(*command)
        assert done.stderr.splitlines().count(told) == 1, name
        assert "was read as sample ids" not in done.stdout
    summary = run("import", "--table", mine, "-o", tmp_path / "imported.csv").stdout
    assert "the first column ('tumour') was read as sample ids." in summary
    fewer = run(
        "fit", mine, "-o", tmp_path / "b", "--figures", "none", "--most-frequent", 2, "--json"
    )
    assert "2 items dropped, not among the 2 most frequent" in fewer.stderr
    shown = json.loads(fewer.stdout)["import_summary"]
    assert (shown["items_read"], shown["items_kept"]) == (4, 2)
    assert any("'tumour'" in note for note in shown["notes"])


def test_order(folder):
    report = json.loads(run("order", folder, "a,b", "plain", "--json").stdout)
    model = sequela.Model.load(folder / "model.npz")
    expected = sequela.order_probability(model, "a,b", "plain").value
    row = report["pairs"][0]
    found = row["probability"] if row["first"] == "a,b" else 1 - row["probability"]
    assert found == pytest.approx(expected, abs=1e-12)
    assert row["method"] == "exact"
    shown = run("order", folder).stdout
    assert len([line for line in shown.splitlines() if "exact" in line]) == 6
    unknown = run("order", folder, "a,b", "plane", code=2)
    assert "closest: 'plain'" in unknown.stderr
    assert "--likely needs --given" in run("order", folder, "--likely", 2, code=2).stderr


def test_a_named_pair_stays_as_it_was_named(folder):
    for pair in (("a,b", "plain"), ("plain", "a,b")):
        row = json.loads(run("order", folder, *pair, "--json").stdout)["pairs"][0]
        assert (row["first"], row["second"]) == pair


def test_data_may_have_more_items_than_the_model(folder, table, tmp_path):
    more = tmp_path / "more.csv"
    frame = pd.read_csv(table).drop(columns="time")
    frame.assign(other=1).to_csv(more, index=False)
    frame.to_csv(tmp_path / "same.csv", index=False)
    found = run("time", folder, more)
    assert "1 items of the data are not in the model" in found.stderr
    assert found.stdout == run("time", folder, tmp_path / "same.csv").stdout
    frame.drop(columns="plain").to_csv(tmp_path / "less.csv", index=False)
    assert "1 of the 4 items of the model are missing, for example 'plain'" in (
        run("score", folder, tmp_path / "less.csv", code=2).stderr
    )


def test_no_file_is_lost(folder, table, tmp_path):
    mine = tmp_path / "mine.csv"
    pd.read_csv(table).drop(columns="time").to_csv(mine, index=False)
    before = mine.read_bytes()
    for arguments in (
        ("time", folder, mine), ("simulate", folder, "-n", 2), ("path", mine, "--penalties", 2),
        ("import", "--table", mine),
    ):  # fmt: skip
        assert "--force" in run(*arguments, "-o", mine, code=2).stderr
        assert "is a folder" in run(*arguments, "-o", tmp_path, "--force", code=2).stderr
        assert (
            "should be written, does not exist"
            in run(*arguments, "-o", tmp_path / "no" / "x.csv", code=2).stderr
        )
    assert mine.read_bytes() == before
    run("simulate", folder, "-n", 2, "-o", mine, "--force")
    assert mine.read_bytes() != before


def test_order_in_a_sample(folder):
    given = '"a,b",plain,+1'
    report = json.loads(run("order", folder, "--given", given, "--likely", 6, "--json").stdout)
    assert report["given"] == ["a,b", "plain", "+1"]
    assert sum(row["probability"] for row in report["likely_orders"]) == pytest.approx(1.0)
    assert sorted(report["likely_orders"][0]["order"]) == sorted(["a,b", "plain", "+1"])
    assert " > " in run("order", folder, "--given", given, "--likely", 1).stdout


@pytest.fixture(scope="module")
def partly_known(tmp_path_factory):
    """Return the folder of a fit of samples with missing cells and known orders."""
    place = tmp_path_factory.mktemp("partly")
    theta = [[0.5, 1.0, 0.5], [0.0, -0.5, 0.5], [0.0, 0.0, -0.5]]
    drawn = sequela.simulate(theta, 60, items=["a", "b", "c"], random_state=1).to_dataset()
    frame = drawn.without_times().to_frame().astype(int).astype(object)
    frame.index = [f"s{k}" for k in range(60)]
    frame.loc["s0"] = [1, "NA", 1]
    frame.loc["s1"] = [1, 1, 1]
    frame.to_csv(place / "table.csv", index_label="sample")
    (place / "orders.csv").write_text("sample,before,after,probability\ns0,c,a,0.9\ns1,a,b,1\n")
    run(
        "fit", place / "table.csv", "-o", place / "fit", "--orders", place / "orders.csv",
        "--seed", 1, "--starts", 1, "--no-check", "--figures", "none",
    )  # fmt: skip
    return place / "fit"


def test_order_in_a_sample_with_missing_items(partly_known):
    model = sequela.Model.load(partly_known / "model.npz")
    asked = ("order", partly_known, "--given", "a,c", "--missing", "b")
    report = json.loads(run(*asked, "--likely", 5, "--json").stdout)
    data = sequela.Dataset([[1, None, 1]], items=model.items)
    expected = sequela.order_matrix(model, given=data).pairs().iloc[0]
    row = report["pairs"][0]
    assert (row["first"], row["second"]) == (expected["first"], expected["second"])
    assert row["probability"] == expected["probability"]
    assert (report["given"], report["missing"]) == (["a", "c"], ["b"])
    assert sum(way["probability"] for way in report["likely_orders"]) == pytest.approx(1.0)
    without = json.loads(run("order", partly_known, "--given", "a,c", "--json").stdout)
    assert without["missing"] == []
    assert without["pairs"][0]["probability"] != row["probability"]
    assert "A sample with a, c. It may also have b." in run(*asked).stdout
    unknown = run(*asked[:2], "a", "b", *asked[2:], code=2).stderr
    assert "not known whether the sample has 'b'" in " ".join(unknown.split())


def test_order_in_a_named_sample_uses_what_is_known_of_it(partly_known):
    model = sequela.Model.load(partly_known / "model.npz")
    data = sequela.Dataset([[1, None, 1]], items=model.items, orders=[[("c", "a", 0.9)]])
    report = json.loads(run("order", partly_known, "--sample", "s0", "--json").stdout)
    expected = sequela.order_matrix(model, given=data).probability.loc["a", "c"]
    row = report["pairs"][0]
    turned = row["first"] == "c"
    assert row["probability"] == pytest.approx(1.0 - expected if turned else expected)
    assert report["known_orders"] == [["c", "a", 0.9]]
    shown = run("order", partly_known, "--sample", "s0").stdout
    assert "It may also have b. c before a is known with probability 0.9." in shown
    certain = run("order", partly_known, "--sample", "s1", "--likely", 9, "--json").stdout
    for way in json.loads(certain)["likely_orders"]:
        assert way["order"].index("a") < way["order"].index("b")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--missing", "b"], "--missing needs --given"),
        (["--given", "a,c", "--sample", "s0"], "cannot be used together"),
        (["--given", "a,c", "--missing", "c"], "'c' is in --given and in --missing"),
        (["--given", "a,c", "--missing", "x"], "no item 'x'"),
        (["--given", "a,c,c"], "--given contains 'c' more than once"),
        (["--sample", "nobody"], "there is no sample 'nobody'"),
        (["--likely", "2"], "--likely needs --given or --sample"),
    ],
)
def test_wrong_samples_of_order(partly_known, options, message):
    refused = run("order", partly_known, *options, code=2).stderr
    assert message in " ".join(refused.split())


def test_next_averages_over_missing_items(partly_known):
    model = sequela.Model.load(partly_known / "model.npz")
    report = json.loads(
        run("next", partly_known, "--state", "a", "--missing", "b", "--json").stdout
    )
    expected = sequela.questions.next_items(
        model, sequela.Dataset([[1, None, 0]], items=model.items)
    )
    assert report["observed_first"] == expected.observed_first
    assert {row["item"] for row in report["items"]} == {"b", "c"}
    assert report["missing"] == ["b"]
    assert "may be present: b" in run("next", partly_known, "--state", "a", "--missing", "b").stdout
    named = json.loads(run("next", partly_known, "--sample", "s0", "--json").stdout)
    data = sequela.Dataset([[1, None, 1]], items=model.items, orders=[[("c", "a", 0.9)]])
    assert named["observed_first"] == sequela.questions.next_items(model, data).observed_first
    refused = run("next", partly_known, "--sample", "s0", "--within", 1, code=2).stderr
    assert "--within is for samples without missing items" in " ".join(refused.split())
    assert (
        "cannot be used"
        in run("next", partly_known, "--sample", "s0", "--missing", "b", code=2).stderr
    )


def test_the_tree_has_the_samples_with_missing_cells(partly_known, tmp_path):
    made = tmp_path / "tree.svg"
    run("plot", "tree", partly_known, partly_known.parent / "table.csv", "-o", made)
    text = made.read_text()
    assert "60 samples" in text
    assert "left out" not in text


def test_time_and_score(folder, table, tmp_path):
    output = tmp_path / "times.csv"
    without = tmp_path / "without.csv"
    pd.read_csv(table).drop(columns="time").to_csv(without, index=False)
    run("time", folder, without, "-o", output)
    found = pd.read_csv(output, index_col="sample")
    model = sequela.Model.load(folder / "model.npz")
    data = sequela.Dataset(pd.read_csv(without, index_col="sample"))
    assert found["q50"].to_numpy() == pytest.approx(
        sequela.pseudo_times(model, data)["q50"].to_numpy(), rel=1e-12
    )
    assert run("time", folder, without).stdout == output.read_text()
    report = json.loads(run("score", folder, without, "--json").stdout)
    assert report["log_likelihood"] == pytest.approx(
        sequela.log_likelihood(model.to_frame(), data), abs=1e-12
    )
    timed = json.loads(run("score", folder, table, "--times", "time", "--json").stdout)
    assert timed["log_likelihood"] != pytest.approx(report["log_likelihood"], abs=1e-3)
    assert "120 samples" in run("score", folder, without).stdout


def test_a_long_table_of_times_is_announced(folder, table, tmp_path, monkeypatch):
    without = tmp_path / "without.csv"
    pd.read_csv(table).drop(columns="time").to_csv(without, index=False)
    short = run("time", folder, without)
    assert "roughly" not in short.stderr
    monkeypatch.setattr("sequela.likelihood.forecast.LONG", 0.0)
    long = run("time", folder, without, "--threads", 2)
    assert "pseudo-times (roughly 1 minute with 2 threads and 10 MB of memory)" in long.stderr
    assert long.stdout == short.stdout


def test_next(folder):
    report = json.loads(run("next", folder, "--state", "plain", "--within", 0.5, "--json").stdout)
    total = report["observed_first"] + sum(row["probability"] for row in report["items"])
    assert total == pytest.approx(1.0)
    assert {row["item"] for row in report["items"]} == set(LABELS) - {"plain"}
    assert all(0 < row["within"] < 1 for row in report["items"])
    assert "and 1 more" in run("next", folder, "--state", "plain", "--most", 2).stdout
    twice = run("next", folder, "--state", "plain,plain", code=2)
    assert "'plain' more than once" in twice.stderr


def test_next_shows_both_probabilities_and_takes_a_sample(folder, table):
    sample = sequela.read_table(table, times="time").data.select_samples(["7"])
    name, present = sample.samples[0], [x for x in LABELS if x in sample.sets()[0]]
    by_name = json.loads(run("next", folder, "--sample", name, "--json").stdout)
    by_items = json.loads(run("next", folder, "--state", _listed(present), "--json").stdout)
    assert by_name.pop("sample") == name
    assert by_name == by_items
    shown = run("next", folder, "--sample", name).stdout
    assert "Next item" in shown
    assert "Next, before the observation" in shown
    row = by_items["items"][0]
    assert f"{row['share']:.4f}" in shown
    assert f"{row['probability']:.4f}" in shown
    assert row["probability"] == pytest.approx(row["share"] * (1 - by_items["observed_first"]))
    assert f"use --sample {name!r}" in run("next", folder, "--state", name, code=2).stderr
    assert "there is no sample 'x'" in run("next", folder, "--sample", "x", code=2).stderr
    both = run("next", folder, "--sample", name, "--state", "plain", code=2)
    assert "cannot be used together" in both.stderr


def _listed(labels):
    return ",".join(f'"{label}"' for label in labels)


def test_order_shows_what_the_data_allow(folder):
    row = folder_ranges(folder).dropna(subset=["low"]).iloc[0]
    one, other = str(row["first"]), str(row["second"])
    found = json.loads(run("order", folder, other, one, "--json").stdout)["pairs"][0]
    turned = found["first"] != one
    low, high = (1 - row["high"], 1 - row["low"]) if turned else (row["low"], row["high"])
    assert found["low"] == pytest.approx(low)
    assert found["high"] == pytest.approx(high)
    assert found["verdict"] == row["verdict"]
    shown = run("order", folder, one, other).stdout
    assert row["verdict"] in shown
    assert "The data allow" in shown
    assert "The data allow" not in run("order", folder / "model.npz", one, other).stdout


def test_simulate_and_learn_again(folder, tmp_path):
    drawn = tmp_path / "drawn.csv"
    done = run("simulate", folder, "-n", 50, "--seed", 3, "-o", drawn)
    assert "seed 3" in done.stderr
    frame = pd.read_csv(drawn, index_col="sample")
    model = sequela.Model.load(folder / "model.npz")
    expected = sequela.simulate(model.theta, 50, random_state=3).to_dataset()
    assert np.array_equal(frame.iloc[:, 1:].to_numpy(bool), expected.values)
    assert frame["time"].to_numpy() == pytest.approx(expected.times)
    listed = tmp_path / "arrivals.csv"
    run("simulate", folder, "-n", 50, "--seed", 3, "--sequences", "-o", listed)
    arrivals = pd.read_csv(listed)
    assert len(arrivals) == expected.values.sum()
    assert (arrivals["arrival"] < arrivals["observed"]).all()


def test_path(table, tmp_path):
    output = tmp_path / "path.csv"
    arguments = ("path", table, "--times", "time", "--penalties", 3, "--seed", 1)
    shown = run(*arguments, "-o", output)
    found = pd.read_csv(output)
    assert len(found) == 3
    assert found["penalty"].is_monotonic_decreasing
    assert found["interactions"].iloc[0] == 0
    assert "penalty" in shown.stdout
    report = json.loads(run(*arguments, "--cv", "--folds", 3, "--json").stdout)
    chosen = [row["penalty"] for row in report["table"] if row["chosen"]]
    assert chosen == [report["penalty"]]


@pytest.mark.parametrize(
    "kind",
    ["theta", "interactions", "orders", "times", "timeline", "frequencies", "co-occurrence",
     "sizes", "clock"],
)  # fmt: skip
def test_plot(kind, folder, table, tmp_path):
    without = tmp_path / "without.csv"
    pd.read_csv(table).drop(columns="time").to_csv(without, index=False)
    output = tmp_path / f"{kind}.svg"
    run("plot", kind, folder, without, "-o", output)
    text = output.read_text()
    assert text.lstrip().startswith("<?xml")
    assert "--force" in run("plot", kind, folder, without, "-o", output, code=2).stderr
    assert output.read_text() == text
    again = tmp_path / "again.svg"
    run("plot", kind, folder, without, "-o", again)
    assert again.read_text() == text


def test_plot_refuses_what_it_cannot_draw(folder, table, tmp_path):
    assert "needs DATA" in run("plot", "sizes", folder, "-o", tmp_path / "x.png", code=2).stderr
    assert ".png" in run("plot", "theta", folder, "-o", tmp_path / "x.gif", code=2).stderr
    no_sample = run(
        "plot", "times", folder, table, "--samples", "nobody", "-o", tmp_path / "x.png", code=2
    )
    assert not (tmp_path / "x.png").exists()
    assert no_sample.stderr.startswith("Error:")


@pytest.mark.parametrize("what", ["nothing", "empty.npz", "text.npz"])
def test_a_model_that_is_none_is_refused(what, tmp_path):
    path = tmp_path / what
    if what == "empty.npz":
        path.write_bytes(b"")
    elif what == "text.npz":
        path.write_text("no model")
    for arguments in (("order", path), ("next", path), ("simulate", path, "-n", 1)):
        assert run(*arguments, code=2).stderr.startswith("Error:")
    tmp_path.joinpath("folder").mkdir()
    assert "without model.npz" in run("order", tmp_path / "folder", code=2).stderr


def test_import_a_table(table, tmp_path):
    output = tmp_path / "imported.csv"
    done = run("import", "--table", table, "--times", "time", "--most-frequent", 3, "-o", output)
    assert "120" in done.stdout
    read = sequela.Dataset(pd.read_csv(output, index_col=[0, 1]).droplevel("time"))
    assert read.n_items == 3
    assert "exists" in run("import", "--table", table, "-o", output, code=2).stderr
    report = json.loads(
        run("import", "--table", table, "--times", "time", "-o", output, "--force", "--json").stdout
    )
    assert report["written"] == str(output)
    assert "exactly one of" in run("import", "-o", tmp_path / "x.csv", code=2).stderr
    wrong = run("import", "--table", table, "--profiled", table, "-o", tmp_path / "x.csv", code=2)
    assert "belongs to --maf" in wrong.stderr


def test_the_demo_does_the_whole_of_it(tmp_path, monkeypatch):
    """Run the demo with a fit, and check the result that the docstring of `run_demo` shows.

    The doctests skip this example because its fit takes long.
    """
    made, demos = tmp_path / "demo", []
    original = sequela.report.run_demo

    def keep(*arguments, **options):
        demos.append(original(*arguments, **options))
        return demos[0]

    monkeypatch.setattr(sequela.report, "run_demo", keep)
    done = run("demo", "-o", made, "--seed", 2, "--figures", "none")
    assert "P(EGFR(A) before EGFR)" in done.stdout
    model = sequela.Model.load(made / "model.npz")
    assert model.items == example_samples().items
    assert demos[0].learned.value > 0.5
    assert (made / "samples.csv").read_bytes() == example_path("samples.csv").read_bytes()
    assert "samples.csv" in demos[0].fit.files
    assert f"sequela posterior {made / 'samples.csv'} -o" in done.stdout
    assert sorted(demos[0].to_json()["order"]) == ["first", "learned", "then", "true"]
    assert "--force" in run("demo", "-o", made, code=2).stderr


def test_the_embedded_example_is_what_it_says():
    samples = example_samples()
    assert (samples.n_samples, samples.n_items) == (400, 50)
    true = sequela.Model.from_csv(example_path("theta.csv"))
    assert true.items == samples.items
    drawn = sequela.simulate(true.theta, 400, random_state=20211).to_dataset()
    assert np.array_equal(drawn.values, samples.values)


def test_a_fit_has_its_observation_times_and_says_whether_it_fits(tmp_path):
    made = tmp_path / "gamma"
    options = ("--observation", "gamma:3", "--seed", 1, "--figures", "none", "--starts", 1)
    options = (*options, "--most-frequent", 3)
    shown = json.loads(
        run("fit", example_path("samples.csv"), "-o", made, "--json", *options).stdout
    )
    assert shown["fit_check"]["tests"]
    said = next(notice for notice in shown["notices"] if "not checked" in notice)
    assert "`sequela rivals FOLDER DATA`" in said
    assert "`sequela posterior` assumes exponential times" in said
    advice = run("order", made).stdout
    assert "`sequela rivals` shows whether the data can tell" in advice
    assert "`sequela posterior` assumes exponential observation times" in advice
    model = sequela.Model.load(made / "model.npz")
    assert model.observation == sequela.Gamma(3.0)
    record = json.loads((made / "run.json").read_text())
    assert record["options"]["observation"] == "gamma:3"
    assert record["result"]["fit_check"]["data_sets"] == 999
    assert "fit_check" in (made / "report.html").read_text("utf-8")
    repeated = run("fit", "-o", tmp_path / "again", "--repeat", made, "--json", "--figures", "none")
    assert json.loads(repeated.stdout)["same_as_repeated"]
    refused = run("fit", example_path("samples.csv"), "-o", tmp_path / "no", "--observation", "x:1",
                  code=2)  # fmt: skip
    assert "gamma:SHAPE" in refused.output


def test_a_fit_with_effects_on_the_observation_says_what_the_data_cannot_tell(tmp_path):
    made = tmp_path / "effects"
    options = ("--observation", "effects", "--seed", 1, "--figures", "none", "--most-frequent", 4)
    source = example_path("samples.csv")
    shown = json.loads(run("fit", source, "-o", made, "--json", *options).stdout)
    assert shown["converged"]
    assert any("AUC 0.33" in notice for notice in shown["notices"])
    assert any("in the model without effects" in notice for notice in shown["notices"])
    model = sequela.Model.load(made / "model.npz")
    expected = sequela.learning.fit_observation_effects(example_samples().most_frequent(4), 0.01,
                                                        max_iter=1000)  # fmt: skip
    assert np.array_equal(model.theta, expected.theta)
    assert model.observation == expected.observation
    theirs = sequela.Model.from_mhn(made / "omhn.csv")
    assert theirs.observation == model.observation
    effects = pd.read_csv(made / "observation_effects.csv").set_index("item")["effect"]
    assert effects[list(model.items)].to_numpy() == pytest.approx(np.array(model.observation.omega))
    assert json.loads((made / "run.json").read_text())["options"]["observation"] == "effects"
    assert "AUC 0.33" in (made / "report.html").read_text("utf-8")
    repeated = run("fit", "-o", tmp_path / "again", "--repeat", made, "--json", "--figures", "none")
    assert json.loads(repeated.stdout)["same_as_repeated"]
    refused = run("fit", source, "-o", tmp_path / "no", *options, "--cv", code=2)
    assert "does not support --cv" in refused.output


def test_any_observation_may_choose_effects_and_such_a_run_can_be_repeated(tmp_path):
    omega = [1.5, -1.5, 1.0, -1.0, 1.2]
    truth = sequela.Model(
        np.diag(np.linspace(-1.0, 0.5, 5)), list("abcde"),
        observation=sequela.ObservationEffects(omega),
    )  # fmt: skip
    drawn = sequela.simulate(truth, 700, random_state=1).to_dataset().without_times()
    table = tmp_path / "samples.csv"
    drawn.to_frame().to_csv(table)
    made = tmp_path / "any"
    options = ("--observation", "any", "--seed", 1, "--figures", "none")
    shown = json.loads(run("fit", table, "-o", made, "--json", *options).stdout)
    assert any("fewest and weakest interactions" in notice for notice in shown["notices"])
    assert not any("AUC 0.33" in notice for notice in shown["notices"])
    model = sequela.Model.load(made / "model.npz")
    expected = sequela.learning.fit_observation_effects(drawn, 0.01, penalty_kind="l1",
                                                        max_iter=1000)  # fmt: skip
    assert model.observation == expected.observation
    options_of_run = json.loads((made / "run.json").read_text())["options"]
    assert options_of_run["observation"] == "effects:l1"
    assert "fewest and weakest interactions" in (made / "report.html").read_text("utf-8")
    repeated = run("fit", "-o", tmp_path / "again", "--repeat", made, "--json", "--figures", "none")
    assert json.loads(repeated.stdout)["same_as_repeated"]


def test_orders_of_a_model_that_does_not_fit_are_not_trusted(tmp_path):
    """Add 200 empty samples: the evidence stays strong, but the model no longer fits the data."""
    theta = np.diag([0.0, -4.0] + 20 * [-2.5])
    theta[0, 1] = 4.0
    drawn = sequela.simulate(theta, 500, random_state=1).to_dataset()
    verdicts = {}
    for extra in (0, 200):
        values = np.vstack([drawn.values, np.zeros((extra, 22), dtype=bool)]).astype(int)
        path, made = tmp_path / f"{extra}.csv", tmp_path / f"fit{extra}"
        names = [f"i{k}" for k in range(22)]
        samples = [f"s{k}" for k in range(len(values))]
        pd.DataFrame(values, samples, names).to_csv(path, index_label="sample")
        shown = run("fit", path, "-o", made, "--penalty", 0.02, "--seed", 1, "--starts", 1,
                    "--figures", "none")  # fmt: skip
        verdicts[extra] = folder_ranges(made)["verdict"].iloc[0]
        assert verdicts[extra] in shown.stdout
        assert verdicts[extra] in run("order", made, "i0", "i1").output
        assert ('"untrusted"' in (made / "report.html").read_text("utf-8").split("<script")[1]
                ) == (extra > 0)  # fmt: skip
    assert verdicts == {0: "the data can tell", 200: "not trusted: the model does not fit"}


@pytest.mark.parametrize("missing", ["keep", "absent"])
def test_the_next_steps_work_with_missing_cells(missing, tmp_path, monkeypatch):
    """Every suggested command works."""
    monkeypatch.chdir(tmp_path)
    rows = 40 * ["0,0"] + 20 * ["1,0"] + 5 * ["0,1"] + 35 * ["1,1"] + [",1"]
    (tmp_path / "gaps.csv").write_text("a,b\n" + "\n".join(rows) + "\n", "utf-8")
    done = run("fit", "gaps.csv", "-o", "fit", "--seed", 1, "--missing", missing, "--threads", 1)
    assert done.exit_code == 0, done.output
    steps = [line.strip() for line in done.output.splitlines() if line.startswith("  sequela ")]
    made, sampled, planned = (shlex.split(step)[1:] for step in steps)
    assert run(*made).exit_code == 0
    again = run(*sampled, "--draws", 10, "--chains", 2, "--threads", 1)
    assert again.exit_code == 0, again.output
    plan_of = run(*planned, "--samples", 0, "--clocks", "0,2", "--studies", 4, "--threads", 1)
    assert plan_of.exit_code == 0, plan_of.output
    assert "With the 101 samples of DATA" in plan_of.output


def test_the_suggested_plan_reads_labels_with_a_hyphen_and_leaves_out_columns(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rows = 40 * ["50,0,0"] + 20 * ["60,1,0"] + 5 * ["70,0,1"] + 35 * ["80,1,1"]
    (tmp_path / "arms.csv").write_text("age,-7q,-18q\n" + "\n".join(rows) + "\n", "utf-8")
    done = run("fit", "arms.csv", "-o", "fit", "--drop", "age", "--seed", 1, "--threads", 1)
    assert "because of --drop: age" in done.stderr
    step = next(line for line in done.stdout.splitlines() if "sequela plan" in line)
    read = plan.make_context("plan", shlex.split(step)[2:]).params
    assert {read["first"], read["second"]} == {"-7q", "-18q"}
    assert read["drop"] == ("age",)
    refused = run("order", "fit", "-7q", "-18q", code=2)
    assert "write -- before the items" in refused.stderr
    assert "-18q" in run("order", "fit", "--", "-7q", "-18q").stdout
    assert "at least two items" in run("order", "fit", "--", "-7q", code=2).stderr
    # A model file does not know which columns the fit dropped; the folder of the fit does.
    assert "--drop age" in run("time", "fit/model.npz", "arms.csv", code=2).stderr
    assert "--drop age (" not in run("score", "fit/model.npz", "arms.csv", code=2).stderr
    for timed in (run("time", "fit", "arms.csv"), run("time", "fit", "arms.csv", "--drop", "age")):
        assert len(timed.stdout.splitlines()) == 101
    assert "mean log-likelihood" in run("score", "fit", "arms.csv").stdout


def test_orders_that_depend_on_effects_on_the_observation_get_a_verdict_of_their_own(tmp_path):
    """The model of the fit and a model with effects predict new samples about equally well.

    They disagree about the order of b and c, but not about e and d.
    """
    theta = np.diag([-1.7, -1.5, -1.3, -1.5, -0.9, -1.8, -1.9])
    strong = {(0, 4): 0.9, (1, 0): -1.3, (1, 4): 1.9, (1, 6): 2.1, (2, 0): -1.1, (2, 4): 0.9,
              (2, 6): -1.7, (3, 1): -1.1, (4, 2): 1.1}  # fmt: skip
    for (i, j), effect in strong.items():
        theta[i, j] = effect
    observation = sequela.ObservationEffects([-1.1, 0.8, -1.2, -1.0, -1.4, 1.4, -0.1])
    truth = sequela.Model(theta, list("abcdefg"), observation=observation)
    drawn = sequela.simulate(truth, 500, random_state=10).to_dataset().without_times()
    table, made = tmp_path / "samples.csv", tmp_path / "fit"
    drawn.to_frame().to_csv(table)
    options = ("--seed", 1, "--figures", "none")
    shown = run("fit", table, "-o", made, "--check-effects", *options).stdout
    assert "The data do not exclude that items influence when samples are observed" in shown
    ranges = folder_ranges(made).set_index(["first", "second"])
    words = Verdict.DEPENDS.value
    assert ranges.loc[("b", "c"), "verdict"] == words
    assert ranges.loc[("e", "d"), "verdict"] == "the data can tell"
    assert f"({words})" in shown
    assert words in run("order", made, "b", "c").output
    listed = pd.read_csv(made / "orders_with_effects.csv").set_index(["first", "second"])
    assert listed.loc[("b", "c"), "opposite"]
    assert not listed.loc[("e", "d"), "opposite"]
    record = json.loads((made / "run.json").read_text())["result"]["effects_check"]
    assert record["plausible"]
    assert record["opposite"] == listed["opposite"].sum()
    page = (made / "report.html").read_text("utf-8").split("<script")[1]
    assert '"depends"' in page
    assert record["findings"][0][1:40] in page
    again = json.loads(
        run("fit", "-o", tmp_path / "again", "--repeat", made, "--json", *options[2:]).stdout
    )
    assert again["same_as_repeated"]
    assert again["effects_check"] == record
    plain = tmp_path / "plain"
    run("fit", table, "-o", plain, *options)
    assert folder_ranges(plain).set_index(["first", "second"]).loc[("b", "c"), "verdict"] == (
        "the data can tell"
    )


def test_comparing_any_kind_also_checks_for_effects_on_the_observation(tmp_path):
    source, made = example_path("samples.csv"), tmp_path / "fit"
    options = ("--seed", 1, "--figures", "none", "--most-frequent", 3)
    shown = json.loads(run("fit", source, "-o", made, "--observation", "any", "--json",
                           *options).stdout)  # fmt: skip
    assert shown["effects_check"]["orders"] == 3
    assert json.loads((made / "run.json").read_text())["options"]["check_effects"]
    again = run("fit", "-o", tmp_path / "again", "--repeat", made, "--json", "--figures", "none")
    assert json.loads(again.stdout)["effects_check"] == shown["effects_check"]
    refused = run("fit", source, "-o", tmp_path / "no", "--check-effects", "--observation",
                  "effects", *options, code=2)  # fmt: skip
    assert "leave out --check-effects" in refused.output
