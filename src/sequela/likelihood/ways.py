"""The ways to evaluate a set, and their names in results and arguments."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from sequela.support.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EXACT_WAYS", "METHODS", "Way", "check_method", "is_exact"]


class Way(StrEnum):
    """A way to evaluate a set. The value of a member is its name in results and tables."""

    EXACT = "exact"  #: the sum over the lattice of all subsets
    COMPONENTS = "components"  #: an integral over time of small lattices; also exact
    RELOCATION = "relocation"  #: orders drawn by relocating blocks of items
    METROPOLIS = "metropolis"  #: orders drawn by the paper's informed proposal
    METROPOLIS_UNIFORM = "metropolis-uniform"  #: orders drawn by the paper's uniform proposal
    COMPLETIONS = "completions"  #: missing cells drawn; completed sets evaluated exactly
    HISTORIES = "histories"  #: missing cells and orders drawn together


METHODS = ("auto", *(way.value for way in Way))
EXACT_WAYS = (Way.EXACT.value, Way.COMPONENTS.value)


def is_exact(ways: NDArray[np.str_]) -> NDArray[np.bool_]:
    """Return which sets are evaluated without sampling."""
    return np.isin(ways, EXACT_WAYS)


def check_method(method: str) -> str:
    """Return the name of a method; raise an error if it is not one of `METHODS`."""
    if method not in METHODS:
        raise InputError(
            f"method is {method!r}; expected one of " + ", ".join(repr(name) for name in METHODS)
        )
    return method
