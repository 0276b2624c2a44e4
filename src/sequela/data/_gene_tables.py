"""Read tables of genes and samples from cBioPortal, in all their layouts.

- downloads of the results view: the studies are in the first line, the sample ids in the second
  line, and each further line is a gene;
- the same tables transposed: the first columns are STUDY_ID and SAMPLE_ID, and each further column
  is a gene;
- data_cna.txt of a study folder, and tables of GISTIC: the first columns describe the gene, and
  each further column is a sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sequela.data._limits import COLUMNS
from sequela.data._text_files import (
    BLANK,
    CellCodes,
    bare_cell,
    check_labels,
    composed_hint,
    file_name,
    text_lines,
)
from sequela.support.errors import InputError
from sequela.support.naming import either
from sequela.support.validation import is_number

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

__all__ = [
    "ALTERED",
    "AMPLIFIED",
    "DELETED",
    "UNPROFILED",
    "GeneTable",
    "Levels",
    "mutated",
    "read_genes",
]

NEUTRAL, ALTERED, UNPROFILED, UNFIT = 0, 1, 4, 9
AMPLIFIED, DELETED = 1, 2
_NOT_PROFILED = {"ns", "na", "np", "nan", "n/a", "not profiled", "not sequenced", "not_profiled"}
_SYMBOL = ("hugo_symbol", "gene symbol", "gene_symbol", "gene", "common", "symbol")
_ANNOTATION = {*_SYMBOL, "entrez_gene_id", "locus id", "cytoband", "gene_id", "gene id"}
_HEADINGS = {"study_id", "sample_id", *_ANNOTATION}
_LEVELS = {-2.0, -1.5, -1.0, 0.0, 1.0, 2.0}


@dataclass
class GeneTable:
    """A table with the codes of its cells (samples x genes), and notes on unusual labels."""

    name: str
    samples: list[str]
    genes: list[str]
    codes: npt.NDArray[np.uint8]
    notes: list[str]


def mutated(cell: str) -> int:
    """Return the code of a cell of a table of mutations.

    The cell contains protein changes, WT (wild type), or a mark such as NS (not profiled).
    """
    folded = cell.casefold()
    if folded in _NOT_PROFILED:
        return UNPROFILED
    if folded == "wt":
        return NEUTRAL
    # Numbers, true and false belong to another kind of table, in which '0' is not a mutation.
    if not cell or folded in ("true", "false", "yes", "no") or _number(cell) is not None:
        return UNFIT
    return ALTERED


@dataclass(frozen=True)
class Levels:
    """The lowest GISTIC level of an amplified gene, and the highest level of a deleted gene."""

    amplification: float = 2
    deletion: float = -2

    def __post_init__(self) -> None:
        for name in ("amplification", "deletion"):
            value = getattr(self, name)
            if not is_number(value):
                raise InputError(
                    f"{name} must be a GISTIC level from -2 to 2; found {value!r:.80}."
                )
        if not -2 <= self.deletion < 0 < self.amplification <= 2:
            raise InputError(
                "amplification must be above 0 and at most 2, deletion below 0 and at least -2; "
                f"found {self.amplification!r} and {self.deletion!r}."
            )

    def code(self, cell: str) -> int:
        """Return the code of a cell of a table of GISTIC levels."""
        if not cell or cell.casefold() in _NOT_PROFILED:
            return UNPROFILED
        level = _number(cell)
        if level not in _LEVELS:
            return UNFIT
        if level >= self.amplification:
            return AMPLIFIED
        return DELETED if level <= self.deletion else NEUTRAL


def _number(cell: str) -> float | None:
    try:
        return float(cell.replace("_", "?"))
    except ValueError:
        return None


def read_genes(
    path: str | os.PathLike[str], code: Callable[[str], int], expected: str, encoding: str | None
) -> GeneTable:
    """Read one table.

    `code` returns the code of a cell. `expected` describes valid cells in error messages.
    """
    name = file_name(path)
    lines = ((n, line) for n, line in enumerate(text_lines(path, encoding), 1) if line.strip(BLANK))
    lines = ((n, line) for n, line in lines if not line.startswith("#"))
    header, skipped, label_at, genes_in_rows = _layout(lines, name)
    codes = CellCodes(lambda cell: code(bare_cell(cell)))
    rows: list[bytes] = []
    labels: list[str] = []
    where: dict[str, int] = {}
    kind = "gene" if genes_in_rows else "sample"
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(header) + skipped:
            raise InputError(
                f"{name}, line {number}: found {len(cells)} cells, expected "
                f"{len(header) + skipped} as in the header. The file may be incomplete."
            )
        label = bare_cell(cells[label_at])
        if label in where:
            raise InputError(
                f"{name}: the {kind} {label!r:.80} occurs twice, in lines {where[label]} and "
                f"{number}{composed_hint(label)}. Rename or remove one of them."
            )
        if not label:
            raise InputError(f"{name}, line {number}: the {kind} has no name. Give it one.")
        if label.casefold() in _HEADINGS:
            # If a second header were read as a row, its sample ids would count as protein changes.
            raise InputError(
                f"{name}, line {number}: a second header ({label!r:.80}); the file was joined from "
                "several files. Read each of these files alone, or remove the line."
            )
        where[label] = number
        row = bytes(map(codes.__getitem__, cells[skipped:]))
        if UNFIT in row:
            j = row.index(UNFIT)
            raise InputError(
                f"{name}, line {number} ({kind} {label!r:.80}), column {header[j]!r:.80}: found "
                f"{bare_cell(cells[skipped + j])!r:.80}, expected {expected}."
            )
        rows.append(row)
        labels.append(label)
    if not rows:
        raise InputError(f"{name} has no lines below the header; the file is incomplete.")
    table = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), len(header))
    notes = check_labels(labels, kind, name)
    if genes_in_rows:
        return GeneTable(name, header, labels, np.ascontiguousarray(table.T), notes)
    return GeneTable(name, labels, header, table, notes)


def _layout(lines: Iterator[tuple[int, str]], name: str) -> tuple[list[str], int, int, bool]:
    """Return the layout of a table, read from its first lines.

    The layout consists of the column labels, the number of cells before them, the position of the
    label in each row, and whether genes are in rows.
    """
    number, line = next(lines, (0, ""))
    if not number:
        raise InputError(f"{name} is empty; expected a table of genes and samples.")
    COLUMNS.refuse(line.count("\t") + 1, f"{name}, line {number}")
    cells = [bare_cell(cell) for cell in line.split("\t")]
    folded = [cell.casefold() for cell in cells]
    if folded[0] == "study_id" and len(cells) > 1:
        if folded[1] == "sample_id":
            skipped, label_at, genes_in_rows = 2, 1, False
        else:
            studies = len(cells)
            number, line = next(lines, (number + 1, ""))
            cells = [bare_cell(cell) for cell in line.split("\t")]
            if cells[0].casefold() != "sample_id" or len(cells) != studies:
                raise InputError(
                    f"{name}, line {number}: found {line!r:.60}, expected SAMPLE_ID and "
                    f"{studies - 1} sample ids. The file may be incomplete."
                )
            skipped, label_at, genes_in_rows = 1, 0, True
    else:
        skipped = next((j for j, x in enumerate(folded) if x not in _ANNOTATION), len(cells))
        symbols = [j for x in _SYMBOL for j in range(skipped) if folded[j] == x]
        if not symbols:
            raise InputError(
                f"{name}, line {number}: found {line!r:.60}, expected STUDY_ID (a download of "
                "cBioPortal's results view) or Hugo_Symbol (data_cna.txt of a study), separated "
                f"by tabs. For a table of 0 and 1, use {either('read_table', '--table')}."
            )
        label_at, genes_in_rows = symbols[0], True
    header = cells[skipped:]
    if not header:
        raise InputError(
            f"{name}, line {number}: there are no {'samples' if genes_in_rows else 'genes'} after "
            "the first columns; the file is incomplete."
        )
    check_labels(header, "sample" if genes_in_rows else "gene", f"{name}, line {number}")
    return header, skipped, label_at, genes_in_rows
