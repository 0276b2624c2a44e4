"""How exact a sampled answer should be: a number of draws, or a target for its standard error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sequela.support.errors import BudgetError, InputError
from sequela.support.validation import is_number, positive_integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["MOST_DRAWS", "Estimate", "check_precision", "share_error", "until_precise"]

Answer = TypeVar("Answer")

MOST_DRAWS = 20_000_000
_FIRST_DRAWS = 10_000
# An estimate of the error has an error itself: aim a little lower than asked.
_MARGIN = 1.1


@dataclass(frozen=True)
class Estimate:
    """A number with its Monte Carlo standard error.

    Attributes
    ----------
    value : float
        The number; ``float(estimate)`` is the same.
    se : float
        Its standard error; 0 where it is exact.
    method : str
        "exact" or how it was sampled.
    draws : int
        How many draws it is made of; 0 where it is exact.
    seed : int or None
        What every draw was derived from; None where it is exact.
    """

    value: float
    se: float = 0.0
    method: str = "exact"
    draws: int = 0
    seed: int | None = None

    def __float__(self) -> float:
        """Return the value."""
        return self.value

    def __str__(self) -> str:
        """Return the value with its error, if it has one."""
        return f"{self.value:.6g}" if self.se == 0.0 else f"{self.value:.6g} ± {self.se:.2g}"


def check_precision(draws: int | None, target_se: float | None) -> None:
    """Raise if these are no number of draws, no target, or both: also where all is exact."""
    if draws is not None and target_se is not None:
        raise InputError(
            f"draws={draws!r} and target_se={target_se!r} were both given; expected one of them"
        )
    if draws is not None:
        positive_integer("draws", draws, least=2)
    if target_se is not None and not (is_number(target_se) and 0.0 < target_se < np.inf):
        raise InputError(f"target_se is {target_se!r}; expected a positive number, such as 0.01")


def share_error(hits: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
    """Return the standard error of the share of hits among draws.

    Never zero: as the spread of a Beta(hits + 1/2, others + 1/2) is not when all draws agree.
    """
    x, y = hits + 0.5, others + 0.5
    error: NDArray[np.float64] = np.sqrt(x * y / ((x + y) ** 2 * (x + y + 1.0)))
    return error


def until_precise(
    ask: Callable[[int], Answer],
    error_of: Callable[[Answer], float],
    draws: int | None,
    target_se: float | None,
    *,
    default: int,
    first: int = _FIRST_DRAWS,
    most: int = MOST_DRAWS,
) -> Answer:
    """Ask with as many draws as were given, or as the target for the standard error needs.

    The answer for a target is the one that the number of draws it took would have given.
    """
    check_precision(draws, target_se)
    if target_se is None:
        return ask(int(default if draws is None else draws))
    size = min(first, most)
    while True:
        answer = ask(size)
        error = error_of(answer)
        if error <= target_se:
            return answer
        needed = size * (error / float(target_se)) ** 2 if np.isfinite(error) else 10.0 * size
        wanted = _MARGIN * needed
        if size >= most or wanted > most:
            raise _unreachable(float(target_se), error, size, needed, most)
        size = int(np.ceil(wanted))


def _unreachable(target: float, error: float, size: int, needed: float, most: int) -> Any:
    if not np.isfinite(error):
        reason = f"in {size:,} draws what is asked for was never seen, or too rarely for an error"
    else:
        reason = (
            f"after {size:,} draws the standard error is {error:.2g}, and about {needed:.2g} "
            f"draws would be needed; at most {most:,} are made"
        )
    return BudgetError(f"target_se={target:g} cannot be reached: {reason}. Ask for a larger one")
