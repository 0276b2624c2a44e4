"""End a fit after the current step at the first Ctrl-C, and immediately at the second Ctrl-C."""

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

# Signals to end a fit. Ctrl-C in a terminal sends the first, a batch system at its time limit the
# second, and users of a batch system the third.
_SIGNALS = ("SIGINT", "SIGTERM", "SIGUSR1")


_at_once: contextvars.ContextVar[bool] = contextvars.ContextVar("at_once", default=False)


@contextlib.contextmanager
def whole_or_nothing() -> Iterator[None]:
    """Inside this block, let a signal end a fit immediately and without a result.

    Repeats use this block: if a batch system stops a repeat, no incomplete result may be recorded.
    """
    token = _at_once.set(True)
    try:
        yield
    finally:
        _at_once.reset(token)


class StopRequest:
    """A request to end the fit: true after a signal, whose name is then stored in `signal`."""

    def __init__(self) -> None:
        self.signal: str | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextlib.contextmanager
def graceful_stop() -> Iterator[StopRequest]:
    """Inside this block, the first signal requests a stop, and the second one ends the fit at once.

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
            "stops immediately",
            request.signal,
        )

    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
