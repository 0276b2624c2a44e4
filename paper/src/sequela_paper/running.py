"""Make a figure or table of the paper: run its repeats, write tables, figure and verdict."""

from __future__ import annotations

import dataclasses
import json
import time
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from sequela.data.examples import example_theta
from sequela.learning.estimator import SetChain
from sequela.plots.style import save_figure
from sequela.questions.rivals import rival_orders
from sequela.repeats import Plan, collect, run
from sequela.report.run import package_versions, processor
from sequela.report.tables import write_table
from sequela.simulation import simulate
from sequela.support.errors import InputError
from sequela.support.files import replacing
from sequela.support.threads import resolve_threads
from sequela_paper.registry import find_experiment
from sequela_paper.sources import check_files, data_folder

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from sequela_paper.experiment import Experiment, Settings, Tables, Verdict

__all__ = ["Made", "judge_again", "keep_verdict", "make", "read_tables"]

FORMATS = ("svg", "pdf", "png")
WARM_UP = "sequela_paper.running:warm_up"
_DPI = 150.0


@dataclass(frozen=True)
class Made:
    """The result of `make`: the experiment, its verdict, its files and its record."""

    experiment: Experiment
    verdict: Verdict
    files: list[Path]
    record: dict[str, Any]


def make(
    name: str,
    settings: Settings,
    folder: str | os.PathLike[str],
    *,
    collect_only: bool = False,
    **where: Any,
) -> Made | None:
    """Run the missing repeats of an experiment, and write its tables, figure and verdict.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    settings : Settings
        The options of the user.
    folder : path
        Folder for the files. Repeats are recorded in its folder "records", so that an interrupted
        run can be resumed.
    collect_only : bool
        If true, no repeats are run. All repeats must have been recorded before.
    **where
        Where repeats run: the arguments `backend`, `workers`, `cluster` and `share` of
        `sequela.repeats.run`.

    Returns
    -------
    Made or None
        None if this run did only a share of the repeats, and other repeats are missing.
    """
    experiment = find_experiment(name)
    data = data_folder(settings.data)
    check_files(data, experiment.data, name)
    settings = dataclasses.replace(settings, data=data)
    place = Path(folder)
    plan = Plan(
        experiment.task, experiment.cases(settings), settings.seed,
        warm_up=WARM_UP if experiment.solvers else None,
    )  # fmt: skip
    began = time.monotonic()
    records = place / "records"
    results = collect(plan, records) if collect_only else run(plan, records, **where)
    if results is None:
        return None
    tables = experiment.tables(results, settings)
    spent = {
        "work_seconds": float(results["seconds"].sum()),
        "wall_seconds": time.monotonic() - began,
        "repeats": len(results),
    }
    return _write(experiment, settings, place, tables, spent)


def warm_up() -> None:
    """Compile the kernels that fits and questions need, with a small simulated data set."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sets = simulate(example_theta(), 60, random_state=1).to_dataset().without_times()
        rival_orders(SetChain(0.05, progress=False).fit(sets), sets, max_pairs=1, random_state=1)


def _write(
    experiment: Experiment, settings: Settings, place: Path, tables: Tables, spent: dict[str, Any]
) -> Made:
    name = experiment.name
    files = []
    for table, frame in tables.items():
        path = place / f"{table}.csv"
        write_table(frame, path, index=False)
        files.append(path)
    # Make the figure and the verdict from the files, so that `make results` gets the same verdict.
    read = read_tables(place, tables)
    verdict = experiment.judge(read)
    figure = experiment.draw(read)
    for suffix in FORMATS:
        path = place / f"{name}.{suffix}"
        save_figure(figure, path, dpi=_DPI)
        files.append(path)
    record = {
        "name": name,
        "claim": experiment.claim,
        "holds": verdict.holds,
        "verdict": verdict.text,
        "numbers": verdict.numbers,
        "tables": list(tables),
        "settings": {
            key: value for key, value in dataclasses.asdict(settings).items() if key != "data"
        },
        "spent": {**spent, "cores": resolve_threads(None), "processor": processor()},
        "date": datetime.now(UTC).date().isoformat(),
        "versions": package_versions(),
    }
    path = place / f"{name}.json"
    _write_record(path, record)
    return Made(experiment, verdict, [*files, path], record)


def _write_record(path: Path, record: Mapping[str, Any]) -> None:
    with replacing(path) as file:
        file.write((json.dumps(record, indent=1, allow_nan=False) + "\n").encode())


def read_tables(folder: Path, names: Any) -> dict[str, pd.DataFrame]:
    """Read the tables of an experiment from its folder."""
    found = {}
    for name in names:
        path = folder / f"{name}.csv"
        if not path.is_file():
            raise InputError(f"there is no table {str(path)!r}; make it with `sequela paper`")
        found[name] = pd.read_csv(path)
    return found


def judge_again(folder: Path, record: Mapping[str, Any]) -> Verdict:
    """Return the verdict computed from the tables of a folder."""
    return find_experiment(record["name"]).judge(read_tables(folder, record["tables"]))


def keep_verdict(path: Path) -> None:
    """Update the verdict in a record of `make` if its tables give another verdict."""
    record = json.loads(path.read_text("utf-8"))
    verdict = judge_again(path.parent, record)
    now = {**record, "holds": verdict.holds, "verdict": verdict.text, "numbers": verdict.numbers}
    if now != record:
        _write_record(path, now)
