"""Run fits for a profiler: ``profile_worker.py job.json``.

A fit is repeated for some seconds inside `measured_part`. Only the part of a profile inside this
function is used, so that imports and the loading of compiled code are not included.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sequela_worker import load_kernels

from sequela import SetChain


def measured_part(job, X):
    start = time.perf_counter()
    fits = 0
    while fits == 0 or time.perf_counter() - start < job["seconds"]:
        SetChain(job["penalty"], random_state=1, n_threads=job["threads"]).fit(X)
        fits += 1
    return fits


def fit(job, X):
    load_kernels()
    if not job.get("cprofile"):
        return {"fits": measured_part(job, X)}
    import cProfile
    import pstats

    profiler = cProfile.Profile()
    fits = profiler.runcall(measured_part, job, X)
    rows = [
        [f"{Path(where[0]).name}:{where[2]}", own]
        for where, (_, _, own, _, _) in pstats.Stats(profiler).stats.items()
    ]
    return {"fits": fits, "rows": sorted(rows, key=lambda row: -row[1])}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = json.loads(Path(sys.argv[1]).read_text())
    with np.load(asked["samples"], allow_pickle=False) as file:
        samples = file["X"]
    found = fit(asked, samples)
    (Path(asked["folder"]) / "result.json").write_text(json.dumps(found))
