"""The expected number of samples of each set size among known cells, from simulated sets.

Samples in which the same cells are missing have the same distribution of the set size. So these
cells are hidden in simulated sets, once for each distinct pattern of missing cells. All patterns
use the same simulated sets. If there are very many patterns, groups of patterns use separate parts
of the simulated sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SizeCounts", "sizes_of_known_cells"]

# Largest number of set sizes that are computed, for all patterns and simulated sets together. This
# takes a few seconds.
_MOST_SIZES = 2e8
# Number of set sizes in memory.
_SIZES_AT_ONCE = 4e6
# Smallest number of simulated sets for a group of patterns: a variance needs two sets.
_LEAST_DRAWS = 2


class SizeCounts(NamedTuple):
    """Moments of the numbers of samples of each size, 0 to n.

    Attributes
    ----------
    expected : array
        Expected number of samples.
    se : array
        Monte Carlo standard error of `expected`.
    variance : array
        Variance of the number of samples under the model.
    """

    expected: NDArray[np.float64]
    se: NDArray[np.float64]
    variance: NDArray[np.float64]


def sizes_of_known_cells(drawn: NDArray[np.bool_], missing: NDArray[np.bool_]) -> SizeCounts:
    """Return the expected numbers of samples with 0, 1, ... items among their known cells.

    Parameters
    ----------
    drawn : array of bool, draws x items
        Complete sets that were simulated from the model.
    missing : array of bool, samples x items
        The missing cells of the data.
    """
    patterns, counts = np.unique(missing, axis=0, return_counts=True)
    draws = len(drawn)
    needed = int(np.ceil(len(patterns) * draws / _MOST_SIZES))
    groups = int(np.clip(needed, 1, max(1, min(len(patterns), draws // _LEAST_DRAWS))))
    expected, se_squared, variance = np.zeros((3, missing.shape[1] + 1))
    for group in range(groups):
        part = _one_group(drawn[group::groups], ~patterns[group::groups], counts[group::groups])
        expected += part.expected
        se_squared += part.se**2
        variance += part.variance
    return SizeCounts(expected, np.sqrt(se_squared), variance)


def _one_group(
    drawn: NDArray[np.bool_], known: NDArray[np.bool_], counts: NDArray[np.int64]
) -> SizeCounts:
    """Return the moments for some patterns of missing cells.

    `known` says which cells are known in each pattern, and `counts` how many samples have this
    pattern.

    A simulated set is used for all patterns. So the error of the expected number comes from the
    spread of the sum over the patterns.
    """
    draws, patterns = len(drawn), len(known)
    sizes = known.shape[1] + 1
    by_pattern = np.zeros((patterns, sizes))
    total, squares = np.zeros((2, sizes))
    cells = known.T.astype(np.float32)
    weights = counts.astype(np.float64)
    at_once = max(1, int(_SIZES_AT_ONCE / patterns))
    for first in range(0, draws, at_once):
        found = (drawn[first : first + at_once].astype(np.float32) @ cells).astype(np.int64)
        rows = len(found)
        in_pattern = np.bincount(
            (found + sizes * np.arange(patterns)).ravel(), minlength=patterns * sizes
        )
        by_pattern += in_pattern.reshape(patterns, sizes)
        of_draw = np.bincount(
            (found + sizes * np.arange(rows)[:, None]).ravel(),
            weights=np.tile(weights, rows),
            minlength=rows * sizes,
        ).reshape(rows, sizes)
        total += of_draw.sum(axis=0)
        squares += (of_draw**2).sum(axis=0)
    shares = by_pattern / draws
    mean = total / draws
    spread = np.maximum(squares / draws - mean**2, 0.0)
    samples = float(weights.sum())
    # A size that was never drawn may still be possible. Therefore the errors are computed as in
    # `share_error`, as if half a set of this size had been drawn in addition.
    return SizeCounts(
        expected=mean,
        se=np.sqrt(spread / draws + 0.5 * (samples / draws) ** 2),
        variance=weights @ (shares * (1.0 - shares)) + 0.5 * samples / (draws + 1.0),
    )
