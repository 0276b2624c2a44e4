"""The tables of the report, in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.peers.plan import TITLES
from benchmarks.peers.remarks import remark

if TYPE_CHECKING:
    from collections.abc import Iterable


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with this many significant digits, or a dash."""
    if value is None:
        return "-"
    if value == 0.0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:#.{digits}g}".rstrip(".")


def objective(value: float | None, error: float | None) -> str:
    """Return an objective with as many digits as its error allows."""
    if value is None:
        return "-"
    return f"{value:.4f} ± {error:.4f}" if error else f"{value:.6f}"


def markdown(columns: list[str], rows: Iterable[list[str]], *, text: int = 1) -> str:
    """Return a table; the first columns are text, the others are numbers."""
    rules = ["---"] * text + ["---:"] * (len(columns) - text)
    safe = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    lines = [columns, rules, *safe]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def status(row: dict[str, Any]) -> str:
    """Return the time of a fit as text, with a mark if the fit was stopped."""
    if row["seconds"] is None:
        return ""
    mark = " (stopped)" if row["status"] == "stopped" else ""
    return number(row["seconds"]) + mark


def side_by_side(rows: list[dict[str, Any]], tool: str) -> str:
    """Return the table that compares one peer with sequela on the same samples."""
    columns = [
        "data", "samples (left out)", "largest set", "gradient, s", "gradient of sequela, s",
        "learning, s", "learning of sequela, s", "memory, MB", "memory of sequela, MB", "objective",
        "objective of sequela", "sequela as good after, s", "times sooner",
    ]  # fmt: skip
    if tool == "mhn":
        columns.append("times sooner, one thread")
    found = []
    for row in rows:
        if row["tool"] != tool:
            continue
        if row["status"] in ("not possible", "failed"):
            blank = ["-"] * (len(columns) - 3)
            found.append([row["title"], f"none: {row['message']}", *blank, ""])
            continue
        best = max(filter(None, [row["objective"], row["objective, rounded"]]), default=None)
        out = f" ({row['left out']:,})" if row["left out"] else ""
        line = [
            row["title"],
            f"{row['N']:,}{out}",
            str(row["largest set"]),
            number(row["gradient, s"], 2),
            number(row["our gradient, s"], 2),
            status(row) or "not tried",
            number(row["our seconds"], 2),
            number(row["peak memory, MB"]),
            number(row["our peak memory, MB"]),
            objective(best, row["error"]),
            objective(row["our objective"], row["our error"]),
            number(row["we reached it after, s"], 2),
            number(row["times sooner"], 2),
        ]
        if tool == "mhn":
            line.append(number(row["times sooner, one thread"], 2))
        found.append(line)
    return markdown(columns, found)


def ours(rows: list[dict[str, Any]]) -> str:
    """Return the table of the fits of sequela to all samples."""
    columns = [
        "data", "samples", "largest set", "gradient, s", "learning, s", "evaluations",
        "interactions", "memory, MB", "objective",
        "other programs that finished with all samples",
    ]  # fmt: skip
    return markdown(
        columns,
        (
            [
                row["title"],
                f"{row['N']:,}",
                str(row["largest set"]),
                number(row["gradient, s"], 2),
                number(row["seconds"], 2),
                str(row["evaluations"]),
                str(row["interactions"]),
                number(row["peak memory, MB"]),
                objective(row["objective"], row["error"]),
                ", ".join(row["peers that finished it"]) or "none",
            ]
            for row in rows
            if not row["case"].startswith("grow-")
        ),
    )


def known_theta(rows: list[dict[str, Any]]) -> str:
    """Return the table of the differences between learned thetas and the known theta."""
    columns = [
        "data", "program", "samples left out", "error of theta", "false effects",
        "KL of sequences", "orders right",
    ]  # fmt: skip
    found = []
    for row in rows:
        tool = TITLES[row["tool"]]
        if row["same as"]:
            tool += f", on the samples of {row['same as']}"
        if row["status"] == "stopped":
            tool += " (stopped)"
        found.append(
            [
                row["title"].removeprefix("simulated, "),
                tool,
                f"{row['left out']:,}",
                number(row["error of theta, interacting"], 2),
                str(row["false effects"]),
                number(row["KL of sequences"], 2),
                f"{row['orders right'] * row['orders asked']:.0f} of {row['orders asked']}",
            ]
        )
    return markdown(columns, found, text=2)


