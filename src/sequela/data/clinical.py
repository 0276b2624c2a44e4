"""Read survival times from the clinical files of cBioPortal."""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sequela.data._text_files import cell_rows, file_name, guess_separator, text_lines
from sequela.support.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

__all__ = ["read_clinical"]

# Maps the beginning of a column label in study folders (OS in OS_MONTHS) to the beginning of the
# same label in downloads of the study view (overall survival in Overall Survival (Months)).
_ENDPOINTS = {
    "OS": "overall survival",
    "DFS": "disease free",
    "PFS": "progression free",
    "DSS": "disease-specific survival",
}
_ABSENT = {"", "na", "n/a", "nan", "[not available]", "[not applicable]", "[unknown]", "unknown"}
_EVENTS = {
    "1", "deceased", "dead", "died", "recurred/progressed", "recurred", "progressed",
    "progression", "dead with tumor", "event", "true", "yes",
}  # fmt: skip
_NO_EVENTS = {
    "0", "living", "alive", "diseasefree", "disease free", "censored", "alive or dead tumor free",
    "progressionfree", "progression free", "no event", "false", "no",
}  # fmt: skip


def read_clinical(
    patients: str | os.PathLike[str],
    samples: str | os.PathLike[str] | None = None,
    *,
    endpoint: str = "OS",
    encoding: str | None = None,
) -> pd.DataFrame:
    r"""Read survival times from clinical files of cBioPortal.

    Parameters
    ----------
    patients : str or path
        ``data_clinical_patient.txt`` of a study folder, or the table that can be downloaded from
        the study view. That table also has a column of samples.
    samples : str or path, optional
        ``data_clinical_sample.txt``, which says which samples belong to which patient. Without
        this file, and without a column of samples, the rows of the result are patients.
    endpoint : str
        "OS" (overall survival), "DFS" (disease-free), "PFS" (progression-free), "DSS"
        (disease-specific), or another prefix of the columns ``..._MONTHS`` and ``..._STATUS``.
    encoding : str, optional
        The encoding of the files. Default: UTF-8, unless a byte order mark says otherwise.

    Returns
    -------
    DataFrame
        One row per sample (or patient), with the columns "patient", "time" and "event". "event" is
        True if the event happened at "time", and False if the patient was last seen at "time" and
        the event had not happened. An unknown time or event is NaN. The ``attrs`` of the table have
        the entries "endpoint" and "unit".

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "data_clinical_patient.txt"
    >>> rows = ["#Patient\tMonths\tStatus", "PATIENT_ID\tOS_MONTHS\tOS_STATUS"]
    >>> rows += ["p1\t12.5\t1:DECEASED", "p2\t30\t0:LIVING"]
    >>> _ = path.write_text("\n".join(rows))
    >>> read_clinical(path)[["time", "event"]].values.tolist()
    [[12.5, True], [30.0, False]]
    """
    header, rows = _read(patients, encoding)
    name = file_name(patients)
    patient = _column(header, ("patient_id", "patient id"), name, "PATIENT_ID")
    time, status = _endpoint_columns(header, endpoint, name)
    sample = _find(header, ("sample_id", "sample id"))
    table = pd.DataFrame(
        {
            "patient": [row[patient] for _, row in rows],
            "time": [_time(row[time], name, line) for line, row in rows],
            "event": pd.array(
                [_event(row[status], name, line) for line, row in rows], dtype="boolean"
            ),
        }
    )
    if samples is not None:
        ids, owners = _owners(samples, encoding)
        _refuse_repeated(table["patient"].tolist(), "patient", name)
        by_patient = table.set_index("patient")
        table = by_patient.reindex(owners).reset_index()
        table.index = pd.Index(ids, name="sample")
    elif sample is not None:
        table.index = pd.Index([row[sample] for _, row in rows], name="sample")
    else:
        table.index = pd.Index(table["patient"], name="patient_id")
    _refuse_repeated(table.index.tolist(), "sample", name)
    if table["time"].notna().sum() == 0:
        raise InputError(
            f"{name} has no time for the endpoint {endpoint!r}: all cells are empty or NA. Choose "
            "another endpoint"
        )
    table["event"] = table["event"].astype(object).where(table["event"].notna(), np.nan)
    table.attrs.update(endpoint=endpoint, unit="months")
    return table


