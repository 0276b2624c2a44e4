"""The comparison with other programs: scores, plan of the runs, worker processes, and report."""

from __future__ import annotations

import importlib
import json
import sys
import warnings

import numpy as np
import pytest
from benchmarks.peers import kernel_phases, plan, remarks, running, score, scorer
from benchmarks.peers.__main__ import options
from benchmarks.peers.cases import INTERACTING, PENALTY, dense_theta, known_theta, load
from benchmarks.peers.findings import sentences
from benchmarks.peers.gather import gather
from benchmarks.peers.profiling import count_entries
from benchmarks.peers.records import Places
from benchmarks.peers.report import pages
from benchmarks.peers.score import Judge, first_reaching
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import log_p_set


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path / "peers", tmp_path / "cache")


# --- The scores of the judge ----------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_the_judge_agrees_with_the_slow_twin(seed, n):
    rng = np.random.default_rng(seed)
    theta = rng.normal(0.0, 1.5, (n, n))
    items = np.nonzero(rng.random(n) < 0.7)[0]
    expected = log_p_set(theta, list(items))
    assert scorer.log_probability(theta, items) == pytest.approx(expected, rel=1e-10)


def test_the_judge_adds_up_to_one_over_all_sets():
    theta = np.random.default_rng(1).normal(0.0, 1.0, (6, 6))
    every = (np.arange(64)[:, None] >> np.arange(6) & 1).astype(bool)
    assert np.exp(scorer.log_likelihoods(theta, every)).sum() == pytest.approx(1.0)


def test_the_judge_works_off_columns_in_blocks(monkeypatch):
    theta = np.random.default_rng(2).normal(0.0, 0.5, (9, 9))
    items = np.array([0, 2, 3, 7])
    whole = scorer.log_probability(theta, items)
    monkeypatch.setattr(scorer, "_BLOCK", 32)
    assert scorer.log_probability(theta, items) == pytest.approx(whole, rel=1e-12)


def test_the_objective_is_what_a_fit_says_of_itself():
    from sequela import SetChain

    X = load("sim-n8-N60").X
    learner = SetChain(0.02, random_state=1).fit(X)
    assert scorer.objective(learner.theta_, X, 0.02) == pytest.approx(learner.objective_, abs=1e-10)


def test_large_sets_are_sampled_and_the_error_is_known(monkeypatch):
    """The sampled value is within 5 standard errors of the exact value. The seed is fixed."""
    theta = known_theta(16, 4.0, 12)
    X = np.zeros((3, 16), dtype=bool)
    X[0, :12] = X[1, :3] = True
    exact = scorer.objective(theta, X, PENALTY)
    assert Judge(X)(theta) == (pytest.approx(exact, rel=1e-12), 0.0)
    monkeypatch.setattr(score, "MOST_EXACT", 8)
    judge = Judge(X)
    assert (judge.largest_exact, len(judge.large)) == (3, 1)
    value, error = judge(theta)
    assert 0.0 < error < 0.2
    assert value == pytest.approx(exact, abs=5 * error)
    assert judge(np.full((16, 16), np.nan))[0] == -np.inf


@settings(deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40), st.floats(-6, 6))
def test_the_first_value_that_is_good_enough(values, target):
    values = np.maximum.accumulate(values)
    found = first_reaching(lambda at: values[at], len(values), target)
    good = np.nonzero(values >= target)[0]
    assert found == (good[0] if good.size else None)


# --- The plan -------------------------------------------------------------------------------------


def test_names_are_unique_and_cases_exist():
    for jobs in (plan.plan(), plan.plan(quick=True)):
        assert len({job.name for job in jobs}) == len(jobs)
    simulated = {j.case for j in plan.plan() if j.case.startswith(("sim", "grow"))}
    assert {"sim-n100-N500", "grow-n1000-N5000", "grow-n100-N50000"} <= simulated


def test_mhn_is_given_what_it_should_end_with():
    """mhn gets only sets of a size with which it should finish within the time limit.

    A fit of mhn needs about 220 evaluations. Within ten seconds, mhn can evaluate the 40 sets of 8
    items 220 times, but not the 10 sets of 12 items.
    """
    X = np.zeros((50, 100), dtype=bool)
    X[:, :8] = True
    X[:10, :12] = True
    measured = {"10": 0.0013, "12": 0.0065}
    assert plan.largest_for_mhn(X, measured, limit=1e9) == 12
    assert plan.largest_for_mhn(X, measured, limit=10.0) == 11
    cost = plan.mhn_seconds(np.array([8.0]), 100, measured)[0]
    assert plan.MHN_EVALUATIONS * 40 * cost < 10.0 < plan.MHN_EVALUATIONS * 10 * 0.0065


def test_the_known_theta_has_the_interactions_asked_for():
    for n, interactions in ((20, 6), (50, 40)):
        theta = known_theta(n, 1.0, interactions)
        off = theta[~np.eye(n, dtype=bool)]
        assert np.count_nonzero(off) == interactions
        # No clock item acts on an interacting item, and no interacting item acts on a clock item.
        assert not theta[INTERACTING:, :INTERACTING].any()
        assert not theta[:INTERACTING, INTERACTING:].any()


