"""Compare this version, which evaluates large sets by components, with an older revision.

``python -m benchmarks.components BASE`` checks out the older revision BASE into a temporary folder,
and measures these cases with both versions:

- fits of the glioblastoma data with 410 items, of the pan-cancer table and of a simulated panel
  study;
- the values of the largest glioblastoma sets at the theta that BASE learned.

A simulated table of 1,295 items is fitted only with this version, because an older revision would
sample nearly all of its sets. The simulated cohorts are those of `benchmarks.cohorts`. The other
data are read from the folder that `benchmarks.datasets` finds.

``python -m benchmarks.components BASE FOLDER`` keeps the measurements in FOLDER and does not repeat
them. So an interrupted run can be continued.

The main times are CPU times of all threads, on which other work on the machine has little
influence. Wall times are recorded as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cohorts import panel_cohort, wide_cohort
from benchmarks.datasets import data_folder

ROOT = Path(__file__).resolve().parents[1]

SCRIPT = """
import json, resource, sys, time, warnings
from pathlib import Path
import numpy as np
import sequela

warnings.simplefilter("ignore")
case, data, work = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
gbm = data / "gbm"
if case in ("panel", "wide"):
    samples = sequela.Dataset.coerce(np.load(work / (case + ".npy")))
elif case == "pancancer":
    samples = sequela.read_table(data / "pancancer" / "mutations.tsv").data
else:
    samples = sequela.read_cbioportal(
        gbm / "mutations.txt", gbm / "cna.txt", merge=gbm / "merge.json", at_least=4
    ).data


class Log:
    first = None

    def write(self, text):
        self.first = self.first or time.perf_counter()

    def flush(self):
        pass


def fit():
    # In 562 samples, thousands of the 1.7 million pairs of items exceed the penalty 0.01 by chance.
    penalty = 0.02 if case == "wide" else 0.01
    learner = sequela.SetChain(penalty, random_state=1, n_threads=2, progress="lines").fit(samples)
    target = work / (case + "_theta.npy")
    if not target.exists():
        np.save(target, learner.theta_)
    return {
        "value": learner.objective_,
        "se": learner.objective_se_,
        "residual": learner.kkt_residual_,
        "interactions": int(np.count_nonzero(learner.theta_) - samples.n_items),
        "evaluations": learner.n_evaluations_,
    }


def values():
    large = samples.select_samples(samples.set_sizes >= 20)
    found = sequela.evaluate(
        np.load(work / "glioblastoma_theta.npy"), large, gradient=False, random_state=1,
        n_threads=2,
    )
    return {"value": found.value, "se": found.value_se, "sets": large.n_samples}


what = values if case == "values" else fit
# Load compiled code before the measurement.
if case == "values":
    what()
else:
    tiny = sequela.simulate(np.diag([-1.0] * 3), 30, random_state=1).to_dataset().without_times()
    sequela.SetChain(0.01, progress=False).fit(tiny)
shown, sys.stderr = sys.stderr, Log()
began = time.perf_counter(), time.process_time()
found = what()
found["wall"], found["cpu"] = time.perf_counter() - began[0], time.process_time() - began[1]
found["first_line"] = None if sys.stderr.first is None else sys.stderr.first - began[0]
found["memory_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
sys.stderr = shown
print(json.dumps(found))
"""

CASES = {
    "glioblastoma": "glioblastoma, 378 x 410, fit",
    "values": "its sets of 20 and more items, values",
    "pancancer": "pan-cancer, 8,198 x 201, fit",
    "panel": "simulated panel study, 15,800 x 47, fit",
    "wide": "simulated exomes, 562 x 1,295, fit",
}


def measure(source: Path, case: str, data: Path, work: Path) -> dict[str, Any]:
    kept = work / f"{case}_{source.name if source == work.parent / 'base' else 'now'}.json"
    if kept.exists():
        known: dict[str, Any] = json.loads(kept.read_text())
        return known
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", SCRIPT, case, str(data), str(work)],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(source / "src")},
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{case} at {source}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    kept.write_text(json.dumps(found))
    return found


def prepare(base: str, folder: Path) -> tuple[Path, Path]:
    """Check out the base and write the simulated cohorts; return both folders."""
    before, work = folder / "base", folder / "work"
    if work.exists():
        return before, work
    for command in (
        ["clone", "-q", str(ROOT), str(before)],
        ["-C", str(before), "checkout", "-q", base],
    ):
        subprocess.run(["git", *command], check=True)  # noqa: S603, S607
    work.mkdir()
    for name, cohort in (("panel", panel_cohort), ("wide", wide_cohort)):
        np.save(work / f"{name}.npy", cohort().to_frame().to_numpy().astype(np.uint8))
    return before, work


def line(case: str, old: dict[str, Any] | None, new: dict[str, Any]) -> str:
    """Return the line that is printed for a case."""
    now = f"{new['cpu']:8.2f} s, {new['value']:.6f} +- {new['se']:.2g}"
    if old is None:
        return f"{CASES[case]:42} {now}, {new['wall']:.1f} s wall, {new['memory_gb']:.2f} GB"
    before = f"{old['cpu']:8.2f} s, {old['value']:.6f} +- {old['se']:.2g}"
    return f"{CASES[case]:42} {before}; now {now}; ratio {old['cpu'] / new['cpu']:.1f}"


def main() -> None:
    base = sys.argv[1]
    data = data_folder()
    if data is None:
        sys.exit("the real data were not found; set SEQUELA_DATA to their folder")
    with tempfile.TemporaryDirectory() as temporary:
        before, work = prepare(base, Path(sys.argv[2] if len(sys.argv) > 2 else temporary))
        old = {}
        for case in CASES:
            if case != "wide":
                old[case] = measure(before, case, data, work)
                print(f"{base}: {case}, {old[case]['cpu']:.1f} s", flush=True)
        new = {}
        for case in CASES:
            new[case] = measure(ROOT, case, data, work)
            print(line(case, old.get(case), new[case]), flush=True)
    cases = {
        case: {
            "what": CASES[case],
            "base": old.get(case),
            "now": new[case],
            "ratio": old[case]["cpu"] / new[case]["cpu"] if case in old else None,
        }
        for case in CASES
    }
    target = ROOT / "benchmarks" / "results" / "components.json"
    target.write_text(json.dumps({"base": base, "cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()
