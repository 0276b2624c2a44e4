"""Positions and arrival times of items, given that they are observed, by simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.model import as_model
from sequela.questions.arguments import find_items
from sequela.questions.precision import until_precise
from sequela.settings import read_settings
from sequela.simulation import simulate
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from sequela.model import ModelLike
    from sequela.settings import SettingsKeywords

__all__ = ["item_arrivals"]

# If an item is observed in fewer draws than this, its position may by chance be the same in all
# these draws. The estimated standard error would then be 0, although the mean is uncertain.
_FEWEST_OBSERVED = 20


def item_arrivals(
    model: ModelLike, items: Iterable[Any] | None = None, **settings: Unpack[SettingsKeywords]
) -> pd.DataFrame:
    """Return the position and arrival time of each item, given that it is observed.

    Interpret the positions with caution. An item that is mostly observed late has a late mean
    position, partly because more items are present at that time. `order_matrix` shows which of two
    items arrives first.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    items : list of labels or None
        The items; None: all items.
    **settings
        `random_state`, `n_threads`. Also `draws` (number of simulated sequences, default 100,000)
        or `target_se` (of every mean position). See `Settings`.

    Returns
    -------
    DataFrame
        One row per item, sorted by mean position. "observed" is the share of the simulated
        sequences that contain the item. "position_mean" and "position_sd" are the mean and the
        standard deviation of its position (1 is first), and "position_se" is the Monte Carlo
        standard error of the mean. The columns "arrival_mean", "arrival_sd" and "arrival_se" are
        the same for its arrival time. All these values are NaN for an item that was never drawn.
        ``attrs`` holds "draws" and "seed".

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> arrivals = item_arrivals(example_theta(), random_state=1)
    >>> arrivals.loc[["first", "second"], "position_mean"].round(1).tolist()
    [2.0, 3.8]
    """
    how = read_settings(settings, unused=("budget", "sampling"))
    model = as_model(model, instead="order_matrix(posterior)")
    places = np.arange(model.n_items) if items is None else find_items(model, items)
    if not places.size:
        raise InputError("items is empty; expected at least one item, or None for all")
    index = pd.Index([model.items[j] for j in places], name="item")

    def ask(draws: int) -> pd.DataFrame:
        drawn = simulate(model, draws, random_state=how.seed, n_threads=how.threads)
        n = len(drawn.items)
        position = np.arange(drawn.sequence.size) - np.repeat(drawn.indptr[:-1], drawn.set_sizes)
        observed = np.bincount(drawn.sequence, minlength=n)[places].astype(float)
        columns = {"observed": observed / draws}
        for name, values in (("position", position + 1.0), ("arrival", drawn.arrival_times)):
            with np.errstate(divide="ignore", invalid="ignore"):
                mean = np.bincount(drawn.sequence, values, n)[places] / observed
                # Sum the squared distances from the mean, because the difference E(x^2) - E(x)^2
                # would lose digits.
                around = np.full(n, np.nan)
                around[places] = mean
                square = (values - around[drawn.sequence]) ** 2
                squares = np.bincount(drawn.sequence, square, n)[places]
                variance = np.where(observed > 1.0, squares / (observed - 1.0), np.nan)
                columns[f"{name}_mean"] = mean
                columns[f"{name}_sd"] = np.sqrt(variance)
                columns[f"{name}_se"] = np.sqrt(variance / observed)
        table = pd.DataFrame(columns, index=index).sort_values("position_mean", kind="stable")
        table.attrs.update(draws=draws, seed=how.seed)
        return table

    def error_of(table: pd.DataFrame) -> float:
        rare = table["observed"].to_numpy() * table.attrs["draws"] < _FEWEST_OBSERVED
        return float(np.max(np.where(rare, np.inf, table["position_se"].to_numpy())))

    return until_precise(ask, error_of, how)
