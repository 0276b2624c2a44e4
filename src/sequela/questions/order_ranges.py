"""Which orders do the data allow? The range of P(a before b) over all models that fit well.

A fit returns one model, and others with a different order may fit about as well. For each pair of
items that interact:

1. The order is reversed along Proposition 1's family, for the pair alone and together with all
   pairs that share an item with it (a cascade), and the model is learned again with the penalty of
   the fit. If that ends at a better model, it takes the place of the given one.
2. The order is moved step by step in both directions, and everything else is learned again
   (`sequela.questions.order_profile`), on a support that both orders share: the interactions of
   the model, of the best model with the opposite order, and of other optima nearby. All models
   within 2 nats of the best count as allowed.

**Evidence** is a profile log-likelihood ratio in nats: the best model found with the order of the
fit against the best found with the opposite order, on the common support. It assumes a weak prior
on each interaction (normal, standard deviation 2), the same for both orders, in place of the L1
penalty: the penalty costs an order that needs two strong effects more than one that needs a weaker
one, and over some hundred samples that can outweigh the data. Evidence compares two best models; it
is not a posterior probability, which counts all models: see `sequela.posterior`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.budget import Budget
from sequela.learning.forecast import fit_seconds
from sequela.learning.interrupt import graceful_stop
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.refitting import WarmFits
from sequela.learning.solvers.contract import Limits
from sequela.model import Model, as_model
from sequela.questions.arguments import find_items
from sequela.questions.order_baseline import baseline_verdict, order_baseline
from sequela.questions.order_profile import HeldFits
from sequela.questions.range_search import RangeSearch, SearchLimits
from sequela.samples import as_samples
from sequela.settings import SettingsKeywords, read_settings
from sequela.support.errors import InputError
from sequela.support.validation import check_tolerance, is_number, positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from sequela.data.dataset import DataLike, Dataset
    from sequela.model import ModelLike
    from sequela.observation import Observation
    from sequela.questions.order_profile import Pair
    from sequela.questions.range_search import PairRange
    from sequela.settings import Settings

__all__ = ["CANNOT_TELL", "CAN_TELL", "NOT_CHECKED", "OrderRanges", "order_ranges"]

CAN_TELL = "the data can tell"
CANNOT_TELL = "the data cannot tell"
NOT_CHECKED = "not checked"

_COLUMNS = [
    "first", "second", "probability", "low", "high", "evidence", "baseline", "verdict", "checked",
]  # fmt: skip
# Lattices larger than this are slower than components, where theta is sparse.
_QUICK_WORK = 1e8
# Probabilities of orders are simulated beyond this work: an error of 0.01 does no harm here.
_QUICK_ORDERS = 1e7
_ORDER_DRAWS = 30_000
# Predicted seconds of one core that a check may take: as long as the fit, within these bounds.
_LEAST_SECONDS, _MOST_SECONDS = 36.0, 60.0


class OrderRangeKeywords(SettingsKeywords, total=False):
    """The options of `order_ranges` beside settings: how much work, and when a fit ends."""

    max_pairs: int
    max_moves: int
    max_evaluations: int | None
    tol: float
    max_iter: int


@dataclass(frozen=True)
class OrderRanges:
    """What the data allow about the orders of interacting pairs.

    Attributes
    ----------
    table : DataFrame
        One row per pair, the strongest interaction first: "first", "second" (turned so that the
        model has the first mostly first), "probability" (first before second, given both),
        "low" and "high" (its range over all models found within `within` nats of the best),
        "evidence" (the best model of this order against the best of the opposite order, in nats;
        infinite where no model with the opposite order was found), "baseline" (whether
        `order_baseline` "agrees" or "disagrees"), "verdict" ("the data can tell", "the data
        cannot tell" or "not checked") and "checked". Pairs that were not checked have NaN.
        Evidence below 0: without the penalty, the opposite order is the better one.
    model : Model
        The model whose orders they are: the given one, or a better one that was found.
    gain : float
        How much better it is than the given one, in nats of the penalised log-likelihood; 0 if it
        is the given one.
    moves : int
        Number of times that a better model replaced the current one.
    within : float
        The largest distance from the best model, in nats, that counts as allowed.
    evaluations : int
        Evaluations of the likelihood that the check took.
    interrupted : bool
        Whether a signal ended the check early.
    """

    table: pd.DataFrame
    model: Model = field(repr=False)
    gain: float
    moves: int
    within: float
    evaluations: int
    interrupted: bool = False

    def sentences(self, limit: int | None = None) -> list[str]:
        """Return each checked order in words, the strongest interaction first.

        Examples
        --------
        >>> from sequela import Dataset, fit
        >>> sets = 40 * [[0, 0]] + 20 * [[1, 0]] + 5 * [[0, 1]] + 35 * [[1, 1]]
        >>> pair = Dataset(sets, items=["a", "b"])
        >>> check = order_ranges(fit(pair, penalty=0.01), pair, random_state=1)
        >>> print(check.sentences()[0])
        b before a: 0.58; the data allow 0.01 to 0.98 (the data cannot tell)
        """
        checked = self.table[self.table["checked"]]
        rows = checked if limit is None else checked.head(limit)
        return [
            f"{row.first} before {row.second}: {row.probability:.2f}; "
            f"the data allow {row.low:.2f} to {row.high:.2f} ({row.verdict})"
            for row in rows.itertuples(index=False)
        ]


def order_ranges(
    model: ModelLike,
    data: DataLike,
    *,
    pairs: Iterable[tuple[str, str]] | None = None,
    times: Iterable[object] | None = None,
    within: float = 2.0,
    penalty: float | None = None,
    **options: Unpack[OrderRangeKeywords],
) -> OrderRanges:
    """Return the range of P(a before b) that the data allow, for each pair that interacts.

    Parameters
    ----------
    model : Model or fitted SetChain
        The model whose orders are in question: an optimum of the penalised likelihood.
    data : Dataset, DataFrame, array or list of sets
        What it was learned from.
    pairs : iterable of (item, item) or None
        Which pairs; None: those that interact and occur together, the strongest effects first.
    times : array or None
        Observation times, if they are known.
    within : float
        Models within this distance of the best, in nats, are allowed.
    penalty : float or None
        Of the fits; None: the one that the model was learned with.
    **options
        `max_pairs` (default 10); `max_moves` (how often a better model may replace the current
        one, default 5); `max_evaluations` of the likelihood (None: as many as take about as long
        as the fit, between 36 and 60 predicted seconds of one core; the pairs that are left then
        are not checked); `tol` and `max_iter`
        of the final fits, as in `SetChain`; `budget`, `sampling`, `random_state`, `n_threads` as
        in `Settings`.

    Returns
    -------
    OrderRanges
        The table of pairs, and the best model that was found.

    Examples
    --------
    >>> from sequela import fit, simulate
    >>> theta = np.diag([0.0, -4.0] + 20 * [-2.5])
    >>> theta[0, 1] = 4.0
    >>> sets = simulate(theta, 500, random_state=1).to_dataset().without_times()
    >>> check = order_ranges(fit(sets, penalty=0.02), sets, random_state=1)
    >>> check.table[["first", "second", "verdict"]].head(1).to_dict("records")
    [{'first': '0', 'second': '1', 'verdict': 'the data can tell'}]
    """
    given: dict[str, Any] = dict(options)
    tol = given.pop("tol", 1e-4)
    check_tolerance(tol)
    limits = Limits(tol=tol, max_iter=positive_integer("max_iter", given.pop("max_iter", 500)))
    max_pairs = positive_integer("max_pairs", given.pop("max_pairs", 10))
    max_moves = positive_integer("max_moves", given.pop("max_moves", 5), least=0)
    most = given.pop("max_evaluations", None)
    if most is not None:
        most = positive_integer("max_evaluations", most)
    how = read_settings(given, unused=("draws", "target_se"))
    if not (is_number(within) and 0.0 < within < np.inf):
        raise InputError(f"within is {within!r}; expected a positive number of nats, such as 2.0")
    start = as_model(model)
    if penalty is None:
        penalty = float(start.metadata.get("penalty", 0.01))
    samples = as_samples(start, data, times)
    asked = None if pairs is None else [_places(start, pair) for pair in pairs]
    held = HeldFits(
        _warm_fits(samples, start, how, limits),
        OffDiagonalL1(penalty).strength,
        how.but(budget=_quick(how.budget, _QUICK_ORDERS), draws=_ORDER_DRAWS),
    )
    search = RangeSearch(
        held, start.theta, samples, asked, max_pairs=max_pairs, within=float(within)
    )
    with graceful_stop() as request:
        search.run(_limits(held, most, max_moves), lambda: bool(request))
    best = _as_found(start, search)
    return OrderRanges(
        table=_table(best, search.found, order_baseline(samples)),
        model=best,
        gain=search.gain,
        moves=search.moves,
        within=float(within),
        evaluations=held.evaluations,
        interrupted=bool(request),
    )


def _places(model: Model, pair: Any) -> Pair:
    if isinstance(pair, str) or len(tuple(pair)) != 2:
        raise InputError(f"pairs has the entry {pair!r}; expected a pair of two items")
    i, j = find_items(model, pair, "pairs")
    return int(i), int(j)


def _quick(budget: Budget, work: float) -> Budget:
    return Budget(budget.memory, min(budget.work, work), budget.total_work)


def _warm_fits(samples: Dataset, model: Model, settings: Settings, limits: Limits) -> WarmFits:
    """Return fits that use components early; with the given budget where these are too large."""
    observation: Observation = model.observation
    fixed = model.metadata.get("fixed")
    if samples.times is None:
        quick = settings.but(budget=_quick(settings.budget, _QUICK_WORK))
        fits = WarmFits(samples, observation, quick, limits, fixed)
        fits.objective.prepare((model.theta != 0.0) | np.eye(model.n_items, dtype=bool))
        if not fits.objective.is_sampled:
            return fits
    return WarmFits(samples, observation, settings, limits, fixed)


def _limits(held: HeldFits, evaluations: int | None, moves: int) -> SearchLimits:
    """Return how long a check may take: the same on every machine."""
    if evaluations is not None:
        return SearchLimits(evaluations, np.inf, moves)
    fit = fit_seconds(held.fits.objective.plan, n_starts=1)
    return SearchLimits(None, float(np.clip(fit, _LEAST_SECONDS, _MOST_SECONDS)), moves)


def _as_found(start: Model, search: RangeSearch) -> Model:
    if not search.moves:
        return start
    details = {"order_check_moves": search.moves, "order_check_gain": search.gain}
    metadata = {**start.metadata, **details}
    return Model(search.current.theta, start.items, metadata, observation=start.observation)


def _table(model: Model, found: list[PairRange], baseline: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for entry in found:
        i, j = entry.pair
        p, low, high = entry.probability, entry.low, entry.high
        if p < 0.5:
            i, j, p, low, high = j, i, 1.0 - p, 1.0 - high, 1.0 - low
        first, second = model.items[i], model.items[j]
        verdict = CAN_TELL if low > 0.5 else CANNOT_TELL
        rows.append(
            {
                "first": first, "second": second, "probability": p, "low": low, "high": high,
                "evidence": entry.evidence,
                "baseline": baseline_verdict(baseline, first, second),
                "verdict": verdict if entry.checked else NOT_CHECKED, "checked": entry.checked,
            }
        )  # fmt: skip
    table = pd.DataFrame(rows, columns=_COLUMNS)
    return table.astype({"checked": bool})
