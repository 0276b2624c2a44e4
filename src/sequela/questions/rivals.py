"""Compare every order of a learned model with the opposite order.

Samples of two items alone contain no information about their order (Proposition 1): a whole family
of models, from "always 1 first" to "always 2 first", has the same distribution of sets. Only the
other items, which act as a clock, determine the order. So for each pair that interacts, its
parameters are moved along this family to the opposite order, and the model is learned again from
there. If this fit returns to the learned model, another fit is made that must keep the opposite
order: the stronger of the two effects within the pair is fixed at 0, so the items can interact only
in the opposite direction. The learned model and the model with the opposite order are compared
after both are refitted without the penalty. The difference of their log-likelihoods is the evidence
for the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.learning.optima import SAME
from sequela.learning.penalties import OffDiagonalL1, OnSupport
from sequela.learning.refitting import Refit, WarmFits
from sequela.learning.solvers.contract import Limits
from sequela.likelihood.parameters import Parameters
from sequela.model import Model, as_model
from sequela.questions.arguments import find_items
from sequela.questions.order import order_probability
from sequela.questions.theory import two_item_family_of
from sequela.samples import as_samples
from sequela.settings import SettingsKeywords, read_settings
from sequela.support.errors import InputError
from sequela.support.naming import argument
from sequela.support.progress import WorkProgress
from sequela.support.validation import check_tolerance, is_number, positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.model import ModelLike
    from sequela.settings import Settings

__all__ = ["RivalKeywords", "Rivals", "reverse_order", "rival_orders"]

# When a pair is reversed, either order keeps at least this probability. If one order became
# impossible, the solver could not return to it.
_LEAST_SHARE = 0.02
_MAX_MOVES = 20
_RISE = 1e-2  # a model that is better by fewer nats does not replace the current one
_COLUMNS = [
    "first", "second", "probability", "rival_probability", "evidence", "evidence_se", "penalised",
    "optimum",
]  # fmt: skip


@dataclass(frozen=True)
class Rivals:
    """Comparison of the orders of interacting pairs with the opposite orders.

    A rival is the best model with the opposite order of a pair.

    Attributes
    ----------
    table : DataFrame
        One row per pair, the least certain first. "first" is the item that more probably arrives
        first in the model, and "second" is the other item. "probability" is P(first before second),
        given that both are observed. "rival_probability" is the same in the rival. If it is also
        above 0.5, no model with the opposite order was found, and the rival is another model with
        the same order. "evidence" is the evidence for the order of the model: the difference of the
        log-likelihoods, in nats. If it is below about 2, the data cannot tell the order. It can be
        negative, because both orders are compared with the same interactions, and the model was
        chosen by its score (`Refit.score`), in which each interaction costs one nat. "evidence_se"
        is its Monte Carlo error. "penalised" is the same difference with the penalty and without
        refits, over all samples. "optimum" says whether the rival is an optimum of the penalised
        likelihood. If not, it comes from a fit that had to keep the opposite order.
    model : Model
        The model that has these orders: the best model that was found.
    refit : Refit
        Refit of the model without the penalty.
    moves : int
        Number of times that a rival was better than the current model and replaced it.
    optimum : bool
        Whether the model is an optimum of the penalised likelihood. If False, it comes from a fit
        that had to keep an order.
    """

    table: pd.DataFrame
    model: Model
    refit: Refit
    moves: int
    optimum: bool


def reverse_order(
    theta: NDArray[np.float64], i: int, j: int, stop_rate: float = 1.0
) -> NDArray[np.float64]:
    """Return theta with the order of items i and j reversed, along the family of Proposition 1.

    The distribution of sets in the model of these two items alone stays the same. The item that
    mostly arrived first now mostly arrives second. `stop_rate` is the rate of the observation.

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
    # The formulas of the family assume that samples are observed at rate 1. Therefore divide the
    # base rates by the rate of the observation.
    relative = np.diag([np.log(stop_rate)] * 2)
    pair = theta[block] - relative
    family = two_item_family_of(pair)
    low, high = family.interval
    now = float(family.order_probability(np.clip(np.exp(pair[0, 0]), low, high)))
    share = _LEAST_SHARE if now >= 0.5 else 1.0 - _LEAST_SHARE
    reverse = theta.copy()
    reverse[block] = family.theta(low + share * (high - low)) + relative
    return reverse


class RivalKeywords(SettingsKeywords, total=False):
    """The options of `rival_orders`: settings, tolerances of the fits, and choice of pairs."""

    least_effect: float
    max_pairs: int
    tol: float
    max_iter: int


