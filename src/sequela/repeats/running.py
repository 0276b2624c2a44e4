"""Doing the repeats of a plan: here, on processes, on a cluster, or a share of them.

Scheduling is joblib's (threads, loky processes, Dask). What is ours: records are written where the
results arrive, one after the other; what has a record is not done again; a repeat that fails is
tried once more and then reported, and the others go on.
"""

from __future__ import annotations

import contextlib
import importlib
import time
import traceback
from typing import TYPE_CHECKING, Any, Literal

from sequela._errors import InputError, SequelaError
from sequela._progress import WorkProgress
from sequela._threads import at_most, resolve_threads
from sequela.repeats.records import collect, missing, open_folder, write_record

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

    from sequela.repeats.plan import Plan

__all__ = ["RepeatsError", "run"]

_TRIES = 2


class RepeatsError(SequelaError, RuntimeError):
    """Some repeats failed every time; the others are done and recorded."""


def run(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    backend: Literal["threads", "processes", "dask"] = "processes",
    workers: int | None = None,
    cluster: str | None = None,
    share: tuple[int, int] | None = None,
) -> pd.DataFrame | None:
    """Do what is missing of a plan, and return the table of all results.

    Parameters
    ----------
    plan : Plan
        What to do.
    folder : path
        Where records are written as they come. A folder with some records is gone on with.
    backend : {"threads", "processes", "dask"}
        Where it runs; "dask" needs ``pip install "sequela[cluster]"``.
    workers : int or None
        Threads or processes; None: one for each core that may be used. The task gets one thread.
    cluster : str or None
        With "dask": the address of a scheduler, such as "tcp://node7:8786"; None starts one here.
    share : (index, of) or None
        Only every `of`-th repeat, from `index` on: one task of an array of jobs. The tasks may run
        at the same time, on one folder.

    Returns
    -------
    DataFrame or None
        See `collect`; None if a share was done and other repeats are still missing.

    Raises
    ------
    RepeatsError
        If repeats failed twice. All others are recorded; running again tries the failed ones.
    """
    place = open_folder(plan, folder)
    plan.function()  # refuse here, not on every worker
    todo = missing(plan, place)
    if share is not None:
        index, of = share
        if not (0 <= index < of):
            raise InputError(f"share is {share!r}; expected (index, of) with 0 <= index < of")
        todo = [repeat for repeat in todo if repeat % of == index]
    failures: dict[int, str] = {}
    for attempt in range(_TRIES):
        failures = _attempt(plan, place, todo, backend, workers, cluster, attempt)
        todo = sorted(failures)
        if not todo:
            break
    if failures:
        first = min(failures)
        raise RepeatsError(
            f"{len(failures)} of {len(plan)} repeats failed {_TRIES} times; the first is {first}: "
            f"{failures[first].strip().splitlines()[-1]}. The others are recorded in "
            f"{str(folder)!r}; run again to try these once more"
        )
    return None if missing(plan, place) else collect(plan, place)


def _attempt(
    plan: Plan,
    place: Path,
    todo: list[int],
    backend: str,
    workers: int | None,
    cluster: str | None,
    attempt: int,
) -> dict[int, str]:
    """Do the repeats `todo`; return what went wrong with which."""
    if not todo:
        return {}
    import joblib

    failures: dict[int, str] = {}
    # Results that come back are a record at once; whatever ends the run later costs nothing.
    with (
        _where(backend, workers, cluster) as how,
        WorkProgress(f"repeats (attempt {attempt + 1})", len(todo)) as bar,
    ):
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1, **how)
        calls = (joblib.delayed(_do)(plan, index) for index in todo)
        try:
            for index, result, error, seconds in parallel(calls):
                if error is None:
                    write_record(place, plan, index, result, seconds)
                else:
                    failures[index] = error
                bar.advance()
        except (OSError, RuntimeError) as error:
            if isinstance(error, SequelaError):
                raise
            left = len(missing(plan, place))
            raise RepeatsError(
                f"the workers are gone ({type(error).__name__}: {error}); {left} repeats are still "
                f"to be done. What is done is recorded in {str(place)!r}: run again to go on"
            ) from None
    return failures


@contextlib.contextmanager
def _where(backend: str, workers: int | None, cluster: str | None) -> Iterator[dict[str, Any]]:
    count = resolve_threads(workers)
    if backend not in ("threads", "processes", "dask"):
        raise InputError(f"backend is {backend!r}; expected 'threads', 'processes' or 'dask'")
    if cluster is not None and backend != "dask":
        raise InputError(f"cluster={cluster!r} is for backend='dask', not {backend!r}")
    if backend != "dask":
        yield {"n_jobs": count, "backend": "threading" if backend == "threads" else "loky"}
        return
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise InputError(
            "backend='dask' needs distributed, which is not installed: "
            "pip install 'sequela[cluster]'"
        ) from None
    import joblib

    with contextlib.ExitStack() as stack:
        if cluster is None:
            scheduler = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=count, threads_per_worker=1, dashboard_address=None
                )
            )
            client = stack.enter_context(distributed.Client(scheduler))
        else:
            try:
                client = stack.enter_context(distributed.Client(cluster, timeout=20))
            except (OSError, TimeoutError) as error:
                raise InputError(
                    f"there is no Dask scheduler at {cluster!r} ({type(error).__name__})"
                ) from None
        stack.enter_context(joblib.parallel_config("dask", client=client))
        yield {"n_jobs": -1}


def _do(plan: Plan, index: int) -> tuple[int, Any, str | None, float]:
    """Do one repeat on a worker; an error comes back as text, for not all errors travel."""
    start = time.perf_counter()
    try:
        # A worker has one core: more threads in each would only stand in each other's way.
        with at_most(1):
            result = plan.function()(**plan.cases[index], seed=plan.seed_of(index))
    except Exception:  # noqa: BLE001 - whatever a task raises is its failure, not ours
        return index, None, traceback.format_exc(), time.perf_counter() - start
    error = None
    if not isinstance(result, dict):
        error = f"the task {plan.task!r} returned {type(result).__name__}; expected a dictionary"
    return index, result, error, time.perf_counter() - start
