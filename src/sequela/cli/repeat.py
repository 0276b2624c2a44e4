"""``sequela repeat`` and ``sequela collect``: many fits to variations of the same data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sequela.cli.inputs import (
    check_output,
    drop_option,
    load_data,
    most_frequent_option,
    solver_options,
    split_items,
    times_option,
)
from sequela.cli.output import json_option, make_console, print_json, print_table
from sequela.cli.repeat_options import repeats_options, resumable, take_run_arguments

if TYPE_CHECKING:
    from sequela.repeats import Plan
    from sequela.report import RepeatsReport

__all__ = ["collect", "repeat"]


@click.command(
    epilog="\b\nExample:\n  sequela repeat samples.csv -o bootstraps --bootstraps 100 --seed 1"
)
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for the records. If it has records of the same plan, the run continues.",
)
@click.option(
    "--bootstraps",
    type=click.IntRange(min=1),
    help="Number of bootstraps: fits to samples drawn from DATA with replacement.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help="Number of random starts. Each start is a separate fit.",
)
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    help="Number of folds. Each fit leaves one fold out and is scored on this fold.",
)
@click.option("--penalties", help="Penalties, separated by commas, such as 0.05,0.02,0.01.")
@click.option(
    "--item-subsets",
    help="Numbers of items, separated by commas, such as 10,20,50. For each number N, fit to "
    "the N most frequent items.",
)
@click.option(
    "--random-subsets",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --item-subsets: use N random subsets of each size, not the most frequent items.",
)
@click.option("--penalty", type=float, help="Weight of the L1 penalty. Default: 0.01.")
@click.option("--starts", type=click.IntRange(min=1), help="Number of starts per fit. Default: 1.")
@solver_options
@click.option(
    "--orders",
    help="Items, separated by commas. Each fit records P(A before B) for every pair of these "
    "items.",
)
@times_option
@most_frequent_option
@drop_option
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Random seed; the same seed gives the same numbers. Default: the seed of the plan in "
    "the folder, or a new seed.",
)
@repeats_options
@json_option
def repeat(
    data: Path,
    output: Path,
    times: str | None,
    most_frequent: int | None,
    seed: int | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Fit models to variations of DATA, such as bootstraps, folds or penalties.

    Subsets of items and random starts are other variations. If you give several kinds of variation,
    a fit is made for every combination. Each fit is recorded when it ends. If the command was
    stopped, run it again to continue. `sequela collect` makes tables of the records.
    """
    where = take_run_arguments(given)
    samples = load_data(
        data, times=times, most_frequent=most_frequent, drop=given.pop("drop"), to_learn=True
    )
    plan = _plan(samples, _seed(seed, output, where["share"]), given)
    from sequela.repeats import run
    from sequela.report import describe_repeats

    with resumable(output):
        run(plan, output, **where)
    report = describe_repeats(plan, output)
    if as_json:
        print_json(report.to_json())
    else:
        show(report)


