"""Show the progress of a fit: a bar in a terminal or a notebook, or plain lines in a log."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from sequela.support.labels import visible
from sequela.support.progress import (
    Ticker,
    hide_bar,
    say_line,
    show_bar,
    shows_lines,
    somebody_watches,
)

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["FitProgress", "announce_preparation"]

# Seconds between two lines in a log.
_BETWEEN_LINES = 5.0
# If there are more cells (samples times items), preparing the data takes a second or more.
_MANY_CELLS = 300_000


def announce_preparation(show: bool | str | None, n_cells: int) -> None:
    """Write a line before a slow preparation of the data, if `show` is "lines".

    Parameters
    ----------
    show : bool, "lines" or None
        As in `FitProgress`.
    n_cells : int
        Number of samples times number of items.
    """
    if show == "lines" and n_cells >= _MANY_CELLS:
        say_line("fit: preparing the data")


class FitProgress:
    """A bar that fills as the KKT residual falls from its first value to the tolerance.

    Parameters
    ----------
    show : bool, "lines" or None
        True: show a bar. "lines": write a line to standard error every few seconds, for batch logs.
        None: show a bar in a terminal or a notebook only.
    tol : float
        The KKT residual at which the bar is full.
    long : bool
        Whether the fit is expected to take long. If so, the first line is written immediately.
    """

    def __init__(self, show: bool | str | None, tol: float, *, long: bool = False) -> None:
        self._lines = show == "lines" or (show is None and shows_lines())
        self._show = somebody_watches() if show is None else bool(show) and not self._lines
        self._ticker: Ticker | None = None
        self._description = ""
        self._last_line = time.monotonic()
        self._written = False
        self._tol = tol
        self._long = long
        self._bar: Any = None
        self._task: Any = None
        self._first = 0.0

    def __enter__(self) -> FitProgress:
        if self._show:
            from rich.progress import (
                BarColumn,
                SpinnerColumn,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            self._bar = show_bar(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[state]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
        elif self._lines:
            # Write a line even if the first step or the compilation takes long.
            self._ticker = Ticker(self._first_line)
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

    def _first_line(self) -> None:
        if not self._written:
            self._write("begins")

    def begin(self, description: str) -> None:
        """Start a new bar."""
        self._first = 0.0
        self._description = visible(description, one_line=True)
        if self._lines and self._long:
            self._write("begins")
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(description, total=1.0, state="")

    def _write(self, state: str) -> None:
        self._last_line = time.monotonic()
        self._written = True
        say_line(f"{self._description}: {state}")

    def update(self, objective: float, residual: float, interactions: int) -> None:
        """Show the current objective, KKT residual and number of interactions."""
        if not self._lines and self._bar is None:
            return
        state = f"objective {objective:.6g}, residual {residual:.1e}, {interactions} interactions"
        if self._lines and time.monotonic() - self._last_line >= _BETWEEN_LINES:
            self._write(state)
        if self._bar is None:
            return
        done = 0.0
        if math.isfinite(residual):
            self._first = max(self._first, residual)
            span = math.log(max(self._first / self._tol, 1.0 + 1e-9))
            done = math.log(max(self._first / max(residual, 1e-300), 1.0)) / span
        self._bar.update(
            self._task,
            completed=min(max(done, 0.0), 1.0),
            state=state,
        )
