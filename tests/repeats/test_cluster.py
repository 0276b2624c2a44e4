"""Dask clusters of real processes: results stay the same if workers or the scheduler die."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from types import SimpleNamespace

import joblib
import pytest

from repeats.clusters import cluster_of
from sequela import Dataset, InputError
from sequela.repeats import Plan, RepeatsError, missing, run, running
from sequela.repeats import cluster as dask
from sequela.repeats.records import open_folder
from sequela.repeats.work import Work

pytest.importorskip("distributed", reason="Dask is an extra: pip install 'sequela[cluster]'")

pytestmark = pytest.mark.filterwarnings("ignore")  # ignore warnings of the package distributed

TASKS = "repeats.tasks"


def plan_of(name, cases, seed=7, **more):
    return Plan(f"{TASKS}:{name}", cases, seed, **more)


def numbers(table):
    return table.drop(columns="seconds")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Start a scheduler and two workers in separate processes. Each worker has one thread."""
    with cluster_of(tmp_path_factory.mktemp("cluster"), 2) as made:
        yield made


def test_a_cluster_made_here_gives_the_same_bits_and_leaves_the_cores_alone(tmp_path):
    plan = plan_of("learn", [{"penalty": p} for p in (0.02, 0.05, 0.02)])
    here = run(plan, tmp_path / "t", backend="threads")
    there = run(plan, tmp_path / "d", backend="dask", workers=2)
    assert numbers(there).equals(numbers(here))


def test_workers_use_one_thread_each_and_no_more_work_at_once_than_there_are(pair, tmp_path):
    from repeats.test_repeats import most_at_once

    plan = plan_of("threads", [{}] * 8)
    table = run(plan, tmp_path / "a", backend="dask", cluster=pair.address)
    assert set(table["threads"]) == {1}
    assert set(table["linear_algebra"]) == {1}
    assert most_at_once(table) <= 2
    assert table["process"].nunique() == 2
    assert os.getpid() not in set(table["process"])


def test_a_cluster_of_one_core_does_the_work_and_not_this_process(tmp_path):
    """A cluster with a single core does the work. joblib alone would ignore such a cluster."""
    with cluster_of(tmp_path, 1) as single:
        table = run(
            plan_of("threads", [{}] * 3), tmp_path / "a", backend="dask", cluster=single.address
        )
    assert os.getpid() not in set(table["process"])


def test_data_reach_the_workers_by_the_folder(pair, tmp_path):
    data = Dataset([[1, 0], [1, 1]], items=["a", "b"])
    plan = plan_of("with_data", [{"number": i} for i in range(4)], data=data)
    table = run(plan, tmp_path / "a", backend="dask", cluster=pair.address)
    assert table["ones"].tolist() == [3] * 4


def test_a_killed_worker_loses_nothing_and_changes_no_number(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    plan = plan_of("kill_the_worker_once", [{"folder": str(marks), "number": i} for i in range(12)])
    with cluster_of(tmp_path, 2) as own:
        table = run(plan, tmp_path / "a", backend="dask", cluster=own.address)
    assert (marks / "killed").exists()
    expected = run(plan, tmp_path / "b", backend="threads")
    assert numbers(table).equals(numbers(expected))


def test_the_death_of_the_scheduler_is_an_error_with_a_resumable_state(tmp_path):
    plan = plan_of("draw_slowly", [{"n": n} for n in range(1, 41)])
    folder = tmp_path / "a"
    killed = []
    with cluster_of(tmp_path, 2) as own:

        def kill_in_the_middle():
            while not folder.exists() or len(missing(plan, folder)) > 35:
                time.sleep(0.02)
            own.scheduler.kill()
            killed.append(time.monotonic())

        killer = threading.Thread(target=kill_in_the_middle)
        killer.start()
        with pytest.raises(RepeatsError, match="connection to the Dask scheduler is lost") as lost:
            run(plan, folder, backend="dask", cluster=own.address)
        ended = time.monotonic()
        killer.join()
    assert ended - killed[0] < 30
    left = missing(plan, folder)
    assert 0 < len(left) <= 35
    assert f"{len(left)} of 40 repeats are not done" in str(lost.value)
    assert "run again to continue" in str(lost.value)
    kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("0*.json")}
    table = run(plan, folder, backend="threads", workers=8)
    # The records of finished repeats were not written again.
    assert {n: (folder / n).stat().st_mtime_ns for n in kept} == kept
    expected = run(plan, tmp_path / "b", backend="threads", workers=8)
    assert numbers(table).equals(numbers(expected))


def test_a_repeat_that_kills_its_workers_is_a_failed_repeat(tmp_path):
    """A repeat that kills its workers is reported as failed. joblib alone would wait forever."""
    plan = plan_of("kill_the_worker", [{"number": i} for i in range(5)])
    with (
        cluster_of(tmp_path, 2, allowed_failures=1) as own,
        pytest.raises(RepeatsError, match="KilledWorker") as no,
    ):
        run(plan, tmp_path / "a", backend="dask", cluster=own.address)
    # Dask may also give up other repeats, if they were in the queue of every killed worker.
    assert 2 in no.value.failures
    assert missing(plan, tmp_path / "a") == sorted(no.value.failures)
    assert len(no.value.failures) <= 3


def test_a_failed_repeat_is_tried_again_on_another_worker(pair, tmp_path):
    plan = plan_of("fail_on_one_worker", [{"folder": str(tmp_path), "number": i} for i in range(4)])
    table = run(plan, tmp_path / "a", backend="dask", cluster=pair.address)
    assert table["where"][0] != (tmp_path / "sick").read_text()


# --- Schedulers and workers that are missing, unsuitable, or lost ---------------------------------