def growth(found: dict[str, Any]) -> str:
    """Return the table of times for different N, n and numbers of interactions."""
    columns = [
        "items n", "samples N", "interactions", "mean set size", "gradient, s", "learning, s",
        "memory, MB",
    ]  # fmt: skip
    rows = sorted(found["rows"], key=lambda row: (row["interactions"], row["n"], row["N"]))
    return markdown(
        columns,
        (
            [
                f"{row['n']:,}",
                f"{row['N']:,}",
                f"{row['interactions']:,}",
                number(row["mean set"], 2),
                number(row["gradient, s"], 2),
                number(row["seconds"], 2),
                number(row["peak memory, MB"]),
            ]
            for row in rows
        ),
    )


def kernel(rows: list[dict[str, Any]]) -> str:
    """Return the table of the exact kernel and the limits of the machine."""
    columns = [
        "n", "k", "ms", "share of GEMM peak", "share with the recursion", "times the floor"
    ]  # fmt: skip
    return markdown(
        columns,
        (
            [
                str(row["n"]),
                str(row["k"]),
                number(row["seconds"] * 1e3),
                f"{row['share of GEMM peak']:.0%}",
                f"{row['share with the recursion']:.0%}",
                number(row["times the floor"], 2),
            ]
            for row in rows
        ),
    )


def phases(rows: list[dict[str, Any]]) -> str:
    """Return the table of the phases inside the exact kernel."""
    columns = ["n", "k", "phase", "ms", "share of the time", "GFlop/s", "share of GEMM peak"]
    return markdown(
        columns,
        (
            [
                str(row["n"]),
                str(row["k"]),
                row["phase"],
                number(row["seconds"] * 1e3),
                f"{row['share']:.0%}",
                f"{row['GFlop/s']:.1f}",
                f"{row['share of GEMM peak']:.0%}",
            ]
            for row in rows
        ),
        text=3,
    )


def profiles(found: list[dict[str, Any]]) -> str:
    """Return the table of the three functions with the largest shares in each profile."""
    columns = ["n", "share of the time", "function", "what it does, and how it was made faster"]
    rows = [
        [str(profile["n"]), f"{row['share']:.0%}", f"`{row['entry']}`", remark(row["entry"])]
        for profile in found
        for row in profile["rows"][:3]
    ]
    return markdown(columns, rows, text=4)


def instructions(found: dict[str, Any]) -> str:
    """Return the table of instruction counts."""
    columns = [
        "n", "instructions of a gradient", "operations in matrix products",
        "operations per instruction",
    ]  # fmt: skip
    return markdown(
        columns,
        (
            [
                str(row["n"]),
                number(row["instructions"]),
                number(row["operations"]),
                number(row["operations"] / row["instructions"], 2),
            ]
            for row in found["rows"]
        ),
    )


def limits(found: dict[str, Any]) -> str:
    """Return the table of the limits of the machine."""
    columns = ["GEMM, one thread, GFlop/s", "GEMM, all threads, GFlop/s", "copy, one thread, GB/s"]
    titles = [name.replace("all threads", f"{found['threads']} threads") for name in columns]
    return markdown(titles, [[number(found[name]) for name in columns]], text=0)


def environments(run: dict[str, Any]) -> str:
    """Return the table of versions and installations."""
    rows = []
    for tool, versions in run["versions"].items():
        others = ", ".join(f"{key} {value}" for key, value in versions.items() if key != tool)
        install = next((i for i in run["installations"] if i["name"] == tool), None)
        how = "-"
        if install:
            how = f"{install['seconds']:.0f} s" + (", compiled" if install["compiles"] else "")
        rows.append([f"{TITLES[tool]} {versions.get(tool, '')}", others, how])
    missing = [i for i in run["installations"] if i["status"] != "installed"]
    rows += [[i["name"], i["message"], i["status"]] for i in missing]
    return markdown(["program", "with", "installation"], rows, text=3)
