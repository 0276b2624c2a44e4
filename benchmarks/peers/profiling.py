"""The stage `profile`: profiles of fits of sequela, instruction counts, and machine limits."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers.cases import PENALTY, dense_theta, load
from benchmarks.peers.environments import python_of, usable
from benchmarks.peers.kernel_phases import phases
from benchmarks.peers.machine_limits import kernel, limits
from benchmarks.peers.running import WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.peers.records import Places

_SECONDS = 6.0
_RATE = 200
_MOST_SECONDS = 600
# For each n, the number of gradients whose instructions are counted, in addition to a first
# gradient. If a gradient is fast, this number is larger, so that most of the counted instructions
# belong to gradients.
_COUNTED = {20: 50, 100: 5, 410: 1}
# Number of items of the set for the profile of the kernel.
_INSIDE = 15
# Instructions are counted only for sets of at most this many items. For all three n, these sets are
# evaluated exactly, so that the number of operations is known.
_COUNTED_SETS = 16
# The newest processor that valgrind can emulate.
_EMULATED = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "+sse2,+avx,+avx2,+fma"}
# Functions that only call other functions.
_WRAPPERS = ("sequela/support/jit.py", "sequela/support/threads.py")


def profile(places: Places, *, quick: bool = False) -> None:
    """Measure limits and kernel, profile fits, and count instructions; write all records."""
    places.forget(("profile",))
    found = limits()
    print(", ".join(f"{name}: {value:.1f}" for name, value in found.items()))
    rows = [] if quick else kernel(found)
    sizes = (10,) if quick else (20, 100, 410)
    peak = found["GEMM, one thread, GFlop/s"]
    inside = [row for n in sizes for row in phases(n, 8 if quick else _INSIDE, peak)]
    places.write("profile", "machine", {"limits": found, "kernel": rows, "phases": inside})
    for n in sizes:
        case = load(f"gbm-{n}")
        if case is None:
            print(
                "profiles are skipped, because the glioblastoma data were not found; set "
                "SEQUELA_DATA to their folder"
            )
            return
        print(f"profile at n = {n}: ", end="", flush=True)
        record = _profile(places, case.X, 1.0 if quick else _SECONDS)
        places.write("profile", f"fit-{n}", {"n": n, **record})
        print(", ".join(f"{row['share']:.0%} {row['entry']}" for row in record["rows"][:3]))
    if not quick:
        places.write("profile", "instructions", _instructions(sizes))


def _profile(places: Places, X: np.ndarray, seconds: float) -> dict[str, Any]:
    """Run fits on one thread under a profiler; return the functions that take the most time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez_compressed(folder / "samples.npz", X=X)
        job = {
            "folder": name, "samples": str(folder / "samples.npz"), "penalty": PENALTY,
            "seconds": seconds, "threads": 1,
        }  # fmt: skip
        stacks = _py_spy(places, folder, job) if usable(places, "py-spy") else None
        if stacks is not None:
            shares = count_entries(stacks.splitlines())
            return {"profiler": "py-spy", "rows": _rows(shares), "lines": _rows(_by_line(stacks))}
        _start([sys.executable], folder, {**job, "cprofile": True})
        rows = json.loads((folder / "result.json").read_text())["rows"]
        return {"profiler": "cProfile", "rows": _rows(Counter(dict(rows))), "lines": []}


def _py_spy(places: Places, folder: Path, job: dict[str, Any]) -> str | None:
    """Return the stacks that py-spy recorded, or None if it has no permission."""
    spy = python_of(places, "py-spy").with_name("py-spy")
    raw = folder / "stacks.txt"
    record = ["record", "--rate", str(_RATE), "--format", "raw", "--output", str(raw), "--"]
    done = _start([str(spy), *record, sys.executable], folder, job)
    return raw.read_text() if done and raw.exists() else None


def _start(command: list[str], folder: Path, job: dict[str, Any]) -> bool:
    asked = folder / "job.json"
    asked.write_text(json.dumps(job))
    worker = str(WORKERS / "profile_worker.py")
    done = subprocess.run(  # noqa: S603 - our own worker
        [*command, worker, str(asked)], capture_output=True, check=False, timeout=_MOST_SECONDS
    )
    return done.returncode == 0


