"""P(a before b) under the posterior of the model, summarised over the draws of the posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from sequela.data.dataset import Dataset
from sequela.posteriors.result import check_level
from sequela.questions.arguments import find_items, one_sample
from sequela.questions.order_answers import PosteriorOrders
from sequela.questions.over_draws import ask_draws, exact_for_all, summarise_draws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from sequela.model import Model
    from sequela.posteriors.result import Posterior
    from sequela.questions.arguments import SampleLike
    from sequela.questions.order_answers import Orders
    from sequela.settings import Settings

__all__ = ["Method", "Question", "orders_over_draws"]

Method: TypeAlias = Literal["auto", "exact", "simulation"]

# Number of simulated sequences per model; and, for a sample beyond the budget, number of drawn
# orders per model.
_SEQUENCES = 10_000
_ORDERS = 320


class Question:
    """The items and the sample of a question to a posterior, checked once for all models."""

    def __init__(
        self, posterior: Posterior, items: Iterable[Any] | None, given: SampleLike | None
    ) -> None:
        model = posterior.models(1)[0]
        self.posterior = posterior
        self.items = None if items is None else _labels(model, find_items(model, items))
        self.given: SampleLike | None
        if given is None:
            self.given = None
        elif isinstance(given, Dataset):
            self.given = one_sample(model, given, "given")[1]
        else:
            self.given = _labels(model, find_items(model, given, "given"))


def _labels(model: Model, places: NDArray[np.int64]) -> list[str]:
    return [model.items[place] for place in places]


def orders_over_draws(
    ask: Callable[[Model, Settings, Method], Orders],
    question: Question,
    method: Method,
    level: float,
    settings: Settings,
) -> PosteriorOrders:
    """Call `ask` for models of a posterior, and return the summary of the answers."""
    check_level(level)
    posterior = question.posterior
    everything = np.arange(posterior.n_items)
    if question.given is None and method == "auto":
        few_states = exact_for_all(posterior, everything, settings.max_models)
        method = "auto" if few_states else "simulation"
    if settings.draws is None and settings.target_se is None:
        settings = settings.but(draws=_SEQUENCES if question.given is None else _ORDERS)
    asked = ask_draws(
        posterior, lambda model, own: ask(model, own, method), settings, "orders of models"
    )
    values = asked.values(lambda orders: orders.probability)
    summary = summarise_draws(values, level)
    first = asked.answers[0]
    labels = first.probability.index

    def table(cells: NDArray[np.float64]) -> pd.DataFrame:
        return pd.DataFrame(cells, index=labels, columns=labels)

    draws = sum(orders.draws for orders in asked.answers)
    return PosteriorOrders(
        probability=table(summary.mean),
        se=table(summary.se),
        observed=table(asked.values(lambda orders: orders.observed).mean(axis=(0, 1))),
        method=first.method,
        draws=draws,
        seed=settings.seed if draws else None,
        low=table(summary.low),
        high=table(summary.high),
        usually_first=table(_share_above_half(values)),
        effective=table(summary.effective),
        r_hat=table(summary.r_hat),
        models=len(asked.answers),
    )


def _share_above_half(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of draws whose value is above one half; NaN if no draw has a value.

    A draw with a value of exactly one half counts as half a draw.
    """
    known = (~np.isnan(values)).sum(axis=(0, 1))
    above = np.sum(values > 0.5, axis=(0, 1)) + 0.5 * np.sum(values == 0.5, axis=(0, 1))
    share: NDArray[np.float64] = np.where(known > 0, above / np.maximum(known, 1), np.nan)
    return share