def test_unknown_stages_are_refused(capsys):
    with pytest.raises(SystemExit):
        options(["measure", "nothing"])
    assert "there is no stage 'nothing'" in capsys.readouterr().err


# --- Workers --------------------------------------------------------------------------------------


def run(tmp_path, source, limit=60.0):
    script = tmp_path / "worker.py"
    script.write_text(source)
    job = {"task": "learn", "limit": limit, "learn": True, "threads": 1}
    X = np.eye(3, dtype=bool)
    return running.run_worker(
        [sys.executable, str(script)], tmp_path / "out", job, X, np.zeros((3, 3))
    )


def test_a_crash_is_a_record(tmp_path):
    found = run(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (found["status"], found["message"]) == ("failed", "crashed: SIGSEGV")


def test_an_error_is_a_record(tmp_path):
    found = run(tmp_path, "raise ValueError('too many items')")
    assert found["status"] == "failed"
    assert found["message"] == "ValueError: too many items"


def test_a_worker_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "GRACE", 0.0)
    found = run(tmp_path, "import time; time.sleep(600)", limit=0.2)
    assert (found["status"], found["message"][:6]) == ("stopped", "killed")


@pytest.fixture
def workers(monkeypatch):
    """Import the worker scripts, which normally run in other Python environments, as modules."""
    monkeypatch.syspath_prepend(str(running.WORKERS))
    names = ("common", "sequela_worker")
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        del sys.modules[name]


def test_what_a_worker_has_left_counts(tmp_path, workers):
    recorder = workers["common"].Recorder(tmp_path, limit=60.0)
    assert not recorder.keep(np.ones((3, 3)))
    (tmp_path / "log.txt").touch()
    found = running._what_is_left(tmp_path, None, killed=True)
    assert (found["status"], found["iterations"]) == ("stopped", 1)
    # A crash may leave an incomplete last line, which must be ignored.
    with (tmp_path / "trajectory.jsonl").open("a") as file:
        file.write('{"seconds": 1.')
    (step,) = running.trajectory(tmp_path)
    assert np.array_equal(np.load(tmp_path / step["file"]), np.ones((3, 3)))


def test_the_fastest_of_several_short_learnings_counts(tmp_path, workers):
    recorder = workers["common"].Recorder(tmp_path, limit=60.0)
    seconds = iter([1.5, 0.5, 1.0])

    def learn():
        recorder.keep(np.ones((2, 2)))
        recorder.steps[-1]["seconds"] = found = next(seconds)
        return {"seconds": found}

    assert recorder.fastest(learn) == {"seconds": 0.5, "repeats": 3}
    assert [step["seconds"] for step in running.trajectory(tmp_path)] == [0.5]
    seconds = iter([7.0])
    assert recorder.fastest(learn) == {"seconds": 7.0, "repeats": 1}


def job_of(tool):
    return {"penalty": 0.02, "launched": 0.0, **plan.Job("x", tool).worker_options()}


def test_our_worker_learns_and_leaves_its_way(tmp_path, workers, monkeypatch):
    from sequela.learning import fitting

    worker = workers["sequela_worker"]
    # Do not compile all kernels in advance: this test does not use the measured times.
    monkeypatch.setattr(worker, "load_kernels", lambda: None)
    # The worker replaces these two functions. `monkeypatch` restores them after the test.
    for loop in ("solve", "descend_by_gradients"):
        monkeypatch.setattr(fitting, loop, getattr(fitting, loop))
    X = load("sim-n8-N60").X
    job = job_of(plan.OURS)
    recorder = workers["common"].Recorder(tmp_path, limit=600.0)
    found = worker.learn(job, X, dense_theta(X), recorder)
    assert not found["stopped"]
    steps = running.trajectory(tmp_path)
    values = [scorer.objective(np.load(tmp_path / step["file"]), X, 0.02) for step in steps]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(found["own objective"], abs=1e-10)
    assert [step["seconds"] for step in steps] == sorted(step["seconds"] for step in steps)


