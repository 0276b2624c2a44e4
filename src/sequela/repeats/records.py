"""Read and write the folder of a plan: the plan, its samples, and one record file per repeat.

Each file is written completely or not at all. So several jobs can use the same folder at the same
time, and a run can continue after a job was killed.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from sequela.repeats.data_file import DATA_NAME, fingerprint, keep_data, read_data
from sequela.repeats.errors import RepeatsError
from sequela.repeats.plan import Plan
from sequela.support.errors import InputError
from sequela.support.files import replacing
from sequela.support.naming import option
from sequela.support.schema import Count, Digest, Place, parse_json, read_fields

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

__all__ = [
    "collect",
    "listed",
    "missing",
    "open_folder",
    "read_plan",
    "record_path",
    "records",
    "result_table",
    "write_record",
]

_PLAN_NAME = "plan.json"
_FORMAT = "sequela repeats"
_VERSION = 1
# Matches the names of the files that jobs write to the folder, and of their temporary files.
_OURS = re.compile(rf"\.?({re.escape(_PLAN_NAME)}|{re.escape(DATA_NAME)}|\d{{6,}}\.json)(\..*)?")


def record_path(folder: str | os.PathLike[str], index: int) -> Path:
    """Return the path of the record of a repeat."""
    return Path(folder) / f"{index:06d}.json"


def open_folder(plan: Plan, folder: str | os.PathLike[str]) -> Path:
    """Return the folder of a plan; make it if needed, and refuse a folder of another plan."""
    place = Path(folder).absolute()
    known = place / _PLAN_NAME
    if known.exists():
        _refuse_another(plan, _read(known, _ANOTHER), folder)
        if plan.data is not None:
            keep_data(plan.data, place)
        return place
    try:
        place.mkdir(parents=True, exist_ok=True)
        foreign = [path.name for path in place.iterdir() if not _OURS.fullmatch(path.name)]
        if foreign:
            raise InputError(
                f"the folder {str(folder)!r} contains other files ({foreign[0]!r}) but no plan of "
                "repeats; choose another folder"
            )
        # The plan is written after the samples: if the plan exists, the file with the samples
        # exists, too.
        if plan.data is not None:
            keep_data(plan.data, place)
        with replacing(known) as file:
            file.write((json.dumps(_header(plan), indent=1) + "\n").encode())
    except OSError as error:
        raise InputError(
            f"the folder {str(folder)!r} cannot be made or written to ({error.strerror or error}); "
            "choose another folder"
        ) from None
    return place


def _header(plan: Plan) -> dict[str, Any]:
    return {
        "format": _FORMAT, "version": _VERSION, "plan": plan.digest(), "task": plan.task,
        "repeats": len(plan), "seed": plan.seed, "warm_up": plan.warm_up,
        "data": None if plan.data is None else fingerprint(plan.data),
        "common": plan.common, "cases": plan.cases,
    }  # fmt: skip


def _refuse_another(plan: Plan, found: dict[str, Any], folder: str | os.PathLike[str]) -> None:
    if found.get("plan") == plan.digest():
        return
    mine = json.loads(json.dumps(_header(plan)))
    for name in ("task", "common", "data", "seed", "repeats", "cases"):
        if name in found and found[name] != mine[name]:
            difference = _difference(name, found[name], mine[name])
            break
    else:
        difference = "its data or options differ"
    raise InputError(
        f"the folder {str(folder)!r} holds the repeats of another plan: {difference}. Choose "
        "another folder, or give the same data and options as at the start"
    )


def _difference(name: str, found: Any, expected: Any) -> str:
    """Describe how two entries differ; if they are nested, describe the first difference."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in {**expected, **found}:
            if found.get(key) != expected.get(key):
                return _difference(key, found.get(key), expected.get(key))
    texts = [json.dumps(value) for value in (found, expected)]
    if name == "data" or max(map(len, texts)) > 100:
        return f"its {name} differ from those given here"
    return f"its entry {name!r} was {texts[0]}, here it is {texts[1]}"


def _read(path: Path, remedy: str = "Delete it and run again") -> dict[str, Any]:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read ({error}). {remedy}") from None
    content = parse_json(text, Place(path, remedy))
    if not isinstance(content, dict):
        raise Place(path, remedy).wrong(content, "an object")
    return content


_ANOTHER = "Start in another folder"
_RECORD_REMEDY = "Delete it and run again"


@dataclass(frozen=True)
class _StoredPlan:
    """The fields of plan.json."""

    plan: Digest
    task: str
    seed: Count
    warm_up: str | None
    data: Digest | None
    common: dict[str, Any]
    cases: list[dict[str, Any]]


@dataclass(frozen=True)
class _StoredRecord:
    """The fields of the record of a repeat."""

    plan: Digest
    index: Count
    seed: Count
    case: dict[str, Any]
    seconds: float
    result: dict[str, Any]
    sha256: Digest | None = None  # checksum of the result; records of version 0.1 have none