def rival_orders(
    model: ModelLike,
    data: DataLike,
    *,
    pairs: Iterable[tuple[str, str]] | None = None,
    times: Iterable[object] | None = None,
    penalty: float | None = None,
    search: bool = True,
    **options: Unpack[RivalKeywords],
) -> Rivals:
    """Compare every order of a learned model with the opposite order.

    One pair is reversed at a time. Both orders are compared on the same support, which has the
    interactions of both models. If several pairs must be reversed together for a better rival (a
    cascade), the evidence is too large. `order_ranges` also reverses cascades, and returns the
    range of probabilities that the data allow.

    Parameters
    ----------
    model : Model or fitted SetChain
        The model whose orders are checked.
    data : Dataset, DataFrame, array or list of sets
        The samples from which the model was learned.
    pairs : iterable of (item, item) or None
        The pairs to compare; None: pairs with a positive interaction of at least `least_effect`.
    times : array or None
        Observation times, if they are known.
    penalty : float or None
        Penalty of the fits; None: the penalty with which the model was learned.
    search : bool
        Whether to continue the search from a rival that is better than the model, until no rival is
        better.
    **options
        `least_effect`: smallest interaction of a pair (default 1). `max_pairs`: largest number of
        pairs; the pairs with the strongest interactions are used (default 50). `tol` and `max_iter`
        of the fits: as in `SetChain`. `budget`, `sampling`, `random_state`, `n_threads`: as in
        `Settings`.

    Returns
    -------
    Rivals
        The table of pairs, and the best model that was found.

    Examples
    --------
    >>> from sequela import fit, simulate
    >>> theta = np.diag([0.0, -4.0] + 20 * [-2.5])
    >>> theta[0, 1] = 4.0
    >>> sets = simulate(theta, 500, random_state=1).to_dataset().without_times()
    >>> rivals = rival_orders(fit(sets, penalty=0.02), sets, random_state=1)
    >>> rivals.table[["first", "second"]].to_dict("list")
    {'first': ['0'], 'second': ['1']}
    >>> bool(rivals.table["evidence"].iloc[0] > 2.0)
    True
    """
    given: dict[str, Any] = dict(options)
    tol = given.pop("tol", 1e-4)
    check_tolerance(tol)
    limits = Limits(tol=tol, max_iter=positive_integer("max_iter", given.pop("max_iter", 500)))
    least_effect = given.pop("least_effect", 1.0)
    max_pairs = positive_integer("max_pairs", given.pop("max_pairs", 50))
    how = read_settings(given, unused=("draws", "target_se"))
    current = as_model(model, instead="posterior.orders()")
    if penalty is None:
        penalty = float(current.metadata.get("penalty", 0.01))
    strength = OffDiagonalL1(penalty)
    if not (is_number(least_effect) and least_effect > 0.0):
        raise InputError(
            f"{argument('least_effect')} is {least_effect!r}; expected a positive number"
        )
    samples = as_samples(current, data, times)
    fits = WarmFits(samples, current.observation, how, limits, current.metadata.get("fixed"))
    asked = None if pairs is None else [_places(current, pair) for pair in pairs]
    current_refit = fits.refit(current)
    optimum = True
    moves = 0
    while True:
        tried = asked if asked is not None else _candidates(current.theta, least_effect, max_pairs)
        rivals: list[_Rival] = []
        candidates: list[_Rival] = []
        with WorkProgress("orders against their reverse", len(tried)) as bar:
            for i, j in tried:
                found = _rivals(current, current_refit, fits, strength, (i, j), how)
                rivals.append(found[0])
                candidates += found
                bar.advance()
        better = [r for r in candidates if r.advantage < -max(_RISE, 2.0 * r.error)]
        if not (search and better and moves < _MAX_MOVES):
            break
        best = min(better, key=lambda rival: rival.advantage)
        current, current_refit, optimum = best.model, best.refit, best.optimum
        moves += 1
    rows = [
        _row(current, rival, pair, fits, strength, how)
        for rival, pair in zip(rivals, tried, strict=True)
    ]
    table = pd.DataFrame(rows, columns=_COLUMNS).sort_values("evidence", ignore_index=True)
    return Rivals(table, current, current_refit, moves, optimum)


def _places(model: Model, pair: Any) -> tuple[int, int]:
    if isinstance(pair, str) or len(tuple(pair)) != 2:
        raise InputError(f"pairs has the entry {pair!r}; expected a pair of two items")
    i, j = find_items(model, pair, "pairs")
    return int(i), int(j)


def _candidates(
    theta: NDArray[np.float64], least_effect: float, max_pairs: int
) -> list[tuple[int, int]]:
    """Return pairs in which one item increases the rate of the other, the strongest first."""
    off = theta.copy()
    np.fill_diagonal(off, 0.0)
    strength = np.triu(np.maximum(off, off.T))
    i, j = np.nonzero(strength >= least_effect)
    order = np.argsort(-strength[i, j], kind="stable")[:max_pairs]
    return [(int(i[k]), int(j[k])) for k in order]


@dataclass(frozen=True)
class _Rival:
    """The rival of one order, with its evidence, and whether it is an optimum.

    `advantage` is the score of the refit of the current model minus the score of the rival's refit.
    """

    evidence: float
    error: float
    advantage: float
    model: Model
    refit: Refit
    optimum: bool


