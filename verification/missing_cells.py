"""Is a model from samples with missing cells as good as one from complete samples?

There are ten items and 1,000 samples. Each sample has one of four panels, drawn at random. One
panel covers all items. Each of the others lacks four items, so that 30% of the cells are missing.
The script compares the errors of models that are learned from

- samples with missing cells, where the likelihood sums over the values of these cells,
- complete samples with the same number of known cells (700 samples),
- complete samples with the same information about pairs of items (417 samples, see `EQUAL`),
- only the samples without missing cells (250 samples),
- only the items without missing cells (4 items),
- all samples, with missing cells counted as absent.

    python -m verification.missing_cells [DATA_SETS]

It prints a table and writes verification/missing_cells.csv.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from sequela import Dataset, SetChain, order_matrix, simulate

ITEMS, INTERACTIONS, SAMPLES = 10, 8, 1000
LACKING = ((), (0, 1, 2, 3), (2, 3, 4, 5), (0, 1, 4, 5))
KEPT = [6, 7, 8, 9]
# Both items of a pair are known in 25%, 50% or all of the samples, depending on the pair. Squared
# errors are proportional to the inverse of this share. The mean of this inverse over all pairs is
# 2.4, and 1000 / 2.4 = 417.
EQUAL = 417


def truth(seed: int) -> np.ndarray:
    """Return a random theta: base rates around exp(-1), absolute effects between 1 and 3."""
    rng = np.random.default_rng(seed)
    theta = np.diag(rng.normal(-1.0, 1.0, ITEMS))
    for _ in range(INTERACTIONS):
        i, j = rng.choice(ITEMS, 2, replace=False)
        theta[i, j] = rng.choice([-1, 1], p=[0.3, 0.7]) * rng.uniform(1, 3)
    return theta


def fit(data: Dataset, information: int | None = None) -> np.ndarray:
    """Learn a model and return theta.

    The log-likelihood of all samples together gets a penalty that is proportional to the square
    root of the information. `SetChain` maximises the mean log-likelihood, so this penalty is
    divided by the number of samples. `information` is the number of complete samples with the same
    information as the data. None means that the data are complete.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        penalty = 0.01 * np.sqrt(SAMPLES * (information or data.n_samples)) / data.n_samples
        return SetChain(penalty=penalty, random_state=1).fit(data).model_.theta


def orders(theta: np.ndarray) -> np.ndarray:
    """Return P(a before b) among samples with both items, for all pairs."""
    return order_matrix(theta, random_state=1, draws=20_000).probability.to_numpy()


def compare(seed: int) -> list[dict[str, object]]:
    """Return the errors of each way to learn the model, for one data set."""
    theta = truth(seed)
    data = simulate(theta, SAMPLES, random_state=seed).to_dataset().without_times()
    lacking = np.zeros((4, ITEMS), dtype=bool)
    for panel, items in enumerate(LACKING):
        lacking[panel, list(items)] = True
    panel = np.random.default_rng(seed).integers(0, 4, SAMPLES)
    partly = data.with_missing(lacking[panel])
    ways = {
        "sum over missing cells": fit(partly, information=EQUAL),
        "700 complete samples": fit(data.select_samples(range(700))),
        f"{EQUAL} complete samples": fit(data.select_samples(range(EQUAL))),
        "drop samples with missing cells": fit(data.select_samples(panel == 0)),
        "count missing cells as absent": fit(Dataset(partly.values, items=data.items)),
        "all cells known": fit(data),
    }
    fewer = data.select_items([data.items[j] for j in KEPT])
    few = np.zeros((ITEMS, ITEMS))
    few[np.ix_(KEPT, KEPT)] = fit(fewer)
    true_orders = orders(theta)
    interacting = ((theta != 0) | (theta.T != 0)) & ~np.eye(ITEMS, dtype=bool)
    rows = []
    for name, found in ways.items():
        off = ~np.eye(ITEMS, dtype=bool)
        rows.append(
            {
                "seed": seed,
                "way": name,
                "interactions": np.sqrt(np.mean((found - theta)[off] ** 2)),
                "base rates": np.sqrt(np.mean(np.diagonal(found - theta) ** 2)),
                "orders": np.nanmean(np.abs(orders(found) - true_orders)[interacting]),
            }
        )
    known = np.ix_(KEPT, KEPT)
    off = ~np.eye(len(KEPT), dtype=bool)
    lost = theta.copy()
    lost[known] = 0.0
    np.fill_diagonal(lost, 0.0)
    rows.append(
        {
            "seed": seed,
            "way": "drop items with missing cells",
            # Interactions of items that were left out are not learned, so they count as zero.
            "interactions": np.sqrt(
                (np.sum((few - theta)[known][off] ** 2) + np.sum(lost**2)) / (ITEMS * (ITEMS - 1))
            ),
            "base rates": np.sqrt(np.mean(np.diagonal(few - theta)[KEPT] ** 2)),
            "orders": np.nan,
        }
    )
    return rows


def main(count: int = 12) -> None:
    """Print the mean errors of each way to learn the model, with standard errors over data sets."""
    rows: list[dict[str, object]] = []
    for seed in range(count):
        rows += compare(seed)
        print(f"{seed + 1} of {count}", file=sys.stderr, flush=True)
    table = pd.DataFrame(rows).drop(columns="seed").groupby("way", sort=False)
    shown = table.mean().round(3)
    shown["se of interactions"] = table["interactions"].sem().round(3)
    shown["se of orders"] = table["orders"].sem().round(3)
    print(shown.to_string())
    shown.to_csv(Path(__file__).with_name("missing_cells.csv"))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
