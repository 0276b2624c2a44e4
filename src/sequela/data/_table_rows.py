"""Check the rows of a table: number of cells, values, times, weights and sample ids."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sequela.data._label_checks import check_labels, composed_hint
from sequela.data._table_columns import ABSENT, MISSING, PRESENT, Columns, is_index
from sequela.data._table_problems import Problems
from sequela.data._weights import read_weight
from sequela.support.errors import InputError
from sequela.support.naming import has_option, option

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MISSING_CODE", "UNFIT", "RowCheck", "refuse_ragged"]

# The codes of cells whose value is neither 0 nor 1.
MISSING_CODE, UNFIT = 2, 3


def refuse_ragged(rows: Iterable[tuple[int, list[str]]], width: int, name: str) -> None:
    """Raise an error for the first row whose number of cells is not `width`."""
    for line, row in rows:
        if len(row) != width:
            raise InputError(_wrong_width(line, row, width, name))


def _wrong_width(line: int, row: list[str], width: int, name: str) -> str:
    return (
        f"{name}, line {line}: found {_count(row)}, expected {width} as in the first "
        f"line{_other_separator(row, width)}. Correct the line; the file may be incomplete."
    )


def _count(row: list[str]) -> str:
    """Return the number of cells as text; if there is only one cell, its content is added."""
    return f"1 cell ({row[0]!r:.40})" if len(row) == 1 else f"{len(row)} cells"


def _other_separator(row: list[str], width: int) -> str:
    for mark, word in (("\t", "tabs"), (",", "commas"), (";", "semicolons"), (" ", "spaces")):
        if len(row) < width and sum(cell.count(mark) for cell in row) >= width - len(row):
            return f" (this line seems to be separated by {word})"
    return ""


class RowCheck:
    """Checks the rows of a table, and collects their mistakes in the attribute `problems`.

    Parameters
    ----------
    columns : Columns
        The roles of the columns.
    name : str
        Name of the table, for messages.
    decimal_comma : bool
        Whether numbers may have a decimal comma.
    """

    def __init__(self, columns: Columns, name: str, *, decimal_comma: bool) -> None:
        self._columns = columns
        self._name = name
        self._decimal_comma = decimal_comma
        self.problems = Problems(name)

    def row(self, line: int, row: list[str], blank: int | None) -> bool:
        """Check the number of cells of a row; return whether it is right.

        Mistakes are added to `problems`. `blank` is the line number of the first blank line above
        the row, or None. In a table of one column, such a line is also a mistake, because it is a
        sample without a value.
        """
        labels = self._columns.labels
        if blank is not None and len(labels) == 1:
            self.problems.add(
                ("blank", blank),
                f"{self._name}, line {blank}: no value (column {labels[0]!r:.80}), so all cells "
                "of the sample are missing. Remove the sample, or fill in the value.",
            )
        if len(row) == len(labels):
            return True
        self.problems.add("cells", _wrong_width(line, row, len(labels), self._name))
        return False

    def cells(self, values: bytes, line: int, row: list[str]) -> None:
        """Check a row in which cells are neither 0 nor 1; `values` has the codes of its items."""
        for place, value in enumerate(values):
            if value == UNFIT:
                self._cell(line, row, self._columns.items[place])
        if not values.strip(bytes([MISSING_CODE])):
            self.problems.add(
                "empty",
                f"{self._name}, line {line}{self._sample(row)}: all cells are missing, so the "
                "sample has no information. Remove it, or fill in the known cells.",
            )

    def _sample(self, row: list[str]) -> str:
        ids = self._columns.ids
        return "" if ids is None else f", sample {row[ids]!r:.80}"

    def _cell(self, line: int, row: list[str], j: int) -> None:
        cell, label = row[j], self._columns.labels[j]
        where = f"{self._name}, line {line}{self._sample(row)}, column {label!r:.80}"
        if cell.casefold() in MISSING:
            self.problems.add(
                "missing",
                f"{where}: the value is missing ({cell!r}). Say what that means: "
                f"{option('missing', 'keep')} if nobody looked for the item, "
                f"{option('missing', 'absent')} if the sample does not have it. Or fill in the "
                f"value, or leave out the item with {option('drop', [label])}.",
            )
            return
        remedy = (
            "Write 0 or 1, or NA if it is unknown; if the column is not an item, use "
            f"{option('drop', [label])}."
        )
        if label.casefold() in {"time", "times", "age"}:
            if has_option("times"):
                remedy = (
                    f"If it is the observation time, use {option('times', label)}, otherwise "
                    f"{option('drop', [label])}."
                )
        elif j == 0 and self._columns.ids is None:
            remedy = f"If the column holds sample ids, use {option('samples', label)}."
        elif any(mark in cell for mark in "\t;, "):
            remedy = (
                "If the cells are not split correctly, give the character between them with "
                f"{option('separator')}."
            )
        self.problems.add(
            ("cell", j),
            f"{where}: found {cell!r:.80}, expected 0 or 1 (or true or false, "
            f"yes or no). {remedy}{self._about_index(row)}",
        )

    def _about_index(self, row: list[str]) -> str:
        """Return a hint if the column of ids may be the index of a pandas table."""
        ids = self._columns.ids
        if ids is None or not is_index(self._columns.labels[ids], [row[ids]]):
            return ""
        return (
            f" The column of sample ids ({self._columns.labels[ids]!r}) looks like the index of a "
            "pandas table; write the table with to_csv(..., index=False)."
        )

    def time(self, cell: str, line: int) -> float:
        """Return the observation time in a cell; NaN if it is unknown."""
        if cell.casefold() in MISSING:
            return math.nan
        try:
            # Python reads 1_000 as a number, but in a table it is a mistake.
            text = cell.replace(",", ".") if self._decimal_comma else cell
            number = float(text.replace("_", "?"))
        except ValueError:
            number = -1.0
        if 0 <= number < math.inf:
            return number
        label = self._columns.labels[self._columns.time or 0]
        self.problems.add(
            "time",
            f"{self._name}, line {line}, column {label!r:.80}: found {cell!r:.80}, "
            "expected a time of at least 0. Write NA where the time is unknown.",
        )
        return math.nan

    def weights(self, line: int, row: list[str]) -> list[float]:
        """Return a list with the weight of a row; empty if there is no column of weights."""
        at = self._columns.weight
        if at is None:
            return []
        where = f"{self._name}, line {line}, column {self._columns.labels[at]!r:.80}"
        try:
            return [read_weight(row[at], where, decimal_comma=self._decimal_comma)]
        except InputError as error:
            self.problems.add("weight", str(error))
            return [0.0]

    def _no_ids(self, ids: list[str]) -> str:
        """Return the advice to read the column of ids as an item, if its cells allow this."""
        if not all(label.casefold() in PRESENT | ABSENT for label in ids):
            return ""
        return f", or use {option('samples', False)} if this column has no ids"

    def ids(self, ids: list[str], lines: list[int]) -> list[str]:
        """Check that all samples have different ids; return notes about them."""
        if len(set(ids)) < len(ids) or not all(ids):
            seen: dict[str, int] = {}
            for label, line in zip(ids, lines, strict=True):
                if not label:
                    self.problems.add(
                        "no id",
                        f"{self._name}, line {line}: the sample has no id. Give it one.",
                    )
                elif label in seen:
                    self.problems.add(
                        "same id",
                        f"{self._name}: the sample {label!r:.80} occurs twice, in lines "
                        f"{seen[label]} and {line}{composed_hint(label)}. Rename or remove "
                        f"one{self._no_ids(ids)}.",
                    )
                seen[label] = line
            return []
        return check_labels(ids, "sample", self._name)
