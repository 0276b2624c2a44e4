"""When items come in general, among the sequences in which they are observed, by simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.questions.arguments import as_model, find_items, rate_of
from sequela.questions.order import DEFAULT_DRAWS
from sequela.questions.precision import until_precise
from sequela.simulation import simulate
from sequela.support.errors import InputError
from sequela.support.random import materialise_seed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sequela.support.random import RandomState

__all__ = ["item_arrivals"]

# An item seen less often than this is not precise, whatever the spread of its positions.
_FEWEST = 20


def item_arrivals(
    model: Any,
    items: Iterable[Any] | None = None,
    *,
    draws: int | None = None,
    target_se: float | None = None,
    observation_rate: float | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> pd.DataFrame:
    """Return position and arrival time of each item, given that it is observed.

    Read it with care: an item that is observed mostly in late samples has a late mean position
    also because those samples have more items. Which of two items comes first is answered by
    `order_matrix`.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    items : list of labels or None
        None: all.
    draws : int or None
        Simulated sequences (default 100,000).
    target_se : float or None
        Instead of `draws`: the standard error that is wanted of every mean position.
    observation_rate, random_state, n_threads
        As in `simulate`.

    Returns
    -------
    DataFrame
        One row for each item, by mean position: share of sequences with the item; mean, standard
        deviation and Monte Carlo standard error of the mean of its position (1 is first) and of
        its arrival time. NaN for an item that was never drawn. ``attrs`` holds "draws" and "seed".

    Examples
    --------
    >>> import sequela
    >>> found = sequela.item_arrivals(sequela.example_theta(), random_state=1)
    >>> found.loc[["first", "second"], "position_mean"].round(1).tolist()
    [2.0, 3.8]
    """
    chain = as_model(model)
    places = np.arange(chain.n_items) if items is None else find_items(chain, items)
    if not places.size:
        raise InputError("items is empty; expected at least one item, or None for all")
    seed = materialise_seed(random_state)

    def ask(size: int) -> pd.DataFrame:
        drawn = simulate(
            chain.theta, size, observation_rate=rate_of(chain, observation_rate), random_state=seed,
            n_threads=n_threads,
        )  # fmt: skip
        position = np.arange(drawn.sequence.size) - np.repeat(drawn.indptr[:-1], drawn.set_sizes)
        seen = np.bincount(drawn.sequence, minlength=chain.n_items)[places].astype(float)
        table = {"observed": seen / size}
        for name, values in (("position", position + 1.0), ("arrival", drawn.arrival_times)):
            with np.errstate(divide="ignore", invalid="ignore"):
                total = np.bincount(drawn.sequence, values, chain.n_items)[places]
                mean = total / seen
                # Around the mean, so that nothing cancels.
                around = np.full(chain.n_items, np.nan)
                around[places] = mean
                square = (values - around[drawn.sequence]) ** 2
                squares = np.bincount(drawn.sequence, square, chain.n_items)[places]
                variance = np.where(seen > 1.0, squares / (seen - 1.0), np.nan)
                table[f"{name}_mean"] = mean
                table[f"{name}_sd"] = np.sqrt(variance)
                table[f"{name}_se"] = np.sqrt(variance / seen)
        index = pd.Index([chain.items[j] for j in places], name="item")
        found = pd.DataFrame(table, index=index).sort_values("position_mean", kind="stable")
        found.attrs.update(draws=size, seed=seed)
        return found

    def error_of(found: pd.DataFrame) -> float:
        # The spread of a few sightings can be nothing by chance: no error can be told from it.
        rare = found["observed"].to_numpy() * found.attrs["draws"] < _FEWEST
        return float(np.max(np.where(rare, np.inf, found["position_se"].to_numpy())))

    return until_precise(ask, error_of, draws, target_se, default=DEFAULT_DRAWS)
