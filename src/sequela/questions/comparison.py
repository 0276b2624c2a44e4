"""Compare two cohorts or subtypes: which interactions and which orders differ.

Two fits differ even by chance. Several models of each cohort (a posterior, or fits to resampled
data) show how certain a difference is. The cohorts are independent, so every model of one cohort is
compared with every model of the other cohort. The intervals are quantiles of the differences of all
these pairs of models.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from sequela.model import Model, as_model
from sequela.posteriors.result import Posterior, check_level
from sequela.questions.order import order_matrix
from sequela.questions.order_answers import Orders
from sequela.questions.over_draws import chosen_draws
from sequela.settings import read_settings
from sequela.support.errors import InputError
from sequela.support.progress import no_progress
from sequela.support.random import Purpose, stream
from sequela.support.threads import run_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.model import ModelLike
    from sequela.settings import Settings, SettingsKeywords

__all__ = ["Comparison", "compare"]

# One cohort of a comparison: a posterior, several models of the cohort, or one model.
Side: TypeAlias = "Posterior | Sequence[ModelLike] | ModelLike"

_FEWEST_REPEATS = 10
_SEQUENCES = 10_000
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Comparison:
    """The differences between two cohorts.

    Attributes
    ----------
    interactions : DataFrame
        One row per ordered pair of different items, the clearest difference first. "from" and "to"
        are the items. "first" and "second" are the mean effects in the first and the second cohort.
        "difference" is second minus first, with its interval "low" to "high". "larger" is the
        probability that the effect is larger in the second cohort. "verdict" says whether the
        cohorts differ.
    orders : DataFrame
        One row per pair of items "a" and "b". The further columns are the same as in
        `interactions`, but they describe P(a before b), given that both are observed, and not the
        effect. "a" is the item that usually arrives first in the first cohort.
    first_orders, second_orders : Orders
        The mean orders of each cohort, for `plots.plot_cohort_comparison`.
    models : tuple of int
        Number of models of each cohort. If it is (1, 1), the certainty of differences is unknown.
    level : float
        Probability of the intervals.
    notes : tuple of str
        Remarks that help to interpret the result.
    """

    interactions: pd.DataFrame
    orders: pd.DataFrame
    first_orders: Orders = field(repr=False)
    second_orders: Orders = field(repr=False)
    models: tuple[int, int]
    level: float
    notes: tuple[str, ...]

    @property
    def is_certain(self) -> bool:
        """Whether the differences have intervals: True if both cohorts have several models."""
        return min(self.models) > 1

    def sentences(self, max_pairs: int = 8) -> list[str]:
        """Return the differences of orders in words, the clearest first.

        Parameters
        ----------
        max_pairs : int
            Return at most this many sentences.
        """
        found = []
        for row in self.orders.head(max_pairs).itertuples():
            text = f"{row.a} before {row.b}: {row.first:.2f} and {row.second:.2f}"
            if self.is_certain:
                text += f", difference {row.difference:.2f} ({row.low:.2f} to {row.high:.2f})"
            found.append(f"{text}; {row.verdict}")
        return found


def compare(
    first: Side,
    second: Side,
    *,
    items: Iterable[Any] | None = None,
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> Comparison:
    """Compare two cohorts or subtypes: which interactions and which orders differ.

    Parameters
    ----------
    first, second : Posterior, list of models, or model
        The models of each cohort. With two posteriors, or two lists of fits to resampled data
        (`sequela.repeats.models` of a plan with bootstraps), each difference has an interval. With
        two single models, differences have no intervals, and their verdict is "unknown".
    items : iterable or None
        The items to compare; None: all items that both cohorts have.
    level : float
        Probability of the intervals.
    **settings
        `max_models` (per cohort, default 400), `draws` (for orders that are simulated), `budget`,
        `random_state`, `n_threads`. See `Settings`.

    Returns
    -------
    Comparison
        Tables of interactions and orders, with remarks.

    Examples
    --------
    >>> first = Model([[0.0, 4.0], [0.0, -4.0]], ["a", "b"])
    >>> second = Model([[-4.0, 0.0], [4.0, 0.0]], ["a", "b"])
    >>> comparison = compare(first, second)
    >>> comparison.sentences()
    ['a before b: 0.98 and 0.02; unknown']
    >>> comparison.notes[0]
    'each cohort is a single model, so it is unknown whether the differences exceed chance: give posteriors, or fits to resampled data'
    """  # noqa: E501 - the line is what Python prints
    check_level(level)
    how = read_settings(settings, unused=("target_se", "sampling"), posterior=True)
    sides = [_Cohort.of(side, name, how) for side, name in ((first, "first"), (second, "second"))]
    if (len(sides[0].models) == 1) != (len(sides[1].models) == 1):
        one = "first" if len(sides[0].models) == 1 else "second"
        raise InputError(
            f"{one} is a single model, but the other argument is not; expected two posteriors, two "
            "lists of models, or two single models. The certainty of a difference is known only if "
            "both cohorts have several models"
        )
    shared = _shared(sides[0], sides[1], items)
    theta = [side.theta(shared) for side in sides]
    orders = [side.orders(shared, how) for side in sides]
    return Comparison(
        interactions=_interactions(theta, shared, level),
        orders=_order_table(orders, shared, level),
        first_orders=_mean_orders(orders[0], shared),
        second_orders=_mean_orders(orders[1], shared),
        models=(len(sides[0].models), len(sides[1].models)),
        level=float(level),
        notes=_notes(sides, shared, level),
    )


@dataclass(frozen=True)
class _Cohort:
    """One cohort of a comparison: its models, and remarks about them."""

    models: list[Model]
    notes: tuple[str, ...]
    kind: str

    @classmethod
    def of(cls, side: Side, name: str, settings: Settings) -> _Cohort:
        if isinstance(side, Posterior):
            places = chosen_draws(side, settings.max_models)
            models = [
                Model(side.draws.theta[place], side.items, observation=side.observation)
                for place in places
            ]
            notes: tuple[str, ...] = ()
            if not side.convergence.converged:
                notes = (f"the posterior of the {name} cohort has not converged",)
            return cls(models, notes, repr(side.prior))
        if isinstance(side, list | tuple) and side and not _is_matrix(side):
            models = [as_model(model) for model in side]
            wrong = next((m for m in models if m.items != models[0].items), None)
            if wrong is not None:
                raise InputError(
                    f"{name} has models with different items ({', '.join(wrong.items[:3])}, ... "
                    f"and {', '.join(models[0].items[:3])}, ...); expected fits to the same items"
                )
            limit = settings.max_models or 400
            if len(models) > limit:
                chosen = np.linspace(0, len(models) - 1, limit).round().astype(int)
                models = [models[k] for k in chosen]
            few: tuple[str, ...] = ()
            if 1 < len(models) < _FEWEST_REPEATS:
                few = (f"the {name} cohort has only {len(models)} models; use a few hundred",)
            return cls(models, few, "repeats")
        return cls([as_model(side)], (), "one")  # type: ignore[arg-type]

    @property
    def items(self) -> tuple[str, ...]:
        return self.models[0].items

    def theta(self, shared: list[str]) -> NDArray[np.float64]:
        """Return theta of the shared items, as an array (models, n, n)."""
        at = [self.items.index(label) for label in shared]
        return np.stack([model.theta[np.ix_(at, at)] for model in self.models])

    def orders(self, shared: list[str], settings: Settings) -> list[Orders]:
        """Return the orders of the shared items under each model."""
        several = len(self.models) > 1
        if several and settings.draws is None:
            settings = settings.but(draws=_SEQUENCES)

        def ask(at: int) -> Orders:
            seed = int(stream(settings.seed, Purpose.QUESTION_TO_DRAW, 0, at).integers(2**53))
            own = settings.but(random_state=seed, n_threads=1, max_models=None)
            with no_progress():
                return order_matrix(self.models[at], shared, settings=own)

        places = list(range(len(self.models)))
        return run_pieces(ask, places, settings.threads, "orders of models")


def _is_matrix(side: Sequence[Any]) -> bool:
    """Return whether a list is a single theta, given as a list of rows."""
    return all(isinstance(row, list | tuple) or np.ndim(row) == 1 for row in side)


def _shared(first: _Cohort, second: _Cohort, items: Iterable[Any] | None) -> list[str]:
    both = [label for label in first.items if label in set(second.items)]
    if items is not None:
        asked = [str(label) for label in items]
        for label in asked:
            if label not in both:
                raise InputError(
                    f"items has {label!r}, which is not an item of both cohorts; both have "
                    f"{', '.join(both[:5])}"
                )
        both = list(dict.fromkeys(asked))
    if len(both) < 2:
        raise InputError(
            f"the two cohorts share {len(both)} items; expected at least two with the same labels"
        )
    return both


def _interactions(
    theta: list[NDArray[np.float64]], shared: list[str], level: float
) -> pd.DataFrame:
    source, target = np.nonzero(~np.eye(len(shared), dtype=bool))
    labels = np.array(shared, dtype=object)
    table = _differences(theta[0][:, source, target], theta[1][:, source, target], level)
    table.insert(0, "from", labels[source])
    table.insert(1, "to", labels[target])
    # Leave out entries that are zero in all models of both cohorts.
    there = (theta[0][:, source, target] != 0).any(0) | (theta[1][:, source, target] != 0).any(0)
    return _ranked(table[there])


def _order_table(orders: list[list[Orders]], shared: list[str], level: float) -> pd.DataFrame:
    a, b = np.triu_indices(len(shared), 1)
    stacks = [np.stack([_cells(one)[a, b] for one in side]) for side in orders]
    with np.errstate(invalid="ignore"):
        turned = np.nan_to_num(_mean(stacks[0]), nan=0.5) < 0.5
    stacks = [np.where(turned, 1.0 - stack, stack) for stack in stacks]
    table = _differences(stacks[0], stacks[1], level)
    labels = np.array(shared, dtype=object)
    table.insert(0, "a", np.where(turned, labels[b], labels[a]))
    table.insert(1, "b", np.where(turned, labels[a], labels[b]))
    return _ranked(table)


def _cells(orders: Orders) -> NDArray[np.float64]:
    return orders.probability.to_numpy(dtype=np.float64)


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over models. Models without an answer (NaN) are left out."""
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.nan)


