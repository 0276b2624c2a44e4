"""Which items a question is about: the named ones and all that act on them, directly or not.

An item that acts on none of these changes nothing for them: the chain seen through these items
alone is a chain with the same entries of theta. So a question about a few items of a large sparse
model is exact on a small lattice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela._jit import call
from sequela.likelihood._kernels.passage import arrival_flows
from sequela.likelihood.exact import Passage
from sequela.likelihood.parameters import Parameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.budget import Budget

__all__ = ["ancestors", "arrivals_on_lattice", "fits_lattice", "given_state"]


def ancestors(theta: NDArray[np.float64], targets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the targets and all items with a chain of effects to one of them, sorted."""
    acts = theta != 0.0
    np.fill_diagonal(acts, val=False)
    member = np.zeros(len(theta), dtype=np.bool_)
    member[targets] = True
    while True:
        grown = member | acts[:, member].any(axis=1)
        if np.array_equal(grown, member):
            return np.nonzero(member)[0].astype(np.int64)
        member = grown


def fits_lattice(items: int, budget: Budget) -> bool:
    """Tell whether the lattice of all subsets of so many items is within the budget."""
    return budget.exact_fits(items, items)


def arrivals_on_lattice(
    theta: NDArray[np.float64], observation_rate: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return P(c is observed) and P(b before c, both observed), exactly, on all 2^n states."""
    n = len(theta)
    passage = Passage(Parameters(theta, observation_rate), np.arange(n, dtype=np.int64))
    passage.log_p()
    flow = np.empty(n)
    before = np.empty((n, n))
    call(
        arrival_flows, flow, before, passage.log_F, passage.low_log, passage.high_log, n,
        passage.low,
    )  # fmt: skip
    return flow, before


def given_state(
    theta: NDArray[np.float64], state: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return theta of the chain that goes on from `state`, and the items that it is about.

    What is present only acts: its effects join the base rates of the absent items.
    """
    absent = np.setdiff1d(np.arange(len(theta), dtype=np.int64), state)
    rest = theta[np.ix_(absent, absent)].copy()
    rest[np.diag_indices(absent.size)] += theta[np.ix_(state, absent)].sum(axis=0)
    return rest, absent
