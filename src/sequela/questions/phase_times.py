"""Pseudo-times for models whose observation time is not exponential.

The posterior of the time t, given a set S, is proportional to p(S | t) times the density of t.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.passage import Passage, in_range, out_of_range
from sequela.support.threads import run_pieces

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.model import Model
    from sequela.settings import Settings

__all__ = ["phase_times"]

# Step of the trapezoidal rule in u, where t = (mean time) * exp(u - exp(-u)). The relative error of
# means is at most 1e-8. Quantiles are interpolated, with a relative error of about 1e-3.
_STEP = 0.08
_FIRST, _LAST = -3.6, 5.0
# Leave out times whose log-density is more than this many nats below the maximum.
_NEGLIGIBLE = 45.0


def phase_times(
    model: Model, samples: Dataset, quantiles: Mapping[str, float], settings: Settings
) -> pd.DataFrame:
    """Return the table of `pseudo_times` for a model whose observation has no constant rate.

    Parameters
    ----------
    model : Model
        The model; the density of its observation time is known.
    samples : Dataset
        The samples.
    quantiles : mapping of str to float
        Maps the names of columns to the probabilities of their quantiles.
    settings : Settings
        Settings with the number of threads.
    """
    parameters = Parameters.for_sets(model)
    distinct = DistinctSamples.of(samples.without_times())
    wanted = np.array(list(quantiles.values()))

    def work(s: int) -> NDArray[np.float64]:
        return _one(model, parameters, distinct.items(s), wanted)

    order = [int(s) for s in distinct.largest_first()]
    done = run_pieces(work, order, settings.threads, "times of samples")
    rows = np.empty((len(distinct), 2 + wanted.size))
    rows[order] = done
    each = rows[distinct.inverse]
    table = pd.DataFrame(
        {"size": samples.set_sizes, "mean": each[:, 0], "sd": each[:, 1], "se": 0.0},
        index=pd.Index(samples.samples, name="sample"),
    )
    for column, name in enumerate(quantiles):
        table[name] = each[:, 2 + column]
    table["method"] = "exact"
    table.attrs.update(draws=0, seed=None)
    return table


def _one(
    model: Model, parameters: Parameters, items: NDArray[np.int64], wanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return mean, standard deviation and quantiles of the time of one set."""
    columns = parameters.columns(items)
    if not in_range(columns):
        raise out_of_range(columns)
    u = np.arange(_FIRST, _LAST, _STEP)
    t = model.observation.mean_time * np.exp(u - np.exp(-u))
    log_weight = model.observation.log_density(t) + np.log(t * (1.0 + np.exp(-u)) * _STEP)
    logs = np.full(t.size, -np.inf)
    best = -np.inf
    passage = Passage(parameters, columns)
    # Begin with the latest time, and stop when all earlier times are negligible.
    for at in range(t.size - 1, -1, -1):
        found, _ = passage.timed(float(t[at]), want_gradient=False)
        logs[at] = log_weight[at] + found if np.isfinite(found) else -np.inf
        best = max(best, logs[at])
        if logs[at] < best - _NEGLIGIBLE:
            break
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = float(weights @ t)
    sd = float(np.sqrt(weights @ (t - mean) ** 2))
    # Half of the weight of a point counts as earlier than the point itself.
    before = np.cumsum(weights) - 0.5 * weights
    rising = np.concatenate([[True], np.diff(before) > 0.0])
    times = np.exp(np.interp(wanted, before[rising], np.log(t[rising])))
    return np.concatenate([[mean, sd], times])
