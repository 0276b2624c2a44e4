"""The most likely orders of one sample, with their probabilities.

On the lattice the best order to every subset is known after one pass (`log_best`). It is an exact
forecast of what the rest of an order can still gain, so a search backwards from the full set that
always goes on with the most promising end (A*) meets complete orders from the best downwards,
without a list of all k! of them. Of equally promising ends the youngest goes first: where orders
tie, a search in breadth would have to begin all of them before it completes one.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from itertools import count as counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.kernels.passage import log_best
from sequela.likelihood.budget import check_budget
from sequela.likelihood.exact import Passage
from sequela.likelihood.objective import evaluate
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.posterior import OrderMoments, sampled_orders
from sequela.likelihood.sampled import Sampling, sampled_columns
from sequela.questions.arguments import as_model, rate_of
from sequela.questions.samples import DEFAULT_ORDERS, one_sample
from sequela.support.jit import call
from sequela.support.random import materialise_seed
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from sequela.likelihood.budget import Budget
    from sequela.support.random import RandomState

__all__ = ["likely_orders"]


def likely_orders(
    model: Any,
    sample: Iterable[Any],
    count: int = 5,
    *,
    draws: int | None = None,
    observation_rate: float | None = None,
    budget: Budget | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> pd.DataFrame:
    """Return the most likely orders of a sample's items and how likely each is.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    sample : set of labels, or a true/false row
        What was observed.
    count : int
        How many orders, at most.
    draws : int or None
        If the set is beyond the budget: how many orders are drawn (default 1,600). The most likely
        of these are returned, each with its exact weight; a better one may not have been drawn.
    observation_rate, budget, random_state, n_threads
        As in `Likelihood`.

    Returns
    -------
    DataFrame
        Columns "order" (a tuple of labels), "probability" given the set, "se" (0 where exact;
        beyond the budget the probability of the set itself is sampled), "cumulative". ``attrs``
        holds "method", "draws" and "seed".

    Examples
    --------
    >>> import sequela
    >>> sequela.likely_orders(sequela.example_theta(), {"first", "second"}).round(3)
                 order  probability   se  cumulative
    0  (first, second)        0.982  0.0       0.982
    1  (second, first)        0.018  0.0       1.000
    """
    chain = as_model(model)
    present, data = one_sample(chain, sample)
    wanted = positive_integer("count", count)
    asked = DEFAULT_ORDERS if draws is None else positive_integer("draws", draws)
    rate = rate_of(chain, observation_rate)
    parameters = Parameters(chain.theta, rate)
    limits = check_budget(budget)
    columns = parameters.columns(present).items.size
    if present.size <= 1 or limits.exact_fits(present.size, columns):
        passage = Passage(parameters, present)
        total = passage.log_p()
        found = [next_best for next_best, _ in zip(_best_first(passage), range(wanted))]  # noqa: B905
        orders = [order for _, order in found]
        logs = np.array([weight for weight, _ in found]) + np.log(rate) - total
        error, method, drawn, seed = 0.0, "exact", 0, None
    else:
        seed = materialise_seed(random_state)
        sampling = Sampling()
        sampling = replace(sampling, sweeps=-(-asked // sampling.chains))
        drawn = sampling.sweeps * sampling.chains
        orders, weights = _best_of_draws(parameters, present, wanted, sampling, seed)
        value = evaluate(
            chain.theta, data, method="relocation", gradient=False, observation_rate=rate,
            random_state=seed, n_threads=n_threads,
        )  # fmt: skip
        logs = weights + np.log(rate) - value.value
        error, method = value.value_se, "relocation"
    probability = np.exp(logs)
    labels = [tuple(chain.items[present[b]] for b in order) for order in orders]
    table = pd.DataFrame(
        {
            "order": pd.Series(labels, dtype=object),
            "probability": probability,
            "se": probability * error,
            "cumulative": np.cumsum(probability),
        }
    )
    table.attrs.update(method=method, draws=drawn, seed=seed)
    return table


def _best_first(passage: Passage) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield log-weights and orders of the set, the best first."""
    z = passage.parameters.observation_rate
    best = np.empty(1 << passage.k)
    call(log_best, best, passage.Q, z, passage.low_log, passage.high_log, passage.k, passage.low)
    mask = (1 << passage.low) - 1
    ties = counter(1)
    full = (1 << passage.k) - 1
    # Each entry: what the settled steps have lost against the best order, a tie-breaker, what is
    # still to be ordered, and the settled steps, from the first of them on. The best step loses
    # exactly nothing, so that it is followed to the end whatever rounding does to the others.
    heap: list[tuple[float, int, int, tuple[int, ...]]] = [(0.0, 0, full, ())]
    while heap:
        lost, _, state, order = heapq.heappop(heap)
        if state == 0:
            yield float(best[full]) - lost, order
            continue
        steps = []
        for c in range(passage.k):
            if state >> c & 1:
                before = state ^ (1 << c)
                log_rate = passage.high_log[c, before >> passage.low]
                log_rate += passage.low_log[c, before & mask]
                steps.append((float(best[before] + log_rate), c, before))
        top = max(weight for weight, _, _ in steps)
        for weight, c, before in steps:
            heapq.heappush(heap, (lost + (top - weight), -next(ties), before, (c, *order)))


def _best_of_draws(
    parameters: Parameters,
    present: NDArray[np.int64],
    count: int,
    sampling: Sampling,
    seed: int,
) -> tuple[list[tuple[int, ...]], NDArray[np.float64]]:
    """Draw orders and return the best of them with their log-weights."""
    columns = sampled_columns(parameters, present)
    drawn = sampled_orders(parameters, columns, sampling, seed, 0)
    exits = OrderMoments.of(parameters, columns, drawn).exits
    k = columns.k
    listed = drawn.reshape(-1, k)
    between = columns.effects[:, :k]
    pairs = between[listed[:, :, None], listed[:, None, :]]
    weights = np.triu(pairs, 1).sum(axis=(1, 2)) - np.log(exits.reshape(-1, k + 1)).sum(axis=1)
    weights += np.log(columns.rate[:k]).sum()
    distinct, first = np.unique(listed, axis=0, return_index=True)
    ranked = np.argsort(-weights[first], kind="stable")[:count]
    return [tuple(map(int, distinct[i])) for i in ranked], weights[first][ranked]
