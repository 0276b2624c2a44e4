"""Answer a question for many draws of a posterior, and summarise the answers.

Each draw is a model. From each chain, the same number of draws is used, evenly spread over the
chain. Answers keep the shape (chains, draws, ...), so that effective draws and R-hat can be
computed. Each draw has its own seed, which is derived from the seed of the question and the
position of the draw. Therefore an answer does not depend on the number of threads, or on which
other draws are used.
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
from sequela.support.naming import argument, option
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

# Number of draws of a posterior that are used if `max_models` is not given.
_MAX_MODELS = 400
# Largest number of states of the lattices of all draws together; computing this many takes about
# ten seconds.
_MAX_STATES = 2.0**25

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class PosteriorEstimate(Estimate):
    """A quantity that depends on the model, summarised over the posterior of the model.

    ``value`` is its mean over the draws, and ``se`` the Monte Carlo standard error of this mean.

    Attributes
    ----------
    low, high : float
        The interval that contains the quantity with probability `level`.
    effective : float
        Effective number of draws. NaN if there are fewer than four draws per chain.
    r_hat : float
        R-hat of the quantity. If it is above 1.01, the chains do not agree yet.

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
    """Summary of an array of draws: mean and its error, interval, effective draws, R-hat."""

    mean: NDArray[np.float64]
    se: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    effective: NDArray[np.float64]
    r_hat: NDArray[np.float64]


@dataclass(frozen=True)
class Asked(Generic[Answer]):
    """The answers for the draws that were used, sorted by chain."""

    answers: list[Answer]
    chains: int

    def values(self, of: Callable[[Answer], ArrayLike]) -> NDArray[np.float64]:
        """Return ``of(answer)`` for every answer, as an array (chains, draws, ...)."""
        stacked = np.stack([np.asarray(of(answer), dtype=np.float64) for answer in self.answers])
        return stacked.reshape(self.chains, -1, *stacked.shape[1:])


def chosen_draws(posterior: Posterior, max_models: int | None) -> list[tuple[int, int]]:
    """Return the draws to use as (chain, draw): the same number per chain, evenly spread."""
    chains, draws = posterior.draws.scale.shape
    most = max(_MAX_MODELS, chains) if max_models is None else max_models
    if most < chains:
        raise InputError(
            f"{argument('max_models')} is {most}; expected at least {chains}, one model per chain "
            "of the posterior"
        )
    places = np.linspace(0, draws - 1, min(draws, most // chains)).round().astype(np.int64)
    return [(chain, int(draw)) for chain in range(chains) for draw in places]


def ask_draws(
    posterior: Posterior,
    ask: Callable[[Model, Settings], Answer],
    settings: Settings,
    description: str,
) -> Asked[Answer]:
    """Call ``ask(model, settings)`` for draws of a posterior; each draw has its own seed."""
    if settings.target_se is not None:
        raise InputError(
            f"{argument('target_se')} ({settings.target_se:g}) cannot be used for a posterior; use "
            f"{option('draws')} (the number of draws per model), or {option('max_models')}"
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
    """Return whether there is a fast exact answer about these items for all models.

    The lattices contain the items and all items that act on them. A draw of theta has no zeros, so
    these are all items of the model. For 400 models, up to 16 items are possible.
    """
    theta = posterior.draws.theta[0, 0]
    models = len(chosen_draws(posterior, max_models))
    return bool(2.0 ** ancestors(theta, items).size * models <= _MAX_STATES)


def summarise_draws(values: NDArray[np.float64], level: float) -> Summary:
    """Return the summary of values (chains, draws, ...).

    Draws without an answer (NaN) are left out of means and intervals. If there are such draws,
    effective draws, R-hat and the standard error are NaN.
    """
    tail = 0.5 * (1.0 - level)
    flat = values.reshape(values.shape[0] * values.shape[1], *values.shape[2:])
    known = ~np.isnan(flat)
    none = ~known.any(axis=0)
    # If no draw has an answer, compute with 0, to avoid warnings of NumPy. Below, the result is
    # replaced by NaN.
    filled = np.where(none, 0.0, flat)
    with np.errstate(invalid="ignore"):  # infinite answers
        mean = np.nanmean(filled, axis=0)
        # nanquantile is slow, because it works column by column.
        quantile = np.quantile if known.all() else np.nanquantile
        low, high = quantile(filled, [tail, 1.0 - tail], axis=0)
        spread = np.nanstd(filled, axis=0, ddof=1) if len(flat) > 1 else np.full(mean.shape, np.nan)
        effective = effective_size(values)
        se = spread / np.sqrt(effective)
        mixed = r_hat(values)
    for array in (mean, low, high):
        array[none] = np.nan
    return Summary(mean, se, low, high, effective, mixed)
