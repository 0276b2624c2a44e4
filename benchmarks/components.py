"""Large sets by components, side by side with a revision before them, in one run.

``python -m benchmarks.components BASE`` checks BASE out into a temporary folder and measures each
case in processes of both versions, one after the other: the fit of the glioblastoma data with 410
items, the pan-cancer table, and the values of the largest sets at the theta that was learned. The
data are read from the folder that `benchmarks.datasets` finds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.datasets import data_folder

ROOT = Path(__file__).resolve().parents[1]

SCRIPT = """
import json, sys, time, warnings
from pathlib import Path
import numpy as np
import sequela

warnings.simplefilter("ignore")
case, data, work = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
gbm = data / "gbm"
if case == "pancancer fit":
    samples = sequela.read_table(data / "pancancer" / "mutations.tsv").data
else:
    samples = sequela.read_cbioportal(
        gbm / "mutations.txt", gbm / "cna.txt", merge=gbm / "merge.json", at_least=4
    ).data


def fit():
    learner = sequela.SetChain(0.01, random_state=1, n_threads=2, progress=False).fit(samples)
    if not (work / "theta.npy").exists():
        np.save(work / "theta.npy", learner.theta_)
    return learner.objective_, learner.objective_se_


def values():
    large = samples.select_samples(samples.set_sizes >= 20)
    found = sequela.evaluate(
        np.load(work / "theta.npy"), large, gradient=False, random_state=1, n_threads=2
    )
    return found.value, found.value_se


tiny = sequela.simulate(np.diag([-1.0] * 3), 30, random_state=1).to_dataset().without_times()
sequela.SetChain(0.01, progress=False).fit(tiny)
what = values if case == "values of large sets" else fit
if case == "values of large sets":
    what()  # compiled code is loaded
began = time.perf_counter(), time.process_time()
value, error = what()
wall, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
print(json.dumps({"wall": wall, "cpu": cpu, "value": float(value), "se": float(error)}))
"""

CASES = ("glioblastoma fit", "values of large sets", "pancancer fit")


def measure(source: Path, case: str, data: Path, work: Path) -> dict[str, float]:
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", SCRIPT, case, str(data), str(work)],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(source / "src")},
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    base = sys.argv[1]
    data = data_folder()
    if data is None:
        sys.exit("the data are not there; see benchmarks/datasets.py")
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "base"
        work = Path(folder) / "work"
        work.mkdir()
        for command in (
            ["clone", "-q", str(ROOT), str(before)],
            ["-C", str(before), "checkout", "-q", base],
        ):
            subprocess.run(["git", *command], check=True)  # noqa: S603, S607
        for case in CASES:
            old, new = (measure(source, case, data, work) for source in (before, ROOT))
            results[case] = {"base": old, "now": new, "ratio": old["wall"] / new["wall"]}
            print(
                f"{case:22} {old['wall']:8.2f} s {new['wall']:8.2f} s  ratio "
                f"{old['wall'] / new['wall']:6.1f}   {old['value']:.6f} +- {old['se']:.2g}, "
                f"now {new['value']:.6f} +- {new['se']:.2g}",
                flush=True,
            )
    target = ROOT / "benchmarks" / "results" / "components.json"
    target.write_text(json.dumps({"base": base, "cases": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
