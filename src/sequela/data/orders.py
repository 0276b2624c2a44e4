"""Read known orders of items from tables, and derive them from cell fractions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.data._reading import unknown
from sequela.data._statements import (
    OrderStatement,
    closed,
    read_probability,
    refuse_absent,
    refuse_cycle,
    refuse_repeated,
)
from sequela.data._text_files import file_name
from sequela.support.errors import InputError
from sequela.support.validation import is_number

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Mapping

    import numpy.typing as npt
    import pandas as pd

    from sequela.data.dataset import Dataset

__all__ = ["orders_from_fractions", "read_orders"]

_COLUMNS = ("sample", "before", "after")
# The largest probability of a statement that is computed from fractions of reads or cells. It is
# below 1 because errors of other kinds happen more often than once in a million statements.
_MOST_CERTAIN = 1.0 - 1e-6


def read_orders(
    path: str | os.PathLike[str],
    data: Dataset | None = None,
    *,
    ignored: Collection[str] = (),
) -> dict[str, tuple[OrderStatement, ...]]:
    r"""Read known orders from a table with one statement per line.

    Parameters
    ----------
    path : str or path
        The table, with a header: "sample", "before", "after" and optionally "probability", the
        probability that the statement is right. An empty cell or NA means 1. Other columns are
        ignored.
    data : Dataset, optional
        The samples that the statements are about. If given, every line is checked: the sample must
        exist and have both items.
    ignored : collection of str
        Items that were left out of `data`. Statements about these items are left out as well, but
        orders of other items that follow from these statements are kept.

    Returns
    -------
    dict
        The statements by sample id, for ``Dataset(data, orders=...)``.

    Raises
    ------
    InputError
        If a statement is invalid; the message names file and line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sequela import Dataset
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "orders.csv"
    >>> _ = path.write_text("sample,before,after,probability\ns2,IDH1,TP53,0.95\n")
    >>> data = Dataset([[1, 0], [1, 1]], items=["IDH1", "TP53"], samples=["s1", "s2"])
    >>> Dataset(data, orders=read_orders(path, data)).orders[1]
    (OrderStatement(before='IDH1', after='TP53', probability=0.95),)
    """
    from sequela.data.tables import text_rows

    name = file_name(path)
    rows, mark = text_rows(path, None, None)
    first_line, header = next(rows)
    places = _places(header, f"{name}, line {first_line}")
    found: dict[str, list[tuple[int, OrderStatement]]] = {}
    for line, row in rows:
        if not any(row):
            continue
        where = f"{name}, line {line}"
        if len(row) != len(header):
            raise InputError(
                f"{where}: found {len(row)} cells, expected {len(header)} as in the first line."
            )
        sample, before, after = (row[places[column]] for column in _COLUMNS)
        probability = 1.0
        if "probability" in places:
            cell = row[places["probability"]]
            probability = _probability(cell.replace(",", ".") if mark == ";" else cell, where)
        statement = OrderStatement(before, after, probability)
        if data is not None:
            _check(statement, sample, data, ignored, where)
        found.setdefault(sample, []).append((line, statement))
    return {sample: _settled(sample, lines, data, ignored, name) for sample, lines in found.items()}


def _places(header: list[str], where: str) -> dict[str, int]:
    places = {label.strip().casefold(): j for j, label in enumerate(header)}
    for column in _COLUMNS:
        if column not in places:
            raise InputError(
                f"{where}: there is no column {column!r}; expected a header with sample, before, "
                f"after and optionally probability, found {', '.join(map(repr, header))}."
            )
    return places


def _probability(cell: str, where: str) -> float:
    if cell.strip().casefold() in {"", "na", "nan"}:
        return 1.0
    try:
        number: Any = float(cell)
    except ValueError:
        number = cell
    return read_probability(number, where)


def _check(
    statement: OrderStatement, sample: str, data: Dataset, ignored: Collection[str], where: str
) -> None:
    rows = {label: i for i, label in enumerate(data.samples)}
    if sample not in rows:
        raise InputError(
            f"{where}: {unknown(sample, data.samples)} is not among the {data.n_samples} samples."
        )
    row = rows[sample]
    column = {label: j for j, label in enumerate(data.items)}
    column |= {label: -1 for label in ignored if label not in column}
    refuse_absent(
        statement, column, lambda j: j < 0 or bool(data.values[row, j]),
        f"{where}, sample {sample!r}",
    )  # fmt: skip


def _settled(
    sample: str,
    lines: list[tuple[int, OrderStatement]],
    data: Dataset | None,
    ignored: Collection[str],
    name: str,
) -> tuple[OrderStatement, ...]:
    """Return the statements of one sample; refuse statements that contradict each other."""
    so_far: list[OrderStatement] = []
    for line, statement in lines:
        so_far.append(statement)
        # The statements are checked one by one, so that the message names the line that contradicts
        # earlier lines.
        where = f"{name}, line {line}, sample {sample!r}"
        refuse_repeated(so_far, where)
        refuse_cycle(so_far, where)
    if data is None or not ignored:
        return tuple(so_far)
    return closed(so_far, data.items)


def orders_from_fractions(
    fractions: pd.DataFrame,
    *,
    errors: pd.DataFrame | float | None = None,
    depths: pd.DataFrame | float | None = None,
    threshold: float = 0.9,
    reliability: float = 1.0,
) -> dict[str, tuple[OrderStatement, ...]]:
    """Return the orders of the items of each sample that follow from cell fractions.

    Of two mutations, the one in a larger fraction of the cells came first. The reason is that all
    descendants of a cell have its mutations, so a later mutation has at most the same fraction. A
    pair of items becomes a statement if the probability that the first item came first is at least
    `threshold`. The statement has this probability. If the order of a pair follows from two other
    statements, the pair is left out, because it adds no evidence.

    Parameters
    ----------
    fractions : DataFrame
        Samples in rows, items in columns. The values are cancer cell fractions, or variant allele
        fractions of items at loci without copy number changes. NaN or 0 means that the sample does
        not have the item.
    errors : DataFrame or float, optional
        Standard errors of the fractions.
    depths : DataFrame or float, optional
        Instead of `errors`: the numbers of reads from which the fractions were computed. The errors
        are then those of a binomial proportion, after one read with the mutation and one read
        without it were added.
    threshold : float
        The smallest probability of a statement, above 0.5 and below 1.
    reliability : float
        The probability that the item with the larger fraction came first, if the fractions are
        known exactly: above 0.5 and at most 1. Choose a value below 1 if one branch of a tumour may
        overgrow another branch, or if copy numbers may be wrong.

    Returns
    -------
    dict
        The statements by sample id, for ``Dataset(data, orders=...)``.

    Examples
    --------
    >>> import pandas as pd
    >>> fractions = pd.DataFrame({"IDH1": [0.95, 0.5], "TP53": [0.4, 0.48]}, index=["s1", "s2"])
    >>> orders_from_fractions(fractions, errors=0.1)
    {'s1': (OrderStatement(before='IDH1', after='TP53', probability=0.99995),)}
    """
    for label, value, most in (("threshold", threshold, 1.0), ("reliability", reliability, 1.01)):
        if not (is_number(value) and 0.5 < value < most):
            bound = "below 1" if label == "threshold" else "at most 1"
            raise InputError(f"{label} is {value!r}; expected a number above 0.5 and {bound}.")
    if (errors is None) == (depths is None):
        raise InputError(
            "expected either errors or depths, not both. They say how uncertain the fractions are, "
            "and so which differences between fractions are significant."
        )
    values = fractions.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.nanmax(values, initial=0.0) > 1.5 or np.nanmin(values, initial=0.0) < 0.0:
        raise InputError("fractions must be shares of cells or reads, between 0 and 1 (or NaN).")
    values, variance = _moments(values, fractions, errors, depths)
    found = {}
    for i, sample in enumerate(fractions.index):
        present = np.flatnonzero(values[i] > 0.0)
        p = _larger(values[i, present], variance[i, present])
        p = np.minimum(reliability * p + (1.0 - reliability) * (1.0 - p), _MOST_CERTAIN)
        labels = [str(fractions.columns[int(j)]) for j in present]
        statements = _reduced(p, threshold, labels)
        if statements:
            found[str(sample)] = statements
    return found


def _moments(
    values: npt.NDArray[np.float64],
    fractions: pd.DataFrame,
    errors: pd.DataFrame | float | None,
    depths: pd.DataFrame | float | None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the fractions and their variances.

    With `depths`, one read with the item and one read without it are added to each fraction.
    """
    given: Any = errors if errors is not None else depths
    name = "errors" if errors is not None else "depths"
    if is_number(given):
        table = np.full(values.shape, float(given))
    else:
        if not (given.index.equals(fractions.index) and given.columns.equals(fractions.columns)):
            raise InputError(
                f"{name} must have the samples and items of fractions, in the same order."
            )
        table = given.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = (values > 0.0) & ~(table > 0.0)
    if wrong.any():
        i, j = map(int, np.argwhere(wrong)[0])
        raise InputError(
            f"{name}: sample {fractions.index[i]!r}, item {fractions.columns[j]!r}: found "
            f"{table[i, j]:g}, expected a positive number."
        )
    if errors is not None:
        return values, table**2
    share = (np.minimum(values, 1.0) * table + 1.0) / (table + 2.0)
    return np.where(values > 0.0, share, values), share * (1.0 - share) / (table + 3.0)


