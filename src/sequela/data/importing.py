"""Turn the content of a file into a data set: merge and select items, and summarise the import.

Each reader fills a `Draft`; `finish` turns every draft into an `Imported` in the same way, so that
the options have the same meaning for all kinds of files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np

from sequela.data._dated import order_statements
from sequela.data._import_summary import (
    Dropped,
    ImportSummary,
    ManyItems,
    counted,
    many_items,
    missing_cells,
)
from sequela.data._reading import read_strings, unknown
from sequela.data._text_files import SourceFile
from sequela.data.dataset import Dataset
from sequela.data.merging import merge_items, propose_merges, read_merges
from sequela.support.errors import InputError
from sequela.support.naming import argument, option
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import numpy.typing as npt

    from sequela.data.merging import Merged, Merges

__all__ = [
    "Draft",
    "Dropped",
    "ImportSummary",
    "Imported",
    "Incomplete",
    "ManyItems",
    "Selection",
    "SelectionKeywords",
    "SourceFile",
    "finish",
    "near",
    "propose_merges",
    "refuse_too_large",
]

Incomplete = Literal["missing", "samples", "items"]

LARGEST_TABLE = 4_000_000_000  # number of cells; each takes one byte
# If there are more labels than this, messages do not suggest the most similar label, because
# searching for it would take seconds.
_SEARCHED = 20_000


@dataclass(frozen=True)
class Imported:
    """A data set and the summary of how it was read.

    Attributes
    ----------
    data : Dataset
        The samples.
    summary : ImportSummary
        What was read, dropped and merged.
    """

    data: Dataset
    summary: ImportSummary


class SelectionKeywords(TypedDict, total=False):
    """The keywords that select items, which all readers take; see `Selection`."""

    merge: Merges | None
    most_frequent: int | None
    at_least: int | None
    keep: Iterable[str] | None
    drop: Iterable[str] | None


@dataclass(frozen=True)
class Selection:
    """Which items and samples of a file become part of the data set.

    Parameters
    ----------
    merge : mapping or path of a JSON file, optional
        Maps a new name to the old names that it replaces. The new item is present if any of the
        old items is.
    most_frequent : int, optional
        Keep at most this number of items, the most frequent first.
    at_least : int, optional
        Keep items that are present in at least this number of samples.
    keep : iterable of str, optional
        Items (after merging) to keep even if they are rare.
    drop : iterable of str, optional
        Items (after merging) to leave out.
    incomplete : {"missing", "samples", "items"}
        What to do if some items of a sample were not profiled: keep the cells as missing, or
        drop the samples or the items.

    Examples
    --------
    >>> Selection(at_least=3, drop={"TTN", "MUC16"}).drop
    ('MUC16', 'TTN')
    """

    merge: Merges | None = None
    most_frequent: int | None = None
    at_least: int | None = None
    keep: Collection[str] = ()
    drop: Collection[str] = ()
    incomplete: Incomplete = "missing"

    def __post_init__(self) -> None:
        for name in ("most_frequent", "at_least"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, positive_integer(name, value))
        for name in ("keep", "drop"):
            value = getattr(self, name)
            object.__setattr__(self, name, () if value is None else read_strings(value, name))
        both = sorted(set(self.keep) & set(self.drop))
        if both:
            raise InputError(f"{both[0]!r} is in keep and in drop; remove it from one of them.")
        if self.incomplete not in ("missing", "samples", "items"):
            raise InputError(
                f"incomplete must be 'missing', 'samples' or 'items'; found "
                f"{self.incomplete!r:.80}."
            )


@dataclass
class Draft:
    """The content of a file, before items are merged and selected.

    `unprofiled` marks cells that were not profiled; their values are unknown. `dates` says since
    when a sample has an item (NaN: unknown). `panels` names the gene panel of each sample. `merged`
    lists items that the reader has merged before it made the draft, and `items_read` is the number
    of items before this merge.
    """

    kind: str
    samples: Sequence[str]
    items: Sequence[str]
    values: npt.NDArray[np.bool_]
    unprofiled: npt.NDArray[np.bool_] | None = None
    times: npt.NDArray[np.float64] | None = None
    files: list[SourceFile] = field(default_factory=list)
    dropped_samples: list[Dropped] = field(default_factory=list)
    dropped_items: list[Dropped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    dates: npt.NDArray[np.float64] | None = None
    merged: dict[str, tuple[str, ...]] = field(default_factory=dict)
    items_read: int | None = None
    weights: npt.NDArray[np.float64] | None = None
    panels: Sequence[str] | None = None

    def keep_samples(self, mask: npt.NDArray[np.bool_], reason: str) -> None:
        """Leave out the samples where the mask is False."""
        names = tuple(self.samples[i] for i in np.flatnonzero(~mask).tolist())
        if names:
            self.dropped_samples.append(Dropped(reason, names))
            self.samples = [self.samples[i] for i in np.flatnonzero(mask).tolist()]
            self.values = self.values[mask]
            self.unprofiled = None if self.unprofiled is None else self.unprofiled[mask]
            self.times = None if self.times is None else self.times[mask]
            self.dates = None if self.dates is None else self.dates[mask]
            self.weights = None if self.weights is None else self.weights[mask]
            if self.panels is not None:
                self.panels = [self.panels[i] for i in np.flatnonzero(mask).tolist()]

    def keep_items(self, mask: npt.NDArray[np.bool_], reason: str) -> None:
        """Leave out the items where the mask is False."""
        names = tuple(self.items[j] for j in np.flatnonzero(~mask).tolist())
        if names:
            self.dropped_items.append(Dropped(reason, names))
            self.take_items(np.flatnonzero(mask))

    def take_items(self, columns: npt.NDArray[np.intp]) -> None:
        """Keep only these columns, in this order, without an entry in the summary."""
        self.items = [self.items[j] for j in columns.tolist()]
        self.values = self.values[:, columns]
        self.unprofiled = None if self.unprofiled is None else self.unprofiled[:, columns]
        self.dates = None if self.dates is None else self.dates[:, columns]


def finish(draft: Draft, selection: Selection) -> Imported:
    """Merge items, apply `incomplete`, select items, and return the data set with its summary.

    Examples
    --------
    >>> draft = Draft("a table", ["x"], ["a", "b", "c"], np.array([[True, False, True]]))
    >>> done = finish(draft, Selection(merge={"bc": ["b", "c"]}, drop=["a"]))
    >>> done.data.sets()
    [frozenset({'bc'})]
    >>> dict(done.summary.merged)
    {'bc': ('b', 'c')}
    """
    count = len(draft.samples) + sum(len(part.names) for part in draft.dropped_samples)
    n_items = len(draft.items) + sum(len(part.names) for part in draft.dropped_items)
    n_items = n_items if draft.items_read is None else draft.items_read
    merged = {**draft.merged, **_merge(draft, selection.merge)}
    _choose(draft, selection, merged)
    _drop_unprofiled(draft, selection.incomplete)
    _select_frequent(draft, selection)
    for noun, left in (("samples", draft.samples), ("items", draft.items)):
        if not left:
            parts = draft.dropped_samples if noun == "samples" else draft.dropped_items
            why = "; ".join(f"{len(part.names)} dropped, {part.reason}" for part in parts)
            raise InputError(f"no {noun} are left of {draft.kind} ({why or 'none were read'}).")
    times = None if draft.times is None else draft.times.tolist()
    data = Dataset(
        draft.values, items=draft.items, samples=draft.samples, times=times,
        orders=None if draft.dates is None else order_statements(draft),
    )  # fmt: skip
    if data.orders is not None:
        known = sum(1 for statements in data.orders if statements)
        draft.notes.append(f"the dates give known orders in {counted(known, 'sample')}.")
    if draft.unprofiled is not None and draft.unprofiled.any():
        data = data.with_missing(draft.unprofiled)
    if draft.weights is not None:
        data = data.with_weights(draft.weights)
    return Imported(data, _summarise(draft, data, merged, count, n_items))


def refuse_too_large(n_samples: int, n_items: int, kind: str) -> None:
    """Refuse a table that would not fit into the memory of an ordinary computer."""
    if n_samples * n_items > LARGEST_TABLE:
        raise InputError(
            f"{kind} has {n_samples} samples and {n_items} items, a table of "
            f"{n_samples * n_items / 1e9:.0f} GB. Read fewer samples or items."
        )


def near(label: str, known: Sequence[str]) -> str:
    """Return an unknown label as quoted text; add the most similar known label, if there is one."""
    return unknown(label, tuple(known)) if len(known) <= _SEARCHED else repr(label)


def _merge(draft: Draft, given: Merges | None) -> dict[str, tuple[str, ...]]:
    if given is None:
        return {}
    groups, source = read_merges(given)
    if source is not None:
        draft.files.append(source)
    done = merge_items(groups, draft.items, draft.values, draft.unprofiled)
    if draft.dates is not None:
        draft.dates = _merged_dates(draft, done)
    draft.items, draft.values, draft.unprofiled = done.items, done.values, done.unprofiled
    draft.notes += done.notes
    return done.merged


def _merged_dates(draft: Draft, done: Merged) -> npt.NDArray[np.float64]:
    """Return the dates of all items after merging.

    The date of a merged item is the first date of the old items that are present; it is NaN if one
    of these dates is unknown.
    """
    assert draft.dates is not None  # noqa: S101 - the caller has checked
    place = {label: j for j, label in enumerate(draft.items)}
    first = np.where(draft.values, draft.dates, np.inf)
    columns = [[place[old] for old in done.merged.get(new, (new,))] for new in done.items]
    dates = np.stack([first[:, part].min(axis=1) for part in columns], axis=1)
    return np.where(np.isinf(dates), np.nan, dates)


def _choose(draft: Draft, selection: Selection, merged: dict[str, tuple[str, ...]]) -> None:
    """Check that the labels in `keep` and `drop` are items after merging, and apply `drop`."""
    position = {label: j for j, label in enumerate(draft.items)}
    into = {old: new for new, group in merged.items() for old in group}
    for name, labels in (("keep", selection.keep), ("drop", selection.drop)):
        for label in labels:
            if label not in position:
                where = f"; it was merged into {into[label]!r}" if label in into else ""
                raise InputError(
                    f"{argument(name)}: {near(label, draft.items)} is not among the "
                    f"{len(draft.items)} items{where}. Correct the label, or leave it out."
                )
    mask = np.ones(len(draft.items), dtype=np.bool_)
    mask[[position[label] for label in selection.drop]] = False
    draft.keep_items(mask, f"because of {argument('drop')}")


def _drop_unprofiled(draft: Draft, incomplete: Incomplete) -> None:
    """Drop samples or items with cells that were not profiled, or keep such cells as missing."""
    if draft.unprofiled is None or not draft.unprofiled.any():
        return
    draft.keep_samples(np.asarray(~draft.unprofiled.all(axis=1)), "not profiled")
    if draft.unprofiled.any():
        draft.keep_items(np.asarray(~draft.unprofiled.all(axis=0)), "not profiled in any sample")
    n_rows = int(draft.unprofiled.any(axis=1).sum())
    n_columns = int(draft.unprofiled.any(axis=0).sum())
    if n_rows == 0 or incomplete == "missing":
        return
    if incomplete == "samples":
        if n_rows == len(draft.samples):
            raise InputError(
                f"in every sample of {draft.kind}, some of {n_columns} items were not profiled. "
                f"Drop these items instead with {option('incomplete', 'items')}, or drop the items "
                f"that were rarely profiled with {option('drop')}."
            )
        draft.keep_samples(np.asarray(~draft.unprofiled.any(axis=1)), "not profiled for some items")
        draft.notes.append(
            f"{counted(n_rows, 'sample')} dropped, because they were not profiled for some of "
            f"{counted(n_columns, 'item')}; {option('incomplete', 'items')} drops "
            "these items instead."
        )
    else:
        if n_columns == len(draft.items):
            raise InputError(
                f"each item of {draft.kind} was not profiled in at least one sample. Drop these "
                f"samples instead with {option('incomplete', 'samples')}."
            )
        draft.keep_items(np.asarray(~draft.unprofiled.any(axis=0)), "not profiled in some samples")


def _select_frequent(draft: Draft, selection: Selection) -> None:
    limit, wanted, kept = selection.at_least, selection.most_frequent, set(selection.keep)
    always = np.array([label in kept for label in draft.items], dtype=np.bool_)
    counts = draft.values.sum(axis=0, dtype=np.int64)
    if limit is not None:
        enough = (counts >= limit) | always
        if not enough.any():
            raise InputError(
                f"{option('at_least', limit)} leaves no items: the most frequent of "
                f"{len(draft.items)} items is in "
                f"{counted(int(counts.max(initial=0)), 'sample')}. Choose a smaller number."
            )
        draft.keep_items(enough, f"in fewer than {counted(limit, 'sample')}")
        always, counts = always[enough], counts[enough]
    if wanted is not None:
        if wanted > len(draft.items):
            draft.notes.append(
                f"{option('most_frequent', wanted)} was given, but there are only "
                f"{len(draft.items)} items; all are kept."
            )
        order = np.argsort(-counts, kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        chosen = (rank < wanted) | always
        draft.take_items(order)
        draft.keep_items(chosen[order], f"not among the {wanted} most frequent")


def _summarise(
    draft: Draft, data: Dataset, merged: dict[str, tuple[str, ...]], n_samples: int, n_items: int
) -> ImportSummary:
    sizes = data.set_sizes
    counts = data.values.sum(axis=0, dtype=np.int64)
    notes = list(draft.notes)
    never = int((counts == 0).sum())
    if never:
        notes.append(
            f"{never} of {data.n_items} items occur in no sample; "
            f"{option('at_least', 1)} drops them."
        )
    always = [data.items[j] for j in np.flatnonzero(counts == data.n_samples)]
    if always:
        verb = "item occurs" if len(always) == 1 else "items occur"
        notes.append(
            f"{len(always)} {verb} in every sample ({', '.join(always[:3])}); the order of "
            "such an item cannot be learned."
        )
    most = np.argsort(-counts, kind="stable")[:10]
    shares = np.nan_to_num(data.with_weights(None).known_shares)
    return ImportSummary(
        kind=draft.kind,
        files=tuple(draft.files),
        samples_read=n_samples,
        items_read=n_items,
        samples_kept=data.n_samples,
        items_kept=data.n_items,
        dropped_samples=tuple(draft.dropped_samples),
        dropped_items=tuple(draft.dropped_items),
        merged=merged,
        many_items=many_items(data),
        notes=tuple(notes),
        median_size=float(np.median(sizes)),
        largest_size=int(sizes.max()),
        empty_samples=int((sizes == 0).sum()),
        most_frequent=tuple((data.items[j], float(shares[j])) for j in most),
        missing=missing_cells(data, draft.panels),
    )
