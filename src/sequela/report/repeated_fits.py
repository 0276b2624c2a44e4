"""Summarise the records of a plan of repeats, and write them as tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequela import repeats
from sequela.repeats.fit_task import TASK
from sequela.repeats.records import listed
from sequela.report.tables import records, write_table
from sequela.support.errors import InputError
from sequela.support.naming import option

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import pandas as pd

    from sequela.repeats import Plan

__all__ = [
    "FitsSummary",
    "RepeatTables",
    "RepeatsReport",
    "describe_repeats",
    "write_repeat_tables",
]

_STRONGEST = 8


@dataclass(frozen=True)
class FitsSummary:
    """Means over repeated fits, and the interactions that occur in most of the fits.

    Attributes
    ----------
    level : float
        The share of the fits whose effect is between the lower and the upper quantile.
    seconds : float
        Total time of the fits in seconds.
    fits : DataFrame
        One row for each penalty (and number of items), with means over the fits.
    interactions : int
        Number of interactions that occur in at least one fit.
    strongest : DataFrame
        The interactions that occur most often; see `sequela.repeats.summarise`.
    """

    level: float
    seconds: float
    fits: pd.DataFrame
    interactions: int
    strongest: pd.DataFrame

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as plain values for JSON."""
        return {
            "level": self.level,
            "seconds": self.seconds,
            "fits": records(self.fits),
            "interactions": self.interactions,
            "strongest": records(self.strongest),
        }


@dataclass(frozen=True)
class RepeatsReport:
    """The progress of the repeats in a folder, and a summary of their results.

    Attributes
    ----------
    folder : Path
        The folder with the records.
    task : str
        The name of the function that each repeat calls.
    seed, repeats : int
        Seed of the plan, and its number of repeats.
    missing : tuple of int
        Repeats without a record.
    summary : FitsSummary or None
        Summary of the fits; None if there are none yet, or if the repeats are not fits.
    files : tuple of Path
        Tables that were written.
    """

    folder: Path
    task: str
    seed: int
    repeats: int
    missing: tuple[int, ...]
    summary: FitsSummary | None = None
    files: tuple[Path, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as plain values for JSON."""
        return {
            "folder": str(self.folder),
            "task": self.task,
            "seed": self.seed,
            "repeats": self.repeats,
            "missing": list(self.missing),
            "files": [str(path) for path in self.files],
            **(self.summary.to_json() if self.summary else {}),
        }


@dataclass(frozen=True)
class RepeatTables:
    """Paths for the tables of repeats; None for a table that is not written.

    Attributes
    ----------
    repeats : path or None
        One row for each repeat.
    interactions : path or None
        One row for each interaction.
    orders : path or None
        One row for each fit and pair of items.
    """

    repeats: str | os.PathLike[str] | None = None
    interactions: str | os.PathLike[str] | None = None
    orders: str | os.PathLike[str] | None = None


def describe_repeats(
    plan: Plan, folder: str | os.PathLike[str], *, level: float = 0.9
) -> RepeatsReport:
    """Return a report on the records of a plan, even if some records do not exist yet.

    Parameters
    ----------
    plan : Plan
        The plan; `sequela.repeats.read_plan` reads it from a folder.
    folder : path
        The folder with the records of its repeats.
    level : float
        The share of the fits whose effect is between the lower and the upper quantile.

    Examples
    --------
    >>> import tempfile
    >>> from sequela import example_samples, repeats
    >>> data = example_samples().most_frequent(4)
    >>> plan = repeats.plan_fits(data, bootstraps=2, penalty=0.05, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = repeats.run(plan, folder, backend="threads")
    ...     describe_repeats(plan, folder).missing
    ()
    """
    left = repeats.missing(plan, folder)
    there = plan.task == TASK and len(left) < len(plan)
    return RepeatsReport(
        folder=Path(folder),
        task=plan.task,
        seed=plan.seed,
        repeats=len(plan),
        missing=tuple(left),
        summary=_summarise(folder, level) if there else None,
    )


def write_repeat_tables(
    folder: str | os.PathLike[str],
    tables: RepeatTables,
    *,
    level: float = 0.9,
    partial: bool = False,
) -> tuple[Path, ...]:
    """Write tables of the records in a folder. If one table cannot be made, write none.

    Parameters
    ----------
    folder : path
        Where `sequela.repeats.run` wrote the records.
    tables : RepeatTables
        Paths of the tables to write.
    level : float
        The share of the fits whose effect is between the lower and the upper quantile.
    partial : bool
        Whether to make the tables even if some repeats have no record yet. If False, a missing
        record is an error.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sequela import example_samples, repeats
    >>> data = example_samples().most_frequent(4)
    >>> plan = repeats.plan_fits(data, bootstraps=2, penalty=0.05, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = repeats.run(plan, folder, backend="threads")
    ...     file = pathlib.Path(folder, "fits.csv")
    ...     _ = write_repeat_tables(folder, RepeatTables(repeats=file))
    ...     len(file.read_text().splitlines())
    3
    """
    plan = repeats.read_plan(folder)
    _refuse_missing(plan, folder, partial=partial)
    makers: list[tuple[str | os.PathLike[str] | None, Callable[[], pd.DataFrame]]] = [
        (tables.repeats, lambda: _one_row_each(plan, folder)),
        (tables.interactions, lambda: repeats.summarise(folder, level=level, partial=True)),
        (tables.orders, lambda: repeats.pair_orders(folder, partial=True)),
    ]
    made = {Path(path): make() for path, make in makers if path is not None}
    for path, table in made.items():
        write_table(table, path, index=table.index.name is not None)
    return tuple(made)


def _refuse_missing(plan: Plan, folder: str | os.PathLike[str], *, partial: bool) -> None:
    left = repeats.missing(plan, folder)
    if not left or (partial and len(left) < len(plan)):
        return
    raise InputError(
        f"{len(left)} of {len(plan)} repeats are missing in {str(folder)!r} ({listed(left)}); to "
        "compute them, repeat the command that started the repeats"
        + (
            f", or use the existing records with {option('partial', True)}"
            if len(left) < len(plan)
            else ""
        )
    )


def _summarise(folder: str | os.PathLike[str], level: float) -> FitsSummary:
    table = repeats.fit_table(folder, partial=True)
    groups = [name for name in ("items", "penalty") if name == "penalty" or name in table]
    columns: dict[str, tuple[str, Any]] = {
        "fits": ("converged", "size"),
        "converged": ("converged", "sum"),
        "interactions": ("interactions", "mean"),
        "objective": ("objective", "mean"),
    }
    if "held_out" in table:
        columns["held_out"] = ("held_out", "mean")
        columns["held_out_se"] = ("held_out", "sem")
    effects = repeats.summarise(folder, level=level, partial=True)
    return FitsSummary(
        level=level,
        seconds=float(table["seconds"].sum()),
        fits=table.groupby(groups, sort=False).agg(**columns).reset_index(),
        interactions=len(effects),
        strongest=effects.head(_STRONGEST),
    )


def _one_row_each(plan: Plan, folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Return one row per repeat. If repeats are not fits, leave out columns of lists or objects."""
    if plan.task == TASK:
        return repeats.fit_table(folder, partial=True)
    table = repeats.collect(plan, folder, partial=True)
    plain = [
        name for name in table if not table[name].map(lambda v: isinstance(v, dict | list)).any()
    ]
    return table[plain]
