"""The summary of an import: what was read, dropped and merged, and notes for the user."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sequela.data._text_files import SourceFile
    from sequela.data.dataset import Dataset

__all__ = [
    "Dropped",
    "ImportSummary",
    "ManyItems",
    "MissingCells",
    "counted",
    "many_items",
    "missing_cells",
]

_NAMED = 5  # number of names that the text lists; `to_dict` returns all names
# The smallest number of items that counts as very many. Samples with fewer items are evaluated
# fast, and they hardly change the estimated times of other samples.
_FEWEST_MANY = 15


@dataclass(frozen=True, slots=True)
class Dropped:
    """Samples or items that were left out for one reason."""

    reason: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ManyItems:
    """A sample with far more items than the others."""

    sample: str
    size: int


@dataclass(frozen=True, slots=True)
class MissingCells:
    """The cells that are missing for one reason, and how many samples and items have such cells."""

    reason: str
    cells: int
    samples: int
    items: int


@dataclass(frozen=True)
class ImportSummary:
    """The summary of an import: the files, and what was read, dropped, merged and kept.

    Attributes
    ----------
    kind : str
        The kind of file, such as "the table 'samples.csv'".
    files : tuple of SourceFile
        Path, size in bytes and SHA-256 of every file read.
    samples_read, items_read, samples_kept, items_kept : int
        Numbers of samples and items before and after merging and dropping.
    dropped_samples, dropped_items : tuple of Dropped
        Samples and items that were left out, by reason.
    merged : mapping
        Maps each new name to the old names that were found in the file.
    many_items : tuple of ManyItems
        Samples with very many items, the largest first. They have at least 15 items, and their
        number of items is more than five robust standard deviations above the median. Such samples
        appear to be observed late, even if they were not.
    notes : tuple of str
        Other notes for the user.
    missing : tuple of MissingCells
        Numbers of missing cells, by reason.

    Examples
    --------
    >>> from sequela.data.importing import Draft, Selection, finish
    >>> draft = Draft("a table", ["x", "y"], ["a", "b"], np.array([[1, 0], [1, 0]], dtype=bool))
    >>> print(finish(draft, Selection(at_least=1)).summary.text())
    Read a table.
    Samples: 2 read, 2 kept.
    Items: 2 read, 1 kept.
      1 item dropped, in fewer than 1 sample: b
    Items per sample: median 1, at most 1.
    Most frequent: a 1.000
    Note: 1 item occurs in every sample (a); the order of such an item cannot be learned.
    """

    kind: str
    files: tuple[SourceFile, ...]
    samples_read: int
    items_read: int
    samples_kept: int
    items_kept: int
    dropped_samples: tuple[Dropped, ...]
    dropped_items: tuple[Dropped, ...]
    merged: Mapping[str, tuple[str, ...]]
    many_items: tuple[ManyItems, ...]
    notes: tuple[str, ...]
    median_size: float
    largest_size: int
    empty_samples: int
    most_frequent: tuple[tuple[str, float], ...]
    missing: tuple[MissingCells, ...] = ()

    def text(self) -> str:
        """Return the summary as text, in several lines."""
        lines = [f"Read {self.kind}."]
        lines.append(f"Samples: {self.samples_read} read, {self.samples_kept} kept.")
        lines += [f"  {_sentence(part, 'sample')}" for part in self.dropped_samples]
        lines.append(f"Items: {self.items_read} read, {self.items_kept} kept.")
        if self.merged:
            lines.append(f"  {self._merged_text()}")
        lines += [f"  {_sentence(part, 'item')}" for part in self.dropped_items]
        empty = ""
        if self.empty_samples:
            have = "have" if self.empty_samples > 1 else "has"
            empty = f"; {counted(self.empty_samples, 'sample')} {have} none"
        lines.append(
            f"Items per sample: median {self.median_size:g}, at most {self.largest_size}{empty}."
        )
        lines += [f"Missing: {_missing_text(part)}." for part in self.missing]
        most = ", ".join(f"{name} {share:.3f}" for name, share in self.most_frequent)
        lines.append(f"Most frequent: {most}")
        if self.many_items:
            lines.append(f"Note: {self._many_items_text()}")
        lines += [f"Note: {note}" for note in self.notes]
        lines += [f"File: {file.path} (SHA-256 {file.sha256})" for file in self.files]
        return "\n".join(lines)

    def notices(self) -> tuple[str, ...]:
        """Return short texts that an analysis of these data should show to the user.

        They say what was dropped, merged or missing, and which samples have very many items. They
        also contain the notes, for example which column was read as sample ids. The result is empty
        if there is nothing of this kind.

        Examples
        --------
        >>> from sequela.data.importing import Draft, Selection, finish
        >>> draft = Draft("a table", ["x", "y"], ["a", "b"], np.array([[1, 0], [0, 0]], dtype=bool))
        >>> finish(draft, Selection(at_least=1)).summary.notices()
        ('1 item dropped, in fewer than 1 sample: b',)
        """
        found = [_sentence(part, "sample") for part in self.dropped_samples]
        if self.merged:
            found.append(self._merged_text())
        found += [_sentence(part, "item") for part in self.dropped_items]
        found += [f"missing: {_missing_text(part)}" for part in self.missing]
        if self.many_items:
            found.append(self._many_items_text())
        return (*found, *self.notes)

    def _merged_text(self) -> str:
        count = sum(len(old) for old in self.merged.values())
        return (
            f"{counted(count, 'item')} merged into {len(self.merged)}: {_some(list(self.merged))}"
        )

    def _many_items_text(self) -> str:
        shown = _some([f"{many.sample} ({many.size})" for many in self.many_items])
        have = "have" if len(self.many_items) > 1 else "has"
        return (
            f"{counted(len(self.many_items), 'sample')} {have} very many items: {shown}. They "
            "appear to be observed late. This may be wrong if they are hypermutated."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain values for JSON."""
        found = asdict(self)
        return {key: _plain(value) for key, value in found.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(inner) for inner in value]
    return value


