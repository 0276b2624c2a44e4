"""The first Ctrl-C ends a long fit in good order; the second ends it at once."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["StopRequest", "graceful_stop", "whole_or_nothing"]

_log = logging.getLogger("sequela")

# What a terminal, a batch system at its time limit, and a user of a batch system send.
_SIGNALS = ("SIGINT", "SIGTERM", "SIGUSR1")


_at_once: contextvars.ContextVar[bool] = contextvars.ContextVar("at_once", default=False)


@contextlib.contextmanager
def whole_or_nothing() -> Iterator[None]:
    """Let signals end a fit at once in this block: where nobody sees that it was cut short.

    A repeat that a batch system stops must not be recorded with what it had by then.
    """
    token = _at_once.set(True)
    try:
        yield
    finally:
        _at_once.reset(token)


class StopRequest:
    """Whether somebody asked the fit to end."""

    def __init__(self) -> None:
        self.signal: str | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextlib.contextmanager
def graceful_stop() -> Iterator[StopRequest]:
    """Turn the first signal into a request, which the fit reads; a second one interrupts.

    Signals reach the main thread only; elsewhere (a worker's thread) nothing is changed.
    """
    request = StopRequest()
    if _at_once.get() or threading.current_thread() is not threading.main_thread():
        yield request
        return

    def handle(number: int, _frame: Any) -> None:
        if request:
            raise KeyboardInterrupt
        request.signal = signal.Signals(number).name
        _log.warning(
            "%s: stopping after the step under way, with the best so far; once more stops at once",
            request.signal,
        )

    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
