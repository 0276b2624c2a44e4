"""How precisely the items determine the observation time of a sample.

Items that arrive independently of all others act as a clock. If there are more such items, the
posterior of the observation time is narrower, and orders can be determined better (sections 3 and 5
of the paper).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.likelihood.histories import sample_posteriors
from sequela.likelihood.parameters import Parameters
from sequela.model import as_model
from sequela.questions.arguments import find_items
from sequela.questions.dependence import restricted
from sequela.questions.distributions import item_frequencies
from sequela.questions.precision import BATCHES, batch_of_draws, jackknife_error, until_precise
from sequela.samples import as_samples
from sequela.settings import read_settings
from sequela.simulation import simulate
from sequela.support.errors import InputError
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.model import Model, ModelLike
    from sequela.settings import Settings, SettingsKeywords
    from sequela.simulation import Simulation

__all__ = ["clock_curve", "clock_items"]

_CURVE_DRAWS = 400
_MAX_CURVE_DRAWS = 200_000


def clock_curve(
    model: ModelLike,
    data: DataLike | None = None,
    *,
    sizes: Sequence[int] | None = None,
    items: Iterable[Any] | None = None,
    **settings: Unpack[SettingsKeywords],
) -> pd.DataFrame:
    """Return the expected posterior variance of the observation time for each number of items.

    For each number m, sets are simulated from a model that has only the m most frequent items, with
    the entries of theta among these items. For each simulated set, the posterior variance of the
    time is computed. The result is the mean of these variances.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    data : Dataset, DataFrame, array, list of sets, or None
        Samples that determine how frequent each item is. None: the frequencies under the model are
        used.
    sizes : list of int or None
        The numbers m of items; None: 0, 1, 2, 5, 10, 20, 50, ... up to the number of all items.
    items : list of labels or None
        The items in the order in which they are added; None: the most frequent first.
    **settings
        `draws` (number of simulated sets for each m, default 400) or `target_se` (for every m).
        Also `budget`, `sampling`, `random_state` and `n_threads`. See `Settings`.

    Returns
    -------
    DataFrame
        Indexed by "m", with the columns "variance", its Monte Carlo standard error "se", "share"
        (the variance divided by the variance without any item), and "item" (the item that was added
        last). ``attrs`` holds "draws" and "seed".

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> curve = clock_curve(example_theta(), sizes=[0, 5, 10], random_state=1)
    >>> curve["variance"].round(1).tolist()
    [1.0, 0.4, 0.3]
    """
    how = read_settings(settings)
    model = as_model(model)
    rate = Parameters.of(model).stop_rate
    order = _order(model, data, items, how)
    counts = _read_sizes(sizes, order.size)
    of_posteriors = how.but(draws=None, target_se=None)

    def ask(draws: int) -> pd.DataFrame:
        rows = []
        for m in counts:
            mean, error = 1.0 / rate**2, 0.0
            if m:
                part = restricted(model, order[:m])
                drawn = simulate(part, draws, random_state=how.seed, n_threads=how.threads)
                posteriors = sample_posteriors(part, drawn.to_dataset(), settings=of_posteriors)
                mean = float(posteriors.time_variance.mean())
                error = float(posteriors.time_variance.std(ddof=1) / np.sqrt(draws))
            rows.append(
                {
                    "variance": mean,
                    "se": error,
                    "share": mean * rate**2,
                    "item": model.items[order[m - 1]] if m else "",
                }
            )
        table = pd.DataFrame(rows, index=pd.Index(counts, name="m"))
        table.attrs.update(draws=draws, seed=how.seed)
        return table

    return until_precise(
        ask,
        lambda table: float(table["se"].max()),
        how,
        default=_CURVE_DRAWS,
        first=_CURVE_DRAWS,
        max_draws=_MAX_CURVE_DRAWS,
    )


def _order(
    model: Model, data: DataLike | None, items: Iterable[Any] | None, settings: Settings
) -> NDArray[np.int64]:
    """Return the positions of the items in the order in which they are added."""
    if items is not None:
        if data is not None:
            raise InputError(
                "data and items were both given; give only one of them, because each of them alone "
                "determines the order of the items"
            )
        return find_items(model, items)
    if data is not None:
        share = as_samples(model, data).frequencies.to_numpy()
    else:
        exact_or_default = settings.but(draws=None, target_se=None, sampling=None)
        share = item_frequencies(model, settings=exact_or_default)["model"].to_numpy()
    return np.argsort(-share, kind="stable")


def _read_sizes(sizes: Sequence[int] | None, n_items: int) -> list[int]:
    if sizes is None:
        steps = [0, *(step * 10**power for power in range(6) for step in (1, 2, 5))]
        return [*(m for m in steps if m < n_items), n_items]
    try:
        read = [positive_integer("sizes", m, least=0) for m in sizes]
    except TypeError:
        raise InputError(f"sizes is {sizes!r}; expected a list of integers: [{sizes!r}]") from None
    if not read or max(read) > n_items:
        raise InputError(f"sizes are {list(sizes)!r}; expected numbers from 0 to {n_items}")
    return read


def clock_items(model: ModelLike, **settings: Unpack[SettingsKeywords]) -> pd.DataFrame:
    """Return how informative each single item is about the observation time.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    **settings
        `draws` (number of simulated sequences, default 100,000) or `target_se` (of "explained").
        Also `random_state` and `n_threads`. See `Settings`.

    Returns
    -------
    DataFrame
        One row per item, the most informative first. "explained" is the share of the variance of
        the time that is explained by whether the item is present, and "se" is its Monte Carlo
        standard error. "time_present" and "time_absent" are the mean observation times of draws
        with and without the item. ``attrs`` holds "draws" and "seed".

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> clock_items(example_theta(), random_state=1)["explained"].round(2).idxmax()
    'second'
    """
    how = read_settings(settings, unused=("budget", "sampling"))
    model = as_model(model)
    variance = 1.0 / Parameters.of(model).stop_rate ** 2

    def ask(draws: int) -> pd.DataFrame:
        drawn = simulate(model, draws, random_state=how.seed, n_threads=how.threads)
        sums = _BatchSums.of(drawn)
        between, time_present, time_absent = sums.total().explained()
        without = np.stack([sums.without(batch).explained()[0] for batch in range(BATCHES)])
        table = pd.DataFrame(
            {
                "explained": between / variance,
                "se": jackknife_error(without) / variance,
                "time_present": time_present,
                "time_absent": time_absent,
            },
            index=pd.Index(drawn.items, name="item"),
        ).sort_values("explained", ascending=False, kind="stable")
        table.attrs.update(draws=draws, seed=how.seed)
        return table

    return until_precise(ask, lambda table: float(table["se"].max()), how)


@dataclass(frozen=True)
class _BatchSums:
    """Number of draws and sum of their observation times: in total, and for draws with each item.

    `count` and `time` are for all draws of a batch. `present` and `time_present` are for the draws
    that contain the item. The first axis is the batch. The results of `total` and `without` do not
    have this axis.
    """

    count: NDArray[np.float64]
    time: NDArray[np.float64]
    present: NDArray[np.float64]
    time_present: NDArray[np.float64]

    @classmethod
    def of(cls, drawn: Simulation) -> _BatchSums:
        batch = batch_of_draws(len(drawn))
        times = drawn.observation_times
        values = drawn.to_dataset().values
        present = np.zeros((BATCHES, len(drawn.items)))
        time_present = np.zeros((BATCHES, len(drawn.items)))
        for b in range(BATCHES):
            rows = batch == b
            piece = values[rows].astype(np.float64)
            present[b] = piece.sum(axis=0)
            time_present[b] = times[rows] @ piece
        count = np.bincount(batch, minlength=BATCHES).astype(np.float64)
        time = np.bincount(batch, times, BATCHES).astype(np.float64)
        return cls(count, time, present, time_present)

    def total(self) -> _BatchSums:
        return _BatchSums(
            self.count.sum(), self.time.sum(), self.present.sum(axis=0),
            self.time_present.sum(axis=0),
        )  # fmt: skip

    def without(self, batch: int) -> _BatchSums:
        total = self.total()
        return _BatchSums(
            total.count - self.count[batch], total.time - self.time[batch],
            total.present - self.present[batch], total.time_present - self.time_present[batch],
        )  # fmt: skip

    def explained(
        self,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the variance of the time that the presence of each item explains, and mean times.

        There are two mean times per item: over the draws with the item, and over the draws without
        it.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            time_present = self.time_present / self.present
            time_absent = (self.time - self.time_present) / (self.count - self.present)
            share = self.present / self.count
            between = share * (1.0 - share) * (time_present - time_absent) ** 2
        return np.where(np.isnan(between), 0.0, between), time_present, time_absent
