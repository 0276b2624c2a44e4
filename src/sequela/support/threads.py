"""How many threads to use, and running pieces of compiled work on them."""

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
from sequela.support.progress import WorkProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["at_most", "available_cores", "resolve_threads", "run_all", "run_pieces"]

_most: ContextVar[int | None] = ContextVar("most", default=None)

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def resolve_threads(n_threads: int | None) -> int:
    """Return how many threads to use: the given number, or what this process may use.

    None reads what `at_most` says, or what a batch system granted (``SLURM_CPUS_PER_TASK``) and
    the process's CPU affinity and container limits, never the number of cores of the machine.

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
            f"n_threads is {n_threads!r}; expected a positive integer, or None for all cores "
            "that this process may use"
        )
    return int(n_threads)


def available_cores() -> int:
    """Return how many cores this process may use: its affinity, and the limit of its container.

    ``LOKY_MAX_CPU_COUNT`` limits it further, as in joblib.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    asked = os.environ.get("LOKY_MAX_CPU_COUNT", "")
    limits = [cores, _container_limit(), int(asked) if asked.isdigit() else None]
    return max(1, min(limit for limit in limits if limit is not None))


@lru_cache(maxsize=8)
def _container_limit(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the cores that a container grants (control groups of both versions), if it does."""
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
    """Limit the number of threads that are used inside this block, unless a call names its own.

    For workers that share the cores with others.
    """
    token = _most.set(threads)
    try:
        yield
    finally:
        _most.reset(token)


def run_all(
    pieces: Sequence[Callable[[], Result]], n_threads: int, description: str = ""
) -> list[Result]:
    """Call every piece and return the results in the order of the pieces.

    With a `description` a bar shows the progress, if it takes long.

    The pieces and their order never depend on the number of threads, which is what makes results
    the same for any number. An interrupt waits for the pieces under way, drops the others, and
    is raised.
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
                # Progress moves whichever piece is done first; results are in order.
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
