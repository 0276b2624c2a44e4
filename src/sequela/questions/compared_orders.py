"""Compare the orders in two cohorts, for the items that both cohorts have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sequela.support.errors import InputError

if TYPE_CHECKING:
    from sequela.questions.order_answers import Orders

__all__ = ["compared_orders"]


def compared_orders(first: Orders, second: Orders) -> pd.DataFrame:
    """Return P(a before b) in two cohorts, for all pairs of items that both cohorts have.

    Parameters
    ----------
    first, second : Orders
        From `order_matrix`, one for each cohort.

    Returns
    -------
    DataFrame
        One row per pair whose order is known in both cohorts. "a" and "b" are the items. "first"
        and "second" are P(a before b) in the first and in the second cohort. "a" is the item that
        usually arrives first in the first cohort, so "first" is at least 0.5. ``attrs`` holds
        "items", the number of items that both cohorts have.

    Examples
    --------
    >>> from sequela import example_theta, order_matrix
    >>> orders = order_matrix(example_theta(), ["first", "second"])
    >>> compared_orders(orders, orders)[["a", "b"]].values.tolist()
    [['first', 'second']]
    """
    shared = [item for item in first.probability.index if item in set(second.probability.index)]
    if len(shared) < 2:
        raise InputError(
            f"the cohorts have {len(shared)} items in common; expected at least two with "
            "the same labels"
        )
    upper = np.triu_indices(len(shared), 1)
    x, y = (
        orders.probability.loc[shared, shared].to_numpy(dtype=float)[upper]
        for orders in (first, second)
    )
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        raise InputError("no pair has a known order in both cohorts; use more draws")
    x, y = x[known], y[known]
    turned = x < 0.5
    labels = np.array(shared, dtype=object)
    table = pd.DataFrame(
        {
            "a": labels[np.where(turned, upper[1][known], upper[0][known])],
            "b": labels[np.where(turned, upper[0][known], upper[1][known])],
            "first": np.where(turned, 1.0 - x, x),
            "second": np.where(turned, 1.0 - y, y),
        }
    )
    table.attrs["items"] = len(shared)
    return table
