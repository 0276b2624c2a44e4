"""Fits that are stopped by Ctrl-C or by signals of a batch system, and the progress bar."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from learning.problems import ROOT, quiet, simulated
from sequela import SetChain
from sequela.learning import checkpoint
from sequela.learning.interrupt import graceful_stop
from sequela.learning.progress import FitProgress

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)

PREAMBLE = """
    import os, signal, sys, warnings
    import numpy as np
    from sequela import Budget, SetChain, SetChainCV, example_theta, simulate
    from sequela.likelihood.objective import Objective

    sets = simulate(example_theta(), 200, random_state=4).to_dataset().without_times()
    original = Objective.evaluate
    calls = 0

    def signals_after(when):
        def evaluate(self, theta):
            global calls
            calls += 1
            for number in when.get(calls, ()):
                os.kill(os.getpid(), number)
            return original(self, theta)
        Objective.evaluate = evaluate

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    handlers = lambda: [signal.getsignal(number) for number in numbers]
    before = handlers()
    def told(work):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = work()
        assert handlers() == before
        return result, [f"{w.category.__name__}: {w.message}" for w in caught]
"""


def run(code, *arguments, check=True):
    text = textwrap.dedent(PREAMBLE) + textwrap.dedent(code)
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(  # noqa: S603 - our own text
        [sys.executable, "-c", text, *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    if check:
        assert done.returncode == 0, done.stderr
    return done


def test_ctrl_c_returns_the_best_so_far_and_the_fit_can_be_resumed(tmp_path):
    """Three runs of a fit are stopped, each by another signal. The fourth run finishes the fit.

    The result must have the same bits as the result of a fit that was never stopped.
    """
    done = run(
        """
        file = sys.argv[1]
        learner = lambda: SetChain(0.005, n_starts=4, random_state=3, checkpoint=file)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            calls = 0
            signals_after({25: [number]})
            found, said = told(lambda: learner().fit(sets))
            assert not found.starts_[-1].converged
            assert np.isfinite(found.theta_).all()
            assert found.objective_ == max(s.objective for s in found.starts_)
            name = signal.Signals(number).name
            assert any("interrupted" in w and name in w and file in w for w in said), said
            print(len(found.starts_))
        signals_after({})
        resumed, _ = told(lambda: learner().fit(sets))
        whole, _ = told(lambda: SetChain(0.005, n_starts=4, random_state=3).fit(sets))
        assert len(resumed.starts_) == 4
        assert all(np.array_equal(a.theta, b.theta) for a, b in zip(resumed.starts_, whole.starts_))
        assert resumed.n_evaluations_ == whole.n_evaluations_
        """,
        tmp_path / "fit",
    )
    started = [int(line) for line in done.stdout.split()]
    assert started == sorted(started)
    assert started[0] < 4


def test_other_solvers_stop_too():
    """Stop a fit with sampled sets, and fits of the paper's solver in each of its two phases.

    The first phase has 50 epochs, for which it computes 51 gradients, one of them at its start. The
    second phase also computes a gradient at its start.
    """
    done = run(
        """
        from sequela.learning import fitting
        few = sets.select_samples(range(60))
        for kind, when, options in (
            (Objective, 12, {"budget": Budget(work=2e4), "chains": 3}),
            (fitting.Likelihood, 12, {"solver": "adagrad"}),
            (fitting.Likelihood, 60, {"solver": "adagrad"}),
        ):
            whole, calls = kind.evaluate, 0
            def evaluate(self, *arguments, **more):
                global calls
                calls += 1
                if calls == when:
                    os.kill(os.getpid(), signal.SIGINT)
                return whole(self, *arguments, **more)
            kind.evaluate = evaluate
            found, said = told(lambda: SetChain(0.005, random_state=1, **options).fit(few))
            kind.evaluate = whole
            assert not found.converged_
            assert np.isfinite(found.theta_).all() and np.isfinite(found.objective_)
            assert any("interrupted (stopped by SIGINT)" in w for w in said), said
            print(found.n_iter_)
        """
    )
    sampled, base_rates, everything = (int(line) for line in done.stdout.split())
    assert sampled < 12
    assert base_rates == 11
    assert everything == 60 - 51 - 1


def test_interrupts_that_end_it_at_once():
    """A second Ctrl-C ends a fit at once. The first Ctrl-C ends a cross-validation at once."""
    done = run(
        """
        for when, learner in (
            ([signal.SIGINT, signal.SIGINT], SetChain(0.005)),
            ([signal.SIGINT], SetChainCV([0.1, 0.01, 0.003], folds=3)),
        ):
            calls = 0
            signals_after({5: when})
            try:
                learner.fit(sets)
            except KeyboardInterrupt:
                print("interrupted", handlers() == before)
        """
    )
    assert done.stdout.split() == ["interrupted", "True"] * 2


def test_an_interrupted_start_is_no_optimum():
    """If a start was stopped, the theta where it stopped is not counted as an optimum."""
    done = run(
        """
        def evaluate(self, theta):
            global calls
            calls += 1
            if self.start == 2 and not stopped:  # interactions of up to 2
                stopped.append(calls)
                os.kill(os.getpid(), signal.SIGINT)
            return original(self, theta)
        stopped = []
        Objective.evaluate = evaluate
        learner = lambda: SetChain(0.1, n_starts=3, random_state=3, tol=1e-6)
        found, said = told(lambda: learner().fit(sets))
        assert stopped and [s.converged for s in found.starts_] == [True, True, False]
        assert found.optima_["converged"].tolist() == [True, False]
        whole = learner().fit(sets)
        assert len(whole.optima_) == 1 and whole.optima_["starts"].tolist() == [3]
        print([w for w in said if "different optima" in w])
        """
    )
    assert done.stdout.strip() == "[]"


def test_handlers_are_restored_after_an_error(monkeypatch):
    before = [signal.getsignal(number) for number in SIGNALS]

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(checkpoint, "_write", fail)
    with pytest.raises(OSError, match="disk full"):
        SetChain(0.1, checkpoint="nowhere.npz").fit([[1, 0], [0, 1], [0, 0], [1, 1]])
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_request_is_false_until_a_signal_comes():
    mine = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        with graceful_stop() as request:
            assert not request
            os.kill(os.getpid(), signal.SIGUSR1)
            assert request
            assert request.signal == "SIGUSR1"
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR1, mine)


def test_a_worker_thread_can_fit():
    """A fit also works in a worker thread, where Python cannot handle signals."""
    data = simulated(4, 60, 1).without_times()
    found = []
    thread = threading.Thread(target=lambda: found.append(SetChain(0.05).fit(data)))
    thread.start()
    thread.join()
    assert np.array_equal(found[0].theta_, SetChain(0.05).fit(data).theta_)


# --- The progress bar -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"n_starts": 2}, {"solver": "adagrad", "max_iter": 3}])
def test_a_bar_that_is_asked_for_is_shown_and_changes_nothing(options, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then writes as to a terminal
    data = simulated(4, 60, 1).without_times()
    with quiet():
        shown = SetChain(0.02, random_state=1, progress=True, **options).fit(data)
        captured = capsys.readouterr()
        silent = SetChain(0.02, random_state=1, progress=False, **options).fit(data)
    assert captured.out == ""
    assert ("start 2 of 2" if "n_starts" in options else "fit") in captured.err
    assert capsys.readouterr().err == ""
    assert np.array_equal(shown.theta_, silent.theta_)


def test_without_a_terminal_nothing_is_shown(capsys):
    SetChain(0.05).fit(simulated(4, 60, 1).without_times())
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def test_the_bar_fills_as_the_residual_falls():
    with FitProgress(True, 1e-4) as bar:
        bar.begin("fit")
        filled = []
        for residual in (1.0, 1e-2, 1e-4, 0.0):
            bar.update(-3.0, residual, 7)
            filled.append(bar._bar.tasks[0].completed)
        state = bar._bar.tasks[0].fields["state"]
        bar.begin("start 2 of 2")
        assert len(bar._bar.tasks) == 1
        assert bar._bar.tasks[0].completed == 0.0
    assert filled == pytest.approx([0.0, 0.5, 1.0, 1.0])
    assert "objective -3" in state
    assert "residual 0.0e+00" in state
    assert "7 interactions" in state


def test_a_bar_survives_a_residual_that_is_not_known_yet():
    """The bar works without a residual: the paper's solver has none before its first gradient."""
    with FitProgress(True, 1e-4) as bar:
        bar.begin("fit")
        for residual in (np.inf, 0.3, 0.01):
            bar.update(np.nan, residual, 0)
            assert 0.0 <= bar._bar.tasks[0].completed <= 1.0
        assert bar._bar.tasks[0].completed > 0.0
