"""Read mutations and copy numbers of cBioPortal: downloads of the results view, or study folders.

Cells that were not profiled become missing cells, because it is not known whether their genes are
altered. Samples in which no gene was profiled are left out, and the summary lists them.
"""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from sequela.data._gene_tables import (
    ALTERED,
    AMPLIFIED,
    DELETED,
    UNPROFILED,
    Levels,
    mutated,
    read_genes,
)
from sequela.data._import_summary import counted
from sequela.data._maf_stream import RuleKeywords, Rules, stream_maf
from sequela.data._study_folder import Study, look_into
from sequela.data._text_files import BLANK, file_name, source_file, text_lines
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
from sequela.data.maf import mutation_draft, read_profiled
from sequela.support.errors import InputError
from sequela.support.keywords import build_options, check_keywords
from sequela.support.naming import argument, option

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Unpack

__all__ = ["CbioportalKeywords", "read_cbioportal"]


class CbioportalKeywords(RuleKeywords, SelectionKeywords, total=False):
    """The ``**options`` of `read_cbioportal`: what counts as altered, and which items to select."""

    amplification: float
    deletion: float
    incomplete: Incomplete
    panels: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None


def read_cbioportal(
    mutations: str | os.PathLike[str] | None = None,
    cna: str | os.PathLike[str] | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    profiled: Iterable[str] | str | os.PathLike[str] | None = None,
    panel: str | None = None,
    encoding: str | None = None,
    **options: Unpack[CbioportalKeywords],
) -> Imported:
    r"""Read mutations and copy numbers from files of cBioPortal.

    Items are mutated genes (EGFR), amplifications (EGFR(A)) and deletions (EGFR(D)). If you give
    both tables, only samples that occur in both tables are kept. The summary lists the other
    samples.

    Parameters
    ----------
    mutations : str or path, optional
        A MAF, or a download of the results view. The cells of such a download are protein changes,
        WT (wild type) or NS (not sequenced).
    cna : str or path, optional
        A table of GISTIC levels from -2 to 2: a download of the results view, or data_cna.txt of a
        study.
    folder : str or path, optional
        The folder of a study, instead of the two files. The reader uses data_mutations.txt,
        data_cna.txt, and a list of the samples that were sequenced. The list is the first of these
        files that exists: case_lists/cases_sequenced.txt, case_lists/cases_all.txt,
        data_clinical_sample.txt.
    profiled : iterable of ids, or path of a file with one id per line, optional
        The samples that were sequenced, if the mutations are a MAF. Default: the samples that the
        folder lists.
    panel : str, optional
        Read only the samples of this gene panel. Default: read the samples of all panels. Genes
        that the panel of a sample does not cover are missing in this sample.
    encoding : str, optional
        The encoding of the files. Default: UTF-8, unless a byte order mark says otherwise.
    **options
        What counts as altered, and which items and samples are selected:

        amplification, deletion : number
            The lowest GISTIC level of an amplified gene, and the highest level of a deleted gene.
            Default: 2 and -2.
        consequences : iterable of str, optional
            If the mutations are a MAF: the values of Variant_Classification that count; ["all"]
            counts every line. Default: all except Silent, Intron, UTR, Flank, IGR, RNA and
            similar values.
        promoters : iterable of str
            If the mutations are a MAF: genes for which 5'Flank counts too, such as ["TERT"].
        germline : bool
            If the mutations are a MAF: whether lines with the Mutation_Status Germline count.
            Default: False.
        incomplete : {"missing", "samples", "items"}
            What to do if some genes of a sample were not profiled: keep these cells as missing,
            or drop the samples or the items. Default: "missing".
        panels : path or list of paths, optional
            Folders or files that define the gene panels of a study, if its folder does not:
            data_gene_panel_NAME.txt of cBioPortal, or genomic_information.txt of GENIE.
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
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cna.txt"
    >>> rows = ["STUDY_ID gbm gbm", "SAMPLE_ID s1 s2", "EGFR 2 0", "PTEN -1 -2"]
    >>> _ = path.write_text("\n".join(rows).replace(" ", "\t"))
    >>> read_cbioportal(cna=path, at_least=1).data.sets()
    [frozenset({'EGFR(A)'}), frozenset({'PTEN(D)'})]
    """
    check_keywords(read_cbioportal, options, CbioportalKeywords)
    selection = build_options(Selection, options)
    rules = build_options(Rules, options)
    levels = build_options(Levels, options)
    study = Study(None, None)
    if folder is not None:
        if mutations is not None or cna is not None:
            raise InputError(
                "folder was given together with mutations or cna; expected either the folder or "
                "the files."
            )
        study = look_into(folder, panel, _paths(options.get("panels")))
        mutations, cna = study.mutations, study.cna
    elif panel is not None or options.get("panels") is not None:
        raise InputError(
            f"{argument('panel')} and {argument('panels')} are only for a study folder; give "
            f"{option('folder')} too."
        )
    drafts = []
    if mutations is not None:
        if _is_maf(mutations, encoding):
            draft = _from_maf(mutations, rules, profiled, study, encoding)
        elif profiled is None and rules == Rules():
            draft = _from_mutations(mutations, encoding)
        else:
            raise InputError(
                f"{file_name(mutations)} is a table of genes and samples; consequences, promoters, "
                "germline and profiled are only for a MAF. Leave these options out."
            )
        drafts.append(_on_panel(draft, study, "mutations"))
    if cna is not None:
        draft = _from_copy_numbers(cna, levels, encoding)
        drafts.append(_on_panel(draft, study, "cna"))
    if not drafts:
        raise InputError("nothing to read: give mutations, cna, or both, or the folder of a study.")
    for draft in drafts:
        _drop_all_unprofiled(draft)
    whole = drafts[0] if len(drafts) == 1 else _joined(drafts[0], drafts[1])
    whole.kind = "cBioPortal's " + " and ".join(draft.kind for draft in drafts)
    whole.files += study.files
    whole.notes = study.notes + whole.notes
    return finish(whole, selection)