def read_plan(folder: str | os.PathLike[str]) -> Plan:
    """Return the plan to which a folder belongs, with its data.

    Examples
    --------
    >>> import tempfile
    >>> from sequela.repeats import Plan, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = run(Plan("builtins:dict", [{"n": 10}], seed=1), folder, backend="threads")
    ...     read_plan(folder).cases
    ({'n': 10},)
    """
    place = Path(folder)
    path = place / _PLAN_NAME
    if not path.exists():
        raise InputError(
            f"{str(folder)!r} holds no plan of repeats ({_PLAN_NAME}); give the folder of a plan"
        )
    content = _read(path, _ANOTHER)
    if content.get("format") != _FORMAT or content.get("version") != _VERSION:
        raise InputError(
            f"{str(path)!r} has format {content.get('format')!r:.40}, version "
            f"{content.get('version')!r:.40}; expected {_FORMAT!r}, version {_VERSION}"
        )
    found = read_fields(_StoredPlan, content, Place(path, _ANOTHER))
    data = None
    if found.data is not None:
        data = read_data(str(place.absolute() / DATA_NAME), found.data)
    try:
        plan = Plan(found.task, found.cases, found.seed, found.common, data, found.warm_up)
    except InputError as error:
        raise InputError(f"{str(path)!r} cannot be used: {error}. {_ANOTHER}") from None
    if plan.digest() != found.plan:
        raise InputError(
            f"{str(path)!r} was changed since it was written (its checksum differs); start in "
            "another folder"
        )
    return plan


def write_record(folder: Path, plan: Plan, index: int, result: str, seconds: float) -> None:
    """Write the record of one repeat; `result` is the result as JSON text."""
    head = {
        "plan": plan.digest(), "index": index, "seed": plan.seed_of(index),
        "case": plan.cases[index], "seconds": seconds, "sha256": _digest(result),
    }  # fmt: skip
    text = f'{json.dumps(head)[:-1]}, "result": {result}}}\n'
    try:
        with replacing(record_path(folder, index)) as file:
            file.write(text.encode())
    except OSError as error:
        raise RepeatsError(
            f"the record of repeat {index} cannot be written to {str(folder)!r} "
            f"({error.strerror or error}). Earlier records are kept; free some space or repair the "
            "disk, and run again to continue"
        ) from None


def missing(plan: Plan, folder: str | os.PathLike[str]) -> list[int]:
    """Return the numbers of the repeats of a plan that have no record yet."""
    place = Path(folder)
    return [index for index in range(len(plan)) if not record_path(place, index).exists()]


def records(
    plan: Plan, folder: str | os.PathLike[str], *, partial: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Check the record of each repeat, and yield (number, record) in the order of the plan."""
    place = open_folder(plan, folder)
    left = missing(plan, place)
    if left and not partial:
        raise InputError(
            f"{len(left)} of {len(plan)} repeats are missing in {str(folder)!r} "
            f"({listed(left)}); run them, or leave them out with "
            f"{option('partial', True)}"
        )
    digest = plan.digest()
    for index in sorted(set(range(len(plan))) - set(left)):
        path = record_path(place, index)
        record = _read(path)
        if record.get("plan") != digest:
            raise InputError(f"{str(path)!r} belongs to another plan; delete it and run again")
        read_fields(_StoredRecord, record, Place(path, _RECORD_REMEDY))
        for name, expected in (
            ("index", index), ("seed", plan.seed_of(index)), ("case", plan.cases[index]),
        ):  # fmt: skip
            if record[name] != expected:
                raise Place(path, _RECORD_REMEDY, name).wrong(
                    record[name], f"{expected!r:.80}, as in the plan"
                )
        if "sha256" in record and record["sha256"] != _digest(json.dumps(record["result"])):
            raise InputError(
                f"the file {str(path)!r} was changed since it was written: the checksum of its "
                f"result differs. {_RECORD_REMEDY}"
            )
        yield index, record


def _digest(result: str) -> str:
    return hashlib.sha256(result.encode()).hexdigest()


def listed(indices: list[int], max_runs: int = 8) -> str:
    """Return the numbers of repeats as text, with at most `max_runs` numbers or ranges.

    Examples
    --------
    >>> listed([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    runs: list[list[int]] = []
    for index in indices:
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    shown = [f"{a}" if a == b else f"{a}-{b}" for a, b in runs[:max_runs]]
    return ", ".join(shown) + (", ..." if len(runs) > max_runs else "")


def collect(plan: Plan, folder: str | os.PathLike[str], *, partial: bool = False) -> pd.DataFrame:
    """Return the results of all repeats as a table, in the order of the plan.

    Parameters
    ----------
    plan : Plan
        The plan that was run.
    folder : path
        The folder with the records of the plan.
    partial : bool
        Whether missing repeats may be left out; otherwise they are an error.

    Returns
    -------
    DataFrame
        One row per repeat. The index is the number of the repeat. The columns are "seed", the
        entries of its case, the results of the task, and "seconds".

    Examples
    --------
    >>> import tempfile
    >>> from sequela.repeats import Plan, run
    >>> plan = Plan("builtins:dict", [{"n": 10}, {"n": 20}], seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = run(plan, folder, backend="threads")
    ...     collect(plan, folder)["n"].tolist()
    [10, 20]
    """
    return result_table(plan, folder, partial=partial)


def result_table(
    plan: Plan, folder: str | os.PathLike[str], *, partial: bool, nested: bool = True
) -> pd.DataFrame:
    """Return the table of `collect`; without `nested`, leave out lists and dictionaries."""
    done, rows = [], []
    for index, record in records(plan, folder, partial=partial):
        result = record["result"]
        if not nested:
            result = {k: v for k, v in result.items() if not isinstance(v, dict | list)}
        done.append(index)
        rows.append(
            {"seed": record["seed"], **record["case"], **result, "seconds": record["seconds"]}
        )
    return pd.DataFrame(rows, index=pd.Index(done, name="repeat", dtype="int64"))
