"""Find the items that a user gives by label: one item, several items, or a sample."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from sequela.data.dataset import Dataset
from sequela.samples import as_samples
from sequela.support.errors import InputError
from sequela.support.labels import compose

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from sequela.model import Model

__all__ = ["SampleLike", "find_item", "find_items", "one_sample"]

# One sample: its labels, a row of true and false, or a data set of one sample.
SampleLike: TypeAlias = "Iterable[Any] | Dataset"

_SHOWN = 5


def find_item(model: Model, label: Any) -> int:
    """Return the position of one item in the model.

    If the label is unknown, the error lists the most similar labels of the model.
    """
    text = compose(str(label))
    if isinstance(label, (str, int, np.integer)) and text in model.items:
        return model.items.index(text)
    folded: dict[str, list[str]] = {}
    for item in model.items:
        folded.setdefault(item.casefold(), []).append(item)
    close = [
        item
        for match in get_close_matches(text.casefold(), folded, n=_SHOWN, cutoff=0.6)
        for item in folded[match]
    ][:_SHOWN]
    known = ", ".join(map(repr, close or model.items[:_SHOWN]))
    what = "closest" if close else "the first items of the model are"
    raise InputError(
        f"the model has no item {label!r}; {what}: {known}"
        f"{'' if close or model.n_items <= _SHOWN else ', ...'}"
    )


def find_items(model: Model, labels: Iterable[Any] | str, what: str = "items") -> NDArray[np.int64]:
    """Return the positions of several items in the model, in the sequence in which they are given.

    `labels` is a list of different labels, or a row of a data set. A row has one value per item:
    true or false, or (in an array, a Series or a mapping) 1 or 0. The items whose value is true or
    1 are returned. Numbers in any other form, such as a list of numbers, are read as labels.
    `what` is the name of the argument, for error messages.
    """
    if isinstance(labels, str):
        raise InputError(f"{what} is the text {labels!r}; expected a list of items: [{labels!r}]")
    if isinstance(labels, pd.DataFrame):
        raise InputError(
            f"{what} is a table of shape {labels.shape}; expected one of its rows, such as "
            "table.iloc[0], or a list of items"
        )
    if isinstance(labels, np.ndarray) and labels.ndim > 1:
        raise InputError(f"{what} has shape {labels.shape}; expected one row, or a list of items")
    if isinstance(labels, Mapping):
        labels = pd.Series(dict(labels), dtype=object)
        if not all(_is_mark(x) for x in labels):
            raise InputError(
                f"{what} is a mapping; expected true or false as the value of each item"
            )
    try:
        listed = list(labels)
    except TypeError:
        raise InputError(f"{what} is {labels!r}; expected a list or set of items") from None
    if _is_row(model, labels, listed, what):
        return _of_row(model, labels, listed, what)
    places = [find_item(model, label) for label in listed]
    if isinstance(labels, (set, frozenset)):
        places.sort()  # a set has no order
    twice = sorted({model.items[place] for place in places if places.count(place) > 1})
    if twice:
        raise InputError(f"{what} contains {twice[0]!r} more than once; expected each item once")
    return np.array(places, dtype=np.int64)


def one_sample(
    model: Model, sample: SampleLike, what: str = "sample"
) -> tuple[NDArray[np.int64], Dataset]:
    """Return the positions of the items of a sample, and the sample as a data set.

    The positions are sorted. `sample` is a list of labels or a row, as in `find_items`, or a data
    set of one sample, which may have missing cells and a known order. `what` is the name of the
    argument, for error messages.
    """
    if isinstance(sample, Dataset):
        if sample.n_samples != 1:
            raise InputError(
                f"{what} is a data set of {sample.n_samples} samples; expected one, such as "
                "data.select_samples(['id'])"
            )
        data = as_samples(model, sample)
        return np.flatnonzero(data.values[0]).astype(np.int64), data
    present = np.sort(find_items(model, sample, what))
    row = np.zeros((1, model.n_items), dtype=np.bool_)
    row[0, present] = True
    return present, Dataset(row, items=model.items)


def _is_mark(x: Any) -> bool:
    """Return whether x can be a cell of a row: true, false, one or zero."""
    return isinstance(x, (bool, np.bool_, int, float, np.number)) and x in (0, 1)


def _is_row(model: Model, labels: Any, listed: list[Any], what: str) -> bool:
    """Return whether `labels` is a row with one true/false value per item, not a list of labels."""
    known = [x for x in listed if not (pd.api.types.is_scalar(x) and pd.isna(x))]
    truths = bool(known) and all(isinstance(x, (bool, np.bool_)) for x in known)
    # Zeros and ones could also be labels. They are read as a row in two cases: they are a Series
    # whose index consists of texts, or an array or a Series with one entry per item of the model.
    named = isinstance(labels, pd.Series) and all(isinstance(n, str) for n in labels.index)
    whole = isinstance(labels, (np.ndarray, pd.Series)) and len(listed) == model.n_items
    numbers = bool(known) and all(_is_mark(x) for x in known) and (named or whole)
    if not (truths or numbers):
        return False
    if len(known) < len(listed):
        raise InputError(
            f"{what} has missing entries; expected true or false for every item, or a Dataset of "
            "one sample, which may have missing cells"
        )
    texts = set(map(str, listed))
    if not (truths or named) and len(texts) == len(listed) and texts <= set(model.items):
        raise InputError(
            f"{what} is {labels!r}, which can be read as a row or as labels; give true/false for a "
            "row, or a list of labels"
        )
    return True


def _of_row(model: Model, labels: Any, listed: list[Any], what: str) -> NDArray[np.int64]:
    names = getattr(labels, "index", None)  # a row of a DataFrame has the items as its index
    if names is not None and not callable(names):
        return find_items(model, [n for n, x in zip(names, listed, strict=True) if x], what)
    if len(listed) != model.n_items:
        raise InputError(
            f"{what} has {len(listed)} true/false entries; expected one for each of the "
            f"{model.n_items} items of the model, or a list of items"
        )
    return np.nonzero(np.array(listed, dtype=np.bool_))[0].astype(np.int64)
