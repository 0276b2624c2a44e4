"""A fit from Python writes the same folder as the command. Repeating it gives the same bits."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import sequela
from cli.invoking import run as run_command
from sequela.data.examples import example_path
from sequela.learning import Status
from sequela.report import (
    Execution,
    FitRunOptions,
    OutputOptions,
    Run,
    fit_folder,
    repeat_run,
    run_fit,
    write_fit,
)
from sequela.report.fit_run import was_interrupted
from sequela.report.run import checksum

OPTIONS = FitRunOptions(penalty=0.02, times="time", most_frequent=4, starts=2, seed=5)
PLAIN = OutputOptions(figures=())


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return the path of a table. Its first column has sample ids, but not a usual name for ids."""
    drawn = sequela.simulate(sequela.example_theta(), 120, random_state=1).to_dataset()
    frame = drawn.to_frame().astype(int)
    frame.index = [f"T{row}" for row in range(120)]
    frame.insert(0, "time", drawn.times)
    path = tmp_path_factory.mktemp("data") / "samples.csv"
    frame.to_csv(path, index_label="tumour")
    return path


@pytest.fixture(scope="module")
def report(table, tmp_path_factory):
    """Return the report of a fit with figures."""
    folder = tmp_path_factory.mktemp("fits") / "fit"
    return run_fit(table, folder, OPTIONS, output=OutputOptions(figures=("svg",)))


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_python_and_the_command_leave_the_same_folder(report, table, tmp_path):
    folder = tmp_path / "fit"
    shown = json.loads(
        run_command(
            "fit", table, "-o", folder, "--penalty", 0.02, "--times", "time", "--most-frequent", 4,
            "--starts", 2, "--seed", 5, "--figures", "svg", "--json",
        ).stdout
    )  # fmt: skip
    mine, theirs = contents(report.folder), contents(folder)
    assert sorted(mine) == sorted(theirs)
    assert mine == theirs  # compares all bytes of all files, also of run.json
    assert {"model.npz", "run.json", "pseudo_times.csv", "figures/theta.svg"} <= set(mine)
    model = sequela.Model.load(folder / "model.npz")
    assert model.theta.tobytes() == report.learner.theta_.tobytes()
    assert shown | {"folder": None} == report.to_json() | {"folder": None}


def test_the_report_is_that_of_the_learner(report, table):
    data = sequela.read_table(table, times="time").data.most_frequent(4)
    learner = sequela.SetChain(0.02, n_starts=2, random_state=5).fit(data)
    assert np.array_equal(report.learner.theta_, learner.theta_)
    assert report.model == sequela.Model.load(report.folder / "model.npz")
    assert report.result.objective == learner.objective_
    assert report.result.interactions == len(learner.model_.interactions())
    assert not report.interrupted
    assert report.same_as_repeated is None
    assert sorted(report.files) == sorted(contents(report.folder))
    plain = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert plain == report.to_json()
    assert (plain["samples"], plain["items"]) == (120, 4)
    strongest = report.model.interactions().head(8)
    assert [row["effect"] for row in plain["strongest"]] == strongest["effect"].tolist()


def test_how_the_table_was_read_is_told_and_recorded(table, tmp_path, caplog):
    caplog.set_level(logging.WARNING, logger="sequela")
    found = run_fit(table, tmp_path / "fit", OPTIONS, output=PLAIN)
    said = [record.getMessage() for record in caplog.records]
    assert "samples.csv: the first column ('tumour') was read as sample ids." in said
    assert any("6 items dropped, not among the 4 most frequent" in line for line in said)
    assert found.import_summary.items_read == 10
    record = json.loads((tmp_path / "fit" / "run.json").read_text())
    assert record["data"]["import_summary"] == found.import_summary.to_dict()
    assert record["data"]["sha256"] == checksum(table)


def test_a_repetition_gives_the_same_bits(report, table, tmp_path):
    again = repeat_run(report.folder, tmp_path / "again", execution=Execution(threads=1))
    assert again.same_as_repeated is True
    assert again.learner.theta_.tobytes() == report.learner.theta_.tobytes()
    assert again.options == report.options
    moved = tmp_path / "moved.csv"
    moved.write_bytes(table.read_bytes())
    there = repeat_run(report.folder / "run.json", tmp_path / "there", moved, output=PLAIN)
    assert there.same_as_repeated is True
    assert Run.read(tmp_path / "there").data["path"] == str(moved)


