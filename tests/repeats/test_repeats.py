"""Repeats give the same results on every backend. None is lost, and none is done twice."""

from __future__ import annotations

import signal
import warnings

import numpy as np
import pytest

from repeats import tasks
from sequela import Dataset, InputError
from sequela.repeats import Plan, RepeatsError, collect, missing, run

TASKS = "repeats.tasks"


def plan_of(name, cases, seed=7, **more):
    return Plan(f"{TASKS}:{name}", cases, seed, **more)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """Return a plan of fits, and its results, computed by threads of this process."""
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
    assert table["objective"].nunique() == 3  # repeats of one case have different seeds


def test_processes_give_the_same_bits(learned, tmp_path):
    plan, table = learned
    again = run(plan, tmp_path / "b", backend="processes", workers=2)
    assert again.drop(columns="seconds").equals(table.drop(columns="seconds"))


def test_shares_of_an_array_give_the_same_bits(tmp_path):
    plan = plan_of("draw", [{"n": n} for n in range(1, 8)])
    whole = run(plan, tmp_path / "whole", backend="threads")
    for index in (2, 0):
        assert run(plan, tmp_path / "shares", backend="threads", share=(index, 3)) is None
    with pytest.raises(InputError, match=r"2 of 7 repeats are missing.*\(1, 4\)"):
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


def test_what_all_cases_share_is_given_to_each_and_is_no_column(tmp_path):
    table = run(
        plan_of("draw", [{}, {}], common={"n": 3}), tmp_path / "a", backend="threads", workers=1
    )
    apart = run(plan_of("draw", [{"n": 3}] * 2), tmp_path / "b", backend="threads", workers=1)
    assert table["mean"].tolist() == apart["mean"].tolist()
    assert "n" not in table


def test_data_are_read_once_a_process(tmp_path):
    data = Dataset([[1, 0], [1, 1]], items=["a", "b"], times=[1.0, None])
    plan = plan_of("with_data", [{"number": i} for i in range(4)], data=data)
    table = run(plan, tmp_path / "a", backend="threads", workers=1)
    assert table["items"].tolist() == [["a", "b"]] * 4
    assert table["ones"].tolist() == [3] * 4
    assert table["id"].nunique() == 1


# --- What goes wrong ------------------------------------------------------------------------------


