"""Code that all workers share. It runs in the environment of a peer and needs only NumPy.

A worker is started as ``python worker.py job.json``. The job names a task, the samples (an .npz
file) and a folder for the results. The results are ``result.json``, and the thetas of the fit over
time as .npy files, each with one line in ``trajectory.jsonl``. A theta is written as soon as the
fit reaches it. So it can be scored even if the fit crashes or reaches its time limit. In all
thetas, rows act on columns, as in sequela.
"""

import json
import platform
import resource
import sys
import time
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

# Every theta is kept until all files together have this many bytes. After that, a theta is kept
# only if its time is at least _LATER times the time of the last theta that was kept.
_ALL_KEPT = 5e7
_LATER = 1.05
SMALL = 10
# A fit that takes fewer seconds than this is repeated, and the fastest of the fits is used.
_SHORT = 2.0
_REPEATS = 3


class Stopped(Exception):  # noqa: N818 - this is not an error, but the requested limit
    """The time limit of a fit has passed."""


class Recorder:
    """Record the thetas of one fit over time. The time for writing them is not counted."""

    def __init__(self, folder, limit):
        self.folder = Path(folder)
        self.limit = limit
        self.start()

    def start(self):
        """Begin a fit. The records of an earlier fit are overwritten."""
        (self.folder / "trajectory.jsonl").unlink(missing_ok=True)
        self.steps = []
        self.written = 0
        self.seen = 0
        self.paused = 0.0
        self.began = time.perf_counter()

    def now(self):
        return time.perf_counter() - self.began - self.paused

    def keep(self, theta, always=False):
        """Write theta to a file, or skip it; return whether the time limit has passed.

        At first every theta is written. When the files are large, a theta is skipped if it follows
        shortly after the last one that was written (see `_ALL_KEPT`). With `always`, theta is
        written.
        """
        at = self.now()
        entered = time.perf_counter()
        self.seen += 1
        early = self.written < _ALL_KEPT
        if always or early or at >= _LATER * self.steps[-1]["seconds"]:
            name = f"theta_{len(self.steps):05d}.npy"
            np.save(self.folder / name, np.asarray(theta, dtype=np.float64), allow_pickle=False)
            self.written += theta.nbytes
            self.steps.append({"seconds": at, "file": name, "iteration": self.seen})
            self._write(self.steps[-1:])
        self.paused += time.perf_counter() - entered
        return at > self.limit

    def _write(self, steps):
        with (self.folder / "trajectory.jsonl").open("a") as file:
            file.writelines(json.dumps(step) + "\n" for step in steps)

    def fastest(self, learn):
        """Run a fit, repeat it if it is short, and return the result of the fastest run.

        `learn` runs the fit and returns a dictionary with its "seconds". A tool does the same steps
        in every repeat. Therefore all repeats write the same thetas, and only their times differ.
        """
        found = []
        while not found or (found[0][0]["seconds"] < _SHORT and len(found) < _REPEATS):
            self.start()
            found.append((learn(), self.steps))
        result, steps = min(found, key=lambda pair: pair[0]["seconds"])
        (self.folder / "trajectory.jsonl").unlink()
        self._write(steps)
        return {**result, "repeats": len(found)}


def peak_memory():
    """Return the peak memory of this process in MB.

    If possible, `ru_maxrss` is not used: on Linux it includes the memory of the parent process,
    which a new process shares until it starts its own program.
    """
    try:
        text = Path("/proc/self/status").read_text()
        return int(text.split("VmHWM:")[1].split()[0]) / 1e3
    except (OSError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1e6 if sys.platform == "darwin" else 1e3)


def time_of(work, seconds=1.0, max_calls=200):
    """Return the shortest time of a call, which is repeated until `seconds` have passed.

    The first call is not counted. A call that takes much longer than `seconds` is not repeated.
    """
    start = time.perf_counter()
    work()
    first = time.perf_counter() - start
    if first > 5 * seconds:
        return first
    times = []
    began = time.perf_counter()
    while not times or (len(times) < max_calls and time.perf_counter() - began < seconds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def curve(sizes, orders, some_sets, max_seconds=6.0):
    """Return the seconds of a value and gradient of one set for each size.

    Sizes that would take too long are left out. `some_sets(table)` returns a function that
    evaluates this table of sets. The set of size k consists of the first k items of a row of
    `orders`. Many small sets are evaluated in one call, so that the overhead of the call is small.
    """
    found = {}
    for k in sizes:
        chosen = orders if k <= SMALL else orders[:1]
        table = np.zeros(chosen.shape, dtype=np.int32)
        np.put_along_axis(table, chosen[:, :k], 1, axis=1)
        seconds = time_of(some_sets(table), seconds=0.3, max_calls=50) / len(chosen)
        found[str(k)] = seconds
        if seconds > max_seconds:
            break
    return found


def versions(*names):
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            # The package may be run from its source, without an installed version.
            found[name] = getattr(import_module(name), "__version__", "unknown")
    return found


def ready(job):
    """Return the seconds since the launch and the peak memory, before the fit begins."""
    return {"start-up, s": time.time() - job["launched"], "memory when ready, MB": peak_memory()}


def run(tasks, names):
    """Run the function of the task of the job, and write its result."""
    job = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(job["folder"])
    with np.load(job["samples"], allow_pickle=False) as file:
        X, theta = file["X"], file["theta"]
    result = {"versions": versions(*names), **ready(job)}
    result.update(tasks[job["task"]](job, X, theta, Recorder(folder, job["limit"])))
    result["peak memory, MB"] = result.get("peak memory, MB", peak_memory())
    (folder / "result.json").write_text(json.dumps(result))