def old_run(table, folder, **options):
    """Write the ``run.json`` of a fit with these options in the format of version 0.1.0."""
    content = {
        "format": "sequela run", "version": 1, "command": "fit", "options": options,
        "data": {
            "path": str(table), "sha256": checksum(table), "samples": 120, "items": 4,
        },
        "result": {"objective": -1.0, "theta_sha256": "0" * 64},
        "versions": {"sequela": "0.1.0", "python": "3.11.7", "numpy": "2.0.0"},
    }  # fmt: skip
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(content, indent=1))
    return folder


def test_a_run_of_an_older_version_still_loads(report, table, tmp_path):
    old = old_run(
        table, tmp_path / "old", penalty=0.02, cv=False, starts=2, times="time", most_frequent=4,
        solver="auto", max_iter=1000, tol=1e-4, seed=5,
    )  # fmt: skip
    assert Run.read(old).data["samples"] == 120
    again = repeat_run(old, tmp_path / "again", output=PLAIN)
    assert again.same_as_repeated is False  # the old file has a made-up checksum of theta
    assert again.result == report.result
    fewer = old_run(table, tmp_path / "fewer", penalty=0.02, times="time", seed=5)
    assert repeat_run(fewer, tmp_path / "x", output=PLAIN).options == FitRunOptions(
        penalty=0.02, times="time", seed=5, starts=1, check=False
    )


def test_a_relative_path_is_relative_to_the_run(table, tmp_path):
    old = old_run(table, tmp_path / "old", times="time", seed=1, penalty=0.1)
    record = json.loads((old / "run.json").read_text())
    record["data"]["path"] = "here.csv"
    (old / "run.json").write_text(json.dumps(record))
    (old / "here.csv").write_bytes(table.read_bytes())
    for name in (old, old / "run.json"):
        repeat_run(name, tmp_path / "x", output=replace(PLAIN, force=True))
    (old / "here.csv").unlink()
    with pytest.raises(sequela.InputError, match=r"there is no file .*here\.csv"):
        repeat_run(old, tmp_path / "y", output=PLAIN)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"command": "path"}, "the run of `sequela path`, not of a fit"),
        ({"options": {"penalty": 0.1, "width": 3}}, "the option 'width', which this version"),
        ({"options": None}, "'options' is null, expected an object"),
        ({"options": [1]}, "'options' is a list with 1 entries, expected an object"),
        ({"data": {"path": "x"}}, "'data.sha256' is missing"),
        ({"version": 2}, "has version 2"),
    ],
)
def test_a_run_that_cannot_be_repeated_is_refused(table, change, message, tmp_path):
    old = old_run(table, tmp_path / "old", seed=1)
    record = json.loads((old / "run.json").read_text()) | change
    (old / "run.json").write_text(json.dumps(record))
    with pytest.raises(sequela.InputError, match=message):
        repeat_run(old, tmp_path / "again", output=PLAIN)
    assert not (tmp_path / "again").exists()


def test_other_data_are_refused(report, table, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().replace("1", "0", 1))
    with pytest.raises(sequela.InputError, match="SHA-256"):
        repeat_run(report.folder, tmp_path / "again", other, output=PLAIN)


@pytest.mark.parametrize("failure", [MemoryError("too much"), KeyboardInterrupt()])
def test_the_model_is_kept_if_a_later_table_fails(table, failure, tmp_path, monkeypatch, caplog):
    def fail(*_, **__):
        raise failure

    monkeypatch.setattr(fit_folder, "pseudo_times", fail)
    why = "was interrupted" if isinstance(failure, KeyboardInterrupt) else "could not be finished"
    for name in ("fit.incomplete", "fit.incomplete-2"):
        with pytest.raises(type(failure)):
            run_fit(table, tmp_path / "fit", OPTIONS, output=PLAIN)
        assert not (tmp_path / "fit").exists()
        kept = tmp_path / name
        assert f"{str(tmp_path / 'fit')!r} {why}" in caplog.text
        assert f"{str(kept)!r}" in caplog.text
        assert "removes this folder" in caplog.text
        assert {"model.npz", "theta.csv", "interactions.csv", "orders.csv"} <= set(contents(kept))
    monkeypatch.undo()
    again = repeat_run(kept, tmp_path / "fit", output=PLAIN)
    assert again.same_as_repeated is True
    assert sequela.Model.load(kept / "model.npz") == again.model
    assert len(list(tmp_path.iterdir())) == 3  # no temporary folder is left


