"""The stage `score`: compute the objective of every learned theta in the same way for all tools.

The likelihoods of sets of at most `MOST_EXACT` items are computed exactly by `scorer`, which shares
no code with any tool. The few larger sets are sampled by `sequela.evaluate`. The score then has a
standard error.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers import plan as plans
from benchmarks.peers import scorer
from benchmarks.peers.cases import INTERACTING, PENALTY, load
from benchmarks.peers.running import trajectory
from sequela.support.validation import LARGEST_THETA

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.peers.cases import Case
    from benchmarks.peers.records import Places

MOST_EXACT = 20
# If scoring one theta exactly would take more than this many seconds, the largest sets are sampled.
_MOST_SECONDS = 12.0
# Scoring all points of a curve over time may take this many seconds. If scoring one theta takes
# more than `_DEAR` seconds, there is no curve. Thetas from before the end of the fit are then
# scored only to find the time at which the objective reached a given value.
_CURVE_SECONDS = 40.0
_DEAR = 6.0
_CURVE_POINTS = 25
# Orders are compared only for pairs whose true probability differs from one half by at least this.
_CLEAR = 0.1
# An effect that is smaller than this does not count as an interaction.
_NOTABLE = 0.1
_NEAR = 1e-3


class Judge:
    """Scores thetas on one set of samples."""

    def __init__(self, X: np.ndarray) -> None:
        distinct, counts = np.unique(X, axis=0, return_counts=True)
        sizes = distinct.sum(axis=1)
        costs = {
            k: scorer.seconds_of_scoring(sizes[sizes <= k], X.shape[1])
            for k in range(MOST_EXACT + 1)
        }
        largest = max(k for k in costs if costs[k] <= _MOST_SECONDS)
        self.seconds = costs[largest]  # predicted time per theta, replaced when it is measured
        small = sizes <= largest
        self.largest_exact = int(sizes[small].max()) if small.any() else 0
        self.small, self.counts = distinct[small], counts[small]
        self.large = np.repeat(distinct[~small], counts[~small], axis=0)
        self.N = len(X)

    def __call__(self, theta: np.ndarray) -> tuple[float, float]:
        """Return the penalised objective and its standard error (0: exact)."""
        if not np.isfinite(theta).all():
            return float("-inf"), 0.0
        start = time.perf_counter()
        total = float(self.counts @ scorer.log_likelihoods(theta, self.small))
        error = 0.0
        if len(self.large):
            from sequela import Budget, Sampling, evaluate

            found = evaluate(
                theta, self.large, gradient=False, random_state=1, budget=Budget(work=1e5),
                sampling=Sampling(chains=8, sweeps=2, burn_in=1),
            )  # fmt: skip
            total += len(self.large) * found.value
            error = len(self.large) * found.value_se / self.N
        self.seconds = time.perf_counter() - start
        return total / self.N - scorer.penalty_of(theta, PENALTY), error


def first_reaching(values: Callable[[int], float], count: int, target: float) -> int | None:
    """Return the first index whose value is at least the target, or None if there is no such index.

    The values must not decrease. The index is found by bisection, because every value takes time.
    """
    if count == 0 or values(count - 1) < target:
        return None
    # Test the first value before the bisection. The target is the final objective of a peer, and
    # often the first recorded model of sequela is already at least as good.
    if values(0) >= target:
        return 0
    low, high = 1, count - 1
    while low < high:
        middle = (low + high) // 2
        if values(middle) >= target:
            high = middle
        else:
            low = middle + 1
    return low


class Way:
    """The thetas of one fit over time. A theta is scored when its score is needed."""

    def __init__(self, places: Places, record: dict[str, Any], judge: Judge) -> None:
        self.folder: Path = places.thetas(record["name"])
        self.steps = trajectory(self.folder)
        # A step can be recorded after the end of the fit, because the time of a fit does not
        # include what a tool does after its last step. Such a step gets the time of the end.
        end = record.get("seconds")
        self.seconds = [min(s["seconds"], end) if end else s["seconds"] for s in self.steps]
        self.judge = judge
        self.scores: dict[int, tuple[float, float]] = {}

    def theta(self, at: int) -> np.ndarray:
        """Return the theta of a step."""
        return np.load(self.folder / self.steps[at]["file"], allow_pickle=False)

    def value(self, at: int) -> float:
        """Return the objective at a step."""
        if at not in self.scores:
            self.scores[at] = self.judge(self.theta(at))
        return self.scores[at][0]

    def time_to(self, target: float) -> float | None:
        """Return the seconds after which the objective had reached the target; None if never."""
        at = first_reaching(self.value, len(self.steps), target)
        return None if at is None else self.seconds[at]

    def sketch(self) -> None:
        """Score as many steps as the time allows, evenly spread over the logarithm of time."""
        if self.judge.seconds > _DEAR:
            return
        most = int(np.clip(_CURVE_SECONDS / max(self.judge.seconds, 1e-3), 3, _CURVE_POINTS))
        times = np.maximum(self.seconds, 1e-4)
        for at in np.geomspace(times[0], times[-1], most):
            self.value(int(np.argmin(np.abs(np.log(times / at)))))

    def curve(self) -> list[list[float]]:
        """Return seconds and objective of all steps that have been scored."""
        return [[self.seconds[at], self.scores[at][0]] for at in sorted(self.scores)]


class Ways:
    """The fits of one case. Each score is computed once and used in all comparisons."""

    def __init__(self, places: Places, case: Case) -> None:
        self.places = places
        self.case = case
        self.judges: dict[int, Judge] = {}
        self.known: dict[str, Way] = {}

    def __call__(self, record: dict[str, Any]) -> Way:
        """Return the thetas of a fit over time."""
        size = record["largest set"]
        if size not in self.judges:
            self.judges[size] = Judge(self.case.up_to(size))
        if record["name"] not in self.known:
            self.known[record["name"]] = Way(self.places, record, self.judges[size])
        return self.known[record["name"]]


def score(places: Places, *, resume: bool, only_cases: set[str] | None = None) -> None:
    """Score all fits that have a theta, and write a record for each."""
    fits = [r for r in places.all("fit") if only_cases is None or r["case"] in only_cases]
    for name in dict.fromkeys(r["case"] for r in fits):
        of_case = [r for r in fits if r["case"] == name]
        todo = [r for r in of_case if not (resume and places.read("score", r["name"]))]
        case = load(name) if todo else None
        if case is None:
            continue
        ways = Ways(places, case)
        for record in todo:
            if not ways(record).steps:
                continue
            print(f"{record['name']}: ", end="", flush=True)
            found = _one(places, record, ways)
            places.write("score", record["name"], found)
            print(f"{found['objective']:.6f}")


def _one(places: Places, record: dict[str, Any], ways: Ways) -> dict[str, Any]:
    """Return the score of a fit; for a peer, also the time at which sequela reached this score."""
    way = ways(record)
    last = len(way.steps) - 1
    value = way.value(last)
    found: dict[str, Any] = {
        "fit": record["name"],
        "case": record["case"],
        "tool": record["tool"],
        "objective": value,
        "error": way.scores[last][1],
        "exact up to": way.judge.largest_exact,
        "sampled sets": len(way.judge.large),
    }
    theta = way.theta(last)
    best = value
    if record["tool"] == "mhn":
        # The function `train` of mhn rounds theta by default.
        rounded, _ = way.judge(np.around(theta, 2))
        found["objective, rounded"] = rounded
        best = max(value, rounded)
    way.sketch()
    ours = _ours_on_the_same(places, record)
    if ours is not None and ways(ours).steps:
        found.update(_reached(ways(ours), way, best))
    single = places.read("fit", plans.Job(record["case"], plans.ONE_THREAD, record["tool"]).name)
    if single is not None:
        found["ours on one thread reached it after, s"] = ways(single).time_to(best)
    found["curve"] = way.curve()
    if ways.case.truth is not None:
        found.update(known_errors(theta, ways.case.truth))
    return found


def _ours_on_the_same(places: Places, record: dict[str, Any]) -> dict[str, Any] | None:
    """Return the fit of sequela to the samples of a peer; None if the record is from sequela."""
    if record["tool"] in (plans.OURS, plans.ONE_THREAD):
        return None
    same = places.read("fit", plans.Job(record["case"], plans.OURS, record["tool"]).name)
    every = places.read("fit", plans.Job(record["case"], plans.OURS).name)
    return same or (every if every and every["N"] == record["N"] else None)


def _reached(ours: Way, peer: Way, target: float) -> dict[str, Any]:
    """Return when sequela reached a peer's final objective, and when both came close to it."""
    last = len(ours.steps) - 1
    level = target - _NEAR
    # The objective of a peer may decrease during its fit. So use the first of its scored steps that
    # is close to its final objective.
    near = [seconds for seconds, value in peer.curve() if value >= level]
    dear = peer.judge.seconds > _DEAR
    return {
        "our fit": ours.folder.name,
        "our objective": ours.value(last),
        "our error": ours.scores[last][1],
        "ours reached it after, s": ours.time_to(target),
        "near": _NEAR,
        "ours was near it after, s": None if dear else ours.time_to(level),
        "itself was near it after, s": near[0] if near and not dear else None,
    }


