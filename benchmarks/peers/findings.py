"""The sentences of the report. All their numbers are computed from the records."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from benchmarks.peers.gather import AIMS, GEMM_AIM
from benchmarks.peers.plan import PAPER
from benchmarks.peers.tables import number

_WHAT = {"N": "samples", "n": "items", "interactions": "interactions"}


def sentences(found: dict[str, Any]) -> list[str]:
    """Return the findings, one per line."""
    rows = found["side by side"]
    lines = [
        *_against(rows, "mhn"),
        *_against_paper(rows),
        *_beyond(found["ours"]),
        *_growing(found["growth"]["slopes"]),
        *_kernel(found["kernel"]),
        *_phases(found["phases"]),
    ]
    return [line for line in lines if line]


def better_elsewhere(found: dict[str, Any]) -> list[str]:
    """Return the measurements in which a peer was better than sequela."""
    rows = [row for row in found["side by side"] if row["status"] in ("finished", "stopped")]
    lines = []
    for tool in ("mhn", "fastmhn"):
        own = [row for row in rows if row["tool"] == tool]
        lower = [row for row in own if _less(row, "peak memory, MB", "our peak memory, MB")]
        if lower:
            ratios = [row["our peak memory, MB"] / row["peak memory, MB"] for row in lower]
            before = min(row["our memory when ready, MB"] for row in lower)
            lines.append(
                f"Memory: {tool} needed less memory than sequela in {len(lower)} of {len(own)} "
                f"cases. Sequela needed up to {max(ratios):.1f} times as much. Of the memory of "
                f"sequela, {before:.0f} MB are libraries that are loaded before a fit begins."
            )
        quick = [row for row in own if _less(row, "start-up, s", "our start-up, s")]
        if quick:
            theirs, ours = (
                number(float(np.median([row[key] for row in quick])), 2)
                for key in ("start-up, s", "our start-up, s")
            )
            lines.append(
                f"Start-up: {tool} is ready after {theirs} s, and sequela after {ours} s. Sequela "
                "takes longer because it imports libraries and loads compiled code."
            )
        ahead = [row for row in own if _is_ahead(row)]
        lines += [
            f"Objective: on {row['title']}, {tool} ended at "
            f"{max(row['objective'], row['objective, rounded'] or -np.inf):.6f}, "
            f"and sequela at {row['our objective']:.6f}."
            for row in ahead
        ]
    return lines + _faster_sets(found["one set"])


def _faster_sets(records: dict[str, Any]) -> list[str]:
    """Return a sentence with the set sizes for which mhn is faster than sequela."""
    curves = [
        records.get(name, {}).get("seconds by size") or {}
        for name in ("mhn-dense", "sequela-dense")
    ]
    theirs, ours = curves
    sizes = [k for k in theirs if k in ours and theirs[k] < ours[k]]
    return (
        [f"Value and gradient of one set: mhn is faster for sets of {', '.join(sizes)} items."]
        if sizes
        else []
    )


def conditions(run: dict[str, Any]) -> list[str]:
    """Return the machine, the date and remarks on the measurements."""
    limits = ", ".join(f"{value:.0f}" for value in run["limits, s"])
    lines = [
        f"Machine: {'; '.join(run['machines'])}. Date: {', '.join(run['dates'])}. "
        f"Learning was stopped after {limits} s. There were {run['measurements']} measurements, "
        "one after the other."
    ]
    if len(run["machines"]) > 1:
        lines.append(
            "**The records are from more than one machine. Do not compare times from different "
            "machines.**"
        )
    if run["busy"]:
        lines.append(
            f"**The machine did other work during {run['busy']} of the measurements. Their times "
            "are too long, and their ratios are uncertain.**"
        )
    return lines


def _range(values: list[float]) -> str:
    """Return the smallest and the largest number as text, or one number if both are equal."""
    low, high = number(min(values), 2), number(max(values), 2)
    return low if low == high else f"{low} to {high}"


def _less(row: dict[str, Any], theirs: str, ours: str) -> bool:
    return row[theirs] is not None and row[ours] is not None and row[theirs] < row[ours]


def _is_ahead(row: dict[str, Any]) -> bool:
    """Return whether the objective of the peer is better by more than the sampling error."""
    if row["objective"] is None or row["our objective"] is None:
        return False
    best = max(row["objective"], row["objective, rounded"] or -np.inf)
    return best > row["our objective"] + 2.0 * ((row["error"] or 0.0) + (row["our error"] or 0.0))


def _against(rows: list[dict[str, Any]], tool: str) -> list[str]:
    """Return sentences that compare when a peer and sequela reached the peer's final objective."""
    done = [row for row in rows if row["tool"] == tool and row["objective"] is not None]
    if not done:
        return []
    reached = [row for row in done if row["times sooner"] is not None]
    missed = [row["title"] for row in done if row["times sooner"] is None]
    lines = []
    if reached:
        ratios = [row["times sooner"] for row in reached]
        single = [r["times sooner, one thread"] for r in reached if r["times sooner, one thread"]]
        aim = AIMS[tool]
        lines.append(
            f"{tool} learned models of {len(done)} data sets. On {len(reached)} of them, sequela "
            f"reached the final objective of {tool}. It did so {_range(ratios)} times sooner than "
            f"{tool} (median {number(float(np.median(ratios)), 2)} times"
            + (f"; with one thread {_range(single)} times" if single else "")
            + f"). The aim was {aim:.0f} times."
        )
        below = [row for row in reached if row["times sooner"] < aim]
        if below:
            each = [f"{row['title']} ({number(row['times sooner'], 2)})" for row in below]
            lines.append(f"This number is below the aim for {', '.join(each)}.")
    if missed:
        lines.append(
            f"With one start, sequela did not reach the objective of {tool} for "
            f"{', '.join(missed)}."
        )
    return lines


