"""Measure the speed of likelihoods (``make benchmark``), and write benchmarks/results/engine.json.

All measurements are made in one run on one machine. Some times are divided by the time of the same
recursion in plain Python, and some speeds by the speed of a matrix product in the same run.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.datasets import data_folder, glioblastoma

RESULTS = Path(__file__).parent / "results" / "engine.json"


def best_of(work, repeats=5, at_least=0.02):
    """Return the shortest time of one call; each measurement contains several short calls."""
    work()
    start = time.perf_counter()
    work()
    inner = max(1, int(at_least / max(time.perf_counter() - start, 1e-7)))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(inner):
            work()
        times.append((time.perf_counter() - start) / inner)
    return min(times)


def plain_twin(theta, items):
    """Return value and gradient of one set by the recursion in plain Python, with dictionaries."""
    n = len(theta)
    k = len(items)

    def rates(R):
        present = [items[b] for b in range(k) if R >> b & 1]
        r = np.exp(np.diag(theta) + theta[present].sum(axis=0))
        r[present] = 0.0
        return present, r

    D, F, T = {}, {0: 1.0}, {}
    for R in range(1 << k):
        present, r = rates(R)
        D[R] = 1.0 + r.sum()
        F[R] = F.get(R, 0.0) / D[R]
        for b in range(k):
            if not R >> b & 1:
                F[R | 1 << b] = F.get(R | 1 << b, 0.0) + F[R] * r[items[b]]
    gradient = np.zeros((n, n))
    last = (1 << k) - 1
    for R in range(last, -1, -1):
        present, r = rates(R)
        T[R] = float(last == R)
        steps = np.zeros(n)
        for b in range(k):
            if not R >> b & 1:
                flow = r[items[b]] * T[R | 1 << b]
                T[R] += flow
                steps[items[b]] = F[R] * flow / F[last]
        T[R] /= D[R]
        excess = steps - F[R] * T[R] / F[last] * r
        gradient[present] += excess
        gradient[np.arange(n), np.arange(n)] += excess * (r > 0)
    return np.log(F[last]), gradient


def gemm_peak():
    """Return the GFlop/s of a 1024 x 1024 matrix product on one thread."""
    from threadpoolctl import threadpool_limits

    a = np.random.default_rng(0).random((1024, 1024))
    with threadpool_limits(1):
        return 2 * 1024**3 / best_of(lambda: a @ a, repeats=3) / 1e9


def thetas(rng, base):
    """Return the random start of the paper, and a theta about as sparse as a learned theta.

    `base` has the logarithms of the base rates of both thetas.
    """
    n = base.size
    dense = rng.uniform(-0.2, 0.2, (n, n))
    sparse = np.where(rng.random((n, n)) < 0.0045, rng.normal(0.0, 1.0, (n, n)), 0.0)
    for theta in (dense, sparse):
        np.fill_diagonal(theta, base)
    return {"dense": dense, "sparse": sparse}


def one_set(peak):
    """Measure value and gradient of one set on one thread."""
    from sequela import Budget, Likelihood

    rows = []
    rng = np.random.default_rng(0)
    for n in (20, 100, 410):
        for kind, theta in thetas(rng, np.full(n, -3.0)).items():
            for k in (3, 5, 8, 10, 12, 15, 18, 20):
                items = np.sort(rng.permutation(n)[:k])
                # Use several sets per call, so that the overhead of the call is small.
                copies = 64 if k <= 10 else 1
                X = np.zeros((copies, n), dtype=bool)
                for row in range(copies):
                    X[row, np.sort(rng.permutation(n)[:k]) if row else items] = True
                likelihood = Likelihood(X, n_threads=1, budget=Budget(memory="2GB", work=1e12))
                distinct = len(likelihood.distinct)
                seconds = best_of(lambda: likelihood.evaluate(theta)) / distinct  # noqa: B023
                row = {"n": n, "theta": kind, "k": k, "microseconds": seconds * 1e6}
                if k <= 10:
                    start = time.perf_counter()
                    value, gradient = plain_twin(theta, items)
                    row["times the plain twin"] = (time.perf_counter() - start) / seconds
                    found = Likelihood(X[:1], n_threads=1).evaluate(theta)
                    assert np.allclose(found.gradient, gradient, atol=1e-9)
                    assert np.isclose(found.value, value)
                if kind == "dense" and k >= 12:
                    row["share of GEMM peak"] = 6 * n * 2.0**k / seconds / 1e9 / peak
                rows.append(row)
    return rows


def whole_data(frame):
    """Measure the gradient of all glioblastoma samples; chains are kept between evaluations."""
    from sequela import Likelihood, Sampling
    from sequela.likelihood.ways import is_exact

    rows = []
    for n in (20, 50, 100, 200, 410):
        X = frame.iloc[:, :n]
        share = X.mean().to_numpy()
        for kind, theta in thetas(np.random.default_rng(1), np.log(share / (1 - share))).items():
            for chains in (4, 16):
                row = {"n": n, "theta": kind, "chains": chains}
                for threads in (1, 2):
                    likelihood = Likelihood(
                        X,
                        random_state=0,
                        n_threads=threads,
                        sampling=Sampling(chains=chains, sweeps=1, burn_in=0),
                    )
                    found = likelihood.evaluate(theta, value=False)
                    work = partial(likelihood.evaluate, theta, value=False)
                    row[f"milliseconds, {threads} threads"] = best_of(work, 5) * 1e3
                row["sampled sets"] = int((~is_exact(found.methods)).sum())
                row["norm of the gradient"] = float(np.linalg.norm(found.gradient))
                row["error of it"] = float(np.linalg.norm(found.gradient_se))
                rows.append(row)
    return rows


def same_error(frame):
    """Measure the error of the gradient of each sampler after the same time, on one thread.

    Errors are differences from a long run of block relocation. So a chain that does not move has a
    large error, although its variance is small. The error of a sampler is inversely proportional to
    the square root of its time. So the ratio of the squared errors of two samplers is the ratio of
    the work that they need for the same error (a lower bound if a chain does not move).
    """
    from sequela import Sampling
    from sequela.likelihood.orders import OrderSampler
    from sequela.likelihood.parameters import Parameters
    from sequela.likelihood.sampled import Chain, ChainRun

    n = 100
    X = frame.iloc[:, :n].to_numpy()
    share = X.mean(axis=0)
    theta = thetas(np.random.default_rng(1), np.log(share / (1 - share)))["sparse"]
    parameters = Parameters(theta)
    repeats = 24
    rows = []

    def run(k, columns, method, sampling, chain):
        work = ChainRun(OrderSampler(columns, sampling, method), Chain(), 0, (k, chain))
        start = time.perf_counter()
        G = work(value=False, gradient=True).G[:, :-1]
        return G, time.perf_counter() - start

    for k in (14, 23, 59, 78):
        row_of = int(np.nonzero(X.sum(axis=1) == k)[0][0])
        columns = parameters.columns(np.nonzero(X[row_of])[0].astype(np.int64))
        long = Sampling(sweeps=400, burn_in=20)
        truth = np.mean(
            [run(k, columns, "relocation", long, 100 + c)[0] for c in range(16)], axis=0
        )
        reference = Sampling(sweeps=40, burn_in=5)
        target = np.median([run(k, columns, "relocation", reference, c)[1] for c in range(5)])
        errors = {}
        for method in ("relocation", "metropolis", "metropolis-uniform"):
            sampling = reference
            if method != "relocation":
                trial = Sampling(draws=200, draws_burn_in=20)
                each = np.median([run(k, columns, method, trial, c)[1] for c in range(5)]) / 220
                draws = max(int(target / each), 10)
                sampling = Sampling(draws=draws - draws // 10, draws_burn_in=draws // 10)
            found = [run(k, columns, method, sampling, c) for c in range(repeats)]
            square = float(np.mean([np.sum((G - truth) ** 2) for G, _ in found]))
            errors[method] = square
            rows.append(
                {
                    "k": k,
                    "method": method,
                    "milliseconds": float(np.median([seconds for _, seconds in found])) * 1e3,
                    "error of the gradient (norm)": square**0.5,
                    "work for the same error, relocation = 1": square / errors["relocation"],
                }
            )
    return rows


def start_up():
    """Measure the times of import, help and compilation, each in a new process."""

    def run(code, cache):
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        start = time.perf_counter()
        subprocess.run([sys.executable, *code], check=True, env=environment, capture_output=True)  # noqa: S603
        return time.perf_counter() - start

    everything = [
        "-c",
        "from benchmarks.engine import touch_everything; touch_everything()",
    ]
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as other:
        empty = min(run(["-c", "pass"], cache) for _ in range(3))
        cold = run(everything, cache)
        warm = min(run(everything, cache) for _ in range(2))
        return {
            "import sequela, seconds": min(run(["-c", "import sequela"], cache) for _ in range(3)),
            "sequela --help, seconds": min(
                run(["-m", "sequela", "--help"], cache) for _ in range(3)
            ),
            "empty interpreter, seconds": empty,
            "all kernels from a cold cache, seconds": cold,
            "all kernels from the disk cache, seconds": warm,
            "compilation in one process, seconds": cold - warm,
            "sequela compile on two cores, seconds": run(["-m", "sequela", "compile"], other),
        }


def touch_everything():
    """Use every kernel once, in this process."""
    from sequela.report.compilation import PARTS

    for part in PARTS:
        part()


def memory_of_one_lattice():
    """Return the difference of two peak memories, in MB: for a set of 20 items and of 2 items."""
    code = (
        "import sys, numpy as np, resource\n"
        "from sequela.likelihood import Likelihood\n"
        "X = np.zeros((1, 100), dtype=bool); X[0, :int(sys.argv[1])] = True\n"
        "theta = np.random.default_rng(0).uniform(-0.2, 0.2, (100, 100)) - 3 * np.eye(100)\n"
        "Likelihood(X, n_threads=1).evaluate(theta)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)\n"
    )

    def peak(k):
        run = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code, str(k)], check=True, capture_output=True, text=True
        )
        return float(run.stdout)

    return peak(20) - peak(2)


def table(title, rows):
    """Print rows as a table."""
    print(f"\n{title}")
    names = list(dict.fromkeys(name for row in rows for name in row))

    def cell(value):
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    body = [[cell(row.get(name, "")) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[i]) for line in body)) for i, name in enumerate(names)]
    for line in [names, *body]:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))


def measure_start_up_again():
    """Measure only the start-up times again, because other work disturbs them most."""
    result = json.loads(RESULTS.read_text())
    result["start-up"] = start_up()
    table("start-up", [result["start-up"]])
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


def main():
    """Run all measurements and write the result."""
    result = {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    result["start-up"] = start_up()
    table("start-up", [result["start-up"]])
    memory = memory_of_one_lattice()
    result["memory of a lattice of 20 items, MB"] = memory
    print(
        f"\nmemory of a lattice of 20 items: {result['memory of a lattice of 20 items, MB']:.0f} MB"
    )
    peak = gemm_peak()
    result["GEMM peak, GFlop/s"] = peak
    print(f"matrix product, one thread: {peak:.1f} GFlop/s")
    result["one set"] = one_set(peak)
    table("one set, value and gradient, one thread", result["one set"])
    folder = data_folder()
    if folder is None:
        print(
            "\nno real data were found in ../shared/data or in the folder SEQUELA_DATA: the rest "
            "is skipped"
        )
    else:
        frame = glioblastoma(folder)
        result["glioblastoma"] = whole_data(frame)
        table("glioblastoma, 378 samples, gradient", result["glioblastoma"])
        result["samplers"] = same_error(frame)
        table("samplers at n = 100, one set", result["samplers"])
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\nwritten: {RESULTS.name}")


if __name__ == "__main__":
    measure_start_up_again() if sys.argv[1:] == ["start-up"] else main()
