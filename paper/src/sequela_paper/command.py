"""``sequela paper``: reproduce the figures and tables of the paper, with one command each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sequela.cli.output import json_option, make_console, print_json, print_table
from sequela.cli.repeat_options import repeats_options, resumable, take_run_arguments

__all__ = ["paper"]

# The options that are fields of `Settings`; the other options determine where repeats run.
_SETTINGS = ("quick", "repeats", "solver", "solver_repeats", "data", "seed")


@click.command(epilog="\b\nExample:\n  sequela paper fig2 --quick -o fig2")
@click.argument("name")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path),
    help="Folder for tables, figure and records. If it contains an unfinished run of the same "
    "experiment, this run is continued. Default: sequela-paper/NAME, or sequela-paper/NAME-quick "
    "with --quick.",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="Run a smaller version, which takes a minute or two.")
@click.option(
    "--repeats", type=click.IntRange(min=1),
    help="Number of repetitions. Default: as in the paper (96, 24 or 20, depending on the figure).",
)  # fmt: skip
@click.option(
    "--solver", type=click.Choice(["ours", "adagrad", "both"]),
    help="Which solver is run: that of sequela (ours), that of the paper (adagrad), or both. "
    "Default: both if the claim depends on the solver.",
)  # fmt: skip
@click.option(
    "--solver-repeats", type=click.IntRange(min=1),
    help="Number of repetitions of the paper's solver if both solvers run. The paper's solver is "
    "about a hundred times slower.",
)  # fmt: skip
@click.option(
    "--data", type=click.Path(path_type=Path),
    help="Folder of the data, with the folders gbm and synthetic. Default: the environment "
    "variable SEQUELA_DATA.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=2021, show_default=True)
@click.option(
    "--collect",
    is_flag=True,
    help="Run no repeats; only collect the results that other jobs have recorded.",
)
@repeats_options
@json_option
def paper(name: str, output: Path | None, collect: bool, as_json: bool, **options: Any) -> None:
    """Reproduce the figure or table NAME of the paper; `sequela paper list` shows all names.

    The command writes tables (CSV) and the figure (SVG, PDF, PNG), and says whether the claim of
    the paper is confirmed, with the numbers. Finished repeats are recorded, so the same command
    continues an interrupted run. In an array of jobs, run the command with --index and --of in each
    job, and each job does its share of the repeats. When all jobs have ended, run the command once
    with --collect.
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
    """Return the experiments as plain values for JSON."""
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
    """Run an experiment; return its verdict and files as plain values for JSON."""
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
    """Print a table of the experiments."""
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
    """Print the verdict and the names of the files."""
    console = make_console()
    if not report["finished"]:
        console.print(
            f"{report['name']}: the repeats of this job are done and recorded in "
            f"{report['folder']}, but repeats of other jobs are missing. When all jobs have ended, "
            "run the same command with --collect instead of --index and --of",
            soft_wrap=True,
        )
        return
    console.print(f"the paper: {report['claim']}", soft_wrap=True)
    console.print(f"{report['word']}: {report['verdict']}", soft_wrap=True)
    spent = report["spent"]
    console.print(
        f"The {spent['repeats']} repeats took {spent['work_seconds']:.0f} s in total, and this run "
        f"took {spent['wall_seconds']:.0f} s. Files in {report['folder']}: "
        + ", ".join(report["files"]),
        soft_wrap=True,
    )
