"""Probabilities of missing cells, given the known cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from sequela.likelihood.completions import CHAINS, draw_cells
from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.partial import passage_in_range
from sequela.likelihood.ways import Way
from sequela.model import as_model
from sequela.samples import as_samples
from sequela.settings import read_settings
from sequela.support.errors import BudgetError, InputError
from sequela.support.random import Purpose
from sequela.support.threads import run_pieces

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike, Dataset
    from sequela.likelihood.partial import PartialSet
    from sequela.model import Model, ModelLike
    from sequela.settings import Settings, SettingsKeywords

__all__ = ["completions", "impute"]

# Number of draws per chain, for the missing cells of one sample.
_DRAWS = 500


class _Cells(NamedTuple):
    probability: NDArray[np.float64]
    se: NDArray[np.float64]
    method: str


def impute(model: ModelLike, data: DataLike, **settings: Unpack[SettingsKeywords]) -> pd.DataFrame:
    """Return the probability that each missing item is present, given the known cells.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    data : Dataset, DataFrame or array
        Samples with missing cells. Known orders are used; observation times are not used.
    **settings
        `budget`, `random_state`, `n_threads`; see `Settings`.

    Returns
    -------
    DataFrame
        One row per missing cell, in the order of samples and items, with the columns "sample",
        "item", "probability", its Monte Carlo standard error "se" (0 if exact), and "method".

    Examples
    --------
    >>> from sequela import Dataset, Model
    >>> model = Model([[0.0, 4.0], [0.0, -4.0]], ["first", "second"])
    >>> data = Dataset([[1, None], [0, None]], items=["first", "second"], samples=["x", "y"])
    >>> impute(model, data).round(3)
      sample    item  probability   se method
    0      x  second        0.505  0.0  exact
    1      y  second        0.009  0.0  exact
    """
    how = read_settings(settings, unused=("draws", "target_se"))
    given = as_model(model)
    samples = as_samples(given, data).without_times()
    if samples.missing is None:
        raise InputError("the data have no missing cells; expected at least one missing cell")
    parameters = Parameters.of(given)
    distinct = DistinctSamples.of(samples, partial=True)
    places = [int(s) for s in np.flatnonzero(samples.missing[distinct.first].any(axis=1))]
    found = dict(
        zip(
            places,
            run_pieces(
                lambda s: _cells(parameters, distinct.known(s), how, s),
                places, how.threads, "missing cells",
            ),
            strict=True,
        )
    )  # fmt: skip
    rows, columns = np.nonzero(samples.missing)
    of = [found[int(distinct.inverse[row])] for row in rows]
    # `at` is the position of each missing cell among the missing cells of its own sample.
    at = np.concatenate([np.arange(count) for count in np.bincount(rows)[np.unique(rows)]])
    return pd.DataFrame(
        {
            "sample": [samples.samples[row] for row in rows],
            "item": [samples.items[column] for column in columns],
            "probability": [cells.probability[k] for cells, k in zip(of, at, strict=True)],
            "se": [cells.se[k] for cells, k in zip(of, at, strict=True)],
            "method": [cells.method for cells in of],
        }
    )


def _cells(
    parameters: Parameters, known: PartialSet | None, settings: Settings, index: int
) -> _Cells:
    """Return the probabilities of the missing cells of one sample."""
    assert known is not None  # noqa: S101 - it has missing cells
    matter = set(known.that_matter(parameters.children))
    sets = [
        tuple(sorted(matter | known.acting_on(i, parameters.children) | {i}))
        for i in known.missing.tolist()
    ]
    size = known.present.size + max(map(len, sets))
    if size > 1 and not settings.budget.exact_fits(size, parameters.n):
        return _drawn_cells(parameters, known, settings, index)
    probability = np.empty(known.missing.size)
    solved: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for k, (item, on_lattice) in enumerate(zip(known.missing.tolist(), sets, strict=True)):
        if on_lattice not in solved:
            passage = passage_in_range(parameters, known, on_lattice)
            passage.log_p()
            solved[on_lattice] = passage.end_shares()
        shares = solved[on_lattice]
        bit = known.present.size + on_lattice.index(item)
        probability[k] = shares[np.arange(shares.size) >> bit & 1 == 1].sum()
    return _Cells(probability, np.zeros(probability.size), Way.EXACT.value)


def _drawn_cells(
    parameters: Parameters, known: PartialSet, settings: Settings, index: int
) -> _Cells:
    _refuse_orders(known)
    drawn = draw_cells(
        parameters, [known], _DRAWS, (settings.seed, Purpose.COMPLETIONS, (3, index)), 1
    )[0]
    means = drawn.mean(axis=1)
    mean = means.mean(axis=0)
    # A few chains may agree by chance. So the error is at least the error of independent draws.
    least = np.sqrt(mean * (1.0 - mean) / (CHAINS * _DRAWS))
    se = np.maximum(means.std(axis=0, ddof=1) / np.sqrt(CHAINS), least)
    return _Cells(mean, se, Way.COMPLETIONS.value)


def _refuse_orders(known: PartialSet) -> None:
    if known.statements:
        raise BudgetError(
            f"a sample with a known order has {known.missing.size} missing cells. The "
            "budget is too small to evaluate it exactly, and missing cells cannot be drawn "
            "if an order is known. "
            "Increase the budget, or use data.without_orders()"
        )


def completions(
    model: Model, data: Dataset, settings: Settings
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return possible completions of a sample, as rows of true and false, and their probabilities.

    If the lattice of the present and the missing items is beyond the budget, completions are drawn.
    """
    parameters = Parameters.of(model)
    known = DistinctSamples.of(data.without_times(), partial=True).known(0)
    assert known is not None  # noqa: S101 - it has missing cells
    size = known.present.size + known.missing.size
    if settings.budget.exact_fits(size, parameters.n):
        passage = passage_in_range(parameters, known, known.missing.tolist())
        passage.log_p()
        every = passage.end_shares()
        states = np.flatnonzero(every > 0.0)
        rows = np.zeros((states.size, parameters.n), dtype=np.bool_)
        rows[:, passage.columns.items[: passage.k]] = states[:, None] >> np.arange(passage.k) & 1
        return rows, every[states]
    _refuse_orders(known)
    key = (settings.seed, Purpose.COMPLETIONS, (4,))
    drawn = draw_cells(parameters, [known], _DRAWS, key, 1)[0]
    cells = drawn.reshape(-1, known.missing.size)
    rows = np.zeros((len(cells), parameters.n), dtype=np.bool_)
    rows[:, known.present] = True
    rows[:, known.missing] = cells
    return rows, np.full(len(cells), 1.0 / len(cells))
