"""Group starts that ended at the same optimum, and list where optima differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.learning.independent_fit import LARGEST_LOG_RATE, SMALLEST_LOG_RATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from sequela.learning.fit_values import Start

__all__ = ["SAME", "differing_entries", "distinct_optima", "group_starts"]

# Two starts ended at the same optimum if no entry of theta differs by more than SAME. Where the
# likelihood is flat, entries may differ by up to _NEAR, provided that the objectives differ by no
# more than the KKT residuals allow.
SAME = 0.25
_NEAR = 1.0


def group_starts(starts: Sequence[Start]) -> list[list[int]]:
    """Return, for each optimum, the positions of its starts in `starts`; the best optimum first."""
    order = sorted(range(len(starts)), key=lambda index: -starts[index].objective)
    groups: list[list[int]] = []
    for index in order:
        for group in groups:
            if _same_optimum(starts[index], starts[group[0]]):
                group.append(index)
                break
        else:
            groups.append([index])
    return groups


def _same_optimum(a: Start, b: Start) -> bool:
    apart = np.abs(_bounded(a.theta) - _bounded(b.theta))
    if apart.max() <= SAME:
        return True
    # If the objective is concave, the KKT residuals give a bound of the difference between the
    # objectives at the two thetas.
    open_ = (a.kkt_residual + b.kkt_residual) * apart.sum()
    open_ += 3.0 * (a.objective_se + b.objective_se)
    return bool(apart.max() <= _NEAR and abs(a.objective - b.objective) <= open_)


def _bounded(theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return theta with base rates in a finite range.

    If an item is always present, its base rate grows without bound during a fit. If it is never
    present, its base rate decreases without bound. The values of these base rates at the end of a
    fit have no meaning.
    """
    diagonal = np.clip(theta.diagonal(), SMALLEST_LOG_RATE, LARGEST_LOG_RATE)
    return theta - np.diag(theta.diagonal()) + np.diag(diagonal)


def distinct_optima(starts: Sequence[Start]) -> pd.DataFrame:
    """Return one row per optimum: its objective, its distance from the best one, and its starts."""
    import pandas as pd

    groups = group_starts(starts)
    best = max((start.objective for start in starts), default=0.0)
    return pd.DataFrame(
        {
            "objective": [starts[group[0]].objective for group in groups],
            "below_best": [best - starts[group[0]].objective for group in groups],
            "starts": [len(group) for group in groups],
            "first_start": [group[0] for group in groups],
            "converged": [all(starts[index].converged for index in group) for group in groups],
        }
    )


def differing_entries(
    thetas: Sequence[NDArray[np.float64]], items: Sequence[str], max_entries: int = 20
) -> pd.DataFrame:
    """Return the entries of theta whose values differ most between the `thetas`.

    Examples
    --------
    >>> differing_entries([np.eye(2), np.ones((2, 2))], ["A", "B"], max_entries=1)
      from to  lowest  highest  range
    0    A  B     0.0      1.0    1.0
    """
    import pandas as pd

    stack = np.stack(thetas)
    low = stack.min(axis=0)
    high = stack.max(axis=0)
    order = np.argsort(-(high - low), axis=None, kind="stable")[:max_entries]
    i, j = np.unravel_index(order, low.shape)
    labels = np.array(items, dtype=object)
    table = pd.DataFrame(
        {
            "from": labels[i],
            "to": labels[j],
            "lowest": low[i, j],
            "highest": high[i, j],
            "range": (high - low)[i, j],
        }
    )
    return table[table["range"] > 0.0]
