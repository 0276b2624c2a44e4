"""Collect the mistakes of a table, so that one message shows all kinds of mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sequela.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["Problems"]

_MOST_KINDS = 8  # number of kinds of mistakes that are shown; more would not fit on a screen
_MOST_FOUND = 1000  # after this number of mistakes, the rest of the table is not read


class Problems:
    """The mistakes of a table: the first mistake of each kind, and the number of mistakes per kind.

    Parameters
    ----------
    name : str
        Name of the table, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._first: dict[Hashable, str] = {}
        self._count: dict[Hashable, int] = {}
        self._total = 0

    @property
    def many(self) -> bool:
        """Whether there are so many mistakes that the table need not be read to its end."""
        return self._total >= _MOST_FOUND

    def add(self, kind: Hashable, message: str) -> None:
        """Add a mistake. Of all mistakes with the same `kind`, only the first message is shown."""
        self._first.setdefault(kind, message)
        self._count[kind] = self._count.get(kind, 0) + 1
        self._total += 1

    def refuse(self) -> None:
        """Raise an error that shows the mistakes, if there are any."""
        shown = [self._text(kind) for kind in list(self._first)[:_MOST_KINDS]]
        if len(shown) == 1:
            raise InputError(shown[0])
        if shown:
            left = len(self._first) - len(shown)
            lines = [f"{self._name} has {len(self._first)} kinds of mistakes:"]
            # only the first line of the message names the table
            starts = (f"{self._name}, ", f"{self._name}: ")
            lines += [f"- {_without(text, starts)}" for text in shown]
            lines += [f"- and {left} more kinds"] if left else []
            raise InputError("\n".join(lines))

    def _text(self, kind: Hashable) -> str:
        more = self._count[kind] - 1
        if not more:
            return self._first[kind]
        least = "at least " if self.many else ""
        return f"{self._first[kind]} ({least}{more:,} more like this.)"


def _without(text: str, starts: tuple[str, ...]) -> str:
    for start in starts:
        text = text.removeprefix(start)
    return text
