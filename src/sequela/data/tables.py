"""Read a table of samples and items from a file: CSV, TSV and similar formats, and Parquet.

If the content of the file allows only one answer, the reader finds out the separator of the cells,
and whether the first column has sample ids. Everything that is ambiguous raises an error. The error
names the option with which the user can decide.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sequela.data._label_checks import check_labels
from sequela.data._limits import COLUMNS, ROWS, refuse_size
from sequela.data._reading import read_strings
from sequela.data._table_columns import (
    ABSENT,
    MISSING,
    NOT_KNOWN,
    PRESENT,
    Asked,
    Columns,
    settle_columns,
)
from sequela.data._table_rows import MISSING_CODE, UNFIT, RowCheck, refuse_ragged
from sequela.data._text_files import (
    CellCodes,
    cell_rows,
    file_name,
    guess_separator,
    source_file,
    starts_with,
    stored_size,
    text_lines,
)
from sequela.data.importing import (
    LARGEST_TABLE,
    Draft,
    Dropped,
    Imported,
    Selection,
    SelectionKeywords,
    finish,
    refuse_too_large,
)
from sequela.support.errors import InputError
from sequela.support.keywords import build_options, check_keywords
from sequela.support.naming import argument, either, option

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator
    from typing import Unpack

    import numpy.typing as npt

    from sequela.data.dataset import Dataset

__all__ = ["TableKeywords", "read_table", "refuse_turned", "text_rows"]

_LOOKED_AT = 1 << 20  # the separator is guessed from this many characters at the start
_MANY_ITEMS = 50  # With fewer columns, no note says that the table may have its items in rows.
# A table with so many times more items than samples is not used to learn a model, unless the user
# has chosen the number of items. Real cohorts can have 100 samples and 500 genes.
_CLEARLY_TURNED = 10
_MEANINGS = (None, "keep", "absent", "refuse")


class TableKeywords(SelectionKeywords, total=False):
    """The ``**options`` of `read_table`: how text is read, and which items are selected."""

    weights: str | None
    separator: str | None
    encoding: str | None
    missing: str | None


def read_table(
    path: str | os.PathLike[str],
    *,
    samples: str | bool | None = None,
    items: Iterable[str] | None = None,
    times: str | None = None,
    header: bool | None = None,
    items_in_rows: bool = False,
    **options: Unpack[TableKeywords],
) -> Imported:
    r"""Read a table with samples in rows and items in columns.

    Cells are 0/1, true/false or yes/no. The file is a text file, with cells separated by commas,
    tabs, semicolons or spaces, or a Parquet file. A text file may be compressed with gzip, bzip2,
    xz or zip. NA, NaN, n/a or "missing" in a cell means that nobody looked for the item: the cell
    is missing, and the summary counts such cells. Other marks, such as an empty cell, may also mean
    that the item is absent. They are an error unless `missing` says what they mean.

    Parameters
    ----------
    path : str or path
        The file.
    samples : str or bool, optional
        The label of the column with the sample ids; True for the first column, False for none.
        Default: the first column if the header has no label for it (as in files of R), if its label
        is a usual one for ids, or if none of its cells could be a value of an item.
    items : iterable of str, optional
        The columns to read as items. Other columns are ignored. Default: all columns except ids,
        times and weights.
    times : str, optional
        The label of the column with observation times. A cell with NA, or an empty cell, means that
        the time is unknown.
    header : bool, optional
        Whether the first line has the labels. Default: yes, but a first line that looks like values
        raises an error.
    items_in_rows : bool
        Whether the table is transposed: items in rows, samples in columns.
    **options
        How text is read, and which items are selected:

        weights : str, optional
            The label of the column with the weights of the samples: numbers of at least 0.
        separator : str, optional
            The character between cells. Default: detected from the content.
        encoding : str, optional
            The encoding of the file. Default: UTF-8, unless a byte order mark says otherwise.
        missing : {"keep", "absent", "refuse"}, optional
            What a cell without a value means (empty, NA, ".", "-", "?", "none", ...): a missing
            cell, an absent item, or an error.
        merge : mapping or path of a JSON file, optional
            Maps a new name to the old names that it replaces. The new item is present if any of
            the old items is.
        most_frequent : int, optional
            Keep at most this number of items, the most frequent first.
        at_least : int, optional
            Keep items that are present in at least this number of samples.
        keep : iterable of str, optional
            Items (after merging) to keep even if they are rare.
        drop : iterable of str, optional
            Columns to leave out; they are not read. With `items_in_rows`: items to leave out.

    Returns
    -------
    Imported
        With `data` and `summary`.

    Raises
    ------
    InputError
        If the file cannot be read correctly; the message names file, line and column.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("sample,age,IDH1,TP53\ns1,40,1,0\ns2,51.5,1,1\n")
    >>> read = read_table(path, times="age")
    >>> read.data
    Dataset(2 samples x 2 items: 'IDH1', 'TP53'; 1 to 2 items per sample; 2 times known)
    """
    check_keywords(read_table, options, TableKeywords)
    selection = build_options(Selection, options)
    name = file_name(path)
    source = source_file(path)
    wanted = None if items is None else read_strings(items, "items")
    if times is not None and items_in_rows:
        raise InputError(
            f"{argument('times')} names a column, but with {option('items_in_rows', True)} columns "
            "are samples. Leave out one of these options."
        )
    weights = options.get("weights")
    if weights is not None and items_in_rows:
        raise InputError(
            f"{argument('weights')} names a column, but with {option('items_in_rows', True)} "
            "columns are samples. Leave out one of these options."
        )
    ignored = () if items_in_rows else selection.drop
    missing = _check_meaning(options.get("missing"))
    asked = Asked(samples, wanted, times, header, ignored, weights, missing)
    if starts_with(path, b"PAR1"):
        from sequela.data._parquet import parquet_rows

        rows, mark = parquet_rows(path), ","
        # A null in Parquet is not an empty text: it can only mean that the value is unknown.
        asked = replace(asked, header=True, missing=missing or "keep")
    else:
        rows, mark = text_rows(path, options.get("separator"), options.get("encoding"))
    try:
        draft = _read(rows, asked, name, decimal_comma=mark == ";")
    except MemoryError:
        raise MemoryError(
            f"the table {name} of {source.size:,} bytes does not fit into memory. Read fewer "
            f"columns with {option('items')}, or split the file"
        ) from None
    draft.files.append(source)
    if items_in_rows:
        draft = _turned(draft, wanted)
    else:  # the columns of `drop` were not read; see settle_columns
        selection = replace(selection, drop=())
        if wanted is None and selection.most_frequent is None and selection.at_least is None:
            draft.notes += _perhaps_turned(draft)
    return finish(draft, selection)


def _perhaps_turned(draft: Draft) -> list[str]:
    """Return a note if the table has so few rows that they may be the items."""
    n_samples, n_items = draft.values.shape
    if n_items < _MANY_ITEMS or n_items <= 2 * n_samples:
        return []
    return [
        f"{n_items} items, but only {n_samples} samples. If each row of the table is an item, use "
        f"{option('items_in_rows', True)}; otherwise choose fewer items, for example with "
        f"{option('most_frequent', 20)}."
    ]


def refuse_turned(data: Dataset, path: str | os.PathLike[str]) -> None:
    """Raise an error if the rows of a table are almost certainly items, not samples.

    Commands that learn a model call this function before they compute anything, because a fit to
    hundreds of items takes long. The error gives a command that transposes the table.
    """
    n_samples, n_items = data.n_samples, data.n_items
    if n_items < _MANY_ITEMS or n_items < _CLEARLY_TURNED * n_samples:
        return
    place = str(path)
    made = "table.csv" if Path(place).name != "table.csv" else "samples.csv"
    raise InputError(
        f"{file_name(path)} has {n_items} items, but only {n_samples} samples. So each row of the "
        "table seems to be an item, and each column a sample. To turn the table, run "
        f"`sequela import --table {shlex.quote(place)} --items-in-rows -o {made}`, and then use "
        f"{made}. If the rows are samples, choose how many items to keep, for example "
        f"{option('most_frequent', 20)} ({option('most_frequent', n_items)} keeps all)"
    )


# Lines and columns ------------------------------------------------------------------------


def text_rows(
    path: str | os.PathLike[str], separator: str | None, encoding: str | None
) -> tuple[Iterator[tuple[int, list[str]]], str]:
    """Return the rows with their line numbers, and the separator of their cells."""
    name = file_name(path)
    lines = text_lines(path, encoding)
    first, begin = 1, next(lines, None)
    while begin is not None:
        # Excel can name the separator in the first line, such as sep=;
        stated = re.fullmatch(r'"?sep=(.)"?', begin.strip())
        if stated:
            separator = stated[1] if separator is None else separator
        # '# text' and '##text' are comments; '#sample' is a header as some programs write it.
        elif begin.strip("# \t") and not begin.startswith(("##", "# ")):
            break
        first, begin = first + 1, next(lines, None)
    if begin is None:
        raise InputError(f"{name} is empty; expected a header and one line per sample.")
    marks = "\t;, " if separator is None else str(separator)
    COLUMNS.refuse(max(begin.count(mark) for mark in marks or ",") + 1, f"{name}, line {first}")
    sample = [begin.removeprefix("#")]
    size = len(begin)
    for line in lines:
        sample.append(line)
        size += len(line)
        if len(sample) > 20 or size > _LOOKED_AT:
            break
    refuse_size(stored_size(path), sample, name)
    if separator is None:
        separator = guess_separator(sample)
    elif not isinstance(separator, str) or len(separator) != 1 or separator in '"\n\r':
        raise InputError(f"separator must be one character, such as ';'; found {separator!r:.80}.")
    return cell_rows(chain(sample, lines), separator, name, first), separator


# Cells ------------------------------------------------------------------------------------


def _read(
    rows: Iterator[tuple[int, list[str]]], asked: Asked, name: str, *, decimal_comma: bool
) -> Draft:
    first_line, labels = next(rows)
    where = f"{name}, line {first_line}"
    # The first row shows whether a label is missing, and twenty rows show whether the first column
    # can only hold ids.
    start = list(islice(rows, 20))
    if asked.header is False:
        start.insert(0, (first_line, labels))
        labels = [str(j) for j in range(len(labels))]
    body = [(line, row) for line, row in start if any(row) or len(row) > 1]
    if not body:
        raise InputError(f"{name} has one line only; expected a header and one line per sample.")
    left_out = len(body[0][1]) == len(labels) + 1 and asked.header is not False
    if left_out:
        labels = ["", *labels]
    if asked.header is None:
        _refuse_cells_as_labels(labels, where)
    unnamed = 0 if labels[0] else 1  # the column of ids needs no label
    notes = check_labels(labels[unnamed:], "column", where, first=1 + unnamed)
    if left_out:
        notes.append("the header does not label the first column, which was read as sample ids.")
    complete = [row for _, row in body if len(row) == len(labels)]
    if not complete:
        refuse_ragged(body, len(labels), name)
    columns = settle_columns(labels, complete, asked, where, left_out=left_out)
    if not labels[0] and 0 in columns.items:
        raise InputError(
            f"{where}: the first column has no label. Label it, or use "
            f"{option('samples', True)} if it holds the sample ids."
        )
    columns.missing = asked.missing
    draft = _collect(chain(start, rows), columns, name, decimal_comma=decimal_comma)
    draft.notes = notes + columns.notes + draft.notes
    special = {columns.ids, columns.time, columns.weight, columns.index}
    unread = [j for j in range(len(labels)) if j not in special]
    unread = sorted(set(unread) - set(columns.items))
    dropped = [labels[j] for j in unread if labels[j] in asked.ignored]
    others = [labels[j] for j in unread if labels[j] not in asked.ignored]
    if dropped:
        draft.dropped_items.append(
            Dropped(f"because of {either('drop', '--drop')}", tuple(dropped))
        )
    if others:
        draft.dropped_items.append(Dropped(f"not among {argument('items')}", tuple(others)))
    return draft


def _refuse_cells_as_labels(labels: list[str], where: str) -> None:
    # If a row of values were read as labels, its sample would be lost silently. The first cell is
    # not tested, because it may be a sample id.
    if all(label.casefold() in PRESENT | ABSENT for label in labels[1:] or labels):
        raise InputError(
            f"{where}: the first line looks like values, not labels. Use "
            f"{option('header', False)} if the file has no labels, or {option('header', True)} if "
            "these are the labels."
        )


def _coding(missing: str | None) -> Callable[[str], int]:
    """Return a function from a cell to its code; `missing` says what cells without a value mean."""
    lacking: set[str] = set()
    if missing in (None, "keep"):
        lacking = NOT_KNOWN if missing is None else MISSING
    absent = ABSENT | MISSING if missing == "absent" else ABSENT

    def code(cell: str) -> int:
        folded = cell.casefold()
        if folded in PRESENT:
            return 1
        return 0 if folded in absent else MISSING_CODE if folded in lacking else UNFIT

    return code


def _check_meaning(missing: str | None) -> str | None:
    if missing not in _MEANINGS:
        raise InputError(f"missing must be 'keep', 'absent' or 'refuse'; found {missing!r:.80}.")
    return missing


def _collect(
    rows: Iterator[tuple[int, list[str]]], columns: Columns, name: str, *, decimal_comma: bool
) -> Draft:
    """Read all rows. If there are mistakes, one error shows an example of each kind."""
    width, picked = len(columns.labels), columns.items
    whole = picked == list(range(picked[0], width))  # a slice is faster than a list of positions
    codes, memory = bytearray(), CellCodes(_coding(columns.missing))
    most = min(ROWS.most, LARGEST_TABLE // len(picked))
    check = RowCheck(columns, name, decimal_comma=decimal_comma)
    ids: list[str] = []
    times: list[float] = []
    weights: list[float] = []
    blank = None
    lines: list[int] = []
    for line, row in rows:
        if not any(row) and len(row) <= 1:
            blank = blank or line
            continue
        if not check.row(line, row, blank):
            continue
        cells = row[picked[0] :] if whole else [row[j] for j in picked]
        values = bytes(map(memory.__getitem__, cells))
        if max(values) > 1:
            check.cells(values, line, row)
        codes += values
        lines.append(line)
        if len(lines) > most:
            _refuse_size(len(lines), len(picked), name)
        if columns.ids is not None:
            ids.append(row[columns.ids])
        if columns.time is not None:
            times.append(check.time(row[columns.time], line))
        weights += check.weights(line, row)
        if check.problems.many:
            break
    if columns.ids is None:
        ids = [str(i) for i in range(len(lines))]
    notes = check.ids(ids, lines)
    check.problems.refuse()
    table = np.frombuffer(codes, dtype=np.uint8).reshape(len(lines), len(picked))
    missing = table == MISSING_CODE
    return Draft(
        kind=f"the table {name}",
        samples=ids,
        items=[columns.labels[j] for j in picked],
        values=table == 1,
        unprofiled=missing if missing.any() else None,
        times=np.array(times) if columns.time is not None else None,
        weights=np.array(weights) if columns.weight is not None else None,
        notes=notes,
    )


def _refuse_size(n_rows: int, n_items: int, name: str) -> None:
    """Refuse a table with too many rows or too many cells."""
    ROWS.refuse(n_rows, name)
    refuse_too_large(n_rows, n_items, name)


def _turned(draft: Draft, wanted: tuple[str, ...] | None) -> Draft:
    """Transpose the table. Refuse `items=`, which chooses columns, because these are samples."""
    values: npt.NDArray[np.bool_] = np.ascontiguousarray(draft.values.T)
    if wanted is not None:
        raise InputError(
            f"{argument('items')} chooses columns; with {option('items_in_rows', True)} use "
            f"{option('keep')} and {option('drop')}."
        )
    return Draft(
        kind=draft.kind,
        samples=draft.items,
        items=draft.samples,
        values=values,
        unprofiled=None if draft.unprofiled is None else draft.unprofiled.T.copy(),
        files=draft.files,
        notes=draft.notes,
    )
