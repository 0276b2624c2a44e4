"""A Dask cluster of separate processes. Tests may kill these processes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path


def environment(**more):
    """Return environment variables for a process that can import the same modules as this one."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more}


def _start(module, *arguments, **variables):
    return subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", module, *map(str, arguments)],
        env=environment(**variables), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _stop(process):
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Cluster:
    """A Dask scheduler and its workers, which run until the exit stack is closed."""

    def __init__(self, folder, workers, allowed_failures, stack):
        file = Path(folder) / "scheduler.json"
        self.scheduler = _start(
            "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", 0, "--no-dashboard",
            "--scheduler-file", file,
            DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=str(allowed_failures),
        )  # fmt: skip
        stack.callback(_stop, self.scheduler)
        self.address = None
        end = time.monotonic() + 60
        while self.address is None:
            assert time.monotonic() < end, "the scheduler does not start"
            time.sleep(0.05)
            # Dask does not write this file in one step, so it may be incomplete.
            with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
                self.address = json.loads(file.read_text())["address"]
        if workers:
            self.workers = _start(
                "distributed.cli.dask_worker", self.address, "--nworkers", workers,
                "--nthreads", 1, "--no-dashboard", "--local-directory", folder,
            )  # fmt: skip
            stack.callback(_stop, self.workers)
            self.wait_for(workers)

    def wait_for(self, workers):
        import distributed

        with distributed.Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)


@contextlib.contextmanager
def cluster_of(folder, workers, allowed_failures=3):
    """Start a cluster. Dask gives up a task if more than `allowed_failures` workers die with it."""
    with contextlib.ExitStack() as stack:
        yield Cluster(folder, workers, allowed_failures, stack)
