"""Predict the time and memory of fits and tables, from how each set is evaluated (`plan`).

A prediction is a number of operations divided by a typical speed of one core. It is therefore the
same on every machine and for every number of threads. For tables, it is right to within a factor of
two or three. For fits, it is less certain, because the number of interactions is not known in
advance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sequela.budget import Budget
from sequela.likelihood.component_cost import component_cost
from sequela.likelihood.components import integral_work
from sequela.likelihood.plan import choose_way
from sequela.likelihood.seconds import (
    COMPONENT_SET_SECONDS,
    INTEGRAL_SECONDS,
    LATTICE_SECONDS,
    ORDER_SECONDS,
)
from sequela.likelihood.ways import Way, is_exact

if TYPE_CHECKING:
    from sequela.likelihood.distinct import DistinctSamples
    from sequela.likelihood.parameters import Parameters
    from sequela.likelihood.plan import Plan

__all__ = ["LONG", "Forecast", "evaluation_seconds", "forecast_histories", "within_seconds"]

# If a computation is predicted to take longer than this many seconds, its predicted time and memory
# are shown.
LONG = 60.0

# For every theta, the evaluation of a set of at most _SMALL_SET items takes about _SMALL_SECONDS.
_SMALL_SET = 9
_SMALL_SECONDS = 5e-4
# Operations per second on components and on lattices. The key is False for tables of arrival times,
# and True for tables of quantiles of the observation time.
_COMPONENT_SPEED = {False: 3e9, True: 1e10}
_LATTICE_SPEED = {False: 5e8, True: 1e8}
# Seconds per set whose orders are drawn: a fixed number, and a number per item of the set. The keys
# have the same meaning as above.
_SAMPLED_SECONDS = {False: (5e-3, 8e-4), True: (2e-2, 1.5e-3)}
# The limit on the work per set is halved until time and memory of a table are small enough, but at
# most this many times. More halvings would change nothing, because small sets are always exact.
_MOST_HALVINGS = 14
# Largest number of bytes per thread for a table.
_MOST_MEMORY = 4e8


@dataclass(frozen=True)
class Forecast:
    """A prediction of time and memory.

    Attributes
    ----------
    seconds : float
        Seconds on one core.
    memory : float
        Bytes per thread, in addition to data and model.
    sampled : int
        Number of samples whose orders are drawn, because they are not evaluated exactly.
    """

    seconds: float
    memory: float
    sampled: int = 0

    def describe(self, threads: int) -> str:
        """Return the prediction in words.

        Examples
        --------
        >>> Forecast(400.0, 3e8).describe(2)
        'roughly 3 minutes with 2 threads and 600 MB of memory'
        """
        wall = self.seconds / threads
        minutes = max(1, round(wall / 60.0))
        time = f"{minutes} minute{'s' if minutes > 1 else ''}"
        if wall >= 5400.0:
            time = f"{wall / 3600.0:.1f} hours"
        on = f"{threads} thread{'s' if threads > 1 else ''}"
        memory = max(10, round(threads * self.memory / 1e7) * 10)
        return f"roughly {time} with {on} and {memory:,} MB of memory"


def forecast_histories(
    parameters: Parameters, distinct: DistinctSamples, budget: Budget, *, quantiles: bool
) -> Forecast:
    """Predict time and memory for a table of pseudo-times with quantiles, or of arrival times.

    Parameters
    ----------
    parameters : Parameters
        Theta and the observation.
    distinct : DistinctSamples
        The samples.
    budget : Budget
        The largest cost of exact evaluation.
    quantiles : bool
        True for a table of quantiles of the observation time, False for a table of moments of
        arrival times.
    """
    small = distinct.sizes <= _SMALL_SET
    counts = np.bincount(distinct.inverse, minlength=len(distinct))
    seconds = float(small.sum()) * _SMALL_SECONDS
    memory = 0.0
    sampled = 0
    for s in map(int, np.nonzero(~small)[0]):
        items = distinct.items(s)
        way = choose_way(parameters, items, budget, components=True)
        if way is Way.COMPONENTS:
            work, room = component_cost(parameters, items)
            seconds += work / _COMPONENT_SPEED[quantiles]
        elif way is Way.EXACT:
            columns = parameters.columns(items).n_columns
            seconds += (
                Budget.exact_work(float(items.size), float(columns)) / (_LATTICE_SPEED[quantiles])
            )
            # Quantiles need more memory, because the probability of every transition between states
            # is stored.
            room = 2.0**items.size * 8.0 * (items.size + 40.0 if quantiles else 6.0)
        else:
            least, per_item = _SAMPLED_SECONDS[quantiles]
            seconds += least + per_item * items.size
            room = 0.0
            sampled += int(counts[s])
        memory = max(memory, room)
    return Forecast(seconds, memory, sampled)


def within_seconds(
    parameters: Parameters,
    distinct: DistinctSamples,
    seconds: float,
    *,
    quantiles: bool,
) -> tuple[Budget, Forecast, Forecast]:
    """Return a budget with which a table takes at most `seconds` and 400 MB per thread.

    The default budget is reduced step by step. If no tested budget meets both limits, the budget
    that comes closest is returned. Also return the predictions for the default budget and for the
    returned budget. If the budget is reduced, the sets with the most work are sampled.
    """
    budget = Budget()
    whole = forecast_histories(parameters, distinct, budget, quantiles=quantiles)
    best = whole
    work = budget.work
    for _ in range(_MOST_HALVINGS):
        if _excess(best, seconds) <= 1.0:
            break
        work /= 2.0
        smaller = replace(budget, work=work)
        found = forecast_histories(parameters, distinct, smaller, quantiles=quantiles)
        # A smaller budget can need more time, because sampling a small set takes longer than
        # evaluating it exactly.
        if _excess(found, seconds) < _excess(best, seconds):
            budget, best = smaller, found
    return budget, whole, best


def _excess(cost: Forecast, seconds: float) -> float:
    """Return the larger of two ratios: time / `seconds`, and memory / largest allowed memory."""
    return max(cost.seconds / seconds, cost.memory / _MOST_MEMORY)


def evaluation_seconds(plan: Plan, *, dense: bool) -> float:
    """Predict the time of one evaluation of the log-likelihood and its gradient in a fit.

    The prediction is in seconds on one core.

    Parameters
    ----------
    plan : Plan
        How sets are evaluated.
    dense : bool
        Whether all items may interact, as in a random start of a fit. If False, the fit starts
        without interactions, and is expected to find few interactions.
    """
    n = plan.data.n_items
    support = np.ones((n, n), dtype=np.bool_) if dense else np.eye(n, dtype=np.bool_)
    ways = plan.ways_on_support(support)
    sizes = plan.distinct.sizes
    by_components = np.nonzero(ways == Way.COMPONENTS)[0]
    integrals = integral_work([plan.distinct.items(int(s)) for s in by_components])
    return (
        LATTICE_SECONDS * plan.lattice_work(np.nonzero(ways == Way.EXACT)[0])
        + INTEGRAL_SECONDS * integrals
        + COMPONENT_SET_SECONDS * by_components.size
        + ORDER_SECONDS * float(sizes[~is_exact(ways)].sum()) * n
    )
