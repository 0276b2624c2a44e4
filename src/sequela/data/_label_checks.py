"""Check the labels of samples and items that were read from a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sequela.support.errors import InputError
from sequela.support.labels import find_disguised, find_unfit

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_labels", "composed_hint"]

# Labels such as 2-Sep: a spreadsheet turns the names of some genes (here SEPT2) into dates.
_DATE = re.compile(r"\d{1,2}-(mar|sep|sept|dec|oct|apr|feb|nov)|(mar|sep|dec)-\d{1,2}", re.I)


def composed_hint(label: str) -> str:
    """Return a note for a message about a repeated label; it is empty for a label in ASCII.

    Unicode can write an accented letter as one character or as two. Both become the same label, so
    the two labels may differ in the file.
    """
    return "" if label.isascii() else ", compared after Unicode normalisation to NFC"


def check_labels(labels: Sequence[str], what: str, where: str, first: int = 1) -> list[str]:
    """Refuse labels that are empty, repeated or not printable; return notes on unusual ones.

    For messages, `what` is the kind of the labels, `where` the file, and `first` the number of the
    first label.
    """
    if not all(labels):
        raise InputError(
            f"{where}: {what} number {list(labels).index('') + first} has no label. Name it, or "
            "remove it (a separator at the end of the line adds an empty one)."
        )
    if len(set(labels)) < len(labels):
        seen: dict[str, int] = {}
        for k, label in enumerate(labels):
            if label in seen:
                raise InputError(
                    f"{where}: {what} {label!r:.80} occurs twice (numbers {seen[label] + first} "
                    f"and {k + first}{composed_hint(label)}). Rename, merge or remove one of them."
                )
            seen[label] = k
    unfit = find_unfit(labels)
    if unfit is not None:
        k, reason = unfit
        raise InputError(f"{where}: {what} {labels[k]!a:.80} {reason}. Rename it.")
    pair = find_disguised(labels)
    if pair is not None:
        one, other = (ascii(labels[k]) for k in pair)
        raise InputError(
            f"{where}: {what} {one:.80} (number {pair[0] + first}) and {other:.80} (number "
            f"{pair[1] + first}) look the same: they differ only in the kind of a space or in "
            "invisible characters. Rename, merge or remove one of them."
        )
    notes = []
    formulas = [x for x in labels if x[0] in "=@" or x in ("#NAME?", "#REF!", "#VALUE!", "#N/A")]
    if formulas:
        notes.append(
            f"{len(formulas)} {what} labels look like spreadsheet formulas ({formulas[0]!r}); they "
            "are read as text."
        )
    dates = [x for x in labels if x[-1] in "0123456789rpctbvRPCTBV" and _DATE.fullmatch(x)]
    if dates:
        notes.append(
            f"{len(dates)} {what} labels look like genes that a spreadsheet turned into dates "
            f"({dates[0]!r}); correct them in the original file."
        )
    return notes