def counted(count: int, noun: str) -> str:
    """Return a number and its noun. The noun is in the plural unless the number is 1.

    Examples
    --------
    >>> counted(1, "sample"), counted(0, "sample")
    ('1 sample', '0 samples')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _sentence(part: Dropped, noun: str) -> str:
    return f"{counted(len(part.names), noun)} dropped, {part.reason}: {_some(list(part.names))}"


def many_items(data: Dataset) -> tuple[ManyItems, ...]:
    """Return the samples with very many items, the largest first; see `ImportSummary`."""
    sizes = data.set_sizes
    middle = float(np.median(sizes))
    # The median absolute deviation, scaled to the standard deviation of a normal distribution.
    spread = 1.4826 * float(np.median(np.abs(sizes - middle)))
    far = np.flatnonzero((sizes > middle + 5 * spread) & (sizes >= _FEWEST_MANY))
    order = far[np.argsort(-sizes[far], kind="stable")]
    return tuple(ManyItems(data.samples[i], int(sizes[i])) for i in order)


def _missing_text(part: MissingCells) -> str:
    return (
        f"{counted(part.cells, 'cell')} of {counted(part.items, 'item')} and "
        f"{counted(part.samples, 'sample')}, {part.reason}"
    )


def missing_cells(data: Dataset, panels: Sequence[str] | None) -> tuple[MissingCells, ...]:
    """Count the missing cells by reason; the most frequent reason comes first.

    If `panels` names the panel of each sample, the samples of each panel are counted separately.
    """
    if data.missing is None:
        return ()
    reasons = ["not profiled"] * data.n_samples
    if panels is not None:
        reasons = [f"not covered by the panel {panel}" for panel in panels]
    found = []
    for reason in dict.fromkeys(reasons):
        part = data.missing[[own == reason for own in reasons]]
        if part.any():
            rows, columns = int(part.any(axis=1).sum()), int(part.any(axis=0).sum())
            found.append(MissingCells(reason, int(part.sum()), rows, columns))
    return tuple(sorted(found, key=lambda part: -part.cells))
