"""How many clock items do a posterior and a fit need to find the right order?

The data are the synthetic data of Figure 2 of the paper: 500 samples of two or five items that
interact, and of 200 clock items. The script chooses m clock items at random, a few times for each
m. Each time, it infers the order of the pairs with a strong effect. In truth, item1 comes before
item2, and with five items also item4 before item5. The order is inferred by `sequela.posterior`
with its default prior, and by a penalised fit with five starts.

The script also simulates 20 data sets of the two items without clock items, with 20 seeds. The
verdict for each of them must be "the data cannot tell", with an interval from below 0.3 to above
0.95.

    python -m verification.order_against_clocks -o FOLDER
    python -m verification.order_against_clocks -o FOLDER --summary

The first command continues from the results in the folder. It needs the data (SEQUELA_DATA). The
second command writes the summary and its figure to verification/results.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from sequela import Dataset, SetChain, order_probability, posterior, simulate

RESULTS = Path(__file__).parent / "results"
PAIRS = {"two": [("item1", "item2")], "five": [("item1", "item2"), ("item4", "item5")]}
FILES = {"two": "synth2", "five": "synth5"}
CLOCKS = {"two": [0, 5, 15, 25], "five": [0, 5, 10, 20, 40]}
CHOICES = 3
SEEDS = 20
PENALTY = 0.01


def table(name: str) -> pd.DataFrame:
    """Return the samples of one of the two data sets, "two" or "five"."""
    folder = Path(os.environ.get("SEQUELA_DATA", "../shared/data"))
    return pd.read_csv(folder / "synthetic" / f"{FILES[name]}.csv").drop(columns=["sample", "time"])


def some_clocks(frame: pd.DataFrame, m: int, choice: int) -> Dataset:
    """Return the interacting items and m random clock items.

    For the same `choice`, a larger m includes the clock items of a smaller m.
    """
    clocks = [c for c in frame.columns if c.startswith("clock")]
    chosen = np.random.default_rng(choice).permutation(clocks)[:m]
    items = [c for c in frame.columns if c.startswith("item")]
    return Dataset(frame[[*items, *chosen]])


def infer(data: Dataset, pairs: list[tuple[str, str]], seed: int) -> dict:
    """Return the answers of the posterior and of the fit about pairs in their true order."""
    began = time.thread_time()
    draws = 150 if data.n_items > 10 else 250
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = posterior(data, draws=draws, warm_up=150, random_state=seed, n_threads=1)
        fitted = SetChain(PENALTY, n_starts=5, random_state=seed, progress=False).fit(data)
    orders = found.orders()
    rows = []
    for first, second in pairs:
        here = orders["first"].isin((first, second)) & orders["second"].isin((first, second))
        row = orders[here].iloc[0]
        right = row["first"] == first
        low, high = (row["low"], row["high"]) if right else (1 - row["high"], 1 - row["low"])
        rows.append(
            {"first": first, "second": second,
             "probability": float(row["probability"] if right else 1 - row["probability"]),
             "usually_first": float(row["usually_first"] if right else 1 - row["usually_first"]),
             "low": float(low), "high": float(high), "verdict": row["verdict"],
             "r_hat": float(row["r_hat"]), "effective": float(row["effective"]),
             "fit": float(order_probability(fitted, first, second))}
        )  # fmt: skip
    return {"pairs": rows, "r_hat": found.convergence.r_hat, "cpu": time.thread_time() - began}


def tasks():
    """Yield all tasks as (kind, number of clock items, choice or seed), the fastest first."""
    yield from (("alone", 0, seed) for seed in range(SEEDS))
    for choice in range(CHOICES):
        for name in ("two", "five"):
            for m in CLOCKS[name]:
                if m or not choice:
                    yield name, m, choice


def work(kind: str, m: int, k: int) -> dict:
    """Run one task and return its result."""
    if kind == "alone":
        drawn = simulate([[0.0, 4.0], [0.0, -4.0]], 500, items=["item1", "item2"], random_state=k)
        data, pairs = drawn.to_dataset().without_times(), PAIRS["two"]
    else:
        data, pairs = some_clocks(table(kind), m, k), PAIRS[kind]
    return {"kind": kind, "clocks": m, "choice": k, **infer(data, pairs, seed=k)}


def summarise(records: list[dict]) -> dict:
    """Return the curves against the number of clock items, and the intervals of two items alone."""
    rows = pd.DataFrame(
        [{**pair, **{key: r[key] for key in ("kind", "clocks", "choice")}}
         for r in records for pair in r["pairs"]]
    )  # fmt: skip
    alone = rows[rows["kind"] == "alone"]
    curves = []
    for (kind, m), part in rows[rows["kind"] != "alone"].groupby(["kind", "clocks"]):
        curves.append(
            {"items": kind, "clocks": int(m), "choices": int(part["choice"].nunique()),
             "posterior_prefers_right": float((part["usually_first"] > 0.5).mean()),
             "posterior_usually_first": float(part["usually_first"].mean()),
             "posterior_probability": float(part["probability"].mean()),
             "posterior_lowest": float(part["usually_first"].min()),
             "fit_probability": float(part["fit"].mean()),
             "fit_prefers_right": float((part["fit"] > 0.5).mean()),
             "largest_r_hat": float(part["r_hat"].max())}
        )  # fmt: skip
    found = {"cpu_minutes": sum(r["cpu"] for r in records) / 60, "curves": curves}
    if len(alone):
        found["two_items_alone"] = {
            "seeds": len(alone),
            "largest_low": float(alone["low"].max()),
            "smallest_high": float(alone["high"].min()),
            "cannot_tell": int((alone["verdict"] == "the data cannot tell").sum()),
            "usually_first": [float(alone["usually_first"].min()),
                              float(alone["usually_first"].max())],
            "largest_r_hat": float(alone["r_hat"].max()),
        }  # fmt: skip
    return found


def draw(found: dict, path: Path) -> None:
    """Draw the probability of the right order against the number of clock items."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from sequela.plots import save_figure

    fig, axes = plt.subplots(1, 2, figsize=(7.5, 3), layout="constrained", sharey=True)
    for ax, name in zip(axes, ("two", "five"), strict=True):
        rows = [row for row in found["curves"] if row["items"] == name]
        m = [row["clocks"] for row in rows]
        ax.axhline(0.5, color="0.7", lw=0.8, ls=":")
        for key, label, style in (
            ("posterior_usually_first", "posterior: usually first", "o-"),
            ("posterior_probability", "posterior: P(first before second)", "s--"),
            ("fit_probability", "penalised fit: P(first before second)", "^-."),
        ):
            ax.plot(m, [row[key] for row in rows], style, ms=4, lw=1.2, label=label)
        ax.set(xlabel="clock items", title=f"{name} items", ylim=(-0.03, 1.03))
    axes[0].set_ylabel("probability of the right order")
    axes[1].legend(frameon=False, fontsize=7.5)
    save_figure(fig, path)


def main() -> None:
    """Run the tasks that have no result yet (none with --summary), and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    options.output.mkdir(exist_ok=True, parents=True)
    if not options.summary:
        for task in tasks():
            path = options.output / ("-".join(map(str, task)) + ".json")
            if not path.exists():
                path.write_text(json.dumps(work(*task)))
    records = [json.loads(p.read_text()) for p in sorted(options.output.glob("*.json"))]
    found = summarise(records)
    print(json.dumps(found, indent=1))
    if options.summary:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "order_against_clocks.json").write_text(json.dumps(found, indent=1) + "\n")
        draw(found, RESULTS / "order_against_clocks.svg")


if __name__ == "__main__":
    main()