def test_an_answer_that_cannot_be_computed_does_not_cost_the_fit(table, tmp_path, monkeypatch):
    """Without quantiles, the table of times has means; a table without an answer is left out."""
    usual = fit_folder.pseudo_times

    def without_quantiles(*arguments, quantiles=(0.5,), **options):
        if quantiles:
            raise sequela.InputError("the rates differ too much")
        return usual(*arguments, quantiles=quantiles, **options)

    def fail(*_, **__):
        raise sequela.BudgetError("too large")

    monkeypatch.setattr(fit_folder, "pseudo_times", without_quantiles)
    monkeypatch.setattr(fit_folder, "item_frequencies", fail)
    monkeypatch.setattr(fit_folder, "sample_posteriors", fail)
    monkeypatch.setattr("sequela.report.fit_checks.order_ranges", fail)
    found = run_fit(table, tmp_path / "fit", OPTIONS, output=OutputOptions(figures=("svg",)))
    times = pd.read_csv(tmp_path / "fit" / "pseudo_times.csv")
    assert list(times.columns) == ["sample", "size", "mean", "sd", "se", "method"]
    assert np.isfinite(times["mean"]).all()
    assert {"report.html", "model.npz", "figures/orders.svg"} <= set(found.files)
    assert not {"frequencies.csv", "figures/timeline.svg"} & set(found.files)
    said = "\n".join(found.notices)
    assert "no quantiles: the rates differ too much. With a larger penalty" in said
    assert "frequencies.csv was not written: too large" in said
    assert "The figure 'timeline' was not written: too large" in said
    assert "the orders that the data allow were not checked: too large" in said

    monkeypatch.undo()
    monkeypatch.setattr("sequela.report.fit_run.write_report", fail)
    found = run_fit(table, tmp_path / "again", replace(OPTIONS, check=False), output=PLAIN)
    assert "report.html was not written: too large" in found.notices


def test_a_fit_that_fails_leaves_nothing(table, tmp_path):
    with pytest.raises(sequela.InputError, match="penalty"):
        run_fit(table, tmp_path / "fit", replace(OPTIONS, penalty=-1.0), output=PLAIN)
    assert list(tmp_path.iterdir()) == []


def test_a_seed_is_found_where_none_is_given(table, tmp_path):
    options = FitRunOptions(penalty=0.1, times="time", most_frequent=3)
    execution = Execution(checkpoint=tmp_path / "fit.npz")
    one = run_fit(table, tmp_path / "one", options, output=PLAIN, execution=execution)
    assert one.options.seed == one.learner.seed_
    assert Run.read(tmp_path / "one").options["seed"] == one.options.seed
    # A run that continues from a checkpoint uses the seed of the checkpoint.
    two = run_fit(table, tmp_path / "two", options, output=PLAIN, execution=execution)
    assert two.options == one.options


def test_the_penalty_may_be_chosen_by_cross_validation(tmp_path):
    options = FitRunOptions(cv=True, most_frequent=3, seed=1)
    found = run_fit(example_path("samples.csv"), tmp_path / "fit", options, output=PLAIN)
    assert found.result.penalty == found.learner.penalty_
    assert repeat_run(tmp_path / "fit", tmp_path / "again", output=PLAIN).same_as_repeated


def test_parts_are_announced(table, tmp_path):
    told = []
    execution = Execution(announce=told.append)
    run_fit(table, tmp_path / "fit", OPTIONS, execution=execution)
    tables = ["orders", "pseudo-times", "frequencies", "arrival times", "figures"]
    report = ["report: orders and positions", "report: samples"]
    assert told == ["which orders the data allow", *tables, *report]
    assert (tmp_path / "fit" / "figures" / "theta.png").exists()


def test_what_takes_long_is_announced_with_time_and_memory(table, tmp_path, monkeypatch):
    monkeypatch.setattr("sequela.report.fit_folder.LONG", 0.0)
    told = []
    execution = Execution(announce=told.append, threads=2)
    run_fit(table, tmp_path / "fit", OPTIONS, execution=execution)
    costs = [part for part in told if "(" in part]
    assert [part.split(" (")[0] for part in costs] == ["pseudo-times", "arrival times"]
    for part in costs:
        assert re.search(r"roughly 1 minute with 2 threads and \d+ MB of memory", part)