def test_no_scheduler_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(dask, "_FOR_SCHEDULER", 1)
    plan = plan_of("draw", [{"n": 1}])
    with pytest.raises(InputError, match=r"no Dask scheduler at 'tcp://127\.0\.0\.1:9'"):
        run(plan, tmp_path / "a", backend="dask", cluster="tcp://127.0.0.1:9")
    with pytest.raises(InputError, match="no Dask scheduler at 'node 7'"):
        run(plan, tmp_path / "a", backend="dask", cluster="node 7")


def test_a_scheduler_without_workers_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(dask, "_FOR_WORKERS", 1)
    plan = plan_of("draw", [{"n": 1}])
    with cluster_of(tmp_path, 0) as own, pytest.raises(InputError, match="had no worker for 1"):
        run(plan, tmp_path / "a", backend="dask", cluster=own.address)


def test_an_event_loop_that_starts_late_is_tried_again(tmp_path, monkeypatch):
    tries = []

    def late(*address, **options):
        tries.append(address)
        assert len(tries) > 1
        raise OSError

    monkeypatch.setattr("distributed.Client", late)
    with pytest.raises(InputError, match="there is no Dask scheduler"):
        run(plan_of("draw", [{"n": 1}]), tmp_path / "a", backend="dask", cluster="tcp://node7:1")
    assert len(tries) == 2


class Client:
    """A replacement for a Dask client, with the methods that `prepare_hosts` calls.

    Its workers give fixed answers.
    """

    def __init__(self, answers, threads=1):
        self.answers = answers
        self.threads = threads
        self.ready = []

    def run(self, _function, on_error):
        assert on_error == "return"
        return self.answers

    def nthreads(self):
        return dict.fromkeys(self.answers, self.threads)

    def submit(self, _function, _work, workers, pure):
        assert not pure  # with pure=True, Dask would run the warm-up on one machine only
        self.ready += workers
        return SimpleNamespace(result=lambda: None)


def worker(host, version=dask.__version__, cores=(0, 1)):
    return {"sequela": version, "host": host, "cores": list(cores)}


def test_each_machine_is_made_ready_once():
    client = Client({"a:1": worker("a"), "a:2": worker("a"), "b:1": worker("b"), "b:2": OSError()})
    dask.prepare_hosts(client, None)
    assert client.ready == ["a:1", "b:1"]


def test_workers_of_another_version_are_refused():
    with pytest.raises(InputError, match=r"worker b:1 has sequela 0\.0\.1"):
        dask.prepare_hosts(Client({"a:1": worker("a"), "b:1": worker("b", "0.0.1")}), None)
    with pytest.raises(InputError, match="worker a:1 cannot import sequela"):
        dask.prepare_hosts(Client({"a:1": ModuleNotFoundError("no module")}), None)


def test_crowded_machines_are_told_of(caplog):
    pinned = {"a:1": worker("a", cores=[0]), "a:2": worker("a", cores=[1])}
    dask.prepare_hosts(Client(pinned), None)
    assert not caplog.records
    dask.prepare_hosts(Client(pinned, threads=2), None)
    assert "workers on a run 4 repeats at once on 2 cores" in caplog.text


@pytest.mark.parametrize(
    ("status", "workers", "only"),
    [("closed", ["a:1"], []), ("connecting", ["a:1"], ["a:1"]), ("running", ["a:2"], ["a:1"])],
)
def test_a_wait_for_what_cannot_come_is_ended(status, workers, only):
    client = SimpleNamespace(status="running", nthreads=lambda: ["a:1"])

    def happen():
        client.status = status
        client.nthreads = lambda: workers

    end = threading.Event()
    parallel = joblib.Parallel(
        n_jobs=2, backend="threading", return_as="generator_unordered", batch_size=1
    )
    threading.Timer(0.3, happen).start()
    began = time.monotonic()
    try:
        with pytest.raises(Exception) as ended, dask.watching(client, parallel, only):  # noqa: PT011
            list(parallel(joblib.delayed(end.wait)(30) for _ in range(4)))
    finally:
        end.set()
    assert type(ended.value).__name__ == "TimeoutError"
    assert time.monotonic() - began < 10


def test_a_wait_for_what_can_come_is_not_ended():
    client = SimpleNamespace(status="running", nthreads=lambda: ["a:1", "a:2"])
    parallel = joblib.Parallel(n_jobs=2, backend="threading", return_as="generator_unordered")
    with dask.watching(client, parallel, ["a:1"]):
        done = list(parallel(joblib.delayed(time.sleep)(0.8) for _ in range(4)))
    assert len(done) == 4


class LeavingPool:
    """A pool whose workers have left the cluster.

    If work is only for chosen workers, it ends with a TimeoutError. All other work is done.
    """

    workers = 1
    client = SimpleNamespace(status="running")

    def __init__(self):
        self.asked = []

    @contextlib.contextmanager
    def parallel(self, only):
        self.asked.append(only)

        def work(calls):
            if only:
                raise TimeoutError
            for function, arguments, options in calls:
                yield function(*arguments, **options)

        yield work

    def elsewhere(self, _failures):
        return ["tcp://b:1"]


def test_if_those_elsewhere_leave_a_repeat_is_tried_anywhere(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    plan = plan_of("fail_once", [{"folder": str(marks), "number": i} for i in range(3)])
    place = open_folder(plan, tmp_path / "a")
    pool = LeavingPool()
    running._try(plan, place, [0, 1, 2], Work.of(plan, place), pool)
    assert pool.asked == [[], ["tcp://b:1"], []]
    assert missing(plan, place) == []


def test_without_distributed_it_says_what_to_install(tmp_path, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(dask.importlib, "import_module", absent)
    with (
        pytest.raises(InputError, match=r"sequela\[cluster\]"),
        dask.connect(None, 1),
    ):
        pass
