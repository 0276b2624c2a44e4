"""How long does a posterior take if cells are missing, and do its chains converge?

The data sets have 500 samples of 8, 12 or 20 items. Each sample has one of four panels, drawn at
random. One panel covers all items, and each of the others lacks 40% of the items. So 30% of the
cells are missing. In the case "8-latent" the samples have latent orders and histories
(``largest_lattice=1``). In all other cases the likelihood sums over the missing cells of small
samples.

    python -m verification.posterior_missing_cells [CASE ...]

The script prints a table: the elapsed seconds with two threads, the number of draws per chain,
R-hat, the smallest number of effective draws, and the mean width of the 90% intervals of
P(a before b). The mean is over all pairs of items that occur together.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np

import sequela
from sequela import Dataset

SAMPLES = 500
# For each case: the number of items, the kind of data, the prior, and `largest_lattice`.
CASES: dict[str, tuple[int, str, str, int | None]] = {
    "8": (8, "panels", "student-t", None),
    "8-known": (8, "all cells known", "student-t", None),
    "8-complete": (8, "complete samples only", "student-t", None),
    "8-laplace": (8, "panels", "laplace", None),
    "8-latent": (8, "panels", "laplace", 1),
    "12": (12, "panels", "student-t", None),
    "12-known": (12, "all cells known", "student-t", None),
    "20": (20, "panels", "laplace", None),
    "20-known": (20, "all cells known", "laplace", None),
}


def simulated(n: int) -> tuple[Dataset, Dataset]:
    """Return simulated samples twice: with all cells, and with only the cells of their panels."""
    rng = np.random.default_rng(n)
    theta = np.diag(rng.uniform(-2.5, -0.5, n))
    for _ in range(n):
        i, j = rng.choice(n, 2, replace=False)
        theta[i, j] = rng.choice([-1.5, 1.5, 2.0])
    data = sequela.simulate(theta, SAMPLES, random_state=1).to_dataset().without_times()
    lacking = [rng.choice(n, round(0.4 * n), replace=False) for _ in range(3)]
    missing = np.zeros((SAMPLES, n), dtype=bool)
    for row, panel in enumerate(rng.integers(0, 4, SAMPLES)):
        if panel < 3:
            missing[row, lacking[panel]] = True
    return data, data.with_missing(missing)


def one(case: str) -> list[Any]:
    """Run one case, and return its row of the table."""
    n, which, prior, largest = CASES[case]
    whole, panels = simulated(n)
    data = whole if which == "all cells known" else panels
    if which == "complete samples only":
        assert panels.missing is not None
        data = whole.select_samples(~panels.missing.any(axis=1))
    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sequela.posteriors.NotConvergedWarning)
        found = sequela.posterior(
            data, prior=prior, largest_lattice=largest, random_state=1, n_threads=2
        )
    seconds = time.monotonic() - begun
    state, table = found.convergence, found.orders()
    return [
        case, f"{data.n_missing / data.values.size:.0%}", which, prior, f"{seconds:.0f}",
        found.draws.scale.shape[1], f"{state.r_hat:.3f}", f"{state.effective:.0f}",
        f"{(table['high'] - table['low']).mean():.2f}",
    ]  # fmt: skip


def main() -> None:
    """Print the table."""
    header = [
        "items", "missing", "data", "prior", "s", "draws per chain", "R-hat", "effective", "width"
    ]  # fmt: skip
    # Compile before the first run is timed.
    sequela.posterior(simulated(8)[1], draws=20, warm_up=10, chains=2, random_state=1)
    print("| " + " | ".join(header) + " |")
    print("|" + " --- |" * len(header))
    for case in sys.argv[1:] or CASES:
        print("| " + " | ".join(map(str, one(case))) + " |", flush=True)


if __name__ == "__main__":
    main()
