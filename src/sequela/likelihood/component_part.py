"""The contribution to the objective of a fit from the sets that are evaluated by components."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.likelihood.component_cost import work_of_components
from sequela.likelihood.components import ComponentSets, in_component_range, integral_work
from sequela.likelihood.decomposition import decompose
from sequela.likelihood.quick_components import QuickComponents, posteriors_of, quick_work
from sequela.likelihood.seconds import COMPONENT_SECONDS, COMPONENT_SET_SECONDS, INTEGRAL_SECONDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.budget import Budget
    from sequela.likelihood.distinct import DistinctSamples
    from sequela.likelihood.parameters import Parameters
    from sequela.likelihood.quick_components import Posterior

__all__ = ["ComponentPart"]

# The time that components need for the entries of the gradient on the support, divided by the time
# that they need for the complete gradient. In a measurement with 50 items, these times were 5.5 ms
# and 15 ms.
_ON_SUPPORT = 0.35


class ComponentPart:
    """The sets that a fit evaluates by components, as long as theta is zero outside a support.

    Parameters
    ----------
    distinct : DistinctSamples
        All distinct samples of the fit.
    places : array of int
        The positions of the distinct samples that are evaluated by components.
    support : array of bool, (n, n)
        The entries of theta that may differ from zero.
    budget : Budget
        The largest cost of components.
    known : dict or None
        For each set (by its position), the posterior of its observation time at the last
        evaluation. `quick_components` needs these posteriors, and every evaluation updates them.
        None means that `quick_components` is not used.

    Attributes
    ----------
    sets : list of arrays of int
        The items of each set.
    integral_work : float
        Number of operations for the integrals over time.
    """

    def __init__(
        self,
        distinct: DistinctSamples,
        places: NDArray[np.int64],
        support: NDArray[np.bool_],
        budget: Budget,
        known: dict[int, Posterior] | None,
    ) -> None:
        self.places = places
        self.weights = distinct.weights[places]
        self.sets = [distinct.items(int(s)) for s in places]
        self.integral_work = integral_work(self.sets)
        self._n = len(support)
        self._known = known if known is not None else {}
        self._decomposition = decompose(support, self.sets) if self.sets else None
        self._work, self._quick_work, self._is_quick = 0.0, 0.0, False
        if self._decomposition is not None:
            self._work = work_of_components(None, self._decomposition.components, budget)
            if known is not None:
                self._quick_work = quick_work(self._decomposition)
                self._is_quick = self._quick_work < self._work
        self._limit = budget.work

    def seconds(self) -> float:
        """Return the predicted seconds of an evaluation on the support, on one core."""
        if self._decomposition is None:
            return 0.0
        if self._is_quick:
            return _ON_SUPPORT * COMPONENT_SECONDS * self._quick_work
        return _ON_SUPPORT * (
            COMPONENT_SECONDS * min(self._work, self._limit)
            + INTEGRAL_SECONDS * self.integral_work
            + COMPONENT_SET_SECONDS * len(self.sets)
        )

    def evaluate(
        self, parameters: Parameters, threads: int, *, full: bool, approximate: bool
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the contribution of the sets to loss and gradient.

        The loss is infinite if the components are out of range or not accurate. If `full` is False
        or `approximate` is True, the entries of the gradient outside the support are incomplete.
        """
        assert self._decomposition is not None  # noqa: S101 - there are such sets
        nowhere = np.inf, np.zeros((self._n, self._n))
        if not all(in_component_range(parameters, c) for c in self._decomposition.components):
            return nowhere
        if self._is_quick and (approximate or not full):
            found = self._quickly(parameters, threads)
            if found is not None:
                return -found[0], -found[1]
        solved = ComponentSets(parameters, self._decomposition, self.sets)
        solved.solve(threads)
        if not solved.is_accurate:
            return nowhere
        if self._is_quick:
            self._known |= zip(map(int, self.places), posteriors_of(solved), strict=True)
        gradient = solved.gradient(self.weights, threads)
        if full and not approximate:
            from sequela.likelihood.cross_gradient import CrossGradient  # only large sets need it
            from sequela.likelihood.cross_times import COARSE

            gradient += CrossGradient(solved, COARSE).gradient(self.weights, threads)
        return -float(self.weights @ solved.log_p), -gradient

    def _quickly(
        self, parameters: Parameters, threads: int
    ) -> tuple[float, NDArray[np.float64]] | None:
        """Return the weighted sum of log p and its gradient by `QuickComponents`.

        Return None if the result is not precise enough, or if the posterior of the time of some set
        is not stored yet.
        """
        assert self._decomposition is not None  # noqa: S101 - there are such sets
        begun = [self._known[s] for s in map(int, self.places) if s in self._known]
        if len(begun) < len(self.sets):
            return None
        sets = QuickComponents(self._decomposition, self.sets, begun)
        found = sets.evaluate(parameters, self.weights, threads)
        if found is not None:
            self._known |= zip(map(int, self.places), sets.posteriors, strict=True)
        return found
