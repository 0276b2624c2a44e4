"""Known kinds of long tables: the names of their columns, and which of their lines count.

The columns of AMRFinderPlus, which were renamed in version 4, are described at
https://github.com/ncbi/amr/wiki/Running-AMRFinderPlus#output-format and those of hAMRonization at
https://github.com/pha4ge/hAMRonization.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sequela.support.errors import InputError
from sequela.support.naming import argument

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PLAIN", "PRESETS", "Preset", "preset_named"]


@dataclass(frozen=True)
class Preset:
    """The columns of one kind of long table, each with the labels that it may have, in lower case.

    Attributes
    ----------
    samples, items, values : tuple of str
        Labels of the columns with ids, items and values, the preferred one first.
    where : mapping
        Maps a column to the values that it must have in lines that count.
    unless : mapping
        Maps a column to the values that it has in lines that do not count.
    variants : tuple of str
        Columns that name a variant of the item. If a line names one, the variant becomes part of
        the label.
    splits : mapping
        Maps a column of items to the character that separates several items in one cell.
    id_from_file : bool
        Whether the name of the file is the sample id if there is no column with ids.
    needs_groups : bool
        Whether items are codes that a code-to-group file must translate.
    """

    samples: tuple[str, ...]
    items: tuple[str, ...]
    values: tuple[str, ...] = ()
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unless: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variants: tuple[str, ...] = ()
    splits: Mapping[str, str] = field(default_factory=dict)
    id_from_file: bool = False
    needs_groups: bool = False


_IDS = (
    *("sample", "sample_id", "sampleid", "id", "patient", "patient_id", "patientid", "subject"),
    *("subject_id", "person_id", "isolate", "isolate_id", "case", "case_id", "name"),
)
_ITEMS = ("item", "event", "gene", "gene_symbol", "mutation", "resistance", "code", "diagnosis")

PLAIN = Preset(_IDS, _ITEMS, values=("value", "present"))

PRESETS = {
    "amrfinderplus": Preset(
        samples=("name",),
        items=("element symbol", "gene symbol"),
        # Virulence and stress genes are in the same file.
        where={"type": ("AMR",), "element type": ("AMR",)},
        # Genes that are cut short inside a contig or by a stop codon are probably not functional.
        unless={"method": ("PARTIALP", "PARTIALX", "PARTIAL", "INTERNAL_STOP")},
        splits={"class": "/", "subclass": "/"},
        id_from_file=True,
    ),
    "hamronization": Preset(
        samples=("input_file_name",),
        items=("gene_symbol",),
        variants=("amino_acid_mutation", "protein_mutation", "nucleotide_mutation"),
        splits={"drug_class": ";", "antimicrobial_agent": ";"},
    ),
    "diagnoses": Preset(
        samples=_IDS,
        items=("code", "icd", "icd10", "icd_code", "icd10_code", "diagnosis_code", "diagnosis"),
        needs_groups=True,
    ),
}


def preset_named(name: str | None) -> Preset:
    """Return the preset with this name; None gives the preset for all other long tables."""
    if name is None:
        return PLAIN
    if name not in PRESETS:
        known = ", ".join(map(repr, PRESETS))
        raise InputError(f"{argument('preset')} is {name!r:.80}; expected one of {known}, or None.")
    return PRESETS[name]
