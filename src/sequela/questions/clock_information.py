"""How much clock is in the data: how well the items tell when a sample was taken.

Items that arrive independently of the rest act as a clock in the background; the more of them, the
narrower the posterior of the observation time, and the better orders can be told (sections 3 and 5
of the paper).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.likelihood.posterior import sample_posteriors
from sequela.questions.arguments import as_model, as_samples, find_items, rate_of
from sequela.questions.distributions import item_frequencies
from sequela.questions.order import DEFAULT_DRAWS
from sequela.questions.precision import until_precise
from sequela.simulation import simulate
from sequela.support.errors import InputError
from sequela.support.random import materialise_seed
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from sequela.likelihood.budget import Budget
    from sequela.support.random import RandomState

__all__ = ["clock_curve", "clock_items"]

_CURVE_DRAWS = 400
_MOST_CURVE_DRAWS = 200_000
_BATCHES = 20


def clock_curve(
    model: Any,
    data: Any = None,
    *,
    sizes: Sequence[int] | None = None,
    items: Iterable[Any] | None = None,
    draws: int | None = None,
    target_se: float | None = None,
    observation_rate: float | None = None,
    budget: Budget | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> pd.DataFrame:
    """Return the expected posterior variance of the observation time for more and more items.

    For each m the model of the m most frequent items alone (the entries of theta among them) is
    simulated, and the posterior variance of the time given each set is averaged.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    data : Dataset, DataFrame, array, list of sets, or None
        Where the frequencies come from; None: from the model.
    sizes : list of int or None
        Numbers of items; None: 0, 1, 2, 5, 10, 20, 50, ... up to all.
    items : list of labels or None
        Instead of the most frequent: the items in the order in which they are added.
    draws : int or None
        Simulated sets for each m (default 400).
    target_se : float or None
        Instead of `draws`: the standard error that is wanted at every m.
    observation_rate, budget, random_state, n_threads
        As in `Likelihood`.

    Returns
    -------
    DataFrame
        Indexed by "m": "variance", its Monte Carlo standard error "se", "share" of the variance
        without any item, and the "item" that was added last. ``attrs`` holds "draws" and "seed".

    Examples
    --------
    >>> import sequela
    >>> curve = sequela.clock_curve(sequela.example_theta(), sizes=[0, 5, 10], random_state=1)
    >>> curve["variance"].round(1).tolist()
    [1.0, 0.4, 0.3]
    """
    chain = as_model(model)
    rate = rate_of(chain, observation_rate)
    order = _order(chain, data, items, rate, budget, random_state, n_threads)
    counts = _read_sizes(sizes, order.size)
    seed = materialise_seed(random_state)

    def ask(size: int) -> pd.DataFrame:
        rows = []
        for m in counts:
            mean, error = 1.0 / rate**2, 0.0
            if m:
                theta = chain.theta[np.ix_(order[:m], order[:m])]
                drawn = simulate(
                    theta, size, observation_rate=rate, random_state=seed, n_threads=n_threads
                ).to_dataset()
                found = sample_posteriors(
                    theta, drawn.without_times(), observation_rate=rate, budget=budget,
                    random_state=seed, n_threads=n_threads,
                )  # fmt: skip
                mean = float(found.time_variance.mean())
                error = float(found.time_variance.std(ddof=1) / np.sqrt(size))
            rows.append(
                {
                    "variance": mean,
                    "se": error,
                    "share": mean * rate**2,
                    "item": chain.items[order[m - 1]] if m else "",
                }
            )
        table = pd.DataFrame(rows, index=pd.Index(counts, name="m"))
        table.attrs.update(draws=size, seed=seed)
        return table

    return until_precise(
        ask,
        lambda found: float(found["se"].max()),
        draws,
        target_se,
        default=_CURVE_DRAWS,
        first=_CURVE_DRAWS,
        most=_MOST_CURVE_DRAWS,
    )


def _order(
    chain: Any,
    data: Any,
    items: Iterable[Any] | None,
    rate: float,
    budget: Budget | None,
    random_state: RandomState,
    n_threads: int | None,
) -> NDArray[np.int64]:
    if items is not None:
        if data is not None:
            raise InputError("data and items were both given; expected one way to order the items")
        return find_items(chain, items)
    if data is not None:
        share = as_samples(chain, data).frequencies.to_numpy()
    else:
        seed = materialise_seed(random_state) if random_state is not None else 0
        share = item_frequencies(
            chain, observation_rate=rate, budget=budget, random_state=seed, n_threads=n_threads
        )["model"].to_numpy()
    return np.argsort(-share, kind="stable")


def _read_sizes(sizes: Sequence[int] | None, most: int) -> list[int]:
    if sizes is None:
        steps = [0, *(step * 10**power for power in range(6) for step in (1, 2, 5))]
        return [*(m for m in steps if m < most), most]
    try:
        read = [positive_integer("sizes", m, least=0) for m in sizes]
    except TypeError:
        raise InputError(f"sizes is {sizes!r}; expected a list of integers: [{sizes!r}]") from None
    if not read or max(read) > most:
        raise InputError(f"sizes are {list(sizes)!r}; expected numbers from 0 to {most}")
    return read


def clock_items(
    model: Any,
    *,
    draws: int | None = None,
    target_se: float | None = None,
    observation_rate: float | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> pd.DataFrame:
    """Return how much each item tells about the observation time, taken alone.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    draws : int or None
        Simulated sequences (default 100,000).
    target_se : float or None
        Instead of `draws`: the standard error that is wanted of "explained".
    observation_rate, random_state, n_threads
        As in `simulate`.

    Returns
    -------
    DataFrame
        One row for each item, the most telling first: "explained", the share of the time's
        variance that knowing its presence removes, with its Monte Carlo standard error "se";
        "time_present" and "time_absent", mean observation times with and without it. ``attrs``
        holds "draws" and "seed".

    Examples
    --------
    >>> import sequela
    >>> sequela.clock_items(sequela.example_theta(), random_state=1)["explained"].round(2).idxmax()
    'second'
    """
    chain = as_model(model)
    rate = rate_of(chain, observation_rate)
    seed = materialise_seed(random_state)

    def ask(size: int) -> pd.DataFrame:
        drawn = simulate(
            chain.theta, size, observation_rate=rate, random_state=seed,
            n_threads=n_threads,
        )  # fmt: skip
        data = drawn.to_dataset()
        batch = np.arange(size) * _BATCHES // size
        counts = np.bincount(batch, minlength=_BATCHES).astype(float)
        sums = np.bincount(batch, drawn.observation_times, _BATCHES)
        present = np.zeros((_BATCHES, chain.n_items))
        time = np.zeros((_BATCHES, chain.n_items))
        for b in range(_BATCHES):
            rows = batch == b
            piece = data.values[rows].astype(np.float64)
            present[b] = piece.sum(axis=0)
            time[b] = drawn.observation_times[rows] @ piece
        whole = _explained(counts.sum(), sums.sum(), present.sum(axis=0), time.sum(axis=0))
        each = np.stack([
            _explained(
                counts.sum() - counts[b], sums.sum() - sums[b],
                present.sum(axis=0) - present[b], time.sum(axis=0) - time[b],
            )[0]
            for b in range(_BATCHES)
        ])  # fmt: skip
        variance = 1.0 / rate**2
        spread = ((each - each.mean(axis=0)) ** 2).sum(axis=0)
        error = np.sqrt((_BATCHES - 1) / _BATCHES * spread)
        table = pd.DataFrame(
            {
                "explained": whole[0] / variance,
                "se": error / variance,
                "time_present": whole[1],
                "time_absent": whole[2],
            },
            index=pd.Index(chain.items, name="item"),
        ).sort_values("explained", ascending=False, kind="stable")
        table.attrs.update(draws=size, seed=seed)
        return table

    return until_precise(
        ask, lambda found: float(found["se"].max()), draws, target_se, default=DEFAULT_DRAWS
    )


def _explained(
    count: float, total: float, present: NDArray[np.float64], time: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the variance of the time between presence and absence, and the two mean times."""
    with np.errstate(invalid="ignore", divide="ignore"):
        with_it = time / present
        without = (total - time) / (count - present)
        share = present / count
        between = share * (1.0 - share) * (with_it - without) ** 2
    return np.where(np.isnan(between), 0.0, between), with_it, without
