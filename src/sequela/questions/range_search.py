"""The search of `order_ranges`: models with the opposite order, and profiles of pairs.

A rival of a model is another model in which the order of a pair is the opposite.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sequela.learning.optima import SAME
from sequela.questions.order_profile import Hold
from sequela.support.progress import WorkProgress

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.questions.order_profile import HeldFits, Pair, Visited

__all__ = ["PairRange", "Point", "RangeSearch", "SearchLimits", "range_of"]

_RISE = 1e-3  # a model that is better by fewer nats does not replace the current one
_STEP = 1.25  # log-odds between two points of a profile
_MOST_STEPS = 5
_EVIDENCE = 3.0  # to reach the opposite order, a profile may go this many nats below the range
_RIVAL = 1.0  # the log-odds at which a fit first holds the opposite order
_EDGE = 0.02  # a profile towards 0 (or 1) ends when its probability is this close to 0 (or 1)
# Profiles begin at the best optima that are known: at most _MOST_OPTIMA of them, at most _NEARBY
# nats below the current model.
_MOST_OPTIMA = 2
_NEARBY = 5.0
# Largest share of the work that the search for better models may use.
_SEARCH_SHARE = 0.5
# A profile that has begun may exceed the limit up to this factor, because an incomplete profile
# would give a range that is too narrow.
_LAST_PROFILE = 1.5


@dataclass(frozen=True)
class SearchLimits:
    """The limits of a search: its work, and the number of replacements of the model.

    Attributes
    ----------
    evaluations : int or None
        At most about this many evaluations of the likelihood; None: any number.
    seconds : float
        At most about this much predicted time on one core. A prediction is used, so that the end of
        a search does not depend on the machine. If it is infinite, there is no limit.
    moves : int
        How often a better model may replace the current one.
    """

    evaluations: int | None
    seconds: float
    moves: int


@dataclass(frozen=True)
class Point:
    """One model on a profile: P(i before j), and its distance below the best model, in nats."""

    probability: float
    drop: float


@dataclass(frozen=True)
class PairRange:
    """The result for a pair (i, j).

    The probability and its range (low, high) are those of "i before j".
    """

    pair: Pair
    probability: float
    low: float
    high: float
    evidence: float
    checked: bool


class _Spent(Exception):  # noqa: N818 - not an error: it ends nested loops
    """Ends the search, because a limit of its work is reached or a signal was received."""


def _logit(p: float) -> float:
    p = min(max(p, 1e-9), 1.0 - 1e-9)
    return float(np.log(p) - np.log1p(-p))


def range_of(paths: list[list[Point]], within: float) -> tuple[float, float, float]:
    """Return the range of the probability and the evidence, as (low, high, evidence).

    The range contains the points of the paths whose drop is at most `within`. The evidence is for
    "i before j" against the opposite order. It is negative if the opposite order is better. Between
    adjacent points of a path, the square root of the drop is assumed to be linear in the log-odds,
    as for a parabola.

    Examples
    --------
    >>> low, high, evidence = range_of([[Point(0.8, 0.0), Point(0.5, 2.0), Point(0.2, 8.0)]], 2.0)
    >>> round(low, 3), round(high, 3), round(evidence, 3)
    (0.5, 0.8, 2.0)
    """
    inside = [p.probability for path in paths for p in path if p.drop <= within]
    best = {True: np.inf, False: np.inf}
    for path in paths:
        for point in path:
            side = point.probability >= 0.5
            best[side] = min(best[side], point.drop)
        for a, b in pairwise(path):
            inside += _crossing(a, b, within)
            if (a.probability >= 0.5) != (b.probability >= 0.5):
                middle = _drop_between(a, b)
                best = {side: min(drop, middle) for side, drop in best.items()}
    return min(inside), max(inside), float(best[False] - best[True])


def _crossing(a: Point, b: Point, within: float) -> list[float]:
    """Return the probability at which the path between two points leaves the allowed range.

    The result is a list of one number; it is empty if the path does not leave the range there.
    """
    if (a.drop <= within) == (b.drop <= within):
        return []
    low, high = np.sqrt(max(a.drop, 0.0)), np.sqrt(max(b.drop, 0.0))
    share = (np.sqrt(within) - low) / (high - low)
    odds = _logit(a.probability) + share * (_logit(b.probability) - _logit(a.probability))
    return [float(1.0 / (1.0 + np.exp(-odds)))]


def _drop_between(a: Point, b: Point) -> float:
    """Return the loss of log-likelihood where the path between two points has probability 0.5."""
    share = _logit(a.probability) / (_logit(a.probability) - _logit(b.probability))
    low, high = np.sqrt(max(a.drop, 0.0)), np.sqrt(max(b.drop, 0.0))
    return float((low + share * (high - low)) ** 2)


class RangeSearch:
    """First searches for better models than the given one; then computes a profile of each pair.

    Parameters
    ----------
    held : HeldFits
        The fits.
    theta : array (n, n)
        The model from which the search begins.
    data : Dataset
        The samples. Pairs of items that never occur together in them are left out.
    pairs : list of pairs or None
        The pairs to check. None: pairs that interact; they are chosen again after each better
        model.
    max_pairs : int
        Largest number of pairs if `pairs` is None.
    within : float
        The largest distance below the best model, in nats, at which a model counts for the range.

    Attributes
    ----------
    current : Visited
        The best model so far.
    moves, gain : int, float
        How often a better model replaced the current one, and how much better the current model is
        than the given one, in nats.
    found : list of PairRange
        The results, one per pair.
    """

    def __init__(
        self,
        held: HeldFits,
        theta: NDArray[np.float64],
        data: Dataset,
        pairs: list[Pair] | None,
        *,
        max_pairs: int,
        within: float,
    ) -> None:
        self.held = held
        self.within = within
        self.current = held.value_of(theta)
        self.moves = 0
        self.found: list[PairRange] = []
        # Count missing cells as absent. So a sample with missing cells still shows which of its
        # known items occur together.
        present = np.nan_to_num(data.to_frame().to_numpy(dtype=np.float64))
        self._together = (present.T @ present) > 0.0
        self._asked = pairs
        self._max_pairs = max_pairs
        self._given = self.current.value
        self._optima: list[Visited] = [self.current]
        self._rivals: dict[Pair, Visited] = {}
        # Optima that were learned again on the support of the previous pair. The keys are the ids
        # of the same optima before they were learned again.
        self._relearned: dict[int, Visited] = {}
        self._most = np.zeros(2)
        self._stopped: Callable[[], bool] = lambda: False

    @property
    def gain(self) -> float:
        """How much better the current model is than the given one, in nats."""
        return self.current.value - self._given if self.moves else 0.0

    @property
    def pairs(self) -> list[Pair]:
        """The pairs to check: the given ones, or those that interact in the current model."""
        if self._asked is not None:
            return self._asked
        strength = np.abs(self.current.theta)
        strength = np.triu(np.maximum(strength, strength.T) * self._together, 1)
        i, j = np.nonzero(strength)
        order = np.argsort(-strength[i, j], kind="stable")[: self._max_pairs]
        return [(int(i[k]), int(j[k])) for k in order]

    def run(self, limits: SearchLimits, stopped: Callable[[], bool]) -> None:
        """Search within the limits, or until `stopped` returns true."""
        self._stopped = stopped
        began = self._spent()
        evaluations = np.inf if limits.evaluations is None else limits.evaluations
        work = np.array([evaluations, limits.seconds])
        self._most = began + _SEARCH_SHARE * work
        while self._find_better(limits.moves):
            pass
        pairs = self.pairs
        with WorkProgress("orders that the data allow", len(pairs)) as bar:
            for pair in pairs:
                is_over = (self._spent() >= began + work).any()
                self._most = began if is_over else began + _LAST_PROFILE * work
                self.found.append(self._range(pair))
                bar.advance()

    def _spent(self) -> NDArray[np.float64]:
        """Return the evaluations and the predicted seconds so far."""
        return np.array([self.held.evaluations, self.held.seconds])

    # --- better models ----------------------------------------------------------------------------

    def _find_better(self, max_moves: int) -> bool:
        """Search for a better model; return whether one was found and is now the current model.

        For each pair, models are learned from starts in which the order of the pair is reversed.
        """
        best: Visited | None = None
        pairs = self.pairs
        self._rivals = {}
        try:
            with WorkProgress("rivals of the model", len(pairs)) as bar:
                for pair in pairs:
                    for rival in self._reversals(pair, pairs):
                        if best is None or rival.value > best.value:
                            best = rival
                    bar.advance()
        except _Spent:
            pass
        if best is None or not self._is_better(best) or self.moves >= max_moves:
            return False
        return self._move(best)

    def _is_better(self, rival: Visited) -> bool:
        error = float(np.hypot(rival.error, self.current.error))
        return rival.value > self.current.value + max(_RISE, 2.0 * error)

    def _move(self, rival: Visited) -> bool:
        """Learn a better model to the tolerance of the fit, and make it the current one."""
        better = self.held.fit(rival.theta, polish=True)
        if better is None or not self._is_better(better):
            return False
        self.current = better
        self.moves += 1
        self._remember(better)
        return True

    def _reversals(self, pair: Pair, pairs: list[Pair]) -> list[Visited]:
        """Return optima of fits whose start has this pair reversed, alone or with its neighbours.

        The neighbours of a pair are the other pairs that share an item with it.
        """
        held = self._rival(pair)
        ends = [] if held is None else [self._fit(held.theta)]
        near = [other for other in pairs if other != pair and set(other) & set(pair)]
        if near:
            start = self.current.theta
            for other in [*near, pair]:
                start = self.held.moved(start, other, self._opposite(other))
            ends.append(self._fit(start))
        reached = [end for end in ends if end is not None]
        for end in reached:
            self._remember(end)
        return reached

    def _opposite(self, pair: Pair) -> float:
        return -_RIVAL if self.held.log_odds(self.current.theta, pair) >= 0.0 else _RIVAL

    def _rival(self, pair: Pair) -> Visited | None:
        """Return a fit that holds a pair in the opposite order and learns all parameters.

        The result is None if the fit could not begin.
        """
        if pair not in self._rivals:
            target = self._opposite(pair)
            start = self.held.moved(self.current.theta, pair, target)
            rival = self._fit(start, Hold(pair, target))
            if rival is None:
                return None
            self._rivals[pair] = rival
        return self._rivals[pair]

    def _fit(
        self,
        theta: NDArray[np.float64],
        hold: Hold | None = None,
        support: NDArray[np.bool_] | None = None,
    ) -> Visited | None:
        if self._stopped() or (self._spent() >= self._most).any():
            raise _Spent
        return self.held.fit(theta, hold, support)

    def _remember(self, end: Visited) -> None:
        """Store an optimum if it differs from those that are stored."""
        if all(np.abs(end.theta - other.theta).max() > SAME for other in self._optima):
            self._optima.append(end)

    # --- profiles ---------------------------------------------------------------------------------

    def _range(self, pair: Pair) -> PairRange:
        """Return the range of the order of a pair. In its profile, all other entries are free."""
        p = self.held.probability(self.current.theta, pair)
        try:
            paths = self._profile(pair) if np.isfinite(p) else []
        except _Spent:
            paths = []
        best = max((value for path in paths for _, value in path), default=np.nan)
        drops = [[Point(q, best - value) for q, value in path if np.isfinite(q)] for path in paths]
        if not any(drops):
            return PairRange(pair, p, np.nan, np.nan, np.nan, checked=False)
        low, high, evidence = range_of(drops, self.within)
        evidence = evidence if p >= 0.5 else -evidence
        return PairRange(pair, p, min(low, p), max(high, p), evidence, checked=True)

    def _support(self, pair: Pair, models: list[Visited]) -> NDArray[np.bool_]:
        """Return a mask of the interactions of all these models, and of the entries of the pair."""
        support = np.eye(len(self.current.theta), dtype=bool)
        for model in models:
            support |= model.theta != 0.0
        support[list(pair), list(pair[::-1])] = True
        return support

    def _profile(self, pair: Pair) -> list[list[tuple[float, float]]]:
        """Return paths of (P(i before j), value) on a support that both orders share.

        The support has three kinds of interactions: those of the model, those of the best model
        with the opposite order (learned with the penalty), and those of other optima that are
        nearly as good.
        """
        rival = self._rival(pair)
        near = sorted(self._optima, key=lambda end: -end.value)[:_MOST_OPTIMA]
        near = [end for end in near if self.current.value - end.value <= _NEARBY]
        support = self._support(pair, [self.current, *near, *([rival] if rival else [])])
        starts = [(self.current, 0.0), *((end, 0.0) for end in near if end is not self.current)]
        if rival is not None:
            starts.append((rival, self._opposite(pair)))
        paths: list[list[tuple[float, float]]] = []
        best = -np.inf
        tops: list[Visited] = []
        for start, target in starts:
            top = self._top(start, target, pair, support)
            if top is None or any(np.abs(top.theta - t.theta).max() <= SAME for t in tops):
                continue
            tops.append(top)
            best = max(best, top.value)
            for direction in (1.0, -1.0):
                paths.append(self._follow(top, pair, direction, (support, best)))
                best = max(best, *(value for _, value in paths[-1]))
        return paths

    def _top(
        self, start: Visited, target: float, pair: Pair, support: NDArray[np.bool_]
    ) -> Visited | None:
        """Return the model at which a profile begins: `start`, learned again on the support.

        If `target` is not 0, the fit holds the order of the pair at this value. Otherwise `start`
        is an optimum that is used for several pairs. Their supports are similar, so the fit starts
        from the result for the previous pair.
        """
        if target:
            return self._fit(start.theta, Hold(pair, target), support)
        near = self._relearned.get(id(start), start)
        top = self._fit(np.where(support, near.theta, 0.0), None, support)
        if top is not None:
            self._relearned[id(start)] = top
        return top

    def _follow(
        self,
        top: Visited,
        pair: Pair,
        direction: float,
        frame: tuple[NDArray[np.bool_], float],
    ) -> list[tuple[float, float]]:
        """Return a path of (P(i before j), value) from `top` in one direction.

        The target of the log-odds moves step by step, until the log-likelihood is too low.
        """
        support, best = frame
        path = [(self.held.probability(top.theta, pair), top.value)]
        model = top
        target = self.held.log_odds(top.theta, pair)
        # A path that leads away from probability 0.5 will not reach the opposite order. So treat it
        # as if it had already crossed 0.5.
        crossed = (path[0][0] >= 0.5) == (direction > 0.0)
        for _ in range(_MOST_STEPS):
            p, value = path[-1]
            towards = p if direction > 0.0 else 1.0 - p
            # Outside the range, the path continues for one purpose: to find how far below the best
            # model it reaches the opposite order. This distance is the evidence.
            most = self.within if crossed else self.within + _EVIDENCE
            if best - value > most or towards > 1.0 - _EDGE:
                break
            target += direction * _STEP
            start = self.held.moved(model.theta, pair, target)
            further = self._fit(start, Hold(pair, target), support)
            if further is None:
                break
            model = further
            best = max(best, model.value)
            path.append((self.held.probability(model.theta, pair), model.value))
            crossed = crossed or (path[-1][0] >= 0.5) != (path[0][0] >= 0.5)
        return path
