"""A bar for work that takes more than a moment, where somebody watches; silent elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["WorkProgress", "somebody_watches"]

# Shorter work shows nothing.
_PATIENCE = 2.0


def somebody_watches() -> bool:
    """Tell whether this is a terminal or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class WorkProgress:
    """Counts pieces of work that are done; shows a bar once they have taken two seconds.

    Parameters
    ----------
    description : str
        What is being done; an empty one shows nothing.
    total : int
        How many pieces.
    """

    def __init__(self, description: str, total: int) -> None:
        self._description = description
        self._total = total
        self._watched = bool(description) and somebody_watches()
        self._started = time.monotonic()
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
        if not self._watched:
            return
        if self._bar is None:
            if time.monotonic() - self._started < _PATIENCE:
                return
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._description, total=self._total)
            self._bar.start()
        self._bar.update(self._task, completed=self._done)
