"""Read labels, cells and times of any type, with errors that name row and column."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.support.errors import InputError
from sequela.support.frames import is_missing, is_series
from sequela.support.labels import compose, compose_all, find_disguised, find_unfit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

__all__ = [
    "SHOWN",
    "as_table",
    "axis_labels",
    "cell_blocks",
    "find_positions",
    "find_rows",
    "listed",
    "read_cells",
    "read_labels",
    "read_members",
    "read_strings",
    "read_times",
    "refuse_all_missing",
    "refuse_misaligned",
    "refuse_nothing",
    "unknown",
]

SHOWN = 3  # a message lists at most this number of invalid entries, and says how many more exist
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


# Reading labels ---------------------------------------------------------------------------


def listed(given: Iterable[Any], argument: str) -> list[Any]:
    """Return the given collection as a list; refuse unordered collections and single strings."""
    if not isinstance(given, str | bytes | set | frozenset | Mapping):
        try:
            return list(_unmasked(given))
        except TypeError:
            pass
    raise InputError(
        f"{argument} must be a list, or another ordered collection; found {_show(given)} of type "
        f"{type(given).__name__}."
    )


def read_strings(
    given: Iterable[str], argument: str, expected: str = "a list of strings"
) -> tuple[str, ...]:
    """Read an option that is a list of strings; a set is sorted, since it has no order."""
    if isinstance(given, set | frozenset):
        given = sorted(given, key=str)
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InputError(f"{argument} must be {expected}; found {given!r:.80}.")
    strings = tuple(given)
    for string in strings:
        if not isinstance(string, str):
            raise InputError(f"{argument} must be {expected}; found {string!r:.80} in it.")
    return tuple(compose_all(strings))


def _label(value: Any, where: str) -> str:
    # A value that has a length (a tuple of a MultiIndex, bytes, an array) is not clearly one label.
    unfit = not isinstance(value, str) and (hasattr(value, "__len__") or is_missing(value))
    text = "" if unfit else str(value)
    if not text.strip():
        raise InputError(
            f"{where}: expected a label (a string that is not empty, or a number); found "
            f"{_show(value)}. Replace it by a name. If the labels are a MultiIndex, join the "
            "levels of each label into one string."
        )
    return text


def read_labels(argument: str, given: Iterable[object]) -> tuple[str, ...]:
    """Read labels as strings in composed form (NFC); each must be unique and printable."""
    spelled = [
        _label(value, f"{argument}, position {k}")
        for k, value in enumerate(listed(given, argument))
    ]
    _refuse_unfit(spelled, argument)
    labels = tuple(compose_all(spelled))
    if len(set(labels)) < len(labels):
        positions: dict[str, list[str]] = {}
        for k, label in enumerate(labels):
            positions.setdefault(label, []).append(str(k))
        twice = [
            f"{label!r} at positions {' and '.join(where)}"
            for label, where in positions.items()
            if len(where) > 1
        ]
        raise InputError(
            f"{argument}: each label may occur only once (compared as strings); found "
            f"{_some(twice, len(twice))}. Rename, merge or drop the repeated ones."
        )
    return labels


def _refuse_unfit(labels: list[str], argument: str) -> None:
    """Refuse labels that cannot be printed, or that look like another one."""
    unfit = find_unfit(labels)
    if unfit is not None:
        k, reason = unfit
        raise InputError(
            f"{argument}, position {k}: the label {labels[k]!a:.80} {reason}. Rename it."
        )
    pair = find_disguised(labels)
    if pair is not None:
        one, other = (ascii(labels[k]) for k in pair)
        raise InputError(
            f"{argument}: the labels {one:.80} (position {pair[0]}) and {other:.80} (position "
            f"{pair[1]}) look the same: they differ only in how their characters are composed, in "
            "the kind of a space or in invisible characters. Rename, merge or drop one of them."
        )


def axis_labels(
    argument: str, given: Iterable[object] | None, own: Iterable[object] | None, count: int
) -> tuple[str, ...]:
    """Return the labels of all rows or of all columns.

    `argument` is "samples" for rows and "items" for columns. The result is `given`. If it is None,
    the result is `own`, the labels of the table. If both are None, the labels are the positions.
    """
    if given is None:
        if own is None:
            return tuple(str(k) for k in range(count))
        source = "columns" if argument == "items" else "index"
        return read_labels(f"{argument} (the {source} of the table)", own)
    labels = read_labels(argument, given)
    if len(labels) != count:
        raise InputError(
            f"{argument} has {len(labels)} labels for {count} {argument}; expected one for each."
        )
    if own is not None:
        present = compose_all(map(str, own))
        # Without this error, a user who wants to reorder the axis would silently get wrong labels.
        if list(labels) != present and sorted(labels) == sorted(present):
            raise InputError(
                f"{argument} has the labels of the table in another order. Labels are assigned by "
                f"position, so {argument} would get wrong labels. Leave {argument} out, and "
                f"reorder with select_{argument}."
            )
    return labels


def read_members(row: Any, name: str) -> list[str]:
    """Return the labels of one sample, in an order independent of Python's hash seed."""
    if isinstance(row, str | bytes | Mapping) or not isinstance(row, Iterable):
        raise InputError(
            f"{name} must be a set or a list of labels; found {_show(row)}. Write a single label "
            "as ['label'], and an empty set as []."
        )
    values = list(row)
    if isinstance(row, set | frozenset):
        try:
            values.sort()
        except TypeError:  # numbers cannot be compared with strings
            values.sort(key=str)
    labels = [compose(_label(value, name)) for value in values]
    if len(set(labels)) < len(labels):
        twice = sorted(label for label in set(labels) if labels.count(label) > 1)
        raise InputError(
            f"{name} has a label more than once (compared as strings): "
            f"{_some([repr(label) for label in twice], len(twice))}. List each label once."
        )
    return labels


