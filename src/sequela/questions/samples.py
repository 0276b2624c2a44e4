"""Positions and arrival times of the items of one sample, given its set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sequela.likelihood.histories import SamplePosteriors, sample_posteriors
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.plan import choose_way
from sequela.likelihood.ways import is_exact
from sequela.model import as_model
from sequela.questions.arguments import one_sample
from sequela.questions.precision import settings_for_orders, until_precise
from sequela.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.model import Model, ModelLike
    from sequela.questions.arguments import SampleLike
    from sequela.settings import Settings, SettingsKeywords

__all__ = [
    "DEFAULT_ORDERS",
    "MAX_ORDERS",
    "SampleAnswer",
    "SamplePosteriors",
    "posterior_until_precise",
    "sample_arrivals",
    "sample_posteriors",
]

# Number of orders that are drawn for a set beyond the budget: the default, and the largest number.
DEFAULT_ORDERS = 1_600
MAX_ORDERS = 1_000_000


@dataclass(frozen=True)
class SampleAnswer:
    """Posterior moments of samples, number of orders drawn per set, and the seed of these draws.

    All chains of a set draw the same number of orders, so their total, `draws`, may be slightly
    larger than requested. If all sets are computed exactly, `draws` is 0 and `seed` is None.
    """

    posterior: SamplePosteriors
    draws: int
    seed: int | None


def _complete(data: Dataset) -> NDArray[np.int64]:
    """Return the positions of the samples that have neither missing cells nor a known order.

    Orders can be drawn only for these samples. For any other sample, the answer is exact or an
    error is raised.
    """
    missing = np.zeros(data.n_samples, dtype=bool) if data.missing is None else data.missing.any(1)
    ordered = [False] * data.n_samples if data.orders is None else [bool(s) for s in data.orders]
    return np.flatnonzero(~(missing | np.array(ordered)))


def posterior_until_precise(
    model: Model,
    data: Dataset,
    error_of: Callable[[SampleAnswer], float],
    settings: Settings,
    *,
    method: str = "auto",
) -> SampleAnswer:
    """Return posterior moments, computed from as many drawn orders as the settings require.

    With method "exact", a set beyond the budget raises a `BudgetError`.
    """
    if method == "exact":
        parameters = Parameters.of(model)
        for row in data.values[_complete(data)]:
            items = np.nonzero(row)[0].astype(np.int64)
            choose_way(parameters, items, settings.budget, method=method, components=True)

    def ask(draws: int) -> SampleAnswer:
        of_orders = settings_for_orders(settings, draws)
        posterior = sample_posteriors(model, data, settings=of_orders)
        if is_exact(posterior.methods).all():
            return SampleAnswer(posterior, 0, None)
        drawn = of_orders.sampling.sweeps * of_orders.sampling.chains
        return SampleAnswer(posterior, drawn, settings.seed)

    return until_precise(
        ask,
        error_of,
        settings,
        default=DEFAULT_ORDERS,
        first=DEFAULT_ORDERS,
        max_draws=MAX_ORDERS,
    )


def sample_arrivals(
    model: ModelLike, sample: SampleLike, **settings: Unpack[SettingsKeywords]
) -> pd.DataFrame:
    """Return positions and arrival times of the items of one sample.

    Within the budget, they are exact (computed on the lattice or by components). Beyond the budget,
    they are estimated from drawn orders.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    sample : set of labels, or a true/false row
        The items that are present.
    **settings
        `budget`, `random_state`. If the set is beyond the budget, also `sampling`, and `draws`
        (number of orders drawn, default 1,600) or `target_se` (of every mean position). See
        `Settings`.

    Returns
    -------
    DataFrame
        One row per item, sorted by mean arrival time. "position_mean" and "position_sd" are the
        posterior mean and standard deviation of its position (1 is first), and "position_se" is the
        Monte Carlo standard error of the mean. The columns "arrival_mean", "arrival_sd" and
        "arrival_se" are the same for its arrival time. ``attrs`` holds "method", "draws" and
        "seed".

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> arrivals = sample_arrivals(example_theta(), {"first", "second"})
    >>> arrivals["position_mean"].round(2).to_dict()
    {'first': 1.02, 'second': 1.98}
    >>> arrivals["arrival_mean"].round(2).to_dict()
    {'first': 0.23, 'second': 0.45}
    """
    how = read_settings(settings)
    model = as_model(model, instead="order_matrix(posterior, given=sample)")
    present, data = one_sample(model, sample)

    def error_of(answer: SampleAnswer) -> float:
        return float(np.max(answer.posterior.mean_errors(0)[1], initial=0.0))

    answer = posterior_until_precise(model, data, error_of, how)
    posterior = answer.posterior
    place = posterior.place(0)
    positions = np.arange(1.0, present.size + 1.0)
    mean = place @ positions
    arrival_se, place_se = posterior.mean_errors(0)
    table = pd.DataFrame(
        {
            "position_mean": mean,
            "position_sd": np.sqrt(np.maximum(place @ positions**2 - mean**2, 0.0)),
            "position_se": place_se,
            "arrival_mean": posterior.arrival_mean[0, present],
            "arrival_sd": np.sqrt(np.maximum(posterior.arrival_variance[0, present], 0.0)),
            "arrival_se": arrival_se,
        },
        index=pd.Index([model.items[j] for j in present], name="item"),
    ).sort_values("arrival_mean", kind="stable")
    table.attrs.update(method=str(posterior.methods[0]), draws=answer.draws, seed=answer.seed)
    return table
