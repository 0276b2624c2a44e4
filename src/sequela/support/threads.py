"""Choose the number of threads, and run pieces of work on them."""

from __future__ import annotations

import contextlib
import math
import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import ContextVar
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sequela.support.errors import InputError
from sequela.support.naming import argument
from sequela.support.progress import WorkProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["at_most", "available_cores", "resolve_threads", "run_all", "run_pieces"]

_most: ContextVar[int | None] = ContextVar("most", default=None)

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def resolve_threads(n_threads: int | None) -> int:
    """Return the number of threads to use: the given number or, for None, the number allowed.

    If `n_threads` is None, the limit set by `at_most` is used. If there is no such limit, the
    result is the number of cores that this process may use. The batch system
    (``SLURM_CPUS_PER_TASK``), the CPU affinity and the container can each limit this number.

    Examples
    --------
    >>> resolve_threads(3)
    3
    """
    if n_threads is None and _most.get() is not None:
        return int(_most.get() or 1)
    if n_threads is None:
        granted = os.environ.get("SLURM_CPUS_PER_TASK", "")
        available = available_cores()
        return min(int(granted), available) if granted.isdigit() and granted != "0" else available
    if isinstance(n_threads, bool) or not hasattr(n_threads, "__index__") or n_threads < 1:
        raise InputError(
            f"{argument('n_threads')} is {n_threads!r}; expected a positive integer, or None for "
            "all cores that this process may use"
        )
    return int(n_threads)


def available_cores() -> int:
    """Return the number of cores that the CPU affinity and the container allow for this process.

    ``LOKY_MAX_CPU_COUNT`` can reduce the number further, as in joblib.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    asked = os.environ.get("LOKY_MAX_CPU_COUNT", "")
    limits = [cores, _container_limit(), int(asked) if asked.isdigit() else None]
    return max(1, min(limit for limit in limits if limit is not None))


@lru_cache(maxsize=8)
def _container_limit(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the number of cores that the container allows (cgroup v1 or v2); None if unlimited."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            quota, period = " ".join((root / name).read_text() for name in names).split()
        except (OSError, ValueError):
            continue
        if quota.isdigit() and period.isdigit() and int(period):
            return math.ceil(int(quota) / int(period))
    return None


@contextlib.contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Limit the number of threads used inside this block, unless a call passes its own number.

    Worker processes that share the cores of a machine use this block.
    """
    token = _most.set(threads)
    try:
        yield
    finally:
        _most.reset(token)


def run_all(
    pieces: Sequence[Callable[[], Result]], n_threads: int, description: str = ""
) -> list[Result]:
    """Call the functions `pieces` on several threads, and return their results in the same order.

    If `description` is not empty and the work takes long, a progress bar with this text is shown.

    The results do not depend on the number of threads, because the pieces and their order do not
    depend on it. After an interrupt, pieces that are running are finished and all other pieces are
    cancelled. Then the interrupt is raised.
    """
    done = []
    with WorkProgress(description, len(pieces)) as bar:
        if n_threads == 1 or len(pieces) < 2:
            for piece in pieces:
                done.append(piece())
                bar.advance()
            return done
        with ThreadPoolExecutor(min(n_threads, len(pieces))) as pool:
            futures = [pool.submit(piece) for piece in pieces]
            try:
                # The bar advances when any piece is done. The results are in the sequence of the
                # pieces, even if a later piece is done first.
                for future in as_completed(futures):
                    if future.exception() is not None:
                        break
                    bar.advance()
                done = [future.result() for future in futures]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return done


def run_pieces(
    work: Callable[[Piece], Result],
    pieces: Iterable[Piece],
    n_threads: int,
    description: str = "",
) -> list[Result]:
    """Call `work` on every piece and return the results in order; see `run_all`."""
    return run_all([partial(work, piece) for piece in pieces], n_threads, description)
