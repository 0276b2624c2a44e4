"""Decide how partly known samples are evaluated: on lattices, or by drawing missing cells.

`Plan` uses this module for samples with missing cells or known orders.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sequela.budget import Budget
from sequela.likelihood.partial import lattices_of, passage_in_range
from sequela.support.errors import BudgetError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.likelihood.distinct import DistinctSamples
    from sequela.likelihood.parameters import Parameters
    from sequela.likelihood.partial import PartialSet
    from sequela.likelihood.passage import Passage

__all__ = ["PartialPlan", "partial_passage"]


def partial_passage(parameters: Parameters, known: PartialSet, budget: Budget) -> Passage:
    """Return the lattice of a partly known sample; raise an error if it is beyond the budget.

    The lattice contains the present items, and the missing items that matter (see `partial`).
    """
    matter = known.that_matter(parameters.children)
    size = known.present.size + len(matter)
    if size > 1 and not budget.exact_fits(size, parameters.n):
        raise BudgetError(
            f"a sample has {known.present.size} items and {len(matter)} missing cells that affect "
            "the answer. This is more than the budget allows for an exact answer, and the times "
            "and orders of partly known samples cannot be drawn. Increase the budget, or leave the "
            "sample out"
        )
    return passage_in_range(parameters, known, matter)


class PartialPlan:
    """Decides which partly known samples are evaluated on lattices, within the budget.

    Parameters
    ----------
    data : Dataset
        The samples. Their names appear in error messages.
    distinct : DistinctSamples
        The distinct samples of `data`.
    budget : Budget
        The largest cost of exact evaluation, per set and in total.
    """

    def __init__(self, data: Dataset, distinct: DistinctSamples, budget: Budget) -> None:
        self.data = data
        self.distinct = distinct
        self.budget = budget
        self.places = np.flatnonzero(distinct.partial)
        self._in_a_fit: NDArray[np.bool_] | None = None

    def require(self, method: str) -> None:
        """Raise an error if there are partly known samples and the method does not support them."""
        if self.places.size and method not in ("auto", "exact", "completions", "histories"):
            raise InputError(
                f"method {method!r} is for complete samples, but {self._name(int(self.places[0]))} "
                "has missing cells or a known order; use 'auto'"
            )

    def exact(
        self,
        children: Sequence[tuple[int, ...]],
        *,
        full_gradient: bool,
        most_work: float,
        sample: bool = True,
    ) -> NDArray[np.bool_]:
        """Return which of the partly known samples (`places`) are evaluated on lattices.

        Parameters
        ----------
        children : sequence of tuples
            For every item, the items on which it acts, or may act.
        full_gradient : bool
            Whether derivatives by effects that are zero are also needed.
        most_work : float
            Largest number of operations for all lattices together. If they need more, the missing
            cells of the most expensive samples are drawn.
        sample : bool
            Whether the missing cells of samples beyond the budget may be drawn. If False, a sample
            beyond the budget raises an error.
        """
        work = np.array([self._work(int(s), children, full=full_gradient) for s in self.places])
        exact: NDArray[np.bool_] = np.isfinite(work)
        for at in np.flatnonzero(~exact):
            self._refuse_what_cannot_be_drawn(int(self.places[at]), children, sample=sample)
        if not sample:
            return exact
        drawn = np.array([self._can_be_drawn(int(s)) for s in self.places], dtype=np.bool_)
        return exact & _within(np.where(exact, work, 0.0), drawn, most_work)

    def exact_in_a_fit(
        self, children: Sequence[tuple[int, ...]], limits: tuple[float, float]
    ) -> NDArray[np.bool_]:
        """Return which partly known samples a fit evaluates on lattices, whatever theta is.

        The cost of a lattice is computed as if all items interacted, as for complete samples. So
        the result holds for every theta. `limits` are two numbers of operations: one for all
        lattices together, and one for a single lattice. If all lattices together need more than the
        first number, the missing cells of some samples are drawn. These are the samples whose
        lattice needs more than the second number, and whose missing cells can be drawn. If the
        missing cells of a sample cannot be drawn, its lattice has only those missing items that
        matter on the support (`children`), and only this lattice must be within the budget.
        """
        if self._in_a_fit is None:
            n = self.data.n_items
            dense = [tuple(j for j in range(n) if j != i) for i in range(n)]
            work = np.array([self._work(int(s), dense, full=False) for s in self.places])
            drawn = np.array([self._can_be_drawn(int(s)) for s in self.places], dtype=np.bool_)
            most_work, drawn_work = limits
            if float(work.sum()) > most_work:
                self._in_a_fit = ~drawn | (work <= drawn_work)
            else:
                self._in_a_fit = np.ones(work.size, dtype=np.bool_)
            for s in self.places[~self._in_a_fit]:
                self._refuse_what_cannot_be_drawn(int(s), dense, sample=True)
        for s in self.places[self._in_a_fit]:
            if not self._can_be_drawn(int(s)) and np.isinf(
                self._work(int(s), children, full=False)
            ):
                self._refuse_what_cannot_be_drawn(int(s), children, sample=True)
        return self._in_a_fit

    @cached_property
    def drawable(self) -> NDArray[np.bool_]:
        """Which distinct samples have missing cells that could be drawn."""
        found = np.zeros(len(self.distinct), dtype=np.bool_)
        found[self.places] = [self._can_be_drawn(int(s)) for s in self.places]
        return found

    def _can_be_drawn(self, s: int) -> bool:
        known = self.distinct.known(s)
        return known is not None and known.missing.size > 0 and self._obstacle(s) is None

    def _obstacle(self, s: int) -> str | None:
        """Return why the missing cells of a sample cannot be drawn; None if they can."""
        known = self.distinct.known(s)
        if known is not None and known.statements:
            return "a known order"
        return "a known observation time" if self.distinct.timed[s] else None

    def _work(self, s: int, children: Sequence[tuple[int, ...]], *, full: bool) -> float:
        known = self.distinct.known(s)
        if known is None:
            return 0.0
        timed = bool(self.distinct.timed[s])
        n = self.data.n_items
        work = 0.0
        for lattice in lattices_of(known, children, full_gradient=full):
            size = known.present.size + len(lattice.missing)
            if not self.budget.exact_fits(size, n, timed=timed):
                return np.inf
            work += float(Budget.exact_work(float(size), float(n), timed=timed))
        return work

    def _refuse_what_cannot_be_drawn(
        self, s: int, children: Sequence[tuple[int, ...]], *, sample: bool
    ) -> None:
        known = self.distinct.known(s)
        if known is None:
            return
        obstacle = self._obstacle(s)
        matter = len(known.that_matter(children))
        size = known.present.size
        found = (
            f"{self._name(s)} has {size} items and {matter} missing cells that affect the answer"
        )
        if not sample:
            raise BudgetError(
                f"{found}. This is more than the budget allows for an exact answer. Increase the "
                "budget, use method='auto', which draws the missing cells, or leave the sample out"
            )
        if obstacle is not None:
            raise BudgetError(
                f"{found}. This is more than the budget allows for an exact answer, and the cells "
                f"of a sample with {obstacle} cannot be drawn. Increase the budget, or leave out "
                f"the sample or its {'order' if 'order' in obstacle else 'time'}"
            )

    def _name(self, s: int) -> str:
        row = int(self.distinct.first[s])
        return f"sample {self.data.samples[row]!r} (row {row})"


def _within(
    work: NDArray[np.float64], can_be_drawn: NDArray[np.bool_], most_work: float
) -> NDArray[np.bool_]:
    """Return which samples are evaluated on lattices, with at most `most_work` operations.

    The most expensive samples whose missing cells can be drawn are removed, until the lattices of
    the other samples need at most this number of operations.
    """
    kept = ~can_be_drawn | np.isfinite(work)
    total = float(work[kept & np.isfinite(work)].sum())
    for at in np.argsort(-work, kind="stable"):
        if total <= most_work:
            break
        if can_be_drawn[at] and kept[at]:
            kept[at] = False
            total -= float(work[at])
    return kept
