"""Compare the observed numbers of set sizes, items and pairs with those that a model expects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pandas as pd

from sequela.model import as_model
from sequela.posteriors.result import Posterior, check_level
from sequela.questions.known_sizes import sizes_of_known_cells
from sequela.questions.over_draws import ask_draws, summarise_draws
from sequela.questions.precision import DEFAULT_DRAWS, share_error
from sequela.samples import as_samples
from sequela.settings import read_settings
from sequela.simulation import simulate

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike, Dataset
    from sequela.model import Model, ModelLike
    from sequela.settings import Settings, SettingsKeywords

__all__ = ["GoodnessOfFit", "PosteriorGoodness", "goodness_of_fit"]


@dataclass(frozen=True)
class GoodnessOfFit:
    """Observed counts, and the counts that the model expects for the same samples.

    In every table "observed" and "expected" are numbers of samples, and "se" is the Monte Carlo
    standard error of "expected". "z" is "observed" minus "expected", divided by the standard
    deviation of this difference under the model. If the model is right, about one value of z in
    twenty is below -2 or above 2.

    Only known cells are counted. If cells are missing, the expected numbers are for samples in
    which the same cells are missing.

    Attributes
    ----------
    sizes : DataFrame
        One row per number of items that a sample is known to have.
    items : DataFrame
        One row per item. "known" is the number of samples in which the cell of the item is known.
    pairs : DataFrame
        One row per pair of items ("a", "b"), the largest differences first. "known" is the number
        of samples in which both cells are known.
    draws, seed : int
        Number of simulated draws, and their seed.
    """

    sizes: pd.DataFrame
    items: pd.DataFrame
    pairs: pd.DataFrame
    draws: int
    seed: int


@dataclass(frozen=True)
class PosteriorGoodness(GoodnessOfFit):
    """Observed counts, and counts in data sets that are simulated from models of the posterior.

    From each of several models of the posterior, one data set is simulated, with as many samples as
    the observed data and the same missing cells (posterior predictive check). In every table
    "expected" is the mean count in the simulated data sets, and "low" to "high" is the interval of
    the count. "z" is "observed" minus "expected", divided by the standard deviation of the count.
    "p" is a two-sided p-value: twice the probability of a count that is at least as extreme, on the
    same side. "effective" is the effective number of data sets. The models were learned from the
    same data, so "p" tends to be too large.

    Attributes
    ----------
    models : int
        Number of models, which is also the number of simulated data sets.
    """

    models: int


@overload
def goodness_of_fit(
    model: Posterior,
    data: DataLike,
    *,
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> PosteriorGoodness: ...


@overload
def goodness_of_fit(
    model: ModelLike,
    data: DataLike,
    *,
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> GoodnessOfFit: ...


def goodness_of_fit(
    model: ModelLike | Posterior,
    data: DataLike,
    *,
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> GoodnessOfFit:
    """Compare set sizes, items and pairs in data with simulations from the model.

    Only known cells are counted: the set size of a sample is the number of items that it is known
    to have, and a sample counts for an item or a pair only if all of its cells of these items are
    known. The simulated samples have the same missing cells as the data. Known orders are not used.

    Parameters
    ----------
    model : Model, fitted SetChain, theta, or Posterior
        The model. For a posterior, one data set is simulated from each of several models, with as
        many samples as `data` and the same missing cells.
    data : Dataset, DataFrame, array or list of sets
        The samples. Cells may be missing.
    level : float
        Probability of the intervals, for a posterior.
    **settings
        `draws` (number of simulated sets, default 100,000; not for a posterior), `random_state`,
        `n_threads`. For a posterior, also `max_models`. See `Settings`.

    Returns
    -------
    GoodnessOfFit
        For a posterior a `PosteriorGoodness`, with intervals and p-values.

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> data = simulate(example_theta(), 500, random_state=1).to_dataset()
    >>> goodness = goodness_of_fit(example_theta(), data, random_state=2)
    >>> bool(goodness.items["z"].abs().max() < 4)
    True

    In the first 200 samples, nobody looked for the item "second":

    >>> missing = np.zeros(data.values.shape, dtype=bool)
    >>> missing[:200, data.items.index("second")] = True
    >>> panel = goodness_of_fit(example_theta(), data.with_missing(missing), random_state=2)
    >>> panel.items.loc[["first", "second"], "known"].tolist()
    [500, 300]
    """
    unused = ("target_se", "budget", "sampling")
    if isinstance(model, Posterior):
        how = read_settings(settings, unused=(*unused, "draws"), posterior=True)
        return _over_draws(model, data, how, check_level(level))
    how = read_settings(settings, unused=unused, posterior=True)
    model = as_model(model)
    samples = as_samples(model, data).without_orders().without_weights("goodness_of_fit")
    draws = DEFAULT_DRAWS if how.draws is None else how.draws
    drawn = simulate(model, draws, random_state=how.seed, n_threads=how.threads).to_dataset()
    sizes = _sizes(samples, drawn)
    observed, expected = _together(samples.values), _together(drawn.values)
    known = _known_together(samples)
    items = _table(
        np.diagonal(observed), np.diagonal(expected), np.diagonal(known), draws,
        pd.Index(model.items, name="item"),
    )  # fmt: skip
    a, b = np.triu_indices(model.n_items, 1)
    labels = np.array(model.items, dtype=object)
    pairs = _table(observed[a, b], expected[a, b], known[a, b], draws, pd.RangeIndex(a.size))
    pairs.insert(0, "a", labels[a])
    pairs.insert(1, "b", labels[b])
    ranked = np.argsort(-np.abs(pairs["z"].to_numpy()), kind="stable")
    return GoodnessOfFit(
        sizes=sizes, items=items, pairs=pairs.iloc[ranked].reset_index(drop=True), draws=draws,
        seed=how.seed,
    )  # fmt: skip


def _over_draws(
    posterior: Posterior, data: DataLike, settings: Settings, level: float
) -> PosteriorGoodness:
    """Simulate a data set from each of several models, and compare its counts with the data."""
    samples = as_samples(posterior.models(1)[0], data).without_orders()
    samples = samples.without_weights("goodness_of_fit")
    n = posterior.n_items

    def ask(model: Model, own: Settings) -> tuple[NDArray[Any], NDArray[np.float64]]:
        drawn = simulate(model, samples.n_samples, random_state=own.seed, n_threads=1)
        values = drawn.to_dataset().values
        return _counts(values if samples.missing is None else values & ~samples.missing)

    asked = ask_draws(posterior, ask, settings, "data sets drawn from models")
    sizes, together = (asked.values(lambda counts, k=k: counts[k]) for k in range(2))  # type: ignore[misc]
    observed_sizes, observed = _counts(samples.values)
    known = _known_together(samples)
    longest = int(max(np.nonzero(observed_sizes)[0].max(), np.nonzero(sizes)[2].max()))
    diagonal = np.arange(n)
    a, b = np.triu_indices(n, 1)
    labels = np.array(posterior.items, dtype=object)
    pairs = _predicted(observed[a, b], together[:, :, a, b], level, pd.RangeIndex(a.size))
    pairs["known"] = known[a, b]
    pairs.insert(0, "a", labels[a])
    pairs.insert(1, "b", labels[b])
    ranked = np.argsort(-np.abs(pairs["z"].to_numpy()), kind="stable")
    items = _predicted(
        observed[diagonal, diagonal], together[:, :, diagonal, diagonal], level,
        pd.Index(posterior.items, name="item"),
    )  # fmt: skip
    items["known"] = known[diagonal, diagonal]
    models = len(asked.answers)
    return PosteriorGoodness(
        sizes=_predicted(
            observed_sizes[: longest + 1], sizes[:, :, : longest + 1], level,
            pd.RangeIndex(longest + 1, name="size"),
        ),
        items=items,
        pairs=pairs.iloc[ranked].reset_index(drop=True),
        draws=models * samples.n_samples, seed=settings.seed, models=models,
    )  # fmt: skip


def _counts(values: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the numbers of samples of each set size, and of samples with both items of a pair."""
    sizes = values.sum(axis=1, dtype=np.int64)
    return np.bincount(sizes, minlength=values.shape[1] + 1), _together(values)


