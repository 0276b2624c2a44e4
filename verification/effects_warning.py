"""Measure the warning that orders depend on effects of items on the observation.

The data sets are simulated as in `verification.misspecification`. For each, kinds of observation
are compared by held-out likelihood, and a model with the chosen kind is learned. If effects on the
observation were not chosen, `check_effects` finds the orders that would be opposite with effects,
and says whether such effects are plausible (the "warning"). The script counts

- the clear pairs, and how many of them have the right order in the model;
- the clear pairs whose order is not called opposite by a warning, and how many of these have the
  right order;
- the orders that `sequela fit --observation any` reports as "the data can tell", before and after
  the check, and how many of them are right.

    python -m verification.effects_warning 40 docs/effects_warning.csv 30000

writes one row per data set as soon as the data set is done, and prints the tables of
docs/when_it_fits.md. The number before the file name is the number of data sets per assumption. The
number after it is the seed of the first data set.
"""

from __future__ import annotations

import csv
import sys
import warnings
from pathlib import Path
from typing import Any

from verification.misspecification import (
    FOLDS,
    KINDS,
    PENALTY,
    arrivals_before,
    clear_pairs,
    counted,
    lines,
    scenario,
    told,
)

import sequela
from sequela import Exponential, ObservationEffects, order_matrix
from sequela.learning import compare_observations
from sequela.questions import check_effects, check_fit, order_ranges

SCENARIOS = ("right model", "observation effects", "two subtypes")


def one(name: str, seed: int) -> dict[str, Any]:
    """Simulate data, learn a model, check its orders, and return counts: a row of the table."""
    values, orders = scenario(name, seed)
    before = arrivals_before(orders)
    how: dict[str, Any] = {"random_state": seed, "n_threads": 1}
    compared = compare_observations(values, KINDS, penalty=PENALTY, folds=FOLDS, **how)
    chosen = compared.observation
    row: dict[str, Any] = {
        "scenario": name, "seed": seed, "chosen": chosen.kind, "finding": "", "behind": "",
        "plausible": "", "pairs": 0, "right": 0, "kept_pairs": 0, "kept_right": 0,
        "reported": 0, "reported_right": 0, "still": 0, "still_right": 0,
    }  # fmt: skip
    if isinstance(chosen, ObservationEffects):
        return row
    model = sequela.fit(values, penalty=PENALTY, observation=chosen, **how)
    ranges = None
    if chosen.kind == Exponential.kind:
        ranges = order_ranges(model, values, **how)
        model = ranges.model
    check = check_fit(model, values, **how)
    effects = check_effects(model, values, compared, **how)
    p = order_matrix(model, random_state=1, n_threads=1, draws=20_000).probability.to_numpy()
    pairs = clear_pairs(before)
    found = [bool(p[i, j] > 0.5) for i, j in pairs]
    kept = [
        right
        for right, (i, j) in zip(found, pairs, strict=True)
        if not (effects.plausible and right == effects.opposite(str(i), str(j)))
    ]
    row |= {
        "finding": int(not check.fits), "behind": round(effects.behind, 2),
        "plausible": int(effects.plausible), "pairs": len(pairs), "right": sum(found),
        "kept_pairs": len(kept), "kept_right": sum(kept),
    }  # fmt: skip
    if ranges is not None:
        trusted = ranges.with_fit(check)
        row["reported"], row["reported_right"] = told(trusted, before)
        row["still"], row["still_right"] = told(trusted.with_effects(effects), before)
    return row


def summarise(rows: list[dict[str, Any]]) -> str:
    """Return the tables of docs/when_it_fits.md as text."""
    first = [["data", "data sets", "effects chosen", "another kind or a finding",
              "of the others: warned", "not noticed in any way"]]  # fmt: skip
    second = [["data", "clear pairs", "of them right", "opposite", "of them right",
               "not opposite", "of them right", "reported without the check", "of them right",
               "still reported", "of them right"]]  # fmt: skip
    for row in rows:
        row["turned"] = int(row["pairs"]) - int(row["kept_pairs"])
        row["turned_right"] = int(row["right"]) - int(row["kept_right"])
    for name in SCENARIOS:
        own = [row for row in rows if row["scenario"] == name]
        if not own:
            continue
        rest = [row for row in own if row["chosen"] != ObservationEffects.kind]
        left = [
            row for row in rest if row["chosen"] == Exponential.kind and not int(row["finding"])
        ]
        warned = sum(int(row["plausible"]) for row in left)
        counts = (
            len(own), len(own) - len(rest), len(rest) - len(left), f"{warned} of {len(left)}",
            len(left) - warned,
        )  # fmt: skip
        first.append([name, *map(str, counts)])
        second.append([
            name, *counted(left, "pairs", "right"), *counted(left, "turned", "turned_right"),
            *counted(left, "kept_pairs", "kept_right"),
            *counted(left, "reported", "reported_right"), *counted(left, "still", "still_right"),
        ])  # fmt: skip
    return "\n\n".join("\n".join(lines(table)) for table in (first, second))


def main(repeats: int, path: Path, first: int) -> None:
    """Run the data sets that are not in the file yet, and print the tables."""
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    done = {(row["scenario"], int(row["seed"])) for row in rows}
    for seed in range(first, first + repeats):
        for name in SCENARIOS:
            if (name, seed) in done:
                continue
            rows.append(one(name, seed))
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
    print(summarise(rows))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