def _differences(
    first: NDArray[np.float64], second: NDArray[np.float64], level: float
) -> pd.DataFrame:
    """Return a table of means, differences, intervals and verdicts.

    `first` and `second` are arrays (models, quantities); the table has one row per quantity.
    """
    table = pd.DataFrame({"first": _mean(first), "second": _mean(second)})
    table["difference"] = table["second"] - table["first"]
    several = min(len(first), len(second)) > 1
    rows = [
        _interval(first[:, k], second[:, k], level) if several else (np.nan, np.nan, np.nan)
        for k in range(first.shape[1])
    ]
    for place, name in enumerate(("low", "high", "larger")):
        table[name] = np.array([row[place] for row in rows], dtype=np.float64)
    table["verdict"] = [
        _verdict(low, high, larger)
        for low, high, larger in zip(table["low"], table["high"], table["larger"], strict=True)
    ]
    return table


def _interval(
    first: NDArray[np.float64], second: NDArray[np.float64], level: float
) -> tuple[float, float, float]:
    """Return the interval of the difference, and P(the value is larger in the second cohort).

    The result is (low, high, probability). Every model of one cohort is compared with every model
    of the other cohort, because the cohorts are independent. A pair of equal values, such as two
    zeros, counts as one half.
    """
    first, second = first[~np.isnan(first)], second[~np.isnan(second)]
    if not (first.size and second.size):
        return np.nan, np.nan, np.nan
    apart = np.subtract.outer(second, first).ravel()
    tail = 0.5 * (1.0 - level)
    low, high = np.quantile(apart, [tail, 1.0 - tail])
    larger = np.mean(apart > 0.0) + 0.5 * np.mean(apart == 0.0)
    return float(low), float(high), float(larger)


