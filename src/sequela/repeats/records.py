"""One file for each repeat: written whole, read back, and told from those of other plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from sequela._errors import InputError
from sequela._files import replacing

if TYPE_CHECKING:
    import os

    from sequela.repeats.plan import Plan

__all__ = ["collect", "missing", "open_folder", "write_record"]

_PLAN_NAME = "plan.json"
_FORMAT = "sequela repeats"
_VERSION = 1


def _path(folder: Path, index: int) -> Path:
    return folder / f"{index:06d}.json"


def open_folder(plan: Plan, folder: str | os.PathLike[str]) -> Path:
    """Return the folder of a plan, made if need be; one of another plan is refused."""
    place = Path(folder)
    header = {
        "format": _FORMAT, "version": _VERSION, "plan": plan.digest(), "task": plan.task,
        "repeats": len(plan), "seed": plan.seed,
    }  # fmt: skip
    known = place / _PLAN_NAME
    if known.exists():
        found = _read(known)
        if found.get("plan") != header["plan"]:
            raise InputError(
                f"the folder {str(folder)!r} holds the repeats of another plan (task "
                f"{found.get('task')!r}, seed {found.get('seed')!r}); name another folder"
            )
        return place
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {str(folder)!r} cannot be made ({error.strerror})") from None
    if any(place.iterdir()):
        raise InputError(
            f"the folder {str(folder)!r} is not empty and holds no plan; name another folder"
        )
    with replacing(known) as file:
        file.write((json.dumps(header, indent=1) + "\n").encode())
    return place


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!r} cannot be read ({error}); delete it") from None
    if not isinstance(content, dict):
        raise InputError(f"{str(path)!r} is not a record of repeats; delete it")
    return content


def write_record(
    folder: Path, plan: Plan, index: int, result: dict[str, Any], seconds: float
) -> None:
    """Write what one repeat returned."""
    record = {
        "plan": plan.digest(), "index": index, "seed": plan.seed_of(index),
        "case": plan.cases[index], "result": result, "seconds": seconds,
    }  # fmt: skip
    try:
        text = json.dumps(record, allow_nan=True)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the task {plan.task!r} returned what is not made of plain values ({error})"
        ) from None
    with replacing(_path(folder, index)) as file:
        file.write(text.encode())


def missing(plan: Plan, folder: str | os.PathLike[str]) -> list[int]:
    """Return which repeats of a plan are still to be done."""
    place = Path(folder)
    return [index for index in range(len(plan)) if not _path(place, index).exists()]


def collect(plan: Plan, folder: str | os.PathLike[str], *, partial: bool = False) -> pd.DataFrame:
    """Return the results of all repeats as a table, in the order of the plan.

    Parameters
    ----------
    plan : Plan
        What was run.
    folder : path
        Where its records are.
    partial : bool
        Whether missing repeats may be left out; otherwise they are an error.

    Returns
    -------
    DataFrame
        Indexed by repeat: its seed, the entries of its case, what the task returned, "seconds".
    """
    place = open_folder(plan, folder)
    left = missing(plan, place)
    if left and not partial:
        raise InputError(
            f"{len(left)} of {len(plan)} repeats are missing in {str(folder)!r} (the first is "
            f"{left[0]}); run them, or take what there is with partial=True"
        )
    rows = []
    done = [index for index in range(len(plan)) if index not in set(left)]
    for index in done:
        record = _read(_path(place, index))
        if record.get("plan") != plan.digest():
            raise InputError(
                f"{str(_path(place, index))!r} belongs to another plan; delete it and run again"
            )
        rows.append(
            {
                "seed": record["seed"], **record["case"], **record["result"],
                "seconds": record["seconds"],
            }
        )  # fmt: skip
    return pd.DataFrame(rows, index=pd.Index(done, name="repeat"))