def _known_together(data: Dataset) -> NDArray[np.int64]:
    """Return the number of samples in which both cells are known, for all pairs of items."""
    if data.missing is None:
        return np.full((data.n_items, data.n_items), data.n_samples)
    return _together(~data.missing).astype(np.int64)


def _sizes(data: Dataset, drawn: Dataset) -> pd.DataFrame:
    """Return the table of the numbers of items that samples are known to have."""
    draws = drawn.n_samples
    if data.missing is None:
        longest = int(max(data.set_sizes.max(), drawn.set_sizes.max()))
        return _table(
            np.bincount(data.set_sizes, minlength=longest + 1),
            np.bincount(drawn.set_sizes, minlength=longest + 1),
            np.full(longest + 1, data.n_samples), draws, pd.RangeIndex(longest + 1, name="size"),
        ).drop(columns="known")  # fmt: skip
    found = sizes_of_known_cells(drawn.values, data.missing)
    longest = int(max(data.set_sizes.max(), np.nonzero(found.expected)[0].max()))
    observed = np.bincount(data.set_sizes, minlength=longest + 1)
    expected, se, variance = (part[: longest + 1] for part in found)
    return pd.DataFrame(
        {
            "observed": observed,
            "expected": expected,
            "se": se,
            "z": (observed - expected) / np.sqrt(variance + se**2),
        },
        index=pd.RangeIndex(longest + 1, name="size"),
    )