def count_entries(stacks: list[str], *, lines: bool = False) -> Counter[str]:
    """Count in how many stacks each function of sequela was the innermost one.

    A line of `stacks` has the frames of a stack, the outermost first, separated by semicolons, and
    the number of times that the profiler saw this stack. Wrappers are ignored. Compiled code and
    NumPy count for the function of sequela that calls them.
    """
    found: Counter[str] = Counter()
    for line in stacks:
        frames, _, count = line.rpartition(" ")
        if "measured_part" not in frames:
            continue
        inside = [frame for frame in frames.split(";") if "(sequela/" in frame]
        inside = [frame for frame in inside if not any(name in frame for name in _WRAPPERS)]
        if not inside:
            continue
        match = re.fullmatch(r"(.*) \((.*):(\d+)\)", inside[-1])
        if match:
            function, file, number = match.groups()
            function = function.replace(".<locals>", "")
            key = f"{file}:{number}" if lines else f"{function} ({Path(file).name})"
            found[key] += int(count)
    return found


def _by_line(stacks: str) -> Counter[str]:
    return count_entries(stacks.splitlines(), lines=True)


def _rows(counts: Counter[str]) -> list[dict[str, Any]]:
    total = sum(counts.values()) or 1
    return [{"entry": name, "share": own / total} for name, own in counts.most_common(8)]


def _instructions(sizes: tuple[int, ...]) -> dict[str, Any]:
    """Count the instructions of a gradient, with hardware counters or an emulated processor."""
    perf, valgrind = shutil.which("perf"), shutil.which("valgrind")
    count: Callable[[str, list[str], dict[str, str]], int | None]
    with tempfile.TemporaryDirectory() as folder:
        if perf and _count_perf(perf, ["-c", "pass"], dict(os.environ)) is not None:
            tool, count, environment = "perf stat", _count_perf, dict(os.environ)
        elif valgrind:
            # Compile separately, for a processor that valgrind can emulate.
            tool, count = "valgrind, AVX2 build", _count_valgrind
            environment = {**os.environ, **_EMULATED, "NUMBA_CACHE_DIR": folder}
        else:
            message = "neither perf counters nor valgrind are available"
            return {"tool": None, "message": message, "rows": []}
        environment["PYTHONHASHSEED"] = "0"
        program = perf if tool == "perf stat" else valgrind
        worker = str(WORKERS / "count_worker.py")
        rows: list[dict[str, Any]] = []
        base = 0
        for n in sizes:
            case = load(f"gbm-{n}")
            if case is None:
                break
            X = case.up_to(_COUNTED_SETS)
            samples = Path(folder) / f"{n}.npz"
            np.savez_compressed(samples, X=X, theta=dense_theta(X))
            asked = [worker, str(samples)]
            if not rows:
                _plain([*asked, "1"], environment)
                base = count(program or "", [*asked, "1"], environment) or 0
            more = _COUNTED[n]
            print(f"instructions at n = {n}: ", end="", flush=True)
            total = count(program or "", [*asked, str(1 + more)], environment)
            if total is None or not base:
                return {"tool": tool, "message": f"{tool} gave no count", "rows": rows}
            sizes_of = np.unique(X, axis=0).sum(axis=1)
            # `base` counts the instructions of a process that starts and computes one gradient for
            # the first (smallest) n. For this n, `total` differs from `base` by `more` gradients.
            # For a larger n, `total` includes `more + 1` gradients for this n. All of them count,
            # because the gradient in `base` is much faster and is ignored.
            gradients = more if not rows else more + 1
            each = (total - base) / gradients
            operations = float(np.sum(6 * n * 2.0**sizes_of))
            rows.append({"n": n, "instructions": each, "operations": operations})
            print(f"{each:.3g}")
        return {"tool": tool, "message": "", "rows": rows}


def _plain(arguments: list[str], environment: dict[str, str]) -> None:
    subprocess.run(  # noqa: S603 - our own worker
        [sys.executable, *arguments], env=environment, capture_output=True, check=False,
        timeout=_MOST_SECONDS,
    )  # fmt: skip


def _count(command: list[str], environment: dict[str, str], pattern: str) -> int | None:
    try:
        done = subprocess.run(  # noqa: S603 - our own worker
            command, env=environment, capture_output=True, text=True, check=False,
            timeout=_MOST_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(pattern, done.stderr)
    return int(match[1].replace(",", "")) if match and done.returncode == 0 else None


def _count_perf(perf: str, arguments: list[str], environment: dict[str, str]) -> int | None:
    command = [perf, "stat", "-x", ";", "-e", "instructions:u", sys.executable, *arguments]
    return _count(command, environment, r"(?m)^(\d+);")


def _count_valgrind(valgrind: str, arguments: list[str], environment: dict[str, str]) -> int | None:
    options = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    command = [valgrind, *options, sys.executable, *arguments]
    return _count(command, environment, r"I\s+refs:\s+([\d,]+)")
