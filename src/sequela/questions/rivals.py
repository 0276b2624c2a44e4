"""Can the data tell which of two items came first? Every order is tried against its reverse.

Two items alone cannot tell (Proposition 1): a whole family of models, from "always 1 first" to
"always 2 first", has the same distribution of sets. Only the other items, as a clock, can. So for
each pair that interacts, the pair's own parameters are moved along that family to the opposite
order, everything is learned anew from there, and both ends are compared after refits without
penalty. Where learning goes back to the first order, the reverse is held: a refit in which the
arrow between the two points the other way. What remains is the evidence for the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.data.dataset import Dataset
from sequela.learning.optima import SAME
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.refit import OnSupport, Refit, WarmFits
from sequela.model import Model
from sequela.questions.arguments import as_model, find_items, rate_of
from sequela.questions.order import order_probability
from sequela.questions.theory import two_item_family_of
from sequela.support.errors import InputError
from sequela.support.progress import WorkProgress
from sequela.support.random import materialise_seed
from sequela.support.validation import is_number, positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from sequela.support.random import RandomState

__all__ = ["Rivals", "reverse_order", "rival_orders"]

# Neither order of a reversed pair is made impossible: the solver could not come back from there.
_LEAST_SHARE = 0.02
_MOST_MOVES = 20
_RISE = 1e-2  # nats: less is not worth a move
_COLUMNS = [
    "first", "second", "probability", "rival_probability", "evidence", "evidence_se", "penalised",
    "optimum",
]  # fmt: skip


@dataclass(frozen=True)
class Rivals:
    """The orders of interacting pairs, each against its reverse.

    Attributes
    ----------
    table : DataFrame
        One row a pair, the least certain first: "first", "second" (as in the model), "probability"
        (first before second, given both), "rival_probability" (the same in the rival), "evidence"
        for the order of the model (difference of the log-likelihoods, in nats; below about 2 the
        data do not tell), "evidence_se" (its Monte Carlo error), "penalised" (the
        same difference with the penalty and without refits, over all samples), "optimum" (whether
        the rival is an optimum of the penalised likelihood, too, or only with its arrow held).
    model : Model
        The model whose orders they are: the best that was found.
    refit : Refit
        Its refit without penalty.
    moves : int
        How often a rival was better than the model at hand and took its place.
    optimum : bool
        Whether the model is an optimum of the penalised likelihood; False: its arrows are held.
    """

    table: pd.DataFrame
    model: Model
    refit: Refit
    moves: int
    optimum: bool


def reverse_order(theta: NDArray[np.float64], i: int, j: int) -> NDArray[np.float64]:
    """Return theta with items i and j moved along Proposition 1's family to the opposite order.

    Of the two alone the distribution of sets stays the same, and the item that mostly came first
    now mostly comes second.

    Examples
    --------
    >>> theta = np.array([[0.0, 4.0], [0.0, -4.0]])
    >>> reverse = reverse_order(theta, 0, 1)
    >>> family = two_item_family_of(theta)
    >>> p = [family.order_probability(float(np.exp(t[0, 0]))) for t in (theta, reverse)]
    >>> [round(x, 3) for x in p], family.contains(reverse)
    ([0.982, 0.02], True)
    """
    block = np.ix_([i, j], [i, j])
    family = two_item_family_of(theta[block])
    low, high = family.interval
    now = float(family.order_probability(np.clip(np.exp(theta[i, i]), low, high)))
    share = _LEAST_SHARE if now >= 0.5 else 1.0 - _LEAST_SHARE
    reverse = theta.copy()
    reverse[block] = family.theta(low + share * (high - low))
    return reverse


def rival_orders(
    model: Any,
    data: Any,
    *,
    pairs: Iterable[tuple[str, str]] | None = None,
    times: Iterable[object] | None = None,
    penalty: float | None = None,
    least_effect: float = 1.0,
    most_pairs: int = 50,
    search: bool = True,
    random_state: RandomState = None,
    **options: Any,
) -> Rivals:
    """Try every order of a learned model against its reverse.

    Parameters
    ----------
    model : Model or fitted SetChain
        Whose orders are in question.
    data : Dataset, DataFrame, array or list of sets
        What it was learned from.
    pairs : iterable of (item, item) or None
        Which pairs; None: those with an interaction of at least `least_effect` that promotes.
    times : array or None
        Observation times, if they are known.
    penalty : float or None
        Of the fits; None: the one that the model was learned with.
    least_effect : float
        How strong an interaction makes its pair a candidate.
    most_pairs : int
        At most so many pairs, those with the strongest interactions.
    search : bool
        Go on from a rival that is better than the model, until none is.
    random_state : int, Generator or None
        Seed of sampled sets.
    **options
        `tol`, `max_iter`, `observation_rate`, `budget`, `chains`, `n_threads` as in `SetChain`.

    Returns
    -------
    Rivals
        The table of pairs, and the best model that was found.

    Examples
    --------
    >>> import numpy as np
    >>> from sequela import fit, simulate
    >>> theta = np.diag([0.0, -4.0] + 20 * [-2.5])
    >>> theta[0, 1] = 4.0
    >>> sets = simulate(theta, 500, random_state=1).to_dataset().without_times()
    >>> found = rival_orders(fit(sets, penalty=0.02), sets, random_state=1)
    >>> found.table[["first", "second"]].to_dict("list")
    {'first': ['0'], 'second': ['1']}
    >>> bool(found.table["evidence"].iloc[0] > 2.0)
    True
    """
    current = as_model(model)
    if penalty is None:
        penalty = float(current.metadata.get("penalty", 0.01))
    strength = OffDiagonalL1(penalty)
    if not (is_number(least_effect) and least_effect > 0.0):
        raise InputError(f"least_effect is {least_effect!r}; expected a positive number")
    options.setdefault("observation_rate", rate_of(current, None))
    samples = Dataset.coerce(data, times=times).select_items(current.items)
    fits = WarmFits(samples, seed=materialise_seed(random_state), **options)
    most_pairs = positive_integer("most_pairs", most_pairs)
    asked = None if pairs is None else [_places(current, pair) for pair in pairs]
    at_hand = fits.refit(current)
    optimum = True
    moves = 0
    while True:
        found = asked if asked is not None else _candidates(current.theta, least_effect, most_pairs)
        rivals = []
        with WorkProgress("orders against their reverse", len(found)) as bar:
            for i, j in found:
                rivals.append(_rival(current, at_hand, fits, strength, i, j))
                bar.advance()
        better = [r for r in rivals if r.advantage < -max(_RISE, 2.0 * r.error)]
        if not (search and better and moves < _MOST_MOVES):
            break
        best = min(better, key=lambda rival: rival.advantage)
        current, at_hand, optimum = best.model, best.refit, best.optimum
        moves += 1
    rows = [
        _row(current, rival, fits, strength, pair)
        for rival, pair in zip(rivals, found, strict=True)
    ]
    table = pd.DataFrame(rows, columns=_COLUMNS).sort_values("evidence", ignore_index=True)
    return Rivals(table, current, at_hand, moves, optimum)


def _places(model: Model, pair: Any) -> tuple[int, int]:
    if isinstance(pair, str) or len(tuple(pair)) != 2:
        raise InputError(f"pairs has the entry {pair!r}; expected a pair of two items")
    i, j = find_items(model, pair, "pairs")
    return int(i), int(j)


def _candidates(theta: NDArray[np.float64], least: float, most: int) -> list[tuple[int, int]]:
    """Return pairs of which one item promotes the other, the strongest effects first."""
    off = theta.copy()
    np.fill_diagonal(off, 0.0)
    strength = np.triu(np.maximum(off, off.T))
    i, j = np.nonzero(strength >= least)
    order = np.argsort(-strength[i, j], kind="stable")[:most]
    return [(int(i[k]), int(j[k])) for k in order]


@dataclass(frozen=True)
class _Rival:
    """The reverse of one order: the evidence against it, and whether it is an optimum.

    `advantage` is that of the model at hand over the whole rival, by the score of refits.
    """

    evidence: float
    error: float
    advantage: float
    model: Model
    refit: Refit
    optimum: bool


def _rival(
    current: Model, at_hand: Refit, fits: WarmFits, penalty: OffDiagonalL1, i: int, j: int
) -> _Rival:
    """Learn the reverse of the order of i and j: as an optimum, or with the arrow held."""
    try:
        start = reverse_order(current.theta, i, j)
    except InputError:
        start = current.theta.copy()  # never together, or never apart: no family to move along
        start[i, j], start[j, i] = start[j, i], start[i, j]
    free = Model(fits.fit(start, penalty).theta, current.items, current.metadata)
    if _differ(free, current):
        return _weigh(current, at_hand, free, fits, (i, j), optimum=True)
    held = start.copy()
    first, second = (i, j) if current.theta[i, j] >= current.theta[j, i] else (j, i)
    held[first, second] = 0.0
    support = (held != 0.0) | np.eye(len(held), dtype=bool)
    end = fits.fit(held, OnSupport(support, penalty.strength))
    bound = Model(end.theta, current.items, current.metadata)
    found = _weigh(current, at_hand, bound, fits, (i, j), optimum=False)
    # The reverse may be an optimum after all, which this nearer start finds.
    free = Model(fits.fit(end.theta, penalty).theta, current.items, current.metadata)
    if _differ(free, current):
        other = _weigh(current, at_hand, free, fits, (i, j), optimum=True)
        if other.advantage <= found.advantage:
            return other
    return found


def _differ(a: Model, b: Model) -> bool:
    return bool(np.abs(a.theta - b.theta).max() > SAME)


def _weigh(
    current: Model,
    at_hand: Refit,
    rival: Model,
    fits: WarmFits,
    pair: tuple[int, int],
    *,
    optimum: bool,
) -> _Rival:
    """Weigh a rival: by evidence about the pair alone, and as a whole.

    For the evidence both are refitted with the interactions of either, but for the pair's own:
    otherwise one elsewhere, which only one of them happened to pick up, would count.
    """
    either = (current.theta != 0.0) | (rival.theta != 0.0)
    either[list(pair), list(pair[::-1])] = False
    again = fits.refit(rival)
    wide = fits.refit(again.model, either)
    here = fits.refit(at_hand.model, either) if (either & (current.theta == 0.0)).any() else at_hand
    return _Rival(
        evidence=here.log_likelihood - wide.log_likelihood,
        error=float(np.hypot(wide.log_likelihood_se, here.log_likelihood_se)),
        advantage=at_hand.score - again.score,
        model=rival,
        refit=again,
        optimum=optimum,
    )


def _row(
    current: Model, rival: _Rival, fits: WarmFits, penalty: OffDiagonalL1, pair: tuple[int, int]
) -> dict[str, Any]:
    """Return one row of the table, named so that the likelier item is the first."""
    i, j = pair
    here, there = (
        float(order_probability(m, current.items[i], current.items[j], random_state=fits.seed))
        for m in (current, rival.model)
    )
    if here < 0.5:
        i, j, here, there = j, i, 1.0 - here, 1.0 - there
    ours, theirs = (
        fits.log_likelihood(m.theta)[0] - len(fits.data) * penalty.value(m.theta)
        for m in (current, rival.model)
    )
    return {
        "first": current.items[i], "second": current.items[j], "probability": here,
        "rival_probability": there, "evidence": rival.evidence, "evidence_se": rival.error,
        "penalised": ours - theirs, "optimum": rival.optimum,
    }  # fmt: skip
