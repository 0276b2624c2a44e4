"""End a fit after the current step at the first Ctrl-C, and at once at the second Ctrl-C."""

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

# The signals that are sent by Ctrl-C in a terminal, by a batch system at its time limit, and by the
# users of a batch system.
_SIGNALS = ("SIGINT", "SIGTERM", "SIGUSR1")


_at_once: contextvars.ContextVar[bool] = contextvars.ContextVar("at_once", default=False)


@contextlib.contextmanager
def whole_or_nothing() -> Iterator[None]:
    """Make signals end fits at once, without a result, inside this block.

    A repeat that a batch system stops must not be recorded with an incomplete result.
    """
    token = _at_once.set(True)
    try:
        yield
    finally:
        _at_once.reset(token)


class StopRequest:
    """A request to end the fit. It is true after a signal; `signal` is the name of the signal."""

    def __init__(self) -> None:
        self.signal: str | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextlib.contextmanager
def graceful_stop() -> Iterator[StopRequest]:
    """Turn the first signal into a request to stop; at the second signal, end the fit at once.

    Python delivers signals to the main thread only. In other threads this function does nothing.
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
            "%s: stopping after the current step, with the best result so far. A second signal "
            "stops at once",
            request.signal,
        )

    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
