"""Measure the speed of learning (``make benchmark``), and write benchmarks/results/learning.json.

The result has the measured times and, for some fits, a target time. All kernels are compiled before
the measurements (by `engine.touch_everything` and a small fit). A figure of the times of a gradient
is written to the same folder.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import time
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.datasets import data_folder, glioblastoma
from benchmarks.engine import best_of, table, touch_everything
from sequela import Dataset, Likelihood, SetChain, SetChainCV, simulate

RESULTS = Path(__file__).parent / "results"


def timed_fit(X, **options):
    """Return the fitted estimator and the duration of the fit in seconds."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = SetChain(random_state=1, **options).fit(X)
    return learner, time.perf_counter() - start


def row(name, X, aim, **options):
    """Fit the data, and return a row that describes the fit."""
    learner, seconds = timed_fit(X, **options)
    return {
        "data": name,
        "samples": len(X),
        "items": X.shape[1],
        "starts": len(learner.starts_),
        "aim, s": aim,
        "seconds": seconds,
        "evaluations": learner.n_evaluations_,
        "objective": round(learner.objective_, 6),
        "its error": learner.objective_se_,
        "KKT residual": learner.kkt_residual_,
        "Monte Carlo floor": learner.kkt_floor_,
        "converged": str(learner.converged_),
    }


def real_data(folder):
    """Fit the real data sets; return rows, peak memory in MB, and the time of a cross-validation.

    If there is a target for the time of a fit, its row has this target as "aim, s".
    """
    frame = glioblastoma(folder)
    few = {n: frame.iloc[:, :n][frame.iloc[:, :n].sum(axis=1) <= 20] for n in (50, 100)}
    schill = pd.read_csv(folder / "gbm" / "schill20.csv")
    pancancer = pd.read_csv(folder / "pancancer" / "mutations.tsv", sep="\t")
    rows = [
        row("20-item table", schill, "", tol=1e-4),
        row("20-item table", schill, "", tol=1e-4, n_starts=20),
        row("glioblastoma", frame.iloc[:, :20], 0.3, tol=1e-3),
        row("glioblastoma, sets <= 20", few[50], "", tol=1e-4),
        row("glioblastoma, sets <= 20", few[100], "", tol=1e-4),
        row("glioblastoma", frame.iloc[:, :50], 1.0, tol=1e-3),
        row("glioblastoma", frame.iloc[:, :100], 6.0, tol=1e-3),
        row("glioblastoma", frame.iloc[:, :410], 90.0, tol=1e-3),
        row("pan-cancer", pancancer != 0, 300.0, tol=1e-3),
    ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SetChainCV(random_state=1).fit(frame.iloc[:, :20])
    return rows, peak, time.perf_counter() - start


def gradient_costs():
    """Measure the times of one gradient of simulated data for increasing n, N and set sizes."""

    def cost(n, N, size):
        rng = np.random.default_rng(n + N)
        # The mean set size is about the sum of w / (1 + w).
        theta = np.diag(np.full(n, np.log(size / (n - size))))
        pairs = rng.integers(0, n, (n // 2, 2))
        for i, j in pairs[pairs[:, 0] != pairs[:, 1]]:
            theta[i, j] = rng.normal()
        data = simulate(theta, N, random_state=1, n_threads=1).to_dataset().without_times()
        small = data.select_samples(data.set_sizes <= 16)
        likelihood = Likelihood(Dataset(small), n_threads=1)
        seconds = best_of(lambda: likelihood.evaluate(theta), repeats=3)
        return {
            "n": n,
            "N": small.n_samples,
            "mean |S|": float(small.set_sizes.mean()),
            "milliseconds": seconds * 1e3,
            "microseconds a sample": seconds / small.n_samples * 1e6,
        }

    vary_n = [{"varied": "n", **cost(n, 1000, 5.0)} for n in (20, 50, 100, 200, 500, 1000)]
    vary_N = [{"varied": "N", **cost(200, N, 5.0)} for N in (500, 2000, 8000, 32000)]
    vary_S = [{"varied": "|S|", **cost(200, 1000, size)} for size in (2.0, 4.0, 6.0, 8.0)]
    return vary_n + vary_N + vary_S


def plot_costs(rows, path):
    """Draw the time of a gradient against n, N and the mean set size."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
    labels = {"n": "items n", "N": "samples N", "|S|": "mean set size"}
    for ax, (varied, label) in zip(axes, labels.items(), strict=True):
        chosen = [r for r in rows if r["varied"] == varied]
        x = [r["mean |S|" if varied == "|S|" else varied] for r in chosen]
        ax.plot(x, [r["milliseconds"] for r in chosen], "o-", color="#1f4e79")
        ax.set_yscale("log")
        if varied != "|S|":
            ax.set_xscale("log")
        ax.set_xlabel(label)
    axes[0].set_ylabel("one gradient, ms (one thread)")
    figure.savefig(path, metadata={"Date": None})


def main():
    """Run all measurements and write the results."""
    touch_everything()
    timed_fit(np.eye(3, dtype=int))
    result = {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    folder = data_folder()
    if folder is None:
        print(
            "no real data were found in ../shared/data or in the folder SEQUELA_DATA: fits are "
            "skipped"
        )
    else:
        result["fits"], result["peak memory, MB"], result["CV at n = 20, s"] = real_data(folder)
        table("learning, lambda = 0.01", result["fits"])
        print(f"\npeak memory of all fits: {result['peak memory, MB']:.0f} MB")
        print(
            f"5-fold cross-validation over 20 penalties, n = 20: {result['CV at n = 20, s']:.2f} s"
        )
    result["gradient"] = gradient_costs()
    table("one gradient, simulated data, one thread", result["gradient"])
    RESULTS.mkdir(exist_ok=True)
    plot_costs(result["gradient"], RESULTS / "gradient_cost.svg")
    (RESULTS / "learning.json").write_text(json.dumps(result, indent=1) + "\n")
    print("\nwritten: learning.json, gradient_cost.svg")


if __name__ == "__main__":
    main()
