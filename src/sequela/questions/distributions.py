"""Probabilities of sets and sequences under a model, and frequencies of items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.budget import Budget
from sequela.likelihood.evaluation import evaluate
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.sequences import sequence_log_likelihood
from sequela.likelihood.ways import EXACT_WAYS, Way
from sequela.model import as_model
from sequela.posteriors.result import Posterior, check_level
from sequela.questions.arguments import find_items, one_sample
from sequela.questions.dependence import arrival_probabilities
from sequela.questions.over_draws import ask_draws, exact_for_all, summarise_draws
from sequela.questions.precision import Estimate, fill_by_simulation
from sequela.samples import as_samples
from sequela.settings import read_settings
from sequela.simulation import simulate
from sequela.support.errors import InputError
from sequela.support.validation import is_number

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike, Dataset
    from sequela.model import Model, ModelLike
    from sequela.questions.precision import Shares
    from sequela.settings import Sampling, Settings, SettingsKeywords

__all__ = ["check_time", "item_frequencies", "sequence_probability", "set_probability"]

# A budget that is too small for any lattice.
_NOTHING_EXACT = Budget(work=1.0)
# Number of simulated sequences per model of a posterior.
_SEQUENCES_PER_MODEL = 10_000


def set_probability(
    model: ModelLike,
    sample: Iterable[Any],
    *,
    time: float | None = None,
    **settings: Unpack[SettingsKeywords],
) -> Estimate:
    """Return the probability that a sample is exactly this set.

    For the logarithms of the probabilities of many samples, use `log_likelihood`.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    sample : set of labels, or a true/false row
        The set.
    time : float or None
        A known observation time; None: the time is random, with the distribution of the model.
    **settings
        `budget`, `random_state`, `n_threads`. For sets beyond the budget, also `sampling`. The
        logarithm of their probability is an integral along a path of models. The attribute `draws`
        of the answer is then the number of orders that are drawn at each point of this path. See
        `Settings`.

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> print(f"{float(set_probability(example_theta(), {'first'})):.4f}")
    0.0512
    """
    how = read_settings(settings, unused=("draws", "target_se"))
    model = as_model(model)
    present, data = one_sample(model, sample)
    times = None if time is None else [check_time(time)]
    if times == [0.0]:
        # At time 0 no item has arrived.
        return Estimate(0.0 if present.size else 1.0)
    evaluation = evaluate(model, data, times=times, gradient=False, settings=how)
    way = Way(str(evaluation.methods[0]))
    value = float(np.exp(evaluation.value))
    if way in EXACT_WAYS:
        return Estimate(value, method=way.value)
    draws = _orders_per_point(way, how.sampling)
    return Estimate(value, value * evaluation.value_se, way.value, draws, evaluation.seed)


def check_time(time: float) -> float:
    """Return the time as a float; raise an error if it is negative or not finite."""
    if not (is_number(time) and 0.0 <= time < np.inf):
        raise InputError(f"time is {time!r}; expected a finite number that is not negative")
    return float(time)


def _orders_per_point(way: Way, sampling: Sampling) -> int:
    """Return the number of orders that are drawn at each point of the integration path."""
    return sampling.chains * (sampling.sweeps if way is Way.RELOCATION else sampling.draws)


def sequence_probability(model: ModelLike, sequence: Iterable[Any]) -> float:
    """Return the probability that exactly these items arrive before the observation, in this order.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    sequence : list of labels
        The items in order of arrival; all other items are absent.

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> print(f"{sequence_probability(example_theta(), ['first']):.4f}")
    0.0512
    """
    model = as_model(model)
    if isinstance(sequence, (set, frozenset)):
        raise InputError("a set has no order; expected a list of items in order of arrival")
    iterable = hasattr(sequence, "__iter__") and not isinstance(sequence, str)
    listed = list(sequence) if iterable else sequence
    if iterable and any(isinstance(x, (bool, np.bool_)) for x in listed):
        raise InputError(
            "sequence has true/false entries, which have no order; expected a list of items in "
            "order of arrival"
        )
    labels = [model.items[place] for place in find_items(model, listed, "sequence")]
    return float(np.exp(sequence_log_likelihood(model, [labels])))


def item_frequencies(
    model: ModelLike | Posterior,
    data: DataLike | None = None,
    *,
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> pd.DataFrame:
    """Return the frequency of each item under the model and, if data are given, in the data.

    A frequency is exact if the lattice of all items that act on the item is within the budget.
    Otherwise it is simulated.

    Parameters
    ----------
    model : Model, fitted SetChain, theta, or Posterior
        The model. For a posterior the result is the mean over its models, with an interval.
    data : Dataset, DataFrame, array, list of sets, or None
        Samples to compare with.
    level : float
        Probability of the intervals, for a posterior.
    **settings
        `budget`, `random_state`, `n_threads`. For items without an exact answer, also `draws`
        (number of simulated sequences, default 100,000; for a posterior 10,000 for each model) or
        `target_se`. For a posterior, also `max_models`. See `Settings`.

    Returns
    -------
    DataFrame
        One row per item. "model" is the frequency under the model, and "se" is its Monte Carlo
        standard error. "method" says how it was computed. If data are given, "data" is the
        frequency in the data, and "z" is the difference divided by its standard deviation under the
        model. For a posterior, "low" to "high" is the interval of the frequency over the models,
        "effective" is the effective number of draws, and "r_hat" is R-hat. The standard deviation
        for "z" then includes the uncertainty about the model. ``attrs`` holds "draws" and "seed".

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> item_frequencies(example_theta())["model"].round(3)["second"].item()
    0.257
    """
    how = read_settings(settings, unused=("sampling",), posterior=True)
    if isinstance(model, Posterior):
        return _frequencies_over_draws(model, data, how, check_level(level))
    model = as_model(model)
    samples = None if data is None else as_samples(model, data)
    shares = _shares(model, how)
    table = pd.DataFrame(
        {"model": shares.probability, "se": shares.se, "method": shares.method},
        index=pd.Index(model.items, name="item"),
    )
    if samples is not None:
        _compare(table, samples, shares.se**2)
    table.attrs.update(draws=shares.draws, seed=shares.seed)
    return table


def _shares(model: Model, how: Settings) -> Shares:
    """Return the frequency of each item under the model."""

    def count_hits(draws: int) -> NDArray[np.int64]:
        drawn = simulate(model, draws, random_state=how.seed, n_threads=how.threads)
        return np.bincount(drawn.sequence, minlength=len(drawn.items))

    if model.observation.constant_rate is None:
        exact = np.full(model.n_items, np.nan)
    else:
        exact = arrival_probabilities(Parameters.of(model), how.budget)
    return fill_by_simulation(exact, count_hits, how)


def _compare(table: pd.DataFrame, samples: Dataset, variance: NDArray[np.float64]) -> None:
    """Add the columns "data" and "z". `variance` is the variance of the frequencies in "model"."""
    expected = table["model"].to_numpy()
    observed = samples.frequencies.to_numpy()
    spread = np.sqrt(expected * (1.0 - expected) / samples.n_samples + variance)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.where(observed == expected, 0.0, (observed - expected) / spread)
    table["data"], table["z"] = observed, z


def _frequencies_over_draws(
    posterior: Posterior, data: DataLike | None, settings: Settings, level: float
) -> pd.DataFrame:
    """Return the table of item frequencies over the models of a posterior."""
    samples = None if data is None else as_samples(posterior.models(1)[0], data)
    if not exact_for_all(posterior, np.arange(posterior.n_items), settings.max_models):
        settings = settings.but(budget=_NOTHING_EXACT)
    if settings.draws is None and settings.target_se is None:
        settings = settings.but(draws=_SEQUENCES_PER_MODEL)
    asked = ask_draws(posterior, _shares, settings, "frequencies under models")
    values = asked.values(lambda shares: shares.probability)
    summary = summarise_draws(values, level)
    table = pd.DataFrame(
        {
            "model": summary.mean,
            "se": summary.se,
            "low": summary.low,
            "high": summary.high,
            "effective": summary.effective,
            "r_hat": summary.r_hat,
            "method": asked.answers[0].method,
        },
        index=pd.Index(posterior.items, name="item"),
    )
    if samples is not None:
        # p is the frequency under one model, and `between` is its variance over the models.
        # `_compare` adds p (1 - p) / n, computed with the mean of p. This term already includes
        # `between` / n, so `between` / n is subtracted here.
        between = values.var(axis=(0, 1))
        _compare(table, samples, between * (1.0 - 1.0 / samples.n_samples))
    draws = sum(shares.draws for shares in asked.answers)
    table.attrs.update(
        draws=draws, seed=settings.seed if draws else None, models=len(asked.answers)
    )
    return table
