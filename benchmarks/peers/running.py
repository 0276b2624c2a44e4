"""Run one measurement in its own process (a worker), with a time limit; measure its memory."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers.environments import python_of

if TYPE_CHECKING:
    from benchmarks.peers.records import Places

WORKERS = Path(__file__).parent / "workers"
_POLL = 0.1
# A worker is killed this many seconds after its time limit. It needs this time for imports, the
# measurement of a gradient, and the last iteration.
GRACE = 120.0


def worker_command(places: Places, tool: str) -> list[str]:
    """Return the command that starts the worker of a tool: its interpreter and its script."""
    if tool in ("mhn", "fastmhn"):
        return [str(python_of(places, tool)), str(WORKERS / f"{tool}_worker.py")]
    return [sys.executable, str(WORKERS / "sequela_worker.py")]


def run_worker(
    command: list[str], folder: Path, job: dict[str, Any], X: np.ndarray, theta: np.ndarray
) -> dict[str, Any]:
    """Run a worker on a job and return its result, or the reason why there is none.

    The status is "finished", "stopped" (at the time limit, by the worker or from outside) or
    "failed" (an error or a crash).
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    samples = folder / "samples.npz"
    np.savez_compressed(samples, X=X, theta=theta)
    asked = folder / "job.json"
    where = {"folder": str(folder), "samples": str(samples), "launched": time.time()}
    asked.write_text(json.dumps({**job, **where}))
    start = time.perf_counter()
    with (folder / "log.txt").open("wb") as log:
        # Use a new session, so that processes that the tool starts can be stopped with it.
        process = subprocess.Popen(  # noqa: S603 - our own workers
            [*command, str(asked)], stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            env=_environment(job.get("threads")),
        )  # fmt: skip
        peak, killed = _wait(process, start + job["limit"] + GRACE)
    found: dict[str, Any] = {"process, s": time.perf_counter() - start}
    result = folder / "result.json"
    if result.exists():
        found.update(json.loads(result.read_text()))
        found["status"] = "stopped" if found.get("stopped") else "finished"
        found["peak memory, MB"] = max(found["peak memory, MB"], peak)
    else:
        found.update(_what_is_left(folder, process.returncode, killed))
        found["peak memory, MB"] = peak
    samples.unlink()
    return found


def _environment(threads: int | None) -> dict[str, str]:
    """Return the environment variables; if `threads` is given, NumPy uses as many threads."""
    if threads is None:
        return dict(os.environ)
    count = str(threads)
    return {**os.environ, "OPENBLAS_NUM_THREADS": count, "MKL_NUM_THREADS": count}


def _wait(process: subprocess.Popen[bytes], until: float) -> tuple[float, bool]:
    """Wait for a worker; return its peak memory in MB, and whether it had to be killed."""
    peak = 0.0
    try:
        while process.poll() is None:
            if time.perf_counter() > until:
                return peak, True
            peak = max(peak, _high_water(process.pid))
            time.sleep(_POLL)
        return peak, False
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop the session of a worker, including the processes that it started."""
    # These errors mean that all processes have already ended.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _high_water(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
        return int(text.split("VmHWM:")[1].split()[0]) / 1e3
    except (OSError, IndexError):
        return 0.0


def _what_is_left(folder: Path, code: int | None, killed: bool) -> dict[str, Any]:
    """Return the status, a message and the last step of a worker that wrote no result."""
    steps = trajectory(folder)
    lines = (folder / "log.txt").read_text(errors="replace").strip().splitlines()
    if killed:
        message = "killed, because one step took longer than the limit"
    elif code is not None and code < 0:
        message = f"crashed: {signal.Signals(-code).name}"
    else:
        message = lines[-1][-300:] if lines else f"ended with status {code}"
    found: dict[str, Any] = {"status": "stopped" if killed else "failed", "message": message}
    if steps:
        found["seconds"] = steps[-1]["seconds"]
        found["iterations"] = steps[-1]["iteration"]
    return found


def trajectory(folder: Path) -> list[dict[str, Any]]:
    """Return the steps that a worker recorded: seconds, iteration and the file of theta."""
    path = folder / "trajectory.jsonl"
    if not path.exists():
        return []
    # If the worker crashed, the last line may be incomplete. It is ignored.
    lines = [line for line in path.read_text().splitlines() if line.endswith("}")]
    return [json.loads(line) for line in lines]
