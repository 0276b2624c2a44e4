"""Prepare partly known samples for the posterior of theta: lists for kernels and first histories.

A sample is partly known if it has missing cells, or statements about the order of its items. If it
has no statements, and few present and missing items, the likelihood sums over its missing cells.
Other partly known samples have latent histories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arguments import HistoryList
from sequela.likelihood.stated_histories import random_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.kernels.arguments import PosteriorTarget
    from sequela.likelihood.distinct import DistinctSamples
    from sequela.likelihood.partial import PartialSet

__all__ = ["known_together", "list_histories", "start_histories", "summable_samples"]

# For each draw, `shared_lattice.shared_orders` counts orders with one pass over the shared lattice
# for each combination of missing cells. The number of combinations is limited so that all passes
# together visit at most _MOST_VISITS states. For this limit, a shared lattice of n items is assumed
# to have 2**n states, but at most _MOST_STATES. _FEW_PATTERNS combinations are always accepted.
_MOST_VISITS = 400_000
_MOST_STATES = 8_000
_FEW_PATTERNS = 16


def summable_samples(distinct: DistinctSamples, n: int) -> NDArray[np.bool_]:
    """Return which distinct samples have missing cells over which the likelihood can sum.

    If there are many combinations of missing cells, only the samples with the most frequent
    combinations are returned.
    """
    shares: dict[bytes, float] = {}
    keys: dict[int, bytes] = {}
    for s in np.nonzero(distinct.partial)[0].tolist():
        known = distinct.as_partial(s)
        if known.statements:
            continue
        keys[s] = known.missing.tobytes()
        shares[keys[s]] = shares.get(keys[s], 0.0) + float(distinct.weights[s])
    most = max(_FEW_PATTERNS, _MOST_VISITS // min(1 << min(n, 20), _MOST_STATES))
    kept = set(sorted(shares, key=lambda key: -shares[key])[:most])
    found = np.zeros(len(distinct), dtype=np.bool_)
    found[[s for s, key in keys.items() if key in kept]] = True
    return found


def list_histories(
    samples: Sequence[PartialSet], first: int
) -> tuple[HistoryList, list[NDArray[np.int64]]]:
    """Return partly known samples in the form that the kernels need, and the items of each sample.

    Parameters
    ----------
    samples : sequence of PartialSet
        The partly known samples.
    first : int
        The index in `PosteriorTarget.large_items` at which the items of the first sample begin.
    """
    items = [known.on_lattice for known in samples]
    statements = [statement for known in samples for statement in known.statements]
    sides = np.array([(a, b) for a, b, _ in statements], dtype=np.int64).reshape(-1, 2)
    histories = HistoryList(
        start=first + np.cumsum([0, *(each.size for each in items)], dtype=np.int64),
        present=np.array([known.present.size for known in samples], dtype=np.int64),
        statement_start=np.cumsum([0, *(len(known.statements) for known in samples)]).astype(
            np.int64
        ),
        before=np.ascontiguousarray(sides[:, 0]),
        after=np.ascontiguousarray(sides[:, 1]),
        right=np.array([p for _, _, p in statements], dtype=np.float64),
    )
    return histories, items


def start_histories(target: PosteriorTarget, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return a first history of each partly known sample: a random order of its present items.

    No history contradicts a certain statement. All missing items are absent from these histories.
    """
    histories = target.histories
    found = []
    for s in range(histories.present.size):
        first, last = histories.start[s : s + 2]
        present = target.large_items[first : first + histories.present[s]]
        some = slice(*histories.statement_start[s : s + 2])
        certain = histories.right[some] == 1.0
        pairs = list(
            zip(
                histories.before[some][certain].tolist(),
                histories.after[some][certain].tolist(),
                strict=True,
            )
        )
        order = np.full(last - first, -1, dtype=np.int64)
        order[: present.size] = random_order(rng.permutation(present).tolist(), pairs)
        found.append(order)
    return found


def known_together(
    data: Dataset,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Count the samples in which both items of a pair are present, or their cells are known.

    Return three arrays (n, n). Entry i, j of the first array is the number of samples that are
    known to have both items. In the second array, it is the number of samples that are known to
    have i and in which the cell of j is not missing. In the third array, it is the number of
    samples in which neither cell is missing.
    """
    X = np.asarray(data.values, dtype=np.float64)
    known = np.ones_like(X) if data.missing is None else 1.0 - data.missing
    return X.T @ X, X.T @ known, known.T @ known
