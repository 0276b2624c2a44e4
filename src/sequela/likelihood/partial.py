"""Evaluate samples with missing cells, or with known orders of some items.

If a sample has the present items S and the missing items M, its probability is the sum of p(T) over
all sets T that contain S and otherwise only items of M. The lattice of S + M contains all these
sets, so one pass over it gives the sum. But not all missing items need to be on the lattice. A
missing item *matters* if it acts, directly or through other missing items, on an item whose cell is
known (present or absent). Given the items that matter, the history of the other missing items has
no effect on the known cells. To sum over these other missing items, leave them and their rates out.

A missing item that does not matter has no effects on known items: these entries of theta are zero.
But the derivatives with respect to these entries are not zero. To compute them, each such item
needs its own lattice. This lattice contains the missing items that matter, this item, and the
missing items that act on it.

Statements about the order are weights of the steps on the lattice. If a statement "a came before b"
is certain, the steps that it forbids have the weight zero. If the statement is right with the
probability p, the arrival of b has the weight p if a is present, and 1 - p if a is absent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sequela.likelihood.passage import Known, Passage, in_range, out_of_range

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from sequela.likelihood.parameters import Columns, Parameters

__all__ = ["PartialLattice", "PartialSet", "lattices_of", "passage_of"]


@dataclass(frozen=True)
class PartialSet:
    """A sample with missing cells or known orders.

    Attributes
    ----------
    present : array of int
        The items that are known to be present, ascending.
    missing : array of int
        The items whose cells are missing, ascending.
    statements : tuple of (int, int, float)
        Two items a and b, and the probability that the statement "a came before b" is right.
    """

    present: NDArray[np.int64]
    missing: NDArray[np.int64]
    statements: tuple[tuple[int, int, float], ...] = ()

    @property
    def on_lattice(self) -> NDArray[np.int64]:
        """The present items and then the missing items."""
        return np.concatenate([self.present, self.missing])

    @cached_property
    def _missing(self) -> frozenset[int]:
        return frozenset(self.missing.tolist())

    def that_matter(self, children: Sequence[tuple[int, ...]]) -> list[int]:
        """Return missing items that act, directly or indirectly, on an item that is not missing."""
        if not self._missing:
            return []
        matter = {i for i in self._missing if any(j not in self._missing for j in children[i])}
        waiting = self._missing - matter
        while True:
            more = {i for i in waiting if any(j in matter for j in children[i])}
            if not more:
                return sorted(matter)
            matter |= more
            waiting -= more

    def acting_on(self, item: int, children: Sequence[tuple[int, ...]]) -> set[int]:
        """Return the missing items that act, directly or indirectly, on the missing item `item`."""
        found: set[int] = set()
        while True:
            reached = found | {item}
            more = {i for i in self._missing - reached if reached.intersection(children[i])}
            if not more:
                return found
            found |= more


@dataclass(frozen=True)
class PartialLattice:
    """A lattice of a partly known sample: the missing items on it, and its purpose.

    Attributes
    ----------
    missing : tuple of int
        The missing items on the lattice.
    row : int or None
        If it is None, the lattice gives the log-probability, and the derivatives by the effects of
        all its items. Otherwise, the lattice gives only the derivatives by the effects of the
        missing item `row`.
    """

    missing: tuple[int, ...]
    row: int | None = None


def lattices_of(
    partial: PartialSet, children: Sequence[tuple[int, ...]], *, full_gradient: bool
) -> list[PartialLattice]:
    """Return the lattices that a sample needs; the first lattice gives its log-probability.

    Parameters
    ----------
    partial : PartialSet
        The sample.
    children : sequence of tuples
        For every item of the model, the items on which it acts.
    full_gradient : bool
        Whether derivatives by effects that are zero are also needed.
    """
    matter = partial.that_matter(children)
    found = [PartialLattice(tuple(matter))]
    if full_gradient:
        on = set(matter)
        for item in partial.missing.tolist():
            if item not in on:
                with_item = on | partial.acting_on(item, children) | {item}
                found.append(PartialLattice(tuple(sorted(with_item)), item))
    return found


def columns_of(parameters: Parameters, partial: PartialSet, on_lattice: Iterable[int]) -> Columns:
    """Return the columns of the lattice of the present items and some missing items.

    `on_lattice` are these missing items. The first columns are the items of the lattice. Then
    follow the absent items on which at least one of them acts.
    """
    some = np.array(sorted(on_lattice), dtype=np.int64)
    items = np.concatenate([partial.present, some])
    columns = parameters.columns(items)
    hidden = np.setdiff1d(partial.missing, some)
    if not hidden.size:
        return columns
    kept = ~np.isin(columns.items, hidden)
    constant = np.ones(parameters.n, dtype=np.bool_)
    constant[columns.items] = False
    constant[hidden] = False
    return replace(
        columns,
        items=columns.items[kept],
        effects=np.ascontiguousarray(columns.effects[:, kept]),
        rate=columns.rate[kept],
        rest=float(parameters.rate[constant].sum()),
        hidden=hidden,
    )


def passage_of(
    parameters: Parameters, partial: PartialSet, on_lattice: Iterable[int]
) -> Passage | None:
    """Return the lattice with the missing items `on_lattice`, or None if rates are out of range."""
    columns = columns_of(parameters, partial, on_lattice)
    if not in_range(columns):
        return None
    place = {int(item): at for at, item in enumerate(columns.items[: columns.k])}
    known = Known(
        n_present=int(partial.present.size),
        statements=tuple((place[a], place[b], p) for a, b, p in partial.statements),
    )
    return Passage(parameters, columns, known)


def passage_in_range(
    parameters: Parameters, partial: PartialSet, on_lattice: Iterable[int]
) -> Passage:
    """Return the same lattice as `passage_of`, but raise an error if rates are out of range."""
    passage = passage_of(parameters, partial, on_lattice)
    if passage is None:
        raise out_of_range(columns_of(parameters, partial, on_lattice))
    return passage


def evaluate_partial(
    parameters: Parameters,
    partial: PartialSet,
    t: float,
    lattices: Sequence[PartialLattice],
    *,
    want_gradient: bool,
) -> tuple[float, NDArray[np.float64] | None]:
    """Return log p of a sample at time t (NaN if unknown), and the gradient of log p.

    If the rates are out of range, the log-probability is NaN. `lattices` determines which rows of
    the gradient are complete; see `lattices_of`.
    """
    log_p, gradient = np.nan, None
    for lattice in lattices:
        passage = passage_of(parameters, partial, lattice.missing)
        if passage is None:
            return np.nan, None
        value, slope = _solve(passage, t, want_gradient=want_gradient)
        if np.isnan(value):
            return np.nan, None
        if lattice.row is None:
            log_p, gradient = value, slope
        elif gradient is not None and slope is not None:
            row = slope[lattice.row].copy()
            row[lattice.row] = 0.0
            gradient[lattice.row] += row
    return log_p, gradient


def _solve(
    passage: Passage, t: float, *, want_gradient: bool
) -> tuple[float, NDArray[np.float64] | None]:
    if not np.isnan(t):
        return passage.timed(t, want_gradient=want_gradient)
    value = passage.log_p()
    return value, passage.gradient() if want_gradient else None
