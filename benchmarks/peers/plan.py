"""List the measurements, the most informative first, and predict which samples mhn can use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers.cases import simulated_name

OURS = "sequela"
ONE_THREAD = "sequela-1"
PAPER = "paper"
TITLES = {
    OURS: "sequela",
    ONE_THREAD: "sequela, one thread",
    PAPER: "the paper's method",
    "mhn": "mhn",
    "fastmhn": "fastmhn",
}

# mhn stores the items of a sample in eight words of 32 bits.
MHN_MOST_ITEMS = 256
# Number of evaluations that is assumed for a fit of mhn. We observed between 117 and 235.
MHN_EVALUATIONS = 220

SET_SIZES = list(range(5, 21))
SET_SIZE_ITEMS = 100


@dataclass(frozen=True)
class Job:
    """One measurement: a tool that is run on a case.

    Attributes
    ----------
    case, tool : str
        Names of the case and of the tool.
    same_as : str or None
        Use only the samples that this other tool can use.
    learn : bool
        Whether to run a fit, in addition to measuring one value and gradient.
    """

    case: str
    tool: str
    same_as: str | None = None
    learn: bool = True

    @property
    def name(self) -> str:
        """The name of the record. It includes the peer whose samples are used, if there is one."""
        return f"{self.case}--{self.tool}" + (f"--as-{self.same_as}" if self.same_as else "")

    def worker_options(self) -> dict[str, Any]:
        """Return the job as plain values for the worker of the tool."""
        return {
            "learn": self.learn,
            "solver": "adagrad" if self.tool == PAPER else "auto",
            "threads": 1 if self.tool == ONE_THREAD else None,
            "seed": 1,
        }


def side_by_side(case: str, *, paper: bool = True, fast: bool = True) -> list[Job]:
    """Return the jobs of a case that all tools fit."""
    jobs = [
        Job(case, "mhn"),
        Job(case, OURS),
        Job(case, OURS, same_as="mhn"),
        Job(case, ONE_THREAD, same_as="mhn"),
        # If a fit would take hours, measure only its gradient.
        Job(case, PAPER, learn=paper),
    ]
    return [*jobs, Job(case, "fastmhn")] if fast else jobs


def plan(*, quick: bool = False) -> list[Job]:
    """Return all jobs in order."""
    if quick:
        return [
            *side_by_side("gbm-10"),
            *side_by_side(simulated_name("sim", 12, 300)),
            Job(simulated_name("grow", 20, 500), OURS),
            Job(simulated_name("grow", 20, 2000), OURS),
            Job(simulated_name("grow", 40, 500), OURS),
            Job(simulated_name("grow", 40, 500, 60), OURS, learn=False),
        ]
    jobs = []
    for n in (20, 100, 50, 10):
        jobs += side_by_side(f"gbm-{n}")
    jobs += side_by_side("table-20")
    jobs += side_by_side("gbm-410", paper=False)
    jobs += side_by_side("pan-cancer", paper=False)
    jobs += growth()
    for n in (20, 100, 50, 200):
        case = simulated_name("sim", n, 500)
        jobs += side_by_side(case, paper=n in (20, 100), fast=n <= 100)
    jobs += side_by_side(simulated_name("sim", 20, 5000), paper=False, fast=False)
    for n in (15, 30, 200):
        jobs += side_by_side(f"gbm-{n}", paper=n < 200)
    return jobs


def growth() -> list[Job]:
    """Return the jobs that measure sequela on simulated data of increasing size."""
    sizes = [(n, 5000) for n in (20, 50, 100, 200, 500, 1000)] + [(100, 500), (100, 50_000)]
    jobs = [Job(simulated_name("grow", n, N), OURS) for n, N in sizes]
    more = (24, 96, 384, 1536, 6144)
    return jobs + [Job(simulated_name("grow", 200, 5000, i), OURS, learn=False) for i in more]


def mhn_seconds(sizes: np.ndarray, n: int, measured: dict[str, float]) -> np.ndarray:
    """Predict the time of mhn for sets of these sizes, from its measured times for single sets.

    The time for a set of k items is assumed to be proportional to n k 2^k. The constant is computed
    from the largest measured set, because the overhead of a call dominates the times of small sets.
    """
    top = max(int(k) for k in measured)
    unit = measured[str(top)] / (SET_SIZE_ITEMS * top * 2.0**top)
    return unit * n * sizes * 2.0**sizes


def largest_for_mhn(X: np.ndarray, measured: dict[str, float], limit: float) -> int:
    """Return the largest set size with which mhn is predicted to finish within the limit."""
    sizes = np.sort(X.sum(axis=1).astype(float))
    spent = MHN_EVALUATIONS * np.cumsum(mhn_seconds(sizes, X.shape[1], measured))
    beyond = sizes[spent > limit]
    return int(sizes[-1] if beyond.size == 0 else beyond[0] - 1)
