"""Check times and probabilities that users give to the questions about observation times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["quantile_names", "read_probabilities", "read_times"]

# Largest probability for which a quantile is computed. If the probability were even closer to 1,
# rounding errors would determine the quantile.
_HIGHEST_PROBABILITY = 1.0 - 1e-9


def _numbers(given: Any) -> NDArray[np.float64]:
    """Return numbers as an array; if they cannot be read as numbers, return NaN."""
    try:
        read = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        read = np.full(1, np.nan)
    return read if read.ndim == 1 else np.full(1, np.nan)


def read_times(times: Sequence[float]) -> NDArray[np.float64]:
    """Return times as an array; raise an error if one of them is negative or not finite."""
    read = _numbers(times)
    if not np.all(np.isfinite(read)) or np.any(read < 0.0):
        raise InputError(
            f"times are {times!r}; expected finite numbers that are not negative, such as [0.5, 1]"
        )
    return read


def read_probabilities(name: str, probabilities: Sequence[float]) -> NDArray[np.float64]:
    """Return the probabilities of quantiles as an array; raise an error if one is out of range."""
    read = _numbers(probabilities)
    if not np.all((read > 0.0) & (read <= _HIGHEST_PROBABILITY)):
        raise InputError(
            f"{name} are {probabilities!r}; expected numbers above 0 and at most 1 - 1e-9"
        )
    return read


def quantile_names(probabilities: NDArray[np.float64]) -> list[str]:
    """Return column names such as q05, q50, q97.5, with as many digits as needed."""
    names = []
    for probability in probabilities:
        whole, _, rest = f"{100.0 * probability:.10f}".rstrip("0").partition(".")
        names.append(f"q{whole:0>2}{'.' if rest else ''}{rest}")
    if len(set(names)) < len(names):
        raise InputError(f"quantiles are {probabilities.tolist()}; expected each of them once")
    return names
