"""Linear algebra on one thread, while compiled work of our own has the cores."""

from __future__ import annotations

import contextlib
import sys
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["blas_on_one_thread", "one_thread"]

_lock = threading.Lock()
_users = 0
_limit: Any = None


def _libraries() -> tuple[Any, Any]:
    """Return OpenMP and the libraries of linear algebra in this process, to be limited apart."""
    return _found_libraries("scipy.linalg" in sys.modules)  # which brings a library of its own


@lru_cache(maxsize=2)
def _found_libraries(with_scipy: bool) -> tuple[Any, Any]:  # noqa: ARG001 - the key of the cache
    """Look for the libraries, once without and once with SciPy: it takes as long as a small fit."""
    import threadpoolctl  # type: ignore[import-untyped]

    found = threadpoolctl.ThreadpoolController()
    return found.select(user_api="openmp"), found.select(user_api="blas")


@contextlib.contextmanager
def blas_on_one_thread() -> Iterator[None]:
    """Let linear algebra use one thread in this process until all who asked for it are done.

    Sums that are shared among threads may differ in the last bit, and for matrices as small as a
    fit's the threads cost more than they save: the model without interactions of 20 items took
    half a second with two and 8 ms with one.
    """
    global _limit, _users
    blas = _libraries()[1]
    # The limit is one for the process: the first who asks sets it and the last lifts it.
    with _lock:
        _users += 1
        if _users == 1:
            _limit = blas.limit(limits=1)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _lift()


def _lift() -> None:
    """Set the former number of threads again, whichever thread had set the limit."""
    import threadpoolctl

    # Newer versions let only the thread that set a limit change it, until it gives that right up.
    give_up = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if give_up is not None:
        give_up(force=True)
    _limit.restore_original_limits()
    if give_up is not None:
        give_up(force=True)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let linear algebra and OpenMP use one thread, for workers beside others on the same cores."""
    # OpenMP has a limit for each thread.
    with _libraries()[0].limit(limits=1), blas_on_one_thread():
        yield
