"""Compute the theta at which a fit begins: without interactions, or with random interactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.learning.independent_fit import fit_independent
from sequela.support.random import Purpose, stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.distinct import DistinctSamples
    from sequela.likelihood.objective import Objective

__all__ = ["independent_theta", "presence", "random_theta", "units"]


def presence(distinct: DistinctSamples, n: int) -> NDArray[np.float64]:
    """Return the distinct samples as an array (samples, `n` items) of 0 and 1."""
    table = np.zeros((len(distinct), n))
    rows = np.repeat(np.arange(len(distinct)), distinct.sizes)
    table[rows, distinct.sets.items] = 1.0
    return table


def independent_theta(objective: Objective, tol: float = 1e-7) -> NDArray[np.float64]:
    """Return the diagonal theta with the largest likelihood, computed as if no time were known.

    This theta is a good start even if times are known. A fit that begins at this theta passes its
    own tolerance as `tol`, because a more precise start is not needed. With the default tolerance,
    computing the start would take a tenth of the time of a fit of 20 items.
    """
    distinct = objective.distinct
    fit = fit_independent(
        presence(distinct, objective.n), distinct.weights, objective.observation,
        missing=distinct.missing_table(objective.n), tol=tol,
    )  # fmt: skip
    return np.diag(fit.log_rates)


def random_theta(
    base: NDArray[np.float64], width: float, seed: int, index: int
) -> NDArray[np.float64]:
    """Return `base` with random interactions, uniform in [-width, width] (paper, section 5)."""
    rng = stream(seed, Purpose.RANDOM_START, index)
    theta = rng.uniform(-width, width, base.shape)
    np.fill_diagonal(theta, np.diagonal(base))
    return theta


def units(objective: Objective) -> NDArray[np.float64]:
    """Return the scale of each entry of theta for the solver: its information to the power -1/4.

    The information is approximate. It assumes that two kinds of samples are informative about the
    interaction i -> j: samples with both i and j, and samples in which j might have arrived
    after i. The fourth root is a compromise between no scaling and the scaling of Newton's method,
    which uses the square root. With the glioblastoma data of 100 items, the fourth root needed
    the fewest evaluations: 29, compared with 55 without scaling and 39 with the square root.
    """
    sets = presence(objective.distinct, objective.n)
    weights = objective.distinct.weights
    missing = objective.distinct.missing_table(objective.n)
    if missing is not None:
        # In place of a missing cell, use the frequency of the item among the known cells.
        known = np.maximum(weights @ (1.0 - missing), 1e-12)
        sets = sets + missing * ((weights @ sets) / known)
    share = weights @ sets
    together = (sets * weights[:, None]).T @ sets
    least = 0.25 / max(objective.data.total_weight, 1)
    information = np.maximum(0.5 * together + 0.25 * np.outer(share, share), least)
    np.fill_diagonal(information, np.maximum(share, least))
    scale: NDArray[np.float64] = information**-0.25
    return scale