def _with_theta(model: Model, theta: NDArray[np.float64]) -> Model:
    return Model(theta, model.items, model.metadata, observation=model.observation)


def _before(model: Model, pair: tuple[int, int], settings: Settings) -> float:
    """Return the probability that the first item of a pair of positions comes first."""
    first, second = (model.items[at] for at in pair)
    return float(order_probability(model, first, second, settings=settings))


def _rivals(
    current: Model,
    current_refit: Refit,
    fits: WarmFits,
    penalty: OffDiagonalL1,
    pair: tuple[int, int],
    settings: Settings,
) -> list[_Rival]:
    """Learn models from a start with the opposite order; return a list that begins with the rival.

    If the fit from this start ends at an optimum with the opposite order, this optimum is the
    rival. Otherwise two more fits are made. In the first, the larger of the two effects within
    the pair is fixed at 0, as are all interactions that are 0 at the start. The second begins at
    the result of the first, and all entries are free. A fit can also end at an optimum that has the
    order of the current model and differs from this model in other interactions. Such an optimum
    says nothing about the order, but it can be better than the current model, so the list contains
    it. It is the rival only if no model with the opposite order was found.
    """
    i, j = pair
    try:
        start = reverse_order(current.theta, i, j, Parameters.of(current).stop_rate)
    except InputError:
        start = (
            current.theta.copy()
        )  # the pair has no family of Proposition 1: exchange its effects
        start[i, j], start[j, i] = start[j, i], start[i, j]
    free = _with_theta(current, fits.fit(start, penalty)[0].theta)
    ahead = _before(current, pair, settings) >= 0.5

    def is_opposite(rival: _Rival) -> bool:
        return (_before(rival.model, pair, settings) >= 0.5) != ahead

    same: list[_Rival] = []
    if _differ(free, current):
        rival = _weigh(current, current_refit, free, fits, pair, optimum=True)
        if is_opposite(rival):
            return [rival]
        same.append(rival)
    held = start.copy()
    first, second = (i, j) if current.theta[i, j] >= current.theta[j, i] else (j, i)
    held[first, second] = 0.0
    support = (held != 0.0) | np.eye(len(held), dtype=bool)
    end, _ = fits.fit(held, OnSupport(support, penalty.strength))
    bound = _with_theta(current, end.theta)
    more = [_weigh(current, current_refit, bound, fits, pair, optimum=False)]
    # There may still be an optimum with the opposite order. `end` is closer to it than
    # `start`, so a fit from `end` can find it.
    free = _with_theta(current, fits.fit(end.theta, penalty)[0].theta)
    if _differ(free, current):
        more.insert(0, _weigh(current, current_refit, free, fits, pair, optimum=True))
    opposite = [rival for rival in more if is_opposite(rival)]
    best = min(opposite or same or more, key=lambda rival: rival.advantage)
    return [best, *(rival for rival in (*same, *more) if rival is not best)]


def _differ(a: Model, b: Model) -> bool:
    return bool(np.abs(a.theta - b.theta).max() > SAME)


def _weigh(
    current: Model,
    current_refit: Refit,
    rival: Model,
    fits: WarmFits,
    pair: tuple[int, int],
    *,
    optimum: bool,
) -> _Rival:
    """Return a rival with its evidence about the pair, and its score as a model.

    An interaction between other items that only one of the models has must not count as evidence.
    Therefore each model is refitted with the interactions of both models. Only between the two
    items of the pair, each model keeps its own interactions.
    """
    either = (current.theta != 0.0) | (rival.theta != 0.0)
    either[list(pair), list(pair[::-1])] = False
    again = fits.refit(rival)
    wide = fits.refit(again.model, either)
    here = current_refit
    if (either & (current.theta == 0.0)).any():
        here = fits.refit(current_refit.model, either)
    return _Rival(
        evidence=here.log_likelihood - wide.log_likelihood,
        error=float(np.hypot(wide.log_likelihood_se, here.log_likelihood_se)),
        advantage=current_refit.score - again.score,
        model=rival,
        refit=again,
        optimum=optimum,
    )


def _row(
    current: Model,
    rival: _Rival,
    pair: tuple[int, int],
    fits: WarmFits,
    penalty: OffDiagonalL1,
    settings: Settings,
) -> dict[str, Any]:
    """Return one row of the table; "first" is the item that more probably arrives first."""
    i, j = pair
    items = current.items
    here, there = (
        float(order_probability(model, items[i], items[j], settings=settings))
        for model in (current, rival.model)
    )
    if here < 0.5:
        i, j, here, there = j, i, 1.0 - here, 1.0 - there
    ours, theirs = (
        fits.log_likelihood(model.theta)[0] - fits.data.total_weight * penalty.value(model.theta)
        for model in (current, rival.model)
    )
    return {
        "first": items[i], "second": items[j], "probability": here,
        "rival_probability": there, "evidence": rival.evidence, "evidence_se": rival.error,
        "penalised": ours - theirs, "optimum": rival.optimum,
    }  # fmt: skip
