"""Measure what happens if an assumption of the model is wrong.

Data are simulated from random models, with one wrong assumption at a time. The script learns a
model with exponential times and checks its fit. Then it compares kinds of observation by held-out
likelihood, and learns a model with the chosen kind. It counts how many orders are right:

- among the clear pairs, for each of the two models. A pair is clear if at least 75% of the samples
  with both items have the same order;
- among the orders that the data can tell according to `order_ranges` ("told" in the file);
- among the orders that `sequela fit` reports by default ("trusted" in the file). These are the
  "told" orders of fits for which the check of the fit has no finding (`OrderRanges.with_fit`).

An order is right if more than half of the samples with both items have it. If a kind other than
exponential times is chosen, `sequela fit --observation any` reports no order.

A data set counts as "noticed" if the check of the fit has a finding, or if a kind of observation
other than exponential times is chosen.

    python -m verification.misspecification 6 docs/misspecification.csv 100

This command writes one row per data set as soon as the data set is done. At the end it prints the
tables of docs/when_it_fits.md. The number before the file name is the number of data sets per
assumption. The number after it, 0 by default, is the seed of the first data set.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import sequela
from sequela import Exponential, Gamma, HeavyTailed, ObservationEffects, order_matrix
from sequela.learning import compare_observations, fit_observation_effects
from sequela.questions import Verdict, check_fit, order_ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.questions import OrderRanges

ITEMS, SAMPLES, PENALTY, FOLDS = 7, 500, 0.01, 5
KINDS = (Exponential(), Gamma(2.0), Gamma(5.0), Gamma(30.0), HeavyTailed(2.0), "effects")
LEAST_TOGETHER = 20
CLEAR = 0.75

Orders = list[list[int]]
Draw = Callable[[np.random.Generator], float]


def random_theta(rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a random theta with some strong interactions, most of them positive."""
    theta = np.diag(rng.uniform(-2.0, -0.3, ITEMS))
    there = (rng.random((ITEMS, ITEMS)) < 0.2) & ~np.eye(ITEMS, dtype=bool)
    count = int(there.sum())
    theta[there] = rng.choice([-1.0, 1.0], count, p=[0.3, 0.7]) * rng.uniform(0.8, 2.2, count)
    return theta


def draw(
    theta: NDArray[np.float64],
    size: int,
    rng: np.random.Generator,
    end: Draw | None,
    omega: NDArray[np.float64] | None = None,
) -> Orders:
    """Simulate samples item by item, and return the order of the items of each.

    `end` draws the observation time of a sample. If it is None, a sample is observed at the rate
    exp(sum of `omega` over its items).
    """
    base = np.diagonal(theta)
    effects = theta - np.diag(base)
    drawn = []
    for _ in range(size):
        last = np.inf if end is None else end(rng)
        time, order, present = 0.0, [], np.zeros(ITEMS, dtype=bool)
        while not present.all() or omega is not None:
            rates = np.where(present, 0.0, np.exp(base + present @ effects))
            stop = 0.0 if omega is None else float(np.exp(omega[present].sum()))
            total = float(rates.sum()) + stop
            time += rng.exponential(1.0 / total)
            if time > last or rng.random() < stop / total:
                break
            order.append(int(rng.choice(ITEMS, p=rates / rates.sum())))
            present[order[-1]] = True
        drawn.append(order)
    return drawn


def table_of(orders: Orders) -> NDArray[np.bool_]:
    """Return the sets of the orders as rows of a table."""
    values = np.zeros((len(orders), ITEMS), dtype=bool)
    for row, order in zip(values, orders, strict=True):
        row[order] = True
    return values


