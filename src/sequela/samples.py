"""Convert data to samples that have the items of a model, in the order of the model."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from sequela.data.dataset import Dataset
from sequela.support.errors import InputError
from sequela.support.frames import is_frame, is_series

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sequela.data.dataset import DataLike
    from sequela.model import Model

__all__ = ["as_samples"]

_log = logging.getLogger("sequela")

_SHOWN = 5


def as_samples(model: Model, data: DataLike, times: Iterable[object] | None = None) -> Dataset:
    """Return the samples with the items of the model, in the order of the model.

    If the data have labels, items are matched by their labels. An array without labels must have
    one column per item of the model. Items that the model does not have are left out, with a
    warning in the log.

    Parameters
    ----------
    model : Model
        The model whose items the samples should have.
    data : Dataset, DataFrame, array or list of sets
        The samples.
    times : iterable of numbers or None
        Observation times; they replace the times in the data.

    Examples
    --------
    >>> from sequela.model import Model
    >>> model = Model([[0.0, 4.0], [0.0, -4.0]], ["first", "second"])
    >>> as_samples(model, [{"first"}, set()]).values.tolist()
    [[True, False], [False, False]]
    """
    if isinstance(data, (list, tuple)) or is_series(data):
        listed = list(data)
        if listed and all(isinstance(x, (set, frozenset)) for x in listed):
            return Dataset.from_sets(data, items=model.items, times=times)
    read = Dataset.coerce(data, times=times)
    if read.items == model.items:
        return read
    if not (isinstance(data, Dataset) or is_frame(data)) and read.n_items == model.n_items:
        return Dataset(read, items=model.items)
    lacking = sorted(set(model.items).difference(read.items))
    if lacking:
        raise InputError(
            f"the data have {read.n_items} items, but {len(lacking)} of the {model.n_items} items "
            f"of the model are missing, for example {', '.join(map(repr, lacking[:_SHOWN]))}; give "
            "data with all items that the model was learned from"
        )
    extra = read.n_items - model.n_items
    if extra:
        _log.warning("%d items of the data are not in the model and were left out", extra)
    return read.select_items(model.items)
