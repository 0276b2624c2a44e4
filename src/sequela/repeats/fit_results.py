"""The results of the fits of a plan: a table, the models, and how stable interactions are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.model import Model
from sequela.observation import take_recorded_observation
from sequela.repeats.fit_task import TASK, item_places
from sequela.repeats.records import read_plan, record_path, records, result_table
from sequela.support.errors import InputError
from sequela.support.naming import argument, either
from sequela.support.schema import AnyNumber, Count, Place, read_fields
from sequela.support.validation import is_number

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from sequela.data.dataset import Dataset
    from sequela.repeats.plan import Plan

__all__ = ["fit_table", "models", "pair_orders", "summarise"]


def _read_fits(folder: str | os.PathLike[str]) -> tuple[Plan, Dataset]:
    plan = read_plan(folder)
    if plan.task != TASK or plan.data is None:
        raise InputError(
            f"{str(folder)!r} has repeats of {plan.task!r}, not of fits; read "
            "them with `sequela.repeats.collect`"
        )
    return plan, plan.data


def fit_table(folder: str | os.PathLike[str], *, partial: bool = False) -> pd.DataFrame:
    """Return one row per fit of a plan of `plan_fits`.

    Parameters
    ----------
    folder : path
        The folder in which the plan was run.
    partial : bool
        Whether missing repeats may be left out. If False, a missing repeat is an error.

    Returns
    -------
    DataFrame
        The index is the number of the repeat. The columns are "seed", "penalty", the other entries
        of the cases, "objective", "objective_se", "kkt_residual", "converged", "interactions",
        "message" (why the fit ended) and "seconds". If the plan has folds, "held_out" (the mean
        log-likelihood of the held-out samples) and "held_out_samples" come before "seconds".

    Examples
    --------
    >>> import tempfile
    >>> from sequela import example_theta, simulate
    >>> from sequela.repeats import fit_table, plan_fits, run
    >>> sets = simulate(example_theta(), 300, random_state=1).to_dataset().without_times()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = run(plan_fits(sets, penalties=[0.1, 0.02], seed=1), folder, backend="threads")
    ...     table = fit_table(folder)
    >>> table[["penalty", "interactions"]].to_dict("list")
    {'penalty': [0.1, 0.02], 'interactions': [0, 7]}
    """
    plan, data = _read_fits(folder)
    for _ in _fit_records(plan, data, folder, partial):
        pass
    return result_table(plan, folder, partial=partial, nested=False)


def models(folder: str | os.PathLike[str], *, partial: bool = False) -> dict[int, Model]:
    """Return the models of a plan of `plan_fits`: the number of each repeat and its model.

    The metadata of a model are the seed and the case of its fit, "objective", "kkt_residual" and
    "converged".

    Examples
    --------
    >>> import tempfile
    >>> from sequela import example_theta, order_probability, simulate
    >>> from sequela.repeats import models, plan_fits, run
    >>> sets = simulate(example_theta(), 300, random_state=1).to_dataset().without_times()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = run(plan_fits(sets, bootstraps=3, seed=1), folder, backend="threads")
    ...     learned = models(folder)
    >>> {repeat: model.n_items for repeat, model in learned.items()}
    {0: 10, 1: 10, 2: 10}
    """
    plan, data = _read_fits(folder)
    return {
        index: Model(
            theta,
            items,
            _metadata(record),
            observation=take_recorded_observation(dict(plan.common["options"])),
        )
        for index, record, theta, items in _thetas(plan, data, folder, partial)
    }


def _thetas(
    plan: Plan, data: Dataset, folder: str | os.PathLike[str], partial: bool
) -> Iterator[tuple[int, dict[str, Any], np.ndarray, list[str]]]:
    """Yield (number of the repeat, record, theta, labels of the items) of each fit."""
    for index, record in _fit_records(plan, data, folder, partial):
        case = record["case"]
        places = item_places(data, plan.common["plan_seed"], case.get("items"), case.get("subset"))
        theta = np.zeros((data.n_items, data.n_items))
        entries = record["result"]["theta"]
        theta[entries["rows"], entries["columns"]] = entries["values"]
        yield index, record, theta[np.ix_(places, places)], [data.items[i] for i in places]


@dataclass(frozen=True)
class _Entries:
    """The entries of theta that are not zero."""

    rows: list[Count]
    columns: list[Count]
    values: list[float]


@dataclass(frozen=True)
class _FitResult:
    """The result of a fit in its record; see `fit_task.learn`."""

    objective: AnyNumber
    objective_se: AnyNumber
    kkt_residual: AnyNumber
    converged: bool
    interactions: Count
    message: str
    theta: _Entries
    held_out: AnyNumber | None = None
    held_out_samples: Count | None = None
    orders: list[tuple[str, str, AnyNumber, AnyNumber]] | None = None


def _fit_records(
    plan: Plan, data: Dataset, folder: str | os.PathLike[str], partial: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Check the record of each fit, and yield (number of the repeat, record)."""
    for index, record in records(plan, folder, partial=partial):
        place = Place(record_path(folder, index), "Delete it and run again", "result")
        theta = read_fields(_FitResult, record["result"], place).theta
        lengths = {len(theta.rows), len(theta.columns), len(theta.values)}
        largest = max([-1, *theta.rows, *theta.columns])
        if len(lengths) > 1 or largest >= data.n_items:
            raise place.at("theta").error(
                f"has {len(theta.rows)} rows, {len(theta.columns)} columns and "
                f"{len(theta.values)} values, with positions up to {largest}",
                f"the same number of each, and positions below {data.n_items}",
            )
        yield index, record


