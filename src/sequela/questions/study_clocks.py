"""Draw clock items of existing samples with missing cells or known orders.

A history of the sample is drawn from its posterior given all that is known of the sample: first the
missing cells and the order of the items, then the time spent in each state of the history. Given
the total time t, each clock item with rate r is present with the probability 1 - exp(-r t),
independently of the others. So the clock items have exactly their distribution given what is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.budget import Budget
from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.drawn_histories import Histories
from sequela.likelihood.drawn_samples import CHAINS
from sequela.likelihood.lattice_histories import LatticeHistories
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.partial_plan import partial_passage
from sequela.likelihood.stated_histories import STATED_CHAINS, StatedHistories

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.likelihood.partial import PartialSet
    from sequela.model import Model

__all__ = ["add_clocks_to_partly_known"]

# If a sample has more known and missing items, its histories are drawn with Markov chains. If
# orders are known, this is done only beyond the budget of a lattice.
_LARGEST_LATTICE = 14


def add_clocks_to_partly_known(
    clocks: NDArray[np.bool_],
    model: Model,
    data: Dataset,
    clock_rate: float,
    rng: np.random.Generator,
) -> None:
    """Fill the rows of `clocks` (samples x clock items) of samples that are partly known.

    Parameters
    ----------
    clocks : array of bool
        The clock items of all samples; it is changed in place.
    model : Model
        The model that is assumed to be true.
    data : Dataset
        The existing samples, in the order of the model.
    clock_rate : float
        The rate of a clock item.
    rng : Generator
        The random numbers.
    """
    parameters = Parameters.of(model)
    distinct = DistinctSamples.of(data.without_times(), partial=True)
    for s in map(int, np.flatnonzero(distinct.partial)):
        rows = np.flatnonzero(distinct.inverse == s)
        known = distinct.as_partial(s)
        times = draw_times(parameters, known, rows.size, rng)
        reached = 1.0 - np.exp(-clock_rate * times)
        clocks[rows] = rng.random((rows.size, clocks.shape[1])) < reached[:, None]


def draw_times(
    parameters: Parameters, known: PartialSet, size: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return draws of the observation time of a sample given what is known of it."""
    on_lattice = known.present.size + len(known.that_matter(parameters.children))
    budget = Budget()
    if known.statements:
        if on_lattice > 1 and not budget.exact_fits(on_lattice, parameters.n):
            return _times_given_statements(parameters, known, size, rng)
    elif on_lattice > _LARGEST_LATTICE:
        return _times_from_chains(parameters, known, size, rng)
    passage = partial_passage(parameters, known, budget)
    passage.log_p()
    histories = LatticeHistories(passage)
    return np.array([histories.times(histories.draw(rng), rng).sum() for _ in range(size)])


def _times_from_chains(
    parameters: Parameters, known: PartialSet, size: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    chains = Histories.at_first([known], parameters.n, rng)
    key = (int(rng.integers(2**53)), (11,))
    drawn = chains.moved(parameters, [known], -(-size // CHAINS), key, 1)
    orders = drawn.kept.reshape(-1, parameters.n)[:size]
    return _times_of(parameters, orders, drawn.lengths.ravel()[:size], rng)


def _times_given_statements(
    parameters: Parameters, known: PartialSet, size: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    key = (int(rng.integers(2**53)), (14,))
    drawn = StatedHistories.drawn(parameters, known, -(-size // STATED_CHAINS), key, 1)
    orders = drawn.orders.reshape(-1, parameters.n)[:size]
    return _times_of(parameters, orders, drawn.lengths.ravel()[:size], rng)


def _times_of(
    parameters: Parameters,
    orders: NDArray[np.int16],
    lengths: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return draws of the observation time, one for each history."""
    base = np.diagonal(parameters.theta)
    times = np.empty(len(orders))
    for at, (order, length) in enumerate(zip(orders, lengths, strict=True)):
        log_rate, present = base.copy(), np.zeros(parameters.n, dtype=np.bool_)
        total = 0.0
        for q in range(length + 1):
            exits = parameters.stop_rate + np.exp(log_rate[~present]).sum()
            total += rng.standard_exponential() / exits
            if q < length:
                log_rate = log_rate + parameters.theta[order[q]]
                present[order[q]] = True
        times[at] = total
    return times