def _is_maf(path: str | os.PathLike[str], encoding: str | None) -> bool:
    lines = (line for line in text_lines(path, encoding) if line.strip(BLANK) and line[0] != "#")
    header = next(islice(lines, 1), "").casefold().replace('"', "").split("\t")
    return "tumor_sample_barcode" in [cell.strip(BLANK) for cell in header]


def _from_maf(
    path: str | os.PathLike[str],
    rules: Rules,
    profiled: Iterable[str] | str | os.PathLike[str] | None,
    study: Study,
    encoding: str | None,
) -> Draft:
    calls = stream_maf([path], rules, encoding)
    ids = study.sequenced
    if profiled is not None:
        ids = read_profiled(profiled, calls)
    elif calls.sequenced and not study.certain:
        ids = list(dict.fromkeys(calls.sequenced))
        calls.notes.append("the sequenced samples are those that the MAF lists.")
    return mutation_draft(calls, ids, f"mutations {file_name(path)}")


def _from_mutations(path: str | os.PathLike[str], encoding: str | None) -> Draft:
    source = source_file(path)
    table = read_genes(path, mutated, "protein changes, WT, or NS (not profiled)", encoding)
    return Draft(
        kind=f"mutations {table.name}",
        samples=table.samples,
        items=table.genes,
        values=table.codes == ALTERED,
        unprofiled=table.codes == UNPROFILED,
        files=[source],
        notes=table.notes,
    )


def _from_copy_numbers(path: str | os.PathLike[str], levels: Levels, encoding: str | None) -> Draft:
    source = source_file(path)
    table = read_genes(
        path, levels.code, "a GISTIC level (-2, -1, 0, 1 or 2) or NA (not profiled)", encoding
    )
    refuse_too_large(len(table.samples), 2 * len(table.genes), f"the table {table.name}")
    # The amplification and the deletion of a gene are neighbouring columns.
    values = np.empty((len(table.samples), 2 * len(table.genes)), dtype=np.bool_)
    values[:, 0::2] = table.codes == AMPLIFIED
    values[:, 1::2] = table.codes == DELETED
    return Draft(
        kind=f"copy numbers {table.name}",
        samples=table.samples,
        items=[f"{gene}({sign})" for gene in table.genes for sign in "AD"],
        values=values,
        unprofiled=np.repeat(table.codes == UNPROFILED, 2, axis=1),
        files=[source],
        notes=table.notes,
    )


