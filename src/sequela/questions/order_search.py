"""The most likely orders of one sample, with their probabilities.

One pass over the lattice gives the weight of the best order of every subset (`log_best`). An A*
search then builds orders backwards, from the last item to the first. The items that an unfinished
order does not contain yet are a subset, so the weight of its best completion is known exactly. The
search always extends the most promising unfinished order. It finds complete orders, the best one
first, without listing all k! orders. If several unfinished orders are equally promising, the newest
one is extended first. Without this rule, if many orders are equally likely, the search would begin
all of them before it completes one.
"""

from __future__ import annotations

import heapq
from itertools import count, islice
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sequela.kernels.passage import log_best
from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.evaluation import evaluate
from sequela.likelihood.histories import OrderMoments
from sequela.likelihood.orders import OrderSampler, draw_orders, sampled_columns
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.partial_plan import partial_passage
from sequela.likelihood.passage import Passage
from sequela.likelihood.plan import choose_way
from sequela.likelihood.ways import Way
from sequela.model import as_model
from sequela.questions.arguments import one_sample
from sequela.questions.known_orders import FoundOrders, orders_of_known_items
from sequela.questions.precision import settings_for_orders
from sequela.questions.samples import DEFAULT_ORDERS
from sequela.questions.stated_orders import drawn_stated_orders
from sequela.settings import read_settings
from sequela.support.jit import call
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.model import Model, ModelLike
    from sequela.questions.arguments import SampleLike
    from sequela.settings import Settings, SettingsKeywords

__all__ = ["best_orders", "likely_orders"]


def likely_orders(
    model: ModelLike,
    sample: SampleLike,
    max_orders: int = 5,
    **settings: Unpack[SettingsKeywords],
) -> pd.DataFrame:
    """Return the most likely orders of a sample's items and their probabilities.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    sample : set of labels, true/false row, or Dataset of one sample
        The items that are present. A sample with missing cells or known orders is given as a
        `Dataset`.
    max_orders : int
        Return at most this many orders.
    **settings
        `budget`, `random_state`, `n_threads`. If the set is beyond the budget, also `sampling` and
        `draws` (number of orders drawn, default 1,600). In this case, the result has the most
        likely of the drawn orders, each with its exact weight. A more likely order may not have
        been drawn. See `Settings`.

    Returns
    -------
    DataFrame
        The columns are "order" (a tuple of labels), "probability" (given the sample), "se" (the
        error of the probability) and "cumulative". "se" is 0 if the result is exact. Beyond the
        budget it is not 0, because the probability of the set is estimated. ``attrs`` holds
        "method", "draws" and "seed".

    Notes
    -----
    If cells are missing, the orders are those of the items that the sample is known to have. The
    probability of such an order is a sum: the missing items may be present or absent, and they may
    have any place in the order of arrival. Within the budget the result is exact: a search on the
    lattice of the known and the missing items finds the orders. If the lattice has more than 18
    items or the search would take too long, `draws` histories are drawn (method "histories"). Then
    a more likely order may not have been drawn. Beyond 18 items, the probability is the share of
    the draws with this order.

    Known orders are taken into account: orders that contradict a certain statement are left out,
    and an order that contradicts an uncertain statement is less probable. Beyond the budget,
    histories that obey the statements are drawn (method "histories"), and the result has the most
    likely of the drawn orders. If no cell is missing, "probability" is the exact weight of the
    order, divided by an estimate of the joint probability of the set and of the statements. If
    cells are missing, it is the share of the draws.

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> likely_orders(example_theta(), {"first", "second"}).round(3)
                 order  probability   se  cumulative
    0  (first, second)        0.982  0.0       0.982
    1  (second, first)        0.018  0.0       1.000

    It is not known whether the sample has "step 1":

    >>> from sequela import Dataset
    >>> row = [[1, 1, None, 0]]
    >>> sample = Dataset(row, items=["first", "second", "step 1", "step 2"])
    >>> theta = example_theta().loc[list(sample.items), list(sample.items)]
    >>> likely_orders(theta, sample).round(3)
                 order  probability   se  cumulative
    0  (first, second)        0.982  0.0       0.982
    1  (second, first)        0.018  0.0       1.000
    """
    how = read_settings(settings, unused=("target_se",))
    model = as_model(model, instead="order_matrix(posterior, given=sample)")
    present, data = one_sample(model, sample)
    max_orders = positive_integer("max_orders", max_orders)
    parameters = Parameters.of(model)
    known = DistinctSamples.of(data.without_times(), partial=True).known(0)
    if known is not None and known.statements:
        on_lattice = present.size + len(known.that_matter(parameters.children))
        if on_lattice > 1 and not how.budget.exact_fits(on_lattice, parameters.n):
            drawn = drawn_stated_orders(parameters, known, max_orders, how)
            return _table(model, present, drawn, how)
    if known is not None and known.missing.size:
        return _table(
            model, present, orders_of_known_items(parameters, known, max_orders, how), how
        )
    draws = 0
    way = Way.EXACT if known is not None else choose_way(parameters, present, how.budget)
    if way is Way.EXACT:
        passage = (
            Passage.of(parameters, present)
            if known is None
            else partial_passage(parameters, known, how.budget)
        )
        log_p, log_p_se = passage.log_p(), 0.0
        best = list(islice(best_orders(passage), max_orders))
    else:
        of_orders = settings_for_orders(how, DEFAULT_ORDERS if how.draws is None else how.draws)
        draws = of_orders.sampling.sweeps * of_orders.sampling.chains
        best = _best_of_draws(parameters, present, max_orders, of_orders)
        evaluation = evaluate(
            model, data, method=way.value, gradient=False, settings=how.but(draws=None)
        )
        log_p, log_p_se = evaluation.value, evaluation.value_se
    weights = np.array([weight for weight, _ in best])
    probability = np.exp(weights + np.log(parameters.stop_rate) - log_p)
    found = FoundOrders(
        [order for _, order in best], probability, probability * log_p_se, way.value, draws
    )
    return _table(model, present, found, how)