def test_a_failed_repeat_is_tried_again(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    plan = plan_of("fail_once", [{"folder": str(marks), "number": i} for i in range(4)])
    table = run(plan, tmp_path / "a", backend="threads", workers=2)
    assert table["number"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("task", "backend", "reason"),
    [
        ("fail", "threads", "never works"),
        ("fail", "processes", "never works"),
        ("leave", "threads", "SystemExit: 3"),
        ("raise_what_does_not_travel", "processes", "StubbornError: stay"),
        ("return_what_does_not_travel", "processes", "not JSON serializable"),
    ],
)
def test_a_repeat_that_never_works_costs_the_others_nothing(task, backend, reason, tmp_path):
    plan = plan_of(task, [{"number": i} for i in range(3)])
    with pytest.raises(RepeatsError, match=rf"1 of 3 repeats failed 2 times \(1\).*{reason}") as no:
        run(plan, tmp_path / "a", backend=backend, workers=2)
    assert missing(plan, tmp_path / "a") == [1]
    assert set(no.value.failures) == {1}
    assert collect(plan, tmp_path / "a", partial=True)["number"].tolist() == [0, 2]


def test_a_killed_process_costs_nothing(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    plan = plan_of("kill_the_worker_once", [{"folder": str(marks), "number": i} for i in range(8)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ignore the warning of loky that a worker process died
        table = run(plan, tmp_path / "a", workers=2)
    assert (marks / "killed").exists()
    expected = run(plan, tmp_path / "b", backend="threads")
    assert table.drop(columns="seconds").equals(expected.drop(columns="seconds"))


def test_a_repeat_that_kills_its_process_is_named_and_the_others_are_done(tmp_path):
    plan = plan_of("kill_the_worker", [{"number": i} for i in range(12)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(
            RepeatsError, match=r"died 2 times.*run the plan again.*with fewer workers"
        ):
            run(plan, tmp_path / "a", workers=2)
    left = missing(plan, tmp_path / "a")
    assert 2 in left
    # Other repeats may only be unfinished if they ran, or were queued, when the process was killed.
    assert len(left) <= 5


def test_a_full_disk_is_said_and_can_be_gone_on_from(tmp_path, monkeypatch):
    from sequela.repeats import records

    plan = plan_of("draw", [{"n": n} for n in range(1, 7)])
    whole = records.replacing
    written = []

    def full(path):
        written.append(path)
        if len(written) > 4:
            raise OSError(28, "No space left on device")
        return whole(path)

    monkeypatch.setattr(records, "replacing", full)
    with pytest.raises(RepeatsError, match=r"cannot be written.*No space left.*run again"):
        run(plan, tmp_path / "a", backend="threads", workers=2)
    monkeypatch.undo()
    assert len(missing(plan, tmp_path / "a")) == 3  # 4 files were written: the plan and 3 records
    table = run(plan, tmp_path / "a", backend="threads")
    expected = run(plan, tmp_path / "b", backend="threads")
    assert table.drop(columns="seconds").equals(expected.drop(columns="seconds"))


def test_a_repeat_that_is_interrupted_is_not_recorded(tmp_path):
    plan = plan_of("be_stopped", [{"number": i} for i in range(3)])
    with pytest.raises(KeyboardInterrupt):
        run(plan, tmp_path / "a", backend="threads", workers=1)
    assert missing(plan, tmp_path / "a") == [1, 2]


def test_a_single_worker_leaves_interrupts_to_this_process(tmp_path):
    """For a single worker joblib starts no process. Then Ctrl-C must work in this process."""
    run(plan_of("draw", [{"n": 1}] * 2), tmp_path / "a", backend="processes", workers=1)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


# --- Cores ----------------------------------------------------------------------------------------


def most_at_once(table):
    """Return the largest number of repeats that ran at the same time."""
    events = sorted([(t, 1) for t in table["start"]] + [(t, -1) for t in table["end"]])
    return int(np.cumsum([change for _, change in events]).max())


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_workers_do_not_crowd_the_cores(backend, tmp_path):
    table = run(plan_of("threads", [{}] * 5), tmp_path / "a", backend=backend, workers=2)
    assert set(table["threads"]) == {1}
    assert set(table["linear_algebra"]) == {1}
    assert most_at_once(table) <= 2
    from sequela.support.threads import resolve_threads

    assert resolve_threads(2) == 2  # an explicit number of threads is still used


def test_without_a_number_there_are_as_many_workers_as_cores(tmp_path):
    from sequela.support.threads import resolve_threads

    cores = resolve_threads(None)
    table = run(plan_of("threads", [{}] * (2 * cores + 1)), tmp_path / "a", backend="threads")
    assert most_at_once(table) == cores


def test_the_limit_of_linear_algebra_is_lifted_afterwards(tmp_path):
    before = tasks.linear_algebra_threads()
    run(plan_of("threads", [{}] * 4), tmp_path / "a", backend="threads", workers=2)
    assert tasks.linear_algebra_threads() == before


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing", [{}], 1), "package.module:name"),
        ((f"{TASKS}:draw", [], 1), "no cases"),
        ((f"{TASKS}:draw", [{"n": 1}], -1), "seed is -1"),
        ((f"{TASKS}:draw", [{"n": {1, 2}}], 1), "plain JSON values"),
        ((f"{TASKS}:draw", [{"seed": 1}], 1), "entry 'seed'"),
        ((f"{TASKS}:draw", [{"data": 1}], 1), "entry 'data'"),
        ((f"{TASKS}:draw", [{"n": 1}], 1, {"n": 2}), "'n' is in common and in a case"),
        ((f"{TASKS}:draw", [{"n": 1}], 1, {}, [[0, 1]]), "expected a Dataset"),
        ((f"{TASKS}:draw", [{"n": 1}], 1, {}, None, "ready"), "warm_up is 'ready'"),
    ],
)
def test_a_plan_that_is_none_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Plan(*arguments)


def test_what_does_not_fit_is_refused_before_a_folder_is_made(tmp_path):
    plan = plan_of("draw", [{"n": 1}])
    with pytest.raises(InputError, match="cannot be imported"):
        run(plan_of("no_such_task", [{}]), tmp_path / "x")
    with pytest.raises(InputError, match="is not a function"):
        run(plan_of("np.pi", [{}]), tmp_path / "x")
    with pytest.raises(InputError, match="backend is 'ray'"):
        run(plan, tmp_path / "x", backend="ray")
    with pytest.raises(InputError, match="is for backend='dask'"):
        run(plan, tmp_path / "x", backend="threads", cluster="tcp://a:1")
    with pytest.raises(InputError, match="workers is 0"):
        run(plan, tmp_path / "x", backend="threads", workers=0)
    assert not (tmp_path / "x").exists()
    with pytest.raises(RepeatsError, match="expected a dictionary"):
        run(plan_of("not_a_dictionary", [{}]), tmp_path / "w", backend="threads")