def _paths(
    given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None,
) -> list[str | os.PathLike[str]]:
    if given is None:
        return []
    return [given] if isinstance(given, str | os.PathLike) else list(given)


def _on_panel(draft: Draft, study: Study, profile: str) -> Draft:
    """Keep the samples that were profiled, and mark genes outside their panels as missing."""
    used = study.panels.get(profile)
    if used is None:
        return draft
    what = "mutations" if profile == "mutations" else "copy numbers"
    mask = np.array([label in used.of for label in draft.samples], dtype=np.bool_)
    draft.keep_samples(mask, f"{what} not profiled with the chosen panel")
    if study.genes is None or not draft.samples:
        return draft
    draft.panels = [used.of[label] for label in draft.samples]
    genes = [item if profile == "mutations" else item[:-3] for item in draft.items]
    missing = study.genes.missing(draft.panels, genes)
    beyond = missing & draft.values
    if beyond.any():
        i, j = np.argwhere(beyond)[0]
        draft.notes.append(
            f"{counted(int(beyond.sum()), 'call')} of {what} in genes that the panel of the sample "
            f"does not list ({draft.items[j]} in {draft.samples[i]}, panel {draft.panels[i]}). "
            "These genes count as altered."
        )
    missing &= ~draft.values
    if draft.unprofiled is not None:
        missing |= draft.unprofiled
    draft.unprofiled = missing
    return draft


def _drop_all_unprofiled(draft: Draft) -> None:
    if draft.unprofiled is not None and draft.items:
        what = draft.kind.split(" '")[0]
        draft.keep_samples(np.asarray(~draft.unprofiled.all(axis=1)), f"not profiled for {what}")


def _joined(first: Draft, second: Draft) -> Draft:
    """Put two tables side by side, with the samples that occur in both tables."""
    common = set(first.samples) & set(second.samples)
    if not common:
        raise InputError(
            f"{first.kind} and {second.kind} have no sample in common (their first samples are "
            f"{_first(first)} and {_first(second)}); check how the ids are written."
        )
    gone = {name for part in first.dropped_samples for name in part.names}
    for draft, other in ((first, second), (second, first)):
        mask = np.array([label in common for label in draft.samples], dtype=np.bool_)
        draft.keep_samples(mask, f"in {draft.kind} but not in {other.kind}")
    row = {label: i for i, label in enumerate(second.samples)}
    order = [row[label] for label in first.samples]
    return Draft(
        kind="",
        samples=first.samples,
        items=[*first.items, *second.items],
        values=np.hstack([first.values, second.values[order]]),
        unprofiled=_side_by_side(first, second, order),
        panels=_both_panels(first, second, order),
        files=first.files + second.files,
        dropped_samples=first.dropped_samples + _without(second.dropped_samples, gone),
        notes=first.notes + second.notes,
    )


def _side_by_side(first: Draft, second: Draft, order: list[int]) -> np.ndarray | None:
    parts = []
    for draft, rows in ((first, slice(None)), (second, order)):
        if draft.unprofiled is None:
            parts.append(np.zeros(draft.values.shape, dtype=np.bool_))
        else:
            parts.append(draft.unprofiled[rows])
    both = np.hstack(parts)
    return both if both.any() else None


def _both_panels(first: Draft, second: Draft, order: list[int]) -> list[str] | None:
    others = None if second.panels is None else [second.panels[i] for i in order]
    if first.panels is None:
        return others
    if others is None:
        return list(first.panels)
    pairs = zip(first.panels, others, strict=True)
    return [one if one == other else f"{one}, {other}" for one, other in pairs]


def _without(parts: list[Dropped], gone: set[str]) -> list[Dropped]:
    """Remove the samples in `gone`, so that the summary lists each dropped sample only once."""
    left = [
        Dropped(part.reason, tuple(name for name in part.names if name not in gone))
        for part in parts
    ]
    return [part for part in left if part.names]


def _first(draft: Draft) -> str:
    return repr(draft.samples[0]) if draft.samples else "none"
