"""A bar for work that takes more than a moment, where somebody watches; plain lines in a log."""

from __future__ import annotations

import contextlib
import sys
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from sequela.support.labels import visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

__all__ = ["WorkProgress", "lines_in_log", "no_progress", "somebody_watches"]

# Shorter work shows nothing.
_PATIENCE = 2.0
# Seconds between two lines in a log.
_BETWEEN_LINES = 10.0

_lines: ContextVar[bool] = ContextVar("lines", default=False)
_hidden: ContextVar[bool] = ContextVar("hidden", default=False)


@contextlib.contextmanager
def lines_in_log(*, show: bool = True) -> Iterator[None]:
    """Show progress as plain lines on standard error inside this block, if nobody watches."""
    token = _lines.set(show)
    try:
        yield
    finally:
        _lines.reset(token)


@contextlib.contextmanager
def no_progress() -> Iterator[None]:
    """Show no progress inside this block: it is a piece of work that is counted as a whole."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


def somebody_watches() -> bool:
    """Tell whether this is a terminal or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class WorkProgress:
    """Counts pieces of work that are done; shows a bar once they have taken two seconds.

    Inside `lines_in_log` it writes a line every ten seconds instead, where nobody watches.

    Parameters
    ----------
    description : str
        What is being done; an empty one shows nothing.
    total : int
        How many pieces.
    """

    def __init__(self, description: str, total: int) -> None:
        self._description = visible(description, one_line=True)  # may name a file
        self._total = total
        shown = bool(description) and not _hidden.get()
        self._watched = shown and somebody_watches()
        self._lines = shown and not self._watched and _lines.get()
        self._started = time.monotonic()
        self._last_line = self._started
        self._done = 0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> WorkProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self) -> None:
        """One more piece is done."""
        self.reach(self._done + 1)

    def reach(self, done: int) -> None:
        """So many pieces are done."""
        self._done = done
        if self._lines:
            self._write_line()
        if not self._watched:
            return
        if self._bar is None:
            if time.monotonic() - self._started < _PATIENCE:
                return
            from rich.console import Console
            from rich.markup import escape
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(escape(self._description), total=self._total)
            self._bar.start()
        self._bar.update(self._task, completed=self._done)

    def _write_line(self) -> None:
        now = time.monotonic()
        if now - self._last_line < _BETWEEN_LINES:
            return
        self._last_line = now
        sys.stderr.write(f"{self._description}: {self._done:,} of {self._total:,} done\n")
        sys.stderr.flush()