def _larger(
    values: npt.NDArray[np.float64], variance: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return P(fraction a > fraction b) for all pairs, assuming normal errors."""
    from scipy.special import ndtr

    distance = values[:, None] - values[None, :]
    probability: npt.NDArray[np.float64] = ndtr(
        distance / np.sqrt(variance[:, None] + variance[None, :])
    )
    return probability


def _reduced(
    p: npt.NDArray[np.float64], threshold: float, labels: list[str]
) -> tuple[OrderStatement, ...]:
    """Return the statements whose probability is at least `threshold`.

    Statements that follow from two other statements are left out.
    """
    clear = p >= threshold
    np.fill_diagonal(clear, val=False)
    implied = (clear.astype(np.int64) @ clear.astype(np.int64)) > 0
    return tuple(
        OrderStatement(labels[a], labels[b], round(float(p[a, b]), 6))
        for a, b in np.argwhere(clear & ~implied)
    )


def with_orders(
    data: Dataset, orders: Mapping[str, tuple[OrderStatement, ...]]
) -> tuple[Dataset, str]:
    """Return the data with these orders, and a sentence with the number of statements."""
    from sequela.data.dataset import Dataset as Table

    found = Table(data, orders=orders)
    count = 0 if found.orders is None else sum(map(len, found.orders))
    some = 0 if found.orders is None else sum(1 for statements in found.orders if statements)
    return found, f"{count} statements about the order of the items of {some} samples."
