"""What a sample's set tells about its own history: positions and arrival times of its items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.data.dataset import Dataset
from sequela.likelihood.budget import check_budget
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.posterior import sample_posteriors
from sequela.likelihood.sampled import Sampling
from sequela.questions.arguments import as_model, find_items, rate_of
from sequela.questions.precision import check_precision, until_precise
from sequela.support.errors import BudgetError
from sequela.support.random import materialise_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from sequela.likelihood.budget import Budget
    from sequela.likelihood.posterior import SamplePosteriors
    from sequela.model import Model
    from sequela.support.random import RandomState

__all__ = ["SampleAnswer", "one_sample", "posterior_until_precise", "sample_arrivals"]

DEFAULT_ORDERS = 1_600
MOST_ORDERS = 1_000_000


@dataclass(frozen=True)
class SampleAnswer:
    """Posterior moments of samples, how many orders were drawn for each, and from which seed.

    Every chain draws as many, so these may be a few more than were asked for. Where all is exact,
    no orders and no seed.
    """

    posterior: SamplePosteriors
    draws: int
    seed: int | None


def one_sample(
    model: Model, sample: Iterable[Any], what: str = "sample"
) -> tuple[NDArray[np.int64], Dataset]:
    """Return the items of a sample, in the model's order, and a data set of this one sample.

    `what` is the name of the argument, for errors.
    """
    present = np.sort(find_items(model, sample, what))
    row = np.zeros((1, model.n_items), dtype=np.bool_)
    row[0, present] = True
    return present, Dataset(row, items=model.items)


def posterior_until_precise(
    theta: NDArray[np.float64],
    data: Dataset,
    error_of: Callable[[SampleAnswer], float],
    draws: int | None,
    target_se: float | None,
    *,
    exact_only: bool = False,
    default: int = DEFAULT_ORDERS,
    budget: Budget | None = None,
    observation_rate: float = 1.0,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> SampleAnswer:
    """Return posterior moments with so many drawn orders, or as many as the target needs."""
    check_precision(draws, target_se)
    limits = check_budget(budget)
    if exact_only:
        _check_exact(Parameters(theta, observation_rate), data, limits)
    seed = materialise_seed(random_state)
    sampling = Sampling()

    def ask(size: int) -> SampleAnswer:
        sweeps = max(1, -(-size // sampling.chains))
        found = sample_posteriors(
            theta,
            data,
            budget=limits,
            sampling=replace(sampling, sweeps=sweeps),
            observation_rate=observation_rate,
            random_state=seed,
            n_threads=n_threads,
        )
        exact = bool((found.methods == "exact").all())
        return SampleAnswer(
            found, 0 if exact else sweeps * sampling.chains, None if exact else seed
        )

    return until_precise(
        ask,
        error_of,
        draws,
        target_se,
        default=default,
        first=default,
        most=MOST_ORDERS,
    )


def _check_exact(parameters: Parameters, data: Dataset, budget: Budget) -> None:
    """Raise if a set would be sampled; the same rule as that of `sample_posteriors`."""
    for row in data.values:
        items = np.nonzero(row)[0].astype(np.int64)
        columns = parameters.columns(items).items.size
        if items.size > 1 and not budget.exact_fits(items.size, columns):
            raise BudgetError(
                f"a set of {items.size} items is beyond the budget; use method='auto', which "
                "draws orders, or a larger budget=Budget(...)"
            )


def sample_arrivals(
    model: Any,
    sample: Iterable[Any],
    *,
    draws: int | None = None,
    target_se: float | None = None,
    observation_rate: float | None = None,
    budget: Budget | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> pd.DataFrame:
    """Return when the items of one sample came: their positions and arrival times.

    Exact within the budget, from drawn orders beyond it.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    sample : set of labels, or a true/false row
        What was observed.
    draws : int or None
        Orders drawn if the set is beyond the budget (default 1,600).
    target_se : float or None
        Instead of `draws`: the standard error that is wanted of every mean position.
    observation_rate, budget, random_state, n_threads
        As in `Likelihood`.

    Returns
    -------
    DataFrame
        One row for each item, by mean arrival: mean, standard deviation (the posterior's spread)
        and Monte Carlo standard error of the mean, of the position (1 is first) and of the time
        of arrival. ``attrs`` holds "method", "draws" and "seed".

    Examples
    --------
    >>> import sequela
    >>> found = sequela.sample_arrivals(sequela.example_theta(), {"first", "second"})
    >>> found["position_mean"].round(2).to_dict()
    {'first': 1.02, 'second': 1.98}
    >>> found["arrival_mean"].round(2).to_dict()
    {'first': 0.23, 'second': 0.45}
    """
    chain = as_model(model)
    present, data = one_sample(chain, sample)

    def error_of(found: SampleAnswer) -> float:
        return float(np.max(found.posterior.mean_errors(0)[1], initial=0.0))

    answer = posterior_until_precise(
        chain.theta, data, error_of, draws, target_se, budget=budget,
        observation_rate=rate_of(chain, observation_rate), random_state=random_state,
        n_threads=n_threads,
    )  # fmt: skip
    found = answer.posterior
    place = found.place(0)
    steps = np.arange(1.0, present.size + 1.0)
    mean = place @ steps
    arrival_se, place_se = found.mean_errors(0)
    table = pd.DataFrame(
        {
            "position_mean": mean,
            "position_sd": np.sqrt(np.maximum(place @ steps**2 - mean**2, 0.0)),
            "position_se": place_se,
            "arrival_mean": found.arrival_mean[0, present],
            "arrival_sd": np.sqrt(np.maximum(found.arrival_variance[0, present], 0.0)),
            "arrival_se": arrival_se,
        },
        index=pd.Index([chain.items[j] for j in present], name="item"),
    ).sort_values("arrival_mean", kind="stable")
    table.attrs.update(method=str(found.methods[0]), draws=answer.draws, seed=answer.seed)
    return table