def _predicted(
    observed: NDArray[Any], drawn: NDArray[np.float64], level: float, index: pd.Index[Any]
) -> pd.DataFrame:
    """Return a table of observed counts and of counts in drawn data sets (chains, draws, ...)."""
    summary = summarise_draws(drawn, level)
    models = drawn.shape[0] * drawn.shape[1]
    # The observed data set is counted as one more drawn data set. Counts that equal the observed
    # count are divided equally: half of them are added to `below`, and half to `above`.
    below, above = (
        (0.5 + np.sum(side, axis=(0, 1)) + 0.5 * np.sum(drawn == observed, axis=(0, 1)))
        / (models + 1.0)
        for side in (drawn < observed, drawn > observed)
    )
    spread = drawn.std(axis=(0, 1), ddof=1) if models > 1 else np.full(len(index), np.nan)
    away = observed - summary.mean
    # The bound avoids a division by zero if all drawn data sets have the same count.
    z = np.where(away == 0.0, 0.0, away / np.maximum(spread, 1.0 / np.sqrt(models + 1.0)))
    return pd.DataFrame(
        {
            "observed": np.asarray(observed, dtype=np.int64),
            "expected": summary.mean,
            "se": summary.se,
            "z": z,
            "low": summary.low,
            "high": summary.high,
            "p": np.minimum(2.0 * np.minimum(below, above), 1.0),
            "effective": summary.effective,
        },
        index=index,
    )


def _together(values: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the number of rows with both items, for all pairs of items.

    The rows are read in blocks, to save memory.
    """
    total = np.zeros((values.shape[1], values.shape[1]))
    for first in range(0, len(values), 1 << 15):
        piece = values[first : first + (1 << 15)].astype(np.float32)
        total += piece.T @ piece
    return total


def _table(
    observed: NDArray[Any],
    drawn: NDArray[Any],
    known: NDArray[np.int64],
    draws: int,
    index: pd.Index[Any],
) -> pd.DataFrame:
    """Return a table of observed counts among `known` samples, and of counts among the draws."""
    # Add one half to the number of hits and of misses, because an event that was never drawn may
    # still be possible.
    share = (drawn + 0.5) / (draws + 1.0)
    error = share_error(drawn, draws - drawn)
    samples = np.maximum(known, 1)
    spread = np.sqrt(share * (1.0 - share) / samples + error**2)
    away = observed / samples - drawn / draws
    return pd.DataFrame(
        {
            "observed": np.asarray(observed, dtype=np.int64),
            "expected": drawn / draws * known,
            "se": error * known,
            # Without known cells, nothing is counted, so there is no difference.
            "z": np.where(known > 0, away / spread, 0.0),
            "known": known,
        },
        index=index,
    )
