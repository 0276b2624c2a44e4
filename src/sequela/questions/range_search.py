"""The search behind `order_ranges`: for better models, and for the range of each order.

The profile of a pair is a series of models in which the order of the pair moves step by step
(`order_paths`). A rival of a model is another model in which the order of a pair is the opposite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sequela.learning.optima import SAME
from sequela.questions.order_paths import PairPaths, range_of
from sequela.questions.order_profile import Hold
from sequela.support.progress import WorkProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.questions.order_paths import Point
    from sequela.questions.order_profile import HeldFits, Pair, Visited

__all__ = ["PairRange", "RangeSearch", "SearchLimits"]

_RISE = 1e-3  # a model that is better by fewer nats does not replace the current one
_RIVAL = 1.0  # a rival is fitted with its pair held near these log-odds of the opposite order
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
class PairRange:
    """The result for a pair (i, j).

    `probability` is P(i before j), and `low` to `high` is its range.
    """

    pair: Pair
    probability: float
    low: float
    high: float
    evidence: float
    checked: bool


class _Spent(Exception):  # noqa: N818 - not an error: it ends nested loops
    """Ends the search, because a limit of its work is reached or a signal was received."""


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
        The pairs to check. None: pairs that interact. These are chosen again whenever a better
        model replaces the current one.
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
        # The current model and the optima nearby, learned again without the penalty, on the support
        # that all pairs have in common. None if they have not been computed yet.
        self._tops: list[Visited] | None = None
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
        ends = [] if held is None else [self._fit(held.theta, known=self._optima)]
        near = [other for other in pairs if other != pair and set(other) & set(pair)]
        if near:
            start = self.current.theta
            for other in [*near, pair]:
                start = self.held.moved(start, other, self._opposite(other))
            ends.append(self._fit(start, known=self._optima))
        reached = [end for end in ends if end is not None]
        for end in reached:
            self._remember(end)
        return reached

    def _opposite(self, pair: Pair) -> float:
        return -_RIVAL if self.held.log_odds(self.current.theta, pair) >= 0.0 else _RIVAL

    def _rival(self, pair: Pair) -> Visited | None:
        """Return a fit in which the order of a pair is held near the opposite of the current one.

        The result is None if the theta at the start is out of range.
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
        known: Sequence[Visited] = (),
    ) -> Visited | None:
        if self._stopped() or (self._spent() >= self._most).any():
            raise _Spent
        return self.held.fit(theta, hold, support, known=known)

    def _remember(self, end: Visited) -> None:
        """Store an optimum if it differs from those that are stored."""
        if not any(_is_same(end, other) for other in self._optima):
            self._optima.append(end)

    # --- profiles ---------------------------------------------------------------------------------

    def _range(self, pair: Pair) -> PairRange:
        """Return the range of the order of a pair, from its profile."""
        p = self.held.probability(self.current.theta, pair)
        try:
            paths = self._profile(pair) if np.isfinite(p) else []
        except _Spent:
            paths = []
        if not paths:
            return PairRange(pair, p, np.nan, np.nan, np.nan, checked=False)
        low, high, evidence = range_of(paths, self.within)
        evidence = evidence if p >= 0.5 else -evidence
        return PairRange(pair, p, min(low, p), max(high, p), evidence, checked=True)

    def _profile(self, pair: Pair) -> list[list[Point]]:
        """Return the points of all paths of a pair, on a support that both orders share.

        The support has the interactions of three kinds of models: the current model, the best model
        with the opposite order (learned with the penalty), and other optima that are nearly as
        good. Profiles begin at the model, at the optima nearby, and at the best model with the
        opposite order. All of them are learned again without the penalty.
        """
        rival = self._rival(pair)
        near = self._near()
        support = self._support([self.current, *near, *([rival] if rival else [])])
        support[list(pair), list(pair[::-1])] = True
        paths = PairPaths(
            self.held, pair, lambda theta, hold: self._fit(theta, hold, support), self.within
        )
        tops: list[Visited] = []
        for common in self._common_tops(near):
            top = self._fit(common.theta, None, support, known=tops)
            if top is not None and not any(_is_same(top, other) for other in tops):
                tops.append(top)
                paths.add(top)
        if rival is not None:
            top = self._fit(rival.theta, Hold(pair, self._opposite(pair)), support)
            if top is not None:
                paths.add(top)
        return paths.points

    def _support(self, models: list[Visited]) -> NDArray[np.bool_]:
        """Return a mask of the base rates, and of the interactions that any of the `models` has."""
        support = np.eye(len(self.current.theta), dtype=bool)
        for model in models:
            support |= model.theta != 0.0
        return support

    def _near(self) -> list[Visited]:
        """Return the best optima that are known, without the current model."""
        near = sorted(self._optima, key=lambda end: -end.value)[:_MOST_OPTIMA]
        near = [end for end in near if self.current.value - end.value <= _NEARBY]
        return [end for end in near if end is not self.current]

    def _common_tops(self, near: list[Visited]) -> list[Visited]:
        """Return the current model and the optima nearby, learned again without the penalty.

        They are learned on the support that all pairs have in common. The profile of each pair
        begins at these models, and adds the interactions that only this pair needs. If two optima
        lead to the same model, the second is left out.
        """
        if self._tops is None:
            support = self._support([self.current, *near])
            tops: list[Visited] = []
            for optimum in [self.current, *near]:
                top = self._fit(optimum.theta, None, support, known=tops)
                if top is not None and not any(_is_same(top, other) for other in tops):
                    tops.append(top)
            self._tops = tops
        return self._tops


def _is_same(one: Visited, other: Visited) -> bool:
    return bool(np.abs(one.theta - other.theta).max() <= SAME)
