"""The paths of one pair: models whose order moves step by step, and the range that they give.

A path begins at a model (its top). The log-odds of the pair move step by step in one direction, and
after each step all other parameters are learned again. The path ends when the log-likelihood is too
low. Paths from different tops often meet, because they lead through the same models. A path
ends where it meets another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sequela.questions.order_profile import Hold

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sequela.questions.order_profile import HeldFits, Pair, Visited

    Fit = Callable[[NDArray[np.float64], Hold], Visited | None]

__all__ = ["PairPaths", "Point", "range_of"]

# The log-odds between two points of a path. The first step is _STEP. Later steps aim at the end of
# the range, and are between _SHORTEST and _LONGEST.
_STEP = 1.25
_SHORTEST, _LONGEST = 0.5, 1.75
# The aim is slightly beyond the end of the range, so that the end is between two points.
_BEYOND = 1.05
_MOST_STEPS = 5
_EVIDENCE = 3.0  # to reach the opposite order, a path may lose this many nats more than `within`
_EDGE = 0.02  # a path towards 0 (or 1) ends when its probability is this close to 0 (or 1)
# Two paths meet if a model on one path is close to the other path. Between the models of the other
# path, theta and the log-likelihood are interpolated. The model may differ from them by at most
# _APART in every parameter outside the pair, and by at most _LEVEL nats.
_APART = 0.3
_LEVEL = 0.3
# A new start continues the last change of theta, unless the log-odds changed by less than _SHORTEST
# divided by this number.
_CONTINUED = 2.0


@dataclass(frozen=True)
class Point:
    """One model on a path: its P(i before j), and how far it is below the best model, in nats."""

    probability: float
    drop: float


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


@dataclass(frozen=True)
class _Stop:
    """A model on a path: the log-odds of its pair (`order_log_odds`), and P(i before j)."""

    model: Visited
    odds: float
    probability: float

    @property
    def value(self) -> float:
        return self.model.value


class PairPaths:
    """The paths of one pair of items: series of models in which the order of the pair moves.

    In all these models, the same entries of theta (the support) may differ from zero.

    Parameters
    ----------
    held : HeldFits
        Computes the probabilities and the log-odds of orders.
    pair : (i, j)
        The pair.
    fit : callable
        Learns a model from a theta, with a held order.
    within : float
        The largest distance below the best model, in nats, at which a model counts for the range.
    """

    def __init__(self, held: HeldFits, pair: Pair, fit: Fit, within: float) -> None:
        self._held = held
        self._pair = pair
        self._fit = fit
        self._within = within
        self._paths: list[list[_Stop]] = []
        self._best = -np.inf

    @property
    def points(self) -> list[list[Point]]:
        """The points of all paths; models in which both items never occur together are left out."""
        paths = [[stop for stop in path if np.isfinite(stop.probability)] for path in self._paths]
        return [
            [Point(s.probability, self._best - s.value) for s in path] for path in paths if path
        ]

    def add(self, top: Visited) -> None:
        """Follow the paths from a model in both directions."""
        first = self._stop(top)
        if self._meets(first):
            self._paths.append([first])
            return
        tangent = None
        for direction in (1.0, -1.0):
            path = self._follow(first, direction, tangent)
            self._paths.append(path)
            tangent = _tangent(path[1], path[0]) if len(path) > 1 else None

    def _stop(self, model: Visited) -> _Stop:
        self._best = max(self._best, model.value)
        odds = self._held.log_odds(model.theta, self._pair)
        return _Stop(model, odds, self._held.probability(model.theta, self._pair))

    def _follow(
        self, first: _Stop, direction: float, tangent: NDArray[np.float64] | None
    ) -> list[_Stop]:
        """Return a path: models in which the log-odds of the pair move in one direction.

        The path begins at the model `first`. The log-odds increase if `direction` is 1, and
        decrease if it is -1.
        """
        path = [first]
        target = first.odds
        while len(path) <= _MOST_STEPS and not self._is_over(path, direction):
            step = direction * self._step(path)
            target += step
            start = self._held.moved(path[-1].model.theta, self._pair, target)
            if tangent is not None:
                start += (target - path[-1].odds) * self._outside_pair(tangent)
            further = self._fit(start, Hold(self._pair, target))
            if further is None:
                break
            path.append(self._stop(further))
            if self._meets(path[-1]):
                break
            tangent = _tangent(path[-2], path[-1])
        return path

    def _is_over(self, path: list[_Stop], direction: float) -> bool:
        first, last = path[0], path[-1]
        # A path that leads away from 0.5 will not reach the opposite order.
        away = (first.probability >= 0.5) == (direction > 0.0)
        crossed = away or (last.probability >= 0.5) != (first.probability >= 0.5)
        # Outside the range, the path continues for one purpose: to find how many nats
        # below the best model the order becomes the opposite one. This number is the evidence.
        most = self._within if crossed else self._within + _EVIDENCE
        towards = last.probability if direction > 0.0 else 1.0 - last.probability
        return self._best - last.value > most or towards > 1.0 - _EDGE

    def _step(self, path: list[_Stop]) -> float:
        """Return the size of the next step, which aims at the end of the range."""
        drop = self._best - path[-1].value
        if len(path) == 1 or drop > self._within:
            return _STEP
        before, here = (np.sqrt(max(self._best - stop.value, 0.0)) for stop in path[-2:])
        slope = (here - before) / max(abs(path[-1].odds - path[-2].odds), 1e-3)
        wanted = _BEYOND * np.sqrt(self._within) - here
        return float(np.clip(wanted / slope, _SHORTEST, _LONGEST)) if slope > 0.0 else _LONGEST

    def _meets(self, stop: _Stop) -> bool:
        """Return whether a model lies on a path that is already known."""
        for path in self._paths:
            for a, b in pairwise(path):
                if (a.odds - stop.odds) * (b.odds - stop.odds) <= 0.0 and a.odds != b.odds:
                    share = (stop.odds - a.odds) / (b.odds - a.odds)
                    theta = a.model.theta + share * (b.model.theta - a.model.theta)
                    apart = np.abs(self._outside_pair(stop.model.theta - theta)).max()
                    value = a.value + share * (b.value - a.value)
                    if apart <= _APART and abs(stop.value - value) <= _LEVEL:
                        return True
        return False

    def _outside_pair(self, entries: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return entries of theta, with 0 for those between the two items of the pair."""
        outside = entries.copy()
        outside[np.ix_(self._pair, self._pair)] = 0.0
        return outside


def _tangent(a: _Stop, b: _Stop) -> NDArray[np.float64] | None:
    """Return the change of theta per unit of the log-odds, from a to b."""
    if abs(b.odds - a.odds) < _SHORTEST / _CONTINUED:
        return None
    tangent: NDArray[np.float64] = (b.model.theta - a.model.theta) / (b.odds - a.odds)
    return tangent
