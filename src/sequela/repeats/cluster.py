"""Run repeats on a Dask cluster with joblib: connect, check the workers, watch the connection."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import platform
import signal
import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sequela import __version__
from sequela.repeats.work import Done, Work, make_ready
from sequela.support.errors import InputError, SequelaError
from sequela.support.naming import option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["cluster_parallel", "connect", "elsewhere", "prepare_hosts", "watching"]

_log = logging.getLogger("sequela")

# Seconds to wait for the scheduler, and for its first worker.
_FOR_SCHEDULER = 10
_FOR_WORKERS = 30
# Seconds between two checks of the connection.
_BETWEEN_CHECKS = 0.5


@contextlib.contextmanager
def connect(cluster: str | None, workers: int) -> Iterator[Any]:
    """Yield a Dask client of the scheduler at the address `cluster`.

    If `cluster` is None, start a cluster with this number of `workers` on this machine.
    """
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise InputError(
            f"{option('backend', 'dask')} needs the package distributed, which is not "
            "installed: "
            "pip install 'sequela[cluster]'"
        ) from None
    with contextlib.ExitStack() as stack:
        if cluster is None:
            # Port 0 means any free port. The default port of the dashboard is 8787, which another
            # cluster may already use.
            made = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0"
            )
            client = _client(distributed, stack.enter_context(made))
            # A terminal sends Ctrl-C to all processes. The workers ignore it, because this process
            # ends them.
            client.run(_ignore_interrupts)
        else:
            try:
                client = _client(distributed, cluster, timeout=_FOR_SCHEDULER)
            except (OSError, TimeoutError, ValueError) as error:
                raise InputError(
                    f"there is no Dask scheduler at {cluster!r} ({type(error).__name__}); give the "
                    "address that `dask scheduler` prints, such as tcp://node7:8786"
                ) from None
        stack.callback(_close, client)
        try:
            client.wait_for_workers(1, timeout=_FOR_WORKERS)
        except TimeoutError:
            raise InputError(
                f"the Dask scheduler at {client.scheduler.address!r} has had no worker for "
                f"{_FOR_WORKERS} seconds; start workers with one thread each: dask worker "
                f"{client.scheduler.address} --nworkers 8 --nthreads 1"
            ) from None
        yield client


def _client(distributed: Any, *address: Any, **options: Any) -> Any:
    """Return a client. If the first attempt was too slow, try once more.

    Distributed raises an AssertionError if its event loop has not started within ten seconds.
    """
    try:
        return distributed.Client(*address, **options)
    except AssertionError:
        return distributed.Client(*address, **options)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _close(client: Any) -> None:
    """Close the connection. If it is lost, hide Dask's messages: our own error reports the loss."""
    log = logging.getLogger("distributed.client")
    level = log.level
    if client.status != "running":
        log.setLevel(logging.CRITICAL)
    try:
        client.close(timeout=5)
    finally:
        log.setLevel(level)


def prepare_hosts(client: Any, work: Work) -> None:
    """Check the workers of a cluster, and call the warm-up of the plan once on each machine.

    If a worker has another version of sequela, an error is raised, because its results could
    differ. If the workers of a machine have more threads than the machine has cores, a warning is
    logged.
    """
    found = client.run(_describe, on_error="return")
    hosts: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for address, answer in found.items():
        if isinstance(answer, ImportError):
            raise InputError(
                f"the Dask worker {address} cannot import sequela ({answer}); install sequela "
                f"{__version__} where the workers run"
            )
        if not isinstance(answer, dict):
            continue  # the worker has died, so it gets no repeats
        if answer["sequela"] != __version__:
            raise InputError(
                f"the Dask worker {address} has sequela {answer['sequela']}, but this process has "
                f"{__version__}; install the same version in both places"
            )
        hosts[answer["host"]].append((address, answer))
    threads = client.nthreads()
    for host, there in hosts.items():
        busy = sum(threads.get(address, 0) for address, _ in there)
        cores = len(set().union(*(answer["cores"] for _, answer in there)))
        if busy > cores:
            _log.warning(
                "the Dask workers on %s run %d repeats at once on %d cores; running more repeats "
                "at once than there are cores does not save time. Start workers with: "
                "dask worker ... --nworkers %d --nthreads 1",
                host, busy, cores, cores,
            )  # fmt: skip
    first = [there[0][0] for there in hosts.values()]
    ready = [client.submit(make_ready, work, workers=[one], pure=False) for one in first]
    for future in ready:
        try:
            future.result()
        except SequelaError:
            raise
        except Exception as error:  # noqa: BLE001 - repeats can run without the warm-up
            _log.warning("a Dask worker could not be prepared (%s)", error)