def _verdict(low: float, high: float, larger: float) -> str:
    if np.isnan(larger):
        return UNKNOWN
    if low > 0.0 or high < 0.0:
        return "differs"
    return "may differ" if max(larger, 1.0 - larger) >= 0.8 else "no difference shown"


def _ranked(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows sorted by certainty of the difference, then by its size."""
    clear = (table["larger"] - 0.5).abs().fillna(0.0).round(12)
    order = np.lexsort((-table["difference"].abs().fillna(0.0).to_numpy(), -clear.to_numpy()))
    return table.iloc[order].reset_index(drop=True)


def _mean_orders(orders: list[Orders], shared: list[str]) -> Orders:
    def table(of: Callable[[Orders], pd.DataFrame]) -> pd.DataFrame:
        cells = _mean(np.stack([of(one).to_numpy(dtype=np.float64) for one in orders]))
        return pd.DataFrame(cells, index=shared, columns=shared)

    return Orders(
        probability=table(lambda one: one.probability),
        se=table(lambda one: one.se) / np.sqrt(len(orders)),
        observed=table(lambda one: one.observed),
        method=orders[0].method,
        draws=sum(one.draws for one in orders),
        seed=orders[0].seed,
    )


def _notes(sides: list[_Cohort], shared: list[str], level: float) -> tuple[str, ...]:
    notes = [note for side in sides for note in side.notes]
    if len(sides[0].models) == 1:
        notes.append(
            "each cohort is a single model, so it is unknown whether the differences exceed "
            "chance: give posteriors, or fits to resampled data"
        )
    else:
        count = len(shared) * (len(shared) - 1) // 2
        notes.append(
            f"even if the cohorts were the same, about {(1.0 - level) * count:.2g} of "
            f"{count} orders would be called different by "
            "chance"
        )
    if "repeats" in (sides[0].kind, sides[1].kind):
        notes.append(
            "fits to resampled data can agree on an order that the data do not determine, because "
            "each fit is only the best model; the models of a posterior do not have this limitation"
        )
    if sides[0].kind != sides[1].kind:
        notes.append(
            f"the two cohorts were learned in different ways ({sides[0].kind} and "
            f"{sides[1].kind}), which can also cause differences"
        )
    if set(sides[0].items) != set(sides[1].items):
        notes.append(
            f"the cohorts have {len(sides[0].items)} and {len(sides[1].items)} items, of "
            f"which {len(shared)} are in "
            "both; effects depend on the other items of a model"
        )
    return tuple(notes)