def test_tables_stay_within_their_budget(table, tmp_path):
    """If an exact table would take too long, the largest sets are sampled.

    A notice says for how many samples.
    """
    output = OutputOptions(figures=("svg",), table_seconds=1e-3)
    found = run_fit(table, tmp_path / "fit", OPTIONS, output=output)
    assert found.notices == ()  # small sets are evaluated exactly
    data = sequela.simulate(dense_theta(16), 60, random_state=1).to_dataset().without_times()
    learner = sequela.SetChain(0.05, random_state=1).fit(data)
    learner.model_ = sequela.Model(dense_theta(16), data.items)
    exact = write_fit(tmp_path / "exact", learner, data)
    assert exact == ()
    notices = write_fit(tmp_path / "some", learner, data, table_seconds=0.5)
    assert [notice.split(":")[0] for notice in notices] == ["pseudo-times"]
    times = pd.read_csv(tmp_path / "some" / "pseudo_times.csv", index_col="sample")
    sampled = times["method"] == "relocation"
    assert 0 < sampled.sum() < data.n_samples
    assert f"pseudo-times: orders are drawn for {sampled.sum()} of 60 samples" in notices[0]
    assert "table_seconds allows 0.5 seconds)" in notices[0]
    # Only the largest sets were sampled.
    assert times["size"][sampled].min() >= 13
    truth = pd.read_csv(tmp_path / "exact" / "pseudo_times.csv", index_col="sample")
    assert set(truth["method"]) == {"exact"}
    np.testing.assert_array_equal(truth["mean"][~sampled], times["mean"][~sampled])
    assert (abs(truth["mean"] - times["mean"])[sampled] < 5 * times["se"][sampled]).all()
    with pytest.raises(sequela.InputError, match="table_seconds is 0; expected"):
        OutputOptions(table_seconds=0)