def find_positions(labels: Sequence[str], known: tuple[str, ...], argument: str) -> list[int]:
    where = {label: k for k, label in enumerate(known)}
    labels = compose_all(labels)
    for label in labels:
        if label not in where:
            raise InputError(
                f"{unknown(label, known)} is not among the {len(known)} {argument}; see "
                f"Dataset.{argument}."
            )
    return [where[label] for label in labels]


def find_rows(which: Iterable[object], samples: tuple[str, ...]) -> list[int]:
    """Return the positions of samples that were chosen by ids, a mask, or positions."""
    chosen: list[Any] = listed(which, "the selection of samples")
    refuse_nothing(chosen, "samples")
    if all(isinstance(c, str) for c in chosen):
        rows = find_positions([str(c) for c in chosen], samples, "samples")
    elif all(isinstance(c, bool | np.bool_) for c in chosen):
        refuse_misaligned(which, samples, "the mask")
        if len(chosen) != len(samples):
            raise InputError(
                f"the mask has {len(chosen)} entries for {len(samples)} samples; expected one per "
                "sample."
            )
        rows = [i for i, keep in enumerate(chosen) if keep]
    elif all(isinstance(c, Integral) for c in chosen):
        for c in chosen:
            if not -len(samples) <= c < len(samples):
                raise InputError(
                    f"position {c} is outside the {len(samples)} samples; positions count from 0. "
                    "If it is an id, pass it as a string."
                )
        rows = [int(c) for c in chosen]
    else:
        raise InputError(
            "the selection of samples must be all ids (strings), all booleans or all integer "
            f"positions; found {', '.join(sorted({type(c).__name__ for c in chosen}))}."
        )
    refuse_nothing(rows, "samples")
    return rows


def unknown(label: str, known: tuple[str, ...]) -> str:
    folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(label.casefold(), folded, n=1)
    return f"{label!r} (did you mean {folded[close[0]]!r}?)" if close else repr(label)


def refuse_nothing(chosen: Sequence[object], argument: str) -> None:
    if len(chosen) == 0:
        raise InputError(f"the selection leaves no {argument}; expected at least one.")


def refuse_misaligned(given: object, samples: tuple[str, ...], argument: str) -> None:
    """Refuse a Series whose index has ids of the samples, but not at the same positions."""
    if not is_series(given) or len(given) != len(samples):
        return
    index = tuple(compose_all(map(str, given.index)))
    if index != samples and not set(index).isdisjoint(samples):
        k = next(k for k, (a, b) in enumerate(zip(index, samples, strict=True)) if a != b)
        raise InputError(
            f"{argument}: the index of the Series does not match the sample ids; at position {k} "
            f"it has {index[k]!r}, but the sample is {samples[k]!r}. Reorder the Series with "
            ".reindex(...), or pass .to_numpy() if it is in the order of the samples."
        )


# Reading cells and times ------------------------------------------------------------------


def _unmasked(given: Any) -> Any:
    """Replace masked entries by None, because np.asarray would return the values under the mask."""
    # Masked arrays exist only if numpy.ma has been imported.
    if "numpy.ma" in sys.modules and isinstance(given, np.ma.MaskedArray):
        cells = np.ma.getdata(given).astype(object)
        cells[np.ma.getmaskarray(given)] = None
        return cells
    return given


