"""Measure the time of a fit to a panel study: 15,000 samples x 50 items, three panels.

Run with ``python -m benchmarks.panel_study``. Each panel is used for a third of the samples. The
panels cover 50, 35 and 25 items, and each panel covers all items of the smaller panels.

After the fit, ``certify`` checks drawn histories at the learned theta. For some samples with few
items, it compares values and gradients from drawn histories with exact sums over all missing cells.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

from sequela import Dataset, SetChain, evaluate, simulate

SAMPLES = 15_000
ITEMS = 50
COVERED = (50, 35, 25)
PENALTY = 0.001
# Number of samples for which draws are compared with exact sums, and the largest number of items
# that these samples have.
CERTIFIED = 40
MOST_PRESENT = 4


def true_theta(rng: np.random.Generator) -> np.ndarray:
    """Return a sparse theta with two effects per item and base rates from 0.37 to 0.012."""
    theta = np.zeros((ITEMS, ITEMS))
    np.fill_diagonal(theta, np.linspace(-1.0, -4.4, ITEMS))
    for _ in range(2 * ITEMS):
        i, j = rng.choice(ITEMS, 2, replace=False)
        theta[i, j] = rng.choice([-1.5, -1.0, 1.0, 1.5])
    return theta


def panel_study(samples: int) -> tuple[np.ndarray, Dataset, Dataset]:
    """Return theta, simulated samples, and these samples with the missing cells of the panels."""
    rng = np.random.default_rng(1)
    theta = true_theta(rng)
    data = simulate(theta, samples, random_state=2).to_dataset().without_times()
    order = rng.permutation(ITEMS)
    covered = np.zeros((len(COVERED), ITEMS), dtype=bool)
    for panel, count in enumerate(COVERED):
        covered[panel, order[:count]] = True
    return theta, data, data.with_missing(~covered[rng.integers(0, len(COVERED), samples)])


def certify(theta: np.ndarray, data: Dataset, seeds: int = 24) -> dict[str, object]:
    """Compare drawn histories with exact sums for samples of the panel of 35 items.

    Each seed is an independent estimate. Differences are given in standard errors of the mean.
    """
    known = ITEMS - data.missing.sum(axis=1)
    small = (known == COVERED[1]) & (data.values.sum(axis=1) <= MOST_PRESENT)
    some = data.select_samples(np.flatnonzero(small)[:CERTIFIED].tolist())
    exact = evaluate(theta, some, method="exact")
    drawn = [evaluate(theta, some, method="histories", random_state=s) for s in range(seeds)]
    slopes = np.array([one.gradient for one in drawn])
    error = slopes.std(axis=0, ddof=1) / np.sqrt(seeds)
    moving = error > 0
    z = (slopes.mean(axis=0) - exact.gradient)[moving] / error[moving]
    values = np.array([one.value for one in drawn])
    value_error = values.std(ddof=1) / np.sqrt(seeds)
    return {
        "samples": some.n_samples,
        "value_exact": round(exact.value, 6),
        "value_drawn": round(float(values.mean()), 6),
        "value_se": float(f"{value_error:.2g}"),
        "gradient_entries": int(np.count_nonzero(moving)),
        "gradient_rms_z": round(float(np.sqrt(np.mean(z**2))), 3),
        "gradient_max_z": round(float(np.abs(z).max()), 2),
        "gradient_max_difference": float(
            f"{np.abs(slopes.mean(axis=0) - exact.gradient).max():.2g}"
        ),
    }


def main(samples: int = SAMPLES) -> None:
    """Simulate data with missing cells, learn a model from them, and print the time of the fit."""
    theta, data, partly = panel_study(samples)
    sizes = data.values.sum(axis=1)
    print(partly)
    print(f"items per complete sample: mean {sizes.mean():.1f}, largest {sizes.max()}")
    # Compile first, so that the time does not include compilation.
    SetChain(penalty=0.05, max_iter=3, random_state=1).fit(partly.select_samples(range(200)))
    begin, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    chain = SetChain(penalty=PENALTY, random_state=1, n_threads=2).fit(partly)
    after = resource.getrusage(resource.RUSAGE_SELF)
    found = chain.model_.theta
    off = ~np.eye(ITEMS, dtype=bool)
    fit = {
        "seconds": round(time.perf_counter() - begin, 1),
        "cpu_seconds": round(after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime, 1),
        "load": round(os.getloadavg()[0], 1),
        "status": chain.status_.name,
        "kkt_residual": float(f"{chain.kkt_residual_:.3g}"),
        "kkt_floor": float(f"{chain.starts_[0].kkt_floor:.3g}"),
        "evaluations": chain.starts_[0].n_evaluations,
        "interactions": int(np.count_nonzero(found[off])),
        "correlation": round(float(np.corrcoef(found[off], theta[off])[0, 1]), 4),
    }
    print("fit", fit, flush=True)
    compared = certify(found, partly)
    print("certificate", compared, flush=True)
    if samples == SAMPLES:
        results = {"samples": samples, "covered": COVERED, "penalty": PENALTY, "fit": fit}
        place = Path(__file__).parent / "results" / "panel_study.json"
        place.write_text(json.dumps(results | {"certificate": compared}, indent=1) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
