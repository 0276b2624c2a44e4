"""The stage `measure`: run every job in its own process, one after the other."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers import plan as plans
from benchmarks.peers.cases import PENALTY, Case, dense_theta, load
from benchmarks.peers.environments import installation, usable
from benchmarks.peers.running import run_worker, worker_command

if TYPE_CHECKING:
    from benchmarks.peers.plan import Job
    from benchmarks.peers.records import Places

# Other work on the machine makes times longer. A load average above this limit is recorded and
# reported. The previous measurement may have used every core, so only a load above the number of
# cores means that there is other work.
BUSY = (os.cpu_count() or 1) + 0.5


def measure(
    places: Places,
    jobs: list[Job],
    *,
    limit: float,
    resume: bool,
    whole: bool = True,
) -> None:
    """Run the jobs and write their records; with `resume`, leave out jobs that have a record."""
    from benchmarks.engine import touch_everything

    print("compiling all kernels, if they are not in the cache yet")
    touch_everything()
    # If only a part of the plan is run, use the existing times of single sets.
    _set_sizes(places, resume=resume or not whole)
    for at, job in enumerate(jobs):
        if resume and places.read("fit", job.name):
            continue
        case = load(job.case)
        print(f"[{at + 1} of {len(jobs)}] {job.name}: ", end="", flush=True)
        record = _one(places, job, case, limit)
        if record is not None:
            print(_said(places.write("fit", job.name, record)))


def _set_sizes(places: Places, *, resume: bool) -> None:
    """Measure the time of value and gradient for single sets of increasing size.

    The times of mhn determine which sets it can use.
    """
    n = plans.SET_SIZE_ITEMS
    rng = np.random.default_rng(0)
    X = np.array([rng.permutation(n) for _ in range(64)])
    dense = rng.uniform(-0.2, 0.2, (n, n))
    sparse = np.where(rng.random((n, n)) < 0.0045, rng.normal(0.0, 1.0, (n, n)), 0.0)
    for theta in (dense, sparse):
        np.fill_diagonal(theta, -3.0)
    for tool, kind, theta in (
        ("mhn", "dense", dense),
        (plans.OURS, "dense", dense),
        (plans.OURS, "sparse", sparse),
    ):
        name = f"{tool}-{kind}"
        ready = tool == plans.OURS or usable(places, tool)
        if (resume and places.read("sizes", name)) or not ready:
            continue
        print(f"one set, {name}: ", end="", flush=True)
        job = {"task": "sizes", "sizes": plans.SET_SIZES, "limit": 120.0}
        found = run_worker(
            worker_command(places, tool), places.thetas(f"sizes-{name}"), job, X, theta
        )
        places.write("sizes", name, {"tool": tool, "theta": kind, "n": n, **found})
        print(found["status"])


def _one(places: Places, job: Job, case: Case | None, limit: float) -> dict[str, Any] | None:
    """Return the record of a job, or None if there is no record."""
    if case is None:
        print("skipped, because its data were not found; set SEQUELA_DATA to their folder")
        return None
    largest, why = _samples(places, job, case, limit)
    if why and largest is None:
        if job.same_as:
            print(f"skipped, because there is nothing to compare with: {why}")
            return None
        return {**_about(job, case, case.X), "status": "not possible", "message": why}
    X = case.up_to(largest)
    if job.same_as and len(X) == len(case.X) and job.tool == plans.OURS:
        # The peer can use all samples. So the fit of sequela to the samples of the peer is the same
        # as its fit to all samples.
        other = places.read("fit", plans.Job(job.case, job.tool).name)
        if other:
            print("skipped: the peer uses all samples, and sequela was fitted to them already")
            return None
    folder = places.thetas(job.name)
    options = {"task": "learn", "limit": limit, "penalty": PENALTY, **job.worker_options()}
    # In these cases the number of interactions varies. So use the true theta, which has this number
    # of interactions.
    growing = case.name.startswith("grow-")
    theta = case.truth if case.truth is not None and growing else dense_theta(X)
    load_before = os.getloadavg()[0]
    found = run_worker(worker_command(places, job.tool), folder, options, X, theta)
    return {
        **_about(job, case, X),
        "why left out": why,
        "limit, s": limit,
        "load before": load_before,
        **found,
    }


def _about(job: Job, case: Case, X: np.ndarray) -> dict[str, Any]:
    sizes = X.sum(axis=1)
    return {
        "case": case.name,
        "title": case.title,
        "tool": job.tool,
        "same as": job.same_as,
        "n": case.n,
        "N": len(X),
        "left out": len(case.X) - len(X),
        "largest set": int(sizes.max()),
        "mean set": float(sizes.mean()),
        "began": time.strftime("%H:%M:%S"),
    }


def _samples(places: Places, job: Job, case: Case, limit: float) -> tuple[int | None, str]:
    """Return the size of the largest set that the job can use, and the reason for this limit.

    None without a reason means that there is no limit. None with a reason means that the tool
    cannot run this case at all.
    """
    tool = job.same_as or job.tool
    if tool in ("mhn", "fastmhn") and usable(places, tool) is None:
        return None, f"{tool} is not installed: {installation(places, tool)['message']}"
    if tool != "mhn":
        return None, ""
    done = places.read("fit", plans.Job(job.case, "mhn").name)
    if job.same_as and done:
        if done["status"] in ("finished", "stopped"):
            return done["largest set"], done["why left out"]
        return None, "mhn could not fit this case"
    if case.n > plans.MHN_MOST_ITEMS:
        return None, f"mhn takes at most {plans.MHN_MOST_ITEMS} items"
    measured = (places.read("sizes", "mhn-dense") or {}).get("seconds by size")
    if not measured:
        return None, "the times of mhn for single sets have not been measured"
    largest = plans.largest_for_mhn(case.X, measured, limit)
    if largest >= case.X.sum(axis=1).max():
        return int(case.X.sum(axis=1).max()), ""
    return largest, f"sets with more than {largest} items would exceed the limit of {limit:.0f} s"


def _said(record: dict[str, Any]) -> str:
    parts = [record["status"]]
    if record.get("seconds") is not None:
        parts.append(f"after {record['seconds']:.2f} s")
    if record.get("gradient, s") is not None:
        parts.append(f"a gradient {record['gradient, s']:.2g} s")
    if record.get("message"):
        parts.append(str(record["message"])[:100])
    return ", ".join(parts)