def scenario(name: str, seed: int) -> tuple[NDArray[np.bool_], Orders]:
    """Return the observed table, and the true orders of the items."""
    rng = np.random.default_rng([seed, 16])
    theta = random_theta(rng)

    def exponential(r: np.random.Generator) -> float:
        return float(r.exponential())

    ends: dict[str, Draw] = {
        "fixed time": lambda _: 1.0,
        "gamma times, shape 2": lambda r: float(r.gamma(2.0, 0.5)),
        "gamma times, shape 5": lambda r: float(r.gamma(5.0, 0.2)),
        "6% hypermutators": lambda r: float(r.exponential() * (10.0 if r.random() < 0.06 else 1.0)),
    }
    if name == "observation effects":
        orders = draw(theta, SAMPLES, rng, None, rng.uniform(-1.5, 1.5, ITEMS))
    elif name == "two subtypes":
        other = random_theta(rng)
        orders = draw(theta, SAMPLES // 2, rng, exponential)
        orders += draw(other, SAMPLES - SAMPLES // 2, rng, exponential)
    else:
        orders = draw(theta, SAMPLES, rng, ends.get(name, exponential))
    values = table_of(orders)
    if name == "10% dropout":
        values &= rng.random(values.shape) >= 0.1
    if name == "1% false positives":
        values |= rng.random(values.shape) < 0.01
    return values, orders


SCENARIOS = (
    "right model", "observation effects", "fixed time", "gamma times, shape 2",
    "gamma times, shape 5", "6% hypermutators", "10% dropout", "1% false positives",
    "two subtypes",
)  # fmt: skip


def arrivals_before(orders: Orders) -> NDArray[np.float64]:
    """Return the number of samples in which one item (row) came before another item (column)."""
    before = np.zeros((ITEMS, ITEMS))
    for order in orders:
        for at, i in enumerate(order):
            before[i, order[at + 1 :]] += 1
    return before


def clear_pairs(before: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return the pairs (first, second) whose true order is clear."""
    together = before + before.T
    found = (together >= LEAST_TOGETHER) & (before >= CLEAR * np.maximum(together, 1.0))
    return [(int(i), int(j)) for i, j in np.argwhere(found)]


def right(model: sequela.Model, pairs: list[tuple[int, int]]) -> int:
    """Return the number of pairs for which a model has the right order."""
    p = order_matrix(model, random_state=1, n_threads=1, draws=20_000).probability.to_numpy()
    return int(sum(p[i, j] > 0.5 for i, j in pairs))


def told(ranges: OrderRanges, before: NDArray[np.float64]) -> tuple[int, int]:
    """Return the number of orders that the data can tell, and how many of them are right."""
    rows = ranges.table[ranges.table["verdict"] == Verdict.CAN_TELL]
    pairs = [(int(i), int(j)) for i, j in zip(rows["first"], rows["second"], strict=True)]
    return len(pairs), sum(bool(before[i, j] > before[j, i]) for i, j in pairs)


def one(name: str, seed: int) -> dict[str, Any]:
    """Learn from one data set, and return its row of the table."""
    values, orders = scenario(name, seed)
    before = arrivals_before(orders)
    pairs = clear_pairs(before)
    how: dict[str, Any] = {"random_state": seed, "n_threads": 1}
    ranges = order_ranges(sequela.fit(values, penalty=PENALTY, **how), values, **how)
    plain = ranges.model
    check = check_fit(plain, values, **how)
    all_told, told_right = told(ranges, before)
    trusted, trusted_right = told(ranges.with_fit(check), before)
    compared = compare_observations(values, KINDS, penalty=PENALTY, folds=FOLDS, **how)
    chosen = compared.observation
    better, after = plain, check
    if compared.chosen:
        better = (
            fit_observation_effects(values, PENALTY, penalty_kind="l1", **how)
            if isinstance(chosen, ObservationEffects)
            else sequela.fit(values, penalty=PENALTY, observation=chosen, **how)
        )
        after = check_fit(better, values, **how)
    gain = round(float(compared.table["gain"].max()), 1)
    return {
        "scenario": name, "seed": seed, "warned": int(not check.fits), "chosen": chosen.kind,
        "shape": getattr(chosen, "shape", ""), "gain": gain,
        "warned_after": int(not after.fits), "pairs": len(pairs), "right": right(plain, pairs),
        "right_after": right(better, pairs), "told": all_told, "told_right": told_right,
        "trusted": trusted, "trusted_right": trusted_right,
    }  # fmt: skip


def summarise(rows: list[dict[str, Any]]) -> str:
    """Return the tables of docs/when_it_fits.md as text."""
    first = [["data", "data sets", "warned", "chosen kind", "warned or chosen", "warned after"]]
    second = [["data", "clear pairs", "right, exponential", "right, chosen",
               "clear pairs of data sets that are not noticed", "of them right"]]  # fmt: skip
    requirement = [["data", "noticed data sets", "clear pairs", "right, exponential",
                    "right, chosen"]]  # fmt: skip
    third = [["data", "orders that the data can tell", "of them right",
              "reported by default (no finding)", "of them right",
              "reported with `--observation any`", "of them right"]]  # fmt: skip
    for name in SCENARIOS:
        own = [row for row in rows if row["scenario"] == name]
        if not own:
            continue
        kinds = [str(row["chosen"]) for row in own]
        count = ", ".join(f"{kinds.count(kind)} {kind}" for kind in _KIND_NAMES if kind in kinds)
        kept = [row for row in own if row["chosen"] == Exponential.kind]
        unnoticed = [row for row in kept if not int(row["warned"])]
        noticed = [row for row in own if row not in unnoticed]
        warned, after = _total(own, "warned"), _total(own, "warned_after")
        first.append([name, *map(str, (len(own), warned, count, len(noticed), after))])
        second.append([
            name, *counted(own, "pairs", "right"), counted(own, "pairs", "right_after")[1],
            *counted(unnoticed, "pairs", "right"),
        ])  # fmt: skip
        requirement.append([
            name, f"{len(noticed)} of {len(own)}", *counted(noticed, "pairs", "right"),
            counted(noticed, "pairs", "right_after")[1],
        ])  # fmt: skip
        third.append([
            name, *counted(own, "told", "told_right"), *counted(own, "trusted", "trusted_right"),
            *counted(kept, "trusted", "trusted_right"),
        ])  # fmt: skip
    tables = (first, second, requirement, third)
    return "\n\n".join("\n".join(lines(table)) for table in tables)


_KIND_NAMES = (Exponential.kind, Gamma.kind, HeavyTailed.kind, ObservationEffects.kind)


def _total(rows: list[dict[str, Any]], column: str) -> int:
    return sum(int(row[column]) for row in rows)


def counted(rows: list[dict[str, Any]], whole: str, part: str) -> tuple[str, str]:
    """Return two texts: the total of column `whole`, and the share of this total that `part` has.

    The standard error of the share is computed from the differences between data sets, because the
    pairs of a data set are not independent.
    """
    sizes = np.array([int(row[whole]) for row in rows], dtype=np.float64)
    parts = np.array([int(row[part]) for row in rows], dtype=np.float64)
    total = sizes.sum()
    if not total:
        return "0", "-"
    p = parts.sum() / total
    error = np.sqrt(((parts - p * sizes) ** 2).sum()) / total
    return f"{total:.0f}", f"{100.0 * p:.0f}% (± {100.0 * error:.0f})"


def lines(table: list[list[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in table]
    return [lines[0], "|" + " --- |" * len(table[0]), *lines[1:]]


def main(repeats: int, path: Path, first: int = 0) -> None:
    """Run the data sets that are not in the file yet, and print the table."""
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
    main(int(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
