"""Compare likelihoods and gradients at known times with mpmath, for theta up to 100.

Run by hand: ``python -m verification.known_times [problems] [seed]`` (2,000 and 1 by default).
The problems have 1 to 4 items and times from 1e-4 to 1e2. The absolute values of the entries of
theta are at most 3, 10, 30 or 100; some entries are exactly zero or at this limit. The reference is
the sum of exponentials of `tests/reference.py` in mpmath, with as many digits as necessary. The
error of each number is relative to the larger of 1 and the true number. The script prints every
problem that is refused or has an error above 1e-10, and then a table. It exits with 1 if an error
is above 1e-8.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from sequela import InputError, log_likelihood

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import reference

SIZES = (3.0, 10.0, 30.0, 100.0)
WORST = 1e-8


def problem(rng: np.random.Generator, size: float) -> tuple[np.ndarray, list[int], float]:
    """Return a random theta, set and time."""
    n = int(rng.integers(1, 5))
    theta = rng.uniform(-size, size, (n, n))
    if rng.random() < 0.5:
        ends = rng.choice([-size, 0.0, size], (n, n))
        theta = np.where(rng.random((n, n)) < 0.5, theta, ends)
    chosen = rng.choice(n, int(rng.integers(0, min(n, 3) + 1)), replace=False)
    return theta, sorted(map(int, chosen)), float(10.0 ** rng.uniform(-4.0, 2.0))


def error(found: np.ndarray | float, expected: np.ndarray | float) -> float:
    gap = np.abs(np.asarray(found) - expected) / np.maximum(1.0, np.abs(expected))
    return float(np.max(gap))


def main() -> None:
    problems = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    found = {size: {"right": 0, "refused": 0, "wrong": 0} for size in SIZES}
    worst = dict.fromkeys(SIZES, (0.0, 0.0))
    began = time.process_time()
    for at in range(problems):
        size = SIZES[at % len(SIZES)]
        theta, chosen, t = problem(rng, size)
        row = np.isin(np.arange(len(theta)), chosen).astype(int)[None]
        try:
            value, gradient = log_likelihood(
                theta, row, times=[t], return_gradient=True, n_threads=1
            )
        except InputError as refusal:
            found[size]["refused"] += 1
            print(f"{at}: refused: {refusal}", flush=True)
            continue
        gaps = (
            error(value, reference.mp_log_p_set_given_time(theta, chosen, t)),
            error(gradient, reference.mp_gradient_set_given_time(theta, chosen, t)),
        )
        worst[size] = tuple(max(pair) for pair in zip(worst[size], gaps, strict=True))
        found[size]["wrong" if max(gaps) > WORST else "right"] += 1
        if max(gaps) > 1e-10:
            print(f"{at}: value {gaps[0]:.1e}, gradient {gaps[1]:.1e}", flush=True)
    print(f"\n{problems} problems, {time.process_time() - began:.0f} CPU seconds")
    print(f"{'|theta|':>8} {'right':>6} {'refused':>8} {'wrong':>6} {'value':>9} {'gradient':>9}")
    for size in SIZES:
        row = found[size]
        print(
            f"{size:>8g} {row['right']:>6} {row['refused']:>8} {row['wrong']:>6} "
            f"{worst[size][0]:>9.1e} {worst[size][1]:>9.1e}"
        )
    sys.exit(1 if any(row["wrong"] for row in found.values()) else 0)


if __name__ == "__main__":
    main()
