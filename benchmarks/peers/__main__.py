"""Compare sequela with other programs (peers): ``python -m benchmarks.peers [stage ...]``."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import warnings
from pathlib import Path

from benchmarks.peers.environments import install
from benchmarks.peers.measure import measure
from benchmarks.peers.plan import TITLES, plan
from benchmarks.peers.profiling import profile
from benchmarks.peers.records import RESULTS, Places, default_cache
from benchmarks.peers.report import report
from benchmarks.peers.score import score

STAGES = ("install", "measure", "score", "profile", "report")


def options(given: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument(
        "stages", nargs="*", metavar="stage",
        help=f"one or more of {', '.join(STAGES)}; all of them by default",
    )  # fmt: skip
    parser.add_argument("--only", metavar="TOOL", choices=sorted(TITLES), help="run only this tool")
    parser.add_argument("--case", metavar="NAME", help="run only this data set, such as gbm-20")
    parser.add_argument(
        "--limit", type=float, default=120.0, metavar="SECONDS",
        help="largest number of seconds of a fit (default 120)",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="run very small cases, as a test")
    parser.add_argument(
        "--resume", action="store_true",
        help="continue an interrupted run: keep the finished measurements and do the others",
    )  # fmt: skip
    parser.add_argument(
        "--envs", type=Path, metavar="FOLDER", help="folder for environments and thetas"
    )
    parser.add_argument(
        "--results", type=Path, metavar="FOLDER", help="folder for records and tables"
    )
    found = parser.parse_args(given)
    unknown = sorted(set(found.stages) - set(STAGES))
    if unknown:
        parser.error(f"there is no stage {unknown[0]!r}; expected one of {', '.join(STAGES)}")
    return found


def main(given: list[str] | None = None) -> None:
    """Run the requested stages in order."""
    asked = options(given)
    # Treat SIGTERM like Ctrl-C: workers have their own sessions and must be stopped as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    logging.getLogger("sequela").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    cache = (asked.envs or default_cache()).expanduser().resolve()
    # A quick run must not overwrite the real results.
    results = asked.results or (cache / "quick" if asked.quick else RESULTS)
    places = Places(results.resolve(), cache, "quick" if asked.quick else "full")
    stages = [stage for stage in STAGES if not asked.stages or stage in asked.stages]
    jobs = [
        job
        for job in plan(quick=asked.quick)
        if asked.only in (None, job.tool) and asked.case in (None, job.case)
    ]
    whole = asked.only is None and asked.case is None
    if "install" in stages:
        install(places, asked.only)
    if "measure" in stages:
        if whole and not asked.resume:
            places.forget(("sizes", "fit", "score"))
        measure(places, jobs, limit=asked.limit, resume=asked.resume, whole=whole)
    if "score" in stages:
        score(places, resume=asked.resume, only_cases=None if whole else {j.case for j in jobs})
    if "profile" in stages and whole:
        profile(places, quick=asked.quick)
    if "report" in stages:
        report(places)


if __name__ == "__main__":
    main()
