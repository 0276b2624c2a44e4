"""Run one repeat on a worker, with one thread. Results and errors are returned as text."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sequela.learning.interrupt import whole_or_nothing
from sequela.repeats.data_file import DATA_NAME, fingerprint, read_data
from sequela.repeats.plan import find_function
from sequela.support.linear_algebra import one_thread
from sequela.support.threads import at_most

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sequela.repeats.plan import Plan

__all__ = ["Done", "Work", "do", "end_with", "make_ready", "where"]


@dataclass(frozen=True)
class Work:
    """The part of a plan that all repeats share, without the samples, which would be slow to send.

    This object is sent to a worker with every repeat.

    `data` is the path and the checksum of the samples. `parent` is the id of the parent process.
    """

    task: str
    common: Mapping[str, Any]
    data: tuple[str, str] | None
    warm_up: str | None
    parent: int

    @classmethod
    def of(cls, plan: Plan, place: Path) -> Work:
        """Return the work of a plan whose folder is `place`."""
        data = None
        if plan.data is not None:
            data = (str(place / DATA_NAME), fingerprint(plan.data))
        return cls(plan.task, plan.common, data, plan.warm_up, os.getpid())

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of all repeats; the samples are read once per process."""
        data = {} if self.data is None else {"data": read_data(*self.data)}
        return {**self.common, **data}


class Done(NamedTuple):
    """How one repeat ended: `result` is JSON text, or `error` is a traceback or message."""

    repeat: int
    result: str | None
    error: str | None
    seconds: float
    where: str


def do(work: Work, index: int, case: Mapping[str, Any], seed: int) -> Done:
    """Run one repeat and return how it ended.

    An error is returned as text, because some errors cannot be pickled.
    """
    if os.getpid() != work.parent:
        _leave_interrupts_to_the_parent()
    start = time.perf_counter()
    result = error = None
    try:
        task = find_function(work.task)  # imports the libraries whose threads are limited next
        with at_most(1), one_thread(), whole_or_nothing():
            found = task(**work.arguments(), **case, seed=seed)
        if isinstance(found, dict):
            result = json.dumps(found)
        else:
            error = f"the task {work.task!r} returned {type(found).__name__}; expected a dictionary"
    except (Exception, SystemExit):  # noqa: BLE001 - any error is a failure of the task
        error = traceback.format_exc()
    return Done(index, result, error, time.perf_counter() - start, where())


_BETWEEN_LOOKS = 1.0  # seconds


def end_with(parent: int) -> None:
    """End this process when its parent process ends, because nobody would use further results.

    Only worker processes on this machine call this function. In a cluster, Dask ends the workers.
    """

    def watch() -> None:
        # When the parent ends, the operating system gives this process another parent. The parent
        # may end even before this thread starts.
        while os.getppid() == parent:
            time.sleep(_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, name="sequela parent watch", daemon=True).start()


def make_ready(work: Work) -> None:
    """Call the warm-up of a plan, before the repeats start on a machine."""
    if work.warm_up is not None:
        find_function(work.warm_up)(**work.arguments())


def where() -> str:
    """Return the name of this worker: its address in a Dask cluster, or its machine and process."""
    distributed: Any = sys.modules.get("distributed")
    if distributed is not None:
        with contextlib.suppress(ValueError):
            return str(distributed.get_worker().address)
    return f"{platform.node()}, process {os.getpid()}"


def _leave_interrupts_to_the_parent() -> None:
    """Ignore Ctrl-C in a worker, because it would stop a fit before its end.

    A terminal sends Ctrl-C to all processes. The parent also receives it, and ends its workers.
    """
    on_main = threading.current_thread() is threading.main_thread()
    if on_main and hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
