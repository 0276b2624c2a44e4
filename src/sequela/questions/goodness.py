"""Does the model describe the data: set sizes, items and pairs, observed against expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.questions.arguments import as_model, as_samples, rate_of
from sequela.questions.order import DEFAULT_DRAWS
from sequela.questions.precision import share_error
from sequela.simulation import simulate
from sequela.support.random import materialise_seed
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.support.random import RandomState

__all__ = ["GoodnessOfFit", "goodness_of_fit"]


@dataclass(frozen=True)
class GoodnessOfFit:
    """Observed counts beside those that the model expects in as many samples.

    In every table "observed" and "expected" are numbers of samples, "se" is the Monte Carlo
    standard error of "expected", and "z" the difference in units of what chance makes of so many
    samples; about one in twenty lies beyond 2.

    Attributes
    ----------
    sizes : DataFrame
        By number of items in a sample.
    items : DataFrame
        By item.
    pairs : DataFrame
        By pair of items ("a", "b"), the largest differences first.
    draws, seed : int
        Simulated samples, and what they were derived from.
    """

    sizes: pd.DataFrame
    items: pd.DataFrame
    pairs: pd.DataFrame
    draws: int
    seed: int


def goodness_of_fit(
    model: Any,
    data: Any,
    *,
    draws: int | None = None,
    observation_rate: float | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> GoodnessOfFit:
    """Compare set sizes, items and pairs in data with what the model expects, by simulation.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    data : Dataset, DataFrame, array or list of sets
        The samples.
    draws : int or None
        Simulated samples (default 100,000).
    observation_rate, random_state, n_threads
        As in `simulate`.

    Examples
    --------
    >>> import sequela
    >>> theta = sequela.example_theta()
    >>> data = sequela.simulate(theta, 500, random_state=1).to_dataset()
    >>> fit = sequela.goodness_of_fit(theta, data, random_state=2)
    >>> bool(fit.items["z"].abs().max() < 4)
    True
    """
    chain = as_model(model)
    samples = as_samples(chain, data)
    size = positive_integer("draws", DEFAULT_DRAWS if draws is None else draws, least=2)
    seed = materialise_seed(random_state)
    drawn = simulate(
        chain.theta, size, observation_rate=rate_of(chain, observation_rate), random_state=seed,
        n_threads=n_threads,
    ).to_dataset()  # fmt: skip
    n = chain.n_items
    longest = int(max(samples.set_sizes.max(), drawn.set_sizes.max()))
    sizes = _table(
        np.bincount(samples.set_sizes, minlength=longest + 1),
        np.bincount(drawn.set_sizes, minlength=longest + 1),
        samples.n_samples, size, pd.RangeIndex(longest + 1, name="size"),
    )  # fmt: skip
    seen, expected = _together(samples.values), _together(drawn.values)
    items = _table(
        np.diagonal(seen), np.diagonal(expected), samples.n_samples, size,
        pd.Index(chain.items, name="item"),
    )  # fmt: skip
    a, b = np.triu_indices(n, 1)
    labels = np.array(chain.items, dtype=object)
    pairs = _table(seen[a, b], expected[a, b], samples.n_samples, size, pd.RangeIndex(a.size))
    pairs.insert(0, "a", labels[a])
    pairs.insert(1, "b", labels[b])
    by_size = np.argsort(-np.abs(pairs["z"].to_numpy()), kind="stable")
    return GoodnessOfFit(
        sizes=sizes, items=items, pairs=pairs.iloc[by_size].reset_index(drop=True), draws=size,
        seed=seed,
    )  # fmt: skip


def _together(values: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Count the samples with both items, for all pairs; in pieces, to keep memory small."""
    total = np.zeros((values.shape[1], values.shape[1]))
    for first in range(0, len(values), 1 << 15):
        piece = values[first : first + (1 << 15)].astype(np.float32)
        total += piece.T @ piece
    return total


def _table(
    observed: NDArray[Any], drawn: NDArray[Any], samples: int, draws: int, index: pd.Index[Any]
) -> pd.DataFrame:
    # Half a draw more on either side: an event that was never drawn is rare, not impossible.
    share = (drawn + 0.5) / (draws + 1.0)
    error = share_error(drawn, draws - drawn)
    spread = np.sqrt(share * (1.0 - share) / samples + error**2)
    return pd.DataFrame(
        {
            "observed": np.asarray(observed, dtype=np.int64),
            "expected": drawn / draws * samples,
            "se": error * samples,
            "z": (observed / samples - drawn / draws) / spread,
        },
        index=index,
    )
