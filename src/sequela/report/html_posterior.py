"""The parts of a report page about a posterior: averages over its draws, and some of the draws.

The page averages over the draws that it contains. So its answers about single samples take the
uncertainty of the model into account. The page stores draws with 32 bits per number, so its answers
are those for theta rounded to 32 bits.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.model import Model
from sequela.questions.cohort import cohort_orders
from sequela.questions.over_draws import chosen_draws
from sequela.report.html_verdicts import Verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.posteriors.result import Posterior

__all__ = [
    "encoded_draws", "mean_model", "page_draws", "posterior_edges", "posterior_orders",
    "posterior_verdicts", "sample_orders",
]  # fmt: skip

# Maximum number of characters that all draws may take in the page; maximum and minimum number of
# draws.
_MOST_CHARACTERS = 800_000
_MOST_DRAWS = 100
_FEWEST_DRAWS = 4
# Smallest effect that counts as an interaction, as in `Posterior.interactions`.
_LEAST_EFFECT = 0.5
# Interactions that are less probable than this are not listed. Otherwise the list would contain
# nearly all n (n - 1) possible interactions, because nearly all occur in some draw.
_LEAST_PRESENT = 0.05


def page_draws(posterior: Posterior) -> NDArray[np.float32]:
    """Return draws of theta for a page as an array of shape (draws, n, n).

    All chains contribute the same number of draws. If there are many items, there are fewer draws,
    so that the page stays small.
    """
    n, chains = posterior.n_items, len(posterior.draws.scale)
    room = int(_MOST_CHARACTERS / (16 / 3 * max(n, 1) ** 2))
    count = max(min(room, _MOST_DRAWS), _FEWEST_DRAWS, chains)
    places = chosen_draws(posterior, count)
    return np.stack([posterior.draws.theta[place] for place in places]).astype(np.float32)


def encoded_draws(posterior: Posterior) -> dict[str, Any]:
    """Return the draws of a page: their number, and theta as little-endian floats in base64."""
    theta = page_draws(posterior)
    text = base64.b64encode(np.ascontiguousarray(theta, dtype="<f4").tobytes()).decode("ascii")
    return {"count": len(theta), "theta": text}


def mean_model(posterior: Posterior) -> Model:
    """Return the model with the mean of all draws of theta. It is a summary, not a draw."""
    theta = posterior.draws.theta.mean(axis=(0, 1))
    return Model(theta, posterior.items, observation=posterior.observation)


def posterior_edges(posterior: Posterior) -> dict[str, Any]:
    """Return means, intervals and probabilities of interactions that are at least 5% probable."""
    theta = posterior.theta
    present = (np.abs(theta) >= _LEAST_EFFECT).mean(axis=0)
    np.fill_diagonal(present, 0.0)
    source, target = np.nonzero(present >= _LEAST_PRESENT)
    low, high = np.quantile(theta[:, source, target], [0.05, 0.95], axis=0)
    chosen = theta[:, source, target]

    def plain(values: NDArray[np.float64]) -> list[float]:
        return [float(x) for x in np.round(values, 3).tolist()]

    return {
        "from": source.tolist(),
        "to": target.tolist(),
        "effect": plain(chosen.mean(axis=0)),
        "certainty": {
            "present": plain(present[source, target]),
            "positive": plain((chosen > 0.0).mean(axis=0)),
            "low": plain(low),
            "high": plain(high),
        },
        "least_effect": _LEAST_EFFECT,
        "least_present": _LEAST_PRESENT,
    }


def posterior_orders(posterior: Posterior, samples: int | None) -> dict[str, Any] | None:
    """Return the upper triangle of P(row before column), in thousandths; None where unknown.

    Each probability is for samples that have both items.
    """
    n = posterior.n_items
    if n < 2:
        return None
    probability: NDArray[np.float64] = np.full((n, n), np.nan)
    together = np.zeros((n, n))
    mean = posterior.draws.orders.mean(axis=(0, 1))
    for (a, b), p, count in zip(posterior.pairs, mean, posterior.together, strict=True):
        i, j = (a, b) if a < b else (b, a)
        probability[i, j] = p if a < b else 1.0 - p
        together[i, j] = count
    upper = np.triu_indices(n, 1)
    shares = None
    if samples:
        shares = [round(1e5 * x / samples) for x in together[upper].tolist()]
    known = 1000.0 * probability[upper]
    return {
        "items": list(range(n)),
        "probability": [None if np.isnan(p) else round(p) for p in known.tolist()],
        "together": shares,
        "draws": 0,
    }


def posterior_verdicts(posterior: Posterior) -> Verdicts:
    """Return the orders of a posterior with their certainty."""
    return Verdicts(posterior.orders(), "posterior")


def sample_orders(
    posterior: Posterior, data: Dataset, *, max_size: int, threads: int | None
) -> tuple[Sequence[Any], Sequence[Any], int]:
    """Return the most likely order and the arrival times of each sample, under one draw.

    The draws are used in turn: each sample uses the next draw. So a tree of all orders shows how
    much orders vary over the posterior. The third value is the size of the largest set for which
    orders were computed.
    """
    theta = page_draws(posterior).astype(np.float64)
    used = theta[: min(len(theta), data.n_samples)]
    orders: list[Any] = [None] * data.n_samples
    arrivals: list[Any] = [None] * data.n_samples
    largest = max_size
    for k, draw in enumerate(used):
        rows = np.arange(k, data.n_samples, len(used))
        model = Model(draw, posterior.items, observation=posterior.observation)
        found = cohort_orders(
            model, data.select_samples(rows), max_size=max_size, n_threads=threads
        )
        largest = min(largest, found.largest)
        for place, row in enumerate(rows):
            orders[row], arrivals[row] = found.orders[place], found.arrivals[place]
    return orders, arrivals, largest
