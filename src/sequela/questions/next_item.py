"""The next item after a given state, and the items that arrive within a given time."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.linalg import expm_multiply
from scipy.special import logsumexp

from sequela.data.dataset import Dataset
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.plan import all_subsets_fit
from sequela.model import Model, as_model
from sequela.observation import Exponential
from sequela.posteriors.result import Posterior, check_level
from sequela.questions.arguments import find_items, one_sample
from sequela.questions.dependence import ancestors, given_state
from sequela.questions.distributions import check_time
from sequela.questions.imputation import completions
from sequela.questions.over_draws import ask_draws, chosen_draws, summarise_draws
from sequela.questions.precision import fill_by_simulation
from sequela.settings import read_settings
from sequela.simulation import simulate
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.budget import Budget
    from sequela.model import ModelLike
    from sequela.questions.arguments import SampleLike
    from sequela.settings import Settings, SettingsKeywords

__all__ = ["NextStep", "PosteriorNextStep", "items_within", "next_items"]

# Limit for the largest rate, and for the product of the largest exit rate and the time. Above this
# limit the matrix exponential needs many terms, and a simulation is faster.
_MAX_STEPS = 1e4
_MAX_LATTICE_ITEMS = 14
# Number of completions of a sample whose rates are computed together.
_TOGETHER = 1 << 16


@dataclass(frozen=True)
class NextStep:
    """The next event after a state: the arrival of an item, or the observation.

    Attributes
    ----------
    items : DataFrame
        One row per absent item, the most probable first. "rate" is its rate. "probability" is the
        probability that the item arrives next, before the observation. "share" is the probability
        that it is this item, given that an item arrives before the observation.
    observed_first : float
        Probability that the sample is observed before any absent item arrives.
    waiting_time : float
        Expected time until the next item or the observation, whichever is first.
    next_item_time : float
        Expected time until the next item arrives, if there were no observation; infinite if all
        items are present.
    """

    items: pd.DataFrame
    observed_first: float
    waiting_time: float
    next_item_time: float


@dataclass(frozen=True)
class PosteriorNextStep(NextStep):
    """The next event after a state, under the posterior of the model.

    All numbers of `NextStep` are means over the draws that were used. The table ``items`` has four
    additional columns: "low" and "high" are the interval of "probability" over the models, and
    "effective" and "r_hat" are its effective number of draws and its R-hat.

    Attributes
    ----------
    summary : DataFrame
        One row each for "observed_first", "waiting_time" and "next_item_time". The columns are
        "mean", the interval "low" to "high", "effective" and "r_hat".
    """

    summary: pd.DataFrame


@overload
def next_items(
    model: Posterior,
    state: SampleLike = (),
    *,
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> PosteriorNextStep: ...


@overload
def next_items(
    model: ModelLike,
    state: SampleLike = (),
    *,
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> NextStep: ...


def next_items(
    model: ModelLike | Posterior,
    state: SampleLike = (),
    *,
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> NextStep:
    """Return the exact probability that each absent item arrives next after `state`.

    Parameters
    ----------
    model : Model, fitted SetChain, theta, or Posterior
        The model. For a posterior the results are means over its draws, with intervals.
    state : set of labels, a true/false row, or a Dataset of one sample
        The items that are present. A data set may have missing cells. Then all numbers are means
        over the possible values of these cells, given the known cells and the known orders. The
        table also has a row for each missing item.
    level : float
        Probability of the intervals, for a posterior.
    **settings
        `n_threads` and, for a posterior, `max_models`. If too many cells are missing for an exact
        answer (see `budget`), completions are drawn from `random_state` (default 0). See
        `Settings`.

    Returns
    -------
    NextStep
        For a posterior a `PosteriorNextStep`.

    Notes
    -----
    All draws of a posterior are used. If cells are missing, each draw needs a lattice of the
    present and the missing items. So at most 400 draws are then used, evenly spread over the
    chains; `max_models` sets another number.

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> step = next_items(example_theta(), {"first"})
    >>> step.items["probability"].round(3).head(2).to_dict()
    {'second': 0.227, 'left': 0.138}
    >>> round(step.observed_first, 3)
    0.227
    """
    how = read_settings(
        settings,
        unused=("sampling", "draws", "target_se"),
        posterior=isinstance(model, Posterior),
        default_seed=0,
    )
    if isinstance(model, Posterior):
        return _next_over_draws(model, state, check_level(level), how)
    model = as_model(model)
    if isinstance(state, Dataset):
        state, data = one_sample(model, state, "state")
        if data.missing is not None:
            return _next_with_missing(model, data, how)
        state = [model.items[j] for j in state]
    present = find_items(model, state, "state")
    stop_log = float(np.log(Parameters.of(model).stop_rate))
    theta, absent = given_state(model.theta, present)
    logs = np.diagonal(theta)
    # Use logarithms, because a rate may be too large for a double although its share is not.
    items_log = float(logsumexp(logs)) if logs.size else -np.inf
    total_log = float(np.logaddexp(items_log, stop_log))
    with np.errstate(over="ignore", under="ignore"):
        table = pd.DataFrame(
            {
                "rate": np.exp(logs),
                "probability": np.exp(logs - total_log),
                "share": np.exp(logs - items_log) if logs.size else logs,
            },
            index=pd.Index([model.items[j] for j in absent], name="item"),
        )
        return NextStep(
            items=table.sort_values("probability", ascending=False, kind="stable"),
            observed_first=float(np.exp(stop_log - total_log)),
            waiting_time=float(np.exp(-total_log)),
            next_item_time=float(np.exp(-items_log)),
        )


class _Numbers(NamedTuple):
    """The numbers of `NextStep`, with one entry per draw of theta, or without such an axis."""

    rate: NDArray[np.float64]
    probability: NDArray[np.float64]
    share: NDArray[np.float64]
    observed_first: NDArray[np.float64]
    waiting_time: NDArray[np.float64]
    next_item_time: NDArray[np.float64]


def _next_with_missing(model: Model, data: Dataset, settings: Settings) -> NextStep:
    """Return the next step of a sample, as a mean over the completions of its missing cells."""
    found = _mean_over_completions(model, data, settings)
    table = pd.DataFrame(
        {"rate": found.rate, "probability": found.probability, "share": found.share},
        index=_absent_or_missing(model, data),
    )
    return NextStep(
        items=table.sort_values("probability", ascending=False, kind="stable"),
        observed_first=float(found.observed_first),
        waiting_time=float(found.waiting_time),
        next_item_time=float(found.next_item_time),
    )


def _absent_or_missing(model: Model, data: Dataset) -> pd.Index:
    asked = np.flatnonzero(~data.values[0])
    return pd.Index([model.items[j] for j in asked], name="item")


def _mean_over_completions(model: Model, data: Dataset, settings: Settings) -> _Numbers:
    """Return means over the completions; items are those that are absent or missing."""
    states, shares = completions(model, data, settings)
    theta = model.theta
    effects = theta - np.diag(np.diagonal(theta))
    stop_log = float(np.log(Parameters.of(model).stop_rate))
    asked = np.flatnonzero(~data.values[0])
    total = _Numbers(*(np.zeros(asked.size) for _ in range(3)), *(np.zeros(()) for _ in range(3)))
    for first in range(0, len(states), _TOGETHER):
        here = states[first : first + _TOGETHER]
        weight = shares[first : first + _TOGETHER]
        logs = np.where(here, -np.inf, np.diagonal(theta) + here.astype(np.float64) @ effects)
        items_log = logsumexp(logs, axis=1)
        total_log = np.logaddexp(items_log, stop_log)
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            share = np.where(
                np.isfinite(items_log)[:, None], np.exp(logs - items_log[:, None]), 0.0
            )
            part = _Numbers(
                rate=(weight @ np.exp(logs))[asked],
                probability=(weight @ np.exp(logs - total_log[:, None]))[asked],
                share=(weight @ share)[asked],
                observed_first=weight @ np.exp(stop_log - total_log),
                waiting_time=weight @ np.exp(-total_log),
                next_item_time=weight @ np.exp(-items_log),
            )
        total = _Numbers(*(a + b for a, b in zip(total, part, strict=True)))
    return total


def _next_over_draws(
    posterior: Posterior, state: SampleLike, level: float, settings: Settings
) -> PosteriorNextStep:
    """Return the next step over draws of theta."""
    model = posterior.models(1)[0]
    if isinstance(state, Dataset):
        present, data = one_sample(model, state, "state")
        if data.missing is not None:
            asked = ask_draws(
                posterior, lambda one, own: _mean_over_completions(one, data, own), settings,
                "next items of models",
            )  # fmt: skip
            numbers = _Numbers(*(asked.values(attrgetter(name)) for name in _Numbers._fields))
            return _summary(numbers, _absent_or_missing(model, data), level)
    else:
        present = find_items(model, state, "state")
    absent = np.setdiff1d(np.arange(model.n_items), present)
    index = pd.Index([model.items[j] for j in absent], name="item")
    return _summary(_of_all_draws(posterior, present, absent, settings), index, level)


def _of_all_draws(
    posterior: Posterior, present: NDArray[np.int64], absent: NDArray[np.int64], settings: Settings
) -> _Numbers:
    """Return the numbers of all draws, computed at once from sums of entries of theta."""
    theta = posterior.draws.theta
    if settings.max_models is not None:
        chosen = chosen_draws(posterior, settings.max_models)
        theta = theta[:, [draw for chain, draw in chosen if chain == 0]]
    logs = theta[:, :, absent, absent] + theta[:, :, present][:, :, :, absent].sum(axis=2)
    stop_log = float(np.log(Parameters.of(posterior.models(1)[0]).stop_rate))
    items_log = np.logaddexp.reduce(logs, axis=2, initial=-np.inf)
    total_log = np.logaddexp(items_log, stop_log)
    with np.errstate(over="ignore", under="ignore"):
        return _Numbers(
            rate=np.exp(logs),
            probability=np.exp(logs - total_log[:, :, None]),
            share=np.exp(logs - items_log[:, :, None]),
            observed_first=np.exp(stop_log - total_log),
            waiting_time=np.exp(-total_log),
            next_item_time=np.exp(-items_log),
        )


def _summary(numbers: _Numbers, items: pd.Index, level: float) -> PosteriorNextStep:
    """Return the summary of numbers (chains, draws, ...)."""
    probability = summarise_draws(numbers.probability, level)
    table = pd.DataFrame(
        {
            "rate": numbers.rate.mean(axis=(0, 1)),
            "probability": probability.mean,
            "share": numbers.share.mean(axis=(0, 1)),
            "low": probability.low,
            "high": probability.high,
            "effective": probability.effective,
            "r_hat": probability.r_hat,
        },
        index=items,
    )
    others = ["observed_first", "waiting_time", "next_item_time"]
    of_others = summarise_draws(np.stack([getattr(numbers, o) for o in others], axis=2), level)
    summary = pd.DataFrame(
        {
            "mean": of_others.mean,
            "low": of_others.low,
            "high": of_others.high,
            "effective": of_others.effective,
            "r_hat": of_others.r_hat,
        },
        index=others,
    )
    observed_first, waiting_time, next_item_time = map(float, of_others.mean)
    return PosteriorNextStep(
        items=table.sort_values("probability", ascending=False, kind="stable"),
        observed_first=observed_first,
        waiting_time=waiting_time,
        next_item_time=next_item_time,
        summary=summary,
    )


def items_within(
    model: ModelLike,
    time: float,
    state: Iterable[Any] = (),
    *,
    items: Iterable[Any] | None = None,
    **settings: Unpack[SettingsKeywords],
) -> pd.DataFrame:
    """Return the probability that each item arrives within `time` after `state`.

    A probability is exact if the lattice of the items that act on the item is small and their rates
    are moderate. Otherwise it is simulated. The observation is not taken into account.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    time : float
        The length of the interval, in the unit of time in which the rates of the model are given.
    state : set of labels, or a true/false row
        The items that are present at the beginning.
    items : list of labels or None
        Absent items; None: all absent items.
    **settings
        `budget`, `random_state`, `n_threads`. For items without an exact answer, also `draws`
        (number of simulated sequences, default 100,000) or `target_se`. See `Settings`.

    Returns
    -------
    DataFrame
        One row per item, the most probable first: "probability", "se", "method". ``attrs`` holds
        "draws" and "seed".

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> soon = items_within(example_theta(), 0.5, {"first"})
    >>> soon.loc[["second", "clock 1"], "probability"].round(3).to_dict()
    {'second': 0.393, 'clock 1': 0.168}
    """
    how = read_settings(settings, unused=("sampling",))
    model = as_model(model, instead="next_items(posterior, state)")
    present = find_items(model, state, "state")
    time = check_time(time)
    theta, absent = given_state(model.theta, present)
    wanted = absent if items is None else find_items(model, items)
    already = [model.items[j] for j in wanted if j in present]
    if already:
        raise InputError(f"items has {already[0]!r}, which is in the state; expected absent items")
    places = np.searchsorted(absent, wanted)

    def count_hits(draws: int) -> NDArray[np.int64]:
        unobserved = Model(theta, observation=Exponential(_negligible_rate(theta, time)))
        drawn = simulate(unobserved, draws, random_state=how.seed, n_threads=how.threads)
        early = drawn.sequence[drawn.arrival_times <= time]
        return np.bincount(early, minlength=absent.size)[places]

    exact = _exactly(theta, places, time, how.budget) if time > 0.0 else np.zeros(places.size)
    shares = fill_by_simulation(exact, count_hits, how)
    table = pd.DataFrame(
        {"probability": shares.probability, "se": shares.se, "method": shares.method},
        index=pd.Index([model.items[j] for j in wanted], name="item"),
    ).sort_values("probability", ascending=False, kind="stable")
    table.attrs.update(draws=shares.draws, seed=shares.seed)
    return table


def _negligible_rate(theta: NDArray[np.float64], time: float) -> float:
    """Return an observation rate so small that almost every draw lasts longer than `time`."""
    return 1e-12 / max(time, 1e-12 / float(np.exp(np.diagonal(theta).min(initial=0.0))), 1e-300)


def _exactly(
    theta: NDArray[np.float64], places: NDArray[np.int64], time: float, budget: Budget
) -> NDArray[np.float64]:
    """Return the probabilities of items with small lattices; NaN for the other items."""
    probability = np.full(places.size, np.nan)
    solved: dict[bytes, NDArray[np.float64] | None] = {}
    for at, place in enumerate(places):
        members = ancestors(theta, np.array([place]))
        if members.size == 1:
            with np.errstate(over="ignore"):
                probability[at] = -np.expm1(-np.exp(theta[place, place]) * time)
            continue
        key = members.tobytes()
        if key not in solved:
            solved[key] = _present_after(theta[np.ix_(members, members)], time, budget)
        present = solved[key]
        if present is not None:
            probability[at] = present[int(np.searchsorted(members, place))]
    return probability


def _present_after(
    theta: NDArray[np.float64], time: float, budget: Budget
) -> NDArray[np.float64] | None:
    """Return P(item is present at `time`) of all items; None if the lattice is too large."""
    k = len(theta)
    if k > _MAX_LATTICE_ITEMS or not all_subsets_fit(k, budget):
        return None
    effects = theta.copy()
    np.fill_diagonal(effects, 0.0)
    states = np.arange(1 << k)
    member = (states[:, None] >> np.arange(k) & 1).astype(np.float64)
    logs = np.diagonal(theta) + member @ effects
    if logs.max() > np.log(_MAX_STEPS):
        return None
    rates = np.where(member > 0.0, 0.0, np.exp(logs))
    out = rates.sum(axis=1)
    if out.max() * time > _MAX_STEPS:
        return None
    source, item = np.nonzero(rates)
    rows = np.concatenate([source | (1 << item), states])
    columns = np.concatenate([source, states])
    values = np.concatenate([rates[source, item], -out])
    generator = csr_array((values, (rows, columns)), shape=(1 << k, 1 << k))
    start = np.zeros(1 << k)
    start[0] = 1.0
    at_time = expm_multiply(generator * time, start, traceA=float(-out.sum() * time))
    present: NDArray[np.float64] = np.clip(at_time @ member, 0.0, 1.0)
    return present
