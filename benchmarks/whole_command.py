"""Measure the whole command ``sequela fit``, with all tables and figures, on a large cohort.

``python -m benchmarks.whole_command`` simulates 15,800 samples of 47 items from a sparse theta and
runs the same steps as ``sequela fit``, on two threads. The result has the wall and CPU time of
every step. With ``--base REVISION``, the times of the tables are also measured with an older
revision. This comparison uses the learned model and only every N-th sample (``--every N``), because
old revisions need more than ten minutes for all samples.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results" / "whole_command.json"
SAMPLES = 15_800
ITEMS = 47
SEED = 14
# Some samples are observed much later than the others, to imitate hypermutated samples.
LATE_SAMPLES = 30
LATE_RATE = 0.15

FIT = """
import json, os, sys, time, warnings
from sequela.report import Execution, FitRunOptions, OutputOptions, run_fit

table, folder, penalty = sys.argv[1], sys.argv[2], float(sys.argv[3])
marks = []

def mark(what):
    marks.append((what.split(" (")[0], time.perf_counter(), time.process_time()))

for run, source in enumerate((sys.argv[4], table)):  # a small table first: kernels are compiled
    marks.clear()
    mark("reading and learning")
    report = run_fit(
        source, f"{folder}{run}", FitRunOptions(penalty=penalty, seed=1), output=OutputOptions(),
        execution=Execution(threads=2, progress=False, announce=mark),
    )
    mark("end")
steps = {
    name: {"wall": later[1] - wall, "cpu": later[2] - cpu}
    for (name, wall, cpu), later in zip(marks, marks[1:])
}
print(json.dumps({"steps": steps, "notices": report.notices, "result": report.to_json()}))
"""

TABLES = """
import json, sys, time
import sequela
from sequela.likelihood import sample_posteriors
from sequela.questions import order_matrix, pseudo_times

data = sequela.read_table(sys.argv[1]).data
model = sequela.Model.load(sys.argv[2])
keep = [row % int(sys.argv[3]) == 0 for row in range(data.n_samples)]
some = data.select_samples(keep)
few = data.select_samples([row < 40 for row in range(data.n_samples)])
top = data.most_frequent(20).items
work = {
    "orders": lambda part: order_matrix(model, top, random_state=1, n_threads=2),
    "pseudo-times": lambda part: pseudo_times(model, part, random_state=1, n_threads=2),
    "arrival times": lambda part: sample_posteriors(model, part, random_state=1, n_threads=2),
}
found = {}
for name, ask in work.items():
    ask(few)
    wall, cpu = time.perf_counter(), time.process_time()
    ask(some)
    found[name] = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
print(json.dumps({"samples": some.n_samples, "tables": found}))
"""


def panel_theta(interactions: int = 50, seed: int = 1) -> np.ndarray:
    """Return a sparse theta, similar to a learned theta: frequent items interact.

    The logarithms of base rates are drawn from a normal distribution. An interaction is positive
    with probability 0.7.
    """
    rng = np.random.default_rng(seed)
    base = np.sort(rng.normal(-2.8, 1.0, ITEMS))[::-1]
    theta = np.diag(base)
    weights = np.exp(0.7 * base)
    weights /= weights.sum()
    while np.count_nonzero(theta) - ITEMS < interactions:
        i, j = rng.choice(ITEMS, 2, replace=False, p=weights)
        promotes = rng.random() < 0.7
        theta[i, j] = abs(rng.normal(1.2, 0.4)) * (1.0 if promotes else -1.0)
    return theta


def panel_cohort(samples: int = SAMPLES) -> pd.DataFrame:
    """Return a table of samples drawn with `panel_theta`; a few of them are observed late."""
    import sequela

    labels = [f"item {k + 1}" for k in range(ITEMS)]
    model = sequela.Model(panel_theta(), labels)
    late = sequela.Model(panel_theta(), labels, observation=sequela.Exponential(LATE_RATE))
    late_samples = LATE_SAMPLES * samples // SAMPLES
    parts = [
        sequela.simulate(model, samples - late_samples, random_state=SEED),
        sequela.simulate(late, late_samples, random_state=SEED),
    ]
    values = np.concatenate([part.to_dataset().values for part in parts]).astype(int)
    index = pd.Index([f"sample {row + 1}" for row in range(samples)], name="sample")
    return pd.DataFrame(values, index=index, columns=labels)


def run(source: Path, script: str, *arguments: object) -> dict[str, Any]:
    """Run a script that imports sequela from the folder `source`; return what it prints."""
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", script, *map(str, arguments)],
        stdout=subprocess.PIPE, text=True, check=True, cwd=tempfile.gettempdir(),
        env={**os.environ, "PYTHONPATH": str(source / "src")},
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(base: str, table: Path, model: Path, every: int, folder: Path) -> dict[str, Any]:
    """Measure the time of the tables with an older revision and with this one."""
    before = folder / "base"
    for command in (
        ["clone", "-q", str(ROOT), str(before)],
        ["-C", str(before), "checkout", "-q", base],
    ):
        subprocess.run(["git", *command], check=True)  # noqa: S603, S607
    old, new = (run(source, TABLES, table, model, every) for source in (before, ROOT))
    tables = {
        name: {
            "base": old["tables"][name],
            "now": now,
            "ratio": old["tables"][name]["cpu"] / now["cpu"],
        }
        for name, now in new["tables"].items()
    }
    return {"base": base, "samples": new["samples"], "tables": tables}


def main() -> None:
    """Run the measurements, and print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--base", help="older revision, to compare the times of the tables")
    parser.add_argument(
        "--every",
        type=int,
        default=20,
        help="use every N-th sample in this comparison (default: 20)",
    )
    parser.add_argument("--penalty", type=float, default=0.01)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    given = parser.parse_args()
    results: dict[str, Any] = {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "samples": given.samples,
        "items": ITEMS,
        "penalty": given.penalty,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cohort = panel_cohort(given.samples)
        cohort.to_csv(folder / "cohort.csv")
        cohort.sort_values(list(cohort)).iloc[:: max(1, given.samples // 200)].to_csv(
            folder / "small.csv"
        )
        sizes = cohort.to_numpy().sum(axis=1)
        results["set_sizes"] = {
            "mean": float(sizes.mean()),
            "largest": int(sizes.max()),
            "at least 14": int((sizes >= 14).sum()),
            "at least 22": int((sizes >= 22).sum()),
            "distinct": len(cohort.drop_duplicates()),
        }
        print(results["set_sizes"], flush=True)
        fitted = run(
            ROOT, FIT, folder / "cohort.csv", folder / "fit", given.penalty, folder / "small.csv"
        )
        steps = fitted["steps"]
        results["steps"] = steps
        results["total"] = {
            kind: sum(step[kind] for step in steps.values()) for kind in ("wall", "cpu")
        }
        results["interactions"] = fitted["result"]["interactions"]
        results["notices"] = fitted["notices"]
        for step, cost in {**steps, "all": results["total"]}.items():
            print(f"{step:24} wall {cost['wall']:8.1f} s   CPU {cost['cpu']:8.1f} s", flush=True)
        if given.base:
            model = folder / "fit1" / "model.npz"
            found = compare(given.base, folder / "cohort.csv", model, given.every, folder)
            results["comparison"] = found
            for table, cost in found["tables"].items():
                print(
                    f"{table:24} CPU {cost['base']['cpu']:8.2f} s, now {cost['now']['cpu']:8.2f} s"
                    f"   ratio {cost['ratio']:6.1f}   ({found['samples']} samples)",
                    flush=True,
                )
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
