"""Which column of a table has the ids, which the times, and which are items."""

from __future__ import annotations

from dataclasses import dataclass, field

from sequela.data.importing import near
from sequela.support.errors import InputError

__all__ = ["ABSENT", "MISSING", "PRESENT", "Asked", "Columns", "settle_columns"]

PRESENT = {"1", "1.0", "true", "yes"}
ABSENT = {"0", "0.0", "false", "no"}
MISSING = {"", "na", "n/a", "nan", "null", "none", "<na>", "#n/a", ".", "?", "-", "missing"}
_ID_NAMES = {
    *("", "sample", "samples", "sample_id", "sampleid", "sample id", "id", "ids", "index"),
    *("patient", "patient_id", "patientid", "patient id", "case", "case_id", "barcode"),
    *("tumor_sample_barcode", "name", "subject", "subject_id", "row.names", "rownames"),
    *("unnamed: 0", "__index_level_0__", "...1"),
}


@dataclass(frozen=True)
class Asked:
    """What the caller of `read_table` said about the columns."""

    samples: str | bool | None
    items: list[str] | None
    times: str | None
    header: bool | None
    ignored: list[str]


@dataclass
class Columns:
    """What the columns of a file are."""

    labels: list[str]  # of all columns; '' for ids that the header leaves out
    ids: int | None
    time: int | None
    items: list[int]
    notes: list[str] = field(default_factory=list)


def settle_columns(
    labels: list[str], rows: list[list[str]], asked: Asked, where: str, *, left_out: bool
) -> Columns:
    """Settle which column has ids, which times, and which are items."""
    found = Columns(labels, None, None, [])
    position = {label: j for j, label in enumerate(labels)}

    def place(label: str, argument: str) -> int:
        if label not in position:
            raise InputError(
                f"{where}: {argument}={near(label, labels)} is not among the {len(labels)} columns "
                f"({', '.join(labels[:5])}{', ...' if len(labels) > 5 else ''})."
            )
        return position[label]

    if left_out:
        if labels[1].casefold().lstrip("#") in _ID_NAMES:
            raise InputError(
                f"{where} has {len(labels) - 1} labels, the rows have {len(labels)} cells; the "
                "label of an item is missing. Name all columns."
            )
        found.ids = 0
        if isinstance(asked.samples, str):
            found.ids = place(asked.samples, "samples")
        elif asked.samples is False:
            raise InputError(f"{where} has one label less than the rows have cells; name them all.")
    elif isinstance(asked.samples, str):
        found.ids = place(asked.samples, "samples")
    elif asked.samples is True or (asked.samples is None and asked.header is not False):
        named = labels[0].casefold().lstrip("#") in _ID_NAMES and len(labels) > 1
        if asked.samples is True or named:
            found.ids = 0
        elif len(labels) > 1 and asked.times != labels[0]:
            found.ids = 0 if _only_names([row[0] for row in rows]) else None
            if found.ids == 0:
                found.notes.append(
                    f"the first column ({labels[0]!r:.80}) was taken for sample ids."
                )
    if asked.times is not None:
        found.time = place(asked.times, "times")
    ignored = {place(label, "drop") for label in asked.ignored}
    special = {found.ids, found.time}
    taken = special | ignored
    if asked.items is None:
        found.items = [j for j in range(len(labels)) if j not in taken]
    else:
        found.items = [place(label, "items") for label in dict.fromkeys(asked.items)]
        for j in found.items:
            if j in special:
                raise InputError(
                    f"{where}: {labels[j]!r:.80} has ids or times and cannot be an item too."
                )
        found.items = [j for j in found.items if j not in ignored]
    if not found.items:
        raise InputError(
            f"{where} leaves no column for items (columns: {', '.join(labels[:5])}). If the cells "
            "are not cut apart, name what separates them with separator=."
        )
    return found


def _only_names(cells: list[str]) -> bool:
    """Whether no cell could be a value of an item, a missing one or a number gone wrong."""

    def is_name(cell: str) -> bool:
        folded = cell.casefold()
        if folded in PRESENT or folded in ABSENT or folded in MISSING:
            return False
        try:
            float(cell.replace(",", "."))
        except ValueError:
            return True
        return False

    return all(is_name(cell) for cell in cells)
