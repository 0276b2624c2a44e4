"""Measure the limits of the machine, and compare the exact kernel with them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from benchmarks.engine import best_of, gemm_peak, thetas
from sequela import Budget, Likelihood

# Number of bytes to copy, larger than any cache.
_COPY_BYTES = 1 << 28
# Number of sets of each size per call. With several sets, the work that is done once per call (the
# exponentials of theta, the plan of blocks) takes a small share of the time, as in fits.
_SETS = {12: 128, 15: 16, 18: 4, 20: 2}


def limits() -> dict[str, Any]:
    """Measure and return the GFlop/s of a matrix product and the GB/s of a copy."""
    cores = os.cpu_count() or 1
    found: dict[str, Any] = {"GEMM, one thread, GFlop/s": gemm_peak()}
    found["GEMM, all threads, GFlop/s"] = _gemm_on(cores)
    found["threads"] = cores
    source = np.ones(_COPY_BYTES // 8)
    target = np.empty_like(source)
    seconds = best_of(lambda: np.copyto(target, source), repeats=5)
    # A copy reads and writes all numbers once.
    found["copy, one thread, GB/s"] = 2 * _COPY_BYTES / seconds / 1e9
    return found


def _gemm_on(threads: int) -> float:
    from threadpoolctl import threadpool_limits

    a = np.random.default_rng(0).random((2048, 2048))
    with threadpool_limits(threads):
        return 2 * 2048**3 / best_of(lambda: a @ a, repeats=3) / 1e9


def kernel(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the times of the exact kernel for sets of k items, and the limits of the machine.

    If theta has no zeros, a value and gradient needs 6 n 2^k operations in matrix products, and
    three numbers per state are written and read. The lower limit of the time is the longer of two
    times: the time of the operations and the time of writing and reading. The time of the kernel is
    given as a multiple of this limit. The recursion over subsets needs about 10 k 2^k more
    operations, which matter if n is small.
    """
    peak = found["GEMM, one thread, GFlop/s"] * 1e9
    rng = np.random.default_rng(0)
    rows = []
    for n in (20, 100, 410):
        theta = thetas(rng, np.full(n, -3.0))["dense"]
        for k, count in _SETS.items():
            seconds = _seconds(theta, k, count, rng)
            arithmetic = 6 * n * 2.0**k / peak
            lattice = Budget.exact_memory(k, 1) - Budget.exact_memory(0, 1)
            memory = 2 * lattice / found["copy, one thread, GB/s"] / 1e9
            rows.append(
                {
                    "n": n,
                    "k": k,
                    "seconds": seconds,
                    "share of GEMM peak": arithmetic / seconds,
                    "share with the recursion": Budget.exact_work(k, n) / seconds / peak,
                    "least by arithmetic, s": arithmetic,
                    "least by memory, s": memory,
                    "times the floor": seconds / max(arithmetic, memory),
                }
            )
    return rows


def _seconds(theta: np.ndarray, k: int, count: int, rng: np.random.Generator) -> float:
    """Return the seconds per set, if `count` different sets are evaluated in one call."""
    n = len(theta)
    X = np.zeros((count, n), dtype=bool)
    for row in X:
        row[rng.permutation(n)[:k]] = True
    likelihood = Likelihood(X, n_threads=1, budget=Budget(memory="2GB", work=1e12))
    seconds = best_of(lambda: likelihood.evaluate(theta), repeats=3)
    return seconds / len(likelihood.distinct)
