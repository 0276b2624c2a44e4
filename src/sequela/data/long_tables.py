"""Read long tables, with one line per sample and item, as laboratories and registers keep them.

A line says that a sample has an item. A column of values may say whether the sample has the item or
not. A column of dates may say since when the sample has it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sequela.data._code_groups import CodeGroups, read_groups
from sequela.data._import_summary import counted
from sequela.data._long_presets import preset_named
from sequela.data._long_stream import (
    ABSENT_CODE,
    MISSING_CODE,
    PRESENT_CODE,
    Lines,
    LongColumns,
    stream_long,
)
from sequela.data._maf_stream import Calls
from sequela.data._reading import read_strings
from sequela.data._text_files import file_name
from sequela.data.importing import (
    Draft,
    Dropped,
    Imported,
    Incomplete,
    Selection,
    SelectionKeywords,
    finish,
    refuse_too_large,
)
from sequela.data.maf import read_profiled
from sequela.support.errors import InputError
from sequela.support.keywords import build_options, check_keywords
from sequela.support.naming import option

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Unpack

    import numpy.typing as npt

__all__ = ["LongKeywords", "read_long"]

Unlisted = Literal["absent", "missing"]


class LongKeywords(SelectionKeywords, total=False):
    """The ``**options`` of `read_long`: which lines count, and which items are selected."""

    present: Iterable[str] | None
    where: Mapping[str, Iterable[str]] | None
    groups: Mapping[str, Iterable[str]] | str | os.PathLike[str] | None
    profiled: Iterable[str] | str | os.PathLike[str] | None
    unlisted: Unlisted
    incomplete: Incomplete
    separator: str | None
    encoding: str | None


def read_long(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    sample: str | None = None,
    item: str | None = None,
    value: str | None = None,
    date: str | None = None,
    preset: str | None = None,
    **options: Unpack[LongKeywords],
) -> Imported:
    r"""Read a table with one line per sample and item.

    Several lines may have the same sample and item. The item is present if one of these lines says
    so.

    Parameters
    ----------
    path : str or path, or a list of paths
        The table, with cells separated by tabs, commas, semicolons or spaces. It may be compressed.
    sample, item : str, optional
        The labels of the columns with the ids and the items. Default: columns with a usual label,
        such as sample, patient_id, item, gene or code, or those of the preset.
    value : str, optional
        The label of the column that says whether the item is present: 0/1, true/false, yes/no, NA
        where unknown. Default: a column with the label "value" or "present". Without such a
        column, every line says that its item is present.
    date : str, optional
        The label of a column with dates (2021-03-28) or numbers, such as an age. The first date of
        each item of a sample gives the order of the items, which becomes part of the data
        (``Dataset.orders``). Items with the same date have no order.
    preset : {"amrfinderplus", "hamronization", "diagnoses"}, optional
        A known kind of table. It decides which columns are read and which lines count:

        - amrfinderplus: The items are element symbols (with ``item="Class"`` they are classes).
          Lines of the type AMR count, except incomplete genes. The id is in the column Name
          (``amrfinder --name``); without this column, it is the name of the file.
        - hamronization: The items are gene symbols (with ``item="drug_class"`` they are classes).
          If a line names a mutation, it becomes part of the label. The id is in the column
          input_file_name.
        - diagnoses: The items are groups of codes, such as those of ICD-10. `groups` translates
          the codes and must be given.
    **options
        Which lines count, and which items are selected:

        present : iterable of str, optional
            The values that mean that the item is present, such as ["R"]. All other values mean
            that it is absent.
        where : mapping, optional
            Maps a column to the values that it must have in lines that count. It replaces the
            conditions of the preset.
        groups : mapping or path, optional
            Maps each group to its codes, or names a table with the columns code and group. A
            listed code stands for all codes that begin with it. If several listed codes fit, the
            longest one decides. Codes without a group are dropped, and the summary lists them.
        profiled : iterable of ids, or path of a file with one id per line, optional
            All samples that were examined. Samples without lines become empty sets. Lines of
            other samples are left out. Default: the samples that the table names.
        unlisted : {"absent", "missing"}
            The state of an item for which a sample has no line. Default: "absent".
        incomplete : {"missing", "samples", "items"}
            Keep missing cells as missing, or drop the samples or items with missing cells.
            Default: "missing".
        separator, encoding : str, optional
            As for `read_table`.
        merge, most_frequent, at_least, keep, drop
            As for `read_table`.

    Returns
    -------
    Imported
        With `data` and `summary`.

    Raises
    ------
    InputError
        If the table cannot be read correctly; the message names file, line and column.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "long.csv"
    >>> _ = path.write_text("patient,code\np1,E11.9\np2,I10\np1,I10\np1,E11.2\n")
    >>> groups = {"diabetes": ["E10", "E11"], "hypertension": ["I10"]}
    >>> [sorted(each) for each in read_long(path, preset="diagnoses", groups=groups).data.sets()]
    [['diabetes', 'hypertension'], ['hypertension']]
    """
    check_keywords(read_long, options, LongKeywords)
    selection = build_options(Selection, options)
    chosen = preset_named(preset)
    groups = None if options.get("groups") is None else read_groups(options["groups"])  # type: ignore[arg-type]
    if chosen.needs_groups and groups is None:
        raise InputError(
            f"{option('preset', preset)} needs {option('groups')}, a table with the columns code "
            "and group. Without groups there are too many items, and most are too rare."
        )
    if options.get("unlisted", "absent") not in ("absent", "missing"):
        raise InputError(
            f"unlisted must be 'absent' or 'missing'; found {options['unlisted']!r:.80}."
        )
    columns = LongColumns(
        chosen, sample, item, value, date,
        present=_strings(options.get("present"), "present"),
        where=_conditions(options.get("where")),
        separator=options.get("separator"), encoding=options.get("encoding"),
    )  # fmt: skip
    paths: list[Any] = [path]
    if not isinstance(path, str | os.PathLike) and hasattr(path, "__iter__"):
        paths = list(path)
    lines = stream_long(paths, columns)
    kind = f"the long table {file_name(paths[0])}"
    if len(paths) > 1:
        kind = f"{len(paths)} long tables"
    table = _Table(lines, groups, kind)
    draft = table.draft(
        options.get("profiled"), unlisted_missing=options.get("unlisted") == "missing"
    )
    return finish(draft, selection)


def _strings(given: Iterable[str] | None, name: str) -> tuple[str, ...] | None:
    return None if given is None else read_strings(given, name)


def _conditions(given: Mapping[str, Iterable[str]] | None) -> dict[str, tuple[str, ...]] | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InputError(
            f"where must be a mapping such as {{'Type': ['AMR']}}; found {given!r:.80}."
        )
    return {label: read_strings(values, f"where[{label!r}]") for label, values in given.items()}


@dataclass
class _Pairs:
    """The rows and columns of the table to which the lines belong, as three arrays of equal length.

    Line ``line[k]`` is about the cell in row ``row[k]`` and column ``column[k]``. A code that is in
    several groups has several columns, so its line occurs several times.
    """

    row: npt.NDArray[np.int64]
    column: npt.NDArray[np.int64]
    line: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls,
        rows: npt.NDArray[np.int64],
        labels: npt.NDArray[np.int32],
        columns: Sequence[Sequence[int]],
    ) -> _Pairs:
        """Find the cells of all lines.

        `rows` and `labels` have the row and the label of each line; a row of -1 means that the
        sample of the line is left out. `columns` has the columns of each label.
        """
        counts = np.array([len(part) for part in columns], dtype=np.int64)
        flat = np.array([j for part in columns for j in part], dtype=np.int64)
        first = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        times = np.where(rows >= 0, counts[labels], 0)
        line = np.repeat(np.arange(len(rows)), times)
        within = np.arange(len(line)) - np.repeat(np.cumsum(times) - times, times)
        return cls(rows[line], flat[first[labels[line]] + within], line)


@dataclass
class _Table:
    """The lines as a table of samples and items."""

    lines: Lines
    groups: CodeGroups | None
    kind: str

    def draft(
        self, profiled: Iterable[str] | str | os.PathLike[str] | None, *, unlisted_missing: bool
    ) -> Draft:
        """Return the table of the profiled samples, or of all samples if `profiled` is None."""
        lines = self.lines
        draft = Draft(self.kind, [], [], np.zeros((0, 0), dtype=np.bool_), files=lines.files)
        draft.notes = list(lines.notes)
        self._take_samples(draft, profiled)
        columns = self._take_items(draft)
        refuse_too_large(len(draft.samples), len(draft.items), self.kind)
        row = {label: i for i, label in enumerate(draft.samples)}
        to_row = np.array([row.get(label, -1) for label in lines.samples], dtype=np.int64)
        rows = to_row[np.frombuffer(lines.who, dtype=np.int32)]
        pairs = _Pairs.of(rows, np.frombuffer(lines.what, dtype=np.int32), columns)
        codes = np.frombuffer(bytes(lines.code), dtype=np.uint8)[pairs.line]
        present, known = codes == PRESENT_CODE, codes != MISSING_CODE
        draft.values = self._mark(draft, pairs, present)
        if unlisted_missing or not known.all():
            draft.unprofiled = self._missing(draft, pairs, known, unlisted=unlisted_missing)
        self._note_repeats(draft, pairs, codes)
        if lines.has_dates:
            draft.dates = self._first_dates(draft, pairs, present)
        return draft

    def _take_samples(
        self, draft: Draft, profiled: Iterable[str] | str | os.PathLike[str] | None
    ) -> None:
        seen = list(self.lines.samples)
        draft.samples = seen
        if profiled is None:
            draft.notes.append(
                "a long table does not name samples without items; "
                f"{option('profiled')} adds them as empty sets."
            )
            return
        calls = Calls([], [], (self.lines.who, self.lines.what), None, draft.files)
        ids = read_profiled(profiled, calls)
        draft.notes += calls.notes
        known = set(ids)
        others = tuple(label for label in seen if label not in known)
        if len(others) == len(seen):
            raise InputError(
                f"{self.kind}: none of its {len(seen)} samples ({seen[0]!r:.80}, ...) is among the "
                f"{len(ids)} profiled ones ({ids[0]!r:.80}, ...); check how the ids are written."
            )
        draft.samples = ids
        if others:
            draft.dropped_samples.append(Dropped("not among the profiled samples", others))

    def _take_items(self, draft: Draft) -> list[list[int]]:
        """Set the items of a draft; return the columns for each label that the lines contain."""
        labels = list(self.lines.items)
        if self.groups is None:
            draft.items = sorted(labels)
            place = {label: j for j, label in enumerate(draft.items)}
            return [[place[label]] for label in labels]
        found = [self.groups.of(label) for label in labels]
        draft.items = sorted({group for groups in found for group in groups})
        draft.items_read = len(labels)
        if self.groups.source is not None:
            draft.files.append(self.groups.source)
        draft.notes += self.groups.notes
        place = {label: j for j, label in enumerate(draft.items)}
        draft.merged = {
            group: tuple(
                label for label, groups in zip(labels, found, strict=True) if group in groups
            )
            for group in draft.items
        }
        none = tuple(label for label, groups in zip(labels, found, strict=True) if not groups)
        if none:
            draft.dropped_items.append(Dropped("codes without a group", none))
        return [[place[group] for group in groups] for groups in found]

    def _missing(
        self, draft: Draft, pairs: _Pairs, known: npt.NDArray[np.bool_], *, unlisted: bool
    ) -> npt.NDArray[np.bool_]:
        """Return which cells are missing, as a table.

        Without groups, a line with a known value overrides a line with an unknown value. A group is
        missing if one of its codes is unknown, unless another of its codes is present. If
        `unlisted` is True, cells without any line are missing, too.
        """
        said_unknown = self._mark(draft, pairs, ~known)
        said_known = self._mark(draft, pairs, known)
        missing = said_unknown & ~(said_known if self.groups is None else draft.values)
        return missing | ~(said_known | said_unknown) if unlisted else missing

    @staticmethod
    def _mark(draft: Draft, pairs: _Pairs, which: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        table = np.zeros((len(draft.samples), len(draft.items)), dtype=np.bool_)
        table[pairs.row[which], pairs.column[which]] = True
        return table

    def _note_repeats(self, draft: Draft, pairs: _Pairs, codes: npt.NDArray[np.uint8]) -> None:
        keys = pairs.row * len(draft.items) + pairs.column
        repeats = len(keys) - len(np.unique(keys))
        if repeats:
            have = "repeats" if repeats == 1 else "repeat"
            draft.notes.append(
                f"{counted(repeats, 'line')} {have} the sample and item of another line."
            )
        both = np.intersect1d(keys[codes == PRESENT_CODE], keys[codes == ABSENT_CODE])
        if len(both):
            i, j = divmod(int(both[0]), len(draft.items))
            have = "pairs" if len(both) > 1 else "pair"
            draft.notes.append(
                f"{len(both)} {have} of sample and item have lines that say present and lines that "
                f"say absent ({draft.samples[i]!r}, {draft.items[j]!r}); they count as present."
            )

    def _first_dates(
        self, draft: Draft, pairs: _Pairs, present: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float64]:
        """Return the first date of each item in each sample.

        The date is NaN if it is unknown, or if the sample does not have the item.
        """
        when = np.frombuffer(self.lines.when, dtype=np.float64)[pairs.line][present]
        rows, columns = pairs.row[present], pairs.column[present]
        first = np.full(draft.values.shape, np.inf)
        # If one of several dates is unknown, the first is unknown: the minimum is then NaN.
        np.minimum.at(first, (rows, columns), when)
        first[np.isinf(first)] = np.nan
        unknown = int((draft.values & np.isnan(first)).sum())
        if unknown:
            draft.notes.append(
                f"{counted(unknown, 'pair')} of sample and item without a date in at least one "
                "line; the position of the item in the order is unknown."
            )
        return first
