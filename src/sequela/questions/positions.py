"""Quantiles of the position of each item in the order, and of its arrival time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from sequela.model import as_model
from sequela.posteriors.result import Posterior
from sequela.questions.arguments import find_items
from sequela.questions.over_draws import ask_draws, chosen_draws
from sequela.questions.precision import DEFAULT_DRAWS
from sequela.settings import read_settings
from sequela.simulation import simulate
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.model import Model, ModelLike
    from sequela.settings import Settings, SettingsKeywords

__all__ = ["QUANTILES", "item_positions"]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# If an item was drawn less often than this, its quantiles are NaN, because they would not be
# precise enough.
_FEWEST = 20
# Default number of models of a posterior that are used.
_MAX_MODELS = 100


def item_positions(
    model: ModelLike | Posterior,
    items: Iterable[Any] | None = None,
    **settings: Unpack[SettingsKeywords],
) -> pd.DataFrame:
    """Return quantiles of the position in the order and of the arrival time of each item.

    The quantiles are computed from the simulated sequences that contain the item. An item that is
    mostly observed late has a late position, partly because more items are present at that time. To
    see which of two items arrives first, use `order_matrix`.

    Parameters
    ----------
    model : Model, fitted SetChain, theta, or Posterior
        The model. For a posterior, the same number of sequences is drawn from each of several
        models, so that the quantiles include the uncertainty about the model.
    items : list of labels or None
        The items; None: all.
    **settings
        `draws` (number of simulated sequences, default 100,000), `random_state`, `n_threads`; see
        `Settings`. For a posterior also `max_models` (default 100).

    Returns
    -------
    DataFrame
        One row per item, the earliest median position first. "observed" is the share of the
        simulated sequences that contain the item. "place_05", "place_25", "place_50", "place_75"
        and "place_95" are quantiles of its position (1 is first). "time_05" to "time_95" are the
        same quantiles of its arrival time. All these quantiles are NaN for items that were drawn
        fewer than 20 times. ``attrs`` holds "draws" and "seed".

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> positions = item_positions(example_theta(), ["first", "second"], random_state=1)
    >>> positions["place_50"].to_dict()
    {'first': 2.0, 'second': 3.0}
    """
    how = read_settings(settings, unused=("budget", "sampling", "target_se"), posterior=True)
    one = model.models(1)[0] if isinstance(model, Posterior) else as_model(model)
    places = np.arange(one.n_items) if items is None else find_items(one, items)
    if not places.size:
        raise InputError("items is empty; expected at least one item, or None for all")
    drawn = _over_draws(model, how) if isinstance(model, Posterior) else _arrivals(one, how)
    order = np.argsort(drawn.item, kind="stable")
    ends = np.searchsorted(drawn.item[order], np.arange(one.n_items + 1))
    names = [f"{what}_{round(100 * q):02d}" for what in ("place", "time") for q in QUANTILES]
    rows = np.full((places.size, len(names)), np.nan)
    for row, item in enumerate(places):
        here = order[ends[item] : ends[item + 1]]
        if here.size >= _FEWEST:
            # If a quantile lies between two positions, use the lower position, because it does
            # occur.
            at_place = np.quantile(drawn.place[here], QUANTILES, method="inverted_cdf")
            at_time = np.quantile(drawn.time[here], QUANTILES)
            rows[row] = np.concatenate([at_place, at_time])
    table = pd.DataFrame(
        rows, columns=names, index=pd.Index([one.items[j] for j in places], name="item")
    )
    table.insert(0, "observed", (ends[1:] - ends[:-1])[places] / drawn.sequences)
    table = table.sort_values(["place_50", "time_50"], kind="stable")
    table.attrs.update(draws=drawn.sequences, seed=how.seed)
    return table


class _Arrivals(NamedTuple):
    """The item, position and time of every arrival in a number of sequences."""

    item: NDArray[Any]
    place: NDArray[Any]
    time: NDArray[np.float64]
    sequences: int


def _arrivals(model: Model, how: Settings) -> _Arrivals:
    draws = DEFAULT_DRAWS if how.draws is None else how.draws
    drawn = simulate(model, draws, random_state=how.seed, n_threads=how.threads)
    place = np.arange(drawn.sequence.size) - np.repeat(drawn.indptr[:-1], drawn.set_sizes) + 1.0
    return _Arrivals(drawn.sequence, place, drawn.arrival_times, draws)


def _over_draws(posterior: Posterior, how: Settings) -> _Arrivals:
    """Draw the same number of sequences from each of several models of a posterior."""
    draws = DEFAULT_DRAWS if how.draws is None else how.draws
    most = max(_MAX_MODELS if how.max_models is None else how.max_models, 1)
    settings = how.but(max_models=max(most, len(posterior.draws.scale)))
    models = len(chosen_draws(posterior, settings.max_models))
    each = -(-draws // models)
    found = ask_draws(
        posterior, lambda model, own: _arrivals(model, own.but(draws=each)), settings,
        "sequences drawn from models",
    ).answers  # fmt: skip
    return _Arrivals(
        item=np.concatenate([one.item for one in found]),
        place=np.concatenate([one.place for one in found]),
        time=np.concatenate([one.time for one in found]),
        sequences=each * len(found),
    )