def _table(
    model: Model, present: NDArray[np.int64], found: FoundOrders, settings: Settings
) -> pd.DataFrame:
    labels = [tuple(model.items[present[b]] for b in order) for order in found.orders]
    table = pd.DataFrame(
        {
            "order": pd.Series(labels, dtype=object),
            "probability": found.probability,
            "se": found.se,
            "cumulative": np.cumsum(found.probability),
        }
    )
    seed = settings.seed if found.draws else None
    table.attrs.update(method=found.method, draws=found.draws, seed=seed)
    return table


def best_orders(passage: Passage) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield pairs of a log-weight and an order of the set, the best order first."""
    lattice = passage.lattice
    best = np.empty(1 << passage.k)
    call(log_best, best, lattice, passage.stop_rate)
    ties = count(1)
    full = (1 << passage.k) - 1
    # Each entry contains four values: the loss of the chosen steps compared with the best order, a
    # tie-breaker, the items that are not ordered yet, and the chosen steps. The best step has a
    # loss of exactly 0, so that the search follows it in spite of rounding errors.
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
                steps.append((float(best[before] + passage.log_step(before, c)), c, before))
        top = max(weight for weight, _, _ in steps)
        for weight, c, before in steps:
            if weight == -np.inf:  # this step contradicts a known order
                continue
            heapq.heappush(heap, (lost + (top - weight), -next(ties), before, (c, *order)))


def _best_of_draws(
    parameters: Parameters, present: NDArray[np.int64], max_orders: int, settings: Settings
) -> list[tuple[float, tuple[int, ...]]]:
    """Draw orders; return the most likely of them as pairs (log-weight, order), the best first."""
    columns = sampled_columns(parameters, present)
    drawn = draw_orders(OrderSampler(columns, settings.sampling), settings.seed, 0)
    exits = OrderMoments.of(columns, drawn).exits
    k = columns.k
    listed = drawn.reshape(-1, k)
    between = columns.effects[:, :k]
    pairs = between[listed[:, :, None], listed[:, None, :]]
    weights = np.triu(pairs, 1).sum(axis=(1, 2)) - np.log(exits.reshape(-1, k + 1)).sum(axis=1)
    weights += np.log(columns.rate[:k]).sum()
    distinct, first = np.unique(listed, axis=0, return_index=True)
    ranked = np.argsort(-weights[first], kind="stable")[:max_orders]
    return [(float(weights[first[i]]), tuple(map(int, distinct[i]))) for i in ranked]
