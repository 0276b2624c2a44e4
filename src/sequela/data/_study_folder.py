"""Read the folder of a study of cBioPortal: its data files, and which samples were profiled.

A MAF does not name samples without mutations, so the sequenced samples are read from the lists in
the folder.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sequela.data._panels import (
    MATRICES,
    PanelGenes,
    SamplePanels,
    read_matrix,
    read_panel_genes,
)
from sequela.data._text_files import BLANK, SourceFile, file_name, source_file, text_lines
from sequela.support.errors import InputError
from sequela.support.naming import argument, option

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Study", "look_into"]

_MUTATIONS = ("data_mutations.txt", "data_mutations_extended.txt", "data_mutations_mskcc.txt")
_COPY_NUMBERS = ("data_cna.txt", "data_CNA.txt")
_SUFFIXES = ("", ".gz", ".bz2", ".xz", ".zip")


@dataclass
class Study:
    """The files of a study, and the samples that were sequenced."""

    mutations: Path | None
    cna: Path | None
    sequenced: list[str] | None = None
    certain: bool = False  # False if some samples in `sequenced` may not have been sequenced
    panels: dict[str, SamplePanels] = field(default_factory=dict)  # for "mutations" and "cna"
    genes: PanelGenes | None = None  # None if all samples have one panel, whose genes were not read
    files: list[SourceFile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def look_into(
    folder: str | os.PathLike[str],
    panel: str | None = None,
    panels: Sequence[str | os.PathLike[str]] = (),
) -> Study:
    """Find the files of a study, its sequenced samples and its gene panels.

    If `panel` is given, only samples with this gene panel are used. `panels` are additional folders
    or files that define gene panels.
    """
    if not isinstance(folder, str | os.PathLike):
        raise InputError(f"folder must be a path; found {folder!r:.80}.")
    name = file_name(folder)
    root = Path(folder)
    try:
        there = {entry.name for entry in root.iterdir()}
    except NotADirectoryError:
        raise InputError(
            f"{argument('folder')} {name} is a file; give it as {option('mutations')} or "
            f"{option('cna')}, or give its folder."
        ) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(
            f"{argument('folder')} {name} cannot be read ({why}); check the name."
        ) from None
    study = Study(_first(root, there, _MUTATIONS), _first(root, there, _COPY_NUMBERS))
    if study.mutations is None and study.cna is None:
        raise InputError(
            f"{name} has neither data_mutations.txt nor data_cna.txt (it has "
            f"{', '.join(sorted(there)[:5]) or 'nothing'}). Give the files as "
            f"{option('mutations')} and {option('cna')}."
        )
    _read_panels(study, root, panel, panels)
    if study.mutations is not None:
        _find_sequenced(study, root)
    return study


def _first(root: Path, there: set[str], names: tuple[str, ...]) -> Path | None:
    return next((root / (n + s) for n in names for s in _SUFFIXES if n + s in there), None)


def _find_sequenced(study: Study, root: Path) -> None:
    """Read the samples that were sequenced. Of three possible files, use the first that exists."""
    lists = (
        (root / "case_lists" / "cases_sequenced.txt", _case_list),
        (root / "case_lists" / "cases_all.txt", _case_list),
        (root / "data_clinical_sample.txt", _clinical_samples),
    )
    for path, read in lists:
        if path.is_file():
            study.files.append(source_file(path))
            ids = list(dict.fromkeys(read(path)))
            if not ids:
                raise InputError(f"{file_name(path)} names no samples; correct or delete it.")
            study.sequenced = ids
            study.certain = path.name == "cases_sequenced.txt"
            doubt = "" if study.certain else "; some of them may not have been sequenced"
            study.notes.append(
                f"the sequenced samples are the {len(ids)} samples in {path.name}{doubt}."
            )
            return


def _case_list(path: Path) -> list[str]:
    for line in text_lines(path):
        key, _, rest = line.partition(":")
        if key.strip() == "case_list_ids":
            return rest.split()
    raise InputError(f"{file_name(path)} has no line 'case_list_ids:'; correct or delete it.")


def _clinical_samples(path: Path) -> list[str]:
    header, rows = _table(path)
    column = header.index("sample_id")
    return [row[column] for row in rows if len(row) > column and row[column]]


def _table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the labels, in lower case, and the rows of a table with a column SAMPLE_ID."""
    lines = (line for line in text_lines(path) if line.strip(BLANK) and not line.startswith("#"))
    header, *rows = [[cell.strip(BLANK) for cell in line.split("\t")] for line in lines] or [[]]
    labels = [cell.casefold() for cell in header]
    if "sample_id" not in labels:
        raise InputError(f"{file_name(path)} has no column SAMPLE_ID; correct or delete it.")
    return labels, rows


