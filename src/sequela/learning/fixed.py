"""Interactions that a fit does not learn: they are fixed at zero or at another value."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sequela.data._reading import unknown
from sequela.support.errors import InputError
from sequela.support.frames import is_frame
from sequela.support.validation import is_number

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

__all__ = ["FixedLike", "apply_fixed", "fixed_entries", "read_fixed", "read_fixed_file"]

# One of: a table of theta with NaN where an entry is free; pairs (from, to), which fix interactions
# at zero; triples (from, to, value); a mapping of pairs to values; or a table with the columns
# from, to and value.
FixedLike: TypeAlias = "pd.DataFrame | ArrayLike | Iterable[tuple[Any, ...]] | Mapping[Any, float]"

# Possible labels of the column of values. The table `Model.interactions` has the label "effect".
_VALUES = ("value", "effect")


def read_fixed(given: FixedLike | None, items: tuple[str, ...]) -> NDArray[np.float64] | None:
    """Return an array of fixed entries of theta, NaN where an entry is free; None if all are free.

    Parameters
    ----------
    given : DataFrame, array, iterable of pairs, mapping or None
        See `SetChain`.
    items : tuple of str
        The items of the data.

    Examples
    --------
    >>> read_fixed([("a", "b"), ("b", "a", 0.5)], ("a", "b")).tolist()
    [[nan, 0.0], [0.5, nan]]
    """
    if given is None:
        return None
    fixed = np.full((len(items), len(items)), np.nan)
    if isinstance(given, Mapping):
        given = [(*_pair(key), value) for key, value in given.items()]
    if is_frame(given):
        given = _of_frame(given, items)
    if isinstance(given, np.ndarray) and given.dtype.kind in "fiub":
        fixed = _of_array(given, items)
    else:
        place = {label: j for j, label in enumerate(items)}
        for entry in _entries(given):
            source, target, value = entry
            for label in (source, target):
                if label not in place:
                    raise InputError(
                        f"fixed has {unknown(label, items)}, which is not among the items of the "
                        "data; correct the label, or leave it out"
                    )
            at = place[source], place[target]
            if not np.isnan(fixed[at]) and fixed[at] != value:
                raise InputError(
                    f"fixed has two values for {source!r} -> {target!r}: {fixed[at]:g} and "
                    f"{value:g}; keep one of them"
                )
            fixed[at] = value
    _check(fixed, items)
    return None if np.isnan(fixed).all() else fixed


def _pair(key: object) -> tuple[Any, Any]:
    if isinstance(key, tuple) and len(key) == 2:
        return key
    raise InputError(f"fixed has the key {key!r:.80}; expected a pair of items, (from, to)")


def _of_frame(frame: pd.DataFrame, items: tuple[str, ...]) -> Any:
    columns = [str(label) for label in frame.columns]
    if {"from", "to"} <= set(columns):
        name = next((label for label in _VALUES if label in columns), None)
        values = [0.0] * len(frame) if name is None else list(frame[name])
        return list(zip(frame["from"], frame["to"], values, strict=True))
    for labels, what in ((columns, "column"), ([str(x) for x in frame.index], "row")):
        for label in labels:
            if label not in items:
                raise InputError(
                    f"fixed has the {what} {unknown(label, items)}, which is not among the items "
                    "of the data; expected a table with items in rows and columns, or with the "
                    "columns from, to and value"
                )
        if len(set(labels)) < len(labels):
            raise InputError(f"fixed has two {what}s with the same label; expected each item once")
    table = frame.set_axis(columns, axis=1).set_axis([str(x) for x in frame.index], axis=0)
    table = table.reindex(index=list(items), columns=list(items))
    try:
        return table.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise InputError(
            "fixed has cells that are not numbers; expected a number for a fixed entry and NaN for "
            "a free one"
        ) from None


def _of_array(given: NDArray[Any], items: tuple[str, ...]) -> NDArray[np.float64]:
    if given.shape != (len(items), len(items)) or given.dtype.kind == "b":
        raise InputError(
            f"fixed is an array of type {given.dtype} and shape {given.shape}; expected numbers in "
            f"the shape {(len(items), len(items))}, with NaN where an entry is free"
        )
    return given.astype(np.float64)


def _entries(given: Any) -> list[tuple[str, str, float]]:
    expected = (
        "pairs (from, to), triples (from, to, value), or a square table with NaN where an entry is "
        "free"
    )
    if isinstance(given, str | bytes | os.PathLike) or not hasattr(given, "__iter__"):
        raise InputError(f"fixed is {given!r:.80}; expected {expected}")
    found = []
    for entry in given:
        parts = tuple(entry) if isinstance(entry, Iterable) and not isinstance(entry, str) else ()
        if len(parts) not in (2, 3):
            raise InputError(f"fixed has the entry {entry!r:.80}; expected {expected}")
        value = parts[2] if len(parts) == 3 else 0.0
        if not is_number(value):
            raise InputError(
                f"fixed has the value {value!r:.80} for {parts[0]!s:.40} -> {parts[1]!s:.40}; "
                "expected a number"
            )
        found.append((str(parts[0]), str(parts[1]), float(value)))
    return found


def _check(fixed: NDArray[np.float64], items: tuple[str, ...]) -> None:
    diagonal = np.nonzero(~np.isnan(np.diagonal(fixed)))[0]
    if diagonal.size:
        raise InputError(
            f"fixed has a value for the base rate of {items[diagonal[0]]!r}; only interactions of "
            "two items can be fixed. Give NaN on the diagonal"
        )
    if np.isinf(fixed).any():
        i, j = np.argwhere(np.isinf(fixed))[0]
        raise InputError(
            f"fixed is infinite for {items[i]!r} -> {items[j]!r}; expected a finite number, "
            "such as -10 for an item that prevents another one"
        )


def fixed_entries(
    fixed: NDArray[np.float64] | None, items: tuple[str, ...]
) -> list[tuple[str, str, float]]:
    """Return the fixed entries as triples (from, to, value), which `read_fixed` reads.

    Examples
    --------
    >>> fixed_entries(np.array([[np.nan, 0.0], [np.nan, np.nan]]), ("a", "b"))
    [('a', 'b', 0.0)]
    """
    if fixed is None:
        return []
    return [(items[i], items[j], float(fixed[i, j])) for i, j in np.argwhere(~np.isnan(fixed))]


def apply_fixed(
    theta: NDArray[np.float64], fixed: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return theta with its fixed entries set to their values."""
    return theta if fixed is None else np.where(np.isnan(fixed), theta, fixed)