@pytest.mark.parametrize("tool", [plan.OURS, plan.PAPER])
def test_the_limit_ends_a_fit_with_what_it_has(tool, tmp_path, workers, monkeypatch):
    from sequela.learning import fitting

    worker = workers["sequela_worker"]
    monkeypatch.setattr(worker, "load_kernels", lambda: None)
    for loop in ("solve", "descend_by_gradients"):
        monkeypatch.setattr(fitting, loop, getattr(fitting, loop))
    X = load("sim-n8-N60").X
    recorder = workers["common"].Recorder(tmp_path, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ignore the warning about a fit that was stopped
        found = worker.learn(job_of(tool), X, dense_theta(X), recorder)
    assert found["stopped"]
    assert found["iterations"] == 0
    assert found["message"] == "stopped by the limit"


def test_the_phases_of_the_kernel_are_those_of_an_evaluation(monkeypatch):
    from sequela.likelihood import Likelihood

    n, k = 10, 8
    given = kernel_phases.arrays(n, k)
    for phase in kernel_phases.PHASES:
        kernel_phases.run(phase, 2, n, k, given)
    theta = np.log(given["W"])
    np.fill_diagonal(theta, -3.0)
    X = np.zeros((1, n), dtype=bool)
    X[0, :k] = True
    expected = Likelihood(X, n_threads=1).evaluate(theta).gradient
    found = given["G"][:k, :n].copy()
    found[np.arange(k), np.arange(k)] = given["G"][k, :k]
    np.testing.assert_allclose(found, np.asarray(expected)[:k], rtol=1e-9, atol=1e-12)
    monkeypatch.setattr(kernel_phases, "_SECONDS", 0.0)
    rows = kernel_phases.phases(n, k, 50.0)
    assert sum(row["share"] for row in rows) >= 1.0 - 1e-9
    assert all(row["seconds"] > 0 for row in rows)


def test_a_profile_counts_the_innermost_function_of_ours():
    outer = (
        "<module> (w.py:1);measured_part (w.py:2);SetChain.fit (sequela/learning/estimator.py:9)"
    )
    stacks = [
        f"{outer};ExactWork._untimed (sequela/likelihood/exact.py:85);"
        "call (sequela/support/jit.py:126) 30",
        f"{outer};dot (numpy/core.py:4) 10",
        "<module> (w.py:1);load_kernels (w.py:3);f (sequela/model.py:1) 99",
    ]
    assert count_entries(stacks) == {
        "ExactWork._untimed (exact.py)": 30,
        "SetChain.fit (estimator.py)": 10,
    }


def test_every_remark_is_on_a_place_that_there_is():
    """Every remark on a method names a method of this version or of version 0.1."""
    from sequela.learning.solvers.proximal_newton import ProximalNewton
    from sequela.likelihood import Likelihood
    from sequela.likelihood.exact import ExactWork
    from sequela.likelihood.objective import Objective
    from sequela.likelihood.orders import OrderSampler
    from sequela.likelihood.reweighting import DrawnOrders

    there = {
        f"{kind.__name__}.{name}"
        for kind in (
            DrawnOrders, ExactWork, Likelihood, Objective, OrderSampler, ProximalNewton,
        )
        for name in vars(kind)
    }  # fmt: skip
    named = {name for name in remarks._REMARKS if name.count(".") == 1 and ".py" not in name}
    assert named - there == {"ExactSets.work", "Problem._advance", "Problem._weigh"}
    assert len(named & there) >= 6
    assert remarks.remark("Objective.evaluate (objective.py)").startswith(
        "Python code around each gradient"
    )
    assert remarks.remark("nowhere (else.py)") == "No remark yet."


# --- Records and report ---------------------------------------------------------------------------


def test_records_are_kept_and_forgotten(places):
    places.write("fit", "a--mhn", {"seconds": 1.5})
    places.write("score", "a--mhn", {"objective": -1.0})
    assert places.read("fit", "a--mhn")["seconds"] == 1.5
    assert [record["name"] for record in places.all("fit")] == ["a--mhn"]
    places.forget(("fit",))
    assert places.read("fit", "a--mhn") is None
    assert places.read("score", "a--mhn")["machine"]


def test_a_report_of_nothing_says_so(places):
    assert not pages(gather(places))["mhn.md"]
    assert sentences(gather(places)) == []


def test_a_report_takes_its_numbers_from_the_records(places):
    about = {
        "case": "sim-n20-N500", "title": "simulated", "n": 20, "N": 490, "left out": 10,
        "largest set": 12, "mean set": 3.0, "same as": None, "status": "finished",
        "gradient, s": 0.5, "peak memory, MB": 100.0, "limit, s": 60.0, "message": "",
    }  # fmt: skip
    ours = {"gradient alone, s": 0.1, "evaluations": 30, "interactions": 5, "own objective": -1.0}
    places.write("fit", "sim-n20-N500--mhn", {**about, "tool": "mhn", "seconds": 44.0})
    places.write(
        "fit", "sim-n20-N500--sequela", {**about, "tool": "sequela", "seconds": 2.5, **ours}
    )
    known = {
        "error of theta, interacting": 0.3, "false effects": 4, "KL of sequences": 0.02,
        "KL of sequences, error": 0.0, "orders right": 0.5, "orders asked": 12,
    }  # fmt: skip
    scored = {"objective": -7.25, "error": 0.0, "curve": [[1.0, -7.25]], **known}
    places.write(
        "score",
        "sim-n20-N500--mhn",
        {
            **scored, "our fit": "sim-n20-N500--sequela", "our objective": -7.125,
            "objective, rounded": -7.1875, "our error": 0.0, "ours reached it after, s": 2.0,
        },
    )  # fmt: skip
    found = gather(places)
    (row,) = [line for line in pages(found)["mhn.md"].splitlines() if "simulated" in line]
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[2] == "490 (10)"
    assert cells[10:14] == ["-7.187500", "-7.125000", "2.0", "22"]
    (first, *_) = sentences(found)
    assert "22 times sooner" in first
    assert "6 of 12" in pages(found)["known_theta.md"]
    assert json.loads(json.dumps(found)) == found
