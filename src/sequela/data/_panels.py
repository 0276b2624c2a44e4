"""Read gene panels, which say which genes were examined in which sample.

In studies of cBioPortal (https://docs.cbioportal.org/file-formats/#gene-panel-data) the file
data_gene_panel_matrix.txt says which panel each sample has. One further file per panel lists the
genes of the panel.

In GENIE releases the first file is called data_gene_matrix.txt, and the lists of genes are in a
folder gene_panels. A third file, genomic_information.txt, is a table of the examined regions. It
says to which panel (SEQ_ASSAY_ID) and gene each region belongs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sequela.data._text_files import SourceFile, bare_cell, file_name, source_file, text_lines
from sequela.data.importing import near
from sequela.support.errors import InputError
from sequela.support.naming import option

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

__all__ = ["MATRICES", "PanelGenes", "SamplePanels", "read_matrix", "read_panel_genes"]

MATRICES = ("data_gene_panel_matrix.txt", "data_gene_matrix.txt")
_REGIONS = "genomic_information.txt"
# Names of assays that examine all genes.
_EVERYTHING = {"wes", "wxs", "wgs", "exome", "genome", "whole_exome", "whole_genome"}
_NONE = {"", "na", "n/a", "nan", "none"}


@dataclass(frozen=True)
class SamplePanels:
    """The panel of each sample, and the lines of the file that name the panels."""

    name: str
    of: dict[str, str]
    lines: dict[str, int]  # for each panel, the number of the first line that names it


@dataclass
class PanelGenes:
    """The genes of each panel."""

    genes: dict[str, frozenset[str]] = field(default_factory=dict)
    files: list[SourceFile] = field(default_factory=list)

    def require(self, panels: SamplePanels) -> None:
        """Refuse panels that are not defined, because the genes that they cover are unknown."""
        for panel, line in panels.lines.items():
            if panel not in self.genes and panel.casefold() not in _EVERYTHING:
                known = near(panel, sorted(self.genes)) if self.genes else repr(panel)
                raise InputError(
                    f"{panels.name}, line {line}: the panel {known} is not defined. Put its "
                    f"list of genes, data_gene_panel_{panel}.txt, into the folder of the study, or "
                    f"name the folder that has it with {option('panels')}."
                )

    def missing(self, panels: Sequence[str], genes: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return a table (samples x genes) that is True if the panel of a sample lacks the gene."""
        rows: dict[str, npt.NDArray[np.bool_]] = {}
        for panel in set(panels):
            # `require` has refused panels without a list, except assays that examine all genes.
            if panel not in self.genes:
                rows[panel] = np.zeros(len(genes), dtype=np.bool_)
            else:
                covered = self.genes[panel]
                rows[panel] = np.array([gene not in covered for gene in genes], dtype=np.bool_)
        table = np.zeros((len(panels), len(genes)), dtype=np.bool_)
        for i, panel in enumerate(panels):
            table[i] = rows[panel]
        return table


def read_matrix(path: Path, header: list[str], profile: str) -> SamplePanels:
    """Read the panel of each sample. `profile` is the label of the column with the panels."""
    name = file_name(path)
    who, what = header.index("sample_id"), header.index(profile)
    of: dict[str, str] = {}
    lines: dict[str, int] = {}
    labels: list[str] | None = None
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [bare_cell(cell) for cell in line.split("\t")]
        if labels is None:
            labels = cells
            continue
        if len(cells) <= who or not cells[who]:
            raise InputError(f"{name}, line {number}: no SAMPLE_ID. Correct or remove the line.")
        panel = cells[what] if len(cells) > what else ""
        if panel.casefold() in _NONE:
            continue
        if of.get(cells[who], panel) != panel:
            raise InputError(
                f"{name}, line {number}: the sample {cells[who]!r:.80} has the panel {panel!r:.80} "
                f"here, and {of[cells[who]]!r:.80} in an earlier line. Keep one of these lines."
            )
        of[cells[who]] = panel
        lines.setdefault(panel, number)
    return SamplePanels(name, of, lines)


