"""The data of the comparison: real tables if they are available, and simulated data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from benchmarks.datasets import data_folder, glioblastoma

if TYPE_CHECKING:
    from pathlib import Path

PENALTY = 0.01

# Number of items of simulated data that act on each other. All others are clock items.
INTERACTING = 6
# Mean number of clock items that arrive per unit of time. It is the same for every n. With the
# larger number ("sim"), the items determine the time of a sample well. With the smaller number
# ("grow"), sets stay small, so that large N and n are possible.
_CLOCK_RATES = {"sim": 2.5, "grow": 1.0}


@dataclass(frozen=True)
class Case:
    """One data set.

    Attributes
    ----------
    name, title : str
        Name for files, and title for readers.
    X : array (N, n) of bool
        The samples.
    truth : array (n, n) or None
        The theta from which the samples were drawn.
    """

    name: str
    title: str
    X: np.ndarray
    truth: np.ndarray | None = None

    @property
    def n(self) -> int:
        """The number of items."""
        return int(self.X.shape[1])

    def up_to(self, largest: int | None) -> np.ndarray:
        """Return the samples with at most this many items."""
        return self.X if largest is None else self.X[self.X.sum(axis=1) <= largest]


def known_theta(n: int, clock_rate: float, interactions: int = INTERACTING) -> np.ndarray:
    """Return a sparse theta whose first six items act on each other; the others are clock items.

    Items 0, 1 and 2 are a cascade, in which each item promotes the next one. Items 3 and 4 inhibit
    each other. Item 5 promotes item 3, and is promoted by item 2. Clock items have different base
    rates. With more clock items, these rates are smaller, so that sets do not become larger with n.
    These are six interactions. If `interactions` is larger, the others are between clock items.
    """
    rng = np.random.default_rng([n, interactions])
    clocks = n - INTERACTING
    level = np.log(clock_rate / clocks)
    theta = np.diag(np.concatenate([[0.0, -2.5, -3.0, -0.5, -0.5, -1.0], np.full(clocks, level)]))
    at = np.arange(INTERACTING, n)
    theta[at, at] += rng.uniform(-0.7, 0.7, clocks)
    theta[0, 1] = theta[1, 2] = 3.0
    theta[3, 4] = theta[4, 3] = -2.5
    theta[5, 3] = 2.0
    theta[2, 5] = 1.0
    more = interactions - INTERACTING
    while more > 0:
        i, j = rng.choice(at, 2, replace=False)
        if theta[i, j] == 0.0:
            theta[i, j] = rng.choice([-1.5, 1.5])
            more -= 1
    return theta


def simulated_name(kind: str, n: int, N: int, interactions: int = INTERACTING) -> str:
    """Return the name of a simulated case of the kind "sim" (accuracy) or "grow" (cost)."""
    return f"{kind}-n{n}-N{N}" + (f"-i{interactions}" if interactions != INTERACTING else "")


def load(name: str) -> Case | None:
    """Return a case by its name, or None if its data are not available."""
    match = re.fullmatch(r"(sim|grow)-n(\d+)-N(\d+)(?:-i(\d+))?", name)
    if match:
        return _simulated(match[1], int(match[2]), int(match[3]), int(match[4] or INTERACTING))
    folder = data_folder()
    if folder is None:
        return None
    if name.startswith("gbm-"):
        n = int(name.removeprefix("gbm-"))
        X = _glioblastoma(folder).iloc[:, :n].to_numpy(dtype=bool)
        return Case(name, f"glioblastoma, n = {n}", X)
    if name == "table-20":
        frame = pd.read_csv(folder / "gbm" / "schill20.csv")
        return Case(name, "20-item table", frame.to_numpy(dtype=bool))
    if name == "pan-cancer":
        frame = pd.read_csv(folder / "pancancer" / "mutations.tsv", sep="\t")
        return Case(name, f"pan-cancer, n = {frame.shape[1]}", (frame != 0).to_numpy(dtype=bool))
    raise KeyError(f"no case is called {name!r}")


@lru_cache(maxsize=1)
def _glioblastoma(folder: Path) -> pd.DataFrame:
    return glioblastoma(folder)


def _simulated(kind: str, n: int, N: int, interactions: int) -> Case:
    from sequela import simulate

    theta = known_theta(n, _CLOCK_RATES[kind], interactions)
    X = simulate(theta, N, random_state=n + N).to_dataset().without_times().values
    title = f"simulated, n = {n:,}, N = {N:,}" + (", few clock items" if kind == "grow" else "")
    if interactions != INTERACTING:
        title += f", {interactions} interactions"
    return Case(simulated_name(kind, n, N, interactions), title, np.asarray(X, dtype=bool), theta)


def dense_theta(X: np.ndarray, seed: int = 1) -> np.ndarray:
    """Return a theta without zeros: random interactions, and base rates from item frequencies."""
    n = X.shape[1]
    # An item may occur in none or in all of the samples that a program can use. One half is added
    # to its count, because a share of 0 or 1 would give an infinite base rate.
    share = (X.sum(axis=0) + 0.5) / (len(X) + 1.0)
    theta = np.random.default_rng(seed).uniform(-0.2, 0.2, (n, n))
    np.fill_diagonal(theta, np.log(share / (1.0 - share)))
    return theta
