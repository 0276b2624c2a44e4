"""Run the repeats of a plan, or a share of them, on threads, on processes or on a cluster.

joblib schedules the repeats (on threads, loky processes or Dask). This module writes records as
results arrive, and skips repeats that have a record. If a repeat fails, the other repeats continue.
The failed repeat is tried once more, on another worker if possible, before an error is raised.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sequela.repeats.cluster import (
    cluster_parallel,
    connect,
    elsewhere,
    prepare_hosts,
    watching,
)
from sequela.repeats.errors import RepeatsError
from sequela.repeats.records import collect, listed, missing, open_folder, write_record
from sequela.repeats.work import Done, Work, do, end_with, make_ready
from sequela.support.errors import InputError, SequelaError
from sequela.support.naming import argument, option
from sequela.support.progress import WorkProgress
from sequela.support.threads import resolve_threads
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

    from sequela.repeats.plan import Plan

__all__ = ["run"]

_TRIES = 2
_BACKENDS = {"threads": "threading", "processes": "loky", "dask": "dask"}


def run(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    backend: Literal["threads", "processes", "dask"] = "processes",
    workers: int | None = None,
    cluster: str | None = None,
    share: tuple[int, int] | None = None,
) -> pd.DataFrame | None:
    """Run the missing repeats of a plan, and return the table of all results.

    Parameters
    ----------
    plan : Plan
        The plan to run.
    folder : path
        The folder for the records. The record of a repeat is written when the repeat ends. If a
        repeat already has a record, it is not run again.
    backend : {"threads", "processes", "dask"}
        Where repeats run; "dask" needs ``pip install "sequela[cluster]"``.
    workers : int or None
        Number of threads or processes. None means one per available core. Each repeat uses one
        thread.
    cluster : str or None
        With "dask": the address of a scheduler, such as ``tcp://node7:8786``. None starts a
        scheduler on this machine. If the plan has data, all workers must be able to read the
        folder.
    share : (index, of) or None
        (index, of): run only every `of`-th repeat, beginning with the repeat `index`, as one task
        of a job array. The tasks of the array may run at the same time, with the same folder.

    Returns
    -------
    DataFrame or None
        The table of `collect`, or None if a share was run and other repeats are still missing.

    Raises
    ------
    RepeatsError
        If repeats failed twice, or if workers died or were lost. The records of all other repeats
        are kept. If `run` is called again, it runs only the missing repeats.

    Examples
    --------
    >>> import tempfile
    >>> from sequela.repeats import Plan
    >>> plan = Plan("builtins:dict", [{"n": 10}, {"n": 20}], seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run(plan, folder, backend="threads")["n"].tolist()
    [10, 20]
    """
    count = _check(backend, workers, cluster)
    mine = _share(plan, share)
    plan.function()  # if the task does not exist, raise the error here and not on every worker
    place = open_folder(plan, folder)
    todo = [index for index in missing(plan, place) if index in mine]
    if todo:
        work = Work.of(plan, place)
        with _pool(backend, count, cluster, work) as pool:
            _try(plan, place, todo, work, pool)
    return None if missing(plan, place) else collect(plan, place)


def _check(backend: str, workers: int | None, cluster: str | None) -> int:
    """Return the number of workers; refuse options that contradict each other."""
    if backend not in _BACKENDS:
        raise InputError(
            f"{argument('backend')} is {backend!r}; expected 'threads', 'processes' or 'dask'"
        )
    if cluster is not None and backend != "dask":
        raise InputError(
            f"{argument('cluster')} is for {option('backend', 'dask')}, not for {backend!r}"
        )
    return resolve_threads(None if workers is None else positive_integer("workers", workers))


def _share(plan: Plan, share: tuple[int, int] | None) -> range:
    if share is None:
        return range(len(plan))
    index, of = share
    if not (0 <= index < of):
        raise InputError(f"share is {share!r}; expected (index, of) with 0 <= index < of")
    return range(index, len(plan), of)


@dataclass
class _Pool:
    """Where repeats run: threads, processes or a cluster.

    The method `parallel` yields a joblib.Parallel. On a cluster, it uses only the workers `only`,
    or all workers if `only` is empty.
    """

    backend: str
    workers: int
    client: Any = None

    @contextlib.contextmanager
    def parallel(self, only: list[str]) -> Iterator[Any]:
        import joblib

        if self.client is not None:
            made = cluster_parallel(self.client, only)
            with watching(self.client, made, only):
                yield made
            return
        processes = self.backend == "processes"
        yield joblib.Parallel(
            n_jobs=self.workers, backend=_BACKENDS[self.backend], batch_size=1,
            return_as="generator_unordered",
            **({"initializer": end_with, "initargs": (os.getpid(),)} if processes else {}),
        )  # fmt: skip

    def elsewhere(self, failures: dict[int, Done]) -> list[str]:
        """Return the workers that should retry failed repeats; an empty list means any worker."""
        if self.client is not None and failures:
            with contextlib.suppress(OSError):  # a lost scheduler is reported later
                return elsewhere(self.client.nthreads(), {d.where for d in failures.values()})
        return []


@contextlib.contextmanager
def _pool(backend: str, workers: int, cluster: str | None, work: Work) -> Iterator[_Pool]:
    # Compile before the workers start. The workers on this machine then load the compiled code from
    # the cache on disk.
    if cluster is None:
        make_ready(work)
    if backend != "dask":
        yield _Pool(backend, workers)
        return
    with connect(cluster, workers) as client:
        if cluster is not None:
            prepare_hosts(client, work)
        yield _Pool(backend, workers, client)


@dataclass
class _Outcome:
    """What went wrong in an attempt to run repeats.

    `failures` are the repeats that failed. If worker processes died, `collapse` is the error
    message. `abandoned` is True if the chosen workers of a cluster no longer exist.
    """

    failures: dict[int, Done] = field(default_factory=dict)
    collapse: str | None = None
    abandoned: bool = False


def _try(plan: Plan, place: Path, todo: list[int], work: Work, pool: _Pool) -> None:
    """Run the repeats `todo`. Then run those repeats again that failed or whose workers died.

    Raise an error if some repeats are still missing after the second attempt.
    """
    only: list[str] = []
    outcome = _Outcome()
    for attempt in range(_TRIES):
        outcome = _attempt(plan, place, todo, work, pool, only, attempt)
        todo = _left(plan, place, todo)
        if outcome.abandoned:
            outcome = _attempt(plan, place, todo, work, pool, [], attempt)
            todo = _left(plan, place, todo)
        if not todo:
            return
        only = pool.elsewhere(outcome.failures)
        if outcome.collapse:
            # joblib hands out at most two repeats per worker in advance. So a repeat that killed
            # its worker is among the first repeats without a record. Run these repeats last, so
            # that all other repeats are done before a worker dies again.
            suspects = 2 * pool.workers
            todo = todo[suspects:] + todo[:suspects]
    raise _error(plan, place, sorted(todo), outcome)


def _left(plan: Plan, place: Path, todo: list[int]) -> list[int]:
    undone = set(missing(plan, place))
    return [index for index in todo if index in undone]


def _error(plan: Plan, place: Path, left: list[int], outcome: _Outcome) -> RepeatsError:
    again = (
        f"The other {len(plan) - len(missing(plan, place))} repeats are recorded in "
        f"{str(place)!r}; run the plan again to do the missing repeats"
    )
    if outcome.collapse:
        return RepeatsError(
            f"{len(left)} of {len(plan)} repeats are not done ({listed(left)}): worker processes "
            f"died {_TRIES} times, probably for lack of memory or in a crash "
            f"({outcome.collapse}). {again}, with fewer workers"
        )
    texts = {index: str(done.error) for index, done in outcome.failures.items()}
    reason = texts[left[0]].strip().splitlines()[-1]
    return RepeatsError(
        f"{len(left)} of {len(plan)} repeats failed {_TRIES} times ({listed(left)}); the first is "
        f"{left[0]} (on {outcome.failures[left[0]].where}): {reason}. {again}",
        texts,
    )


def _attempt(
    plan: Plan,
    place: Path,
    todo: list[int],
    work: Work,
    pool: _Pool,
    only: list[str],
    attempt: int,
) -> _Outcome:
    """Run the repeats `todo` and write their records; return what went wrong."""
    import joblib

    outcome = _Outcome()
    again = "" if attempt == 0 else ", second attempt"
    with pool.parallel(only) as parallel, WorkProgress(f"repeats{again}", len(todo)) as bar:
        calls = (
            joblib.delayed(do)(work, index, plan.cases[index], plan.seed_of(index))
            for index in todo
        )
        try:
            with _closing(parallel(calls)) as results:
                for done in results:
                    if done.error is None:
                        # After this write, the result is kept even if the run is killed.
                        write_record(place, plan, done.repeat, done.result, done.seconds)
                    else:
                        outcome.failures[done.repeat] = done
                    bar.advance()
        except SequelaError:
            raise
        except BrokenExecutor as error:
            outcome.collapse = " ".join(str(error).split())[:200]
        except Exception as error:
            if pool.client is None:
                raise
            if pool.client.status == "running" and only:
                outcome.abandoned = True
                return outcome
            left = len(missing(plan, place))
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise RepeatsError(
                f"the connection to the Dask scheduler is lost ({reason}); {left} of {len(plan)} "
                f"repeats are not done. All others are recorded in {str(place)!r}: run again to "
                "continue, on this cluster or another"
            ) from None
    return outcome


@contextlib.contextmanager
def _closing(results: Any) -> Iterator[Any]:
    """If the block fails, close the results of joblib without its warning about unused results."""
    try:
        yield results
    except BaseException:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.close()
        raise
