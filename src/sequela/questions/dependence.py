"""Find the items on which an answer depends: the given items and all that act on them.

All other items can be left out: the remaining items follow a model with the same entries of theta.
So a question about a few items of a large sparse model can be answered exactly on a small lattice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arrivals import sum_arrivals
from sequela.kernels.limits import PRODUCT_LOG_RANGE
from sequela.likelihood.plan import all_subsets_fit
from sequela.model import Model
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.naming import option

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.budget import Budget
    from sequela.likelihood.parameters import Parameters

__all__ = ["ancestors", "arrival_probabilities", "arrivals_on_lattice", "given_state", "restricted"]


def ancestors(theta: NDArray[np.float64], targets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the targets and all items that act on them, directly or through others, sorted."""
    acts = theta != 0.0
    np.fill_diagonal(acts, val=False)
    member = np.zeros(len(theta), dtype=np.bool_)
    member[targets] = True
    while True:
        grown = member | acts[:, member].any(axis=1)
        if np.array_equal(grown, member):
            return np.nonzero(member)[0].astype(np.int64)
        member = grown


def restricted(model: Model, places: NDArray[np.int64]) -> Model:
    """Return the model with these items only, and the entries of theta among them."""
    return Model(
        model.theta[np.ix_(places, places)],
        [model.items[place] for place in places],
        observation=model.observation,
    )


def arrivals_on_lattice(
    theta: NDArray[np.float64], stop_rate: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return P(c is observed) for all items c, and P(b before c, both observed) for all pairs.

    Both results are sums over all 2^n states. `stop_rate` is the rate of the observation.
    """
    n = len(theta)
    effects = theta.copy()
    np.fill_diagonal(effects, 0.0)
    base = np.diagonal(theta)
    low = n // 2
    # Divide all rates by the largest rate, so that none overflows. Only the ratios of rates matter.
    top = float((base + np.maximum(effects, 0.0).sum(axis=0)).max(initial=0.0))
    lowest = float((base + np.minimum(effects, 0.0).sum(axis=0)).min(initial=0.0))
    if top - min(lowest, float(np.log(stop_rate))) > PRODUCT_LOG_RANGE:
        raise InputError(
            f"theta allows log-rates between {lowest:.0f} and {top:.0f}; an exact answer needs a "
            f"range of at most {PRODUCT_LOG_RANGE:.0f}. Use a theta with smaller entries, or "
            f"{option('method', 'simulation')}"
        )
    flow = np.zeros(n)
    before = np.zeros((n, n))
    high = _rates(base - top, effects, low, n)
    low_effects = _rates(np.zeros(n), effects, 0, low)
    stop = float(np.exp(np.log(stop_rate) - top))
    call(sum_arrivals, flow, before, np.zeros(1 << n), high, low_effects, stop, n, low)
    return flow, before


def arrival_probabilities(parameters: Parameters, budget: Budget) -> NDArray[np.float64]:
    """Return P(item is observed) for every item; NaN if its lattice is beyond the budget."""
    theta = parameters.theta
    probability = np.full(len(theta), np.nan)
    for place in range(len(theta)):
        if np.isnan(probability[place]):
            members = ancestors(theta, np.array([place]))
            if all_subsets_fit(members.size, budget):
                # For each of its members, the lattice also contains all items that act on it. So
                # it gives the probabilities of all its members.
                part = theta[np.ix_(members, members)]
                probability[members] = arrivals_on_lattice(part, parameters.stop_rate)[0]
    return probability


def _rates(
    base: NDArray[np.float64], effects: NDArray[np.float64], first: int, last: int
) -> NDArray[np.float64]:
    """Return exp(base + effects of present items) for all subsets of items first to last - 1."""
    log_rates = base[None, :]
    for item in range(first, last):
        with_item = log_rates + effects[item]
        with_item[:, item] = -np.inf
        log_rates = np.concatenate([log_rates, with_item])
    rates: NDArray[np.float64] = np.exp(log_rates)
    return rates


def given_state(
    theta: NDArray[np.float64], state: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return theta for the items that are absent in `state`, and the positions of these items.

    The effects of the present items are added to the base rates of the absent items.
    """
    absent = np.setdiff1d(np.arange(len(theta), dtype=np.int64), state)
    rest = theta[np.ix_(absent, absent)].copy()
    rest[np.diag_indices(absent.size)] += theta[np.ix_(state, absent)].sum(axis=0)
    return rest, absent
