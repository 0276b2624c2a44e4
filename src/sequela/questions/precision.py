"""Numbers of draws and standard errors of sampled answers.

A question is answered with a given number of draws, or with as many draws as are needed to reach a
target standard error (`until_precise`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sequela.support.errors import BudgetError
from sequela.support.naming import argument

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sequela.settings import Settings

__all__ = [
    "BATCHES",
    "DEFAULT_DRAWS",
    "MAX_DRAWS",
    "Estimate",
    "Shares",
    "batch_of_draws",
    "fill_by_simulation",
    "jackknife_error",
    "settings_for_orders",
    "share_error",
    "until_precise",
]

Answer = TypeVar("Answer")

# Number of simulated sequences if neither `draws` nor `target_se` is given.
DEFAULT_DRAWS = 100_000
MAX_DRAWS = 20_000_000
# The number of batches of a jackknife.
BATCHES = 20
_FIRST_DRAWS = 10_000
# The estimated error is itself not exact. Therefore use some more draws than it suggests.
_MARGIN = 1.1


@dataclass(frozen=True)
class Estimate:
    """A number with its Monte Carlo standard error.

    Attributes
    ----------
    value : float
        The number; ``float(estimate)`` is the same.
    se : float
        Standard error of the number; 0 if it is exact.
    method : str
        "exact", or the name of the sampling method.
    draws : int
        Number of draws; 0 if the number is exact.
    seed : int or None
        The seed from which all draws were derived; None if the number is exact.

    Examples
    --------
    >>> print(Estimate(0.25, 0.013, "simulation", 1000, 1))
    0.25 ± 0.013
    """

    value: float
    se: float = 0.0
    method: str = "exact"
    draws: int = 0
    seed: int | None = None

    def __float__(self) -> float:
        """Return the value."""
        return self.value

    def __str__(self) -> str:
        """Return the value with its error, if it has one."""
        return f"{self.value:.6g}" if self.se == 0.0 else f"{self.value:.6g} ± {self.se:.2g}"


def share_error(hits: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
    """Return the standard error of a share: the number of hits divided by the number of draws.

    It is the standard deviation of the distribution Beta(hits + 1/2, others + 1/2). So it is
    positive even if all draws agree.
    """
    x, y = hits + 0.5, others + 0.5
    error: NDArray[np.float64] = np.sqrt(x * y / ((x + y) ** 2 * (x + y + 1.0)))
    return error


def batch_of_draws(draws: int) -> NDArray[np.int64]:
    """Return the index of the batch of each draw; the `BATCHES` batches have about equal size."""
    return np.arange(draws) * BATCHES // draws


def jackknife_error(without: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the jackknife standard error of a statistic.

    `without` contains the values of the statistic, each computed without one of the batches. Its
    first axis is the batch that was left out.
    """
    around = without - without.mean(axis=0)
    error: NDArray[np.float64] = np.sqrt((BATCHES - 1) / BATCHES * np.sum(around**2, axis=0))
    return error


def settings_for_orders(settings: Settings, draws: int) -> Settings:
    """Return settings with which all chains of a set together draw this many orders.

    All chains draw the same number of orders, so the total may be slightly larger.
    """
    sweeps = -(-draws // settings.sampling.chains)
    return settings.but(
        sampling=replace(settings.sampling, sweeps=sweeps), draws=None, target_se=None
    )


def until_precise(
    ask: Callable[[int], Answer],
    error_of: Callable[[Answer], float],
    settings: Settings,
    *,
    default: int = DEFAULT_DRAWS,
    first: int = _FIRST_DRAWS,
    max_draws: int = MAX_DRAWS,
) -> Answer:
    """Return ``ask(draws)`` with as many draws as the settings require.

    The settings give the number of draws, or a target for the standard error. If they give neither,
    `default` draws are used. With a target, the first attempt uses `first` draws. The final result
    does not depend on the earlier attempts: it is the same as if the final number of draws had been
    given.
    """
    target = settings.target_se
    if target is None:
        return ask(int(default if settings.draws is None else settings.draws))
    draws = min(first, max_draws)
    while True:
        answer = ask(draws)
        error = error_of(answer)
        if error <= target:
            return answer
        needed = draws * (error / target) ** 2 if np.isfinite(error) else 10.0 * draws
        wanted = _MARGIN * needed
        if draws >= max_draws or wanted > max_draws:
            if np.isfinite(error):
                reason = (
                    f"after {draws:,} draws the standard error is {error:.2g}, and about "
                    f"{needed:.2g} draws would be needed, more than the limit of {max_draws:,}. "
                    "Use a larger value"
                )
            else:
                reason = (
                    f"in {draws:,} draws the event was never observed, or too rarely. Leave out "
                    f"rare items, or give {argument('draws')} instead"
                )
            raise BudgetError(f"{argument('target_se')} {target:g} cannot be reached: {reason}")
        draws = int(np.ceil(wanted))


@dataclass(frozen=True)
class Shares:
    """Probabilities of several events, each exact or simulated.

    Attributes
    ----------
    probability, se : arrays
        The probabilities and their Monte Carlo standard errors. The error of an exact probability
        is 0.
    method : array of str
        "exact" or "simulation".
    draws : int
        Number of simulated draws; 0 if all are exact.
    seed : int or None
        The seed from which all draws were derived; None if all are exact.
    """

    probability: NDArray[np.float64]
    se: NDArray[np.float64]
    method: NDArray[np.str_]
    draws: int
    seed: int | None


def fill_by_simulation(
    exact: NDArray[np.float64],
    count_hits: Callable[[int], NDArray[np.int64]],
    settings: Settings,
) -> Shares:
    """Return probabilities: the exact ones, and simulated ones where the exact one is NaN.

    ``count_hits(draws)`` simulates and returns the number of draws in which each event happened.
    """
    missing = np.isnan(exact)
    method = np.where(missing, "simulation", "exact")
    if not missing.any():
        return Shares(exact, np.zeros(exact.size), method, 0, None)

    def ask(draws: int) -> Shares:
        hits = count_hits(draws)
        error = share_error(hits, draws - hits)
        return Shares(
            probability=np.where(missing, hits / draws, exact),
            se=np.where(missing, error, 0.0),
            method=method,
            draws=draws,
            seed=settings.seed,
        )

    return until_precise(ask, lambda shares: float(shares.se.max()), settings)
