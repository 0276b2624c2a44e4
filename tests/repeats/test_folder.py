"""The folder of a plan: its content, refused folders, and jobs that begin at the same time."""

from __future__ import annotations

import json
import multiprocessing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequela import Dataset, InputError
from sequela.repeats import Plan, collect, missing, read_plan, run
from sequela.repeats.data_file import fingerprint, keep_data, read_data
from sequela.repeats.records import listed, open_folder

TASKS = "repeats.tasks"


@pytest.fixture
def data():
    return Dataset(
        [[1, 0, 1], [0, 0, 0], [1, 1, 1]],
        items=["a", "b,c", "ü"],
        samples=["x", "y", "=z"],
        times=[0.5, None, 2.0],
    )


def plan_of(data=None, numbers=(0, 1), seed=3, **common):
    cases = [{"number": number} for number in numbers]
    return Plan(f"{TASKS}:{'fail' if data is None else 'with_data'}", cases, seed, common, data)


def test_a_plan_is_read_back_as_it_was(data, tmp_path):
    plan = plan_of(data)
    run(plan, tmp_path / "a", backend="threads")
    again = read_plan(tmp_path / "a")
    assert again == plan
    assert again.digest() == plan.digest()
    assert collect(again, tmp_path / "a").equals(collect(plan, tmp_path / "a"))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_samples_come_back_as_they_were(tmp_path_factory, data):
    n, m = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    values = data.draw(st.lists(st.booleans(), min_size=n * m, max_size=n * m))
    times = data.draw(st.none() | st.lists(st.none() | st.floats(0, 1e9), min_size=n, max_size=n))
    samples = Dataset(np.reshape(values, (n, m)), times=times)
    folder = tmp_path_factory.mktemp("d")
    keep_data(samples, folder)
    assert read_data(str(folder / "data.npz"), fingerprint(samples)) == samples


def test_other_data_are_refused(data, tmp_path):
    run(plan_of(data), tmp_path / "a", backend="threads")
    other = data.without_times()
    with pytest.raises(InputError, match="another plan: its data differ"):
        run(plan_of(other), tmp_path / "a", backend="threads")
    # The plan has the right data, but the data file in the folder has other data.
    (tmp_path / "b").mkdir()
    keep_data(other, tmp_path / "b")
    (tmp_path / "b" / "data.npz").replace(tmp_path / "a" / "data.npz")
    read_data.cache_clear()
    with pytest.raises(InputError, match="does not contain the samples of this plan"):
        run(plan_of(data), tmp_path / "a", backend="threads")
    with pytest.raises(InputError, match="does not contain the samples of this plan"):
        read_plan(tmp_path / "a")
    (tmp_path / "a" / "data.npz").write_bytes(b"PK\x03\x04 half of it")
    with pytest.raises(InputError, match="cannot be read"):
        read_plan(tmp_path / "a")
    (tmp_path / "a" / "data.npz").unlink()
    with pytest.raises(InputError, match="a disk that all workers can read"):
        read_plan(tmp_path / "a")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (plan_of(seed=4), "its entry 'seed' was 3, here it is 4"),
        (plan_of(numbers=(0, 1, 2)), "its entry 'repeats' was 2, here it is 3"),
        (plan_of(numbers=(0, 2)), r"its entry 'cases' was \[\{"),
        (plan_of(more=[1]), r"its entry 'more' was null, here it is \[1\]"),
        (Plan(f"{TASKS}:draw", [{"n": 1}], 3), "its entry 'task' was"),
    ],
)
def test_the_folder_of_another_plan_is_refused_and_what_differs_is_said(other, message, tmp_path):
    open_folder(plan_of(), tmp_path / "a")
    with pytest.raises(InputError, match=f"another plan: {message}"):
        open_folder(other, tmp_path / "a")


def test_damaged_records_are_named(tmp_path):
    plan = plan_of(numbers=(0, 2))
    run(plan, tmp_path / "a", backend="threads")
    record = tmp_path / "a" / "000000.json"
    content = json.loads(record.read_text())
    record.write_text(json.dumps({**content, "plan": "other"}))
    with pytest.raises(InputError, match=r"000000\.json' belongs to another plan"):
        collect(plan, tmp_path / "a")
    record.write_text("{half")
    with pytest.raises(InputError, match=r"000000\.json' cannot be used: it is not JSON"):
        collect(plan, tmp_path / "a")
    header = tmp_path / "a" / "plan.json"
    whole = json.loads(header.read_text())
    for change, message in (
        ({"seed": 9}, "was changed"),
        ({"version": 99}, "version 99"),
        ({"format": "other"}, "'other'"),
        ({"cases": None}, "damaged|no cases"),
    ):
        header.write_text(json.dumps({**whole, **change}))
        with pytest.raises(InputError, match=message):
            read_plan(tmp_path / "a")
    with pytest.raises(InputError, match="holds no plan"):
        read_plan(tmp_path)


def test_foreign_folders_are_left_alone(tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match=r"'thesis\.tex'.*no plan of repeats"):
        open_folder(plan_of(), foreign)
    assert [path.name for path in foreign.iterdir()] == ["thesis.tex"]
    with pytest.raises(InputError, match="cannot be made"):
        open_folder(plan_of(), foreign / "thesis.tex" / "inside")


def begin(folder, barrier, queue):
    """Open the folder of a plan when all processes are ready; put the error message in `queue`."""
    samples = Dataset(np.eye(40, dtype=bool))
    barrier.wait()
    try:
        open_folder(plan_of(samples), folder)
        queue.put("")
    except InputError as error:
        queue.put(str(error))


def test_jobs_that_begin_at_the_same_moment_do_not_disturb_each_other(tmp_path):
    context = multiprocessing.get_context("fork")
    jobs = 6
    barrier, queue = context.Barrier(jobs), context.Queue()
    for attempt in range(5):
        started = [
            context.Process(target=begin, args=(tmp_path / str(attempt), barrier, queue))
            for _ in range(jobs)
        ]
        for process in started:
            process.start()
        answers = [queue.get(timeout=60) for _ in started]
        for process in started:
            process.join()
        assert answers == [""] * jobs
        assert {path.name for path in (tmp_path / str(attempt)).iterdir()} == {
            "plan.json",
            "data.npz",
        }


@given(st.sets(st.integers(0, 40), min_size=1))
def test_lists_of_numbers_are_short_and_complete(numbers):
    text = listed(sorted(numbers), max_runs=100)
    found = set()
    for part in text.split(", "):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    assert found == numbers
    assert len(listed(sorted(range(0, 100, 2)))) < 40


def test_a_record_is_plain_json_with_exact_numbers(tmp_path):
    plan = Plan(f"{TASKS}:draw", [{"n": 5}], 1)
    table = run(plan, tmp_path / "a", backend="threads")
    record = json.loads((tmp_path / "a" / "000000.json").read_text())
    expected = np.random.default_rng(plan.seed_of(0)).normal(size=5).mean()
    assert record["result"]["mean"] == table["mean"][0] == expected
    assert record["seed"] == plan.seed_of(0)
    assert missing(plan, tmp_path / "a") == []