def read_fixed_file(path: str | os.PathLike[str]) -> list[tuple[str, str, float]]:
    """Read fixed interactions from a table with the columns from, to and, optionally, value.

    If there is no column "value", the interactions are fixed at zero. The file ``interactions.csv``
    of a fit has this form.
    """
    from sequela.data._text_files import file_name
    from sequela.data.tables import text_rows

    name = file_name(path)
    rows, _ = text_rows(path, None, None)
    line, labels = next(rows)
    folded = [label.casefold() for label in labels]
    if not {"from", "to"} <= set(folded):
        raise InputError(
            f"{name}, line {line}: found the columns {', '.join(labels[:6])}; expected the "
            'columns "from" and "to" and, optionally, "value"'
        )
    place = next((folded.index(label) for label in _VALUES if label in folded), None)
    found = []
    for at, row in rows:
        if not any(row):
            continue
        if len(row) != len(labels):
            raise InputError(
                f"{name}, line {at}: found {len(row)} cells, expected {len(labels)} as in the "
                "header."
            )
        value = 0.0
        if place is not None:
            try:
                value = float(row[place].replace("_", "?"))
            except ValueError:
                value = np.nan
            if not np.isfinite(value):
                raise InputError(
                    f"{name}, line {at}, column {labels[place]!r}: found {row[place]!r:.80}, "
                    "expected a finite number."
                )
        found.append((row[folded.index("from")], row[folded.index("to")], value))
    if not found:
        raise InputError(f"{name} has no lines below its header; expected one per interaction.")
    return found
