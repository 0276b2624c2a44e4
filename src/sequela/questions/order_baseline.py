"""A simple baseline for orders: items that are mostly seen in small samples come first.

The number of items in a sample grows with time. So an item that is mostly seen in small samples
probably arrived before an item that is mostly seen in large samples. This baseline needs no model.
In real cohorts it is often right, so check every order that disagrees with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sequela.data.dataset import Dataset

if TYPE_CHECKING:
    from sequela.data.dataset import DataLike

__all__ = ["baseline_verdict", "order_baseline"]


def order_baseline(data: DataLike) -> pd.DataFrame:
    """Sort items by the mean size of the samples that contain them, the smallest first.

    Parameters
    ----------
    data : Dataset, DataFrame, array or list of sets
        The samples.

    Returns
    -------
    DataFrame
        One row per item, the earliest first. "mean_size" is the mean number of items in the samples
        that contain the item, NaN if no sample contains it. "samples" is the number of samples that
        contain it. Items with equal mean sizes stay in the order of the data.

    Examples
    --------
    >>> order_baseline([{"a"}, {"a", "b"}, {"a", "b", "c"}]).round(2)
      item  mean_size  samples
    0    a        2.0        3
    1    b        2.5        2
    2    c        3.0        1
    """
    table = Dataset.coerce(data)
    present = table.values.astype(np.float64)
    samples = present.sum(axis=0)
    size = present.sum(axis=1)
    if table.missing is not None:
        # Assume that the share of present items is the same among missing cells as among known
        # cells.
        size = size * table.n_items / np.maximum(1, (~table.missing).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = np.ones(table.n_samples) if table.weights is None else table.weights
        mean_size = ((weights * size) @ present) / (weights @ present)
    found = pd.DataFrame(
        {"item": list(table.items), "mean_size": mean_size, "samples": samples.astype(int)}
    )
    return found.sort_values("mean_size", kind="stable", ignore_index=True)


def baseline_verdict(baseline: pd.DataFrame, first: str, second: str) -> str:
    """Return "agrees" if `first` comes before `second` in `order_baseline`, else "disagrees".

    The result is "undecided" if the mean sizes are equal or an item was never observed.

    Examples
    --------
    >>> baseline_verdict(order_baseline([{"a"}, {"a", "b"}]), "a", "b")
    'agrees'
    """
    sizes = dict(zip(baseline["item"], baseline["mean_size"], strict=True))
    if sizes[first] < sizes[second]:
        return "agrees"
    return "disagrees" if sizes[first] > sizes[second] else "undecided"
