"""The work of an evaluation, from which its time is predicted."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Work"]


class Work(NamedTuple):
    """The work of one evaluation, for each method of evaluating sets.

    `lattices` is the number of operations on lattices if all items interact, and `integrals` is the
    number of operations for the integrals over time. `sampled` is the number of items in sampled
    sets, times the number of items of the model. `table` is the number of values that are stored
    for the integrals.
    """

    lattices: float
    integrals: float
    sampled: float
    table: float
