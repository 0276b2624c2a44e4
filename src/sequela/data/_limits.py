"""Limits of the size of files, which environment variables can change.

A file that is far larger than any real table was probably given by mistake. Without limits, it
would be read for minutes, or until the memory is full, before an error is raised. Limits are
checked as early as possible: from the size of the file, from its first lines, or while it is read.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from sequela.support.errors import InputError

__all__ = [
    "BLANK_LIMIT", "COLUMNS", "MERGE_SIZE", "ROWS", "Limit", "refuse_lines", "refuse_size",
]  # fmt: skip


@dataclass(frozen=True)
class Limit:
    """A limit, and the environment variable that changes it."""

    what: str
    default: int
    variable: str

    @property
    def most(self) -> int:
        """The largest number that is allowed."""
        given = os.environ.get(self.variable, "").strip()
        if not given:
            return self.default
        if not given.isdecimal() or int(given) < 1:
            raise InputError(
                f"the environment variable {self.variable} is {given!r:.60}; expected the largest "
                f"number of {self.what}, such as {self.default}"
            )
        return int(given)

    def refuse(self, count: int, where: str, *, about: bool = False) -> None:
        """Raise an error if `count` is larger than the limit.

        The message begins with `where`, the name of the file. If `about` is True, `count` is only
        an estimate.

        Examples
        --------
        >>> COLUMNS.refuse(1000, "'table.csv'")
        """
        if count > self.most:
            raise InputError(
                f"{where} has {'about ' if about else 'more than '}"
                f"{count if about else self.most:,} {self.what}; expected at most {self.most:,}. "
                f"Is it a table? To read it anyway, set the environment variable {self.variable} "
                "to a larger number."
            )


ROWS = Limit("rows", 20_000_000, "SEQUELA_MAX_ROWS")
COLUMNS = Limit("columns", 2_000_000, "SEQUELA_MAX_COLUMNS")
MERGE_SIZE = Limit("bytes", 1 << 24, "SEQUELA_MAX_MERGE_BYTES")
# Bytes of consecutive blank lines.
BLANK_LIMIT = Limit("bytes of consecutive blank lines", 1 << 22, "SEQUELA_MAX_BLANK_BYTES")


def refuse_size(size: int, first: list[str], name: str) -> None:
    """Raise an error if a file of `size` bytes probably has too many rows.

    The number of rows is estimated from the length of the first lines.
    """
    rows = size * len(first) // max(sum(map(len, first)) + len(first), 1)
    if rows > 2 * ROWS.most:  # the other lines may be longer than the first lines
        ROWS.refuse(rows, name, about=True)


def refuse_lines(lines: int, name: str) -> None:
    """Raise an error if a file has more lines than twice the limit of rows.

    Comments also count as lines, so there may be far fewer rows than lines. Therefore this check
    ignores a limit of rows that is below the default.
    """
    if lines > 2 * max(ROWS.default, ROWS.most):
        ROWS.refuse(lines, name, about=True)