def as_table(values: Any) -> npt.NDArray[Any]:
    """Convert values of any type except a DataFrame to a two-dimensional array."""
    if hasattr(values, "toarray"):  # SciPy's sparse matrices and arrays
        values = values.toarray()
    if hasattr(values, "to_pandas"):  # converting such a table to an array would lose its labels
        raise InputError(
            f"values is a {type(values).__module__}.{type(values).__name__}, which is not "
            "supported; pass values.to_pandas()."
        )
    try:
        table = np.asarray(_unmasked(values))
    except ValueError:  # rows of different lengths
        table = np.empty(0)
    if table.ndim != 2:
        found = f"{table.ndim}-dimensional"
        if isinstance(values, list | tuple) and table.ndim == 1:
            found = "a list whose entries are not rows of equal length"
            lengths = [len(row) if hasattr(row, "__len__") else None for row in values]
            k = next((k for k, length in enumerate(lengths) if length != lengths[0]), None)
            if k is not None:
                found += f" (row 0 has {lengths[0]} entries, row {k} has {lengths[k]})"
        raise InputError(
            "values must be two-dimensional, samples in rows and items in columns; found "
            f"{found} ({type(values).__name__}). Write one sample as [[...]]; for sets of labels "
            "use Dataset.from_sets."
        )
    if table.dtype.kind in "US" and not isinstance(values, np.ndarray):
        # If a nested list contains one string, NumPy converts all its entries to strings. Read it
        # again as objects, so that messages show the original entries.
        table = np.asarray(values, dtype=object)
    return table


