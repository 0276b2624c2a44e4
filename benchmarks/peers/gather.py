"""Collect from the records the values for tables, plots and sentences, and for peers.json."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers import plan as plans
from benchmarks.peers.measure import BUSY

if TYPE_CHECKING:
    from benchmarks.peers.records import Places

# Aim: sequela reaches the final objective of a peer this many times earlier.
AIMS = {"mhn": 10.0, plans.PAPER: 100.0}
# Aim: the exact kernel reaches this share of the speed of a matrix product.
GEMM_AIM = 0.25
_OURS = (plans.OURS, plans.ONE_THREAD)


def gather(places: Places) -> dict[str, Any]:
    """Return all values of a report, as numbers and texts that JSON can store."""
    fits = {record["name"]: record for record in places.all("fit")}
    scores = {record["name"]: record for record in places.all("score")}
    profiles = {record["name"]: record for record in places.all("profile")}
    machine = profiles.get("machine", {})
    return {
        "run": _run(places, fits),
        "side by side": side_by_side(fits, scores),
        "ours": _ours(fits, scores),
        "known theta": _known(fits, scores),
        "growth": growth(fits),
        "one set": {record["name"]: record for record in places.all("sizes")},
        "curves": {name: score["curve"] for name, score in scores.items()},
        "limits": machine.get("limits"),
        "kernel": machine.get("kernel", []),
        "phases": machine.get("phases", []),
        "profiles": [
            {key: record[key] for key in ("n", "profiler", "rows", "lines")}
            for name, record in sorted(profiles.items(), key=lambda pair: pair[1].get("n", 0))
            if name.startswith("fit-")
        ],
        "instructions": profiles.get("instructions"),
    }


def _run(places: Places, fits: dict[str, Any]) -> dict[str, Any]:
    """Return how the records were made: machines, dates, limits, versions and installations."""
    versions: dict[str, dict[str, str]] = {}
    for record in fits.values():
        tool = plans.OURS if record["tool"] in (*_OURS, plans.PAPER) else record["tool"]
        versions.setdefault(tool, record.get("versions") or {})
    everything = [*fits.values(), *places.all("profile")]
    return {
        "machines": sorted({record["machine"] for record in everything}),
        "dates": sorted({record["date"] for record in everything}),
        "limits, s": sorted({r["limit, s"] for r in fits.values() if "limit, s" in r}),
        "versions": {tool: versions[tool] for tool in plans.TITLES if versions.get(tool)},
        "installations": list(places.all("install")),
        "measurements": len(fits),
        "busy": sum(record.get("load before", 0.0) > BUSY for record in fits.values()),
    }


def side_by_side(fits: dict[str, Any], scores: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one row per peer and case, with the values of sequela on the same samples."""
    rows = []
    for name, fit in fits.items():
        if fit["tool"] in _OURS:
            continue
        score = scores.get(name, {})
        ours = fits.get(score.get("our fit", ""), {}) or _same(fits, fit)
        reached = score.get("ours reached it after, s")
        row = {
            "case": fit["case"],
            "title": fit["title"],
            "tool": fit["tool"],
            "n": fit["n"],
            "N": fit["N"],
            "left out": fit["left out"],
            "why left out": fit.get("why left out", ""),
            "largest set": fit["largest set"],
            "status": fit["status"],
            "message": fit.get("message", ""),
            "gradient, s": fit.get("gradient, s"),
            "our gradient, s": ours.get(
                "gradient alone, s" if fit["tool"] == plans.PAPER else "gradient, s"
            ),
            "seconds": fit.get("seconds"),
            "our seconds": ours.get("seconds"),
            "peak memory, MB": fit.get("peak memory, MB"),
            "our peak memory, MB": ours.get("peak memory, MB"),
            "our memory when ready, MB": ours.get("memory when ready, MB"),
            "start-up, s": fit.get("start-up, s"),
            "our start-up, s": ours.get("start-up, s"),
            "objective": score.get("objective"),
            "error": score.get("error"),
            "objective, rounded": score.get("objective, rounded"),
            "our objective": score.get("our objective"),
            "our error": score.get("our error"),
            "exact up to": score.get("exact up to"),
            "sampled sets": score.get("sampled sets"),
            "we reached it after, s": reached,
            "one thread reached it after, s": score.get("ours on one thread reached it after, s"),
            "near it after, s": score.get("itself was near it after, s"),
            "we were near it after, s": score.get("ours was near it after, s"),
        }
        row["times sooner"] = _ratio(row["seconds"], reached)
        row["times sooner, one thread"] = _ratio(
            row["seconds"], row["one thread reached it after, s"]
        )
        row["times sooner near it"] = _ratio(
            row["near it after, s"], row["we were near it after, s"]
        )
        rows.append(row)
    order = list(plans.TITLES)
    return sorted(
        rows, key=lambda row: (order.index(row["tool"]), _family(row), row["n"], row["N"])
    )


