"""A question to a posterior: ask its draws, each of which is a model, and summarise the answers.

The draws are thinned evenly, the same number of each chain, and answers keep the shape (chains,
draws, ...), so that effective sample size and R-hat are those of the chains. Each draw has a seed
of its own, derived from the seed of the question and the place of the draw: an answer depends
neither on the number of threads nor on which other draws are asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from sequela.model import Model
from sequela.posteriors.diagnostics import effective_size, r_hat
from sequela.questions.dependence import ancestors
from sequela.questions.precision import Estimate
from sequela.support.errors import InputError
from sequela.support.progress import no_progress
from sequela.support.random import Purpose, stream
from sequela.support.threads import run_pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from sequela.posteriors.result import Posterior
    from sequela.settings import Settings

__all__ = [
    "Asked",
    "PosteriorEstimate",
    "Summary",
    "ask_draws",
    "chosen_draws",
    "exact_for_all",
    "summarise_draws",
]

# Draws of a posterior that are asked, where `max_models` is not given.
_MAX_MODELS = 400
# States that the lattices of all draws together may have: some ten seconds.
_MAX_STATES = 2.0**25

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class PosteriorEstimate(Estimate):
    """A number that depends on the model, under the posterior of the model.

    ``value`` is its mean over the draws, and ``se`` the Monte Carlo standard error of this mean.

    Attributes
    ----------
    low, high : float
        The interval: the models put the number in between with the probability asked for.
    effective : float
        Effective number of draws; NaN if there are fewer than four draws per chain.
    r_hat : float
        R-hat of the number; above 1.01 the chains do not agree yet.

    Examples
    --------
    >>> print(PosteriorEstimate(0.84, 0.01, "exact", low=0.42, high=0.93, effective=187.0))
    0.84 (0.42 to 0.93)
    """

    low: float = np.nan
    high: float = np.nan
    effective: float = np.nan
    r_hat: float = np.nan

    def __str__(self) -> str:
        """Return the value with its interval."""
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True)
class Summary:
    """Mean, its Monte Carlo error, interval, effective size and R-hat of an array of draws."""

    mean: NDArray[np.float64]
    se: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    effective: NDArray[np.float64]
    r_hat: NDArray[np.float64]


@dataclass(frozen=True)
class Asked(Generic[Answer]):
    """The answers of the draws that were asked, chain after chain."""

    answers: list[Answer]
    chains: int

    def values(self, of: Callable[[Answer], ArrayLike]) -> NDArray[np.float64]:
        """Return a number or an array of every answer, (chains, draws, ...)."""
        stacked = np.stack([np.asarray(of(answer), dtype=np.float64) for answer in self.answers])
        return stacked.reshape(self.chains, -1, *stacked.shape[1:])


def chosen_draws(posterior: Posterior, max_models: int | None) -> list[tuple[int, int]]:
    """Return the draws to ask as (chain, draw): as many of each chain, evenly spread."""
    chains, draws = posterior.draws.scale.shape
    most = max(_MAX_MODELS, chains) if max_models is None else max_models
    if most < chains:
        raise InputError(
            f"max_models is {most}; expected at least {chains}, one model for each chain of the "
            "posterior"
        )
    places = np.linspace(0, draws - 1, min(draws, most // chains)).round().astype(np.int64)
    return [(chain, int(draw)) for chain in range(chains) for draw in places]


def ask_draws(
    posterior: Posterior,
    ask: Callable[[Model, Settings], Answer],
    settings: Settings,
    description: str,
) -> Asked[Answer]:
    """Ask draws of a posterior; `ask` gets a model and the settings for it, with its own seed."""
    if settings.target_se is not None:
        raise InputError(
            f"target_se={settings.target_se:g} has no meaning for a posterior; set draws=, the "
            "number of draws for each of its models, or max_models="
        )

    def work(place: tuple[int, int]) -> Answer:
        chain, draw = place
        model = Model(
            posterior.draws.theta[chain, draw], posterior.items, observation=posterior.observation
        )
        seed = stream(settings.seed, Purpose.QUESTION_TO_DRAW, chain, draw).integers(2**53)
        with no_progress():
            return ask(model, settings.but(random_state=int(seed), n_threads=1, max_models=None))

    places = chosen_draws(posterior, settings.max_models)
    answers = run_pieces(work, places, settings.threads, description)
    return Asked(answers, posterior.draws.scale.shape[0])


def exact_for_all(
    posterior: Posterior, items: NDArray[np.int64], max_models: int | None = None
) -> bool:
    """Tell whether the lattices of these items and all that act on them take some seconds only.

    A draw of theta has no zeros, so that a lattice holds all items: up to 16 for 400 models.
    """
    theta = posterior.draws.theta[0, 0]
    models = len(chosen_draws(posterior, max_models))
    return bool(2.0 ** ancestors(theta, items).size * models <= _MAX_STATES)


def summarise_draws(values: NDArray[np.float64], level: float) -> Summary:
    """Return the summary of values (chains, draws, ...).

    NaN (a draw that has no answer) is left out of means and intervals; effective size and R-hat
    are NaN then, and the standard error too.
    """
    tail = 0.5 * (1.0 - level)
    flat = values.reshape(values.shape[0] * values.shape[1], *values.shape[2:])
    known = ~np.isnan(flat)
    none = ~known.any(axis=0)
    # Where no draw has an answer, any number keeps NumPy silent; it is removed below.
    filled = np.where(none, 0.0, flat)
    with np.errstate(invalid="ignore"):  # infinite answers
        mean = np.nanmean(filled, axis=0)
        # The one that looks for NaN goes column by column.
        quantile = np.quantile if known.all() else np.nanquantile
        low, high = quantile(filled, [tail, 1.0 - tail], axis=0)
        spread = np.nanstd(filled, axis=0, ddof=1) if len(flat) > 1 else np.full(mean.shape, np.nan)
        effective = effective_size(values)
        se = spread / np.sqrt(effective)
        mixed = r_hat(values)
    for array in (mean, low, high):
        array[none] = np.nan
    return Summary(mean, se, low, high, effective, mixed)
