"""Compare the speed of two revisions: ``python -m benchmarks.compare BASE [HEAD]``.

Both revisions are checked out into temporary git worktrees and run with this interpreter and its
packages, on the same data. After compilation, every case runs in new processes that alternate
between the two revisions (base, head, base, head, ...), so that other work on the machine affects
both. The table has the median time of a call for each revision, and the ratio of the times of
adjacent runs (head / base): its median and, in brackets, its smallest and largest value. A ratio
below 1 means that head is faster. CPU time is more reliable than wall time if the machine has other
users. The column MB has the peak memory of a process, for base and for head.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import compare_cases, compare_data
from benchmarks.compare_cases import CASES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]
SIDES = ("base", "head")
# Largest number of seconds of one process. The first process of a revision also compiles.
LIMIT = 900.0
EXAMPLE = Path("src") / "sequela" / "data" / "example" / "samples.csv"

Run = dict[str, Any]


class RunError(Exception):
    """A process ended without a result. The message is the last line that it printed."""


@dataclass(frozen=True)
class Revision:
    """A revision that is checked out."""

    name: str
    commit: str
    folder: Path


# --- Revisions --------------------------------------------------------------------------------


def git(*arguments: str, at: Path) -> str:
    """Run git and return what it printed."""
    program = shutil.which("git")
    if program is None:
        raise SystemExit("git is not on the PATH")
    done = subprocess.run([program, *arguments], cwd=at, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextlib.contextmanager
def checked_out(names: Sequence[str], root: Path, folder: Path) -> Iterator[dict[str, Revision]]:
    """Check out two revisions, which may be the same, into separate worktrees."""
    commits = [git("rev-parse", "--verify", f"{name}^{{commit}}", at=root) for name in names]
    found: dict[str, Revision] = {}
    try:
        for side, name, commit in zip(SIDES, names, commits, strict=True):
            place = folder / side
            git("worktree", "add", "--detach", str(place), commit, at=root)
            found[side] = Revision(name, commit, place)
        yield found
    finally:
        for revision in found.values():
            git("worktree", "remove", "--force", str(revision.folder), at=root)
        git("worktree", "prune", at=root)  # removes a worktree whose checkout was not completed


# --- One process ------------------------------------------------------------------------------


def environment(revision: Revision) -> dict[str, str]:
    """Return the environment variables of a process that imports this revision, on one thread."""
    # Without these variables, compiled code is stored next to the sources of its revision. So each
    # revision compiles only once.
    dropped = {"NUMBA_CACHE_DIR", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "SLURM_CPUS_PER_TASK"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    libraries = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
    one = dict.fromkeys([f"{name}_NUM_THREADS" for name in libraries], "1")
    path = {"PYTHONPATH": str(revision.folder / "src"), "LOKY_MAX_CPU_COUNT": "1"}
    return {**kept, **one, **path}


def run(revision: Revision, *arguments: str) -> Run:
    """Run a task of compare_cases in a new process and return its result."""
    # -P: Python must not search for modules in the folder of the script.
    command = [sys.executable, "-P", compare_cases.__file__, *arguments]
    start = time.perf_counter()
    try:
        done = subprocess.run(  # noqa: S603 - our own script
            command,
            cwd=revision.folder,
            env=environment(revision),
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"no result after {LIMIT:g} s") from None
    wall = time.perf_counter() - start
    if done.returncode:
        words = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RunError(words[-1])
    found: Run = {"wall": wall, **json.loads(done.stdout.splitlines()[-1])}
    if not Path(found["package"]).is_relative_to(revision.folder.resolve()):
        raise SystemExit(f"{revision.name} ran another sequela, from {found['package']}")
    return found


# --- Data -------------------------------------------------------------------------------------


def write_data(sides: Mapping[str, Revision], folder: Path, needed: set[str]) -> None:
    """Write the files that the cases need. Files whose source data do not exist are left out."""
    compare_data.write_simulated(folder)
    table = next(
        (r.folder / EXAMPLE for r in sides.values() if (r.folder / EXAMPLE).exists()), None
    )
    if table is not None:
        shutil.copy(table, folder / "example.csv")
        compare_data.write_table(folder / "example.npz", table)
    source = Path(os.environ.get("SEQUELA_DATA", ROOT.parent / "shared" / "data")).resolve() / "gbm"
    if "glioblastoma.npz" not in needed or not source.is_dir():
        return
    samples = folder / "glioblastoma.npy"
    # Base writes the samples. If this fails, head writes them.
    for revision in sides.values():
        with contextlib.suppress(RunError):
            run(revision, "glioblastoma", str(source), str(samples))
            compare_data.write_samples(folder / "glioblastoma.npz", np.load(samples))
            return


# --- Comparison -------------------------------------------------------------------------------


def compare(
    cases: Sequence[str], measure: Callable[[str, str, bool], Run], repeats: int
) -> list[dict[str, Any]]:
    """Measure the cases and return one record for each.

    `measure` has three arguments: a revision, a case, and whether this is the first run, which
    compiles and is not counted. If a case fails, it is not run again, and its record has the error.
    """
    records: list[dict[str, Any]] = []
    for name in cases:
        record: dict[str, Any] = {"case": name, **{side: [] for side in SIDES}}
        records.append(record)
        try:
            for side in SIDES:
                measure(side, name, True)
            for _ in range(repeats):
                for side in SIDES:
                    record[side].append(measure(side, name, False))
        except RunError as error:
            record["error"] = f"{side}: {error}"
            continue
        record.update(summarise(record))
    return records


def summarise(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return median times, ratios of adjacent runs, and the difference between the two results."""
    found: dict[str, Any] = {}
    for clock in ("wall", "cpu"):
        base, head = ([one[clock] for one in record[side]] for side in SIDES)
        ratios = [h / b for b, h in zip(base, head, strict=True)]
        found[clock] = {
            "base": statistics.median(base),
            "head": statistics.median(head),
            "ratio": statistics.median(ratios),
            "smallest": min(ratios),
            "largest": max(ratios),
        }
    base, head = ([one.get("memory", math.nan) for one in record[side]] for side in SIDES)
    found["memory"] = {"base": statistics.median(base), "head": statistics.median(head)}
    before, after = (record[side][-1]["result"] for side in SIDES)
    scale = max(abs(before), abs(after)) or 1.0
    found["difference of results"] = abs(after - before) / scale
    return found


