"""How many threads to use, and running pieces of compiled work on them."""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sequela.support.errors import InputError
from sequela.support.progress import WorkProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["at_most", "resolve_threads", "run_all", "run_pieces"]

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
        from joblib import cpu_count

        granted = os.environ.get("SLURM_CPUS_PER_TASK", "")
        available = int(cpu_count())
        return min(int(granted), available) if granted.isdigit() and granted != "0" else available
    if isinstance(n_threads, bool) or not hasattr(n_threads, "__index__") or n_threads < 1:
        raise InputError(
            f"n_threads is {n_threads!r}; expected a positive integer, or None for all cores "
            "that this process may use"
        )
    return int(n_threads)


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