def _same(fits: dict[str, Any], fit: dict[str, Any]) -> dict[str, Any]:
    """Return the fit of sequela to all samples if the peer used all samples, else an empty dict.

    The function is used for peers without a learned theta, which have no score.
    """
    found = fits.get(plans.Job(fit["case"], plans.OURS).name, {})
    return found if found.get("N") == fit["N"] else {}


def _family(row: dict[str, Any]) -> int:
    starts = ("gbm", "table", "pan", "sim", "grow")
    return next(at for at, start in enumerate(starts) if row["case"].startswith(start))


def _ratio(theirs: float | None, ours: float | None) -> float | None:
    return theirs / ours if theirs is not None and ours else None


def _ours(fits: dict[str, Any], scores: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one row per fit of sequela to all samples.

    A row also names the peers that finished a fit to all of these samples.
    """
    rows = []
    for name, fit in fits.items():
        if fit["tool"] != plans.OURS or fit["same as"] or fit.get("seconds") is None:
            continue
        score = scores.get(name, {})
        peers = [fits.get(plans.Job(fit["case"], tool).name, {}) for tool in ("mhn", "fastmhn")]
        whole = [
            record["tool"]
            for record in peers
            if record.get("status") == "finished" and record["left out"] == 0
        ]
        names = ("case", "title", "n", "N", "largest set", "mean set", "seconds", "gradient, s")
        rows.append(
            {
                **{key: fit[key] for key in names},
                "gradient alone, s": fit["gradient alone, s"],
                "evaluations": fit["evaluations"],
                "interactions": fit["interactions"],
                "peak memory, MB": fit["peak memory, MB"],
                "message": fit["message"],
                "objective": score.get("objective"),
                "error": score.get("error"),
                "own objective": fit["own objective"],
                "exact up to": score.get("exact up to"),
                "sampled sets": score.get("sampled sets"),
                "peers that finished it": whole,
            }
        )
    return sorted(rows, key=lambda row: (_family(row), row["n"], row["N"]))


def _known(fits: dict[str, Any], scores: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the errors of fits to simulated data, for which theta is known."""
    names = (
        "error of theta, interacting", "false effects", "KL of sequences",
        "KL of sequences, error", "orders right", "orders asked", "objective",
    )  # fmt: skip
    rows = []
    for name, score in scores.items():
        fit = fits.get(name)
        if fit is None or "KL of sequences" not in score or fit["tool"] == plans.ONE_THREAD:
            continue
        about = {key: fit[key] for key in ("case", "title", "tool", "n", "N", "left out", "status")}
        rows.append({**about, "same as": fit["same as"], **{key: score[key] for key in names}})
    order = list(plans.TITLES)
    return sorted(rows, key=lambda row: (row["n"], row["N"], order.index(row["tool"])))


def growth(fits: dict[str, Any]) -> dict[str, Any]:
    """Return times for different N, n and numbers of interactions, with slopes on log scales."""
    rows = []
    for fit in fits.values():
        match = re.fullmatch(r"grow-n(\d+)-N(\d+)(?:-i(\d+))?", fit["case"])
        if match and fit["tool"] == plans.OURS and fit.get("gradient, s"):
            rows.append(
                {
                    "n": fit["n"],
                    "N": fit["N"],
                    "interactions": int(match[3] or 6),
                    "mean set": fit["mean set"],
                    "largest set": fit["largest set"],
                    "gradient, s": fit["gradient alone, s"],
                    "seconds": fit.get("seconds"),
                    "peak memory, MB": fit["peak memory, MB"],
                }
            )
    found: dict[str, Any] = {"rows": rows, "slopes": {}}
    for key in ("N", "n", "interactions"):
        series = varied(rows, key)
        for cost in ("gradient, s", "seconds"):
            known = [row for row in series if row[cost]]
            if len(known) >= 2:
                x, y = ([np.log(row[name]) for row in known] for name in (key, cost))
                slope = float(np.polyfit(x, y, 1)[0])
                ends = [known[0][key], known[-1][key]]
                found["slopes"][f"{cost} against {key}"] = {"slope": slope, "from to": ends}
    return found


def varied(rows: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Return the longest series of rows that differ only in the quantity `key`."""
    others = [name for name in ("N", "n", "interactions") if name != key]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in others), []).append(row)
    longest = max(groups.values(), key=len, default=[])
    return sorted(longest, key=lambda row: row[key])