def lines(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table, one line per case."""

    def ratio(found: Mapping[str, float]) -> str:
        return f"{found['ratio']:.2f} ({found['smallest']:.2f} to {found['largest']:.2f})"

    head = ["case", "base, s", "head, s", "wall, head/base", "CPU, head/base", "MB", "result"]
    body = []
    for record in records:
        if "error" in record:
            body.append([record["case"], "", "", "", "", "", f"failed: {record['error']}"])
            continue
        differ = record["difference of results"]
        times = [f"{record['wall'][side]:.3g}" for side in SIDES]
        ratios = [ratio(record[clock]) for clock in ("wall", "cpu")]
        same = "same" if differ < 1e-9 else f"differs by {differ:.0e}"
        most = " to ".join(f"{record['memory'][side]:.0f}" for side in SIDES)
        body.append([record["case"], *times, *ratios, most, same])
    widths = [max(len(row[i]) for row in [head, *body]) for i in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [head, *body]
    ]


# --- The command ------------------------------------------------------------------------------


def options(given: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("base", help="the revision to compare with, such as main or HEAD~1")
    parser.add_argument(
        "head", nargs="?", default="HEAD", help="the other revision (default: HEAD)"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        default=[],
        help="run only cases whose name contains NAME",
    )
    parser.add_argument(
        "--repeats",
        type=int,
        default=5,
        metavar="N",
        help="number of runs of each case and revision (default: 5)",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write all times as JSON")
    asked = parser.parse_args(given)
    if asked.repeats < 1:
        parser.error(f"--repeats must be at least 1; found {asked.repeats}")
    asked.cases = [n for n in CASES if not asked.only or any(part in n for part in asked.only)]
    if not asked.cases:
        parser.error(f"no case has {' or '.join(asked.only)} in its name: {'; '.join(CASES)}")
    return asked


def main(given: Sequence[str] | None = None, root: Path = ROOT) -> None:
    """Compare two revisions and print the table."""
    asked = options(given)
    if git("status", "--porcelain", "--untracked-files=no", at=root):
        print(
            "there are uncommitted changes, which are not measured; commit them first to measure "
            "them",
            file=sys.stderr,
        )
    with tempfile.TemporaryDirectory(prefix="sequela-compare-") as temporary:
        folder = Path(temporary)
        data = folder / "data"
        data.mkdir()
        with checked_out((asked.base, asked.head), root, folder) as sides:
            write_data(sides, data, {CASES[name].needs for name in asked.cases})
            ready = [name for name in asked.cases if (data / CASES[name].needs).exists()]

            def measure(side: str, name: str, first: bool) -> Run:
                if first and side == SIDES[0]:
                    print(f"{name} ...", file=sys.stderr, flush=True)
                measurements = 0 if first else compare_cases.MEASUREMENTS
                return run(sides[side], "measure", name, str(data), str(measurements))

            records = compare(ready, measure, asked.repeats)
    for side, revision in sides.items():
        print(f"{side}: {revision.name} ({revision.commit[:10]})")
    print("\n".join(lines(records)))
    for name in asked.cases:
        if name not in ready:
            print(
                f"{name}: skipped, because its data were not found; set SEQUELA_DATA to their "
                "folder"
            )
    if asked.output is not None:
        asked.output.write_text(json.dumps(report(sides, records), indent=1) + "\n")


def report(sides: Mapping[str, Revision], records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the content of the file: the revisions, the machine and all times."""
    return {
        **{side: {"revision": r.name, "commit": r.commit} for side, r in sides.items()},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cases": list(records),
    }


if __name__ == "__main__":
    main()
