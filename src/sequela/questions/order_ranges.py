"""The range of P(a before b) that the data allow, over all models that fit well.

A fit returns one model, but other models with a different order may fit almost as well. For each
pair of items that interact:

1. The order is reversed along the family of Proposition 1: once for the pair alone, and once
together with all pairs that share an item with it (a cascade). From each of these starts, the model
is learned again with the penalty of the fit. If this gives a better model, it replaces the given
one.
2. The order is moved step by step in both directions. After each step, all other parameters are
learned again (`sequela.questions.order_profile`). The support is the same for both orders. It has
the interactions of the model, of the best model with the opposite order, and of other good optima.
The range contains P(a before b) of all models found within 2 nats of the best.

**Evidence** is a profile log-likelihood ratio in nats. It compares the best model found with the
order of the fit and the best model found with the opposite order, on the common support. In both
models, each interaction has the same weak prior (normal, standard deviation 2), and there is no L1
penalty. The reason is that the penalty is larger for an order that needs two strong effects than
for one that needs a single weaker effect. With a few hundred samples, this difference can be larger
than the evidence in the data. Evidence compares only these two models. It is not a posterior
probability, which is an average over all models: see `sequela.posterior`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
from sequela.questions.verdict import Verdict
from sequela.samples import as_samples
from sequela.settings import SettingsKeywords, read_settings
from sequela.support.errors import InputError
from sequela.support.validation import check_tolerance, is_number, positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from sequela.data.dataset import DataLike, Dataset
    from sequela.learning.fit_check import FitCheck
    from sequela.model import ModelLike
    from sequela.observation import Observation
    from sequela.questions.effects_check import EffectsCheck
    from sequela.questions.order_profile import Pair
    from sequela.questions.range_search import PairRange
    from sequela.settings import Settings

__all__ = ["OrderRanges", "order_ranges"]

_COLUMNS = [
    "first", "second", "probability", "low", "high", "evidence", "baseline", "verdict", "checked",
]  # fmt: skip
# Largest number of operations for one lattice in a check. For larger sets, components are faster if
# theta is sparse.
_QUICK_WORK = 1e8
# Largest number of operations for the lattice of the probability of an order. If a lattice needs
# more, the probability is simulated, because an error of 0.01 is small enough here.
_QUICK_ORDERS = 1e7
_ORDER_DRAWS = 30_000
# Smallest and largest limit for the predicted duration of a check, in seconds on one core. Between
# these values, a check may take as long as the fit.
_LEAST_SECONDS, _MOST_SECONDS = 36.0, 60.0


class OrderRangeKeywords(SettingsKeywords, total=False):
    """The options of `order_ranges` in addition to settings: amount of work, and tolerances."""

    max_pairs: int
    max_moves: int
    max_evaluations: int | None
    tol: float
    max_iter: int


@dataclass(frozen=True)
class OrderRanges:
    """The ranges of P(a before b) that the data allow, for pairs that interact.

    Attributes
    ----------
    table : DataFrame
        One row per pair, the strongest interaction first. "first" is the item that mostly arrives
        first in the model, and "second" is the other item. "probability" is P(first before second),
        given that both are observed. "low" and "high" are the range of this probability over all
        models found within `within` nats of the best. "evidence" compares the best model with this
        order and the best model with the opposite order: it is their log-likelihood ratio, in nats.
        It is infinite if no model with the opposite order was found. It is below 0 if the opposite
        order is better without the penalty. "baseline" says whether `order_baseline` gives the same
        order: "agrees", "disagrees" or "undecided". "verdict" is the value of a `Verdict`.
        "checked" says whether the order was checked. If not, "low", "high" and "evidence" are NaN.
    model : Model
        The model that has these orders: the given one, or a better one that was found.
    gain : float
        How much better the model is than the given one, in nats of the penalised log-likelihood. It
        is 0 if the model is the given one.
    moves : int
        Number of times that a better model replaced the current one.
    within : float
        The largest distance from the best model at which a model counts for the range, in nats.
    evaluations : int
        Number of evaluations of the likelihood.
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

    def with_fit(self, check: FitCheck) -> OrderRanges:
        """Return the ranges; if the model does not describe the data, change their verdicts.

        In this case, "the data can tell" is replaced by "not trusted: the model does not fit".

        Parameters
        ----------
        check : FitCheck
            Whether the model describes the data, from `check_fit`.

        Examples
        --------
        >>> from sequela import Dataset, fit
        >>> from sequela.questions import check_fit
        >>> sets = 40 * [[0, 0]] + 20 * [[1, 0]] + 5 * [[0, 1]] + 35 * [[1, 1]]
        >>> pair = Dataset(sets, items=["a", "b"])
        >>> model = fit(pair, penalty=0.01)
        >>> ranges = order_ranges(model, pair, random_state=1)
        >>> ranges.with_fit(check_fit(model, pair, random_state=1)).table["verdict"].tolist()
        ['the data cannot tell']
        """
        if check.fits:
            return self
        told = self.table["verdict"] == Verdict.CAN_TELL
        verdicts = self.table["verdict"].where(~told, Verdict.NOT_TRUSTED.value)
        return replace(self, table=self.table.assign(verdict=verdicts))

    def with_effects(self, check: EffectsCheck) -> OrderRanges:
        """Return the ranges; if effects on the observation are plausible, change their verdicts.

        In this case, "the data can tell" is replaced by "not sure: opposite if items influence the
        observation" for the orders that are opposite in the model with effects.

        Parameters
        ----------
        check : EffectsCheck
            From `check_effects`.

        Examples
        --------
        >>> from sequela import example_samples, fit
        >>> from sequela.questions import check_effects
        >>> data = example_samples().most_frequent(4)
        >>> model = fit(data, penalty=0.02)
        >>> check = check_effects(model, data, random_state=1)
        >>> ranges = order_ranges(model, data, random_state=1)
        >>> set(ranges.with_effects(check).table["verdict"])
        {'the data cannot tell'}
        """
        if not check.plausible:
            return self
        opposite = [
            check.opposite(first, second)
            for first, second in zip(self.table["first"], self.table["second"], strict=True)
        ]
        changed = (self.table["verdict"] == Verdict.CAN_TELL) & np.array(opposite, dtype=bool)
        verdicts = self.table["verdict"].where(~changed, Verdict.DEPENDS.value)
        return replace(self, table=self.table.assign(verdict=verdicts))

    def sentences(self, limit: int | None = None) -> list[str]:
        """Return one sentence per checked order, the strongest interaction first.

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
        The model whose orders are checked: an optimum of the penalised likelihood.
    data : Dataset, DataFrame, array or list of sets
        The samples from which the model was learned.
    pairs : iterable of (item, item) or None
        The pairs to check. None: pairs of items that interact and occur together, beginning with
        the strongest effects.
    times : array or None
        Observation times, if they are known.
    within : float
        Models within this distance of the best, in nats, are allowed.
    penalty : float or None
        Penalty of the fits; None: the penalty with which the model was learned.
    **options
        `max_pairs`: largest number of pairs (default 10). `max_moves`: how often a better model may
        replace the current one (default 5). `max_evaluations`: largest number of evaluations of the
        likelihood. By default (None) the check takes about as long as the fit, but between 36 and
        60 predicted seconds on one core. Pairs that are left when the limit is reached are not
        checked. `tol` and `max_iter` of the final fits: as in `SetChain`. `budget`, `sampling`,
        `random_state`, `n_threads`: as in `Settings`.

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
    """Return fits with a small budget, so that large sets are evaluated by components.

    If times are known, or if the small budget would cause some sets to be sampled, the given budget
    is used.
    """
    observation: Observation = model.observation
    fixed = model.metadata.get("fixed")
    if samples.times is None:
        quick = settings.but(budget=_quick(settings.budget, _QUICK_WORK))
        fits = WarmFits(samples, observation, quick, limits, fixed, quick=True)
        fits.objective.prepare((model.theta != 0.0) | np.eye(model.n_items, dtype=bool))
        if not fits.objective.is_sampled:
            return fits
    return WarmFits(samples, observation, settings, limits, fixed, quick=True)


def _limits(held: HeldFits, evaluations: int | None, moves: int) -> SearchLimits:
    """Return the limits of a check. They are the same on every machine."""
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
        verdict = Verdict.CAN_TELL if low > 0.5 else Verdict.CANNOT_TELL
        rows.append(
            {
                "first": first, "second": second, "probability": p, "low": low, "high": high,
                "evidence": entry.evidence,
                "baseline": baseline_verdict(baseline, first, second),
                "verdict": (verdict if entry.checked else Verdict.NOT_CHECKED).value,
                "checked": entry.checked,
            }
        )  # fmt: skip
    table = pd.DataFrame(rows, columns=_COLUMNS)
    return table.astype({"checked": bool})
