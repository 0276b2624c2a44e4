"""Repeats: the same numbers whichever way they ran, and nothing is done or lost twice."""

from __future__ import annotations

import json
import warnings

import pytest

from repeats import tasks
from sequela import InputError
from sequela.repeats import Plan, RepeatsError, collect, missing, run

TASKS = "repeats.tasks"


def plan_of(name, cases, seed=7):
    return Plan(f"{TASKS}:{name}", cases, seed)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A plan of fits, and its results on threads."""
    plan = plan_of("learn", [{"penalty": p} for p in (0.02, 0.05, 0.02)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plan, run(plan, tmp_path_factory.mktemp("fits") / "a", backend="threads")


def test_results_are_those_of_plain_calls(learned):
    plan, table = learned
    for index, case in enumerate(plan.cases):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = tasks.learn(**case, seed=plan.seed_of(index))
        assert table.loc[index, "objective"] == plain["objective"]
        assert table.loc[index, "theta"] == plain["theta"]
    assert table["penalty"].tolist() == [0.02, 0.05, 0.02]
    assert table["objective"].nunique() == 3  # each repeat has its own seed


def test_processes_give_the_same_bits(learned, tmp_path):
    plan, table = learned
    again = run(plan, tmp_path / "b", backend="processes", workers=2)
    assert again.drop(columns="seconds").equals(table.drop(columns="seconds"))


def test_shares_of_an_array_give_the_same_bits(tmp_path):
    plan = plan_of("draw", [{"n": n} for n in range(1, 8)])
    whole = run(plan, tmp_path / "whole", backend="threads")
    for index in (2, 0):
        assert run(plan, tmp_path / "shares", backend="threads", share=(index, 3)) is None
    with pytest.raises(InputError, match="2 of 7 repeats are missing"):
        collect(plan, tmp_path / "shares")
    assert len(collect(plan, tmp_path / "shares", partial=True)) == 5
    last = run(plan, tmp_path / "shares", backend="threads", share=(1, 3))
    assert last.drop(columns="seconds").equals(whole.drop(columns="seconds"))
    with pytest.raises(InputError, match="share"):
        run(plan, tmp_path / "shares", share=(3, 3))


def test_what_is_done_is_not_done_again(tmp_path):
    plan = plan_of("draw", [{"n": 3}, {"n": 4}, {"n": 5}])
    run(plan, tmp_path / "a", backend="threads")
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "a").iterdir()}
    (tmp_path / "a" / "000001.json").unlink()
    assert missing(plan, tmp_path / "a") == [1]
    run(plan, tmp_path / "a", backend="threads")
    now = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "a").iterdir()}
    assert {name for name in now if now[name] != kept[name]} == {"000001.json"}


def test_a_failed_repeat_is_tried_again(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    plan = plan_of("fail_once", [{"folder": str(marks), "number": i} for i in range(4)])
    table = run(plan, tmp_path / "a", backend="threads", workers=2)
    assert table["number"].tolist() == [0, 1, 2, 3]


def test_a_repeat_that_never_works_costs_the_others_nothing(tmp_path):
    plan = plan_of("fail", [{"number": i} for i in range(3)])
    with pytest.raises(RepeatsError, match=r"1 of 3 repeats failed 2 times.*never works"):
        run(plan, tmp_path / "a", backend="threads")
    assert missing(plan, tmp_path / "a") == [1]


def test_a_killed_process_ends_with_a_resumable_state(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    cases = [{"folder": str(marks), "number": i} for i in range(8)]
    plan = plan_of("kill_the_worker_once", cases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RepeatsError, match="run again to go on"):
            run(plan, tmp_path / "a", workers=2)
    assert 2 in missing(plan, tmp_path / "a")
    table = run(plan, tmp_path / "a", workers=2)
    expected = run(plan, tmp_path / "b", backend="threads")
    assert table.drop(columns="seconds").equals(expected.drop(columns="seconds"))


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_workers_do_not_crowd_the_cores(backend, tmp_path):
    table = run(plan_of("threads", [{}] * 3), tmp_path / "a", backend=backend, workers=2)
    assert set(table["threads"]) == {1}
    from sequela._threads import resolve_threads

    assert resolve_threads(2) == 2  # asked for by name it is still given


def test_a_dask_cluster_gives_the_same_bits(learned, tmp_path):
    pytest.importorskip("distributed")
    plan, table = learned
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = run(plan, tmp_path / "d", backend="dask", workers=2)
    assert again.drop(columns="seconds").equals(table.drop(columns="seconds"))


def test_a_killed_dask_worker_changes_no_number(tmp_path):
    pytest.importorskip("distributed")
    marks = tmp_path / "marks"
    marks.mkdir()
    cases = [{"folder": str(marks), "number": i} for i in range(8)]
    plan = plan_of("kill_the_worker_once", cases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = run(plan, tmp_path / "a", backend="dask", workers=2)
    assert (marks / "killed").exists()
    expected = run(plan, tmp_path / "b", backend="threads")
    assert table.drop(columns="seconds").equals(expected.drop(columns="seconds"))


def test_no_scheduler_is_said(tmp_path):
    pytest.importorskip("distributed")
    plan = plan_of("draw", [{"n": 1}])
    with pytest.raises(InputError, match=r"no Dask scheduler at 'tcp://127\.0\.0\.1:9'"):
        run(plan, tmp_path / "a", backend="dask", cluster="tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing", [{}], 1), "package.module:name"),
        ((f"{TASKS}:draw", [], 1), "no cases"),
        ((f"{TASKS}:draw", [{"n": 1}], -1), "seed is -1"),
        ((f"{TASKS}:draw", [{"n": {1, 2}}], 1), "plain JSON values"),
        ((f"{TASKS}:draw", [{"seed": 1}], 1), "entry 'seed'"),
    ],
)
def test_a_plan_that_is_none_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Plan(*arguments)


def test_what_does_not_fit_is_refused(tmp_path):
    plan = plan_of("draw", [{"n": 1}])
    with pytest.raises(InputError, match="cannot be imported"):
        run(plan_of("no_such_task", [{}]), tmp_path / "x")
    with pytest.raises(InputError, match="backend is 'ray'"):
        run(plan, tmp_path / "y", backend="ray")
    with pytest.raises(InputError, match="is for backend='dask'"):
        run(plan, tmp_path / "z", backend="threads", cluster="tcp://a:1")
    with pytest.raises(RepeatsError, match="expected a dictionary"):
        run(plan_of("not_a_dictionary", [{}]), tmp_path / "w", backend="threads")
    run(plan, tmp_path / "a", backend="threads")
    with pytest.raises(InputError, match="another plan"):
        run(plan_of("draw", [{"n": 2}]), tmp_path / "a", backend="threads")
    record = tmp_path / "a" / "000000.json"
    content = json.loads(record.read_text())
    record.write_text(json.dumps({**content, "plan": "other"}))
    with pytest.raises(InputError, match="belongs to another plan"):
        collect(plan, tmp_path / "a")
    record.write_text("{half")
    with pytest.raises(InputError, match="cannot be read"):
        collect(plan, tmp_path / "a")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match="holds no plan"):
        run(plan, foreign, backend="threads")
