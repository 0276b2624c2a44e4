"""Show the progress of long work: a bar in a terminal or notebook, or plain lines in a log."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from sequela.support.labels import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

__all__ = [
    "Ticker", "WorkProgress", "bar_is_shown", "hide_bar", "lines_in_log", "no_progress",
    "say_line", "show_bar", "shows_lines", "somebody_watches",
]  # fmt: skip

# If work takes fewer seconds than this, no progress is shown.
_PATIENCE = 2.0
# Seconds between two lines in a log.
_BETWEEN_LINES = 10.0

_lines: ContextVar[bool] = ContextVar("lines", default=False)
_hidden: ContextVar[bool] = ContextVar("hidden", default=False)

# The bars on the screen. The last bar of the list is on top, and lines are printed above it.
_bars: list[Any] = []


@contextlib.contextmanager
def lines_in_log(*, show: bool = True) -> Iterator[None]:
    """If there is no terminal, write progress as lines to standard error inside this block.

    With ``show=False``, no lines are written.
    """
    token = _lines.set(show)
    try:
        yield
    finally:
        _lines.reset(token)


@contextlib.contextmanager
def no_progress() -> Iterator[None]:
    """Show no progress inside this block, because the caller shows the progress of many blocks."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


def somebody_watches() -> bool:
    """Tell whether standard error is a terminal, or a notebook that can show a bar."""
    return sys.stderr.isatty() or (_in_notebook() and _has_widgets())


def shows_lines() -> bool:
    """Tell whether progress is written as lines: inside `lines_in_log`, or in some notebooks.

    A notebook shows a bar if ipywidgets is installed. Without ipywidgets it would show the control
    characters of the bar, so lines are written instead.
    """
    return not somebody_watches() and (_lines.get() or _in_notebook())


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


def _has_widgets() -> bool:
    return importlib.util.find_spec("ipywidgets") is not None


def show_bar(*columns: Any) -> Any:
    """Show a progress bar of the package rich on standard error, and return the bar.

    `columns` are the parts of the bar, as in `rich.progress.Progress`. Until `hide_bar` removes the
    bar, `say_line` prints lines above it.
    """
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.start()
    _bars.append(bar)
    return bar


def hide_bar(bar: Any) -> None:
    """Remove a bar from the screen."""
    if bar in _bars:
        _bars.remove(bar)
    bar.stop()


def bar_is_shown() -> bool:
    """Tell whether there is a bar on the screen."""
    return bool(_bars)


def say_line(text: str) -> None:
    """Write a line to standard error, above the bar if there is one."""
    text = visible(text)  # escape control characters, because the text may quote a file
    if _bars:
        _bars[-1].console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)
        return
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


class Ticker:
    """Calls a function after two seconds, and then at regular intervals until it is stopped.

    Parameters
    ----------
    act : function
        The function. It is called in its own thread, so that it is also called during a single long
        piece of work.
    between : float or None
        Seconds between two calls. None means that there is only one call.
    """

    def __init__(self, act: Callable[[], None], between: float | None = None) -> None:
        self._act = act
        self._between = between
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(_PATIENCE,), daemon=True)
        self._thread.start()

    def _run(self, first: float) -> None:
        wait: float | None = first
        while wait is not None and not self._over.wait(min(wait, threading.TIMEOUT_MAX)):
            self._act()
            wait = self._between

    def stop(self) -> None:
        """Stop the calls: no call begins after this method was called."""
        self._over.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()


class WorkProgress:
    """Counts the pieces of work that are done, and shows a bar after two seconds.

    If `shows_lines` returns True, a line is written instead of the bar: after two seconds, and then
    every ten seconds. The bar or the line also appears while the first piece is running.

    Parameters
    ----------
    description : str
        Name of the work; if it is empty, no progress is shown.
    total : int
        Number of pieces.
    """

    def __init__(self, description: str, total: int) -> None:
        self._description = visible(description, one_line=True)  # may name a file
        self._total = total
        shown = bool(description) and not _hidden.get()
        self._watched = shown and somebody_watches()
        self._lines = shown and shows_lines()
        self._started = time.monotonic()
        self._done = 0
        self._lock = threading.Lock()
        self._bar: Any = None
        self._task: Any = None
        self._ticker: Ticker | None = None

    def __enter__(self) -> WorkProgress:
        if self._watched:
            self._ticker = Ticker(self._begin)
        elif self._lines:
            self._ticker = Ticker(self._write_line, _BETWEEN_LINES)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ticker is not None:
            self._ticker.stop()
        if self._bar is not None:
            hide_bar(self._bar)

    def advance(self) -> None:
        """Count one more piece as done."""
        self.reach(self._done + 1)

    def reach(self, done: int) -> None:
        """Set the number of pieces that are done."""
        self._done = done
        late = time.monotonic() - self._started >= _PATIENCE
        if self._watched and late:
            self._begin()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)

    def _begin(self) -> None:
        """Show the bar, if it is not shown yet."""
        with self._lock:
            if self._bar is not None:
                return
            from rich.progress import (
                BarColumn,
                TaskProgressColumn,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            bar = show_bar(
                TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(),
                TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
            )  # fmt: skip
            self._task = bar.add_task(self._description, total=self._total, completed=self._done)
            self._bar = bar

    def _write_line(self) -> None:
        say_line(f"{self._description}: {self._done:,} of {self._total:,} done")
