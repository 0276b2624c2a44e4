"""Read a table of samples for a run, and log notices about how it was read."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequela.data._text_files import source_file
from sequela.data._weights import read_weight_file
from sequela.data.importing import Imported
from sequela.data.orders import read_orders, with_orders
from sequela.data.tables import read_table, refuse_turned

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

__all__ = ["read_as_recorded", "read_samples", "read_to_learn"]

_log = logging.getLogger("sequela")
_OPTIONS = ("times", "most_frequent", "weights", "orders", "missing", "drop")


def read_samples(
    path: str | os.PathLike[str],
    *,
    times: str | None = None,
    most_frequent: int | None = None,
    weights: str | None = None,
    orders: str | None = None,
    missing: str | None = None,
    drop: Iterable[str] = (),
) -> Imported:
    """Read a table, and log notices about how it was read.

    The notices (`ImportSummary.notices`) go to the logger ``sequela``. They say, for example, which
    column was read as sample ids, and which samples and items were dropped.

    Parameters
    ----------
    path : str or path
        The table; see `read_table`.
    times : str or None
        The column with observation times.
    most_frequent : int or None
        Keep at most this many items, the most frequent first.
    weights : str or None
        The column with the weights of the samples, or the path of a table with two columns,
        sample and weight.
    orders : str or None
        The path of a table of known orders; see `sequela.data.read_orders`.
    missing : {"keep", "absent", "refuse"} or None
        What cells without a value mean; see `read_table`.
    drop : iterable of str
        Columns that are not items; they are not read.

    Examples
    --------
    >>> from sequela.data.examples import example_path
    >>> read_samples(example_path("samples.csv"), most_frequent=3).data.items
    ('CDKN2A(D)', 'EGFR(A)', 'PTEN')
    """
    options = {"times": times, "most_frequent": most_frequent, "missing": missing, "drop": drop}
    found = _read(path, options, weights, orders)
    _log_notices(found, path)
    return found


def read_to_learn(path: str | os.PathLike[str], **options: Any) -> Imported:
    """Read a table as `read_samples` does, for a command that learns a model from it.

    A table that clearly has its items in rows is an error, unless `most_frequent` is given.

    Examples
    --------
    >>> from sequela.data.examples import example_path
    >>> read_to_learn(example_path("samples.csv"), most_frequent=3).data.n_items
    3
    """
    given = dict(options)
    weights, orders = given.pop("weights", None), given.pop("orders", None)
    found = _read(path, given, weights, orders)
    if given.get("most_frequent") is None:
        refuse_turned(found.data, path)
    _log_notices(found, path)
    return found


def _read(
    path: str | os.PathLike[str], options: dict[str, Any], weights: str | None, orders: str | None
) -> Imported:
    """Read a table, and add the weights and the known orders of other files."""
    in_file = weights is not None and Path(weights).is_file()
    found = read_table(path, weights=None if in_file else weights, **options)
    if in_file and weights is not None:
        data = found.data.with_weights(read_weight_file(weights, found.data.samples))
        files = (*found.summary.files, source_file(weights))
        found = Imported(data, replace(found.summary, files=files))
    if orders is not None:
        dropped = {label for part in found.summary.dropped_items for label in part.names}
        statements = read_orders(orders, found.data, ignored=dropped)
        data, sentence = with_orders(found.data, statements)
        summary = replace(
            found.summary,
            files=(*found.summary.files, source_file(orders)),
            notes=(*found.summary.notes, sentence),
        )
        found = Imported(data, summary)
    return found


def _log_notices(found: Imported, path: str | os.PathLike[str]) -> None:
    for notice in found.summary.notices():
        _log.warning("%s: %s", Path(path).name, notice)


def read_as_recorded(
    path: str | os.PathLike[str], options: Mapping[str, Any], *, to_learn: bool = False
) -> Imported:
    """Read a table with the options of a run, as ``run.json`` has them.

    A fit and the report on its folder both read the data with this function. This ensures that they
    use the same samples. Options that are not about reading are ignored. With `to_learn`, the table
    is read with `read_to_learn`.

    Examples
    --------
    >>> from sequela.data.examples import example_path
    >>> options = {"most_frequent": 3, "penalty": 0.01}
    >>> read_as_recorded(example_path("samples.csv"), options).data.n_items
    3
    """
    given = {name: options[name] for name in _OPTIONS if name in options}
    return read_to_learn(path, **given) if to_learn else read_samples(path, **given)
