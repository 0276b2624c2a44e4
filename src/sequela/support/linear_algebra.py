"""Limit linear algebra to one thread, because our own compiled code uses all cores."""

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
    """Return two controllers of threadpoolctl, which limit the threads of OpenMP and of BLAS."""
    # SciPy loads its own BLAS library. So after its import, the libraries are searched again.
    return _found_libraries("scipy.linalg" in sys.modules)


@lru_cache(maxsize=2)
def _found_libraries(with_scipy: bool) -> tuple[Any, Any]:  # noqa: ARG001 - the key of the cache
    """Return the two controllers, from a cache, because finding them takes as long as a fit."""
    import threadpoolctl  # type: ignore[import-untyped]

    found = threadpoolctl.ThreadpoolController()
    return found.select(user_api="openmp"), found.select(user_api="blas")


@contextlib.contextmanager
def blas_on_one_thread() -> Iterator[None]:
    """Limit linear algebra in this process to one thread, as long as any such block is running.

    If several threads compute a sum, its last bit may vary from run to run. For the small matrices
    of a fit, several threads are also slower than one. For example, the fit of a model without
    interactions between 20 items took half a second with two threads, but 8 ms with one.
    """
    global _limit, _users
    blas = _libraries()[1]
    # The limit applies to the whole process. The first block sets it, and the last block removes
    # it.
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
    """Restore the original number of threads, even if another thread has set the limit."""
    import threadpoolctl

    # In newer versions of threadpoolctl, only the thread that set a limit can change it, unless
    # `clear_controlling_thread` is called first.
    give_up = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if give_up is not None:
        give_up(force=True)
    _limit.restore_original_limits()
    if give_up is not None:
        give_up(force=True)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit linear algebra and OpenMP to one thread inside this block.

    Workers that share the cores of a machine use this block.
    """
    # A limit of OpenMP applies only to the thread that sets it, so it is set for each block. The
    # limit of BLAS applies to all threads, so `blas_on_one_thread` sets it only once.
    with _libraries()[0].limit(limits=1), blas_on_one_thread():
        yield
