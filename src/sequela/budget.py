"""The largest memory and number of operations that an exact evaluation may need."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sequela.support.errors import InputError
from sequela.support.validation import is_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LARGEST_COMPLETED_SET", "LARGEST_EXACT_SET", "Budget", "check_budget"]

# The lattice of a set with n items has 2^n states. No computer has enough memory for the lattice of
# more than 40 items.
LARGEST_EXACT_SET = 40
# The largest number of present items and missing cells of a sample, counted together, for which
# missing cells may be drawn without the order of the items. In larger samples, they are drawn
# together with the order.
LARGEST_COMPLETED_SET = 20

# A number or an array of numbers.
Number = TypeVar("Number", float, "NDArray[np.floating[Any]]")

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def _bytes(memory: float | str) -> float:
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?B?)\s*", memory, flags=re.IGNORECASE)
        unit = match.group(2).upper() if match else "?"
        unit = unit if unit.endswith("B") or not unit else unit + "B"
        unit = "" if unit == "B" else unit
        try:
            return float(match.group(1)) * _UNITS[unit] if match else float("nan")
        except ValueError:
            return float("nan")
    try:
        return float(memory) if is_number(memory) else float("nan")
    except OverflowError:
        return float("nan")


@dataclass(frozen=True)
class Budget:
    """The largest memory and number of operations that an exact evaluation may need.

    A set that needs more is evaluated by its components, or its orders are sampled.

    Parameters
    ----------
    memory : float or str
        Bytes of working memory per thread, or a text such as ``"200MB"``.
    work : float
        Floating-point operations per set. The default, 2e9, takes about a tenth of a second on one
        core. With the default, sets of 20 items are evaluated exactly if at most 280 items
        interact.
    total_work : float
        Floating-point operations for one evaluation of the log-likelihood and its gradient, for
        all distinct sets of a data set together. If they need more, the largest sets are sampled.
        The default, 1e12, takes about a minute on one core.

    Examples
    --------
    >>> Budget().exact_fits(size=20, columns=100)
    True
    >>> Budget(memory="1MB").exact_fits(size=20, columns=100)
    False
    """

    memory: float | str = "200MB"
    work: float = 2e9
    total_work: float = 1e12

    def __post_init__(self) -> None:
        if not _bytes(self.memory) > 0:
            raise InputError(
                f"budget memory is {self.memory!r}; expected a positive number of bytes or a "
                "text such as '200MB'"
            )
        for name, example in (("work", "2e9 per set"), ("total_work", "1e12 for all sets")):
            value = getattr(self, name)
            if not (is_number(value) and value > 0):
                raise InputError(
                    f"budget {name} is {value!r}; expected a positive number of floating-point "
                    f"operations, such as {example}"
                )
        smallest = self.exact_memory(0, 1)
        if _bytes(self.memory) < smallest:
            raise InputError(
                f"budget memory {self.memory!r} is less than the {smallest:.0f} bytes that even "
                "an empty set needs; give more memory, such as '200MB'"
            )

    @staticmethod
    def exact_memory(size: int, columns: int, *, timed: bool = False) -> float:
        """Return the number of bytes that the lattice of a set needs; see `exact_fits`."""
        tables = 8.0 * (columns + 1) * 6 * 64
        if timed:
            return tables + 2.0**size * 8 * (9 + 2 * size)
        return tables + 2.0**size * 8 * 3

    @staticmethod
    def exact_work(size: Number, columns: Number, *, timed: bool = False) -> Number:
        """Return the number of operations for the log-likelihood of one set and its gradient."""
        if timed:
            # The probability at a known time is a sum over about 32 complex points (the nodes of
            # `kernels.contour`). At each point, two recursions over the lattice are needed. The
            # last term is the work for the gradient.
            timed_work: Number = 2.0**size * (32 * 20.0 * (size + 1) + 30.0 * columns)
            return timed_work
        work: Number = 2.0**size * (6.0 * columns + 10.0 * size)
        return work

    def allows(self, *, memory: float, work: float) -> bool:
        """Return whether this many bytes and operations are within the budget for one set."""
        return memory <= _bytes(self.memory) and work <= self.work

    def exact_fits(self, size: int, columns: int, *, timed: bool = False) -> bool:
        """Return whether the lattice of a set is within the budget.

        `size` is the number of items of the set. `columns` is the number of items whose rates
        depend on the state. `timed` says whether the observation time of the sample is known.
        """
        if size > LARGEST_EXACT_SET:
            return False
        return (
            self.exact_memory(size, columns, timed=timed) <= _bytes(self.memory)
            and self.exact_work(size, columns, timed=timed) <= self.work
        )


def check_budget(budget: Budget | None) -> Budget:
    """Return `budget`, or the default budget for None; raise an error for any other type."""
    if budget is None:
        return Budget()
    if not isinstance(budget, Budget):
        raise InputError(
            f"budget is {budget!r}; expected a sequela.Budget, such as Budget(memory='1GB')"
        )
    return budget
