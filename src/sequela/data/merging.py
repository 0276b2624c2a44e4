"""Merge items that are one event under several names, and propose which items to merge.

Neighbouring genes on a chromosome are often amplified or deleted by one event, so they have no
order. The argument `merge` maps each new item to the old items that it replaces. The new item is
present in a sample if at least one of the old items is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sequela.data._limits import MERGE_SIZE
from sequela.data._text_files import SourceFile, file_name, source_file, text_lines
from sequela.data.dataset import Dataset
from sequela.support.errors import InputError
from sequela.support.labels import compose, find_unfit
from sequela.support.validation import is_number, positive_integer

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Merged", "Merges", "merge_items", "propose_merges", "read_merges"]

# The type of `merge=` of the readers: a mapping from new names to old names, or the path of a JSON
# file that contains such a mapping.
Merges: TypeAlias = "Mapping[str, Sequence[str]] | str | os.PathLike[str]"

_BLOCK = 512  # number of columns that are compared with all others in one step


@dataclass(frozen=True)
class Merged:
    """A table after merging, the merged names, and notes on names that were not found."""

    items: list[str]
    values: npt.NDArray[np.bool_]
    unprofiled: npt.NDArray[np.bool_] | None
    merged: dict[str, tuple[str, ...]]
    notes: list[str]


def read_merges(given: Merges) -> tuple[dict[str, tuple[str, ...]], SourceFile | None]:
    """Check and return the groups (new name to old names) in a mapping or a JSON file."""
    if isinstance(given, Mapping):
        return _checked(list(given.items()), "merge"), None
    if not isinstance(given, str | os.PathLike):
        raise InputError(
            f"merge must be a mapping or the path of a JSON file; found {given!r:.80}."
        )
    name = file_name(given)
    source = source_file(given)
    MERGE_SIZE.refuse(source.size, name, about=True)
    text = "\n".join(_bounded(text_lines(given), name))
    try:
        pairs = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f'{name} is not JSON ({error}); expected {{"new name": ["old name", "another"], ...}}.'
        ) from None
    if not isinstance(pairs, _Pairs):
        raise InputError(
            f"{name} has a {type(pairs).__name__}; expected an object: "
            '{"new name": ["old name", "another"], ...}.'
        )
    return _checked(pairs, name), source


def _bounded(lines: Iterable[str], name: str) -> Iterator[str]:
    """Yield the lines; raise an error if their text is too long.

    A small compressed file can contain a very large text.
    """
    size = 0
    for line in lines:
        size += len(line) + 1
        MERGE_SIZE.refuse(size, name)
        yield line


class _Pairs(list[tuple[str, Any]]):
    """The pairs of a JSON object. A dictionary would keep only the last pair of a repeated name."""


def _checked(pairs: Sequence[tuple[Any, Any]], where: str) -> dict[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...]] = {}
    owner: dict[str, str] = {}
    for new, old in pairs:
        if not isinstance(new, str) or not new.strip() or find_unfit([new]) is not None:
            raise InputError(
                f"{where}: {new!a:.80} is not a name for an item; expected a printable string."
            )
        new = compose(new)
        if new in groups:
            raise InputError(f"{where}: the group {new!r:.80} occurs twice; join the two lists.")
        is_list = isinstance(old, Sequence) and not isinstance(old, str | bytes | _Pairs)
        if not is_list or not old or not all(isinstance(label, str) for label in old):
            raise InputError(
                f"{where}: the group {new!r:.80} has {old!r:.80}; expected a list of names, such "
                'as ["CDK4(A)", "ARHGAP9(A)"].'
            )
        groups[new] = tuple(dict.fromkeys(compose(label.strip()) for label in old))
        for label in groups[new]:
            if label in owner:
                raise InputError(
                    f"{where}: {label!r:.80} is in two groups, {owner[label]!r:.80} and "
                    f"{new!r:.80}; expected at most one."
                )
            owner[label] = new
    return groups


def merge_items(
    groups: Mapping[str, tuple[str, ...]],
    items: Sequence[str],
    values: npt.NDArray[np.bool_],
    unprofiled: npt.NDArray[np.bool_] | None,
) -> Merged:
    """Replace each group by one item, at the position of its first member in the table."""
    position = {label: j for j, label in enumerate(items)}
    present = {
        new: tuple(label for label in old if label in position) for new, old in groups.items()
    }
    present = {new: old for new, old in present.items() if old}
    gone = {label for old in present.values() for label in old}
    if groups and not present:
        first = next(iter(next(iter(groups.values()))))
        raise InputError(
            f"merge: none of the old names is among the {len(items)} items (the first old name is "
            f"{first!r:.80}, the first item is {items[0] if items else None!r:.80}). Names must "
            "match exactly."
        )
    for new in present:
        if new in position and new not in gone:
            raise InputError(
                f"merge: the new name {new!r:.80} is already the name of an item outside of the "
                "group. Add it to the group, or choose another name."
            )
    absent = [label for old in groups.values() for label in old if label not in position]
    notes = []
    if absent:
        notes.append(
            f"merge has {len(absent)} names that are not among the items: {', '.join(absent[:3])}"
            f"{', ...' if len(absent) > 3 else ''}."
        )
    start = {min(position[label] for label in old): new for new, old in present.items()}
    labels: list[str] = []
    columns: list[list[int]] = []
    for j, label in enumerate(items):
        if j in start:
            labels.append(start[j])
            columns.append([position[old] for old in present[start[j]]])
        elif label not in gone:
            labels.append(label)
            columns.append([j])
    joined, unknown = _join_columns(columns, values, unprofiled)
    return Merged(labels, joined, unknown, present, notes)


def _join_columns(
    columns: Sequence[Sequence[int]],
    values: npt.NDArray[np.bool_],
    unprofiled: npt.NDArray[np.bool_] | None,
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_] | None]:
    """Join each list of columns into one; return the joined values and the unknown cells."""
    # Most columns stay as they are: copy all at once, then overwrite the few that are joined.
    first_of = [own[0] for own in columns]
    joined = values[:, first_of]
    unknown = None if unprofiled is None else unprofiled[:, first_of]
    for k, own in enumerate(columns):
        if len(own) > 1:
            joined[:, k] = values[:, own].any(axis=1)
            if unprofiled is not None and unknown is not None:
                # If one of the joined items is altered, the cell is known (present). If none is
                # altered, the cell is unknown as soon as one of the items was not profiled.
                unknown[:, k] = unprofiled[:, own].any(axis=1) & ~joined[:, k]
    return joined, unknown


def propose_merges(
    data: Dataset, similarity: float = 0.9, *, at_least: int = 3
) -> dict[str, list[str]]:
    """Propose groups of items that are nearly always altered together.

    Parameters
    ----------
    data : Dataset, or any type that `Dataset.coerce` accepts
        The table.
    similarity : float
        The smallest Jaccard index of two items of a group, above 0 and at most 1. The Jaccard index
        is the number of samples with both items, divided by the number of samples with at least
        one of them.
    at_least : int
        Ignore items that occur in fewer samples than this number. For example, two items may occur
        only once, in the same sample. They always occur together, but one sample is not enough
        evidence that they are one event.

    Returns
    -------
    dict
        Maps each new name to the old names, the most frequent first. Check whether the groups make
        sense, and then pass this dictionary to a reader as `merge=`.

    Examples
    --------
    >>> data = Dataset([[1, 1, 0]] * 4 + [[0, 0, 1]] * 4, items=["CDK4(A)", "OS9(A)", "TP53"])
    >>> propose_merges(data)
    {'CDK4(A),...': ['CDK4(A)', 'OS9(A)']}
    """
    from scipy.sparse import coo_array, csc_array
    from scipy.sparse.csgraph import connected_components

    data = Dataset.coerce(data).require_plain("propose_merges")
    if not (is_number(similarity) and 0 < similarity <= 1):
        raise InputError(
            f"similarity must be a number above 0 and at most 1; found {similarity!r:.80}."
        )
    positive_integer("at_least", at_least)
    counts = data.values.sum(axis=0, dtype=np.int64)
    looked_at = np.flatnonzero(counts >= at_least)
    order = looked_at[np.argsort(-counts[looked_at], kind="stable")]
    table = csc_array(data.values[:, order], dtype=np.int32)
    counts = counts[order]
    rows, columns, close = [], [], []
    for begin in range(0, len(order), _BLOCK):
        # The Jaccard index is at most the ratio of the smaller to the larger count. Counts decrease
        # from left to right, so the items from `stop` on are too rare to be similar to an item of
        # this block.
        least = similarity * counts[min(begin + _BLOCK, len(order)) - 1] * (1 - 1e-9)
        stop = int(np.searchsorted(-counts, -least, side="right"))
        shared = (table[:, begin : begin + _BLOCK].T @ table[:, begin:stop]).tocoo()
        i, j = shared.row.astype(np.int64) + begin, shared.col.astype(np.int64) + begin
        jaccard = shared.data / (counts[i] + counts[j] - shared.data)
        pair = (i < j) & (jaccard >= similarity)
        rows.append(i[pair])
        columns.append(j[pair])
        close.append(jaccard[pair])
    if not rows:
        return {}
    edges = coo_array(
        (np.concatenate(close), (np.concatenate(rows), np.concatenate(columns))),
        shape=(len(order), len(order)),
    ).tocsr()
    _, component = connected_components(edges, directed=False)
    groups: list[list[int]] = []
    for label in np.flatnonzero(np.bincount(component) > 1):
        members = np.flatnonzero(component == label)
        groups += _tight(edges[members][:, members].toarray(), members, similarity)
    taken = set(data.items)
    proposal = {}
    for group in sorted(groups, key=lambda members: members[0]):
        names = [data.items[order[k]] for k in group]
        new = f"{names[0]},..."
        while new in taken:
            new += "."
        proposal[new] = names
    return proposal


def _tight(
    closeness: npt.NDArray[np.float64], members: npt.NDArray[np.intp], similarity: float
) -> list[list[int]]:
    """Split a connected component into groups in which all pairs are similar.

    If a is similar to b and b to c, a and c may still have no sample in common. Therefore complete
    linkage is used, which joins two groups only if their least similar pair is similar.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    # Pairs that are less similar than `similarity` were not stored; they get the distance 1.
    distance = 1 - (closeness + closeness.T)
    np.fill_diagonal(distance, 0)
    distance = np.where(distance > 1 - similarity + 1e-12, 1.0, distance)
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), method="complete")
    cluster = fcluster(tree, t=min(1 - similarity + 1e-9, 1 - 1e-9), criterion="distance")
    found = [[int(members[k]) for k in np.flatnonzero(cluster == c)] for c in np.unique(cluster)]
    return [group for group in found if len(group) > 1]
