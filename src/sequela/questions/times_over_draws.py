"""Pseudo-times under the posterior of the model.

The distribution of the time of a sample is the mixture of its distributions under the drawn models,
with equal weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from sequela.data.dataset import Dataset
from sequela.likelihood.distinct import DistinctSamples
from sequela.questions.over_draws import ask_draws, summarise_draws
from sequela.samples import as_samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.model import Model
    from sequela.posteriors.result import Posterior
    from sequela.settings import Settings

__all__ = ["mixture_quantiles", "times_over_draws"]

# Default number of models. It is small, because quantiles take long if all items interact.
_MAX_MODELS = 100
# Probabilities at which the quantiles of each model are computed, in addition to the requested
# ones. Between these probabilities, the distribution is interpolated. The quantiles of the mixture
# then have an error of about 0.001 in probability.
_PROBABILITIES = (0.001, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.999)
_BISECTIONS = 40
# Number of samples per bisection. It limits the memory that a bisection needs.
_SAMPLES_TOGETHER = 256


def times_over_draws(
    posterior: Posterior,
    data: DataLike,
    wanted: dict[str, float],
    settings: Settings,
    *,
    level: float,
    ask: Callable[[Model, Dataset, list[float], Settings], pd.DataFrame],
) -> pd.DataFrame:
    """Return the table of pseudo-times; `wanted` maps names to probabilities of quantiles.

    ``ask(model, data, probabilities, settings)`` returns the table of one model, whose columns
    after the first four are the quantiles.
    """
    samples = as_samples(posterior.models(1)[0], data)
    if samples.is_plain:
        rows, inverse = np.unique(samples.values, axis=0, return_inverse=True)
        distinct = Dataset(rows, items=samples.items)
    else:
        alone = samples.without_times().with_weights(None)
        groups = DistinctSamples.of(alone, partial=True)
        distinct, inverse = alone.select_samples(groups.first), groups.inverse
    if settings.max_models is None:
        settings = settings.but(max_models=max(_MAX_MODELS, len(posterior.draws.scale)))
    nodes = np.unique([*_PROBABILITIES, *wanted.values()]) if wanted else np.empty(0)
    asked = ask_draws(
        posterior,
        lambda model, own: ask(model, distinct, nodes.tolist(), own),
        settings,
        "times of samples",
    )
    means = asked.values(lambda table: table["mean"])
    within = asked.values(lambda table: table["sd"] ** 2).mean(axis=(0, 1))
    summary = summarise_draws(means, level)
    table = pd.DataFrame(
        {
            "size": distinct.set_sizes,
            "mean": summary.mean,
            # Total variance: the mean of the variances plus the variance of the means.
            "sd": np.sqrt(within + means.var(axis=(0, 1))),
            "se": summary.se,
            "low": summary.low,
            "high": summary.high,
            "effective": summary.effective,
            "r_hat": summary.r_hat,
        }
    )
    if wanted:
        times = asked.values(lambda table: table.iloc[:, 4 : 4 + nodes.size])
        flat = times.reshape(-1, len(table), nodes.size)
        found = mixture_quantiles(flat, nodes, np.array(list(wanted.values())))
        for column, name in enumerate(wanted):
            table[name] = found[:, column]
    table["method"] = asked.answers[0]["method"].to_numpy()
    table = table.iloc[inverse.ravel()].set_axis(pd.Index(samples.samples, name="sample"), axis=0)
    draws = max(int(answer.attrs["draws"]) for answer in asked.answers)
    table.attrs.update(
        draws=draws, seed=settings.seed if draws else None, models=len(asked.answers)
    )
    return table


def mixture_quantiles(
    times: NDArray[np.float64], nodes: NDArray[np.float64], wanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return quantiles of mixtures with equal weights, as an array (samples, wanted).

    Parameters
    ----------
    times : array (models, samples, nodes)
        Quantiles of the distributions that are mixed, at the probabilities `nodes`.
    nodes : array
        The probabilities of `times`, increasing.
    wanted : array
        Probabilities of the quantiles of the mixtures, between the first and the last node.
    """
    # Use the logarithms of times and the log-odds of probabilities. On these scales, a distribution
    # function is smooth and nearly linear, also at its ends, so it can be interpolated.
    knots, heights = np.log(np.maximum(times, 1e-300)), logit(nodes)
    answer = np.empty((times.shape[1], wanted.size))
    for first in range(0, times.shape[1], _SAMPLES_TOGETHER):
        here = slice(first, first + _SAMPLES_TOGETHER)
        for column, probability in enumerate(wanted):
            answer[here, column] = np.exp(_bisect(knots[:, here], heights, float(probability)))
    return answer


def _bisect(
    knots: NDArray[np.float64], heights: NDArray[np.float64], probability: float
) -> NDArray[np.float64]:
    """Return one quantile of each mixture, as a log-time.

    `knots` are the log-times at which the distributions that are mixed have the probabilities
    expit(`heights`). The quantile of a mixture lies between the smallest and the largest of their
    quantiles.
    """
    place = int(np.clip(np.searchsorted(heights, logit(probability)), 1, heights.size - 1))
    low, high = knots[:, :, place - 1].min(axis=0), knots[:, :, place].max(axis=0)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        right = np.clip((knots <= middle[:, None]).sum(axis=2), 1, heights.size - 1)[:, :, None]
        start, end = (np.take_along_axis(knots, at, axis=2)[:, :, 0] for at in (right - 1, right))
        before, after = heights[right[:, :, 0] - 1], heights[right[:, :, 0]]
        share = (middle - start) / np.maximum(end - start, 1e-12)
        below = expit(before + share * (after - before)).mean(axis=0) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    found: NDArray[np.float64] = 0.5 * (low + high)
    return found
