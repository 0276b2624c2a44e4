"""Reading a table of samples for a run, and telling what was made of it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from sequela.data.tables import read_table

if TYPE_CHECKING:
    import os

    from sequela.data.importing import Imported

__all__ = ["read_samples"]

_log = logging.getLogger("sequela")


def read_samples(
    path: str | os.PathLike[str], *, times: str | None = None, most_frequent: int | None = None
) -> Imported:
    """Read a table, and log what an analysis of it should mention.

    The notices (`ImportSummary.notices`) go to the logger ``sequela``: a column that was taken for
    sample ids, samples and items that were dropped, samples with very many items.

    Parameters
    ----------
    path : str or path
        The table; see `read_table`.
    times : str or None
        The column with observation times.
    most_frequent : int or None
        Keep only this many items, the most frequent first.

    Examples
    --------
    >>> from sequela.data.examples import example_path
    >>> read_samples(example_path("samples.csv"), most_frequent=3).data.items
    ('CDKN2A(D)', 'EGFR(A)', 'PTEN')
    """
    found = read_table(path, times=times, most_frequent=most_frequent)
    for notice in found.summary.notices():
        _log.warning("%s: %s", Path(path).name, notice)
    return found
