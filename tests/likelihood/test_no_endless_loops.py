"""With extreme known times, every evaluation ends with a number or an error.

Compiled loops cannot be interrupted. So every case runs in its own process, which is stopped after
a time limit. In this way an endless loop fails one test and does not block the others.
"""

from __future__ import annotations

import math
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import reference as ref

SECONDS = 60  # loading kernels takes about 2 seconds, compiling them (only once) about 20

PRELUDE = """
import math
import sys
import numpy as np
from sequela import InputError
from sequela.likelihood import evaluate, log_likelihood, sequence_log_likelihood
"""


def answers(*expressions):
    """Evaluate expressions in a new process; return floats, or "refused" for an InputError."""
    body = "".join(
        textwrap.dedent(
            f"""
            try:
                print(repr(float({expression})), flush=True)
            except InputError:
                print("refused", flush=True)
            """
        )
        for expression in expressions
    )
    with subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-c", PRELUDE + body],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            stuck = expressions[len(out.split())]
            pytest.fail(f"no answer in {SECONDS} s: {stuck}")
    assert process.returncode == 0, err
    return [line if line == "refused" else float(line) for line in out.split()]


# A regression test: `contour.transient_chain` doubled `bend` in an endless loop if the integrand
# was NaN, because every comparison with NaN is false. If an exit rate times t was above 1e16, the
# variable `tilt` was lost when it was added to the exit rate, and the integrand became NaN.
@pytest.mark.parametrize(
    ("log_rate", "t", "sigma"), [(30.0, 1e3, []), (30.0, 1e3, [0]), (40.0, 1.0, [0])]
)
def test_sequences_with_exit_rates_beyond_1e16(log_rate, t, sigma):
    (value,) = answers(
        f"sequence_log_likelihood(np.diag([0.0, {log_rate}]), [{sigma}], times=[{t}])"
    )
    if value != "refused":
        assert value == pytest.approx(-math.exp(log_rate) * t, rel=1e-12)


def test_sampled_sets_with_exit_rates_beyond_1e16():
    """Sampling at a known time uses the same kernel as the sequences of the test above."""
    theta = np.diag([0.0, -0.3, 40.0])
    (value,) = answers(
        "evaluate(np.diag([0.0, -0.3, 40.0]), [[1, 1, 0]], times=[1.0], method='metropolis', "
        "random_state=1, gradient=False).value"
    )
    if value != "refused":
        assert value == pytest.approx(ref.mp_log_p_set_given_time(theta, [0, 1], 1.0), rel=1e-12)


# A regression test: if t is below about 1e-307, (k + 1) / t is infinite, and a loop did not end.
@pytest.mark.parametrize("t", ["1e-310", "1e20", "1e300"])
def test_times_at_the_ends_of_the_range(t):
    """Compare with the limits of log p, if one of two items of rate 1 is present.

    The limit is log(t) for small t, and -t for large t.
    """
    one, order, full = answers(
        f"log_likelihood(np.zeros((2, 2)), [[1, 0]], times=[{t}])",
        f"sequence_log_likelihood(np.zeros((2, 2)), [[0]], times=[{t}])",
        f"log_likelihood(np.zeros((2, 2)), [[1, 1]], times=[{t}])",
    )
    t = float(t)
    expected = math.log(t) if t < 1 else -t
    for value in (one, order):
        if value != "refused":
            assert value == pytest.approx(expected, rel=1e-6)
    if full != "refused":
        assert full == pytest.approx(2 * math.log(t) if t < 1 else 0.0, rel=1e-6, abs=1e-6)


def test_the_guard_tells_numbers_refusals_and_endless_loops_apart(monkeypatch):
    found = answers("2.5", "log_likelihood([[0.0]], [[1]])", "log_likelihood([[np.nan]], [[1]])")
    assert found == [2.5, pytest.approx(math.log(0.5)), "refused"]
    monkeypatch.setattr(sys.modules[__name__], "SECONDS", 3)
    with pytest.raises(pytest.fail.Exception, match="no answer in 3 s: max"):
        answers("max(iter(int, 1))")
