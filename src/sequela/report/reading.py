"""Reading a table of samples for a run, and telling what was made of it."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sequela.data._text_files import source_file
from sequela.data._weights import read_weight_file
from sequela.data.importing import Imported
from sequela.data.tables import read_table

if TYPE_CHECKING:
    import os

__all__ = ["read_samples"]

_log = logging.getLogger("sequela")


def read_samples(
    path: str | os.PathLike[str],
    *,
    times: str | None = None,
    most_frequent: int | None = None,
    weights: str | None = None,
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
    weights : str or None
        The column with the weights of the samples, or the path of a table with two columns,
        sample and weight.

    Examples
    --------
    >>> from sequela.data.examples import example_path
    >>> read_samples(example_path("samples.csv"), most_frequent=3).data.items
    ('CDKN2A(D)', 'EGFR(A)', 'PTEN')
    """
    in_file = weights is not None and Path(weights).is_file()
    column = None if in_file else weights
    found = read_table(path, times=times, most_frequent=most_frequent, weights=column)
    if in_file and weights is not None:
        data = found.data.with_weights(read_weight_file(weights, found.data.samples))
        files = (*found.summary.files, source_file(weights))
        found = Imported(data, replace(found.summary, files=files))
    for notice in found.summary.notices():
        _log.warning("%s: %s", Path(path).name, notice)
    return found
