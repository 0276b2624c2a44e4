"""What a model says of sets and sequences: their probabilities, and how often items occur."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.likelihood.budget import check_budget
from sequela.likelihood.objective import evaluate
from sequela.likelihood.sampled import Sampling
from sequela.likelihood.sequences import sequence_log_likelihood
from sequela.questions.arguments import as_model, as_samples, find_items, rate_of
from sequela.questions.dependence import ancestors, arrivals_on_lattice, fits_lattice
from sequela.questions.order import DEFAULT_DRAWS
from sequela.questions.precision import Estimate, share_error, until_precise
from sequela.questions.samples import one_sample
from sequela.simulation import simulate
from sequela.support.errors import InputError
from sequela.support.random import materialise_seed
from sequela.support.threads import resolve_threads
from sequela.support.validation import is_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from sequela.likelihood.budget import Budget
    from sequela.support.random import RandomState

__all__ = ["item_frequencies", "sequence_probability", "set_probability"]


def set_probability(
    model: Any,
    sample: Iterable[Any],
    *,
    time: float | None = None,
    observation_rate: float | None = None,
    budget: Budget | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> Estimate:
    """Return the probability that a sample is exactly this set.

    For logarithms of many samples use `log_likelihood`.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    sample : set of labels, or a true/false row
        The set.
    time : float or None
        A known observation time; None: at the random time of an observation.
    observation_rate, budget, random_state, n_threads
        As in `Likelihood`. Sets beyond the budget are sampled; `draws` of the answer is then the
        number of orders at each point of the path that gives the value.

    Examples
    --------
    >>> import sequela
    >>> print(f"{float(sequela.set_probability(sequela.example_theta(), {'first'})):.4f}")
    0.0512
    """
    chain = as_model(model)
    present, data = one_sample(chain, sample)
    if time is not None and not (is_number(time) and 0.0 <= time < np.inf):
        raise InputError(f"time is {time!r}; expected a finite number that is not negative")
    if time == 0.0:
        # Nothing has happened yet.
        return Estimate(0.0 if present.size else 1.0)
    found = evaluate(
        chain.theta, data, times=None if time is None else [time], gradient=False,
        observation_rate=rate_of(chain, observation_rate), budget=budget,
        random_state=random_state, n_threads=n_threads,
    )  # fmt: skip
    method = str(found.methods[0])
    value = float(np.exp(found.value))
    exact = method == "exact"
    return Estimate(
        value=value,
        se=0.0 if exact else value * found.value_se,
        method=method,
        draws=0 if exact else _orders(method),
        seed=None if exact else found.seed,
    )


def _orders(method: str) -> int:
    """Return the orders that are drawn by default of a set, at each point of the path."""
    how = Sampling()
    return how.chains * (how.sweeps if method == "relocation" else how.draws)


def sequence_probability(
    model: Any, sequence: Iterable[Any], *, observation_rate: float | None = None
) -> float:
    """Return the probability that exactly these items arrive, in this order, before observation.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    sequence : list of labels
        The items in order of arrival; all others are absent.
    observation_rate : float or None
        The rate of the observation; None: that of the model.

    Examples
    --------
    >>> import sequela
    >>> print(f"{sequela.sequence_probability(sequela.example_theta(), ['first']):.4f}")
    0.0512
    """
    chain = as_model(model)
    if isinstance(sequence, (set, frozenset)):
        raise InputError("a set has no order; expected a list of items in order of arrival")
    iterable = hasattr(sequence, "__iter__") and not isinstance(sequence, str)
    listed = list(sequence) if iterable else sequence
    if iterable and any(isinstance(x, (bool, np.bool_)) for x in listed):
        raise InputError(
            "sequence has true/false entries, which have no order; expected a list of items in "
            "order of arrival"
        )
    places = find_items(chain, listed, "sequence")
    log_p = sequence_log_likelihood(
        chain.theta, [places.tolist()], observation_rate=rate_of(chain, observation_rate)
    )
    return float(np.exp(log_p))


def item_frequencies(
    model: Any,
    data: Any = None,
    *,
    draws: int | None = None,
    target_se: float | None = None,
    observation_rate: float | None = None,
    budget: Budget | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> pd.DataFrame:
    """Return how often each item is observed under the model, and in data if given.

    Exact where the lattice of the items that act on an item is within the budget, else simulated.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    data : Dataset, DataFrame, array, list of sets, or None
        Samples to compare with.
    draws : int or None
        Simulated sequences for items that are not exact (default 100,000).
    target_se : float or None
        Instead of `draws`: the standard error that is wanted.
    observation_rate, budget, random_state, n_threads
        As in `Likelihood`.

    Returns
    -------
    DataFrame
        One row for each item: "model" and its Monte Carlo standard error "se", "method"; with data
        "data" and "z", the difference in units of what chance makes of so many samples. ``attrs``
        holds "draws" and "seed".

    Examples
    --------
    >>> import sequela
    >>> sequela.item_frequencies(sequela.example_theta())["model"].round(3)["second"].item()
    0.257
    """
    chain = as_model(model)
    samples = None if data is None else as_samples(chain, data)
    rate = rate_of(chain, observation_rate)
    exact = _exactly(chain.theta, rate, check_budget(budget))
    missing = np.isnan(exact)
    seed = materialise_seed(random_state)
    threads = resolve_threads(n_threads)

    def table(share: NDArray[np.float64], error: NDArray[np.float64], size: int) -> pd.DataFrame:
        found = pd.DataFrame(
            {"model": share, "se": error, "method": np.where(missing, "simulation", "exact")},
            index=pd.Index(chain.items, name="item"),
        )
        if samples is not None:
            seen = samples.frequencies.to_numpy()
            found["data"] = seen
            spread = np.sqrt(share * (1.0 - share) / samples.n_samples + error**2)
            with np.errstate(invalid="ignore", divide="ignore"):
                found["z"] = np.where(seen == share, 0.0, (seen - share) / spread)
        found.attrs.update(draws=size, seed=seed if size else None)
        return found

    if not missing.any():
        return table(exact, np.zeros(exact.size), 0)

    def ask(size: int) -> pd.DataFrame:
        drawn = simulate(
            chain.theta, size, observation_rate=rate, random_state=seed, n_threads=threads
        )
        hits = np.bincount(drawn.sequence, minlength=chain.n_items)
        error = share_error(hits, size - hits)
        return table(np.where(missing, hits / size, exact), np.where(missing, error, 0.0), size)

    return until_precise(
        ask, lambda found: float(found["se"].max()), draws, target_se, default=DEFAULT_DRAWS
    )


def _exactly(theta: NDArray[np.float64], rate: float, budget: Budget) -> NDArray[np.float64]:
    found = np.full(len(theta), np.nan)
    for place in range(len(theta)):
        if np.isnan(found[place]):
            members = ancestors(theta, np.array([place]))
            if fits_lattice(members.size, budget):
                # All members of one lattice have their own ancestors in it.
                found[members] = arrivals_on_lattice(theta[np.ix_(members, members)], rate)[0]
    return found
