"""What a set takes by components: operations and memory, compared with those of its lattice."""

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

# Smaller sets always have a lattice: it takes less than a millisecond.
LEAST_COMPONENT_SET = 13
# What a set takes beside its functions of time, as so many operations on a lattice.
COMPONENT_OVERHEAD = 5e6
# No budget of memory is enough for a larger one.
LARGEST_COMPONENT = 24
# States of components up to which quantiles of small sets are read off the integrand.
_MOST_QUANTILE_STATES = 512
# What a component takes, for each of its states: coefficients of functions of time.
_COEFFICIENTS = 20 * 16


def work_of_components(
    parameters: Parameters | None, parts: list[Component], budget: Budget
) -> float:
    """Return the operations that a set takes by components; infinite if they do not fit.

    Without parameters only the sizes of the components are judged, not the range of their rates.
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
    """Return the operations and the bytes that a set takes by components, whatever the budget."""
    parts, _ = components_of(items, parameters.children)
    functions = [2.0**part.size * _COEFFICIENTS for part in parts]
    work = sum(f * (3 * part.size + 30) for f, part in zip(functions, parts, strict=True))
    return COMPONENT_OVERHEAD + work, 16.0 * sum(functions)


def has_small_components(parameters: Parameters, items: NDArray[np.int64]) -> bool:
    """Tell whether a set has a lattice, and yet components that give its time much sooner."""
    if items.size >= LEAST_COMPONENT_SET:
        return False
    parts, _ = components_of(items, parameters.children)
    if sum(2.0**part.size for part in parts) > _MOST_QUANTILE_STATES:
        return False
    return all(in_component_range(parameters, part) for part in parts)