def _against_paper(rows: list[dict[str, Any]]) -> list[str]:
    """Return sentences on how much earlier sequela reached the objective of the paper's method.

    The first sentence is about n = 100 or, if there is no such fit, about the last fit.
    """
    done = [r for r in rows if r["tool"] == PAPER and r["objective"] is not None]
    real = [row for row in done if row["case"].startswith("gbm-")] or done
    if not real:
        return []
    row = next((r for r in real if r["n"] == 100), real[-1])
    ended = "was stopped" if row["status"] == "stopped" else "ended"
    sooner = row["times sooner"]
    had = (
        f"Sequela had reached the same objective after {number(row['we reached it after, s'], 2)} "
        f"s, which is {number(sooner, 2)} times sooner (the aim for n = 100 is {AIMS[PAPER]:.0f} "
        "times)"
        if sooner
        else "Sequela did not reach the same objective"
    )
    lines = [
        f"On {row['title']}, the paper's method {ended} after {number(row['seconds'])} s. {had}. "
        f"One gradient takes {number(row['gradient, s'], 2)} s with the paper's method, and "
        f"{number(row['our gradient, s'], 2)} s with sequela."
    ]
    others = [r for r in done if r is not row and r["times sooner"]]
    if others:
        lines.append(
            "On the other data sets, sequela reached the final objective of the paper's method "
            f"{_range([r['times sooner'] for r in others])} times sooner."
        )
    return lines


def _beyond(rows: list[dict[str, Any]]) -> list[str]:
    alone = [
        row
        for row in rows
        if not row["peers that finished it"] and not row["case"].startswith("grow")
    ]
    if not alone:
        return []
    each = ", ".join(f"{row['title']} ({number(row['seconds'], 2)} s)" for row in alone)
    return [
        "For the following data sets, only sequela finished a fit to all samples within the time "
        f"limit: {each}. The tables say how many samples were left out for the other programs."
    ]


def _growing(slopes: dict[str, Any]) -> list[str]:
    if not slopes:
        return []
    parts = []
    for name, fitted in slopes.items():
        cost, varied = name.split(" against ")
        what = "learning" if cost == "seconds" else "one gradient"
        low, high = fitted["from to"]
        size = "(number of interactions)" if varied == "interactions" else varied
        parts.append(
            f"the time of {what} as {size}^{fitted['slope']:.2f} (for {low:,} to {high:,} "
            f"{_WHAT[varied]})"
        )
    return [
        "The time that sequela takes grows as a power of the size of the data (see the table of "
        f"growth): {'; '.join(parts)}."
    ]


def _kernel(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    shares = [row["share of GEMM peak"] for row in rows]
    below = [f"n = {r['n']}, k = {r['k']}" for r in rows if r["share of GEMM peak"] < GEMM_AIM]
    floors = [row["times the floor"] for row in rows]
    text = (
        f"For sets of at least {min(row['k'] for row in rows)} items, the exact kernel reaches "
        f"between {min(shares):.0%} and {max(shares):.0%} of the measured peak speed of a matrix "
        f"product (the aim is {GEMM_AIM:.0%}). It takes between {min(floors):.1f} and "
        f"{max(floors):.1f} times the shortest time that arithmetic and memory allow."
    )
    if below:
        text += f" The kernel is below the aim for {'; '.join(below)}."
    return [text]


def _phases(rows: list[dict[str, Any]]) -> list[str]:
    """Return a sentence about the speed of the phases of the kernel."""
    products = [row for row in rows if "matrix product" in row["phase"]]
    others = [row for row in rows if "matrix product" not in row["phase"]]
    if not products or not others:
        return []
    spent = Counter[int]()
    for row in others:
        spent[row["n"]] += row["share"]
    parts = ", ".join(f"{share:.0%} (n = {n})" for n, share in sorted(spent.items()))
    return [
        f"Inside the kernel (sets of k = {rows[0]['k']} items), the speed of the matrix products "
        f"is {_span(products)} of the peak speed, and that of the recursions over subsets is "
        f"{_span(others)}. The recursions take {parts} of the time of the kernel."
    ]


def _span(rows: list[dict[str, Any]]) -> str:
    shares = [row["share of GEMM peak"] for row in rows]
    return f"between {min(shares):.0%} and {max(shares):.0%}"
