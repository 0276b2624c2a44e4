"""Compare the CPU times of a fit and of the check of its orders, in the same process.

``python -m benchmarks.order_check`` learns three models: from the glioblastoma samples with 20 and
with 50 items, and from the built-in samples. It uses the penalty and the five starts of ``sequela
fit``. Then it checks the orders of each model with the default options. The fit and the check use
one thread. Times depend on the machine and on its other work. So compare the ratio of the two times
between runs, and not the times themselves.
"""

from __future__ import annotations

import json
import platform
import resource
import warnings
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.datasets import data_folder, glioblastoma
from sequela import Dataset, example_samples
from sequela.learning.learner import Learner
from sequela.questions import order_ranges

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS = Path(__file__).parent / "results" / "order_check.json"
STARTS = 5
PENALTY = 0.01


def cpu_seconds() -> float:
    """Return the CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(data: Dataset) -> dict[str, Any]:
    """Return the CPU seconds of a fit and of its check, and the checked orders."""
    begun = cpu_seconds()
    learner = Learner(PENALTY, n_starts=STARTS, random_state=1, n_threads=1, progress=False)
    learner.fit(data)
    learned = cpu_seconds()
    check = order_ranges(learner, data, tol=learner.tol, random_state=1, n_threads=1)
    checked = cpu_seconds()
    columns = ["first", "second", "probability", "low", "high", "evidence", "checked"]
    return {
        "samples": data.n_samples,
        "items": data.n_items,
        "fit_cpu_seconds": round(learned - begun, 2),
        "check_cpu_seconds": round(checked - learned, 2),
        "ratio": round((checked - learned) / (learned - begun), 2),
        "pairs": len(check.table),
        "pairs_checked": int(check.table["checked"].sum()),
        "evaluations": check.evaluations,
        "orders": check.table[columns].round(3).to_dict("records"),
    }


def compile_first() -> None:
    """Use all kernels once, so that their compilation is not measured."""
    rng = np.random.default_rng(1)
    X = rng.random((40, 16)) < 0.15
    X[:2] = rng.random((2, 16)) < 0.9
    measure(Dataset(X.astype(int)))


def main() -> None:
    """Measure the times, print a table, and write the results."""
    warnings.simplefilter("ignore")  # ignore warnings: several optima are expected here
    cohorts: dict[str, Callable[[], Dataset]] = {"built-in samples": example_samples}
    folder = data_folder()
    if folder is not None:
        table = Dataset(glioblastoma(folder))
        for n in (20, 50):
            cohorts[f"glioblastoma, {n} items"] = lambda n=n: table.most_frequent(n)
    compile_first()
    found = {}
    print(f"{'data':26}{'fit, s':>9}{'check, s':>10}{'ratio':>7}{'pairs':>7}")
    for name, read in cohorts.items():
        row = found[name] = measure(read())
        print(
            f"{name:26}{row['fit_cpu_seconds']:9.2f}{row['check_cpu_seconds']:10.2f}"
            f"{row['ratio']:7.2f}{row['pairs_checked']:7d}",
            flush=True,
        )
    text = json.dumps(
        {"date": str(date.today()), "python": platform.python_version(), "results": found},
        indent=1,
    )
    RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
