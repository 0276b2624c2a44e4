"""Does the model describe the data: set sizes, items and pairs, observed and expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.model import as_model
from sequela.questions.precision import DEFAULT_DRAWS, share_error
from sequela.samples import as_samples
from sequela.settings import read_settings
from sequela.simulation import simulate

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.model import ModelLike
    from sequela.settings import SettingsKeywords

__all__ = ["GoodnessOfFit", "goodness_of_fit"]


@dataclass(frozen=True)
class GoodnessOfFit:
    """Observed counts beside those that the model expects in as many samples.

    In every table "observed" and "expected" are numbers of samples, "se" is the Monte Carlo
    standard error of "expected", and "z" the difference in standard deviations of sampling noise;
    about one in twenty lies beyond 2.

    Attributes
    ----------
    sizes : DataFrame
        By number of items per sample.
    items : DataFrame
        By item.
    pairs : DataFrame
        By pair of items ("a", "b"), the largest differences first.
    draws, seed : int
        Number of simulated draws, and what they were derived from.
    """

    sizes: pd.DataFrame
    items: pd.DataFrame
    pairs: pd.DataFrame
    draws: int
    seed: int


def goodness_of_fit(
    model: ModelLike, data: DataLike, **settings: Unpack[SettingsKeywords]
) -> GoodnessOfFit:
    """Compare set sizes, items and pairs in data with what the model expects, by simulation.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    data : Dataset, DataFrame, array or list of sets
        The samples.
    **settings
        `draws` (number of simulated sets, default 100,000), `random_state`, `n_threads`; see
        `Settings`.

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> data = simulate(example_theta(), 500, random_state=1).to_dataset()
    >>> goodness = goodness_of_fit(example_theta(), data, random_state=2)
    >>> bool(goodness.items["z"].abs().max() < 4)
    True
    """
    how = read_settings(settings, unused=("target_se", "budget", "sampling"))
    model = as_model(model)
    samples = as_samples(model, data)
    draws = DEFAULT_DRAWS if how.draws is None else how.draws
    drawn = simulate(model, draws, random_state=how.seed, n_threads=how.threads).to_dataset()
    longest = int(max(samples.set_sizes.max(), drawn.set_sizes.max()))
    sizes = _table(
        np.bincount(samples.set_sizes, minlength=longest + 1),
        np.bincount(drawn.set_sizes, minlength=longest + 1),
        samples.n_samples, draws, pd.RangeIndex(longest + 1, name="size"),
    )  # fmt: skip
    observed, expected = _together(samples.values), _together(drawn.values)
    items = _table(
        np.diagonal(observed), np.diagonal(expected), samples.n_samples, draws,
        pd.Index(model.items, name="item"),
    )  # fmt: skip
    a, b = np.triu_indices(model.n_items, 1)
    labels = np.array(model.items, dtype=object)
    pairs = _table(observed[a, b], expected[a, b], samples.n_samples, draws, pd.RangeIndex(a.size))
    pairs.insert(0, "a", labels[a])
    pairs.insert(1, "b", labels[b])
    ranked = np.argsort(-np.abs(pairs["z"].to_numpy()), kind="stable")
    return GoodnessOfFit(
        sizes=sizes, items=items, pairs=pairs.iloc[ranked].reset_index(drop=True), draws=draws,
        seed=how.seed,
    )  # fmt: skip


def _together(values: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Count the rows with both items, for all pairs; in pieces, to keep memory small."""
    total = np.zeros((values.shape[1], values.shape[1]))
    for first in range(0, len(values), 1 << 15):
        piece = values[first : first + (1 << 15)].astype(np.float32)
        total += piece.T @ piece
    return total


def _table(
    observed: NDArray[Any], drawn: NDArray[Any], samples: int, draws: int, index: pd.Index[Any]
) -> pd.DataFrame:
    # Half a draw added on either side: an event that was never drawn is rare, not impossible.
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
