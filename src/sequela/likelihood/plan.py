"""Decide how a set is evaluated: on its lattice, by components, or by sampling.

Likelihoods, fits, posteriors and questions all use this module, so that they make the same
decisions for the same set. To add another way to evaluate a set, add a member to `ways.Way`, and
compare its cost with the other costs in this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.budget import LARGEST_COMPLETED_SET, LARGEST_EXACT_SET, Budget
from sequela.likelihood.component_cost import (
    COMPONENT_OVERHEAD,
    LARGEST_COMPONENT,
    LEAST_COMPONENT_SET,
    work_of_components,
)
from sequela.likelihood.decomposition import acting, components_of
from sequela.likelihood.partial_plan import PartialPlan
from sequela.likelihood.seconds import LATTICE_SECONDS, ORDER_SECONDS
from sequela.likelihood.ways import Way, check_method
from sequela.support.errors import BudgetError, InputError
from sequela.support.naming import either

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.kernels.arguments import PhaseTables
    from sequela.likelihood.decomposition import Component
    from sequela.likelihood.distinct import DistinctSamples
    from sequela.likelihood.parameters import Parameters

__all__ = [
    "Plan",
    "all_subsets_fit",
    "choose_way",
]

# If the lattices need more operations per evaluation than this number, a fit uses components
# instead. This number of operations takes about a fifth of a second.
_LATTICE_WORK_OF_A_FIT = 3e9
# If components are computed quickly (`quick_components`), the estimated work of a set is multiplied
# by _QUICK_SHARE. The fixed cost of a set is then equal to the cost of _QUICK_FIXED operations on a
# lattice.
_QUICK_SHARE = 0.75
_QUICK_FIXED = 5e6
# If a fit draws histories for some samples, it draws them for all samples whose lattice needs more
# operations than this number. Drawing the histories of a sample takes about as long as this number
# of operations.
_DRAWN_WORK = 2e6
# If the missing cells of a sample are drawn, its completed sets are evaluated exactly if it has at
# most _LARGEST_COMPLETED present items, or at most _MOST_COMPLETED present and missing items
# together. (`LARGEST_COMPLETED_SET` is a limit in both cases.) For larger samples, orders are drawn
# as well, because lattices could have millions of states.
_LARGEST_COMPLETED = 6
_MOST_COMPLETED = 16
# The cost of the gradient between the components of a set, as a number of operations on a lattice.
_CROSS_OVERHEAD = 3e8
# On a lattice, times and orders take this many times as long as the log-likelihood with its
# gradient. The reason is that they need a lattice in logarithms. Quantiles also need Laplace
# transforms at many points.
_HISTORY_FACTOR = 30.0
# Number of points in time at which the gradient between components is evaluated.
_CROSS_POINTS = 4000


def choose_way(
    parameters: Parameters,
    items: NDArray[np.int64],
    budget: Budget,
    *,
    method: str = "auto",
    components: bool = False,
) -> Way:
    """Decide how one set at an unknown time is evaluated, and return the `Way`.

    Parameters
    ----------
    parameters : Parameters
        Theta and the observation.
    items : array of int
        The set.
    budget : Budget
        The largest cost of exact evaluation.
    method : {"auto", "exact"}
        With "exact", a set beyond the budget raises a `BudgetError`.
    components : bool
        Whether the caller can use components. Callers that can use them compute times and orders,
        for which a lattice takes longer than for the log-likelihood and its gradient.
    """
    # A set of at most one item has only one order.
    if items.size <= 1:
        return Way.EXACT
    columns = parameters.columns(items).n_columns
    lattice = (
        Budget.exact_work(float(items.size), float(columns))
        if budget.exact_fits(items.size, columns)
        else np.inf
    )
    if components and items.size >= LEAST_COMPONENT_SET:
        parts, _ = components_of(items, parameters.children)
        if work_of_components(parameters, parts, budget) < _HISTORY_FACTOR * lattice:
            return Way.COMPONENTS
    if np.isfinite(lattice):
        return Way.EXACT
    if method == "exact":
        raise BudgetError(
            f"a set of {items.size} items is beyond the budget; use method='auto', which draws "
            "orders, or a larger budget=Budget(...)"
        )
    return Way.RELOCATION


def all_subsets_fit(n_items: int, budget: Budget) -> bool:
    """Return whether the lattice of all subsets of this many items is within the budget."""
    return budget.exact_fits(n_items, n_items)


class Plan:
    """Decides how each distinct sample of a data set is evaluated, at any theta.

    Parameters
    ----------
    data : Dataset
        The samples; their labels are used in error messages.
    distinct : DistinctSamples
        The distinct samples of the data.
    method : str
        One of `METHODS`.
    budget : Budget
        The largest cost of exact evaluation, per set and in total.
    """

    def __init__(
        self, data: Dataset, distinct: DistinctSamples, method: str, budget: Budget
    ) -> None:
        self.data = data
        self.distinct = distinct
        self.method = check_method(method)
        self.budget = budget
        # Most sets are within the budget even if all items interact. These sets are within the
        # budget for every theta.
        self._exact_for_any_theta = self._exact_by_size()
        self._work_if_dense = self._work(np.full(len(distinct), data.n_items))
        self.partial = PartialPlan(data, distinct, budget)
        self.partial.require(method)
        self._parts: tuple[bytes, dict[int, list[Component]]] = (b"", {})

    def ways(self, parameters: Parameters, *, full_gradient: bool = True) -> NDArray[np.str_]:
        """Return how every distinct sample is evaluated at this theta.

        `full_gradient` influences the decision, because components take long for a complete
        gradient, but not for the log-likelihood alone.
        """
        distinct = self.distinct
        if parameters.phases is not None:
            return self._all_on_lattices(parameters.phases)
        if self.method == Way.COMPONENTS:
            return self._all_by_components(parameters)
        if self.method not in ("auto", "exact", Way.COMPLETIONS, Way.HISTORIES):
            return self._by_name()
        by_components = self._component_sets(parameters, full_gradient=full_gradient)
        exact = self._exact_for_any_theta & ~by_components
        columns = np.full(len(distinct), parameters.n)
        for s in map(int, np.nonzero(~exact & ~by_components)[0]):
            columns[s] = parameters.columns(distinct.items(s)).n_columns
            exact[s] = self.budget.exact_fits(
                int(distinct.sizes[s]), int(columns[s]), timed=bool(distinct.timed[s])
            )
            if self.method == "exact" and not exact[s]:
                raise self._over_budget(s, int(columns[s]))
        if self._work_if_dense[exact].sum() > self.budget.total_work:
            self._bound_total(exact, self._exact_columns(parameters, columns, exact))
        ways = self._named(exact)
        ways[by_components] = Way.COMPONENTS.value
        if self.partial.places.size:
            exact_partial = self.partial.exact(
                parameters.children, full_gradient=full_gradient,
                most_work=self.budget.total_work if self.method in ("auto", "exact") else -1.0,
                sample=self.method != "exact",
            )  # fmt: skip
            self._name_partial(ways, exact_partial)
        return ways

    def _all_by_components(self, parameters: Parameters) -> NDArray[np.str_]:
        """Return components for every set; raise an error if a set is beyond the budget."""
        distinct = self.distinct
        children = acting(parameters.theta != 0.0)
        for s in range(len(distinct)):
            row = int(distinct.first[s])
            name = f"sample {self.data.samples[row]!r} (row {row})"
            if distinct.timed[s]:
                raise InputError(
                    "method 'components' does not support known observation times, but the time "
                    f"of {name} is known; use method='auto'"
                )
            parts, _ = components_of(distinct.items(s), children)
            if not np.isfinite(work_of_components(parameters, parts, self.budget)):
                largest = max(part.size for part in parts)
                raise BudgetError(
                    f"{name} has a component of {largest} items, which is beyond the budget, or "
                    "whose rates differ too much. Use method='auto'"
                )
        return np.full(len(distinct), Way.COMPONENTS.value)

    def _component_sets(self, parameters: Parameters, *, full_gradient: bool) -> NDArray[np.bool_]:
        """Return which sets are evaluated faster by components than on their lattice."""
        distinct = self.distinct
        chosen = np.zeros(len(distinct), dtype=np.bool_)
        # Skip a set if its lattice takes less work than the fixed cost of components.
        overhead = _CROSS_OVERHEAD if full_gradient else COMPONENT_OVERHEAD
        cheap = self._exact_for_any_theta & (self._work_if_dense <= overhead)
        candidates = [s for s in self._candidates() if not cheap[s]]
        if not candidates:
            return chosen
        key = parameters.tables.row_start.tobytes() + parameters.tables.row_item.tobytes()
        key += bytes([full_gradient])
        if self._parts[0] != key:
            children = acting(parameters.theta != 0.0)
            found = {s: components_of(distinct.items(s), children)[0] for s in candidates}
            self._parts = (key, found)
        for s, parts in self._parts[1].items():
            size = int(distinct.sizes[s])
            lattice = np.inf
            if self.budget.exact_fits(size, size):
                columns = parameters.columns(distinct.items(s)).n_columns
                if self.budget.exact_fits(size, columns):
                    lattice = Budget.exact_work(float(size), float(columns))
            work = work_of_components(parameters, parts, self.budget)
            if full_gradient:
                states = sum(2.0 ** min(part.size, LARGEST_COMPONENT) for part in parts)
                work += _CROSS_OVERHEAD + _CROSS_POINTS * 100.0 * states
            chosen[s] = work < lattice
        return chosen

    def _all_on_lattices(self, phases: PhaseTables) -> NDArray[np.str_]:
        """Return the lattice for every set; raise an error if a set is beyond the budget.

        If observation times are not exponential, a set at an unknown time can only be evaluated on
        its lattice.
        """
        if self.method not in ("auto", "exact"):
            raise InputError(
                f"method {self.method!r} needs exponential observation times, but the model has "
                "another distribution; use 'auto'"
            )
        if self.distinct.partial.any():
            row = int(self.distinct.first[int(np.argmax(self.distinct.partial))])
            raise InputError(
                f"sample {self.data.samples[row]!r} (row {row}) has missing cells or a known "
                "order, which needs exponential observation times; leave such samples out, or use "
                + either("sequela.Exponential()", "--observation exponential")
            )
        passes = phases.rates.size + phases.stages
        n = self.data.n_items
        sizes = np.minimum(self.distinct.sizes, 60).astype(np.float64)
        work = 2.0**sizes * (20.0 * passes * (sizes + 1.0) + 6.0 * n)
        memory = 2.0**sizes * 8.0 * (2.0 * passes + n + sizes)
        for s in map(int, np.argsort(-sizes, kind="stable")):
            if not self.distinct.timed[s] and not self.budget.allows(
                memory=float(memory[s]), work=float(work[s])
            ):
                row = int(self.distinct.first[s])
                raise BudgetError(
                    f"sample {self.data.samples[row]!r} (row {row}) has {int(sizes[s])} items, "
                    "which is beyond the budget if observation times are not exponential. Increase "
                    "the budget, leave out this sample or some items, or use "
                    + either("sequela.Exponential()", "--observation exponential")
                )
            break
        return np.where(self._exact_for_any_theta | ~self.distinct.timed, Way.EXACT.value,
                        Way.METROPOLIS.value)  # fmt: skip

    def ways_on_support(
        self,
        support: NDArray[np.bool_],
        phases: PhaseTables | None = None,
        *,
        quick: bool = False,
    ) -> NDArray[np.str_]:
        """Return how every distinct sample is evaluated, for all thetas with the given support.

        A fit must not change this decision while theta changes, as long as the support stays the
        same. The cost of lattices is therefore computed as if all items interacted.
        """
        if phases is not None:
            return self._all_on_lattices(phases)
        distinct = self.distinct
        n = self.data.n_items
        exact_partial = np.ones(0, dtype=np.bool_)
        if self.partial.places.size:
            limits = _LATTICE_WORK_OF_A_FIT, _DRAWN_WORK
            exact_partial = self.partial.exact_in_a_fit(acting(support), limits)
        if not exact_partial.all():
            return self._ways_of_a_sampled_fit(exact_partial)
        exact = self._exact_for_any_theta.copy()
        by_components = np.zeros(len(distinct), dtype=np.bool_)
        children = acting(support)
        # A lattice gives the complete gradient, but components give only a part of it. So lattices
        # are better for a fit, unless they are too slow.
        most = 0.0 if quick else _LATTICE_WORK_OF_A_FIT
        affordable = float(self._work_if_dense[exact].sum()) <= most
        for s in self._candidates():
            if exact[s] and affordable:
                continue
            parts, _ = components_of(distinct.items(s), children)
            lattice = Budget.exact_work(float(distinct.sizes[s]), float(n)) if exact[s] else np.inf
            work = work_of_components(None, parts, self.budget)
            if quick:
                work = _QUICK_FIXED + _QUICK_SHARE * (work - COMPONENT_OVERHEAD)
            by_components[s] = work < lattice
        exact &= ~by_components
        self._bound_total(exact, np.full(len(distinct), n))
        ways = self._named(exact)
        ways[by_components] = Way.COMPONENTS.value
        if self.partial.places.size:
            self._name_partial(ways, exact_partial)
        return ways

    def _ways_of_a_sampled_fit(self, exact_partial: NDArray[np.bool_]) -> NDArray[np.str_]:
        """Return how samples are evaluated in a fit that draws missing cells, for every support.

        Such a fit always has a Monte Carlo error. So each complete set is evaluated in the faster
        of two ways, on its lattice or by drawn histories. No set is evaluated by components.
        """
        distinct = self.distinct
        can_be_drawn = ~distinct.partial & ~distinct.timed & (distinct.sizes > 1)
        exact = self._exact_for_any_theta & ~(can_be_drawn & (self._work_if_dense > _DRAWN_WORK))
        ways = self._named(exact)
        ways[can_be_drawn & ~exact] = Way.HISTORIES.value
        ways[self.partial.places[~exact_partial]] = Way.HISTORIES.value
        return ways

    def _name_partial(self, ways: NDArray[np.str_], exact: NDArray[np.bool_]) -> None:
        """Fill in how partly known samples are evaluated.

        If the missing cells are drawn, orders are drawn as well, except in small samples.
        """
        places = self.partial.places
        known = [self.distinct.known(int(s)) for s in places]
        most = np.array([k.present.size + k.missing.size for k in known if k is not None])
        small = (self.distinct.sizes[places] <= _LARGEST_COMPLETED) | (most <= _MOST_COMPLETED)
        small &= most <= LARGEST_COMPLETED_SET
        if self.method == Way.HISTORIES:
            small[:] = False
        drawn = np.where(small, Way.COMPLETIONS.value, Way.HISTORIES.value)
        ways[places] = np.where(exact, Way.EXACT.value, drawn)

    def component_work(self, support: NDArray[np.bool_], chosen: NDArray[np.int64]) -> float:
        """Return the number of operations for the components of these sets on a support.

        A component that several sets share counts once. If a component is beyond the budget, return
        infinity.
        """
        children = acting(support)
        distinct = {
            part for s in chosen for part in components_of(self.distinct.items(int(s)), children)[0]
        }
        return work_of_components(None, list(distinct), self.budget)

    def seconds_without_components(self, chosen: NDArray[np.int64]) -> float:
        """Return the predicted seconds to evaluate these sets by lattices and drawn orders."""
        exact = self._exact_for_any_theta[chosen]
        items = float(self.distinct.sizes[chosen[~exact]].sum())
        return (
            LATTICE_SECONDS * self.lattice_work(chosen[exact])
            + ORDER_SECONDS * items * self.data.n_items
        )

    def lattice_work(self, chosen: NDArray[np.int64]) -> float:
        """Return the number of operations on the lattices of these sets if all items interact."""
        return float(self._work_if_dense[chosen].sum())

    def _candidates(self) -> list[int]:
        """Return the sets for which components may be faster."""
        large = (self.distinct.sizes >= LEAST_COMPONENT_SET) & ~self.distinct.timed
        large &= ~self.distinct.partial
        return [int(s) for s in np.nonzero(large)[0]]

    def _exact_by_size(self) -> NDArray[np.bool_]:
        sizes = self.distinct.sizes
        n = self.data.n_items
        fits = np.array(
            [
                [k <= 1 or self.budget.exact_fits(k, n, timed=timed) for timed in (False, True)]
                for k in range(int(sizes.max(initial=0)) + 1)
            ]
        )
        found: NDArray[np.bool_] = fits[sizes, self.distinct.timed.astype(np.int64)]
        # For partly known samples, the entry is always True. `PartialPlan` decides how they are
        # evaluated.
        return found | self.distinct.partial

    def _work(self, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        # Sets of more than 60 items are never evaluated exactly. The bound avoids an overflow.
        sizes = np.where(self.distinct.partial, 0, np.minimum(self.distinct.sizes, 60))
        sizes = sizes.astype(np.float64)
        wide = columns.astype(np.float64)
        return np.where(
            self.distinct.timed,
            Budget.exact_work(sizes, wide, timed=True),
            Budget.exact_work(sizes, wide),
        )

    def _exact_columns(
        self, parameters: Parameters, columns: NDArray[np.int64], exact: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Return the number of columns of each exact set.

        For some of these sets, `columns` contains only an upper bound: the number of all items.
        """
        counted = columns.copy()
        for s in map(int, np.nonzero(exact & self._exact_for_any_theta)[0]):
            counted[s] = parameters.columns(self.distinct.items(s)).n_columns
        return counted

    def _bound_total(self, exact: NDArray[np.bool_], columns: NDArray[np.int64]) -> None:
        """Remove the sets with the most work from `exact`, until the budget for all sets is met."""
        work = np.where(exact, self._work(columns), 0.0)
        total = float(work.sum())
        if total <= self.budget.total_work:
            return
        if self.method == "exact":
            raise BudgetError(
                f"exact evaluation of all {len(self.distinct)} distinct sets needs {total:.2g} "
                f"operations, but the budget is {self.budget.total_work:.2g} in total. Increase "
                "total_work of the budget, or use method='auto'"
            )
        # A set of one item has only one order, and a fit cannot sample sets at known times.
        can_be_sampled = exact & (self.distinct.sizes > 1) & ~self.distinct.timed
        for s in np.argsort(-work, kind="stable"):
            if total <= self.budget.total_work:
                return
            if can_be_sampled[s]:
                exact[s] = False
                total -= float(work[s])

    def _named(self, exact: NDArray[np.bool_]) -> NDArray[np.str_]:
        sampled = np.where(self.distinct.timed, Way.METROPOLIS.value, Way.RELOCATION.value)
        # The type of the array must be wide enough for all names that are filled in later.
        return np.where(exact, Way.EXACT.value, sampled).astype(f"<U{max(map(len, Way))}")

    def _by_name(self) -> NDArray[np.str_]:
        sampled = self.distinct.sizes > 1
        if self.method == Way.RELOCATION and (sampled & self.distinct.timed).any():
            raise InputError(
                "method 'relocation' does not support known observation times; use 'auto' or "
                "'metropolis' for samples with known times"
            )
        return np.where(sampled, self.method, Way.EXACT.value)

    def _over_budget(self, index: int, columns: int) -> BudgetError:
        distinct = self.distinct
        row = int(distinct.first[index])
        size = int(distinct.sizes[index])
        timed = bool(distinct.timed[index])
        found = f"sample {self.data.samples[row]!r} (row {row}) has {size} items"
        if size > LARGEST_EXACT_SET:
            return BudgetError(
                f"{found}: sets of more than {LARGEST_EXACT_SET} items are never exact, for any "
                "budget. Use method='auto', or leave the sample out"
            )
        memory = Budget.exact_memory(size, columns, timed=timed)
        work = Budget.exact_work(size, columns, timed=timed)
        return BudgetError(
            f"{found}: exact evaluation needs {memory / 1e6:.4g} MB and {work:.2g} operations, but "
            f"the budget is {self.budget.memory} and {self.budget.work:.2g}. Increase the budget, "
            "use method='auto', or leave the sample out"
        )