def read_panel_genes(places: Iterable[str | os.PathLike[str]]) -> PanelGenes:
    """Read the genes of panels from folders and files (lists of genes, or regions of GENIE)."""
    found = PanelGenes()
    for path in _files(places):
        found.files.append(source_file(path))
        if _is_regions(path):
            _read_regions(path, found)
        else:
            _read_list(path, found)
    return found


def _files(places: Iterable[str | os.PathLike[str]]) -> list[Path]:
    files: list[Path] = []
    for given in places:
        place = Path(given)
        if not place.is_dir():
            files.append(place)
            continue
        for folder in (place, place / "gene_panels"):
            if folder.is_dir():
                files += sorted(
                    path
                    for path in folder.glob("data_gene_panel_*.txt*")
                    if not path.name.startswith(MATRICES)
                )
        if (place / _REGIONS).is_file():
            files.append(place / _REGIONS)
    return list(dict.fromkeys(files))


def _add(found: PanelGenes, panel: str, genes: frozenset[str], where: str) -> None:
    known = found.genes.get(panel)
    if known is not None and known != genes:
        odd = sorted(known ^ genes)[0]
        raise InputError(
            f"{where}: the panel {panel!r:.80} is also defined with other genes (the lists "
            f"differ in {odd!r:.80}). Remove one of the two definitions."
        )
    found.genes[panel] = genes


def _read_list(path: Path, found: PanelGenes) -> None:
    """Read one panel in the format of cBioPortal: stable_id, description and gene_list."""
    name = file_name(path)
    values: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        key, mark, rest = line.partition(":")
        if not mark:
            raise InputError(
                f"{name}, line {number}: found {line!r:.60}, expected 'stable_id: ...', "
                "'description: ...' or 'gene_list: ...'."
            )
        values[key.strip().casefold()] = (number, rest.strip())
    for key in ("stable_id", "gene_list"):
        if not values.get(key, (0, ""))[1]:
            raise InputError(f"{name} has no line '{key}:'; it does not define a panel.")
    number, text = values["gene_list"]
    genes = frozenset(bare_cell(gene) for gene in text.split("\t") if bare_cell(gene))
    if all(gene.isdigit() for gene in genes):
        raise InputError(
            f"{name}, line {number}: the genes are Entrez ids ({min(genes)}, ...); expected gene "
            "symbols, as in the mutations. Translate the ids into gene symbols."
        )
    _add(found, values["stable_id"][1], genes, name)


def _is_regions(path: Path) -> bool:
    first = next((line for line in text_lines(path) if line.strip()), "")
    labels = {bare_cell(cell).casefold() for cell in first.split("\t")}
    return {"hugo_symbol", "seq_assay_id"} <= labels


def _read_regions(path: Path, found: PanelGenes) -> None:
    """Read the regions of all panels of GENIE.

    A region does not count if the column includeInPanel says that the panel does not report it.
    """
    name = file_name(path)
    labels: list[str] = []
    panels: dict[str, set[str]] = {}
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip():
            continue
        cells = line.split("\t")
        if not labels:
            labels = [bare_cell(cell).casefold() for cell in cells]
            gene_at, panel_at = labels.index("hugo_symbol"), labels.index("seq_assay_id")
            used_at = labels.index("includeinpanel") if "includeinpanel" in labels else None
            continue
        if len(cells) != len(labels):
            raise InputError(
                f"{name}, line {number}: found {len(cells)} cells, expected {len(labels)} as in "
                "the header. The file may be incomplete."
            )
        panel, gene = bare_cell(cells[panel_at]), bare_cell(cells[gene_at])
        if not panel:
            raise InputError(f"{name}, line {number}: no SEQ_ASSAY_ID. Correct the line.")
        genes = panels.setdefault(panel, set())
        if used_at is not None and bare_cell(cells[used_at]).casefold() in ("false", "0", "no"):
            continue
        if gene.casefold() not in _NONE:
            genes.add(gene)
    for panel, genes in panels.items():
        # If there is a list of the genes of a panel, it is used instead of the regions.
        if panel not in found.genes:
            found.genes[panel] = frozenset(genes)
