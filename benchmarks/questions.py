"""Measure the speed of the functions of sequela.questions (``make benchmark``).

The times are written to results/questions.json.

The data are the glioblastoma samples with the 100 most frequent items; the model is learned from
them.
"""

from __future__ import annotations

import json
import os
import platform
import time
from datetime import date
from pathlib import Path

import numpy as np

from benchmarks.datasets import data_folder, glioblastoma
from benchmarks.engine import table

RESULTS = Path(__file__).parent / "results" / "questions.json"


def measured(work, repeats=3):
    """Return the shortest time of a call, and the result of the last call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - start)
    return min(times), found


def main():
    """Measure the time of every question, and write the times and the aims."""
    import sequela
    from sequela.likelihood.ways import is_exact

    folder = data_folder()
    if folder is None:
        raise SystemExit(
            "no real data were found in ../shared/data; set SEQUELA_DATA to their folder"
        )
    frame = glioblastoma(folder).iloc[:, :100]
    model = sequela.fit(frame, penalty=0.01, random_state=1)
    largest = frame.loc[frame.sum(axis=1).idxmax()].astype(bool)
    asked = {
        "a million sequences": (
            2.0, lambda: sequela.simulate(model, 1_000_000, random_state=1)),
        "times of all 378 samples, with quantiles": (
            5.0, lambda: sequela.pseudo_times(model, frame, random_state=1)),
        "times of all 378 samples, mean and sd": (
            None, lambda: sequela.pseudo_times(model, frame, quantiles=(), random_state=1)),
        "order of one pair, exact": (
            None, lambda: sequela.order_probability(model, "EGFR(A)", "EGFR", random_state=1)),
        "orders of 20 items": (
            None, lambda: sequela.order_matrix(model, frame.columns[:20], random_state=1)),
        "orders of 100 items": (None, lambda: sequela.order_matrix(model, random_state=1)),
        "frequencies of 100 items": (
            None, lambda: sequela.questions.item_frequencies(model, frame, random_state=1)),
        "goodness of fit": (
            None, lambda: sequela.questions.goodness_of_fit(model, frame, random_state=1)),
        "most likely orders of 78 items": (
            None, lambda: sequela.questions.likely_orders(model, largest, 3, random_state=1)),
        "arrivals of 78 items": (
            None, lambda: sequela.questions.sample_arrivals(model, largest, random_state=1)),
    }  # fmt: skip
    rows = []
    for name, (aim, work) in asked.items():
        seconds, found = measured(work)
        row = {"question": name, "seconds": seconds, "aim": aim or ""}
        if hasattr(found, "method") and hasattr(found.method, "to_numpy"):
            row["exact"] = float(is_exact(found.method.to_numpy().astype(str)).mean())
        rows.append(row)
    table("questions, n = 100, two cores", rows)
    result = {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "interactions": len(model.interactions()),
        "questions": rows,
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\nwritten: {RESULTS.name}")


if __name__ == "__main__":
    main()
