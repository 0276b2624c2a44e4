"""Read a long table line by line, and find which sample has which item, and since when."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sequela.data._import_summary import counted
from sequela.data._label_checks import check_labels
from sequela.data._limits import ROWS
from sequela.data._table_columns import ABSENT, MISSING, PRESENT
from sequela.data._text_files import CellCodes, file_name, source_file
from sequela.data.importing import near
from sequela.data.tables import text_rows
from sequela.support.errors import InputError
from sequela.support.naming import argument, option

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sequela.data._long_presets import Preset
    from sequela.data._text_files import SourceFile

__all__ = ["ABSENT_CODE", "MISSING_CODE", "PRESENT_CODE", "Lines", "LongColumns", "stream_long"]

ABSENT_CODE, PRESENT_CODE, MISSING_CODE, _UNFIT = 0, 1, 2, 9
_SUFFIXES = {".tsv", ".txt", ".csv", ".tab", ".gz", ".bz2", ".xz", ".zip"}


@dataclass(frozen=True)
class LongColumns:
    """The options about columns and cells. If an option is None, the preset determines it."""

    preset: Preset
    sample: str | None = None
    item: str | None = None
    value: str | None = None
    date: str | None = None
    present: Collection[str] | None = None
    where: Mapping[str, Collection[str]] | None = None
    separator: str | None = None
    encoding: str | None = None


@dataclass
class Lines:
    """The sample, the item, the code of the value and the date of each line that counts.

    `samples` and `items` map each label to a number. For each line, `who` has the number of its
    sample, and `what` has the number of its item. `left_out` has the number of lines that do not
    count, for each reason.
    """

    samples: dict[str, int] = field(default_factory=dict)
    items: dict[str, int] = field(default_factory=dict)
    who: array[int] = field(default_factory=lambda: array("i"))
    what: array[int] = field(default_factory=lambda: array("i"))
    code: bytearray = field(default_factory=bytearray)
    when: array[float] = field(default_factory=lambda: array("d"))
    files: list[SourceFile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    dates_are: str = ""  # "dates" or "numbers"; empty until the first date was read
    has_dates: bool = False
    has_values: bool = False

    def add(self, sample: int, item: str, code: int, when: float) -> None:
        """Add one line."""
        self.who.append(sample)
        self.what.append(self.items.setdefault(item, len(self.items)))
        self.code.append(code)
        if self.has_dates:
            self.when.append(when)


def stream_long(paths: Sequence[str | os.PathLike[str]], columns: LongColumns) -> Lines:
    """Read the lines of long tables one by one."""
    if not paths:
        raise InputError("no table was given; pass its path.")
    found = Lines(has_dates=columns.date is not None)
    for path in paths:
        found.files.append(source_file(path))
        _OneFile(path, columns, found).read()
    if not found.samples:
        raise InputError(f"{file_name(paths[0])} has no lines below its header.")
    name = file_name(paths[0])
    found.notes += check_labels(list(found.samples), "sample", name)
    found.notes += check_labels(list(found.items), "item", name)
    found.notes += [
        f"{counted(count, 'line')} left out, {reason}." for reason, count in found.left_out.items()
    ]
    return found


class _OneFile:
    """The reader of one file, which finds the columns and reads the cells."""

    def __init__(self, path: str | os.PathLike[str], columns: LongColumns, found: Lines) -> None:
        self._path = path
        self._columns = columns
        self._found = found
        self._name = file_name(path)
        self._rows, _ = text_rows(path, columns.separator, columns.encoding)
        line, labels = next(self._rows)
        self._labels = [label.removeprefix("#").strip() for label in labels]
        self._where = f"{self._name}, line {line}"
        check_labels(self._labels, "column", self._where)
        self._settle()

    # Columns ------------------------------------------------------------------------------

    def _settle(self) -> None:
        columns, preset = self._columns, self._columns.preset
        self._item_at = self._place("item", columns.item, preset.items, needed=True)
        ids = self._place("sample", columns.sample, preset.samples, needed=not preset.id_from_file)
        self._sample_at = ids
        self._value_at = self._place("value", columns.value, preset.values, needed=False)
        self._date_at = self._place("date", columns.date, (), needed=False)
        named = [self._item_at, ids, self._value_at, self._date_at]
        taken = [self._labels[at] for at in named if at is not None]
        check_labels(taken, "the column", f"{self._where}: sample, item, value and date")
        if self._value_at is not None:
            self._found.has_values = True
            if columns.value is None:
                self._note(f"the column {self._labels[self._value_at]!r:.80} was read as values.")
        elif columns.present is not None:
            raise InputError(
                f"{self._where}: {argument('present')} says which values count, but no column of "
                f"values was named. Give the label of that column with {option('value')}."
            )
        self._settle_conditions()
        item = self._labels[self._item_at or 0].casefold()
        self._split = preset.splits.get(item)
        own = columns.item is None or item in preset.items
        self._variants = [j for j in self._all(preset.variants) if own]

    def _note(self, note: str) -> None:
        if note not in self._found.notes:
            self._found.notes.append(note)

    def _all(self, labels: Collection[str]) -> list[int]:
        folded = [label.casefold() for label in self._labels]
        return [folded.index(label) for label in labels if label in folded]

    def _place(
        self, role: str, asked: str | None, known: tuple[str, ...], *, needed: bool
    ) -> int | None:
        """Return the position of the given column, or of a column with a known label.

        The result is None if there is no such column and none is needed.
        """
        if asked is not None:
            if asked not in self._labels:
                raise InputError(
                    f"{self._where}: {argument(role)} names {near(asked, self._labels)}, which is "
                    f"not among the {len(self._labels)} columns ({', '.join(self._labels[:8])})."
                )
            return self._labels.index(asked)
        places = self._all(known)
        if places or not needed:
            return places[0] if places else None
        raise InputError(
            f"{self._where}: the column with the {role}s was not found (columns: "
            f"{', '.join(self._labels[:8])}; expected one such as {', '.join(known[:4])}). Give "
            f"its label with {option(role)}."
        )

    def _settle_conditions(self) -> None:
        """Find the columns that decide whether a line counts."""
        columns, preset = self._columns, self._columns.preset
        self._conditions: list[tuple[int, frozenset[str], bool, str]] = []
        if columns.where is not None:
            for label, wanted in columns.where.items():
                place = self._place("where", label, (), needed=True)
                self._condition(place, wanted, counts=True)
            return
        for rules, counts in ((preset.where, True), (preset.unless, False)):
            for label, values in rules.items():
                for place in self._all([label]):
                    self._condition(place, values, counts=counts)

    def _condition(self, place: int | None, values: Collection[str], *, counts: bool) -> None:
        at = place or 0
        shown = ", ".join(values)
        verb = "other than" if counts else "is"
        reason = f"{self._labels[at]} {verb} {shown}"
        folded = frozenset(value.casefold() for value in values)
        self._conditions.append((at, folded, counts, reason))

    # Lines --------------------------------------------------------------------------------

    def read(self) -> None:
        """Read all lines below the header."""
        found, width = self._found, len(self._labels)
        file_id = None if self._sample_at is not None else self._id_from_name()
        code_of = CellCodes(self._value_code)
        code = PRESENT_CODE
        for line, row in self._bounded():
            if len(row) != width:
                raise InputError(
                    f"{self._name}, line {line}: found {len(row)} cells, expected {width} as in "
                    "the header. Correct the line; the file may be incomplete."
                )
            sample = file_id if self._sample_at is None else self._sample(row, line)
            if not self._counts(row):
                continue
            if self._value_at is not None:
                code = code_of[row[self._value_at]]
                if code == _UNFIT:
                    self._refuse_value(row[self._value_at], line)
            when = math.nan if self._date_at is None else self._date(row[self._date_at], line)
            for item in self._items(row, line):
                found.add(sample or 0, item, code, when)

    def _bounded(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows that are not blank; raise an error if there are too many."""
        most = ROWS.most
        filled = (numbered for numbered in self._rows if any(numbered[1]))
        for count, numbered in enumerate(filled, 1):
            if count > most:
                ROWS.refuse(count, self._name)
            yield numbered

    def _id_from_name(self) -> int:
        path = Path(self._path)
        while path.suffix.casefold() in _SUFFIXES:
            path = path.with_suffix("")
        samples = self._found.samples
        if path.name in samples:
            raise InputError(
                f"{self._name} has no column with sample ids, so its name is the sample id "
                f"{path.name!r:.80}, which another file also has. Rename one of the files."
            )
        self._note("the sample ids are the names of the files.")
        return samples.setdefault(path.name, len(samples))

    def _sample(self, row: list[str], line: int) -> int:
        label = row[self._sample_at or 0]
        if label.casefold() in MISSING:
            raise InputError(
                f"{self._name}, line {line}, column {self._labels[self._sample_at or 0]!r:.80}: "
                f"the sample has no id ({label!r}). Correct or remove the line."
            )
        samples = self._found.samples
        return samples.setdefault(label, len(samples))

    def _counts(self, row: list[str]) -> bool:
        for at, values, counts, reason in self._conditions:
            if (row[at].casefold() in values) is not counts:
                self._found.left_out[reason] += 1
                return False
        return True

    def _items(self, row: list[str], line: int) -> list[str]:
        cell = row[self._item_at or 0]
        if cell.casefold() in MISSING:
            if self._split is not None:  # the items are classes; some genes have no class
                self._found.left_out[f"{self._labels[self._item_at or 0]} is missing"] += 1
                return []
            raise InputError(
                f"{self._name}, line {line}, column {self._labels[self._item_at or 0]!r:.80}: the "
                f"line has no item ({cell!r}). Correct or remove the line."
            )
        if self._split is not None:
            return [part.strip() for part in cell.split(self._split) if part.strip()]
        for at in self._variants:
            if row[at].casefold() not in MISSING:
                return [f"{cell} {row[at]}"]
        return [cell]

    def _value_code(self, cell: str) -> int:
        folded = cell.strip().casefold()
        if folded in MISSING:
            return MISSING_CODE
        if self._columns.present is not None:
            wanted = {value.strip().casefold() for value in self._columns.present}
            return PRESENT_CODE if folded in wanted else ABSENT_CODE
        if folded in PRESENT:
            return PRESENT_CODE
        return ABSENT_CODE if folded in ABSENT else _UNFIT

    def _refuse_value(self, cell: str, line: int) -> None:
        raise InputError(
            f"{self._name}, line {line}, column {self._labels[self._value_at or 0]!r:.80}: found "
            f"{cell!r:.80}, expected 0 or 1, true or false, yes or no, or NA. If other values mean "
            f"that the item is present, name them, for example with {option('present', ['R'])}."
        )

    def _date(self, cell: str, line: int) -> float:
        """Return a date as a number of days, and a number unchanged; NaN if the date is missing."""
        if cell.casefold() in MISSING:
            return math.nan
        kind, number = _read_date(cell)
        if not kind or (self._found.dates_are and kind != self._found.dates_are):
            others = f" (earlier lines have {self._found.dates_are})" if kind else ""
            raise InputError(
                f"{self._name}, line {line}, column {self._labels[self._date_at or 0]!r:.80}: "
                f"found {cell!r:.80}{others}, expected a date such as 2021-03-28 or a number. Use "
                "the same kind in all lines, and NA where the date is unknown."
            )
        self._found.dates_are = kind
        return number


def _read_date(cell: str) -> tuple[str, float]:
    """Return ('dates', day number), ('numbers', value), or ('', NaN) if the cell is neither."""
    try:
        number = float(cell.replace("_", "?"))
        return ("numbers", number) if math.isfinite(number) else ("", math.nan)
    except ValueError:
        pass
    if not re.fullmatch(r"\d{4}-\d\d-\d\d([T ].*)?", cell):
        return "", math.nan
    try:
        if len(cell) == 10:
            return "dates", float(date.fromisoformat(cell).toordinal())
        moment = datetime.fromisoformat(cell)
    except ValueError:
        return "", math.nan
    seconds = moment.hour * 3600 + moment.minute * 60 + moment.second
    return "dates", moment.toordinal() + seconds / 86400
