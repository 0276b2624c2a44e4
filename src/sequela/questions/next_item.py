"""What comes next: the step after a given state, and what will be there after a while."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.linalg import expm_multiply
from scipy.special import logsumexp

from sequela.likelihood.budget import check_budget
from sequela.questions.arguments import as_model, find_items, rate_of
from sequela.questions.dependence import ancestors, given_state
from sequela.questions.precision import share_error, until_precise
from sequela.simulation import simulate
from sequela.support.errors import InputError
from sequela.support.random import materialise_seed
from sequela.support.validation import is_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from sequela.likelihood.budget import Budget
    from sequela.support.random import RandomState

__all__ = ["NextStep", "items_within", "next_items"]

DEFAULT_DRAWS = 100_000
# Terms of the exponential's series grow with the largest rate times the time; beyond this a
# simulation is faster.
_MOST_STEPS = 1e4
_MOST_STATES_BITS = 14


@dataclass(frozen=True)
class NextStep:
    """What the chain does next from a state.

    Attributes
    ----------
    items : DataFrame
        One row for each absent item, the likeliest first: "rate"; "probability" that it is the
        next thing to happen, before the observation; "share" among the items, if some item comes
        next at all.
    observed_first : float
        Probability that the sample is observed before anything else arrives.
    waiting_time : float
        Expected time until the next item or the observation, whichever is first.
    next_item_time : float
        Expected time until the next item if nobody looks; infinite if none is left.
    """

    items: pd.DataFrame
    observed_first: float
    waiting_time: float
    next_item_time: float


def next_items(
    model: Any, state: Iterable[Any] = (), *, observation_rate: float | None = None
) -> NextStep:
    """Return which item comes next after `state`, exactly.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    state : set of labels, or a true/false row
        What is present.
    observation_rate : float or None
        The rate of the observation; None: that of the model.

    Examples
    --------
    >>> import sequela
    >>> found = sequela.next_items(sequela.example_theta(), {"first"})
    >>> found.items["probability"].round(3).head(2).to_dict()
    {'second': 0.227, 'left': 0.138}
    >>> round(found.observed_first, 3)
    0.227
    """
    chain = as_model(model)
    present = find_items(chain, state, "state")
    rate = rate_of(chain, observation_rate)
    theta, absent = given_state(chain.theta, present)
    logs = np.diagonal(theta)
    # Logarithms throughout: a rate may be beyond a double, its share is not.
    items_log = float(logsumexp(logs)) if logs.size else -np.inf
    total_log = float(np.logaddexp(items_log, np.log(rate)))
    with np.errstate(over="ignore", under="ignore"):
        table = pd.DataFrame(
            {
                "rate": np.exp(logs),
                "probability": np.exp(logs - total_log),
                "share": np.exp(logs - items_log) if logs.size else logs,
            },
            index=pd.Index([chain.items[j] for j in absent], name="item"),
        )
        return NextStep(
            items=table.sort_values("probability", ascending=False, kind="stable"),
            observed_first=float(np.exp(np.log(rate) - total_log)),
            waiting_time=float(np.exp(-total_log)),
            next_item_time=float(np.exp(-items_log)),
        )


def items_within(
    model: Any,
    time: float,
    state: Iterable[Any] = (),
    *,
    items: Iterable[Any] | None = None,
    draws: int | None = None,
    target_se: float | None = None,
    budget: Budget | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> pd.DataFrame:
    """Return the probability that each item arrives within `time` after `state`.

    Exact where the lattice of the items that act on it is small and its rates are moderate, else
    simulated. Nothing is observed in between: the chain just goes on.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    time : float
        How long, in units of the mean observation time.
    state : set of labels, or a true/false row
        What is present at the beginning.
    items : list of labels or None
        Which absent items; None: all.
    draws : int or None
        Simulated sequences for items that are not exact (default 100,000).
    target_se : float or None
        Instead of `draws`: the standard error that is wanted.
    budget, random_state, n_threads
        As in `Likelihood`.

    Returns
    -------
    DataFrame
        One row for each item, the likeliest first: "probability", "se", "method". ``attrs`` holds
        "draws" and "seed".

    Examples
    --------
    >>> import sequela
    >>> found = sequela.items_within(sequela.example_theta(), 0.5, {"first"})
    >>> found.loc[["second", "clock 1"], "probability"].round(3).to_dict()
    {'second': 0.393, 'clock 1': 0.168}
    """
    chain = as_model(model)
    present = find_items(chain, state, "state")
    if not (is_number(time) and 0.0 <= time < np.inf):
        raise InputError(f"time is {time!r}; expected a finite number that is not negative")
    theta, absent = given_state(chain.theta, present)
    wanted = absent if items is None else find_items(chain, items)
    there = [chain.items[j] for j in wanted if j in present]
    if there:
        raise InputError(f"{there[0]!r} is already in the state; ask for absent items")
    places = np.searchsorted(absent, wanted)
    limits = check_budget(budget)
    exact = np.zeros(places.size)
    if time > 0.0:
        exact = _exactly(theta, places, float(time), limits)
    missing = np.isnan(exact)
    seed = materialise_seed(random_state)

    def table(
        probability: NDArray[np.float64], error: NDArray[np.float64], size: int
    ) -> pd.DataFrame:
        found = pd.DataFrame(
            {
                "probability": probability,
                "se": error,
                "method": np.where(missing, "simulation", "exact"),
            },
            index=pd.Index([chain.items[j] for j in wanted], name="item"),
        ).sort_values("probability", ascending=False, kind="stable")
        found.attrs.update(draws=size, seed=seed if size else None)
        return found

    if not missing.any():
        return table(exact, np.zeros(exact.size), 0)

    def ask(size: int) -> pd.DataFrame:
        # Practically never observed: every draw runs until all items are there.
        drawn = simulate(
            theta, size, observation_rate=_never(theta, float(time)), random_state=seed,
            n_threads=n_threads,
        )  # fmt: skip
        early = drawn.sequence[drawn.arrival_times <= time]
        hits = np.bincount(early, minlength=absent.size)[places]
        error = share_error(hits, size - hits)
        return table(np.where(missing, hits / size, exact), np.where(missing, error, 0.0), size)

    return until_precise(
        ask, lambda found: float(found["se"].max()), draws, target_se, default=DEFAULT_DRAWS
    )


def _never(theta: NDArray[np.float64], time: float) -> float:
    """Return a rate of observation that does not disturb the first `time`."""
    return 1e-12 / max(time, 1e-12 / float(np.exp(np.diagonal(theta).min(initial=0.0))), 1e-300)


def _exactly(
    theta: NDArray[np.float64], places: NDArray[np.int64], time: float, budget: Budget
) -> NDArray[np.float64]:
    """Return the probabilities that small lattices give; NaN for the others."""
    found = np.full(places.size, np.nan)
    solved: dict[bytes, NDArray[np.float64] | None] = {}
    for at, place in enumerate(places):
        members = ancestors(theta, np.array([place]))
        if members.size == 1:
            with np.errstate(over="ignore"):
                found[at] = -np.expm1(-np.exp(theta[place, place]) * time)
            continue
        key = members.tobytes()
        if key not in solved:
            solved[key] = _present_after(theta[np.ix_(members, members)], time, budget)
        chances = solved[key]
        if chances is not None:
            found[at] = chances[int(np.searchsorted(members, place))]
    return found


def _present_after(
    theta: NDArray[np.float64], time: float, budget: Budget
) -> NDArray[np.float64] | None:
    """Return P(item is present at `time`) from the distribution on all states, or None."""
    k = len(theta)
    if k > _MOST_STATES_BITS or not budget.exact_fits(k, k):
        return None
    effects = theta.copy()
    np.fill_diagonal(effects, 0.0)
    states = np.arange(1 << k)
    member = (states[:, None] >> np.arange(k) & 1).astype(np.float64)
    logs = np.diagonal(theta) + member @ effects
    if logs.max() > np.log(_MOST_STEPS):
        return None
    rates = np.where(member > 0.0, 0.0, np.exp(logs))
    out = rates.sum(axis=1)
    if out.max() * time > _MOST_STEPS:
        return None
    source, item = np.nonzero(rates)
    rows = np.concatenate([source | (1 << item), states])
    columns = np.concatenate([source, states])
    values = np.concatenate([rates[source, item], -out])
    generator = csr_array((values, (rows, columns)), shape=(1 << k, 1 << k))
    start = np.zeros(1 << k)
    start[0] = 1.0
    chance = expm_multiply(generator * time, start, traceA=float(-out.sum() * time))
    present: NDArray[np.float64] = np.clip(chance @ member, 0.0, 1.0)
    return present
