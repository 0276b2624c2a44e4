"""Draw likely orders of a sample that has known orders and is too large for a lattice.

All draws obey the statements. If no cell is missing, the probability of a drawn order is its exact
weight divided by the joint probability of the set and of the statements, which is estimated
(`stated_value`). If cells are missing, the weight of an order is a sum over the missing
items, which is not known. Then the probability of an order is its share of the draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.likelihood.stated_histories import (
    STATED_CHAINS,
    StatedHistories,
    reports,
)
from sequela.likelihood.stated_value import log_p_with_statements
from sequela.likelihood.ways import Way
from sequela.questions.known_orders import DEFAULT_HISTORIES, FoundOrders, shares_of_draws

if TYPE_CHECKING:
    from sequela.likelihood.parameters import Parameters
    from sequela.likelihood.partial import PartialSet
    from sequela.settings import Settings

__all__ = ["drawn_stated_orders"]


def drawn_stated_orders(
    parameters: Parameters,
    known: PartialSet,
    max_orders: int,
    settings: Settings,
) -> FoundOrders:
    """Return the most probable of the drawn orders of the known items.

    Parameters
    ----------
    parameters : Parameters
        Theta and the observation.
    known : PartialSet
        The sample.
    max_orders : int
        Largest number of orders.
    settings : Settings
        The number of draws, the seed and the number of threads.
    """
    kept = -(-(settings.draws or DEFAULT_HISTORIES) // STATED_CHAINS)
    draws = StatedHistories.drawn(parameters, known, kept, (settings.seed, (12,)), settings.threads)
    place = {int(item): at for at, item in enumerate(known.present)}
    orders = [tuple(place[i] for i in order if i in place) for order in draws.sequences()]
    if known.missing.size:
        return shares_of_draws(orders, max_orders, STATED_CHAINS)
    log_p, variance = log_p_with_statements(
        parameters, known, (settings.seed, (13,)), settings.threads
    )
    weights = draws.log_p(parameters, settings.threads) + reports(draws, known).ravel()
    first = list({order: at for at, order in reversed(list(enumerate(orders)))}.values())
    ranked = sorted(first, key=lambda at: (-weights[at], orders[at]))[:max_orders]
    probability = np.exp(weights[ranked] - log_p)
    return FoundOrders(
        [orders[at] for at in ranked],
        probability,
        probability * np.sqrt(variance),
        Way.HISTORIES.value,
        len(orders),
    )
