"""Measure how often `subtype_test` notices two subtypes, and its false alarms.

The data sets are simulated as in `verification.misspecification`, either from two subtypes with the
same number of samples, or from one model ("right model"). There are 500 samples (penalty 0.01) or
2,000 (penalty 0.003).

    python -m verification.subtypes 12 docs/subtypes.csv 60000

writes one row per data set as soon as the data set is done, and prints the table of
docs/when_it_fits.md. The number before the file name is the number of data sets per row. The number
after it is the seed of the first data set.
"""

from __future__ import annotations

import csv
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from verification import misspecification
from verification.misspecification import lines, scenario

from sequela.questions import subtype_test

SIMULATIONS = 39
SIZES = {500: 0.01, 2000: 0.003}
SCENARIOS = ("two subtypes", "right model")


def one(name: str, size: int, seed: int) -> dict[str, Any]:
    """Test one data set, and return its row of the table."""
    misspecification.SAMPLES = size
    values, _ = scenario(name, seed)
    test = subtype_test(
        values, penalty=SIZES[size], simulations=SIMULATIONS, random_state=seed, n_threads=1
    )
    belongs = test.membership.to_numpy()[:, 0] > 0.5
    half = np.arange(size) < size // 2
    agree = float(np.mean(belongs == half))
    return {
        "scenario": name, "samples": size, "seed": seed, "p": round(test.p, 4),
        "gain": round(test.gain, 2), "median": round(float(np.median(test.simulated)), 2),
        "share": round(test.shares[0], 3), "agree": round(max(agree, 1.0 - agree), 3),
    }  # fmt: skip


def summarise(rows: list[dict[str, Any]]) -> str:
    """Return the table of docs/when_it_fits.md as text."""
    table = [["data", "samples", "data sets", "p at most 0.05", "p at most 0.2", "median of p",
              "samples assigned to the right subtype (mean)"]]  # fmt: skip
    for size in SIZES:
        for name in SCENARIOS:
            own = [row for row in rows if row["scenario"] == name and int(row["samples"]) == size]
            if not own:
                continue
            p = np.array([float(row["p"]) for row in own])
            agree = np.mean([float(row["agree"]) for row in own])
            table.append([
                name, f"{size:,}", str(len(own)), str(int((p <= 0.05).sum())),
                str(int((p <= 0.2).sum())), f"{np.median(p):.2f}",
                f"{agree:.0%}" if name == "two subtypes" else "-",
            ])  # fmt: skip
    return "\n".join(lines(table))


def main(repeats: int, path: Path, first: int) -> None:
    """Run the data sets that are not in the file yet, and print the table."""
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    done = {(row["scenario"], int(row["samples"]), int(row["seed"])) for row in rows}
    for seed in range(first, first + repeats):
        for size in SIZES:
            for name in SCENARIOS:
                if (name, size, seed) in done:
                    continue
                rows.append(one(name, size, seed))
                with path.open("w", encoding="utf-8", newline="") as file:
                    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(rows)
    print(summarise(rows))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
