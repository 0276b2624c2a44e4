"""How often does the range of an order contain the true probability, and is the evidence right?

The data are 200 to 1,000 samples from random models of 5 to 20 items, with as many random
interactions as items. For every checked pair, the script records whether the range contains the
true P(a before b), the evidence for the order of the fit, and whether this order is the true order.
It also counts how often the fit and the baseline (mean sizes of samples) are right.

    python -m verification.order_ranges -o FOLDER [--sets 200]
    python -m verification.order_ranges -o FOLDER --summary

The first command continues from the results in the folder. 200 data sets take about an hour of
processor time, most of it for those with 20 items. The second command writes the summary and its
figure to verification/results.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from sequela import SetChain, order_matrix, simulate
from sequela.questions import order_ranges

RESULTS = Path(__file__).parent / "results"
SIZES = [(5, 200), (10, 400), (20, 400), (8, 1000), (10, 200), (15, 1000), (12, 400), (20, 200)]
EDGES = [-np.inf, 0.0, 0.5, 1.0, 2.0, 4.0, np.inf]
# The true probabilities are simulated and the ends of the ranges are interpolated. Both have errors
# of about this size. So a true probability outside a range counts as inside if its distance from
# the range is at most this.
SLACK = 0.01


def truth(seed: int) -> tuple[np.ndarray, int]:
    """Return a random theta and a number of samples.

    Base rates are around exp(-1), and effects are between 1 and 3 in size.
    """
    n, samples = SIZES[seed % len(SIZES)]
    rng = np.random.default_rng(seed)
    theta = np.diag(rng.normal(-1.0, 1.0, n))
    for _ in range(n):
        i, j = rng.choice(n, 2, replace=False)
        theta[i, j] = rng.choice([-1, 1], p=[0.3, 0.7]) * rng.uniform(1, 3)
    return theta, samples


def checked_pairs(seed: int) -> pd.DataFrame:
    """Return the checked pairs of one data set, with the true probability of each."""
    theta, samples = truth(seed)
    data = simulate(theta, samples, random_state=seed).to_dataset().without_times()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ignore warnings: several optima are expected here
        learner = SetChain(0.01, n_starts=2, random_state=1, progress=False).fit(data)
    table = order_ranges(learner, data, random_state=1, max_pairs=6).table
    table = table[table["checked"]]
    true = order_matrix(theta, list(data.items), method="simulation", random_state=1).probability
    pairs = zip(table["first"], table["second"], strict=True)
    return table.assign(
        seed=seed, n=len(theta), N=samples, true=[true.loc[a, b] for a, b in pairs]
    ).drop(columns="checked")


def error(right: pd.Series, seeds: pd.Series) -> float:
    """Return the standard error of a share.

    It is computed from the differences between data sets, because the pairs of a data set are not
    independent.
    """
    sums = (right - right.mean()).groupby(seeds).sum()
    return float(np.sqrt((sums**2).sum()) / len(right)) if len(right) else float("nan")


def summarise(table: pd.DataFrame) -> dict:
    """Return the coverage of the ranges, and the share of right orders by evidence."""
    right = table["true"] > 0.5
    inside = table["true"].between(table["low"] - SLACK, table["high"] + SLACK)
    guess = right == (table["baseline"] == "agrees")
    tell = table["verdict"] == "the data can tell"
    by = pd.cut(table["evidence"], EDGES)
    bins = []
    for interval, rows in table.groupby(by, observed=True):
        here = right[rows.index]
        bins.append(
            {"above": interval.left, "to": interval.right, "pairs": len(rows),
             "mean_evidence": float(rows["evidence"].clip(-10, 10).mean()),
             "right": float(here.mean()), "se": error(here, rows["seed"])}
        )  # fmt: skip
    return {
        "data_sets": int(table["seed"].nunique()),
        "pairs": len(table),
        "range_contains_the_truth": float(inside.mean()),
        "range_contains_the_truth_se": error(inside, table["seed"]),
        "mean_width": float((table["high"] - table["low"]).mean()),
        "fit_right": float(right.mean()),
        "baseline_right": float(guess.mean()),
        "can_tell": int(tell.sum()),
        "can_tell_right": float(right[tell].mean()),
        "by_evidence": bins,
    }


def draw(table: pd.DataFrame, found: dict, path: Path) -> None:
    """Draw the ranges with the true probabilities, and the share of right orders by evidence."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from sequela.plots import save_figure

    fig, axes = plt.subplots(1, 2, figsize=(7.5, 3), layout="constrained")
    ax = axes[0]
    middle = table.sort_values("true").reset_index(drop=True)
    inside = middle["true"].between(middle["low"] - SLACK, middle["high"] + SLACK)
    ax.vlines(middle.index, middle["low"], middle["high"], lw=0.4,
              color=np.where(inside, "0.75", "#d55e00"))  # fmt: skip
    ax.plot(middle.index, middle["true"], ".", ms=1.5, color="#1f4e79")
    ax.set(xlabel="pair, by its true probability", ylabel="P(first before second)", xticks=[])
    share = found["range_contains_the_truth"]
    ax.set_title(f"the range contains the truth: {share:.1%}", fontsize=9)
    ax = axes[1]
    rows = found["by_evidence"]
    x = np.array([row["mean_evidence"] for row in rows])
    y = np.array([row["right"] for row in rows])
    grid = np.linspace(min(x.min(), -2), max(x.max(), 6), 200)
    ax.plot(grid, 1 / (1 + np.exp(-grid)), color="0.6", lw=1)
    ax.errorbar(x, y, yerr=[2 * row["se"] for row in rows], fmt="o", color="#d55e00", capsize=2)
    ax.set(xlabel="evidence for the order of the fit (nats)", ylabel="share that is right")
    ax.set_ylim(0, 1.03)
    ax.set_title("line: share expected if evidence were log-odds", fontsize=9)
    save_figure(fig, path, dpi=110)


def main() -> None:
    """Run the data sets that have no result yet (none with --summary), and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    options.output.mkdir(exist_ok=True, parents=True)
    if not options.summary:
        for seed in range(options.sets):
            path = options.output / f"{seed:04d}.csv"
            if not path.exists():
                checked_pairs(seed).to_csv(path, index=False)
    parts = [pd.read_csv(p) for p in sorted(options.output.glob("*.csv"))]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    found = {"run": len(parts), **summarise(table)}
    print(json.dumps(found, indent=1))
    if options.summary:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "order_ranges.json").write_text(json.dumps(found, indent=1) + "\n")
        draw(table, found, RESULTS / "order_ranges.png")


if __name__ == "__main__":
    main()