def _read(
    path: str | os.PathLike[str], encoding: str | None
) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the header in lower case, and the rows with their line numbers."""
    name = file_name(path)
    skipped = 0
    for text in text_lines(path, encoding):
        if text.strip() and not text.startswith("#"):
            break
        skipped += 1
    lines = islice(text_lines(path, encoding), skipped, None)
    head = list(islice(text_lines(path, encoding), skipped, skipped + 20))
    if not head:
        raise InputError(f"{name} is empty; expected a table with a header")
    table = cell_rows(lines, guess_separator(head), name, skipped + 1)
    _, first = next(table)
    header = [cell.casefold() for cell in first]
    rows = [(line, row) for line, row in table if any(row)]
    for line, row in rows:
        if len(row) < len(header):
            row.extend([""] * (len(header) - len(row)))
        elif len(row) > len(header):
            raise InputError(
                f"{name}, line {line}: found {len(row)} cells, expected {len(header)} as "
                "in the header"
            )
    return header, rows


def _find(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _column(header: Sequence[str], names: Sequence[str], where: str, wanted: str) -> int:
    found = _find(header, names)
    if found is None:
        raise InputError(
            f"{where} has no column {wanted} (it has {', '.join(header[:6])}, ...); expected a "
            "clinical file of cBioPortal"
        )
    return found


def _endpoint_columns(header: Sequence[str], endpoint: str, where: str) -> tuple[int, int]:
    short = endpoint.casefold()
    long = _ENDPOINTS.get(endpoint.upper(), short)
    time = _find(header, (f"{short}_months", f"{long} (months)"))
    status = _find(header, (f"{short}_status", f"{long} status"))
    if time is None or status is None:
        there = sorted(
            {h.removesuffix("_months").upper() for h in header if h.endswith("_months")}
            | {key for key, text in _ENDPOINTS.items() if f"{text} (months)" in header}
        )
        raise InputError(
            f"{where} has no columns {endpoint.upper()}_MONTHS and {endpoint.upper()}_STATUS; its "
            f"endpoints are {', '.join(there) or 'none'}"
        )
    return time, status


def _time(cell: str, where: str, line: int) -> float:
    if cell.casefold() in _ABSENT:
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0.0):
        raise InputError(
            f"{where}, line {line}: the time is {cell!r:.60}; expected a number of months, or NA"
        )
    return value


def _event(cell: str, where: str, line: int) -> bool | None:
    text = cell.casefold()
    if text in _ABSENT:
        return None
    code = text.partition(":")[0].strip()
    for part in (text, code):
        if part in _EVENTS or part in _NO_EVENTS:
            return part in _EVENTS
    raise InputError(
        f"{where}, line {line}: the status is {cell!r:.60}; expected a status such as 1:DECEASED "
        "or 0:LIVING, or NA"
    )


def _owners(path: str | os.PathLike[str], encoding: str | None) -> tuple[list[str], list[str]]:
    header, rows = _read(path, encoding)
    name = file_name(path)
    sample = _column(header, ("sample_id", "sample id"), name, "SAMPLE_ID")
    patient = _column(header, ("patient_id", "patient id"), name, "PATIENT_ID")
    return [row[sample] for _, row in rows], [row[patient] for _, row in rows]


def _refuse_repeated(labels: Sequence[str], what: str, where: str) -> None:
    seen: set[str] = set()
    for label in labels:
        if label in seen:
            raise InputError(f"{where}: {what} {label!r:.80} occurs twice; remove one of the rows")
        seen.add(label)
