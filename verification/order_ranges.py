"""Do the ranges of `order_ranges` contain the truth, and is its evidence right?

Models of ten items with eight random interactions, 400 samples each. For every pair that is
checked: is the true P(a before b) in the range, and is the order of the fit the true one, by
evidence? Beside it, how often the fit and the baseline (mean sizes of samples) are right.

    python -m verification.order_ranges [DATA_SETS]

25 data sets take about half a minute of processor time.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd

from sequela import SetChain, order_matrix, simulate
from sequela.questions import order_ranges

ITEMS, INTERACTIONS, SAMPLES = 10, 8, 400
EDGES = [-np.inf, 0.0, 0.5, 1.0, 2.0, np.inf]
# Simulated probabilities and interpolated ends are right to about this.
SLACK = 0.01


def truth(seed: int) -> np.ndarray:
    """Return a random theta: base rates around exp(-1), effects of size 1 to 3."""
    rng = np.random.default_rng(seed)
    theta = np.diag(rng.normal(-1.0, 1.0, ITEMS))
    for _ in range(INTERACTIONS):
        i, j = rng.choice(ITEMS, 2, replace=False)
        theta[i, j] = rng.choice([-1, 1], p=[0.3, 0.7]) * rng.uniform(1, 3)
    return theta


def checked_pairs(seed: int) -> pd.DataFrame:
    """Return the checked pairs of one data set, with the true probability of each."""
    theta = truth(seed)
    data = simulate(theta, SAMPLES, random_state=seed).to_dataset().without_times()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # several optima, which is the point
        learner = SetChain(0.01, n_starts=2, random_state=1, progress=False).fit(data)
    table = order_ranges(learner, data, random_state=1, max_pairs=6).table
    table = table[table["checked"]]
    true = order_matrix(theta, list(data.items)).probability
    pairs = zip(table["first"], table["second"], strict=True)
    return table.assign(true=[true.loc[a, b] for a, b in pairs])


def main(data_sets: int = 25) -> None:
    """Print shares of pairs."""
    table = pd.concat([checked_pairs(seed) for seed in range(data_sets)], ignore_index=True)
    right = table["true"] > 0.5
    inside = table["true"].between(table["low"] - SLACK, table["high"] + SLACK)
    guess = right == (table["baseline"] == "agrees")
    print(f"{data_sets} data sets, {len(table)} pairs")
    print(f"the range contains the true probability: {inside.mean():.3f}")
    print(f"mean width of the range: {(table['high'] - table['low']).mean():.2f}")
    print(f"order of the fit right: {right.mean():.3f}; of the baseline: {guess.mean():.3f}")
    tell = table["verdict"] == "the data can tell"
    print(f"'the data can tell': {tell.sum()} pairs, right: {right[tell].mean():.3f}")
    by = pd.cut(table["evidence"], EDGES)
    print(right.groupby(by, observed=False).agg(["size", "mean"]).round(3).to_string())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
