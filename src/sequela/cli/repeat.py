"""``sequela repeat`` and ``sequela collect``: many fits to variations of the same data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sequela.cli.inputs import check_output, load_data, split_items
from sequela.cli.output import json_option, make_console, print_json, print_table
from sequela.cli.repeat_options import repeats_options, resumable, run_arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from sequela.repeats import Plan

__all__ = ["collect", "repeat"]

_SHOWN = 8


@click.command(
    epilog="\b\nExample:\n  sequela repeat samples.csv -o bootstraps --bootstraps 100 --seed 1"
)
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="The folder of the records. One with records of the same plan is gone on with.",
)
@click.option("--bootstraps", type=click.IntRange(min=1), help="Samples drawn with replacement.")
@click.option("--seeds", type=click.IntRange(min=1), help="Random starts, each a fit of its own.")
@click.option("--folds", type=click.IntRange(min=2), help="Leave out one fold and score it.")
@click.option("--penalties", help="Several, separated by commas, such as 0.05,0.02,0.01.")
@click.option("--item-subsets", help="Numbers of most frequent items, such as 10,20,50.")
@click.option(
    "--random-subsets",
    type=click.IntRange(min=1),
    help="With --item-subsets: so many random subsets of each size instead.",
)
@click.option("--penalty", type=float, help="Weight of the L1 penalty. Default: 0.01.")
@click.option("--starts", type=click.IntRange(min=1), help="Starts of every fit. Default: 1.")
@click.option("--solver", type=click.Choice(["auto", "newton", "adagrad"]), default=None)
@click.option("--max-iter", type=click.IntRange(min=1), default=None)
@click.option("--tol", type=float, default=None, help="KKT residual to reach. Default: 0.0001.")
@click.option("--orders", help="Items, separated by commas: record which came first, by pairs.")
@click.option("--times", help="The column with observation times, if DATA has one.")
@click.option(
    "--most-frequent", type=click.IntRange(min=1), help="Only so many of the most frequent items."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="The same seed gives the same numbers. Default: that of the folder, or a new one.",
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
    backend: str | None,
    workers: int | None,
    cluster: str | None,
    index: int | None,
    of: int | None,
    **given: Any,
) -> None:
    """Fit models to variations of DATA: bootstraps, folds, penalties, subsets of items, starts.

    Kinds that are given together multiply. Each fit is recorded when it ends; the same command
    goes on where it was stopped. `sequela collect` makes tables of the records.
    """
    where = run_arguments(backend, workers, cluster, index, of)
    samples = load_data(data, times)
    if most_frequent is not None:
        samples = samples.most_frequent(min(most_frequent, samples.n_items))
    plan = _plan(samples, _seed(seed, output, of), given)
    from sequela.repeats import run

    with resumable(output):
        run(plan, output, **where)
    report = make_report(plan, output)
    if as_json:
        print_json(report)
    else:
        show(report)


@click.command(
    epilog="\b\nExample:\n  sequela collect bootstraps -o fits.csv --interactions stability.csv"
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="One row for each repeat.")
@click.option(
    "--interactions",
    type=click.Path(path_type=Path),
    help="One row for each interaction: in which share of the fits it is, median and quantiles.",
)
@click.option(
    "--orders", type=click.Path(path_type=Path), help="One row for each fit and pair of items."
)
@click.option(
    "--level", type=float, default=0.9, show_default=True, help="Share between the quantiles."
)
@click.option("--partial", is_flag=True, help="Take what there is if repeats are missing.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@json_option
def collect(
    folder: Path,
    output: Path | None,
    interactions: Path | None,
    orders: Path | None,
    level: float,
    partial: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Make tables of the records in FOLDER, which `sequela repeat` left there.

    Missing repeats are named and are an error, unless --partial is given.
    """
    from sequela import repeats

    for path in (output, interactions, orders):
        check_output(path, force=force)
    plan = repeats.read_plan(folder)
    left = repeats.missing(plan, folder)
    if (left and not partial) or len(left) == len(plan):
        _refuse_missing(left, plan, folder)
    tables: dict[Path, Callable[[], pd.DataFrame]] = {}
    if output is not None:
        tables[output] = lambda: _table(plan, folder)
    if interactions is not None:
        tables[interactions] = lambda: repeats.summarise(folder, level=level, partial=True)
    if orders is not None:
        tables[orders] = lambda: repeats.pair_orders(folder, partial=True)
    report = make_report(plan, folder, level)
    report["files"] = [str(path) for path in tables]
    _write(tables)
    if as_json:
        print_json(report)
    else:
        show(report)