def _describe() -> dict[str, Any]:
    """Return the version of sequela, the host name and the cores of a worker."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = affinity(0) if affinity else range(os.cpu_count() or 1)
    return {"sequela": __version__, "host": platform.node(), "cores": sorted(cores)}


def elsewhere(addresses: Iterable[str], avoid: set[str]) -> list[str]:
    """Return the workers on machines that run none of the workers in `avoid`.

    If there are no such workers, return all workers that are not in `avoid`. If no worker in
    `avoid` exists any more, return an empty list, which means that any worker may be used.

    Examples
    --------
    >>> elsewhere(["tcp://a:1", "tcp://a:2", "tcp://b:1"], {"tcp://a:1"})
    ['tcp://b:1']
    >>> elsewhere(["tcp://a:1", "tcp://a:2"], {"tcp://a:1"})
    ['tcp://a:2']
    >>> elsewhere(["tcp://a:2"], {"tcp://a:1"})
    []
    """
    there = set(addresses) & avoid
    if not there:
        return []
    hosts = {address.rpartition(":")[0] for address in there}
    return [one for one in addresses if one.rpartition(":")[0] not in hosts] or [
        one for one in addresses if one not in there
    ]


def cluster_parallel(client: Any, only: list[str]) -> Any:
    """Return a `joblib.Parallel` for a cluster.

    The tasks run only on the workers in `only`, or on any worker if `only` is empty. All tasks are
    submitted at once, so that workers that join the cluster later also get tasks.
    """
    import joblib

    backend = _backend()(client=client, **({"workers": only} if only else {}))
    return joblib.Parallel(
        n_jobs=-1, backend=backend, return_as="generator_unordered", batch_size=1,
        pre_dispatch="all",
    )  # fmt: skip


def _backend() -> type[Any]:
    """Return joblib's backend for Dask with two workarounds that joblib 1.4 to 1.6 need."""
    base: type[Any] = importlib.import_module("joblib._dask").DaskDistributedBackend

    class Backend(base):  # type: ignore[misc]
        def effective_n_jobs(self, n_jobs: int) -> int:
            # If the cluster has a single core, joblib would otherwise run everything in this
            # process.
            return max(2, int(super().effective_n_jobs(n_jobs)))

        def submit(self, func: Any, callback: Any = None) -> Any:
            # If the workers of a task die repeatedly, Dask stops trying, but joblib would wait for
            # the task forever. Therefore report such a task as a failed repeat.
            future = super().submit(func, callback)
            index = func.items[0][1][1]

            def tell(ended: Any) -> None:
                error = ended.exception()
                if error is not None:
                    last = str(getattr(getattr(error, "last_worker", None), "address", ""))
                    text = f"{type(error).__name__}: {' '.join(str(error).split())}"
                    callback([Done(index, None, text, 0.0, last)])

            future.add_done_callback(tell)
            return future

    return Backend


@contextlib.contextmanager
def watching(client: Any, parallel: Any, only: list[str]) -> Iterator[None]:
    """Stop waiting for results that can no longer arrive.

    There are two such cases. In the first, the connection to the scheduler is lost. The client then
    cancels its tasks. joblib usually notices this, but a task that is submitted at that moment
    never gets an answer. In the second case, no worker in `only` exists any more. In both cases the
    timeout of joblib is set to 0. joblib checks its timeout repeatedly, so the wait ends with an
    error.
    """
    over = threading.Event()

    def check() -> None:
        while not over.wait(_BETWEEN_CHECKS):
            lost = client.status != "running"
            with contextlib.suppress(Exception):  # the next check will notice a lost connection
                lost = lost or bool(only and not set(only) & set(client.nthreads()))
            if lost:
                parallel.timeout = 0.0
                return

    thread = threading.Thread(target=check, name="sequela-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(10 * _BETWEEN_CHECKS)
