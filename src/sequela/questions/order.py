"""Which came first: of two items in general, and in one sample.

In general means: share of the sequences in which a came before b, among those in which both are
observed (section 5.2 of the paper). Exact on the lattice of the two items and all that act on them,
or simulated where that is too large.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from sequela.kernels.pairs import count_pairs
from sequela.likelihood.budget import Budget, check_budget
from sequela.questions.arguments import as_model, find_items, rate_of
from sequela.questions.dependence import ancestors, arrivals_on_lattice, fits_lattice
from sequela.questions.precision import Estimate, check_precision, share_error, until_precise
from sequela.questions.samples import one_sample, posterior_until_precise
from sequela.simulation import simulate
from sequela.support.errors import BudgetError, InputError
from sequela.support.jit import call
from sequela.support.random import materialise_seed
from sequela.support.threads import resolve_threads, run_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from sequela.model import Model
    from sequela.questions.samples import SampleAnswer
    from sequela.simulation import Simulation
    from sequela.support.random import RandomState

__all__ = ["Orders", "order_matrix", "order_probability"]

DEFAULT_DRAWS = 100_000
# States that the exact part of one answer may visit in all: some seconds. A single lattice within
# the budget has fewer.
_MOST_STATES = 2.0**25
# Draws that one piece of counting takes.
_PIECE = 1 << 16

Method = Literal["auto", "exact", "simulation"]


@dataclass(frozen=True)
class Orders:
    """Which of several items came first, for every pair.

    Attributes
    ----------
    probability : DataFrame
        Row a, column b: P(a before b), given that both are observed (or given the sample). NaN on
        the diagonal, and where a simulation never saw both.
    se : DataFrame
        Monte Carlo standard errors; 0 where exact.
    observed : DataFrame
        P(both are observed); on the diagonal P(the item is observed). In a sample: 1.
    method : DataFrame
        "exact", "simulation" or "relocation", for each pair.
    draws : int
        Simulated sequences, or orders drawn; 0 if all is exact.
    seed : int or None
        What every draw was derived from; None if all is exact.
    """

    probability: pd.DataFrame
    se: pd.DataFrame
    observed: pd.DataFrame
    method: pd.DataFrame
    draws: int
    seed: int | None

    def pairs(self, *, as_given: bool = False) -> pd.DataFrame:
        """Return one row for each pair, the surest orders first: ``first`` came before ``second``.

        Each pair is turned so that its probability is at least one half; with `as_given` pairs
        and rows stay in the order of the items.

        Examples
        --------
        >>> import sequela
        >>> orders = sequela.order_matrix(sequela.example_theta(), ["first", "second"])
        >>> orders.pairs()[["first", "second", "probability"]].round(3)
           first  second  probability
        0  first  second        0.982
        """
        labels = list(self.probability.index)
        rows = []
        for i, a in enumerate(labels):
            for b in labels[i + 1 :]:
                p = self.probability.loc[a, b]
                ahead = as_given or p >= 0.5 or np.isnan(p)
                one, other = (a, b) if ahead else (b, a)
                rows.append(
                    {
                        "first": one,
                        "second": other,
                        "probability": self.probability.loc[one, other],
                        "se": self.se.loc[one, other],
                        "observed": self.observed.loc[one, other],
                        "method": self.method.loc[one, other],
                    }
                )
        columns = ["first", "second", "probability", "se", "observed", "method"]
        table = pd.DataFrame(rows, columns=columns)
        if as_given:
            return table
        return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)


def order_probability(
    model: Any,
    a: Any,
    b: Any,
    *,
    given: Iterable[Any] | None = None,
    method: Method = "auto",
    draws: int | None = None,
    target_se: float | None = None,
    observation_rate: float | None = None,
    budget: Budget | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> Estimate:
    """Return P(a before b): among observations of both, or in one sample.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    a, b : labels
        Two items.
    given : set of labels or None
        A sample that has both: then the answer is P(a before b | this set), nothing else present.
    method : {"auto", "exact", "simulation"}
        "auto" is exact where the lattice of the items that act on a or b is within the budget.
    draws : int or None
        Simulated sequences (default 100,000), or orders drawn of a large sample.
    target_se : float or None
        Instead of `draws`: the standard error that is wanted.
    observation_rate, budget, random_state, n_threads
        As in `simulate` and `Likelihood`.

    Returns
    -------
    Estimate
        ``float()`` of it is the probability; ``se`` its Monte Carlo standard error.

    Examples
    --------
    >>> import sequela
    >>> found = sequela.order_probability(sequela.example_theta(), "first", "second")
    >>> print(f"{float(found):.3f}", found.method)
    0.982 exact
    """
    orders = order_matrix(
        model, [a, b], given=given, method=method, draws=draws, target_se=target_se,
        observation_rate=observation_rate, budget=budget, random_state=random_state,
        n_threads=n_threads,
    )  # fmt: skip
    value = float(orders.probability.to_numpy()[0, 1])
    if np.isnan(value) and not orders.draws:
        raise InputError(
            f"the probability that {orders.probability.index[0]!r} and "
            f"{orders.probability.index[1]!r} are both observed is below the smallest double; "
            "base rates so low mean never"
        )
    if np.isnan(value):
        raise BudgetError(
            f"in {orders.draws:,} draws {orders.probability.index[0]!r} and "
            f"{orders.probability.index[1]!r} were never observed together; ask for more draws"
        )
    return Estimate(
        value=value,
        se=float(orders.se.to_numpy()[0, 1]),
        method=str(orders.method.iloc[0, 1]),
        draws=orders.draws,
        seed=orders.seed,
    )


def order_matrix(
    model: Any,
    items: Iterable[Any] | None = None,
    *,
    given: Iterable[Any] | None = None,
    method: Method = "auto",
    draws: int | None = None,
    target_se: float | None = None,
    observation_rate: float | None = None,
    budget: Budget | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> Orders:
    """Return P(a before b) for all pairs of `items`; see `order_probability`.

    Parameters
    ----------
    items : list of labels or None
        None: all items of the model, or of the sample `given`.

    Returns
    -------
    Orders
        Tables ``probability``, ``se``, ``observed`` and ``method``; `Orders.pairs` lists them.

    Examples
    --------
    >>> import sequela
    >>> theta = sequela.example_theta()
    >>> sequela.order_matrix(theta, ["first", "second"]).probability.round(3)
            first  second
    first     NaN   0.982
    second  0.018     NaN
    """
    chain = as_model(model)
    if method not in ("auto", "exact", "simulation"):
        raise InputError(f"method is {method!r}; expected 'auto', 'exact' or 'simulation'")
    rate = rate_of(chain, observation_rate)
    limits = check_budget(budget)
    threads = resolve_threads(n_threads)
    check_precision(draws, target_se)
    if given is not None:
        if method == "simulation":
            raise InputError("method='simulation' is not for a sample: use 'auto' or 'exact'")
        return _in_sample(
            chain, items, given, method=method, draws=draws, target_se=target_se, rate=rate,
            budget=limits, random_state=random_state, n_threads=threads,
        )  # fmt: skip
    places = np.arange(chain.n_items) if items is None else find_items(chain, items)
    if places.size < 2:
        raise InputError(f"an order needs two items; {places.size} given")
    labels = [chain.items[place] for place in places]
    joint = np.full((places.size, places.size), np.nan)
    if method != "simulation":
        most = _MOST_STATES if method == "auto" else np.inf
        _fill_exactly(joint, chain, places, rate, limits, threads, most)
    # On the diagonal P(observed); [a, b] is P(both observed, a first).
    missing = np.isnan(joint)
    if method == "exact" and missing.any():
        i, j = (int(x) for x in np.argwhere(missing)[0])
        size = ancestors(chain.theta, places[[i, j]]).size
        raise BudgetError(
            f"{size} items act on {labels[i]!r} or {labels[j]!r}, directly or through others; "
            f"their lattice of 2^{size} states is beyond the budget. Use method='auto', or a "
            "larger budget=Budget(...)"
        )
    if not missing.any():
        return _from_joint(joint, labels, "exact", 0, None)
    seed = materialise_seed(random_state)

    def ask(size: int) -> Orders:
        drawn = simulate(
            chain.theta, size, observation_rate=rate, random_state=seed, n_threads=threads
        )
        return _combine(joint, missing, _count(drawn, places, threads), size, labels, seed)

    def error_of(found: Orders) -> float:
        off = ~np.eye(len(labels), dtype=bool)
        return float(np.max(found.se.to_numpy()[off]))

    return until_precise(ask, error_of, draws, target_se, default=DEFAULT_DRAWS)


def _fill_exactly(
    joint: NDArray[np.float64],
    chain: Model,
    places: NDArray[np.int64],
    rate: float,
    budget: Budget,
    threads: int,
    most: float,
) -> None:
    """Fill what the lattice allows: all at once, or on as few smaller lattices as hold the pairs.

    A pair is read off any lattice that holds all that act on it, so that pairs of one block of
    items do not take one lattice each. The lattices with the most pairs for their states come
    first, until `most` states are visited in all.
    """
    acting = [frozenset(ancestors(chain.theta, places[[i]]).tolist()) for i in range(places.size)]
    everything = frozenset().union(*acting)
    needs: dict[tuple[int, int], frozenset[int]] = {}
    if fits_lattice(len(everything), budget):
        needs = dict.fromkeys(combinations_with_replacement(range(places.size), 2), everything)
    else:
        for i, j in combinations_with_replacement(range(places.size), 2):
            if fits_lattice(len(acting[i] | acting[j]), budget):
                needs[i, j] = acting[i] | acting[j]
    held: dict[frozenset[int], list[tuple[int, int]]] = {}
    for pair, need in sorted(needs.items(), key=lambda x: (-len(x[1]), x[0])):
        lattice = next((chosen for chosen in held if need <= chosen), need)
        held.setdefault(lattice, []).append(pair)

    cheapest = sorted(held, key=lambda lattice: 2.0 ** len(lattice) / len(held[lattice]))
    visited = np.cumsum([2.0 ** len(lattice) for lattice in cheapest])
    chosen = [lattice for lattice, states in zip(cheapest, visited, strict=True) if states <= most]

    def work(lattice: frozenset[int]) -> NDArray[np.float64]:
        members = np.array(sorted(lattice), dtype=np.int64)
        flow, before = arrivals_on_lattice(chain.theta[np.ix_(members, members)], rate)
        np.fill_diagonal(before, flow)
        return before

    for lattice, part in zip(
        chosen, run_pieces(work, chosen, threads, "orders of items"), strict=True
    ):
        at = {member: place for place, member in enumerate(sorted(lattice))}
        for i, j in held[lattice]:
            a, b = at[int(places[i])], at[int(places[j])]
            joint[i, j], joint[j, i] = part[a, b], part[b, a]


def _count(drawn: Simulation, places: NDArray[np.int64], threads: int) -> NDArray[np.int64]:
    """Count the draws with a before b, for all pairs; on the diagonal those with a."""
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


def _from_joint(
    joint: NDArray[np.float64], labels: list[str], method: str, draws: int, seed: int | None
) -> Orders:
    n = len(labels)
    both = joint + joint.T
    np.fill_diagonal(both, np.diagonal(joint))
    with np.errstate(invalid="ignore"):
        probability = joint / both
    np.fill_diagonal(probability, np.nan)
    return _tables(
        probability, np.zeros((n, n)), both, np.full((n, n), method), labels, draws, seed
    )


def _combine(
    joint: NDArray[np.float64],
    missing: NDArray[np.bool_],
    counts: NDArray[np.int64],
    size: int,
    labels: list[str],
    seed: int,
) -> Orders:
    """Put counted pairs where the exact answer is missing."""
    together = counts + counts.T
    np.fill_diagonal(together, np.diagonal(counts))
    found = _from_joint(np.where(missing, counts / size, joint), labels, "exact", size, seed)
    # Binomial given the number of draws with both.
    error = share_error(counts, counts.T)
    error[together == 0] = np.inf
    np.fill_diagonal(error, 0.0)
    probability = found.probability.to_numpy().copy()
    probability[missing & (together == 0)] = np.nan
    return _tables(
        probability,
        np.where(missing, error, 0.0),
        found.observed.to_numpy(),
        np.where(missing, "simulation", "exact"),
        labels,
        size,
        seed,
    )


def _tables(
    probability: NDArray[np.float64],
    se: NDArray[np.float64],
    observed: NDArray[np.float64],
    method: NDArray[Any],
    labels: list[str],
    draws: int,
    seed: int | None,
) -> Orders:
    def table(values: NDArray[Any]) -> pd.DataFrame:
        return pd.DataFrame(values, index=labels, columns=labels)

    return Orders(
        probability=table(probability), se=table(se), observed=table(observed),
        method=table(method), draws=draws, seed=seed,
    )  # fmt: skip


def _in_sample(
    chain: Model,
    items: Iterable[Any] | None,
    given: Iterable[Any],
    *,
    method: str,
    draws: int | None,
    target_se: float | None,
    rate: float,
    budget: Budget,
    random_state: RandomState,
    n_threads: int,
) -> Orders:
    present, data = one_sample(chain, given, "given")
    places = present if items is None else find_items(chain, items)
    absent = [chain.items[place] for place in places if place not in present]
    if absent:
        raise InputError(
            f"the sample does not have {absent[0]!r}; P(a before b | sample) is for items that it "
            "has"
        )
    if places.size < 2:
        raise InputError(f"an order needs two items; {places.size} given")
    at = np.searchsorted(present, places)
    found = posterior_until_precise(
        chain.theta,
        data,
        lambda answer: float(np.max(_sample_errors(answer)[np.ix_(at, at)])),
        draws,
        target_se,
        exact_only=method == "exact",
        observation_rate=rate,
        budget=budget,
        random_state=random_state,
        n_threads=n_threads,
    )
    labels = [chain.items[place] for place in places]
    probability = found.posterior.before(0)[np.ix_(at, at)].copy()
    np.fill_diagonal(probability, np.nan)
    n = places.size
    how = str(found.posterior.methods[0])
    return _tables(
        probability, _sample_errors(found)[np.ix_(at, at)], np.ones((n, n)),
        np.full((n, n), how), labels, found.draws, found.seed,
    )  # fmt: skip


def _sample_errors(found: SampleAnswer) -> NDArray[np.float64]:
    """Return the standard errors of P(a before b | sample): never 0 unless exact, as in `_combine`.

    Where all drawn orders agree their chains do not differ, which is not to say that others could
    not.
    """
    error = found.posterior.before_se(0).copy()
    if found.draws:
        before = found.posterior.before(0)
        agreed = (error == 0.0) & ~np.eye(len(error), dtype=np.bool_)
        error[agreed] = share_error(found.draws * before, found.draws * before.T)[agreed]
    return error
