"""Repeats on the command line: bootstraps, parts run by a job array, resuming, and tables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

import sequela
from cli.invoking import run
from repeats.clusters import cluster_of, environment
from sequela import repeats
from sequela.cli.repeat_options import take_run_arguments


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    drawn = sequela.simulate(sequela.example_theta(), 120, random_state=1).to_dataset()
    frame = drawn.to_frame().astype(int)
    frame.insert(0, "time", drawn.times)
    path = tmp_path_factory.mktemp("data") / "samples.csv"
    frame.to_csv(path, index_label="sample")
    return path


@pytest.fixture(scope="module")
def untimed(table):
    path = table.with_name("untimed.csv")
    pd.read_csv(table).drop(columns="time").to_csv(path, index=False)
    return path


def threads(*arguments):
    return (*arguments, "--backend", "threads")


def test_bootstraps_from_table_to_tables(untimed, tmp_path):
    folder = tmp_path / "boots"
    done = run(*threads("repeat", untimed, "-o", folder, "--bootstraps", 5, "--penalty", 0.05,
                        "--seed", 3, "--orders", "step 1,step 2"))  # fmt: skip
    assert "5 of 5 repeats are done, seed 3" in done.stdout
    data = sequela.read_table(untimed).data
    plan = repeats.plan_fits(data, bootstraps=5, penalty=0.05, orders=["step 1", "step 2"], seed=3)
    assert repeats.read_plan(folder) == plan
    files = [tmp_path / name for name in ("fits.csv", "interactions.csv", "orders.csv")]
    report = json.loads(
        run("collect", folder, "-o", files[0], "--interactions", files[1], "--orders", files[2],
            "--level", 0.5, "--json").stdout
    )  # fmt: skip
    fits = pd.read_csv(files[0], index_col="repeat")
    expected = repeats.fit_table(folder)
    assert fits["objective"].tolist() == expected["objective"].tolist()
    assert fits["bootstrap"].tolist() == [0, 1, 2, 3, 4]
    summary = repeats.summarise(folder, level=0.5)
    assert pd.read_csv(files[1])["lower"].tolist() == summary["lower"].tolist()
    assert report["strongest"][0]["from"] == summary["from"][0]
    assert report["missing"] == []
    orders = pd.read_csv(files[2])
    assert orders["probability"].tolist() == repeats.pair_orders(folder)["probability"].tolist()
    assert f"{summary['share'][0]:.4g}" in run("collect", folder).stdout


def test_folds_and_penalties_show_the_held_out_likelihood(untimed, tmp_path):
    report = json.loads(
        run(*threads("repeat", untimed, "-o", tmp_path / "a", "--folds", 3, "--penalties",
                     "0.1, 0.03", "--seed", 1, "--json")).stdout
    )  # fmt: skip
    table = repeats.fit_table(tmp_path / "a")
    assert [row["penalty"] for row in report["fits"]] == [0.1, 0.03]
    for row in report["fits"]:
        mine = table[table["penalty"] == row["penalty"]]
        assert row["fits"] == 3
        assert row["held_out"] == pytest.approx(mine["held_out"].mean(), rel=1e-12)


def test_all_kinds_and_options_reach_the_plan(table, tmp_path):
    run(*threads("repeat", table, "-o", tmp_path / "a", "--times", "time", "--most-frequent", 5,
                 "--item-subsets", "2,3", "--random-subsets", 2, "--seeds", 1, "--starts", 2,
                 "--max-iter", 4, "--tol", 0.01, "--solver", "newton", "--seed", 1))  # fmt: skip
    plan = repeats.read_plan(tmp_path / "a")
    assert plan.data.times is not None
    assert plan.data.n_items == 5
    assert [(c["items"], c["subset"], c["start"]) for c in plan.cases] == [
        (2, 0, 0), (2, 1, 0), (3, 0, 0), (3, 1, 0)
    ]  # fmt: skip
    assert plan.common["options"] == {
        "n_starts": 2, "max_iter": 4, "tol": 0.01, "solver": "newton", "independent_start": False,
    }  # fmt: skip


def test_shares_of_an_array_and_collect(untimed, tmp_path):
    folder = tmp_path / "array"
    command = threads("repeat", untimed, "-o", folder, "--bootstraps", 5, "--penalty", 0.05)
    assert "need --seed" in run(*command, "--index", 0, "--of", 2, code=2).stderr
    assert not folder.exists()
    first = run(*command, "--index", 0, "--of", 2, "--seed", 3)
    assert "3 of 5 repeats are done" in first.stdout
    assert "missing: 1, 3" in first.stdout
    refused = run("collect", folder, "-o", tmp_path / "t.csv", code=2)
    assert "2 of 5 repeats are missing" in refused.stderr
    assert "(1, 3)" in refused.stderr
    assert "--partial" in refused.stderr
    assert not (tmp_path / "t.csv").exists()
    run("collect", folder, "-o", tmp_path / "t.csv", "--partial")
    assert len(pd.read_csv(tmp_path / "t.csv")) == 3
    # Without --seed, the command uses the seed that is recorded in the folder.
    assert "5 of 5" in run(*command, "--index", 1, "--of", 2).stdout
    whole = tmp_path / "whole"
    run(*threads("repeat", untimed, "-o", whole, "--bootstraps", 5, "--penalty", 0.05, "--seed", 3))
    one, other = (repeats.fit_table(f).drop(columns="seconds") for f in (folder, whole))
    assert one.equals(other)


def test_a_second_run_goes_on_and_another_plan_is_refused(untimed, tmp_path):
    folder = tmp_path / "a"
    command = threads("repeat", untimed, "-o", folder, "--bootstraps", 3, "--penalty", 0.05)
    run(*command)  # without --seed, a new seed is drawn
    (folder / "000001.json").unlink()
    kept = (folder / "000000.json").stat().st_mtime_ns
    assert "3 of 3" in run(*command).stdout
    assert (folder / "000000.json").stat().st_mtime_ns == kept
    refused = run(*threads("repeat", untimed, "-o", folder, "--bootstraps", 4), code=2)
    assert "another plan" in refused.stderr
    assert "penalty" in refused.stderr or "'repeats' was 3, here it is 4" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing is repeated"),
        (("--bootstraps", 2, "--penalty", 0.1, "--penalties", "0.1"), "cannot be used together"),
        (("--penalties", "0.1;0.2"), "expected numbers separated by commas"),
        (("--item-subsets", "two"), "expected whole numbers"),
        (("--item-subsets", "99"), "more than the 10 items"),
        (("--bootstraps", 2, "--folds", 2), "Make two plans"),
        (("--bootstraps", 2, "--random-subsets", 2), "needs --item-subsets"),
        (("--bootstraps", 2, "--orders", "step 1,nobody"), "nobody"),
        (("--bootstraps", 2, "--penalty", -1), "-1"),
        (("--bootstraps", 2, "--index", 0), "--index needs --of"),
        (("--bootstraps", 2, "--of", 3), "--of needs --index"),
        (("--bootstraps", 2, "--index", 8, "--of", 8, "--seed", 1), "--array=0-7"),
        (
            ("--bootstraps", 2, "--cluster", "tcp://a:1", "--backend", "threads"),
            "cannot be used together",
        ),
        (("--bootstraps", 2, "--cluster", "tcp://a:1", "--workers", 2), "Leave one out"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_is_done(untimed, arguments, message, tmp_path):
    result = run("repeat", untimed, "-o", tmp_path / "a", *arguments, code=2)
    assert message in result.stderr
    assert not (tmp_path / "a").exists()


def test_options_become_arguments_of_run():
    nothing = dict.fromkeys(("backend", "workers", "cluster", "index", "of"))
    given = {**nothing, "penalty": 0.1}
    assert take_run_arguments(given) == {
        "backend": "processes", "workers": None, "cluster": None, "share": None,
    }  # fmt: skip
    assert given == {"penalty": 0.1}  # `take_run_arguments` has removed the arguments of `run`
    assert take_run_arguments({**nothing, "cluster": "tcp://a:1", "index": 2, "of": 8}) == {
        "backend": "dask", "workers": None, "cluster": "tcp://a:1", "share": (2, 8),
    }  # fmt: skip
    assert take_run_arguments({**nothing, "backend": "threads", "workers": 3})["workers"] == 3


def test_what_collect_cannot_do_is_said(untimed, tmp_path):
    assert "no plan of repeats" in run("collect", tmp_path, code=2).stderr
    assert "no plan of repeats" in run("collect", tmp_path / "absent", code=2).stderr
    folder = tmp_path / "a"
    run(*threads("repeat", untimed, "-o", folder, "--bootstraps", 2, "--penalty", 0.1, "--seed", 1))
    existing = tmp_path / "mine.csv"
    existing.write_text("work")
    assert "--force" in run("collect", folder, "-o", existing, code=2).stderr
    assert existing.read_text() == "work"
    assert "records no orders" in run(
        "collect", folder, "-o", tmp_path / "t.csv", "--orders", tmp_path / "o.csv", code=2
    ).stderr  # fmt: skip
    assert not (tmp_path / "t.csv").exists()  # if one table cannot be written, no table is written
    for record in folder.glob("0*.json"):
        record.unlink()
    nothing = run("collect", folder, "--partial", code=2).stderr
    assert "2 of 2 repeats are missing" in nothing
    assert "--partial" not in nothing


def test_repeats_of_other_plans_are_collected_too(tmp_path):
    plan = repeats.Plan("repeats.tasks:draw", [{"n": 2}, {"n": 3}], 1)
    expected = repeats.run(plan, tmp_path / "a", backend="threads")
    shown = run("collect", tmp_path / "a", "-o", tmp_path / "t.csv").stdout
    assert "2 of 2" in shown
    assert pd.read_csv(tmp_path / "t.csv")["mean"].tolist() == expected["mean"].tolist()


def test_failed_repeats_end_with_code_1_and_one_message(untimed, tmp_path, monkeypatch):
    from sequela.repeats import fit_task

    def fail(**_):
        raise MemoryError("too much")

    monkeypatch.setattr(fit_task, "learn", fail)
    result = run(*threads("repeat", untimed, "-o", tmp_path / "a", "--bootstraps", 2), code=1)
    assert "2 of 2 repeats failed 2 times" in result.stderr
    assert "MemoryError: too much" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_the_records_and_the_same_command_goes_on(untimed, number, tmp_path):
    folder = tmp_path / "a"
    command = ["repeat", untimed, "-o", folder, "--bootstraps", 400, "--penalty", "0.005",
               "--seed", 3, "--workers", 2]  # fmt: skip
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "sequela", *map(str, command)], env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + 120
    while len(list(folder.glob("0*.json"))) < 3:
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    # Ctrl-C in a terminal sends SIGINT to all processes of the group.
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    left = len(list(folder.glob("0*.json")))
    assert 3 <= left < 400
    assert f"interrupted; {left} repeats are recorded in '{folder}'" in err
    assert "Run the same command again to continue" in err
    assert "Traceback" not in err
    assert "stopping after" not in err  # only the command itself handles Ctrl-C
    plan = repeats.read_plan(folder)
    found = repeats.collect(plan, folder, partial=True)
    for index in found.index[:3]:
        again = plan.function()(
            data=plan.data, **plan.common, **plan.cases[index], seed=plan.seed_of(index)
        )
        assert again["theta"] == found["theta"][index]
    # a fit that was stopped is not recorded: all recorded fits have converged
    assert set(found["converged"]) == {True}


def test_a_cluster_by_its_address(untimed, tmp_path):
    pytest.importorskip("distributed")
    command = ("repeat", untimed, "--bootstraps", 4, "--penalty", 0.05, "--seed", 3)
    with cluster_of(tmp_path, 2) as cluster:
        there = run(*command, "-o", tmp_path / "d", "--cluster", cluster.address)
    assert "4 of 4" in there.stdout
    run(*threads(*command, "-o", tmp_path / "t"))
    one, other = (repeats.fit_table(tmp_path / f).drop(columns="seconds") for f in ("d", "t"))
    assert one.equals(other)
