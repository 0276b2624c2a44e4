"""Tables as files and on standard output: complete numbers, and labels that nothing runs."""

from __future__ import annotations

import io
import math
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    import pandas as pd

__all__ = ["guard", "records", "table_text", "write_table"]

# What a spreadsheet takes for a formula, in full width too, or lets slip into the next cell.
_LIVE = "=+-@\t\r\n＝＋－＠"


def guard(value: Any) -> Any:
    """Return a text so that a spreadsheet shows it and does not run it."""
    if isinstance(value, str) and value.lstrip()[:1] and value.lstrip()[0] in _LIVE:
        return f"'{value}"
    return value


def table_text(frame: pd.DataFrame, *, index: bool = True) -> str:
    """Return a table as CSV: every digit of a number, texts guarded against spreadsheets."""
    import pandas as pd

    safe = frame.copy()
    safe.columns = pd.Index([guard(str(name)) for name in frame.columns])
    for place, kind in enumerate(frame.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            safe.isetitem(place, [guard(value) for value in frame.iloc[:, place]])
    if index:
        safe.index = pd.Index([guard(label) for label in frame.index], name=frame.index.name)
    buffer = io.StringIO()
    safe.to_csv(buffer, index=index, lineterminator="\n")
    return buffer.getvalue()


def write_table(
    frame: pd.DataFrame, path: str | os.PathLike[str] | None, *, index: bool = True
) -> None:
    """Write a table to a file, whole or not at all, or to standard output."""
    from sequela._files import replacing

    text = table_text(frame, index=index)
    if path is None:
        sys.stdout.write(text)
        return
    with replacing(path) as file:
        file.write(text.encode())


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as plain values for JSON, with all their digits; no number is null."""
    table = frame.reset_index() if frame.index.name else frame
    return [
        {name: _plain(value) for name, value in zip(table.columns, row, strict=True)}
        for row in table.itertuples(index=False, name=None)
    ]


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()  # from NumPy
    return None if isinstance(value, float) and not math.isfinite(value) else value
