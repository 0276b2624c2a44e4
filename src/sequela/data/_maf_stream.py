"""Read a MAF line by line, and find which lines count, for which sample and for which gene.

A MAF is a table in the Mutation Annotation Format: each line is a mutation of a gene in a sample.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, TypedDict

from sequela.data._import_summary import counted
from sequela.data._label_checks import check_labels
from sequela.data._limits import COLUMNS, ROWS, refuse_size
from sequela.data._reading import read_strings
from sequela.data._text_files import (
    BLANK,
    SourceFile,
    bare_cell,
    file_name,
    source_file,
    stored_size,
    text_lines,
)
from sequela.data.importing import near
from sequela.support.errors import InputError
from sequela.support.naming import argument, option
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

__all__ = ["Calls", "RuleKeywords", "Rules", "stream_maf"]

_GENE, _SAMPLE, _CLASS = "hugo_symbol", "tumor_sample_barcode", "variant_classification"
_STATUS = "mutation_status"
_PROMOTER = "5'flank"
_SILENT = {
    *("silent", "intron", "3'utr", "5'utr", "3'flank", "5'flank", "igr", "rna", "lincrna"),
    *("splice_region", "targeted_region", "synonymous_variant", "intergenic_variant"),
    *("intron_variant", "upstream_gene_variant", "downstream_gene_variant"),
    *("3_prime_utr_variant", "5_prime_utr_variant", "non_coding_transcript_exon_variant"),
}
_COUNTED = {
    *("missense_mutation", "nonsense_mutation", "nonstop_mutation", "frame_shift_del"),
    *("frame_shift_ins", "in_frame_del", "in_frame_ins", "splice_site", "fusion"),
    *("translation_start_site", "de_novo_start_inframe", "de_novo_start_outofframe"),
    *("start_codon_snp", "start_codon_ins", "start_codon_del", "stop_codon_ins"),
    *("stop_codon_del", "missense_variant", "stop_gained", "stop_lost", "start_lost"),
    *("frameshift_variant", "inframe_deletion", "inframe_insertion", "splice_acceptor_variant"),
    *("splice_donor_variant", "missense", "nonsense", "splice_site_snp", "splice_site_del"),
}
_NO_GENE = {"", "unknown", ".", "na", "-", "none"}
_NO_MUTATION = {"wildtype", "none", "loh"}  # values of Mutation_Status that are not mutations


class RuleKeywords(TypedDict, total=False):
    """The keywords that say which lines of a MAF count; see `Rules`."""

    consequences: Iterable[str] | None
    promoters: Iterable[str]
    germline: bool


@dataclass(frozen=True)
class Rules:
    """Which lines of a MAF count, and how the ids of their samples are cut.

    Parameters
    ----------
    consequences : iterable of str, optional
        The values of Variant_Classification that count, in upper or lower case; "all" counts every
        line. None: all values count, except those of mutations that are silent or outside of genes.
    promoters : iterable of str
        Genes for which 5'Flank counts too.
    germline : bool
        Whether lines with the Mutation_Status Germline count.
    items : iterable of str, optional
        The genes that count; None: all.
    barcode_length : int, optional
        The length to which sample ids are cut; None: they are not cut.

    Examples
    --------
    >>> Rules(consequences=["Silent"]).counts("silent")
    True
    """

    consequences: Collection[str] | None = None
    promoters: Collection[str] = ()
    germline: bool = False
    items: Collection[str] | None = None
    barcode_length: int | None = None

    def __post_init__(self) -> None:
        for name in ("consequences", "promoters", "items"):
            value = getattr(self, name)
            if value is not None or name == "promoters":
                strings = (string.strip() for string in read_strings(value, name))
                if name == "consequences":
                    strings = (string.casefold() for string in strings)
                object.__setattr__(self, name, tuple(strings))
        if self.barcode_length is not None:
            positive_integer("barcode_length", self.barcode_length)

    @property
    def counts_all(self) -> bool:
        """Whether all classes of mutations count, so that their column is not needed."""
        return self.consequences is not None and "all" in self.consequences

    def counts(self, kind: str) -> bool:
        """Tell whether a Variant_Classification counts."""
        folded = bare_cell(kind).casefold()
        if self.consequences is None:
            return folded not in _SILENT
        return self.counts_all or folded in self.consequences


@dataclass
class Calls:
    """The samples in the lines of a MAF, and the genes that are altered in them."""

    samples: list[str]
    genes: list[str]
    # For each line that counts: the position of its sample in `samples`, and of its gene in
    # `genes`.
    where: tuple[array[int], array[int]]
    sequenced: list[str] | None  # samples that the first line of older files of cBioPortal lists
    files: list[SourceFile]
    notes: list[str] = field(default_factory=list)


class _Index(dict[str, int]):
    """Maps a cell to the position of its label; -1 if the cell is left out.

    Each distinct cell is cleaned only once, because a file has millions of lines, but only
    thousands of labels.
    """

    def __init__(self, clean: Callable[[str], str | None]) -> None:
        super().__init__()
        self.labels: dict[str, int] = {}
        self._clean = clean

    def __missing__(self, cell: str) -> int:
        label = self._clean(cell)
        place = -1 if label is None else self.labels.setdefault(label, len(self.labels))
        self[cell] = place
        return place


@dataclass
class _Reading:
    """The state while one or several files are read."""

    rules: Rules
    samples: _Index
    genes: _Index
    who: array[int] = field(default_factory=lambda: array("i"))
    what: array[int] = field(default_factory=lambda: array("i"))
    classes: Counter[str] = field(default_factory=Counter)
    # Three numbers of lines: lines that are left out because Mutation_Status says that they are not
    # mutations, lines that are left out because they are germline mutations, and lines that have
    # fewer cells than the header.
    n_status: int = 0
    n_germline: int = 0
    n_short: int = 0
    sequenced: list[str] | None = None


def stream_maf(
    paths: Sequence[str | os.PathLike[str]], rules: Rules, encoding: str | None = None
) -> Calls:
    """Read the lines of MAF files one by one."""
    length = rules.barcode_length
    if not paths:
        raise InputError("no MAF was given; pass its path.")
    wanted = None if rules.items is None else set(rules.items)

    def clean_sample(cell: str) -> str | None:
        return bare_cell(cell)[:length] or None

    def clean_gene(cell: str) -> str | None:
        label = bare_cell(cell)
        unusable = label.casefold() in _NO_GENE or (wanted is not None and label not in wanted)
        return None if unusable else label

    state = _Reading(rules, _Index(clean_sample), _Index(clean_gene))
    files = []
    for path in paths:
        files.append(source_file(path))
        _stream_one(path, state, encoding)
    calls = Calls(
        list(state.samples.labels),
        list(state.genes.labels),
        (state.who, state.what),
        state.sequenced and [label[:length] for label in state.sequenced],
        files,
    )
    names = file_name(paths[0])
    for labels, noun in ((calls.samples, "sample"), (calls.genes, "gene")):
        calls.notes += check_labels(labels, noun, names)
    calls.notes += _notes(state, names)
    return calls


def _header(
    lines: Iterator[tuple[int, str]], state: _Reading, name: str
) -> tuple[str, dict[str, int], int]:
    """Return the header line, the position of each label, and the number of labels."""
    for number, line in lines:
        if line.startswith("#") or not line.strip(BLANK):
            key, _, rest = line.partition(":")
            if key.casefold() == "#sequenced_samples":
                state.sequenced = [*(state.sequenced or []), *rest.split()]
            continue
        COLUMNS.refuse(line.count("\t") + 1, f"{name}, line {number}")
        labels = [bare_cell(label).casefold() for label in line.split("\t")]
        for label in (_GENE, _SAMPLE, _CLASS):
            if labels.count(label) > 1:
                raise InputError(
                    f"{name}, line {number}: the column {label!r} occurs twice; remove one."
                )
        if len(labels) == 1:
            raise InputError(
                f"{name}, line {number}: found {line!r:.60}, expected labels separated by tabs, "
                "among them Hugo_Symbol and Tumor_Sample_Barcode. Is it a MAF?"
            )
        return line, {label: j for j, label in enumerate(labels)}, len(labels)
    raise InputError(f"{name} is empty; expected a header and one line per mutation.")


def _stream_one(path: str | os.PathLike[str], state: _Reading, encoding: str | None) -> None:
    name = file_name(path)
    rules, needs_class = state.rules, not state.rules.counts_all
    lines = enumerate(text_lines(path, encoding), 1)
    header, position, width = _header(lines, state, name)
    _check_columns(position, name, needs_class=needs_class)
    gene_at, sample_at = position[_GENE], position[_SAMPLE]
    class_at = position.get(_CLASS, gene_at)
    status_at = position.get(_STATUS)
    last = max(gene_at, sample_at, class_at, status_at or 0)
    samples, genes = state.samples, state.genes
    counts = cache(rules.counts)  # there are millions of lines, but few classes
    classes: dict[str, int] = {}
    short = 0  # number of the last line so far that has too few cells
    number = 0
    for number, line in _bounded(lines, header, path):
        # A file that was joined from several files has comments and headers also in the middle.
        if line[:1] == "#" or (_may_be_header(line) and _is_header(line, header, number, name)):
            continue
        cells = line.split("\t", last + 1)
        if len(cells) <= last or line.count("\t") != width - 1:
            if not line.strip(BLANK):
                continue
            _check_width(line, number, width, last, name)
            short = number
            state.n_short += 1
        sample = samples[cells[sample_at]]
        if sample < 0:
            raise InputError(
                f"{name}, line {number}: no Tumor_Sample_Barcode. Correct or remove the line."
            )
        kind = cells[class_at] if needs_class else ""
        classes[kind] = classes.get(kind, 0) + 1
        if (needs_class and not counts(kind)) and not (
            rules.promoters
            and bare_cell(kind).casefold() == _PROMOTER
            and bare_cell(cells[gene_at]) in rules.promoters
        ):
            continue
        if status_at is not None and not _status_counts(cells[status_at], state):
            continue
        gene = genes[cells[gene_at]]
        if gene >= 0:
            state.who.append(sample)
            state.what.append(gene)
    if short and short == number:
        raise InputError(
            f"{name}, line {number}: the last line has too few cells; the file is incomplete. Copy "
            "it again."
        )
    state.classes.update(classes)


def _bounded(
    lines: Iterator[tuple[int, str]], header: str, path: str | os.PathLike[str]
) -> Iterator[tuple[int, str]]:
    """Yield the lines after the header; raise an error if the file has too many lines."""
    name, most = file_name(path), ROWS.most
    first = list(islice(lines, 20))
    refuse_size(stored_size(path), [header, *(line for _, line in first)], name)
    for count, numbered in enumerate(chain(first, lines), 1):
        if count > most and numbered[1].strip(BLANK):
            ROWS.refuse(count, name)
        yield numbered


def _may_be_header(line: str) -> bool:
    """Tell whether a line could be a header.

    The test is fast, because there are millions of lines.
    """
    return (
        "Tumor_Sample_Barcode" in line
        or "tumor_sample_barcode" in line
        or "TUMOR_SAMPLE_BARCODE" in line
    )


def _is_header(line: str, header: str, number: int, name: str) -> bool:
    """Tell whether a line repeats the header; refuse a header with other columns."""
    labels, known = (
        [bare_cell(label).casefold() for label in text.split("\t")] for text in (line, header)
    )
    if labels == known:
        return True
    if _GENE in labels and _SAMPLE in labels:
        raise InputError(
            f"{name}, line {number}: a second header, with other columns than the first. The file "
            "was probably joined from several files; give these files separately."
        )
    return False


def _check_columns(position: dict[str, int], name: str, *, needs_class: bool) -> None:
    for label in (_GENE, _SAMPLE, _CLASS):
        if label not in position and (label != _CLASS or needs_class):
            every = option("consequences", ["all"])
            hint = ""
            if label == _CLASS:
                hint = (
                    " This column says which mutations count. To count all mutations without this "
                    f"column, use {every}."
                )
            raise InputError(
                f"{name} has no column {label.title()} (its first columns: "
                f"{', '.join(list(position)[:6])}). Is it a MAF?{hint}"
            )


def _status_counts(cell: str, state: _Reading) -> bool:
    """Return whether a line counts according to its Mutation_Status.

    The numbers of lines that are left out are kept in `state`.
    """
    status = bare_cell(cell).casefold()
    if status in _NO_MUTATION:
        state.n_status += 1
        return False
    if status == "germline" and not state.rules.germline:
        state.n_germline += 1
        return False
    return True


def _check_width(line: str, number: int, width: int, last: int, name: str) -> None:
    found = line.count("\t") + 1
    if found > width or found <= last:
        raise InputError(
            f"{name}, line {number}: found {found} cells, expected {width} as in the header. "
            "Correct the line; the file may be incomplete."
        )


def _notes(state: _Reading, name: str) -> list[str]:
    notes = []
    chosen = state.rules.consequences
    folded: Counter[str] = Counter()
    for label, count in state.classes.items():
        folded[bare_cell(label)] += count
    total = sum(folded.values())
    if chosen is None:
        silent = sum(n for label, n in folded.items() if label.casefold() in _SILENT)
        notes.append(f"{counted(total, 'line')}, {silent} of them silent or outside of genes.")
        odd = {
            label: n for label, n in folded.items() if label.casefold() not in _SILENT | _COUNTED
        }
        if odd:
            shown = ", ".join(f"{label!r} ({n})" for label, n in list(odd.items())[:5])
            notes.append(
                f"Variant_Classification has unusual values: {shown}. Lines with these "
                "values count. To choose which "
                f"values count, use {option('consequences')}."
            )
    elif "all" not in chosen:
        present = {label.casefold() for label in folded}
        absent = sorted(set(chosen) - present)
        if total and not present & set(chosen):
            raise InputError(
                f"{name}: no line has a Variant_Classification among "
                f"{argument('consequences')} ({near(absent[0], sorted(present))}). Found: "
                f"{', '.join(sorted(folded)[:8])}."
            )
        if absent:
            notes.append(f"no line has the Variant_Classification {', '.join(absent[:5])}.")
    if state.n_status:
        notes.append(
            f"{counted(state.n_status, 'line')} left out: not a mutation according to "
            "Mutation_Status."
        )
    if state.n_germline:
        notes.append(
            f"{counted(state.n_germline, 'germline mutation')} left out; "
            f"{option('germline', True)} counts them."
        )
    if state.n_short:
        have = "has" if state.n_short == 1 else "have"
        notes.append(f"{counted(state.n_short, 'line')} {have} fewer cells than the header.")
    return notes