def dense_theta(n):
    theta = np.random.default_rng(2).normal(0.1, 0.3, (n, n))
    theta[np.diag_indices(n)] = -0.5
    return theta


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_killed_command_leaves_the_model(table, tmp_path):
    """The model is written before the tables, because a killed process cannot write anything."""
    script = f"""
        import os, signal
        from sequela.report import FitRunOptions, OutputOptions, fit_folder, run_fit

        def killed(*_, **__):
            os.kill(os.getpid(), signal.SIGKILL)

        fit_folder.pseudo_times = killed
        options = FitRunOptions(penalty=0.1, times="time", most_frequent=4, seed=1)
        run_fit({str(table)!r}, {str(tmp_path / "fit")!r}, options, output=OutputOptions(()))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)  # noqa: S603
    assert done.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["fit.incomplete"]
    kept = tmp_path / "fit.incomplete"
    model = sequela.Model.load(kept / "model.npz")
    again = repeat_run(kept, tmp_path / "fit", output=PLAIN)
    assert again.same_as_repeated is True
    assert again.model == model
    # When a later run with the same folder is complete, it removes the files of the killed run.
    assert [path.name for path in tmp_path.iterdir()] == ["fit"]


def test_what_cannot_be_written_is_refused_before_the_work(table, report, tmp_path, monkeypatch):
    def never(*_, **__):
        pytest.fail("the fit began")

    monkeypatch.setattr("sequela.report.fit_run.read_as_recorded", never)
    with pytest.raises(sequela.InputError, match=r"force=True"):
        run_fit(table, report.folder, OPTIONS)
    with pytest.raises(sequela.InputError, match="'gif' is not a figure format"):
        OutputOptions(figures=("png", "gif"))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(sequela.InputError, match="figures need matplotlib"):
        run_fit(table, tmp_path / "fit", OPTIONS)


def test_a_learner_of_ones_own_can_be_written(tmp_path):
    data = sequela.example_samples().most_frequent(4)
    learner = sequela.SetChain(0.05, random_state=1).fit(data)
    for _ in range(2):  # the second call replaces the files of the first
        write_fit(tmp_path / "fit", learner, data, figures=("svg",))
    assert sequela.Model.load(tmp_path / "fit" / "model.npz") == learner.model_
    assert len(pd.read_csv(tmp_path / "fit" / "pseudo_times.csv")) == data.n_samples


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("starts", [1, 3])
def test_an_interrupted_fit_says_so(table, starts, tmp_path):
    """After the first signal the fit ends, results are written, and the exit code is 130."""
    script = """
        import os, signal, sys
        from sequela.cli import main
        from sequela.learning.progress import FitProgress

        def update(self, *_):
            os.kill(os.getpid(), signal.SIGTERM)
            FitProgress.update = lambda self, *_: None

        FitProgress.update = update
        main(["fit", *sys.argv[1:]], prog_name="sequela")
    """
    folder = tmp_path / "fit"
    done = subprocess.run(  # noqa: S603 - our own text
        [
            *(sys.executable, "-c", textwrap.dedent(script), str(table), "-o", str(folder)),
            *("--times", "time", "--starts", str(starts), "--figures", "none", "--json"),
        ],
        capture_output=True, text=True, check=False, timeout=120, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    shown = json.loads(done.stdout)
    assert shown["interrupted"] is True
    assert any("interrupted (stopped by SIGTERM)" in notice for notice in shown["notices"])
    assert (folder / "model.npz").exists()


def test_interruption_is_told_from_the_end_of_all_starts():
    data = sequela.example_samples().most_frequent(4)
    learner = sequela.SetChain(0.05, n_starts=2, random_state=1).fit(data)
    assert not was_interrupted(learner)
    learner.status_ = Status.INTERRUPTED
    assert was_interrupted(learner)


def test_orders_come_with_what_the_data_allow(tmp_path):
    drawn = sequela.simulate(sequela.example_theta(), 300, random_state=1).to_dataset()
    table = tmp_path / "samples.csv"
    drawn.most_frequent(5).to_frame().astype(int).to_csv(table, index_label="sample")
    options = FitRunOptions(penalty=0.01, seed=1)
    found = run_fit(table, tmp_path / "fit", options, output=PLAIN)
    assert found.options.starts == 5
    assert len(found.learner.starts_) >= 5
    check = found.order_ranges
    assert len(check.table) > 0
    orders = pd.read_csv(tmp_path / "fit" / "orders.csv")
    written = orders.set_index(["first", "second"])
    for row in check.table.itertuples(index=False):
        mine = written.loc[(row.first, row.second)]
        assert [mine["low"], mine["high"]] == [row.low, row.high]
        assert (mine["verdict"], mine["baseline"]) == (row.verdict, row.baseline)
        assert mine["low"] <= mine["probability"] + 0.02
        assert mine["high"] >= mine["probability"] - 0.02
    assert (orders["verdict"] == "not checked").sum() == len(orders) - check.table["checked"].sum()
    assert len(pd.read_csv(tmp_path / "fit" / "order_ranges.csv")) == len(check.table)
    shown = run_command("fit", table, "-o", tmp_path / "shown", "--seed", 1, "--figures", "none")
    assert check.sentences()[0] in shown.stdout
    plain = run_command(
        "fit", table, "-o", tmp_path / "plain", "--seed", 1, "--figures", "none", "--no-check"
    )
    assert "the data allow" not in plain.stdout
    assert "low" not in pd.read_csv(tmp_path / "plain" / "orders.csv").columns


def test_a_better_model_of_the_check_is_the_result(tmp_path, monkeypatch):
    """If the check of orders finds a better optimum, this is the result, and a notice says so."""
    drawn = sequela.simulate(sequela.example_theta(), 300, random_state=1).to_dataset()
    table = tmp_path / "samples.csv"
    drawn.most_frequent(4).to_frame().astype(int).to_csv(table, index_label="sample")
    good = run_fit(table, tmp_path / "good", FitRunOptions(seed=1), output=PLAIN)
    # After only one iteration, the fit is far from any optimum.
    lazy = FitRunOptions(seed=1, starts=1, max_iter=1)
    found = run_fit(table, tmp_path / "fit", lazy, output=PLAIN)
    assert found.order_ranges.moves >= 1
    assert any("found a model that is better by" in notice for notice in found.notices)
    assert found.result.objective > good.result.objective - 0.01
    assert sequela.Model.load(tmp_path / "fit" / "model.npz") == found.model


def test_a_run_that_goes_on_from_its_checkpoint_replaces_its_own_folder(table, tmp_path):
    folder, how = tmp_path / "fit", Execution(checkpoint=tmp_path / "fit.npz", progress=False)
    options = FitRunOptions(penalty=0.05, times="time", most_frequent=3, starts=1, check=False)
    first = run_fit(table, folder, options, output=PLAIN, execution=how)
    again = run_fit(table, folder, options, output=PLAIN, execution=how)
    assert again.result == first.result
    assert sorted(again.files) == sorted(path.name for path in folder.iterdir())
    for other in (replace(options, penalty=0.1), replace(options, seed=first.options.seed + 1)):
        with pytest.raises(sequela.InputError, match="exists and is not empty"):
            run_fit(table, folder, other, output=PLAIN, execution=how)
    with pytest.raises(sequela.InputError, match="exists and is not empty"):
        run_fit(table, folder, options, output=PLAIN)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fit", "fit.npz"]


def test_a_check_that_a_signal_ended_counts_as_interrupted(table, tmp_path, monkeypatch):
    original = sequela.report.fit_checks.order_ranges

    def stopped(*arguments, **options):
        return replace(original(*arguments, **options), interrupted=True)

    monkeypatch.setattr(sequela.report.fit_checks, "order_ranges", stopped)
    options = FitRunOptions(penalty=0.05, times="time", most_frequent=3, starts=1, seed=1)
    assert run_fit(table, tmp_path / "fit", options, output=PLAIN).interrupted
