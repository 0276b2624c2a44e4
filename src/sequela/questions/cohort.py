"""The most likely order of each sample of a cohort, and all these orders as a tree.

The tree is that of Schill et al. (2020): samples share a branch as long as their orders agree.
If cells of a sample are missing, its order is that of the items that it is known to have. Samples
with too many items for the lattice have no order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.partial import passage_of
from sequela.model import as_model
from sequela.questions.known_orders import orders_on_lattice
from sequela.questions.order_search import best_orders
from sequela.samples import as_samples
from sequela.settings import read_settings
from sequela.support.errors import InputError
from sequela.support.threads import run_pieces
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.model import ModelLike
    from sequela.settings import SettingsKeywords

__all__ = ["CohortOrders", "OrderBranch", "cohort_orders"]

# Largest number of states of all lattices together; computing this many takes some seconds (up to
# 20 seconds of one core if cells are missing). If the lattices of all sets would have more states,
# the largest sets get no order.
_MAX_STATES = 1 << 22
_MAX_SIZE = 20


@dataclass(frozen=True)
class OrderBranch:
    """A branch of the tree of orders.

    Attributes
    ----------
    item : str or None
        The item that was added last; None for the root.
    count : int
        Number of samples whose order begins with the items up to this branch.
    ended : int
        Number of these samples whose order ends here.
    rest : int
        Number of these samples whose next branch was left out, because it has too few samples.
    children : tuple of OrderBranch
        The branches of the next items, the most frequent first.
    """

    item: str | None
    count: int
    ended: int
    rest: int
    children: tuple[OrderBranch, ...]

    @property
    def size(self) -> int:
        """The number of branches after this one."""
        return sum(1 + child.size for child in self.children)


@dataclass(frozen=True)
class CohortOrders:
    """The most likely order of each sample of a cohort.

    Attributes
    ----------
    orders : tuple
        For each sample, its most likely order, as a tuple of labels. If cells are missing, it is
        the order of the items that the sample is known to have. None if there is no order, because
        the set is too large.
    probability : array (samples,)
        For each sample, the probability of this order given what is known of the sample: its set,
        or its known cells, and its known orders. NaN if there is no order.
    arrivals : tuple
        For each sample, a mapping from the labels of its items to mean arrival times. If cells are
        missing, these are the items that the sample is known to have. None if there is no order.
    samples, items : tuple of str
        The ids of the samples, and the labels of the items.
    largest : int
        The largest size of a set for which orders were computed. Missing items count, too, if
        they act on an item whose cell is known, directly or through other missing items.
    """

    orders: tuple[tuple[str, ...] | None, ...]
    probability: NDArray[np.float64]
    arrivals: tuple[dict[str, float] | None, ...] = field(repr=False)
    samples: tuple[str, ...] = field(repr=False)
    items: tuple[str, ...] = field(repr=False)
    largest: int = 0

    def tree(self, items: Iterable[Any] | None = None, *, least: int = 1) -> OrderBranch:
        """Return the orders as a tree.

        Parameters
        ----------
        items : list of labels or None
            Keep only these items in each order; None: all.
        least : int
            Leave out branches with fewer samples than this.

        Examples
        --------
        >>> from sequela.data.examples import example_theta
        >>> theta = [[0.0, 4.0], [0.0, -4.0]]
        >>> tree = cohort_orders(theta, [[1, 1], [1, 0], [0, 0]]).tree()
        >>> tree.count, tree.ended, tree.children[0].item, tree.children[0].count
        (3, 1, '0', 2)
        """
        kept = set(self.items) if items is None else {str(item) for item in items}
        unknown = kept - set(self.items)
        if unknown:
            raise InputError(
                f"the cohort has no item {min(unknown)!r}; expected labels of its items, such as "
                f"{self.items[0]!r}"
            )
        least = positive_integer("least", least)
        root = _Growing()
        for order in self.orders:
            if order is not None:
                root.add([item for item in order if item in kept])
        place = {item: at for at, item in enumerate(self.items)}
        return root.finish(None, least, lambda item: place[item])

    def paths(
        self, length: int = 3, items: Iterable[Any] | None = None
    ) -> dict[tuple[str, ...], int]:
        """Return how many orders begin with each sequence of `length` items.

        The most common sequence is first. If `items` are given, all other items are first
        removed from the orders. An order with fewer than `length` items is not counted.

        Examples
        --------
        >>> theta = [[0.0, 4.0], [0.0, -4.0]]
        >>> cohort_orders(theta, [[1, 1], [1, 1], [1, 0]]).paths(2)
        {('0', '1'): 2}
        """
        length = positive_integer("length", length)
        kept = set(self.items) if items is None else {str(item) for item in items}
        counts: dict[tuple[str, ...], int] = {}
        for order in self.orders:
            path = tuple(item for item in order or () if item in kept)[:length]
            if len(path) == length:
                counts[path] = counts.get(path, 0) + 1
        return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


class _Growing:
    """A branch of the tree to which samples can still be added."""

    def __init__(self) -> None:
        self.count = 0
        self.ended = 0
        self.next: dict[str, _Growing] = {}

    def add(self, order: list[str]) -> None:
        at = self
        at.count += 1
        for item in order:
            at = at.next.setdefault(item, _Growing())
            at.count += 1
        at.ended += 1

    def finish(self, item: str | None, least: int, place: Callable[[str], int]) -> OrderBranch:
        ranked = sorted(self.next.items(), key=lambda entry: (-entry[1].count, place(entry[0])))
        children = tuple(
            child.finish(name, least, place) for name, child in ranked if child.count >= least
        )
        rest = sum(child.count for _, child in ranked if child.count < least)
        return OrderBranch(item, self.count, self.ended, rest, children)


def cohort_orders(
    model: ModelLike,
    data: DataLike,
    *,
    max_size: int = 12,
    **settings: Unpack[SettingsKeywords],
) -> CohortOrders:
    """Return the most likely order of the items that each sample is known to have.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    data : Dataset, DataFrame, array or list of sets
        The samples.
    max_size : int
        Samples with more items get no order. Missing items count if they act on an item whose cell
        is known, directly or through other missing items. The limit that is used is at most 20, and
        it is lower if there are very many large samples. `CohortOrders.largest` is this limit.
    **settings
        `n_threads` and `random_state` (default 0); see `Settings`.

    Notes
    -----
    If cells are missing, the probability of an order is a sum: the missing items may be present or
    absent, and they may have any place in the order of arrival. An order that contradicts a certain
    known order does not occur. The result is the first order of `likely_orders`. It is exact,
    unless a sample with missing cells has a lattice of more than 18 items, or the search would take
    too long. Then histories are drawn, and a more likely order may not have been drawn.

    In a tree or a path, a missing item looks like an absent item.

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> cohort = cohort_orders(example_theta(), [{"second", "first"}, {"step 2", "step 1"}])
    >>> cohort.orders
    (('first', 'second'), ('step 1', 'step 2'))

    It is not known whether the second sample has "step 1":

    >>> from sequela import Dataset
    >>> items = ["step 1", "step 2", "step 3"]
    >>> data = Dataset([[1, 1, 1], [None, 1, 1]], items=items)
    >>> cohort_orders(example_theta().loc[items, items], data).orders
    (('step 1', 'step 2', 'step 3'), ('step 2', 'step 3'))
    """
    how = read_settings(
        settings, unused=("budget", "sampling", "draws", "target_se"), default_seed=0
    )
    model = as_model(model)
    read = as_samples(model, data).without_times()
    max_size = min(positive_integer("max_size", max_size), _MAX_SIZE)
    parameters = Parameters.of(model)
    distinct = DistinctSamples.of(read, partial=True)
    lattice_sizes = distinct.sizes.copy()
    for s in np.flatnonzero(distinct.partial):
        matter = distinct.as_partial(int(s)).that_matter(parameters.children)
        lattice_sizes[s] += len(matter)
    largest = _affordable(lattice_sizes, max_size)
    labels = model.items

    def work(s: int) -> tuple[tuple[str, ...], float, dict[str, float]] | None:
        items = distinct.items(s)
        known = distinct.as_partial(s)
        if lattice_sizes[s] > largest:
            return None
        passage = passage_of(parameters, known, known.that_matter(parameters.children))
        if passage is None:
            return None
        log_p = passage.log_p()
        if known.missing.size:
            best = orders_on_lattice(passage, items.size, 1, how)
            order, probability = best.orders[0], float(best.probability[0])
        else:
            weight, order = next(best_orders(passage))
            probability = float(np.exp(weight + np.log(parameters.stop_rate) - log_p))
        arrivals = passage.moments().arrival_mean[: items.size]
        return (
            tuple(labels[items[b]] for b in order),
            probability,
            {labels[item]: float(time) for item, time in zip(items, arrivals, strict=True)},
        )

    pieces = np.argsort(-lattice_sizes, kind="stable").tolist()
    done = run_pieces(work, pieces, how.threads, "orders of samples")
    found = [done[place] for place in np.argsort(pieces, kind="stable")]
    each = [found[int(s)] for s in distinct.inverse]
    return CohortOrders(
        orders=tuple(None if one is None else one[0] for one in each),
        probability=np.array([np.nan if one is None else one[1] for one in each]),
        arrivals=tuple(None if one is None else one[2] for one in each),
        samples=read.samples,
        items=read.items,
        largest=largest,
    )


def _affordable(sizes: NDArray[np.int64], max_size: int) -> int:
    """Return the largest set size for which all lattices together are within the limit."""
    counts = np.bincount(sizes[sizes <= max_size], minlength=max_size + 1)
    states = np.cumsum(counts * 2.0 ** np.arange(max_size + 1))
    return int(np.flatnonzero(states <= _MAX_STATES).max(initial=0))
