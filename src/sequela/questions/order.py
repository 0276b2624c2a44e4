"""Probability that one item arrived before another, in general or in one sample.

In general, the answer is P(a before b), given that both items are observed (section 5.2 of the
paper). It is computed exactly on the lattice of the two items and all items that act on them. If
this lattice is too large, the answer is estimated from simulated sequences.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pandas as pd

from sequela.kernels.pairs import count_pairs
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.plan import all_subsets_fit
from sequela.model import as_model
from sequela.posteriors.result import Posterior
from sequela.questions.arguments import find_items, one_sample
from sequela.questions.arrival_functions import independent_orders
from sequela.questions.dependence import ancestors, arrivals_on_lattice
from sequela.questions.order_answers import Orders, PosteriorOrders
from sequela.questions.orders_over_draws import Method, Question, orders_over_draws
from sequela.questions.over_draws import PosteriorEstimate
from sequela.questions.precision import Estimate, share_error, until_precise
from sequela.questions.samples import posterior_until_precise
from sequela.settings import read_settings
from sequela.simulation import simulate
from sequela.support.errors import BudgetError, InputError
from sequela.support.jit import call
from sequela.support.threads import run_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.budget import Budget
    from sequela.model import Model, ModelLike
    from sequela.questions.arguments import SampleLike
    from sequela.questions.samples import SampleAnswer
    from sequela.settings import Settings, SettingsKeywords
    from sequela.simulation import Simulation

__all__ = ["Method", "Orders", "check_method", "order_matrix", "order_probability"]

# Largest number of states of all lattices of one answer; computing this many takes some seconds.
# Each single lattice must also be within the budget.
_MAX_STATES = 2.0**25
# On a lattice of this many items, the computation takes almost no time. So `independent_orders`,
# which avoids large lattices, is used only if there are more items.
_SMALL_LATTICE = 10
# Number of draws that are counted in one piece of work.
_PIECE = 1 << 16


def check_method(method: str) -> None:
    """Raise an error if `method` is not the name of a method."""
    if method not in ("auto", "exact", "simulation"):
        raise InputError(f"method is {method!r}; expected 'auto', 'exact' or 'simulation'")


@overload
def order_probability(
    model: Posterior,
    a: Any,
    b: Any,
    *,
    given: SampleLike | None = None,
    method: Method = "auto",
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> PosteriorEstimate: ...


@overload
def order_probability(
    model: ModelLike,
    a: Any,
    b: Any,
    *,
    given: SampleLike | None = None,
    method: Method = "auto",
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> Estimate: ...


def order_probability(
    model: ModelLike | Posterior,
    a: Any,
    b: Any,
    *,
    given: SampleLike | None = None,
    method: Method = "auto",
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> Estimate:
    """Return P(a before b), given that both are observed, or given one sample.

    Parameters
    ----------
    model : Model, fitted SetChain, theta, or Posterior
        The model. For a posterior the result is the mean over its models, with an interval.
    a, b : labels
        Two items.
    given : set of labels, true/false row, Dataset of one sample, or None
        A sample that has both items. The answer is then P(a before b | exactly this set). A data
        set may have missing cells and known orders; the answer is then an average over all that is
        not known of the sample.
    method : {"auto", "exact", "simulation"}
        "auto" is exact if the lattice of all items that act on a or b is within the budget.
    level : float
        Probability of the interval, for a posterior.
    **settings
        `budget`, `random_state`, `n_threads`. If the answer is not exact, also `target_se` or
        `draws`: the number of simulated sequences (default 100,000) or, with `given`, the number of
        orders drawn for the sample (default 1,600). With `given`, also `sampling`. For a posterior,
        also `max_models`, but not `target_se`. See `Settings`.

    Returns
    -------
    Estimate
        ``float(estimate)`` is the probability, and ``estimate.se`` its Monte Carlo standard error.
        For a posterior a `PosteriorEstimate` with ``low``, ``high``, ``effective`` and ``r_hat``.

    Notes
    -----
    In each model of a posterior, every item acts on every other item, so every lattice contains all
    items. With 400 models, "auto" is exact for up to 16 items. With more items, 10,000 sequences
    are simulated from each model (see `draws`). The simulation error makes the intervals slightly
    wider for pairs that are rarely observed together. With `given`, and if the sample is beyond the
    budget, 320 orders of the sample are drawn under each model.

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> estimate = order_probability(example_theta(), "first", "second")
    >>> print(f"{float(estimate):.3f}", estimate.method)
    0.982 exact
    """
    orders = order_matrix(model, [a, b], given=given, method=method, level=level, **settings)
    value = float(orders.probability.to_numpy()[0, 1])
    if np.isnan(value):
        one, other = orders.probability.index
        if not orders.draws:
            raise InputError(
                f"the probability that {one!r} and {other!r} are both observed is numerically "
                "zero, because their base rates are too small. Therefore their order is not defined"
            )
        raise BudgetError(
            f"in {orders.draws:,} draws {one!r} and {other!r} were never observed together; use "
            "more draws"
        )
    estimate = Estimate(
        value=value,
        se=float(orders.se.to_numpy()[0, 1]),
        method=str(orders.method.iloc[0, 1]),
        draws=orders.draws,
        seed=orders.seed,
    )
    if not isinstance(orders, PosteriorOrders):
        return estimate
    return PosteriorEstimate(
        **vars(estimate),
        low=float(orders.low.to_numpy()[0, 1]),
        high=float(orders.high.to_numpy()[0, 1]),
        effective=float(orders.effective.to_numpy()[0, 1]),
        r_hat=float(orders.r_hat.to_numpy()[0, 1]),
    )


@overload
def order_matrix(
    model: Posterior,
    items: Iterable[Any] | None = None,
    *,
    given: SampleLike | None = None,
    method: Method = "auto",
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> PosteriorOrders: ...


@overload
def order_matrix(
    model: ModelLike,
    items: Iterable[Any] | None = None,
    *,
    given: SampleLike | None = None,
    method: Method = "auto",
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> Orders: ...


def order_matrix(
    model: ModelLike | Posterior,
    items: Iterable[Any] | None = None,
    *,
    given: SampleLike | None = None,
    method: Method = "auto",
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> Orders:
    """Return P(a before b) for all pairs of `items`; see `order_probability`.

    Parameters
    ----------
    items : list of labels or None
        The items; None means all items of the model, or of the sample `given`.

    Returns
    -------
    Orders
        Tables ``probability``, ``se``, ``observed`` and ``method``; `Orders.pairs` has one row per
        pair. For a posterior `PosteriorOrders`, with ``low``, ``high``, ``usually_first`` and
        others.

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> order_matrix(example_theta(), ["first", "second"]).probability.round(3)
            first  second
    first     NaN   0.982
    second  0.018     NaN
    """
    how = read_settings(settings, posterior=True)
    check_method(method)
    if isinstance(model, Posterior):
        asked = Question(model, items, given)
        return orders_over_draws(
            lambda one, settings, method: _of_model(
                one, asked.items, asked.given, method, settings
            ),
            asked, method, level, how,
        )  # fmt: skip
    return _of_model(as_model(model), items, given, method, how)


def _of_model(
    model: Model,
    items: Iterable[Any] | None,
    given: SampleLike | None,
    method: Method,
    how: Settings,
) -> Orders:
    """Return the orders of one model."""
    if given is not None:
        return _in_sample(model, items, given, method, how)
    places = np.arange(model.n_items) if items is None else find_items(model, items)
    labels = _labels(model, places)
    joint = np.full((places.size, places.size), np.nan)
    # If the rate of the observation is not constant, simulate samples and count the orders.
    if method == "exact" or (method == "auto" and model.observation.constant_rate is not None):
        max_states = _MAX_STATES if method == "auto" else np.inf
        _fill_exactly(joint, Parameters.of(model), places, how, max_states)
    # joint[a, b] is P(both observed, a first); on the diagonal it is P(observed).
    missing = np.isnan(joint)
    if method == "exact" and missing.any():
        # Name a pair of different items, if there is one.
        i, j = min(np.argwhere(missing).tolist(), key=lambda cell: (cell[0] == cell[1], cell))
        size = ancestors(model.theta, places[[i, j]]).size
        raise BudgetError(
            f"the order of {labels[i]!r} and {labels[j]!r} depends on {size} items: these two, and "
            f"all items that act on them. The lattice of 2^{size} states is beyond the budget. Use "
            "method='auto', or a larger budget=sequela.Budget(...)"
        )
    if not missing.any():
        return _from_joint(joint, labels)

    def ask(draws: int) -> Orders:
        drawn = simulate(model, draws, random_state=how.seed, n_threads=how.threads)
        return _combine(joint, missing, _count(drawn, places, how.threads), drawn, labels)

    def error_of(orders: Orders) -> float:
        off = ~np.eye(len(labels), dtype=bool)
        return float(np.max(orders.se.to_numpy()[off]))

    return until_precise(ask, error_of, how)


def _labels(model: Model, places: NDArray[np.int64]) -> list[str]:
    """Return the labels of the items; raise an error if there are fewer than two items."""
    if places.size < 2:
        raise InputError(f"items has {places.size} items; an order needs two items")
    return [model.items[place] for place in places]


def _fill_exactly(
    joint: NDArray[np.float64],
    parameters: Parameters,
    places: NDArray[np.int64],
    settings: Settings,
    max_states: float,
) -> None:
    """Fill in the pairs that can be computed exactly on lattices within the budget.

    If two items have no common ancestor, the lattices of their own ancestors are enough. Any other
    pair can be computed on any lattice that contains all items that act on the pair, so several
    pairs share one lattice. The lattices with the most pairs per state come first, until
    `max_states` states are used in total.
    """
    acting = [
        frozenset(ancestors(parameters.theta, places[[i]]).tolist()) for i in range(places.size)
    ]
    if len(frozenset().union(*acting)) > _SMALL_LATTICE:
        joint[:] = independent_orders(parameters, places, acting, settings.threads)
    held = _pairs_by_lattice(acting, np.isnan(joint), settings.budget)
    cheapest = sorted(held, key=lambda lattice: 2.0 ** len(lattice) / len(held[lattice]))
    visited = np.cumsum([2.0 ** len(lattice) for lattice in cheapest])
    chosen = [
        lattice for lattice, states in zip(cheapest, visited, strict=True) if states <= max_states
    ]

    def work(lattice: frozenset[int]) -> NDArray[np.float64]:
        members = np.array(sorted(lattice), dtype=np.int64)
        theta = parameters.theta[np.ix_(members, members)]
        flow, before = arrivals_on_lattice(theta, parameters.stop_rate)
        np.fill_diagonal(before, flow)
        return before

    parts = run_pieces(work, chosen, settings.threads, "orders of items")
    for lattice, part in zip(chosen, parts, strict=True):
        at = {member: place for place, member in enumerate(sorted(lattice))}
        for i, j in held[lattice]:
            a, b = at[int(places[i])], at[int(places[j])]
            joint[i, j], joint[j, i] = part[a, b], part[b, a]


def _pairs_by_lattice(
    acting: list[frozenset[int]], missing: NDArray[np.bool_], budget: Budget
) -> dict[frozenset[int], list[tuple[int, int]]]:
    """Return lattices within the budget, each with the missing pairs that it contains.

    The result is one lattice for all pairs, or several smaller lattices if they have fewer states.
    """
    pairs = [
        (i, j)
        for i, j in combinations_with_replacement(range(len(acting)), 2)
        if missing[i, j] or missing[j, i]
    ]
    needs = {(i, j): acting[i] | acting[j] for i, j in pairs}
    everything = frozenset().union(*needs.values())
    held: dict[frozenset[int], list[tuple[int, int]]] = {}
    for pair, need in sorted(needs.items(), key=lambda x: (-len(x[1]), x[0])):
        if all_subsets_fit(len(need), budget):
            lattice = next((larger for larger in held if need <= larger), need)
            held.setdefault(lattice, []).append(pair)
    apart = sum(2.0 ** len(lattice) for lattice in held)
    if all_subsets_fit(len(everything), budget) and 2.0 ** len(everything) <= apart:
        return {everything: pairs}
    return held


def _count(drawn: Simulation, places: NDArray[np.int64], threads: int) -> NDArray[np.int64]:
    """Return the number of draws with a before b, for all pairs.

    The diagonal contains the number of draws with the item.
    """
    wanted = np.full(len(drawn.items), -1, dtype=np.int64)
    wanted[places] = np.arange(places.size)

    def work(first: int) -> NDArray[np.int64]:
        counts = np.zeros((places.size, places.size), dtype=np.int64)
        last = min(first + _PIECE, len(drawn))
        call(count_pairs, counts, first, last, drawn.indptr, drawn.sequence, wanted)
        return counts

    total: NDArray[np.int64] = np.sum(
        run_pieces(work, range(0, len(drawn), _PIECE), threads), axis=0
    )
    return total


def _from_joint(joint: NDArray[np.float64], labels: list[str]) -> Orders:
    """Return exact orders; `joint[a, b]` is P(both observed, a first)."""
    n = len(labels)
    both = joint + joint.T
    np.fill_diagonal(both, np.diagonal(joint))
    with np.errstate(invalid="ignore"):
        probability = joint / both
    np.fill_diagonal(probability, np.nan)
    return _orders(labels, probability, np.zeros((n, n)), both, np.full((n, n), "exact"))


def _combine(
    joint: NDArray[np.float64],
    missing: NDArray[np.bool_],
    counts: NDArray[np.int64],
    drawn: Simulation,
    labels: list[str],
) -> Orders:
    """Return the orders; pairs without an exact answer come from counts of draws."""
    together = counts + counts.T
    np.fill_diagonal(together, np.diagonal(counts))
    orders = _from_joint(np.where(missing, counts / len(drawn), joint), labels)
    # The count is binomial, given the number of draws with both items.
    error = share_error(counts, counts.T)
    error[together == 0] = np.inf
    np.fill_diagonal(error, 0.0)
    probability = orders.probability.to_numpy().copy()
    probability[missing & (together == 0)] = np.nan
    combined = _orders(
        labels,
        probability,
        np.where(missing, error, 0.0),
        orders.observed.to_numpy(),
        np.where(missing, "simulation", "exact"),
    )
    return replace(combined, draws=len(drawn), seed=drawn.seed)


def _orders(
    labels: list[str],
    probability: NDArray[np.float64],
    se: NDArray[np.float64],
    observed: NDArray[np.float64],
    method: NDArray[np.str_],
) -> Orders:
    """Return `Orders` with zero draws; each array becomes a table with these labels."""

    def table(values: NDArray[Any]) -> pd.DataFrame:
        return pd.DataFrame(values, index=labels, columns=labels)

    return Orders(
        probability=table(probability), se=table(se), observed=table(observed),
        method=table(method), draws=0, seed=None,
    )  # fmt: skip


def _in_sample(
    model: Model,
    items: Iterable[Any] | None,
    given: SampleLike,
    method: Method,
    settings: Settings,
) -> Orders:
    if method == "simulation":
        raise InputError("method='simulation' is not available for a sample; use 'auto' or 'exact'")
    present, data = one_sample(model, given, "given")
    places = present if items is None else find_items(model, items)
    absent = [model.items[place] for place in places if place not in present]
    missing = [] if data.missing is None else data.missing[0].nonzero()[0]
    if any(place in missing for place in places):
        label = next(model.items[place] for place in places if place in missing)
        raise InputError(
            f"it is not known whether the sample has {label!r}; expected items that it is known to "
            "have"
        )
    if absent:
        raise InputError(
            f"the sample does not have {absent[0]!r}; expected items of the sample, because other "
            "items have no order in it"
        )
    labels = _labels(model, places)
    at = np.searchsorted(present, places)
    asked = np.ix_(at, at)
    answer = posterior_until_precise(
        model, data, lambda answer: float(np.max(_sample_errors(answer)[asked])), settings,
        method=method,
    )  # fmt: skip
    posterior = answer.posterior
    probability = posterior.before(0)[asked].copy()
    np.fill_diagonal(probability, np.nan)
    n = places.size
    orders = _orders(
        labels,
        probability,
        _sample_errors(answer)[asked],
        np.ones((n, n)),
        np.full((n, n), posterior.methods[0]),
    )
    return replace(orders, draws=answer.draws, seed=answer.seed)


def _sample_errors(answer: SampleAnswer) -> NDArray[np.float64]:
    """Return the standard errors of P(a before b | sample); they are 0 only if the answer is exact.

    If all drawn orders agree, the error is not 0, because further draws could differ.
    """
    error = answer.posterior.before_se(0).copy()
    if answer.draws:
        before = answer.posterior.before(0)
        agreed = (error == 0.0) & ~np.eye(len(error), dtype=np.bool_)
        error[agreed] = share_error(answer.draws * before, answer.draws * before.T)[agreed]
    return error
