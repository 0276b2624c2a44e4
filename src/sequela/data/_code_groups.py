"""Read code-to-group files, which say to which group of diagnoses a code belongs.

Codes are hierarchical: E11.9 is a kind of E11. Therefore a line of the file names a code or a
prefix of codes. If several listed prefixes fit a code, the longest one decides its group.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sequela.data._label_checks import check_labels
from sequela.data._text_files import file_name, source_file
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sequela.data._text_files import SourceFile

__all__ = ["CodeGroups", "read_groups"]

_CODE_HEADERS = {"code", "codes", "icd", "icd10", "icd_code", "icd10_code", "prefix", "item"}


@dataclass
class CodeGroups:
    """Maps codes to their groups. Dots, and differences of upper and lower case, are ignored.

    Examples
    --------
    >>> groups = CodeGroups({"E11": ("diabetes",), "E11.2": ("diabetes", "kidney")})
    >>> groups.of("e11.9"), groups.of("E11.21"), groups.of("I10")
    (('diabetes',), ('diabetes', 'kidney'), ())
    """

    groups: Mapping[str, tuple[str, ...]]
    source: SourceFile | None = None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._known = {_plain(code): groups for code, groups in self.groups.items()}
        self._longest = max(map(len, self._known), default=0)

    def of(self, code: str) -> tuple[str, ...]:
        """Return the groups of a code; an empty tuple if no prefix of it is listed."""
        plain = _plain(code)
        for length in range(min(len(plain), self._longest), 0, -1):
            found = self._known.get(plain[:length])
            if found is not None:
                return found
        return ()


def _plain(code: str) -> str:
    return code.strip().rstrip("*").replace(".", "").replace(" ", "").upper()


def read_groups(given: Mapping[str, object] | str | os.PathLike[str]) -> CodeGroups:
    """Read groups from a mapping (group to codes) or from a file with one code per line.

    Parameters
    ----------
    given : mapping or path
        A mapping from groups to the codes that belong to them, or the path of a table with two
        columns, code and group, with or without a header. A code may have several lines, one for
        each of its groups.
    """
    if isinstance(given, Mapping):
        return _from_mapping(given)
    if not isinstance(given, str | os.PathLike):
        raise InputError(
            f"groups must be a mapping of groups to codes, or the path of a file; found "
            f"{given!r:.80}."
        )
    from sequela.data.tables import text_rows

    name = file_name(given)
    rows, _ = text_rows(given, None, None)
    found: dict[str, tuple[str, ...]] = {}
    first = True
    for line, row in rows:
        if not any(row):
            continue
        if len(row) != 2:
            raise InputError(
                f"{name}, line {line}: found {len(row)} cells, expected two: a code and its group."
            )
        if first and row[0].casefold() in _CODE_HEADERS:
            first = False
            continue
        first = False
        _add(found, row[0], row[1], f"{name}, line {line}")
    if not found:
        raise InputError(f"{name} has no codes; expected a code and its group per line.")
    notes = check_labels(list(_names(found)), "group", name)
    return CodeGroups(found, source_file(given), notes)


def _from_mapping(given: Mapping[str, object]) -> CodeGroups:
    found: dict[str, tuple[str, ...]] = {}
    for group, codes in given.items():
        if isinstance(codes, str) or not hasattr(codes, "__iter__"):
            raise InputError(f"groups[{group!r:.80}] must be a list of codes; found {codes!r:.80}.")
        members: Iterable[object] = codes
        for code in members:
            _add(found, str(code), str(group), f"groups[{group!r:.80}]")
    if not found:
        raise InputError("groups is empty; expected a mapping such as {'diabetes': ['E11']}.")
    return CodeGroups(found, None, check_labels(list(_names(found)), "group", "groups"))


def _names(found: Mapping[str, tuple[str, ...]]) -> dict[str, None]:
    return dict.fromkeys(group for groups in found.values() for group in groups)


def _add(found: dict[str, tuple[str, ...]], code: str, group: str, where: str) -> None:
    plain = _plain(code)
    if not plain or not group.strip():
        raise InputError(
            f"{where}: found {code!r:.80} and {group!r:.80}, expected a code and a group."
        )
    if not plain.isalnum():
        raise InputError(
            f"{where}: found the code {code!r:.80}, expected one code or a prefix of codes, "
            "such as E11 or E11.2. Write every code of a range on its own line."
        )
    known = found.get(plain, ())
    if group.strip() not in known:
        found[plain] = (*known, group.strip())
