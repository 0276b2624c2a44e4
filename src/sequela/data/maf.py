"""Read mutations from a MAF, which has one line per mutation.

A MAF has no lines for samples without mutations. If all mutations of a sample are silent, the
sample was sequenced, and its set is empty. A sample without any line is known only if the argument
`profiled` of `read_maf` names it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.data._import_summary import counted
from sequela.data._maf_stream import RuleKeywords, Rules, stream_maf
from sequela.data._reading import read_strings
from sequela.data._text_files import BLANK, check_labels, file_name, source_file, text_lines
from sequela.data.importing import (
    Draft,
    Dropped,
    Imported,
    Selection,
    SelectionKeywords,
    finish,
    refuse_too_large,
)
from sequela.support.errors import InputError
from sequela.support.keywords import build_options, check_keywords
from sequela.support.naming import argument, option

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Unpack

    from sequela.data._maf_stream import Calls

__all__ = ["MafKeywords", "mutation_draft", "read_maf", "read_profiled"]

_ID_HEADERS = {"sample", "samples", "sample_id", "id", "tumor_sample_barcode", "patient_id"}


class MafKeywords(RuleKeywords, SelectionKeywords, total=False):
    """The ``**options`` of `read_maf`: which lines count, and which items are selected."""


def read_maf(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    profiled: Iterable[str] | str | os.PathLike[str] | None = None,
    items: Iterable[str] | None = None,
    barcode_length: int | None = None,
    encoding: str | None = None,
    **options: Unpack[MafKeywords],
) -> Imported:
    r"""Read from a MAF (Mutation Annotation Format) which genes are mutated in which samples.

    Parameters
    ----------
    path : str or path, or a list of paths
        A tab-separated file with the columns Hugo_Symbol, Tumor_Sample_Barcode and
        Variant_Classification, in any order and in upper or lower case. It may be compressed.
    profiled : iterable of ids, or path of a file with one id per line, optional
        All samples that were sequenced. Samples without mutations become empty sets. Lines of
        other samples are left out. Default: the samples that the file names.
    items : iterable of str, optional
        The genes to read. Default: all.
    barcode_length : int, optional
        Cut sample ids to this length. For example, 15 cuts TCGA-02-2466-01A-01D-1492-08 to the id
        of the sample, TCGA-02-2466-01, and 12 to the id of the patient, TCGA-02-2466.
    encoding : str, optional
        The encoding of the file. Default: UTF-8, unless a byte order mark says otherwise.
    **options
        Which lines count, and which items are selected:

        consequences : iterable of str, optional
            The values of Variant_Classification that count; ["all"] counts every line. Default:
            all except Silent, Intron, UTR, Flank, IGR, RNA and similar values.
        promoters : iterable of str
            Genes for which 5'Flank counts too, such as ["TERT"].
        germline : bool
            Whether lines with the Mutation_Status Germline count. Such mutations were present
            from the start. Default: False.
        merge : mapping or path of a JSON file, optional
            Maps a new name to the old names that it replaces. The new item is present if any of
            the old items is.
        most_frequent : int, optional
            Keep at most this number of items, the most frequent first.
        at_least : int, optional
            Keep items that are present in at least this number of samples.
        keep, drop : iterable of str, optional
            Items (after merging) to keep even if they are rare, and items to leave out.

    Returns
    -------
    Imported
        With `data` and `summary`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "some.maf"
    >>> rows = [
    ...     "Hugo_Symbol Variant_Classification Tumor_Sample_Barcode",
    ...     "IDH1 Missense_Mutation a",
    ...     "TTN Silent b",
    ... ]
    >>> _ = path.write_text("\n".join(rows).replace(" ", "\t"))
    >>> read_maf(path, profiled=["a", "b", "c"]).data.sets()
    [frozenset({'IDH1'}), frozenset(), frozenset()]
    """
    check_keywords(read_maf, options, MafKeywords)
    selection = build_options(Selection, options)
    rules = build_options(Rules, options, items=items, barcode_length=barcode_length)
    paths: list[Any] = [path]
    if not isinstance(path, str | os.PathLike) and hasattr(path, "__iter__"):
        paths = list(path)
    calls = stream_maf(paths, rules, encoding)
    ids = None if profiled is None else read_profiled(profiled, calls, barcode_length)
    kind = f"the MAF {file_name(paths[0])}" if len(paths) == 1 else f"{len(paths)} MAFs"
    draft = mutation_draft(calls, ids, kind)
    if rules.items is not None:
        _add_never_seen(draft, rules.items)
    return finish(draft, selection)


def read_profiled(
    given: Iterable[str] | str | os.PathLike[str], calls: Calls, length: int | None = None
) -> list[str]:
    """Return the ids of the profiled samples, cut to `length`; add files and notes to `calls`."""
    if isinstance(given, str | os.PathLike):
        calls.files.append(source_file(given))
        name = file_name(given)
        ids = _ids_of_file(given)
    else:
        name = "profiled"
        expected = "a list of strings or the path of a file"
        ids = [label.strip() for label in read_strings(given, name, expected)]
        if not all(ids):
            raise InputError("profiled has an empty sample id; remove it.")
    if not ids:
        raise InputError(f"{name} has no sample ids; expected at least one, each on its own line.")
    once = list(dict.fromkeys(label[:length] for label in ids))
    calls.notes += check_labels(once, "sample", name)
    if len(once) < len(ids):
        calls.notes.append(f"{name} repeats {counted(len(ids) - len(once), 'sample id')}.")
    return once


def _ids_of_file(path: str | os.PathLike[str]) -> list[str]:
    ids: list[str] = []
    for number, line in enumerate(text_lines(path), 1):
        label = line.strip(BLANK).strip('"')
        if not label or label.startswith("#"):
            continue
        if "\t" in label or "," in label or ";" in label:
            raise InputError(
                f"{file_name(path)}, line {number}: found {label!r:.80}, expected one sample id "
                "per line."
            )
        if label.casefold() not in _ID_HEADERS:
            ids.append(label)
        elif ids:
            raise InputError(
                f"{file_name(path)}, line {number}: a second header ({label!r}); remove the line."
            )
    return ids


# From calls to a draft --------------------------------------------------------------------


def mutation_draft(calls: Calls, profiled: Sequence[str] | None, kind: str) -> Draft:
    """Return the table of the profiled samples.

    If `profiled` is None, return the table of all samples that the file names.
    """
    notes = list(calls.notes)
    if profiled is None and calls.sequenced:
        profiled = list(dict.fromkeys(calls.sequenced))
        notes.append("the samples are those that the file lists as sequenced.")
    elif profiled is None:
        notes.append(
            "a MAF does not name samples without mutations; "
            f"{option('profiled')} adds them as empty sets."
        )
    seen = sorted(calls.samples)
    ids = seen if profiled is None else list(profiled)
    others: list[str] = []
    if profiled is not None:
        others = sorted(set(seen) - set(ids))
        if seen and len(others) == len(seen):
            raise InputError(
                f"{kind}: none of its {len(seen)} samples ({seen[0]!r:.80}, ...) is among the "
                f"{len(ids)} profiled ones ({ids[0]!r:.80}, ...). If the ids differ in length, "
                f"cut them with {option('barcode_length', 15)}."
            )
    items = sorted(calls.genes)
    refuse_too_large(len(ids), len(items), kind)
    row = {label: i for i, label in enumerate(ids)}
    column = {label: j for j, label in enumerate(items)}
    to_row = np.array([row.get(label, -1) for label in calls.samples], dtype=np.int64)
    to_column = np.array([column[label] for label in calls.genes], dtype=np.int64)
    values = np.zeros((len(ids), len(items)), dtype=np.bool_)
    if len(calls.where[0]):
        rows = to_row[np.frombuffer(calls.where[0], dtype=np.int32)]
        columns = to_column[np.frombuffer(calls.where[1], dtype=np.int32)]
        values[rows[rows >= 0], columns[rows >= 0]] = True
    draft = Draft(kind, ids, items, values, files=calls.files, notes=notes)
    if others:
        draft.dropped_samples.append(Dropped("not among the profiled samples", tuple(others)))
    return draft


def _add_never_seen(draft: Draft, wanted: Iterable[str]) -> None:
    """Add empty columns for genes in `items=` that are mutated in no sample."""
    seen = set(draft.items)
    absent = [label for label in dict.fromkeys(wanted) if label not in seen]
    if absent:
        draft.notes.append(
            f"{argument('items')} has {counted(len(absent), 'gene')} without a mutation that "
            "counts: "
            f"{', '.join(absent[:5])}."
        )
        draft.items = [*draft.items, *absent]
        empty = np.zeros((len(draft.samples), len(absent)), dtype=np.bool_)
        draft.values = np.hstack([draft.values, empty])
