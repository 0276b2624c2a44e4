"""Recognise objects of pandas without importing pandas.

Importing pandas takes longer than a small fit. If pandas has not been imported yet, no value can be
a DataFrame or a Series, so there is no need to import it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeIs

__all__ = ["is_frame", "is_missing", "is_series"]


def is_frame(value: object) -> TypeIs[pd.DataFrame]:
    """Tell whether `value` is a DataFrame."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def is_series(value: object) -> TypeIs[pd.Series[Any]]:
    """Tell whether `value` is a Series."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.Series)


def is_missing(value: Any) -> bool:
    """Tell whether a single value is missing: None, NaN, or NaT or NA of pandas.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), 0.0, "nan")]
    [True, True, False, False]
    """
    if value is None:
        return True
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        return bool(pandas.isna(value))
    return bool(value != value)
