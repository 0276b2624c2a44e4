"""Compute the cost of evaluating a set by components: number of operations and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.likelihood.components import in_component_range
from sequela.likelihood.decomposition import components_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.budget import Budget
    from sequela.likelihood.decomposition import Component
    from sequela.likelihood.parameters import Parameters

__all__ = [
    "COMPONENT_OVERHEAD",
    "LARGEST_COMPONENT",
    "LEAST_COMPONENT_SET",
    "component_cost",
    "has_small_components",
    "work_of_components",
]

# Smaller sets are always evaluated on their lattice, which takes less than a millisecond.
LEAST_COMPONENT_SET = 13
# The fixed cost of evaluating a set by components. It is a number of operations, as in
# `Budget.exact_work`, so that it can be compared with the cost of the set's lattice.
COMPONENT_OVERHEAD = 5e6
# Components of more items are never computed exactly: their functions would need more than 170 GB.
LARGEST_COMPONENT = 24
# The quantiles of the observation time of a small set are computed by components only if all
# components of the set together have at most this many states. Otherwise the lattice of the set is
# used.
_MOST_QUANTILE_STATES = 512
# Number of values that are stored for each state of a component: 20 coefficients on each of 16
# panels of time.
_COEFFICIENTS = 20 * 16


def work_of_components(
    parameters: Parameters | None, parts: list[Component], budget: Budget
) -> float:
    """Return the number of operations to evaluate a set by components; inf if this is not possible.

    It is not possible if a component is beyond the budget, or if its rates are out of range. If
    `parameters` is None, the rates are not tested.
    """
    work = COMPONENT_OVERHEAD
    for part in parts:
        if part.size > LARGEST_COMPONENT:
            return np.inf
        functions = 2.0**part.size * _COEFFICIENTS
        if not budget.allows(memory=16.0 * functions, work=functions * (3 * part.size + 30)):
            return np.inf
        if parameters is not None and not in_component_range(parameters, part):
            return np.inf
        work += functions * (3 * part.size + 30)
    return work


def component_cost(parameters: Parameters, items: NDArray[np.int64]) -> tuple[float, float]:
    """Return the numbers of operations and of bytes to evaluate a set by components.

    This function does not test the budget.
    """
    parts, _ = components_of(items, parameters.children)
    functions = [2.0**part.size * _COEFFICIENTS for part in parts]
    work = sum(f * (3 * part.size + 30) for f, part in zip(functions, parts, strict=True))
    return COMPONENT_OVERHEAD + work, 16.0 * sum(functions)


def has_small_components(parameters: Parameters, items: NDArray[np.int64]) -> bool:
    """Return whether components give the times of a small set much faster than its lattice.

    The function is used for quantiles of the observation time. It returns False for sets of
    `LEAST_COMPONENT_SET` or more items.
    """
    if items.size >= LEAST_COMPONENT_SET:
        return False
    parts, _ = components_of(items, parameters.children)
    if sum(2.0**part.size for part in parts) > _MOST_QUANTILE_STATES:
        return False
    return all(in_component_range(parameters, part) for part in parts)
