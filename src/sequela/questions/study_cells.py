"""Classes of samples of a planned study, in which the same cells and orders are known.

The class of a complete sample is its set. If cells are missing, the class is the combination of the
pattern of missing cells and the items that the sample is known to have. The probability of such a
class is the sum over all sets that fill in the missing cells. Each combination of known orders is a
class of its own. Its probability is a sum over orders, on the lattice of the known and the missing
items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.kernels.limits import PRODUCT_LOG_RANGE
from sequela.likelihood.distinct import DistinctSamples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.likelihood.partial import PartialSet
    from sequela.questions.study_problem import StudyProblem

__all__ = ["StudyCells", "study_cells"]

# Largest number of numbers in the table of a class with known orders, for several draws of theta.
_AT_ONCE = 4e6


@dataclass(frozen=True)
class StudyCells:
    """The classes of the samples of a study, and how many existing samples each class has.

    Attributes
    ----------
    shares : array (patterns,)
        The share of the existing samples with each pattern of missing cells. New samples have these
        patterns with these probabilities.
    sums : sparse matrix (classes without known orders, sets) or None
        Which sets belong to each class, for all patterns, one after the other. None if no cell is
        missing: the classes are then the sets.
    first : array (patterns + 1,)
        The position of the first class of each pattern.
    stated : list of PartialSet
        The classes with known orders. They follow the other classes.
    counts : array (classes,)
        The number of existing samples in each class.
    """

    shares: NDArray[np.float64]
    sums: Any
    first: NDArray[np.int64]
    stated: list[PartialSet]
    counts: NDArray[np.float64]

    def summed(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probabilities of classes without known orders, from probabilities of all sets."""
        return p if self.sums is None else np.asarray(self.sums @ p)

    def of_new_samples(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the joint probability of the class and the number of clock items of a new sample.

        `p` is the result of `summed`. The result is a flat array. It does not contain the classes
        with known orders, because new samples have no known orders.
        """
        flat = p.ravel()
        if self.sums is not None:
            of_class = np.repeat(self.shares, np.diff(self.first))
            flat = (p * of_class[:, None]).ravel()
        found: NDArray[np.float64] = flat / flat.sum()
        return found

    def of_stated(self, problem: StudyProblem, clocks: int) -> NDArray[np.float64]:
        """Return the probabilities of the classes with known orders, for all draws of theta.

        The shape is (draws, classes, clocks + 1).
        """
        theta = problem.posterior.theta
        found = np.empty((len(theta), len(self.stated), clocks + 1))
        for at, known in enumerate(self.stated):
            states = 1 << known.on_lattice.size
            together = max(1, int(_AT_ONCE / (states * (clocks + 1))))
            for start in range(0, len(theta), together):
                here = slice(start, start + together)
                found[here, at] = stated_probabilities(
                    theta[here], known, clocks, (problem.clock_rate, problem.stop_rate)
                )
        return found


def study_cells(data: Dataset) -> StudyCells:
    """Return the classes of the samples of `data`."""
    n = data.n_items
    codes = data.values.astype(np.int64) @ (1 << np.arange(n))
    has_order = np.array([bool(s) for s in data.orders or ((),) * data.n_samples])
    distinct = DistinctSamples.of(data.without_times(), partial=True)
    first = distinct.first
    chosen = np.flatnonzero(has_order[first])
    stated = [distinct.as_partial(int(s)) for s in chosen]
    of_stated = np.bincount(distinct.inverse, minlength=len(distinct))[chosen]
    if data.missing is None:
        counts = np.bincount(codes[~has_order], minlength=1 << n).astype(np.float64)
        return StudyCells(
            np.ones(1), None, np.array([0, 1 << n]), stated, np.concatenate([counts, of_stated])
        )
    patterns, inverse = np.unique(data.missing, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    sums, counts_of, starts = [], [], [0]
    for at, pattern in enumerate(patterns):
        known = int((~pattern).astype(np.int64) @ (1 << np.arange(n)))
        # The code of a set says which known items it has. Sets with equal codes are one class.
        classes, place = np.unique(np.arange(1 << n) & known, return_inverse=True)
        sums.append(_indicator(place.ravel(), classes.size))
        here = codes[(inverse == at) & ~has_order]
        counts_of.append(np.bincount(np.searchsorted(classes, here), minlength=classes.size))
        starts.append(starts[-1] + classes.size)
    from scipy.sparse import vstack

    return StudyCells(
        shares=np.bincount(inverse) / data.n_samples,
        sums=vstack(sums).tocsr(),
        first=np.array(starts),
        stated=stated,
        counts=np.concatenate([*counts_of, of_stated]).astype(np.float64),
    )


def _indicator(place: NDArray[np.int64], rows: int) -> Any:
    from scipy.sparse import csr_array

    columns = np.arange(place.size)
    return csr_array((np.ones(place.size), (place, columns)), shape=(rows, place.size))


def stated_probabilities(
    theta: NDArray[np.float64], known: PartialSet, clocks: int, rates: tuple[float, float]
) -> NDArray[np.float64]:
    """Return the joint probability of what is known of a sample and of its number of clock items.

    The recursion is that of `kernels.clock_lattice`, for several theta at once. In addition, the
    arrival of an item has the weight p or 1 - p for each statement that it came after another item
    (see `likelihood.partial`).

    Parameters
    ----------
    theta : array (draws, n, n)
        Several theta.
    known : PartialSet
        The items, missing cells and known orders of the sample.
    clocks : int
        Number of clock items.
    rates : tuple of two floats
        The rate of a clock item, and the rate of the observation.

    Returns
    -------
    array (draws, clocks + 1)
    """
    clock_rate, stop_rate = rates
    items = known.on_lattice
    size, draws, n = int(items.size), len(theta), theta.shape[1]
    base = np.ascontiguousarray(np.diagonal(theta, axis1=1, axis2=2))
    effects = theta * (1.0 - np.eye(n))
    F = np.zeros((1 << size, draws, clocks + 1))
    total = np.zeros((draws, clocks + 1))
    rate_of: list[NDArray[np.float64]] = []
    present = (1 << int(known.present.size)) - 1
    left = (clocks - np.arange(clocks + 1)) * clock_rate
    for state in range(1 << size):
        here = [b for b in range(size) if state >> b & 1]
        log_rate = np.minimum(base + effects[:, items[here]].sum(axis=1), PRODUCT_LOG_RANGE)
        rate = np.exp(log_rate)
        rate[:, items[here]] = 0.0
        rate_of.append(rate[:, items])
        inflow = np.zeros((draws, clocks + 1))
        if state == 0:
            inflow[:, 0] = 1.0
        for b in here:
            source = state ^ (1 << b)
            weight = rate_of[source][:, b] * _report(known, items, source, int(items[b]))
            inflow += F[source] * weight[:, None]
        exits = (stop_rate + rate.sum(axis=1))[:, None] + left
        for c in range(clocks + 1):
            if c:
                inflow[:, c] += F[state, :, c - 1] * left[c - 1]
            F[state, :, c] = inflow[:, c] / exits[:, c]
        if state & present == present:
            total += F[state]
    return total * stop_rate


def _report(known: PartialSet, items: NDArray[np.int64], state: int, item: int) -> float:
    """Return the probability of the statements about `item`, if it arrives in the state `state`."""
    factor = 1.0
    for before, after, probability in known.statements:
        if after == item:
            is_before = state >> int(np.flatnonzero(items == before)[0]) & 1
            factor *= probability if is_before else 1.0 - probability
    return factor