def _refuse_missing(left: list[int], plan: Plan, folder: Path) -> None:
    from sequela.repeats.records import listed
    from sequela.support.errors import InputError

    raise InputError(
        f"{len(left)} of {len(plan)} repeats are missing in {str(folder)!r} ({listed(left)}); run "
        "the command that began them again"
        + (", or take what there is with --partial" if len(left) < len(plan) else "")
    )


def _write(tables: dict[Path, Callable[[], pd.DataFrame]]) -> None:
    """Make all tables before the first is written, so that an error leaves no half of them."""
    from sequela.report.tables import write_table

    made = {path: make() for path, make in tables.items()}
    for path, table in made.items():
        write_table(table, path, index=table.index.name is not None)


def _table(plan: Plan, folder: Path) -> pd.DataFrame:
    """Return one row for each repeat; of plans that are not of fits, plain values only."""
    from sequela import repeats
    from sequela.repeats.fit_task import TASK

    if plan.task == TASK:
        return repeats.fit_table(folder, partial=True)
    table = repeats.collect(plan, folder, partial=True)
    plain = [
        name for name in table if not table[name].map(lambda v: isinstance(v, dict | list)).any()
    ]
    return table[plain]


def _seed(seed: int | None, output: Path, of: int | None) -> int:
    """Return the seed: given, of the plan that is gone on with, or a new one."""
    from sequela.support.random import materialise_seed

    if seed is None and (output / "plan.json").exists():
        from sequela.repeats import read_plan

        return read_plan(output).seed
    if seed is None and of is not None:
        raise click.UsageError(
            "--index and --of need --seed: all shares must be of one plan. Any number will do, "
            "such as --seed 1"
        )
    return materialise_seed(seed)


def _plan(samples: Any, seed: int, given: dict[str, Any]) -> Plan:
    from sequela.repeats import plan_fits

    if given["penalty"] is not None and given["penalties"] is not None:
        raise click.UsageError("--penalty and --penalties exclude each other")
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


def make_report(plan: Plan, folder: Path, level: float = 0.9) -> dict[str, Any]:
    """Return what the records of a plan say so far."""
    from sequela import repeats
    from sequela.repeats.fit_task import TASK
    from sequela.report.tables import records

    left = repeats.missing(plan, folder)
    report: dict[str, Any] = {
        "folder": str(folder), "task": plan.task, "seed": plan.seed, "repeats": len(plan),
        "missing": left, "files": [],
    }  # fmt: skip
    if plan.task != TASK or len(left) == len(plan):
        return report
    table = repeats.fit_table(folder, partial=True)
    groups = [n for n in ("items", "penalty") if n == "penalty" or n in table]
    columns: dict[str, tuple[str, Any]] = {
        "fits": ("converged", "size"),
        "converged": ("converged", "sum"),
        "interactions": ("interactions", "mean"),
        "objective": ("objective", "mean"),
    }
    if "held_out" in table:
        columns["held_out"] = ("held_out", "mean")
        columns["held_out_se"] = ("held_out", "sem")
    summary = table.groupby(groups, sort=False).agg(**columns).reset_index()
    strongest = repeats.summarise(folder, level=level, partial=True)
    return {
        **report,
        "level": level,
        "seconds": float(table["seconds"].sum()),
        "fits": records(summary),
        "interactions": len(strongest),
        "strongest": records(strongest.head(_SHOWN)),
    }


def show(report: dict[str, Any]) -> None:
    """Print what was found and what is missing."""
    from sequela.repeats.records import listed

    console = make_console()
    done = report["repeats"] - len(report["missing"])
    console.print(
        f"{done} of {report['repeats']} repeats are done, seed {report['seed']}", soft_wrap=True
    )
    if report["missing"]:
        console.print(f"missing: {listed(report['missing'])}", soft_wrap=True)
    if "fits" in report:
        console.print()
        _print_records(report["fits"])
        console.print()
        _print_records([row for row in report["strongest"] if row["fits"] > 1])
        if report["interactions"] > len(report["strongest"]):
            rest = report["interactions"] - len(report["strongest"])
            console.print(f"and {rest} more; `sequela collect` writes all", soft_wrap=True)
    console.print(f"\nrecords: {report['folder']}", soft_wrap=True)
    if report["files"]:
        console.print(f"written: {', '.join(report['files'])}", soft_wrap=True)


def _print_records(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    headings = {n.replace("_", " "): not isinstance(value, str) for n, value in rows[0].items()}
    cells = [
        ["" if v is None else f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()]
        for row in rows
    ]
    print_table(make_console(), headings, cells)