def cell_blocks(table: Any, items: tuple[str, ...]) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Yield the cells in blocks, each with the position of its first column.

    A DataFrame with columns of several types gives one block per column.
    """
    if isinstance(table, np.ndarray):
        yield 0, _readable(table, "values")
    elif len(dtypes := set(table.dtypes)) == 1 and isinstance(dtypes.pop(), np.dtype):
        yield 0, _readable(table.to_numpy(), f"column {items[0]!r} (position 0)")
    else:
        for j, label in enumerate(items):
            column = table.iloc[:, j]
            yield j, _readable(column, f"column {label!r} (position {j})")[:, None]


def _readable(cells: Any, where: str) -> npt.NDArray[Any]:
    """Convert cells to a NumPy array of booleans, numbers or objects, or refuse their type."""
    dtype = cells.dtype
    if isinstance(dtype, np.dtype):
        if dtype.kind in "biufO":
            return np.asarray(cells)
        if dtype.kind in "UST":
            return np.asarray(cells, dtype=object)
    else:
        import pandas as pd

        if isinstance(dtype, pd.StringDtype):
            return np.asarray(cells, dtype=object)
        # Nullable, sparse and Arrow types. For pandas, booleans are numeric, too.
        if pd.api.types.is_numeric_dtype(dtype):
            return np.asarray(cells.to_numpy(dtype=np.float64, na_value=np.nan))
    raise InputError(
        f"{where} has the type {dtype}; expected booleans or the numbers 0 and 1. Drop it, or say "
        "which of its values mean that the item is present, as in (column == value)."
    )


def _is_number(cell: object) -> bool:
    # In NumPy, the type of durations is a kind of integer. But a cell with a duration is not a
    # number.
    return isinstance(cell, _NUMBERS) and not isinstance(cell, np.timedelta64)


def _binary(
    block: npt.NDArray[Any],
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_] | None, npt.NDArray[np.bool_]]:
    """Return three boolean tables: which cells are 1, which are missing, and which are invalid.

    The second table is None if cells of this type cannot be missing.
    """
    if block.dtype.kind == "b":
        return block, None, np.zeros(block.shape, dtype=np.bool_)
    if block.dtype.kind == "O":
        codes = (_code(cell) for cell in block.flat)
        block = np.fromiter(codes, dtype=np.int8, count=block.size).reshape(block.shape)
        missing = block == _MISSING
    elif block.dtype.kind == "f":
        missing = np.isnan(block)
    else:
        missing = None
    ones = block == 1
    unfit = ~(ones | (block == 0))
    return ones, missing, unfit if missing is None else unfit & ~missing


_MISSING = 3


def _code(cell: Any) -> int:
    if _is_number(cell) and (cell == 0 or cell == 1):
        return int(cell)
    return _MISSING if not hasattr(cell, "__len__") and is_missing(cell) else 2


def read_cells(
    blocks: Iterator[tuple[int, npt.NDArray[Any]]],
    items: tuple[str, ...],
    samples: tuple[str, ...],
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_] | None]:
    """Copy the cells into a boolean table, and return it with a table of the missing cells.

    The second table is None if no cell is missing. An error names the invalid cells.
    """
    values = np.empty((len(samples), len(items)), dtype=np.bool_)
    missing: npt.NDArray[np.bool_] | None = None
    n_bad = 0
    bad: list[tuple[int, int, object]] = []
    for start, block in blocks:
        values[:, start : start + block.shape[1]], unknown_cells, unfit = _binary(block)
        if unknown_cells is not None and unknown_cells.any():
            missing = np.zeros(values.shape, dtype=np.bool_) if missing is None else missing
            missing[:, start : start + block.shape[1]] = unknown_cells
        if unfit.any():
            n_bad += int(np.count_nonzero(unfit))
            for i, j in np.argwhere(unfit)[:SHOWN]:
                bad.append((i, start + j, block[i, j]))
    if bad:
        raise _unfit(bad, n_bad, items, samples)
    if missing is not None:
        refuse_all_missing(missing, samples)
    return values, missing


def refuse_all_missing(missing: npt.NDArray[np.bool_], samples: tuple[str, ...]) -> None:
    """Refuse samples whose cells are all missing."""
    empty = np.flatnonzero(missing.all(axis=1))
    if empty.size:
        shown = ", ".join(f"{samples[i]!r} (position {i})" for i in empty[:SHOWN])
        more = f" and {empty.size - SHOWN} more" if empty.size > SHOWN else ""
        raise InputError(
            f"all cells of {empty.size} sample{'s' if empty.size > 1 else ''} are missing: "
            f"{shown}{more}. A sample without a known cell has no information: leave it out."
        )


def _unfit(
    bad: list[tuple[int, int, object]], n_bad: int, items: tuple[str, ...], samples: tuple[str, ...]
) -> InputError:
    cells = [
        f"row {samples[i]!r} (position {i}), column {items[j]!r} (position {j}): {_show(cell)}"
        for i, j, cell in bad
    ]
    remedies = dict.fromkeys(_remedy(cell) for _, _, cell in bad)
    return InputError(
        "values must be 0 or 1 (False or True), or missing, in every cell; "
        f"{n_bad} of {len(items) * len(samples)} are not: {_some(cells, n_bad)}. "
        f"{' '.join(remedies)}"
    )


def _remedy(cell: Any) -> str:
    if isinstance(cell, str | bytes):
        if cell in ("0", "1", b"0", b"1"):
            return "Text is not read as numbers: convert it first with .astype(int)."
        return "Say which text means that the item is present, as in (values == 'yes')."
    import pandas as pd

    if not pd.api.types.is_scalar(cell):
        return "For sets of labels use Dataset.from_sets."
    return "Values are not rounded: decide what counts as present, as in (values >= threshold)."


def read_times(
    given: Iterable[object] | None, samples: tuple[str, ...]
) -> npt.NDArray[np.float64] | None:
    """Read one time per sample; missing times become NaN."""
    if given is None:
        return None
    refuse_misaligned(given, samples, "times")
    cells = listed(given, "times")
    if len(cells) != len(samples):
        raise InputError(
            f"times has {len(cells)} entries for {len(samples)} samples; expected one per sample, "
            "NaN where the time is unknown."
        )
    times = np.full(len(samples), np.nan)
    bad = []
    for i, cell in enumerate(cells):
        if not hasattr(cell, "__len__") and is_missing(cell):
            continue
        number = cell.item() if isinstance(cell, np.generic) else cell
        # Booleans are refused, because they say whether an event happened, not when. The upper
        # bound refuses infinity and integers that are too large for a float.
        usable = _is_number(cell) and not isinstance(number, bool)
        if usable and 0 <= number <= sys.float_info.max:
            times[i] = float(number)
        else:
            bad.append(f"sample {samples[i]!r} (position {i}): {_show(cell)}")
    if bad:
        raise InputError(
            "times must be finite numbers of at least 0, or NaN where unknown; found "
            f"{_some(bad, len(bad))}. Convert dates and durations to numbers of one unit, and "
            "write NaN for unknown times."
        )
    return times


def _show(value: object) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _some(parts: Sequence[str], total: int) -> str:
    shown = "; ".join(parts[:SHOWN])
    return shown if total <= SHOWN else f"{shown}; and {total - SHOWN} more"
