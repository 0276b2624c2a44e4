"""Find the role of each column of a table: sample ids, times, weights, or an item."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sequela.data.importing import near
from sequela.support.errors import InputError
from sequela.support.labels import compose
from sequela.support.naming import argument as named
from sequela.support.naming import option

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = [
    "ABSENT", "MISSING", "NOT_KNOWN", "PRESENT", "Asked", "Columns", "is_index", "settle_columns",
]  # fmt: skip

PRESENT = {"1", "1.0", "true", "yes"}
ABSENT = {"0", "0.0", "false", "no"}
MISSING = {"", "na", "n/a", "nan", "null", "none", "<na>", "#n/a", ".", "?", "-", "missing"}
# The entries of `MISSING` that can only mean that a value is unknown. Other entries may also mean
# that an item is absent. For example, people who write a table by hand often leave a cell empty if
# the item is absent.
NOT_KNOWN = {"na", "n/a", "nan", "<na>", "#n/a", "missing"}
_ID_NAMES = {
    *("", "sample", "samples", "sample_id", "sampleid", "sample id", "id", "ids", "index"),
    *("patient", "patient_id", "patientid", "patient id", "case", "case_id", "barcode"),
    *("tumor_sample_barcode", "name", "subject", "subject_id", "row.names", "rownames"),
    *("unnamed: 0", "__index_level_0__", "...1"),
}
# The labels that pandas and R give to the row numbers of a table when they write it.
_SHOWN = 20  # a message lists at most this many columns
_INDEX_NAMES = {"", "unnamed: 0", "__index_level_0__", "...1", "index", "level_0"}


@dataclass(frozen=True)
class Asked:
    """The options of `read_table` that say what the columns hold."""

    samples: str | bool | None
    items: Collection[str] | None
    times: str | None
    header: bool | None
    ignored: Collection[str]  # columns that are not read
    weights: str | None = None
    missing: str | None = None  # the meaning of cells without a value, such as empty cells


@dataclass
class Columns:
    """The roles of the columns of a file."""

    labels: list[str]  # labels of all columns; '' if the column of ids has no label
    # Positions of columns:
    ids: int | None
    time: int | None
    items: list[int]
    notes: list[str] = field(default_factory=list)
    weight: int | None = None
    missing: str | None = None
    index: int | None = None  # row numbers, which are not read


def settle_columns(
    labels: list[str], rows: list[list[str]], asked: Asked, where: str, *, left_out: bool
) -> Columns:
    """Find the role of each column: sample ids, times, weights, or an item.

    If `left_out` is True, the header has no label for the first column, which then holds the ids.
    """
    found = Columns(labels, None, None, [])
    places = _Places(labels, where)
    if left_out:
        _refuse_missing_label(labels, asked, where)
    if isinstance(asked.samples, str):
        found.ids = places.find(asked.samples, "samples")
    elif left_out or asked.samples is True:
        found.ids = 0
    elif asked.samples is None and asked.header is not False:
        found.ids, found.notes = _guess_ids(labels, rows, asked.times and compose(asked.times))
    if found.ids == 1 and is_index(labels[0], [row[0] for row in rows]):
        found.index = 0
        found.notes.append(
            f"the first column ({labels[0]!r}) has row numbers and was ignored; it looks like the "
            f"index of a pandas table. The column {labels[1]!r:.80} was read as sample ids."
        )
    if asked.times is not None:
        found.time = places.find(asked.times, "times")
    if asked.weights is not None:
        found.weight = places.find(asked.weights, "weights")
    ignored = {places.find(label, "drop") for label in asked.ignored}
    special = {found.ids, found.time, found.weight, found.index}
    if asked.items is None:
        chosen = [j for j in range(len(labels)) if j not in special]
    else:
        chosen = [places.find(label, "items") for label in dict.fromkeys(asked.items)]
        _refuse_special_items(chosen, special, labels, where)
    found.items = [j for j in chosen if j not in ignored]
    if not found.items:
        raise InputError(
            f"{where} has no column for items (columns: {', '.join(labels[:5])}). If the cells "
            f"are not split, give the character between them with {option('separator')}."
        )
    return found


class _Places:
    """The positions of the columns by label."""

    def __init__(self, labels: list[str], where: str) -> None:
        self._labels = labels
        self._where = where
        self._position = {label: j for j, label in enumerate(labels)}

    def find(self, label: str, argument: str) -> int:
        label = compose(label)
        if label not in self._position:
            labels = self._labels
            more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
            raise InputError(
                f"{self._where}: {named(argument)} names {near(label, labels)}, but there is no "
                f"such column. The columns are {', '.join(labels[:_SHOWN])}{more}."
            )
        return self._position[label]


def is_index(label: str, cells: list[str]) -> bool:
    """Return whether a column has the row numbers 0, 1, 2, ... or 1, 2, 3, ... of another program.

    For a single cell, any number counts.

    Examples
    --------
    >>> is_index("Unnamed: 0", ["0", "1", "2"]), is_index("", ["0", "2"]), is_index("", ["7"])
    (True, False, True)
    """
    if label.casefold() not in _INDEX_NAMES or not all(cell.isdecimal() for cell in cells):
        return False
    numbers = [int(cell[:18]) for cell in cells]
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    return len(cells) == 1 or (numbers[0] <= 1 and steps == {1})


def _is_id_name(label: str) -> bool:
    return label.casefold().lstrip("#") in _ID_NAMES


def _refuse_missing_label(labels: list[str], asked: Asked, where: str) -> None:
    """Refuse a header with too few labels, unless only the label of the ids is missing."""
    if _is_id_name(labels[1]):
        raise InputError(
            f"{where} has {len(labels) - 1} labels, but the rows have {len(labels)} cells; the "
            "label of an item is missing. Label all columns."
        )
    if asked.samples is False:
        raise InputError(
            f"{where} has one label fewer than the rows have cells. Label all columns."
        )


def _refuse_special_items(
    chosen: list[int], special: set[int | None], labels: list[str], where: str
) -> None:
    for j in chosen:
        if j in special:
            raise InputError(
                f"{where}: {labels[j]!r:.80} holds ids, times or weights and cannot be an item "
                f"too. Remove it from {named('items')}."
            )


def _guess_ids(
    labels: list[str], rows: list[list[str]], times: str | None
) -> tuple[int | None, list[str]]:
    """Return the position of the column of ids, and notes for the user.

    The position is 0 if the first column looks like ids, 1 if the first column has row numbers and
    the second looks like ids, and None otherwise.
    """
    if len(labels) <= 1:
        return None, []
    if (
        len(labels) > 2
        and is_index(labels[0], [row[0] for row in rows])
        and _is_id_name(labels[1])
        and _only_names([row[1] for row in rows])
    ):
        return 1, []  # `settle_columns` ignores the row numbers
    if _is_id_name(labels[0]):
        return 0, []
    if times == labels[0] or not _only_names([row[0] for row in rows]):
        return None, []
    return 0, [f"the first column ({labels[0]!r:.80}) was read as sample ids."]


def _only_names(cells: list[str]) -> bool:
    """Return whether every cell is a name.

    A name is neither a value of an item, such as 0 or yes, nor a missing value, nor a number.
    """

    def is_name(cell: str) -> bool:
        folded = cell.casefold()
        if folded in PRESENT or folded in ABSENT or folded in MISSING:
            return False
        try:
            float(cell.replace(",", "."))
        except ValueError:
            return True
        return False

    return all(is_name(cell) for cell in cells)