def known_errors(theta: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return several measures of the difference between a learned theta and the true theta."""
    from sequela import order_matrix
    from sequela.questions import sequence_divergence

    # For an item that is in no sample, the log base rate of mhn is -1e10. Limit such entries.
    theta = np.clip(theta, -LARGEST_THETA, LARGEST_THETA)
    block = np.ix_(range(INTERACTING), range(INTERACTING))
    labels = [str(i) for i in range(INTERACTING)]
    ask = partial(order_matrix, items=labels, random_state=1)
    learned, right = (ask(t).probability.to_numpy() for t in (theta, truth))
    pairs = np.triu(np.abs(right - 0.5) >= _CLEAR, 1)
    divergence = sequence_divergence(theta, truth, labels, draws=300_000, random_state=1)
    absent = (truth == 0.0) & ~np.eye(len(truth), dtype=bool)
    return {
        "error of theta, interacting": float(np.sqrt(np.mean((theta - truth)[block] ** 2))),
        "false effects": int(np.count_nonzero(np.abs(theta[absent]) > _NOTABLE)),
        "KL of sequences": divergence.value,
        "KL of sequences, error": divergence.se,
        "orders right": float(np.mean((learned > 0.5)[pairs] == (right > 0.5)[pairs])),
        "orders asked": int(pairs.sum()),
    }
