"""Write the results page of the documentation from the files of ``sequela paper``.

``python -m sequela_paper.page paper/results docs/results.md``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequela.support.errors import InputError
from sequela.support.files import replacing
from sequela_paper.registry import NAMES, find_experiment
from sequela_paper.running import judge_again, keep_verdict
from sequela_paper.slips import slips

if TYPE_CHECKING:
    import os

    from sequela_paper.experiment import Experiment, Verdict

__all__ = ["page_text", "write_page"]

_HEAD = """\
# The paper's results, reproduced

This page compares every figure and table of the paper (Gotovos, Burkholz, Quackenbush and Jegelka,
"Scaling up Continuous-Time Markov Chains Helps Resolve Underspecification", 2021) with our results.
Each section has the claim of the paper, says whether we can confirm this claim, and names the
command that reproduces our result. These commands made the tables in `paper/results`. The command
`make results` computes every verdict from the tables, and writes this page. "Work" is the sum of
the times of all repeats, each on one core. As in the paper, n is the number of items, and m is the
number of clock items.

Data: the glioblastoma tables are from TCGA (PanCancer Atlas, through cBioPortal). Commands that
need these tables take the option `--data FOLDER`.
"""


def page_text(folder: str | os.PathLike[str], named: str = "paper/results") -> str:
    """Return the page in Markdown; `named` is the path of `folder` in the repository."""
    place = Path(folder)
    found = []
    for name in NAMES:
        path = place / name / f"{name}.json"
        if path.is_file():
            record = json.loads(path.read_text("utf-8"))
            found.append((find_experiment(name), record, judge_again(path.parent, record)))
    if not found:
        raise InputError(f"there is no result of `sequela paper` in {str(folder)!r}")
    parts = [_HEAD, _overview(found)]
    parts += [_section(one, record, verdict, named) for one, record, verdict in found]
    parts.append(_slips())
    return "\n".join(parts)


def _overview(found: list[tuple[Experiment, dict[str, Any], Verdict]]) -> str:
    lines = [
        "| in the paper | what | the claim is | repeats | work |",
        "| --- | --- | --- | --- | --- |",
    ]
    for one, record, verdict in found:
        where = one.where.partition(",")[0]
        lines.append(
            f"| [{where}](#{one.name}) | {one.title} | {verdict.word} | "
            f"{record['spent']['repeats']:,} | {_duration(record['spent']['work_seconds'])} |"
        )
    return "\n".join(lines) + "\n"


def _section(one: Experiment, record: dict[str, Any], verdict: Verdict, named: str) -> str:
    spent = record["spent"]
    tables = ", ".join(f"`{named}/{one.name}/{table}.csv`" for table in record["tables"])
    lines = [
        f"({one.name})=",
        f"## {one.where.partition(',')[0]}: {one.title}",
        "",
        f"The paper ({one.where.partition(', ')[2]}): {_claim(one)}.",
        "",
        f"**{verdict.word.capitalize()}.** {_escaped(verdict.text)}",
        "",
        f"![{one.title}](../{named}/{one.name}/{one.name}.svg)",
        "",
    ]
    if one.differs:
        lines += [f"Differences from the paper: {_escaped(one.differs)}", ""]
    lines += [
        f"`{_command(one, record)}`: {spent['repeats']:,} "
        f"repeat{'s' if spent['repeats'] > 1 else ''}, "
        f"{_duration(spent['work_seconds'])} of work on {spent['processor']}, {record['date']}, "
        f"sequela {record['versions']['sequela']}. Data: {tables}.",
        "",
    ]
    return "\n".join(lines)


def _command(one: Experiment, record: dict[str, Any]) -> str:
    settings = record["settings"]
    parts = ["sequela", "paper", one.name]
    parts += [
        f"--{key.replace('_', '-')} {settings[key]}"
        for key in ("repeats", "solver", "solver_repeats")
        if settings[key] is not None
    ]
    if settings["quick"]:
        parts.append("--quick")
    if settings["seed"] != 2021:
        parts.append(f"--seed {settings['seed']}")
    if one.data:
        parts.append("--data FOLDER")
    return " ".join(parts)


def _claim(one: Experiment) -> str:
    text = one.claim.rstrip(".")
    # The text follows a colon. So it begins with a small letter, unless it begins with an
    # abbreviation such as EGFR.
    return text if text[1:2].isupper() else text[0].lower() + text[1:]


def _slips() -> str:
    lines = ["## Errors in the text of the paper", ""]
    lines += [f"- **{where}.** {_escaped(text)}" for where, text in slips()]
    return "\n".join(lines) + "\n"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def _escaped(text: str) -> str:
    """Return text in which characters of Markdown are escaped."""
    for sign in ("*", "_", "[", "<", "|"):
        text = text.replace(sign, "\\" + sign)
    return text


def write_page(folder: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Compute every verdict again, and write the page to a file."""
    for name in NAMES:
        path = Path(folder) / name / f"{name}.json"
        if path.is_file():
            keep_verdict(path)
    with replacing(target) as file:
        file.write(page_text(folder).encode())


if __name__ == "__main__":
    write_page(sys.argv[1], sys.argv[2])