@click.command(
    epilog="\b\nExample:\n  sequela collect bootstraps -o fits.csv --interactions stability.csv"
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write a table with one row per repeat (CSV).",
)
@click.option(
    "--interactions",
    type=click.Path(path_type=Path),
    help="Write a table with one row per interaction: the share of fits that have it, and the "
    "median and quantiles of its effect (CSV).",
)
@click.option(
    "--orders",
    type=click.Path(path_type=Path),
    help="Write a table with one row per fit and pair of items (CSV).",
)
@click.option(
    "--level",
    type=float,
    default=0.9,
    show_default=True,
    help="Share of the fits whose effect is between the lower and the upper quantile.",
)
@click.option("--partial", is_flag=True, help="Use the existing records if repeats are missing.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@json_option
def collect(
    folder: Path,
    level: float,
    partial: bool,
    force: bool,
    as_json: bool,
    **files: Path | None,
) -> None:
    """Make tables of the records that `sequela repeat` wrote to FOLDER.

    Missing repeats are an error, unless --partial is given.
    """
    from sequela.repeats import read_plan
    from sequela.report import RepeatTables, describe_repeats, write_repeat_tables

    for path in files.values():
        check_output(path, force=force)
    tables = RepeatTables(
        repeats=files["output"], interactions=files["interactions"], orders=files["orders"]
    )
    report = describe_repeats(read_plan(folder), folder, level=level)
    written = write_repeat_tables(folder, tables, level=level, partial=partial)
    report = replace(report, files=written)
    if as_json:
        print_json(report.to_json())
    else:
        show(report)


def _seed(seed: int | None, output: Path, share: tuple[int, int] | None) -> int:
    """Return the given seed, otherwise the seed of the plan in the folder, otherwise a new one."""
    from sequela.support.random import materialise_seed

    if seed is None and (output / "plan.json").exists():
        from sequela.repeats import read_plan

        return read_plan(output).seed
    if seed is None and share is not None:
        raise click.UsageError(
            "--index and --of need --seed, because all shares must belong to one plan. Give the "
            "same number for all shares, such as --seed 1"
        )
    return materialise_seed(seed)


def _plan(samples: Any, seed: int, given: dict[str, Any]) -> Plan:
    from sequela.repeats import plan_fits

    if given["penalty"] is not None and given["penalties"] is not None:
        raise click.UsageError("--penalty and --penalties cannot be used together")
    kinds = ("bootstraps", "seeds", "folds", "penalties", "item_subsets")
    if all(given[name] is None for name in kinds):
        raise click.UsageError(
            "nothing is repeated; give --bootstraps, --seeds, --folds, --penalties or "
            "--item-subsets"
        )
    chosen = {name: value for name, value in given.items() if value is not None}
    for name, kind in (("penalties", float), ("item_subsets", int)):
        if name in chosen:
            chosen[name] = _numbers(name, chosen[name], kind)
    if "orders" in chosen:
        chosen["orders"] = split_items(chosen["orders"])
    if "starts" in chosen:
        chosen["n_starts"] = chosen.pop("starts")
    return plan_fits(samples, seed=seed, **chosen)


def _numbers(name: str, text: str, kind: type[int] | type[float]) -> list[Any]:
    option = f"--{name.replace('_', '-')}"
    what = "whole numbers" if kind is int else "numbers"
    example = "10,20,50" if kind is int else "0.05,0.02,0.01"
    try:
        return [kind(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise click.BadParameter(
            f"found {text!r}; expected {what} separated by commas, such as {example}",
            param_hint=option,
        ) from None


def show(report: RepeatsReport) -> None:
    """Print the number of repeats that are done, the missing repeats, and a summary of the fits."""
    from sequela.repeats.records import listed
    from sequela.report.tables import records

    console = make_console()
    done = report.repeats - len(report.missing)
    console.print(
        f"{done} of {report.repeats} repeats are done, seed {report.seed}", soft_wrap=True
    )
    if report.missing:
        console.print(f"missing: {listed(list(report.missing))}", soft_wrap=True)
    if report.summary is not None:
        summary = report.summary
        console.print()
        _print_records(records(summary.fits))
        console.print()
        _print_records([row for row in records(summary.strongest) if row["fits"] > 1])
        rest = summary.interactions - len(summary.strongest)
        if rest > 0:
            console.print(f"and {rest} more; `sequela collect` writes all of them", soft_wrap=True)
    console.print(f"\nrecords: {report.folder}", soft_wrap=True)
    if report.files:
        console.print(f"written: {', '.join(map(str, report.files))}", soft_wrap=True)


def _print_records(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    headings = {n.replace("_", " "): not isinstance(value, str) for n, value in rows[0].items()}
    cells = [
        ["" if v is None else f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()]
        for row in rows
    ]
    print_table(make_console(), headings, cells)
