"""The union of the lattices of all observed sets, in the layout of `kernels.shared_lattice`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.kernels.arguments import SharedLattice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from sequela.likelihood.partial import PartialSet

__all__ = ["choose_largest_lattice", "share_lattices"]

# The likelihood of a set of up to _MOST_ITEMS items is a sum over its lattice, unless the union of
# all lattices has more than _MOST_STATES states. In that case the largest sets have latent orders
# instead. Sets of up to _LEAST_ITEMS items never have latent orders, because chains mix more slowly
# if many samples have them.
_MOST_ITEMS = 10
_LEAST_ITEMS = 8
_MOST_STATES = 8000


def choose_largest_lattice(sets: Iterable[NDArray[np.int64]]) -> int:
    """Return the number of items above which a set has a latent order.

    Examples
    --------
    >>> choose_largest_lattice([np.arange(10)])
    10
    >>> choose_largest_lattice([np.arange(k, k + 10) for k in range(20)])
    9
    """
    masks = [_mask(items) for items in sets]
    found: set[int] = {0}
    for size in range(1, _MOST_ITEMS + 1):
        for mask in masks:
            if mask.bit_count() == size:
                _add_subsets(found, mask)
        if size > _LEAST_ITEMS and len(found) > _MOST_STATES:
            return size - 1
    return _MOST_ITEMS


def share_lattices(
    sets: Iterable[NDArray[np.int64]],
    counts: Iterable[float],
    n: int,
    groups: Sequence[tuple[PartialSet, float]] = (),
) -> SharedLattice:
    """Return the subsets of all sets, each listed once, and the steps between these subsets.

    Parameters
    ----------
    sets : iterable of arrays of int
        The items of each distinct set.
    counts : iterable of float
        The number of samples (or their weight) with each set.
    n : int
        Number of items of the model.
    groups : sequence of pairs of a PartialSet and a float
        Distinct samples with missing cells, and for each the number of samples that are equal to it
        (or their weight).
    """
    weights: dict[int, float] = {0: 0.0}
    for items, count in zip(sets, counts, strict=True):
        mask = _mask(items)
        weights[mask] = weights.get(mask, 0.0) + float(count)
    groups = sorted(groups, key=lambda group: group[0].missing.tolist())
    ends = [_ends(known) for known, _ in groups]
    # Python's integers are used as bit masks, because there may be more than 64 items.
    found = {0}
    for mask in [*weights, *(max(masks) for masks in ends)]:
        _add_subsets(found, mask)
    masks = sorted(found)
    place = {mask: at for at, mask in enumerate(masks)}
    lowest = [mask & -mask for mask in masks]
    to: list[list[tuple[int, int]]] = [[] for _ in masks]
    for at, mask in enumerate(masks):
        rest = mask
        while rest:
            bit = rest & -rest
            to[place[mask ^ bit]].append((bit.bit_length() - 1, at))
            rest ^= bit
    start = np.zeros(len(masks) + 1, dtype=np.int64)
    np.cumsum([len(steps) for steps in to], out=start[1:])
    steps = np.array([step for row in to for step in row], dtype=np.int64).reshape(-1, 2)
    ways = np.array(
        [(bit, place[mask ^ 1 << bit]) for mask in masks for bit in _bits_downwards(mask)],
        dtype=np.int64,
    ).reshape(-1, 2)
    by_item = np.argsort(ways[:, 0], kind="stable")
    item_count = np.bincount(ways[:, 0], minlength=n)
    size = np.array([mask.bit_count() for mask in masks], dtype=np.int64)
    samples = np.array([weights.get(mask, 0.0) for mask in masks])
    return SharedLattice(
        size=size,
        largest=int(size.max()),
        item=np.array([max(bit.bit_length() - 1, 0) for bit in lowest], dtype=np.int64),
        parent=np.array([place[m ^ b] for m, b in zip(masks, lowest, strict=True)], dtype=np.int64),
        step_start=start,
        step_item=steps[:, 0].astype(np.uint32),
        step_to=steps[:, 1].astype(np.uint32),
        way_start=np.concatenate([[0], np.cumsum(size)]),
        way_from=ways[:, 1].astype(np.uint32),
        way_item=ways[:, 0].astype(np.uint32),
        item_start=np.concatenate([[0], np.cumsum(item_count)]).astype(np.int64),
        item_way=by_item.astype(np.uint32),
        samples=samples,
        observed=np.flatnonzero(samples > 0.0).astype(np.int64),
        group_count=np.array([count for _, count in groups], dtype=np.float64),
        end_start=np.cumsum([0, *map(len, ends)]).astype(np.int64),
        end=np.array([place[mask] for each in ends for mask in each], dtype=np.int64),
        **_patterns([known for known, _ in groups], n),
    )


def _mask(items: NDArray[np.int64]) -> int:
    """Return a set as an integer, with one bit for each item."""
    return sum(1 << int(item) for item in items)


def _bits_downwards(mask: int) -> list[int]:
    """Return the items of a bit mask, the highest first."""
    bits = []
    while mask:
        bits.append(mask.bit_length() - 1)
        mask ^= 1 << bits[-1]
    return bits


def _ends(known: PartialSet) -> list[int]:
    """Return the bit masks of all completions of a sample."""
    found = [_mask(known.present)]
    for item in known.missing.tolist():
        found += [mask | 1 << item for mask in found]
    return found


def _patterns(samples: list[PartialSet], n: int) -> dict[str, NDArray[Any]]:
    """Return where the samples with each combination of missing cells begin, and their known items.

    `samples` must be sorted by their missing cells.
    """
    start, is_known = [], []
    for at, known in enumerate(samples):
        if at == 0 or not np.array_equal(known.missing, samples[at - 1].missing):
            start.append(at)
            is_known.append(~np.isin(np.arange(n), known.missing))
    return {
        "pattern_start": np.array([*start, len(samples)], dtype=np.int64),
        "is_known": np.array(is_known, dtype=np.bool_).reshape(len(start), n),
    }


def _add_subsets(found: set[int], mask: int) -> None:
    """Add all subsets of a bit mask to `found`; skip subsets of masks that were added before."""
    waiting = [mask]
    while waiting:
        state = waiting.pop()
        if state in found:
            continue
        found.add(state)
        rest = state
        while rest:
            bit = rest & -rest
            waiting.append(state ^ bit)
            rest ^= bit