def _read_panels(
    study: Study, root: Path, panel: str | None, panels: Sequence[str | os.PathLike[str]]
) -> None:
    """Find out the panel of each sample, and which genes the panels cover."""
    path = next((root / name for name in MATRICES if (root / name).is_file()), None)
    assays = _assays(root) if path is None else None
    if path is None and assays is None:
        if panel is not None or panels:
            asked = f"panel={panel!r:.80}" if panel is not None else "panels="
            raise InputError(
                f"{asked} was given, but there is no {file_name(root / MATRICES[0])}, which says "
                f"which panel was used for each sample. Leave {asked} out."
            )
        return
    header = ["sample_id", "mutations"]
    if path is not None:
        study.files.append(source_file(path))
        header, _ = _table(path)
    for profile, data in (("mutations", study.mutations), ("cna", study.cna)):
        if data is None or profile not in header:
            continue
        used = read_matrix(path, header, profile) if path is not None else assays
        assert used is not None  # noqa: S101 - one of the two is there
        if panel is not None:
            used = _one_panel(used, panel, profile)
        study.panels[profile] = used
    _read_genes(study, root, panels)


def _read_genes(study: Study, root: Path, panels: Sequence[str | os.PathLike[str]]) -> None:
    """Read the genes of the panels, if there are several panels or if definitions were given."""
    if panels or any(len(used.lines) > 1 for used in study.panels.values()):
        study.genes = read_panel_genes([root, *panels])
        study.files += study.genes.files
        if not study.genes.genes:
            _refuse_undefined(study)
        for used in study.panels.values():
            study.genes.require(used)


def _assays(root: Path) -> SamplePanels | None:
    """Return the panel of each sample of a GENIE release; None for other studies.

    In a GENIE release, panels are called assays, and the table of clinical data names them.
    """
    path = root / "data_clinical_sample.txt"
    if not path.is_file() or not (root / "genomic_information.txt").is_file():
        return None
    header, _ = _table(path)
    return read_matrix(path, header, "seq_assay_id") if "seq_assay_id" in header else None


def _one_panel(used: SamplePanels, panel: str, profile: str) -> SamplePanels:
    if panel not in used.lines:
        raise InputError(
            f"{argument('panel')} {panel!r:.80} is not among the panels of {profile}: "
            f"{', '.join(used.lines)}."
        )
    chosen = {who: what for who, what in used.of.items() if what == panel}
    return SamplePanels(used.name, chosen, {panel: used.lines[panel]})


def _refuse_undefined(study: Study) -> None:
    """Raise an error because no panel is defined; suggest the most frequent one."""
    profile, used = next((p, u) for p, u in study.panels.items() if len(u.lines) > 1)
    counts = Counter(used.of.values())
    shown = ", ".join(f"{name} ({n} samples)" for name, n in counts.most_common(4))
    most = counts.most_common(1)[0][0]
    raise InputError(
        f"{used.name}: the {profile} of this study were profiled with {len(counts)} panels of "
        f"genes: {shown}. The folder does not define them: add the files data_gene_panel_NAME.txt "
        f"with their genes (or name the folder of these files with {option('panels')}), or choose "
        f"one panel, as in {option('panel', most)}."
    )
