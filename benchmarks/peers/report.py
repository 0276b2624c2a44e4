"""The stage `report`: write peers.json and the tables, sentences and plots for the website."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from benchmarks.peers import findings, tables
from benchmarks.peers.figures import draw
from benchmarks.peers.gather import gather
from sequela.support.files import replacing

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.peers.records import Places

_NONE = "Not measured in this run.\n"


def report(places: Places) -> None:
    """Write all files of the report from the existing records."""
    found = gather(places)
    places.results.mkdir(parents=True, exist_ok=True)
    _write(places.results.with_suffix(".json"), json.dumps(found, indent=1) + "\n")
    for name, text in pages(found).items():
        _write(places.results / name, text or _NONE)
    names = draw(found, places.results)
    print(f"written: {places.results.name}.json, {', '.join([*pages(found), *names])}")


def pages(found: dict[str, Any]) -> dict[str, str]:
    """Return the Markdown files by name."""
    rows = found["side by side"]
    counted = found["instructions"]
    return {
        "conditions.md": _paragraphs(findings.conditions(found["run"])),
        "versions.md": tables.environments(found["run"]),
        "findings.md": _bullets(findings.sentences(found)),
        "ahead.md": _bullets(findings.better_elsewhere(found)),
        "mhn.md": _if(tables.side_by_side(rows, "mhn"), rows),
        "paper.md": _if(tables.side_by_side(rows, "paper"), rows),
        "fastmhn.md": _if(tables.side_by_side(rows, "fastmhn"), rows),
        "ours.md": _if(tables.ours(found["ours"]), found["ours"]),
        "known_theta.md": _if(tables.known_theta(found["known theta"]), found["known theta"]),
        "growth.md": _if(tables.growth(found["growth"]), found["growth"]["rows"]),
        "limits.md": tables.limits(found["limits"]) if found["limits"] else "",
        "kernel.md": _if(tables.kernel(found["kernel"]), found["kernel"]),
        "phases.md": _if(tables.phases(found["phases"]), found["phases"]),
        "profiles.md": _if(tables.profiles(found["profiles"]), found["profiles"]),
        "instructions.md": _instructions(counted) if counted else "",
    }


def _instructions(counted: dict[str, Any]) -> str:
    if not counted["rows"]:
        return f"Not counted: {counted['message']}.\n"
    return f"Counted by {counted['tool']}.\n\n" + tables.instructions(counted)


def _if(text: str, rows: list[Any]) -> str:
    return text if rows else ""


def _bullets(lines: list[str]) -> str:
    return "".join(f"- {line}\n" for line in lines)


def _paragraphs(lines: list[str]) -> str:
    return "\n\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode())
