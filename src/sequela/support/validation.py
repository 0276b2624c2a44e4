"""Check the arguments that users give. Kernels do not check their arguments again."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.support.errors import InputError
from sequela.support.frames import is_frame
from sequela.support.labels import compose_all
from sequela.support.naming import argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["check_theta", "check_tolerance", "is_number", "positive_integer"]

# A double can represent exp(500), but not exp(710). A rate above e^500 is certainly a mistake: the
# expected waiting time would be less than 1e-217 times the observation time.
LARGEST_THETA = 500.0


def check_theta(theta: Any, items: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Return theta as a square C-contiguous array of finite doubles, in the order of `items`.

    The rows and columns of a DataFrame must have the same labels. If `items` is given, these labels
    must be the same as `items`, but their order may be different. The result has the order of
    `items`.
    """
    if is_frame(theta):
        theta = _in_order(theta, items)
    try:
        given = np.asarray(theta)
        if given.dtype.kind == "c":
            raise InputError(
                "theta is complex; expected real numbers, which are logarithms of rates"
            )
        array = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(
            f"theta cannot be read as numbers ({error}); expected an n x n array in which "
            "theta[i, j] "
            "is the log-effect of item i on the rate of item j"
        ) from None
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise InputError(
            f"theta has shape {array.shape}; expected a square n x n array in which theta[i, j] is "
            "the log-effect of item i on the rate of item j"
        )
    if array.shape[0] == 0:
        raise InputError("theta has no items; expected at least a 1 x 1 array")
    if items is not None and array.shape[0] != len(items):
        raise InputError(
            f"theta has shape {array.shape} but the given labels or data have {len(items)} items; "
            f"expected {len(items)} x {len(items)}"
        )
    bad = ~np.isfinite(array)
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise InputError(
            f"theta[{i}, {j}] is {array[i, j]} ({int(bad.sum())} such entries); expected finite "
            "numbers. If an item never arrives, use a large negative log-rate such as -30"
        )
    bad = np.abs(array) > LARGEST_THETA
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise InputError(
            f"theta[{i}, {j}] is {array[i, j]:g} ({int(bad.sum())} such entries); entries are "
            f"logarithms of rates and must lie between -{LARGEST_THETA:g} and {LARGEST_THETA:g}. "
            "Was a matrix of rates given instead of their logarithms?"
        )
    return array


def _in_order(theta: pd.DataFrame, items: Sequence[str] | None) -> NDArray[Any]:
    rows = compose_all(map(str, theta.index))
    columns = compose_all(map(str, theta.columns))
    if rows != columns:
        raise InputError(
            "the rows and columns of theta are labelled differently: rows "
            f"{rows[:5]}, columns {columns[:5]}; expected the same items in the same order"
        )
    twice = sorted({label for label in rows if rows.count(label) > 1})
    if twice:
        raise InputError(
            f"theta has labels that occur more than once, for example {twice[:5]}; expected each "
            "item once"
        )
    if items is not None:
        items = compose_all(map(str, items))
    if items is None or rows == items:
        return theta.to_numpy()
    surplus, lacking = sorted(set(rows) - set(items)), sorted(set(items) - set(rows))
    if surplus or lacking:
        found = [f"only theta has {surplus[:5]}"] if surplus else []
        found += [f"theta lacks {lacking[:5]}"] if lacking else []
        raise InputError(
            f"theta and the given labels or data have different items: {', '.join(found)}; give "
            "the same items in both"
        )
    place = [rows.index(item) for item in items]
    return theta.to_numpy()[np.ix_(place, place)]


def is_number(value: Any) -> bool:
    """Tell whether `value` is a real number of Python or NumPy, but not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def positive_integer(name: str, value: Any, *, least: int = 1) -> int:
    """Return `value` as an int; raise an error about the argument `name` if it is below `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < least:
        raise InputError(f"{argument(name)} is {value!r}; expected an integer of at least {least}")
    return int(value)


def check_tolerance(tol: float) -> None:
    """Raise an error if a tolerance is not a positive number."""
    if not (is_number(tol) and tol > 0):
        raise InputError(f"{argument('tol')} is {tol!r}; expected a positive number such as 1e-4")