def _metadata(record: dict[str, Any]) -> dict[str, Any]:
    result = record["result"]
    names = ("objective", "kkt_residual", "converged")
    return {
        **record["case"],
        "seed": record["seed"],
        **{name: result[name] for name in names},
    }


def summarise(
    folder: str | os.PathLike[str], *, level: float = 0.9, partial: bool = False
) -> pd.DataFrame:
    """Return how often and how strongly each interaction was found by fits of `plan_fits`.

    Fits with different penalties or numbers of items are summarised separately. Bootstraps, folds,
    starts and random subsets of the same size are summarised together.

    Parameters
    ----------
    folder : path
        The folder in which the plan was run.
    level : float
        The share of the fits whose effect lies between "lower" and "upper".
    partial : bool
        Whether missing repeats may be left out. If False, a missing repeat is an error.

    Returns
    -------
    DataFrame
        The columns are "penalty" and "items" (only if they vary), "from", "to", "share", "median",
        "lower", "upper" and "fits". "fits" is the number of fits that have both items; other fits
        are ignored. "share" is the share of these fits in which the interaction is not zero.
        "median", "lower" and "upper" are quantiles of its values in these fits, zeros included.
        Interactions that no fit found are left out. The interactions that were found most often
        come first.

    Examples
    --------
    See `plan_fits`.
    """
    if not (is_number(level) and 0.0 < level < 1.0):
        raise InputError(
            f"{argument('level')} is {level!r}; expected a number between 0 and 1, such as 0.9"
        )
    plan, data = _read_fits(folder)
    varied = [
        name for name in ("penalty", "items") if len({case.get(name) for case in plan.cases}) > 1
    ]
    groups: dict[tuple[Any, ...], list[tuple[np.ndarray, np.ndarray]]] = {}
    position = {label: place for place, label in enumerate(data.items)}
    for _, record, theta, items in _thetas(plan, data, folder, partial):
        key = tuple(record["case"].get(name) for name in varied)
        places = np.array([position[label] for label in items])
        groups.setdefault(key, []).append((places, theta))
    tables = []
    for key, fits in groups.items():
        table = _stability(fits, data, level)
        for at, name in enumerate(varied):
            table.insert(at, name, key[at])
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _stability(
    fits: list[tuple[np.ndarray, np.ndarray]], data: Dataset, level: float
) -> pd.DataFrame:
    tail = (1.0 - level) / 2.0
    rows = []
    for i in range(data.n_items):
        # Handle one row of theta at a time, because the rows of all fits together may not fit into
        # memory.
        values = np.full((len(fits), data.n_items), np.nan)
        for at, (places, theta) in enumerate(fits):
            mine = np.flatnonzero(places == i)
            if mine.size:
                values[at, places] = theta[mine[0]]
        values[:, i] = np.nan
        for j in np.flatnonzero(np.nan_to_num(values).any(axis=0)):
            there = values[~np.isnan(values[:, j]), j]
            lower, median, upper = np.quantile(there, [tail, 0.5, 1.0 - tail])
            share = np.count_nonzero(there) / there.size
            rows.append(
                (data.items[i], data.items[j], share, median, lower, upper, there.size)
            )  # fmt: skip
    names = ["from", "to", "share", "median", "lower", "upper", "fits"]
    table = pd.DataFrame(rows, columns=names)
    order = np.lexsort((-table["median"].abs().to_numpy(), -table["share"].to_numpy()))
    return table.iloc[order].reset_index(drop=True)


def pair_orders(folder: str | os.PathLike[str], *, partial: bool = False) -> pd.DataFrame:
    """Return the orders that each fit recorded, for a plan of ``plan_fits(..., orders=...)``.

    Returns
    -------
    DataFrame
        One row per fit and pair of items. The columns are "repeat", "first", "second",
        "probability" (the probability that "first" came before "second", among samples with both
        items) and "se" (the Monte Carlo standard error of the probability).

    Examples
    --------
    >>> import tempfile
    >>> from sequela import example_theta, simulate
    >>> from sequela.repeats import pair_orders, plan_fits, run
    >>> sets = simulate(example_theta(), 300, random_state=1).to_dataset().without_times()
    >>> plan = plan_fits(sets, bootstraps=3, orders=["step 1", "step 2"], seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = run(plan, folder, backend="threads")
    ...     pair_orders(folder)[["repeat", "first", "second"]]
       repeat   first  second
    0       0  step 1  step 2
    1       1  step 1  step 2
    2       2  step 1  step 2
    """
    plan, data = _read_fits(folder)
    if "orders" not in plan.common:
        raise InputError(
            f"the plan in {str(folder)!r} records no orders; "
            + either(
                "make a plan with orders=[...], or compute the orders from the models that "
                "`models` returns",
                "make a plan with `sequela repeat --orders`",
            )
        )
    rows = [
        (index, *pair)
        for index, record in _fit_records(plan, data, folder, partial)
        for pair in record["result"].get("orders") or []
    ]
    return pd.DataFrame(rows, columns=["repeat", "first", "second", "probability", "se"])
