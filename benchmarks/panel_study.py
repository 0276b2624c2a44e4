"""Measure the time of a fit to a panel study: 15,000 samples x 50 items, three panels.

Run with ``python -m benchmarks.panel_study``. The panels cover 50, 42 and 34 items, as panels of a
laboratory grow over the years; 31% of the cells of the smallest one are missing.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

from sequela import SetChain, simulate

SAMPLES = 15_000
ITEMS = 50
COVERED = (50, 42, 34)


def true_theta(rng: np.random.Generator) -> np.ndarray:
    """Return a sparse theta: items with frequencies of 2% to 40%, two effects per item."""
    theta = np.zeros((ITEMS, ITEMS))
    np.fill_diagonal(theta, np.linspace(-0.7, -4.2, ITEMS))
    for _ in range(2 * ITEMS):
        i, j = rng.choice(ITEMS, 2, replace=False)
        theta[i, j] = rng.choice([-1.5, 1.0, 1.5, 2.0])
    return theta


def main(samples: int = SAMPLES) -> None:
    """Simulate data, hide the items that panels do not cover, learn, and report the time."""
    rng = np.random.default_rng(1)
    theta = true_theta(rng)
    data = simulate(theta, samples, random_state=2).to_dataset().without_times()
    order = rng.permutation(ITEMS)
    covered = np.zeros((3, ITEMS), dtype=bool)
    for panel, count in enumerate(COVERED):
        covered[panel, order[:count]] = True
    partly = data.with_missing(~covered[rng.integers(0, 3, samples)])
    print(partly)
    # Compile first, so that the time does not include compilation.
    SetChain(penalty=0.05, max_iter=3, random_state=1).fit(partly.select_samples(range(200)))
    results = {}
    for name, table in (("panels", partly), ("complete", data)):
        begin, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        chain = SetChain(penalty=0.002, random_state=1, n_threads=2).fit(table)
        after = resource.getrusage(resource.RUSAGE_SELF)
        found = chain.model_.theta
        off = ~np.eye(ITEMS, dtype=bool)
        results[name] = {
            "seconds": round(time.perf_counter() - begin, 1),
            "cpu_seconds": round(after.ru_utime - used.ru_utime, 1),
            "status": str(chain.status_),
            "kkt_residual": chain.kkt_residual_,
            "kkt_floor": chain.starts_[0].kkt_floor,
            "evaluations": chain.starts_[0].n_evaluations,
            "interactions": int(np.count_nonzero(found[off])),
            "correlation": round(float(np.corrcoef(found[off], theta[off])[0, 1]), 4),
        }
        print(name, results[name], flush=True)
    place = Path(__file__).parent / "results" / "panel_study.json"
    place.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
