"""R-hat and the number of effective draws, and a message that says whether chains converged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sequela.support.naming import option

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Convergence", "effective_size", "judge", "r_hat"]

# Both limits are from Vehtari et al. (2021). The first is the largest rank-normalised split R-hat.
# The second is the smallest number of effective draws of all chains together: these authors
# recommend 100 per chain with four chains. We require 400 for any number of chains.
LARGEST_R_HAT = 1.01
LEAST_EFFECTIVE = 400.0


def r_hat(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank-normalised split R-hat of values (chains, draws, ...).

    R-hat is 1 for quantities that are equal in all draws.
    """
    from arviz_stats.base.array import array_stats

    return _of_varying(values, array_stats.rhat, 1.0)


def effective_size(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the number of effective draws (bulk) of values (chains, draws, ...)."""
    from arviz_stats.base.array import array_stats

    chains, draws = values.shape[:2]
    return _of_varying(values, array_stats.ess, float(chains * draws))


def _of_varying(
    values: NDArray[np.float64], function: object, constant: float
) -> NDArray[np.float64]:
    flat = values.reshape(*values.shape[:2], int(np.prod(values.shape[2:])))
    answer = np.full(flat.shape[2], np.nan)
    if flat.shape[1] >= 4:
        finite = np.isfinite(flat).all(axis=(0, 1))
        varies = finite & (np.ptp(flat, axis=(0, 1)) > 0.0)
        answer[finite & ~varies] = constant
        if varies.any():
            assert callable(function)  # noqa: S101 - a function of ArviZ
            # If 0 and 1 are the only values and are equally frequent, their distances from the
            # median do not vary. R-hat of these distances is then 0 / 0, which ArviZ leaves out.
            with np.errstate(invalid="ignore", divide="ignore"):
                answer[varies] = function(flat[:, :, varies], chain_axis=0, draw_axis=1)
    return answer.reshape(values.shape[2:])


@dataclass(frozen=True)
class Convergence:
    """The result of the convergence diagnostics.

    Attributes
    ----------
    converged : bool
        Whether R-hat is at most 1.01 and at least 400 draws are effective, for the order of every
        pair of items and for the log-likelihood.
    r_hat : float
        The largest R-hat.
    effective : float
        The smallest number of effective draws.
    worst : tuple of str or None
        The pair of items with the largest R-hat. None if R-hat is larger for the log-likelihood, or
        if it is not known.
    acceptance, jumps, swaps : float
        Mean acceptance of trajectories, of jumps, and of exchanges between replicas; NaN if none
        was tried.
    message : str
        The result in words, with advice.
    """

    converged: bool
    r_hat: float
    effective: float
    worst: tuple[str, str] | None
    acceptance: float
    jumps: float
    swaps: float
    message: str


def judge(
    orders: NDArray[np.float64],
    log_likelihood: NDArray[np.float64],
    pairs: list[tuple[str, str]],
    rates: tuple[float, float, float],
) -> Convergence:
    """Return the convergence diagnostics of orders and of the log-likelihood.

    `orders` has the axes (chains, draws, pairs), and `log_likelihood` has the axes (chains, draws).
    `pairs` are the labels of the pairs. `rates` are the acceptance of trajectories, jumps and
    exchanges.
    """
    everything = np.concatenate([orders, log_likelihood[:, :, None]], axis=2)
    hats = r_hat(everything)
    sizes = effective_size(everything)
    chains, draws = log_likelihood.shape
    if draws < 4 or not np.isfinite(hats).all():
        largest, smallest, worst = np.inf, 0.0, None
    else:
        largest, smallest = float(hats.max()), float(sizes.min())
        place = int(np.argmax(hats))
        worst = pairs[place] if place < len(pairs) else None
    enough = smallest >= LEAST_EFFECTIVE
    mixed = chains > 1 and largest <= LARGEST_R_HAT
    return Convergence(
        converged=bool(enough and mixed),
        r_hat=largest,
        effective=smallest,
        worst=worst,
        acceptance=rates[0],
        jumps=rates[1],
        swaps=rates[2],
        message=_message(largest, smallest, worst, chains=chains, draws=draws),
    )


def _message(
    largest: float, smallest: float, worst: tuple[str, str] | None, *, chains: int, draws: int
) -> str:
    if draws < 4:
        return (
            f"There are only {draws} draws per chain; at least 4 are needed to judge convergence."
        )
    found = f"R-hat is at most {largest:.3f}, and there are at least {smallest:.0f} effective draws"
    if chains < 2:
        return (
            f"{found}. But one chain alone cannot show that it has converged: use "
            f"{option('chains', 4)}."
        )
    if largest <= LARGEST_R_HAT and smallest >= LEAST_EFFECTIVE:
        return f"The chains have converged: {found}."
    about = f"for the order of {worst[0]} and {worst[1]}; " if worst else ""
    factor = max(LEAST_EFFECTIVE / max(smallest, 1.0), 1.5)
    return (
        f"The chains have NOT converged: the largest R-hat is {largest:.4f} ({about}expected at "
        f"most {LARGEST_R_HAT}), and the smallest number of effective draws is {smallest:.0f} "
        f"(expected at least {LEAST_EFFECTIVE:.0f}). Probabilities and intervals are not reliable "
        f"yet. Continue the run until it has about {factor:.0f} times as many draws in total. If "
        "R-hat does not fall, start a new run with more replicas, for example 8. It takes longer, "
        "but its chains change between distant models."
    )
