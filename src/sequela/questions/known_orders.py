"""Orders of the known items of a sample with missing cells, by a search or from draws.

The lattice of the known items and of the missing items that matter gives exact probabilities, and a
search finds the most probable orders. If the lattice is large, or the search needs too many steps,
histories are drawn. Beyond the budget of the lattice, they are drawn with several Markov chains.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sequela.likelihood.drawn_histories import Histories
from sequela.likelihood.drawn_samples import CHAINS
from sequela.likelihood.lattice_histories import LatticeHistories
from sequela.likelihood.partial_plan import partial_passage
from sequela.likelihood.ways import Way
from sequela.questions.known_order_search import KnownOrders
from sequela.questions.precision import share_error
from sequela.support.random import Purpose, stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.parameters import Parameters
    from sequela.likelihood.partial import PartialSet
    from sequela.likelihood.passage import Passage
    from sequela.settings import Settings

__all__ = [
    "DEFAULT_HISTORIES",
    "FoundOrders",
    "orders_of_known_items",
    "orders_on_lattice",
    "shares_of_draws",
]

# Number of draws if the settings do not give a number.
DEFAULT_HISTORIES = 1_600
# Largest lattice, in items, for a search. Its tables need about 40 MB.
_LARGEST_SEARCHED = 18
# Largest number of steps of a search, and largest number of values that a search stores. A search
# with so many steps takes some seconds.
_MOST_STEPS = 20_000
_MOST_NUMBERS = 1e7


class FoundOrders(NamedTuple):
    """Orders of the known items, the most probable first.

    Attributes
    ----------
    orders : list of tuple of int
        Positions in the list of the known items, in the order of arrival.
    probability, se : arrays
        The probability of each order given what is known of the sample, and its Monte Carlo
        standard error.
    method : str
        "exact" or "histories".
    draws : int
        Number of draws; 0 if the orders were searched.
    """

    orders: list[tuple[int, ...]]
    probability: NDArray[np.float64]
    se: NDArray[np.float64]
    method: str
    draws: int


def orders_of_known_items(
    parameters: Parameters, known: PartialSet, max_orders: int, settings: Settings
) -> FoundOrders:
    """Return the most probable orders of the items that a sample is known to have.

    Parameters
    ----------
    parameters : Parameters
        Theta and the observation.
    known : PartialSet
        The sample. If it has known orders, its lattice must be within the budget.
    max_orders : int
        Largest number of orders.
    settings : Settings
        The budget of the lattice, the number of draws and the seed.
    """
    size = int(known.present.size)
    if size < 2:
        return _exact([(1.0, tuple(range(size)))])
    on_lattice = size + len(known.that_matter(parameters.children))
    if not known.statements and not settings.budget.exact_fits(on_lattice, parameters.n):
        return shares_of_draws(_from_chains(parameters, known, settings), max_orders, CHAINS)
    passage = partial_passage(parameters, known, settings.budget)
    passage.log_p()
    return orders_on_lattice(passage, size, max_orders, settings)


def orders_on_lattice(
    passage: Passage, size: int, max_orders: int, settings: Settings
) -> FoundOrders:
    """Return the most probable orders of the first `size` items of a lattice, which are present.

    The other items of the lattice are missing. Call `passage.log_p` before. If the lattice is not
    too large, the orders are searched. Otherwise, they are drawn.
    """
    if size < 2:
        return _exact([(1.0, tuple(range(size)))])
    if passage.k <= _LARGEST_SEARCHED:
        return _searched(passage, size, max_orders, settings)
    return shares_of_draws(_from_lattice(passage, size, settings), max_orders)


def _exact(found: list[tuple[float, tuple[int, ...]]]) -> FoundOrders:
    probability = np.array([p for p, _ in found])
    orders = [order for _, order in found]
    return FoundOrders(orders, probability, np.zeros(len(found)), Way.EXACT.value, 0)


def _searched(passage: Passage, size: int, max_orders: int, settings: Settings) -> FoundOrders:
    """Search the orders. If this needs too many steps, draw some and return the most probable."""
    tables = KnownOrders(passage, size)
    most_steps = int(min(_MOST_STEPS, max(_MOST_NUMBERS / 2.0 ** (passage.k - size), 100)))
    best = list(islice(tables.best_orders(most_steps), max_orders))
    searched = [found for found in best if found is not None]
    if len(searched) == len(best):
        return _exact(searched)
    drawn = _from_lattice(passage, size, settings)
    distinct = [*{order: None for _, order in searched} | dict.fromkeys(drawn)]
    probability = np.array([tables.probability(order) for order in distinct])
    ranked = np.argsort(-probability, kind="stable")[:max_orders]
    return FoundOrders(
        [distinct[at] for at in ranked], probability[ranked], np.zeros(ranked.size),
        Way.HISTORIES.value, len(drawn),
    )  # fmt: skip


def _from_lattice(passage: Passage, size: int, settings: Settings) -> list[tuple[int, ...]]:
    """Return independent draws of the order of the first `size` items of the lattice."""
    rng = stream(settings.seed, Purpose.COMPLETIONS, 8)
    histories = LatticeHistories(passage)
    draws = settings.draws or DEFAULT_HISTORIES
    return [tuple(c for c in histories.draw(rng) if c < size) for _ in range(draws)]


def _from_chains(
    parameters: Parameters, known: PartialSet, settings: Settings
) -> list[tuple[int, ...]]:
    """Return draws of the order of the known items from several Markov chains."""
    kept = -(-(settings.draws or DEFAULT_HISTORIES) // CHAINS)
    rng = stream(settings.seed, Purpose.COMPLETIONS, 9)
    chains = Histories.at_first([known], parameters.n, rng)
    drawn = chains.moved(parameters, [known], kept, (settings.seed, (10,)), settings.threads)
    place = {int(item): at for at, item in enumerate(known.present)}
    orders = drawn.kept.reshape(-1, parameters.n)
    lengths = drawn.lengths.ravel()
    return [
        tuple(place[item] for item in order[:length].tolist() if item in place)
        for order, length in zip(orders, lengths, strict=True)
    ]


def shares_of_draws(drawn: list[tuple[int, ...]], max_orders: int, chains: int = 1) -> FoundOrders:
    """Return the most frequent of the drawn orders, and their shares of the draws.

    The draws of each chain are adjacent. The standard error is computed as for independent draws.
    If the spread of the chains gives a larger error, this error is used instead.
    """
    counts: dict[tuple[int, ...], NDArray[np.int64]] = {}
    for at, order in enumerate(drawn):
        if order not in counts:
            counts[order] = np.zeros(chains, dtype=np.int64)
        counts[order][at * chains // len(drawn)] += 1
    ranked = sorted(counts, key=lambda order: (-counts[order].sum(), order))[:max_orders]
    by_chain = np.array([counts[order] for order in ranked])
    hits = by_chain.sum(axis=1)
    se = share_error(hits, len(drawn) - hits)
    if chains > 1:
        shares = by_chain * (chains / len(drawn))
        se = np.maximum(se, shares.std(axis=1, ddof=1) / np.sqrt(chains))
    return FoundOrders(ranked, hits / len(drawn), se, Way.HISTORIES.value, len(drawn))
