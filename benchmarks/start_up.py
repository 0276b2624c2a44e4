"""Measure the whole process of a first fit: ``python -m benchmarks.start_up BASE [HEAD]``.

Each process imports its package, reads a table of 20 items and learns a model. The programs are two
revisions of sequela, which are checked out as in `benchmarks.compare`, and mhn in its own
environment. This environment is created on first use and needs a C compiler
(`benchmarks.peers.environments`). The programs run in turn, on one thread. The first run of each
program is not counted. CPU time and peak memory are those that Linux reports. A run that is called
"cold" starts with an empty cache of compiled kernels.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import compare, compare_cases, compare_data
from benchmarks.peers.environments import install, python_of, usable
from benchmarks.peers.records import Places, default_cache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The last lines of every script: they print the peak memory of the process, in kB.
STATUS = """
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""

OURS = (
    """
import sys, warnings
warnings.simplefilter("ignore")
import sequela
data = sequela.read_table(sys.argv[1]).data
sequela.fit(data, penalty=float(sys.argv[2]), n_threads=1, random_state=1)
"""
    + STATUS
)

THEIRS = (
    """
import sys, warnings
warnings.simplefilter("ignore")
from mhn.optimizers import cMHNOptimizer
optimizer = cMHNOptimizer().load_data_from_csv(sys.argv[1], delimiter=",")
optimizer.train(lam=float(sys.argv[2]))
"""
    + STATUS
)

PENALTY = 0.01
LARGEST_SET = 9  # the largest size of a set, as in the older glioblastoma table of 20 items


def spent(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Run a process; return its CPU seconds and its peak memory in MB."""
    process = subprocess.Popen(  # noqa: S603 - our own scripts
        command, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    with process.stdout as output:
        said = output.read().split()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, int(said[-1]) * 1024 / 1e6


def commands(
    sides: Mapping[str, compare.Revision], table: Path, peer: Path | None
) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Return the command and the environment variables of every program."""
    given = [str(table), str(PENALTY)]
    found = {
        side: ([sys.executable, "-P", "-c", OURS, *given], compare.environment(revision))
        for side, revision in sides.items()
    }
    if peer is not None:
        plain = next(iter(found.values()))[1]
        kept = {name: value for name, value in plain.items() if name != "PYTHONPATH"}
        found["mhn"] = ([str(peer), "-c", THEIRS, *given], kept)
    return found


def measure(
    programs: Mapping[str, tuple[list[str], dict[str, str]]], repeats: int
) -> dict[str, list[tuple[float, float]]]:
    """Run all programs in turn. The first run of each program is not counted."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for turn in range(repeats + 1):
        for name, (command, environment) in programs.items():
            used = spent(command, environment)
            if turn:
                found[name].append(used)
    return found


def measure_cold(
    programs: Mapping[str, tuple[list[str], dict[str, str]]],
) -> dict[str, list[tuple[float, float]]]:
    """Run the revisions of sequela once each, with an empty cache."""
    found = {}
    for name in compare.SIDES:
        command, environment = programs[name]
        with tempfile.TemporaryDirectory() as cache:
            found[f"{name}, cold"] = [spent(command, {**environment, "NUMBA_CACHE_DIR": cache})]
    return found


def lines(found: Mapping[str, Sequence[tuple[float, float]]]) -> list[str]:
    """Return the table: median CPU seconds and memory of each program, also as ratios to base."""

    def medians(name: str) -> tuple[float, float]:
        seconds, megabytes = zip(*found[name], strict=True)
        return statistics.median(seconds), statistics.median(megabytes)

    rows = [f"{'':12} {'CPU, s':>8} {'MB':>6} {'CPU / base':>11} {'MB / base':>10}"]
    for name in found:
        seconds, megabytes = medians(name)
        against = medians("base, cold" if name.endswith("cold") else "base")
        rows.append(
            f"{name:12} {seconds:8.2f} {megabytes:6.0f} {seconds / against[0]:11.2f} "
            f"{megabytes / against[1]:10.2f}"
        )
    return rows


def find_mhn(*, wanted: bool) -> Path | None:
    """Return the Python interpreter of the environment of mhn. Create the environment if needed."""
    if not wanted:
        return None
    with tempfile.TemporaryDirectory() as folder:
        places = Places(results=Path(folder), cache=default_cache())
        install(places, only="mhn")
        return python_of(places, "mhn") if usable(places, "mhn") else None


def _simulated(folder: Path) -> Path:
    """Write samples of 20 items without the large sets, on which mhn takes minutes."""
    compare_data.write_simulated(folder)
    X = compare_cases.load(folder / "n20.npz")[1]
    table = folder / "table.csv"
    compare_data.write_csv(table, X[X.sum(axis=1) <= LARGEST_SET])
    return table


def main(given: Sequence[str] | None = None, root: Path = compare.ROOT) -> None:
    """Run the measurements, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start_up")
    parser.add_argument("base", help="the revision to compare with")
    parser.add_argument(
        "head", nargs="?", default="HEAD", help="the other revision (default: HEAD)"
    )
    parser.add_argument(
        "--repeats", type=int, default=9, help="number of runs of each program (default: 9)"
    )
    parser.add_argument(
        "--table", type=Path, help="table of samples to fit (default: simulated samples)"
    )
    parser.add_argument("--no-mhn", action="store_true", help="leave mhn out")
    parser.add_argument("--cold", action="store_true", help="also measure with an empty cache")
    asked: Any = parser.parse_args(given)
    peer = find_mhn(wanted=not asked.no_mhn)
    with tempfile.TemporaryDirectory(prefix="sequela-start-up-") as temporary:
        folder = Path(temporary)
        table = asked.table.resolve() if asked.table else _simulated(folder)
        with compare.checked_out((asked.base, asked.head), root, folder) as sides:
            programs = commands(sides, table, peer)
            found = measure(programs, asked.repeats)
            if asked.cold:
                found.update(measure_cold(programs))
    print("\n".join(lines(found)))


if __name__ == "__main__":
    main()
