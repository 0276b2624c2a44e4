"""Plan fits to variations of the same data: bootstraps, folds, penalties, subsets of items."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from sequela.budget import check_budget
from sequela.data._reading import unknown
from sequela.data.dataset import Dataset
from sequela.observation import as_observation
from sequela.repeats.fit_task import TASK, WARM_UP, QuietFit
from sequela.repeats.plan import Plan
from sequela.support.errors import InputError
from sequela.support.keywords import build_options, check_keywords
from sequela.support.labels import compose_all
from sequela.support.naming import argument
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Unpack

    from sequela.budget import Budget
    from sequela.data.dataset import DataLike
    from sequela.observation import Observation

__all__ = ["FitKeywords", "PlanKeywords", "Repeats", "RepeatsKeywords", "plan_fits"]

# The options of SetChain that users cannot give, because the plan or `run` sets them.
_DECIDED = ("random_state", "n_threads", "checkpoint", "checkpoint_every", "progress")


class RepeatsKeywords(TypedDict, total=False):
    """The keywords that say what is repeated; see `Repeats`."""

    seeds: int
    bootstraps: int
    folds: int
    penalties: Sequence[float] | None
    item_subsets: Sequence[int] | None
    random_subsets: int


class FitKeywords(TypedDict, total=False):
    """The options of `SetChain` that are the same for all fits of a plan."""

    penalty: float
    solver: str
    n_starts: int
    start_widths: Sequence[float]
    independent_start: bool
    max_iter: int
    tol: float
    observation: Observation | None
    budget: Budget | None
    chains: int


class PlanKeywords(RepeatsKeywords, FitKeywords, total=False):
    """The ``**options`` of `plan_fits`: what is repeated, and the options of `SetChain`."""


@dataclass(frozen=True)
class Repeats:
    """The kinds of variation in a plan of fits. Several kinds give a fit for every combination.

    Parameters
    ----------
    seeds : int
        Number of random starts; 0 means that the start does not vary.
    bootstraps : int
        Number of bootstraps.
    folds : int
        Number of folds. Each fold is held out once. Folds and bootstraps cannot be combined.
    penalties : sequence of float or None
        The penalties to fit with.
    item_subsets : sequence of int or None
        The sizes of the subsets of items.
    random_subsets : int
        Number of random subsets of each size; 0 means that the most frequent items are used
        instead.

    Examples
    --------
    >>> data = Dataset([[1, 0, 1], [0, 1, 1]])
    >>> Repeats(bootstraps=2, item_subsets=[2]).cases(data, [0.01])
    [{'penalty': 0.01, 'bootstrap': 0, 'items': 2}, {'penalty': 0.01, 'bootstrap': 1, 'items': 2}]
    """

    seeds: int = 0
    bootstraps: int = 0
    folds: int = 0
    penalties: Sequence[float] | None = None
    item_subsets: Sequence[int] | None = None
    random_subsets: int = 0

    def __post_init__(self) -> None:
        for name in ("seeds", "bootstraps", "folds", "random_subsets"):
            value = positive_integer(name, getattr(self, name), least=0)
            object.__setattr__(self, name, value)
        if self.bootstraps and self.folds:
            raise InputError(
                "bootstraps and folds are both given, but the samples of a bootstrap could include "
                "copies of a held-out sample. Make two plans"
            )
        if self.folds:
            positive_integer("folds", self.folds, least=2)
        if self.penalties is not None:
            object.__setattr__(self, "penalties", tuple(self.penalties))
            if not self.penalties:
                raise InputError("penalties is empty; expected at least one, such as [0.1, 0.01]")
        if self.item_subsets is not None:
            sizes = tuple(positive_integer("item_subsets", size) for size in self.item_subsets)
            object.__setattr__(self, "item_subsets", sizes)
            if not sizes:
                raise InputError(
                    f"{argument('item_subsets')} is empty; expected at least one number, such as 10"
                )
        elif self.random_subsets:
            raise InputError(
                f"{argument('random_subsets')} needs {argument('item_subsets')}, the sizes of "
                "the subsets"
            )
        counts = (self.seeds, self.bootstraps, self.folds)
        if not any(counts) and self.penalties is None and self.item_subsets is None:
            raise InputError(
                "nothing is repeated; give "
                + ", ".join(map(argument, ("seeds", "bootstraps", "folds", "penalties")))
                + f" or {argument('item_subsets')}"
            )

    def cases(self, data: Dataset, penalties: Sequence[float]) -> list[dict[str, Any]]:
        """Return one case per fit. All cases with the same subset of items are adjacent.

        Parameters
        ----------
        data : Dataset
            The samples. There must be at least as many samples as folds, and at least as many items
            as the largest subset.
        penalties : sequence of float
            The penalties to fit with.
        """
        if self.folds > data.n_samples:
            raise InputError(
                f"folds is {self.folds}, more than the {data.n_samples} samples; give a smaller "
                "number"
            )
        varied: list[list[dict[str, Any]]] = [
            self._subsets(data),
            [{"bootstrap": b} for b in range(self.bootstraps)]
            or [{"fold": f} for f in range(self.folds)]
            or [{}],
            [{"start": r} for r in range(self.seeds)] or [{}],
            [{"penalty": float(strength)} for strength in penalties],
        ]
        return [
            {key: value for part in reversed(parts) for key, value in part.items()}
            for parts in product(*varied)
        ]

    def _subsets(self, data: Dataset) -> list[dict[str, Any]]:
        if self.item_subsets is None:
            return [{}]
        for size in self.item_subsets:
            if size > data.n_items:
                raise InputError(
                    f"{argument('item_subsets')} has {size}, more than the {data.n_items} items"
                )
        if not self.random_subsets:
            return [{"items": size} for size in self.item_subsets]
        numbers = range(self.random_subsets)
        return [{"subset": r, "items": size} for size in self.item_subsets for r in numbers]


def plan_fits(
    data: DataLike,
    *,
    seed: int,
    orders: Iterable[object] | None = None,
    times: Iterable[object] | None = None,
    **options: Unpack[PlanKeywords],
) -> Plan:
    """Return a plan of fits to variations of the same data, for `run`.

    If several kinds of variation are given, a fit is made for every combination. For example, 100
    bootstraps and 5 penalties give 500 fits.

    Parameters
    ----------
    data : Dataset, DataFrame, array or list of sets
        The samples.
    seed : int
        The seed from which all random numbers are derived.
    orders : list of labels or None
        Items. Each fit also records P(a before b) for every pair of these items. See
        `order_matrix`.
    times : array or None
        Observation times, as in `SetChain.fit`.
    **options
        What is repeated (at least one kind), and how each model is learned:

        seeds : int
            Number of fits to the same samples from random starts, each with its own seed. (All
            other fits start at the model without interactions, unless ``independent_start=False``.)
        bootstraps : int
            Number of bootstraps. Each bootstrap is a fit to samples that are drawn from the data
            with replacement. It has as many samples as the data.
        folds : int
            Number of folds. Each fit leaves one fold out and records the log-likelihood of the
            samples in this fold. Cannot be combined with `bootstraps`.
        penalties : sequence of float or None
            Make fits with each of these penalties, instead of the single value of `penalty`. Give
            only one of the two.
        item_subsets : sequence of int or None
            Make fits to subsets of the items with these sizes.
        random_subsets : int
            Number of random subsets of each size in `item_subsets`. With the default, 0, a subset
            of size N consists of the N most frequent items.
        penalty, solver, n_starts, start_widths, independent_start, max_iter, tol
            As in `SetChain`.
        observation, budget, chains
            As in `SetChain`.

    Returns
    -------
    Plan
        Each case has the entry "penalty", and one more entry for everything else that varies:
        "items" (the number of items), or "subset", "bootstrap", "fold" and "start" (numbers that
        are counted from 0).

    Examples
    --------
    >>> import tempfile
    >>> from sequela import example_theta, simulate
    >>> from sequela.repeats import plan_fits, run, summarise
    >>> sets = simulate(example_theta(), 400, random_state=1).to_dataset().without_times()
    >>> plan = plan_fits(sets, bootstraps=4, penalty=0.05, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = run(plan, folder, backend="threads")
    ...     summary = summarise(folder)
    >>> summary[["from", "to", "share"]].head(2)
         from      to  share
    0   right    left    1.0
    1  step 1  step 2    1.0
    """
    for name in _DECIDED:
        if name in options:
            raise InputError(
                f"{name} cannot be set for a plan; use `seed`, or the arguments of `run`"
            )
    check_keywords(plan_fits, options, PlanKeywords)
    repeats = build_options(Repeats, options)
    samples = Dataset.coerce(data, times=times)
    penalties, settings = _fit_options(options, repeats.penalties)
    if repeats.seeds:
        settings.setdefault("independent_start", False)
    common: dict[str, Any] = {"plan_seed": seed, "options": settings}
    if repeats.folds:
        common["folds"] = repeats.folds
    if orders is not None:
        common["orders"] = _labels(samples, orders)
    return Plan(TASK, repeats.cases(samples, penalties), seed, common, samples, WARM_UP)


def _fit_options(
    given: Mapping[str, Any], penalties: Sequence[float] | None
) -> tuple[Sequence[float], dict[str, Any]]:
    """Return the penalties, and the other options of the fits as plain values."""
    settings = {
        name: given[name].item() if isinstance(given[name], np.generic) else given[name]
        for name in FitKeywords.__annotations__
        if name in given
    }
    if penalties is None:
        penalties = [settings.pop("penalty", QuietFit().penalty)]
    elif "penalty" in settings:
        raise InputError("penalty and penalties are both given; expected one of them")
    for strength in penalties:
        QuietFit(strength, **settings).check()
    if settings.get("budget") is not None:
        settings["budget"] = asdict(check_budget(settings["budget"]))
    if settings.get("observation") is not None:
        settings["observation"] = as_observation(settings["observation"]).to_json()
    return penalties, settings


def _labels(data: Dataset, orders: Iterable[object]) -> list[str]:
    labels = compose_all(map(str, orders))
    for label in labels:
        if label not in data.items:
            raise InputError(
                f"orders: {unknown(label, data.items)} is not among the {data.n_items} items; see "
                "Dataset.items"
            )
    if len(set(labels)) < 2:
        raise InputError(f"orders is {labels!r}; an order needs two different items")
    return labels
