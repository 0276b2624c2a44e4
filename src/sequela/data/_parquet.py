"""Read Parquet files as rows of text, so that they are checked like every other table."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sequela.data._limits import COLUMNS, ROWS
from sequela.data._text_files import file_name
from sequela.support.errors import InputError
from sequela.support.labels import compose

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

__all__ = ["parquet_rows"]


def parquet_rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the labels, then the cells of each row, numbered like the lines of a text file."""
    name = file_name(path)
    try:
        # pyarrow is an optional package without type hints.
        pq = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(
            f"{name} is a Parquet file, which needs pyarrow: pip install sequela[parquet]"
        ) from None
    try:
        about = pq.ParquetFile(path).metadata
        COLUMNS.refuse(about.num_columns, name)
        ROWS.refuse(about.num_rows, name)
        table = pq.read_table(path)
        labels = [compose(str(label).strip()) for label in table.column_names]
        # pandas stores the index of a table in the last column of a Parquet file. Here it becomes
        # the first column, as in text files.
        index = [j for j, label in enumerate(labels) if label.startswith("__index_level_")]
        order = index + [j for j in range(len(labels)) if j not in index]
        columns = [table.column(j).to_pylist() for j in order]
    except (InputError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - the errors of a damaged file vary
        raise InputError(
            f"{name} cannot be read as Parquet ({str(error).splitlines()[0]:.120}); it is "
            "incomplete or damaged. Copy it again."
        ) from None
    yield 1, [labels[j] for j in order]
    for line, row in enumerate(zip(*columns, strict=True), 2):
        try:
            yield line, [_text(cell) for cell in row]
        except (TypeError, UnicodeDecodeError):
            at = next(j for j, cell in enumerate(row) if not _is_text(cell))
            raise InputError(
                f"{name}, row {line - 1}, column {labels[order[at]]!r}: found {row[at]!r:.60}, "
                "expected text or a number. Store the column with another type."
            ) from None


def _text(cell: Any) -> str:
    """Return a cell as text; some programs store text as bytes."""
    if cell is None:
        return ""
    if isinstance(cell, bytes):
        cell = cell.decode()
    elif isinstance(cell, list | tuple | dict):
        raise TypeError
    return compose(str(cell).strip())


def _is_text(cell: Any) -> bool:
    try:
        _text(cell)
    except (TypeError, UnicodeDecodeError):
        return False
    return True
