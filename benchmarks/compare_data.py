"""Write the data of `benchmarks.compare`, without the use of any version of sequela."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES = 500
LARGEST_SET = 16  # the orders of larger sets may be sampled, and the time of sampling varies


def known_theta(n: int, mean_size: float, rng: np.random.Generator) -> np.ndarray:
    """Return a theta with n / 2 interactions whose sets have about the given mean size."""
    theta = np.diag(np.log(mean_size / (n - mean_size)) + rng.normal(0.0, 0.7, n))
    for _ in range(n // 2):
        i, j = rng.choice(n, 2, replace=False)
        theta[i, j] = rng.normal()
    return theta


def draw_sets(theta: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw sets with exponential observation times, by simulating the arrival of each item."""
    n = len(theta)
    X = np.zeros((size, n), dtype=bool)
    for present in X:
        left = rng.exponential()
        while not present.all():
            rates = np.where(present, 0.0, np.exp(np.diag(theta) + theta[present].sum(axis=0)))
            left -= rng.exponential(1.0 / rates.sum())
            if left < 0:
                break
            present[rng.choice(n, p=rates / rates.sum())] = True
    return X


def write_simulated(folder: Path) -> None:
    """Write n20.npz, n20.csv and n100.npz: a theta and samples drawn from it."""
    for n, mean_size in ((20, 4.0), (100, 6.0)):
        rng = np.random.default_rng(n)
        theta = known_theta(n, mean_size, rng)
        X = draw_sets(theta, SAMPLES, rng)
        if n == 20:
            write_csv(folder / "n20.csv", X)
        np.savez(folder / f"n{n}.npz", theta=theta, X=X[X.sum(axis=1) <= LARGEST_SET])


def write_csv(path: Path, X: np.ndarray) -> None:
    """Write samples as CSV: labels in the first line, then lines of 0 and 1."""
    labels = ",".join(f"item {j}" for j in range(X.shape[1]))
    np.savetxt(path, X.astype(int), fmt="%d", delimiter=",", header=labels, comments="")


def write_samples(path: Path, X: np.ndarray, seed: int = 1) -> None:
    """Write samples, and a random theta that is about as sparse as a learned theta.

    The base rates of theta are computed from the item frequencies of the samples.
    """
    rng = np.random.default_rng(seed)
    share = np.clip(X.mean(axis=0), 0.5 / len(X), 1.0 - 0.5 / len(X))
    shape = (X.shape[1], X.shape[1])
    theta = np.where(rng.random(shape) < 0.0045, rng.normal(0.0, 1.0, shape), 0.0)
    np.fill_diagonal(theta, np.log(share / (1.0 - share)))
    np.savez(path, theta=theta, X=X)


def write_table(path: Path, table: Path) -> None:
    """Read a CSV file (ids in the first column, then 0 or 1), and write it with `write_samples`."""
    rows = np.loadtxt(table, delimiter=",", dtype=str, skiprows=1, comments=None)
    write_samples(path, rows[:, 1:].astype(int) == 1)
