"""How many known orders are needed to determine the order of two items?

The model is that of the paper's two items, theta = [[0, 4], [0, -4]]: the first item comes before
the second in 98% of the samples that have both. The sets alone do not show this, because models
with opposite orders give the sets the same probabilities (Proposition 1). There are 500 samples.
Some of the samples with both items get a known order, which is certain or right with probability
0.9. For comparison, the same number of samples (with any items) get a known observation time.

The evidence is the log-likelihood ratio of two models of the family of Proposition 1: the best
model in which the first item usually comes first, and the best model in which the second item does.
The range contains P(first before second) of all models within 2 nats of the best, as in
`order_ranges`.

    python -m verification.known_orders [DATA_SETS]

The script prints a table, and writes verification/known_orders.csv and .png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from sequela import Dataset, evaluate, simulate
from sequela.questions import two_item_family_of

THETA = np.array([[0.0, 4.0], [0.0, -4.0]])
SAMPLES = 500
NUMBERS = (0, 1, 2, 5, 10, 20, 50)
GRID = np.linspace(0.01, 0.99, 50)


def family_of(data: Dataset) -> list[np.ndarray]:
    """Return the models whose set probabilities are the frequencies of the sets in the data.

    The models are sorted by P(first before second).
    """
    from sequela.questions import two_item_family

    sizes = data.values
    shares = [
        np.mean(~sizes[:, 0] & ~sizes[:, 1]),
        np.mean(sizes[:, 0] & ~sizes[:, 1]),
        np.mean(~sizes[:, 0] & sizes[:, 1]),
    ]
    family = two_item_family(*(max(share, 0.5 / SAMPLES) for share in shares))
    low, high = family.interval
    return [np.asarray(family.theta(low + p * (high - low))) for p in GRID]


def evidence_and_range(models: list[np.ndarray], data: Dataset) -> tuple[float, float, float]:
    """Return the evidence for "first before second", and the range of its probability."""
    values = np.array([SAMPLES * evaluate(theta, data, gradient=False).value for theta in models])
    evidence = values[GRID > 0.5].max() - values[GRID <= 0.5].max()
    allowed = GRID[values >= values.max() - 2.0]
    return float(evidence), float(allowed.min()), float(allowed.max())


def one(seed: int) -> list[dict[str, object]]:
    """Return the evidence and the range for one data set.

    There is one row for each number of samples with a known order or time.
    """
    drawn = simulate(THETA, SAMPLES, random_state=seed)
    data = drawn.to_dataset()
    times = data.times
    sets = data.without_times()
    models = family_of(sets)
    both = np.flatnonzero(sets.values.all(axis=1))
    rows = []
    for number in NUMBERS:
        chosen = both[:number]
        first = [data.items[drawn.sequence[drawn.indptr[s]]] for s in chosen]
        rng = np.random.default_rng(seed)
        noisy = [a if rng.random() < 0.9 else {"0": "1", "1": "0"}[a] for a in first]
        clock = np.full(SAMPLES, np.nan)
        some = rng.choice(SAMPLES, number, replace=False)
        clock[some] = times[some]
        kinds = {
            "certain orders": Dataset(sets, orders=_orders(chosen, first, 1.0)),
            "orders right in 90%": Dataset(sets, orders=_orders(chosen, noisy, 0.9)),
            "clocks": Dataset(sets, times=clock),
        }
        for kind, table in kinds.items():
            evidence, low, high = evidence_and_range(models, table)
            rows.append(
                {"kind": kind, "number": number, "evidence": evidence, "low": low, "high": high}
            )
    return rows


def _orders(
    chosen: np.ndarray, first: list[str], p: float
) -> dict[str, list[tuple[str, str, float]]]:
    return {str(s): [(a, {"0": "1", "1": "0"}[a], p)] for s, a in zip(chosen, first, strict=True)}


def main(count: int = 20) -> None:
    """Print, write and draw the medians over the data sets."""
    assert abs(two_item_family_of(THETA).order_probability(1.0) - 0.982) < 0.001
    rows = [row for seed in range(count) for row in one(seed)]
    table = pd.DataFrame(rows).groupby(["kind", "number"], sort=False)
    shown = table.median().round(2)
    shown["decided"] = table["low"].agg(lambda low: float(np.mean(low > 0.5))).round(2)
    print(shown.to_string())
    place = Path(__file__)
    shown.to_csv(place.with_name("known_orders.csv"))
    draw(shown, place.with_name("known_orders.png"))


def draw(shown: pd.DataFrame, path: Path) -> None:
    """Draw the evidence against the number of samples with a known order or time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    ax = figure.subplots()
    for kind, part in shown.groupby(level=0, sort=False):
        ax.plot(part.index.get_level_values(1), part["evidence"], marker="o", label=kind)
    ax.axhline(2.0, color="grey", linewidth=0.8)
    ax.text(50, 2.2, "2 nats", ha="right", color="grey")
    ax.set_xscale("symlog", linthresh=1)
    ax.set_yscale("symlog", linthresh=1)
    ax.set_xticks(NUMBERS, [str(n) for n in NUMBERS])
    ax.set_xlabel(f"samples with a known order or time, of {SAMPLES}")
    ax.set_ylabel("evidence for the true order (nats)")
    ax.legend(frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
