"""Turn the dates of items into statements about the order of the items of each sample."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sequela.data.importing import Draft

__all__ = ["order_statements"]


def order_statements(draft: Draft) -> list[list[tuple[str, str]]]:
    """Return for each sample the pairs (before, after) that follow from its dates.

    The order of items with the same date is unknown. Only items with consecutive dates become
    pairs, because all other orders follow from these pairs. Items without a date and missing items
    are left out.

    Examples
    --------
    >>> from sequela.data.importing import Draft
    >>> draft = Draft("a table", ["x"], ["a", "b", "c"], np.array([[True, True, True]]))
    >>> draft.dates = np.array([[2.0, 1.0, 2.0]])
    >>> order_statements(draft)
    [[('b', 'a'), ('b', 'c')]]
    """
    assert draft.dates is not None  # noqa: S101 - the caller has checked
    found = []
    for dates, present in zip(draft.dates, draft.values, strict=True):
        known = np.flatnonzero(present & ~np.isnan(dates))
        groups = [known[dates[known] == date] for date in np.unique(dates[known])]
        found.append(
            [
                (draft.items[i], draft.items[j])
                for one, other in itertools.pairwise(groups)
                for i in one
                for j in other
            ]
        )
    return found
