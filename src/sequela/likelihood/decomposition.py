"""Split a set into components of items that influence one another, and isolated items.

Two items of a set S belong to the same component if one acts on the other, or if both act on the
same item outside S. So no other item of S acts on the items of a component, or on the items outside
S on which the component acts. Therefore the rates of a component do not depend on the other items
of S, and the component is evaluated only once for all sets that contain it. An item of S is
isolated if it acts on no item and no item of S acts on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arguments import ProductLists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


__all__ = ["Component", "Decomposition", "acting", "components_of", "decompose", "decompose_by"]


@dataclass(frozen=True)
class Component:
    """Items of a set that influence one another, and the items outside the set on which they act.

    Attributes
    ----------
    items : tuple of int
        The items of the component, ascending.
    children : tuple of int
        The items outside the set on which items of the component act, ascending.
    """

    items: tuple[int, ...]
    children: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of items of the component."""
        return len(self.items)

    @property
    def columns(self) -> NDArray[np.int64]:
        """The items and children. Only their rates depend on the state of the component."""
        return np.array([*self.items, *self.children], dtype=np.int64)


def components_of(
    items: NDArray[np.int64], children: Sequence[tuple[int, ...]]
) -> tuple[list[Component], list[int]]:
    """Return the components and the isolated items of a set.

    Parameters
    ----------
    items : array of int
        The set.
    children : sequence of tuples
        The items on which each item of the model acts.
    """
    inside = set(items.tolist())
    group: dict[int, int] = {i: i for i in inside}

    def root(i: int) -> int:
        while group[i] != i:
            group[i] = group[group[i]]
            i = group[i]
        return i

    first_parent: dict[int, int] = {}
    linked: set[int] = set()
    for i in items.tolist():
        for j in children[i]:
            # If j is in the set, link i with j. Otherwise link i with the first item of the set
            # that acts on j.
            other = j if j in inside else first_parent.setdefault(j, i)
            linked.add(i)
            if j in inside:
                linked.add(j)
            group[root(i)] = root(other)
    members: dict[int, list[int]] = {}
    isolated = []
    for i in sorted(inside):
        if i in linked:
            members.setdefault(root(i), []).append(i)
        else:
            isolated.append(i)
    found = []
    for part in members.values():
        outside = {j for i in part for j in children[i] if j not in inside}
        found.append(Component(tuple(part), tuple(sorted(outside))))
    return found, isolated


@dataclass(frozen=True)
class Decomposition:
    """The distinct components and isolated items of many sets, and which of them each set has.

    Attributes
    ----------
    components : list of Component
        The distinct components.
    isolated : array of int
        The items that are isolated in some set.
    lists : ProductLists
        For each set, the positions of its components and isolated items in the two lists above.
    """

    components: list[Component]
    isolated: NDArray[np.int64]
    lists: ProductLists


def acting(support: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """Return, for every item, the items on which it acts or may act.

    Examples
    --------
    >>> acting(np.array([[True, True], [False, True]]))
    [(1,), ()]
    """
    acts = support.copy()
    np.fill_diagonal(acts, val=False)
    return [tuple(np.nonzero(row)[0].tolist()) for row in acts]


def decompose(support: NDArray[np.bool_], sets: Sequence[NDArray[np.int64]]) -> Decomposition:
    """Return the distinct components and the isolated items of many sets.

    Parameters
    ----------
    support : array (n, n) of bool
        Whether item i acts, or may act, on item j. The support may contain more entries than the
        interactions of theta. The components are then larger, but the results are the same.
    sets : sequence of arrays
        The items of the sets.
    """
    return decompose_by(acting(support), sets)


def decompose_by(
    children: Sequence[tuple[int, ...]], sets: Sequence[NDArray[np.int64]]
) -> Decomposition:
    """Return the result of `decompose`; `children` contains the items on which each item acts."""
    places: dict[Component, int] = {}
    isolated_places: dict[int, int] = {}
    component_lists: list[list[int]] = []
    isolated_lists: list[list[int]] = []
    for items in sets:
        components, isolated = components_of(items, children)
        component_lists.append([places.setdefault(c, len(places)) for c in components])
        isolated_lists.append(
            [isolated_places.setdefault(i, len(isolated_places)) for i in isolated]
        )
    return Decomposition(
        components=list(places),
        isolated=np.array(list(isolated_places), dtype=np.int64),
        lists=ProductLists(*_listed(component_lists), *_listed(isolated_lists)),
    )


def _listed(lists: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    start = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in lists], out=start[1:])
    flat = [place for part in lists for place in part]
    return start, np.array(flat, dtype=np.int64)
