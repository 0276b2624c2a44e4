"""``sequela paper``: the figures and tables of the paper, one command each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sequela.cli.output import json_option, make_console, print_json, print_table
from sequela.cli.repeat_options import repeats_options, resumable, take_run_arguments

__all__ = ["paper"]

# The options that are fields of `Settings`; the rest of them say where repeats run.
_SETTINGS = ("quick", "repeats", "solver", "solver_repeats", "data", "seed")


@click.command(epilog="\b\nExample:\n  sequela paper fig2 --quick -o fig2")
@click.argument("name")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path),
    help="Folder for tables, figure and records; it may hold an unfinished run of the same kind. "
    "Default: sequela-paper/NAME, or NAME-quick.",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="A smaller version: a minute or two.")
@click.option(
    "--repeats", type=click.IntRange(min=1), help="Repetitions. Default: the paper's 96, 24 or 20."
)
@click.option(
    "--solver", type=click.Choice(["ours", "adagrad", "both"]),
    help="What learns: this package's solver, the paper's, or both side by side. Default: both "
    "where the claim depends on it.",
)  # fmt: skip
@click.option(
    "--solver-repeats", type=click.IntRange(min=1),
    help="Repetitions of the paper's solver beside ours; it is some hundred times slower.",
)  # fmt: skip
@click.option(
    "--data", type=click.Path(path_type=Path),
    help="Folder with gbm/ and synthetic/. Default: what SEQUELA_DATA names.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=2021, show_default=True)
@click.option("--collect", is_flag=True, help="Run nothing: gather the shares that other jobs did.")
@repeats_options
@json_option
def paper(name: str, output: Path | None, collect: bool, as_json: bool, **options: Any) -> None:
    """Make the figure or table NAME of the paper again; `sequela paper list` shows all.

    It writes the data (CSV), the figure (SVG, PDF, PNG) and whether the paper's claim holds, with
    the numbers. What is done is recorded: the same command goes on where it was cut off. As an
    array of jobs: each does its share with --index and --of, then one run with --collect.
    """
    chosen = {key: options.pop(key) for key in _SETTINGS}
    where = take_run_arguments(options)
    if name == "list":
        report = list_report()
        print_json(report) if as_json else show_list(report)
        return
    from sequela_paper.experiment import Settings

    settings = Settings(**chosen)
    folder = output or Path("sequela-paper") / (f"{name}-quick" if settings.quick else name)
    report = make_report(name, settings, folder, collect=collect, where=where)
    print_json(report) if as_json else show(report)


def list_report() -> dict[str, Any]:
    """Return what can be made."""
    from sequela_paper.registry import NAMES, find_experiment

    found = [find_experiment(name) for name in NAMES]
    return {
        "experiments": [
            {
                "name": one.name, "where": one.where, "title": one.title, "claim": one.claim,
                "repeats": one.repeats, "data": list(one.data), "solvers": one.solvers,
            }
            for one in found
        ]
    }  # fmt: skip


def make_report(
    name: str, settings: Any, folder: Path, *, collect: bool, where: dict[str, Any]
) -> dict[str, Any]:
    """Make it; return the verdict and the files."""
    from sequela_paper.running import make

    with resumable(folder / "records"):
        made = make(name, settings, folder, collect_only=collect, **where)
    if made is None:
        return {"name": name, "folder": str(folder), "finished": False}
    return {
        "name": name,
        "folder": str(folder),
        "finished": True,
        "holds": made.verdict.holds,
        "word": made.verdict.word,
        "claim": made.experiment.claim,
        "verdict": made.verdict.text,
        "numbers": made.verdict.numbers,
        "files": [path.name for path in made.files],
        "spent": made.record["spent"],
    }


def show_list(report: dict[str, Any]) -> None:
    """Print the experiments."""
    rows = [
        [
            one["name"], one["where"], one["title"], str(one["repeats"]),
            "yes" if one["solvers"] else "", "needed" if one["data"] else "",
        ]
        for one in report["experiments"]
    ]  # fmt: skip
    columns = {
        "name": False, "in the paper": False, "what": False, "repeats": True, "--solver": False,
        "--data": False,
    }  # fmt: skip
    print_table(make_console(), columns, rows)


def show(report: dict[str, Any]) -> None:
    """Print the verdict and where the files are."""
    console = make_console()
    if not report["finished"]:
        console.print(
            f"{report['name']}: this share is done, others are missing; when all are, run the same "
            f"command with --collect instead of --index and --of (folder {report['folder']})",
            soft_wrap=True,
        )
        return
    console.print(f"the paper: {report['claim']}", soft_wrap=True)
    console.print(f"{report['word']}: {report['verdict']}", soft_wrap=True)
    spent = report["spent"]
    console.print(
        f"{spent['repeats']} repeats, {spent['work_seconds']:.0f} s of work, "
        f"{spent['wall_seconds']:.0f} s this time; in {report['folder']}: "
        + ", ".join(report["files"]),
        soft_wrap=True,
    )
