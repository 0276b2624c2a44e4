"""Plans of fits: seeds, bootstraps, folds, penalties, subsets of items, and their products."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.budget import check_budget
from sequela.data._reading import find_positions
from sequela.data.dataset import Dataset
from sequela.learning.estimator import SetChain
from sequela.observation import as_observation
from sequela.repeats.fit_task import TASK, WARM_UP, QuietFit
from sequela.repeats.plan import Plan
from sequela.support.errors import InputError
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["plan_fits"]

# Of the options of SetChain, those that the plan and `run` decide.
_DECIDED = ("random_state", "n_threads", "checkpoint", "checkpoint_every", "progress")


def plan_fits(
    data: Any,
    *,
    seed: int,
    seeds: int = 0,
    bootstraps: int = 0,
    folds: int = 0,
    penalties: Sequence[float] | None = None,
    item_subsets: Sequence[int] | None = None,
    random_subsets: int = 0,
    orders: Iterable[object] | None = None,
    times: Iterable[object] | None = None,
    **options: Any,
) -> Plan:
    """Return a plan of fits to variations of the same data, for `run`.

    Kinds of variation that are given together multiply: 100 bootstraps at 5 penalties are 500 fits.

    Parameters
    ----------
    data : Dataset, DataFrame, array or list of sets
        The samples.
    seed : int
        What everything random is derived from.
    seeds : int
        Fits to the same samples from so many random starts, each with a seed of its own. (All
        other fits begin at the model without interactions; `independent_start` says otherwise.)
    bootstraps : int
        Fits to so many samples of the samples, drawn with replacement, each as many as there are.
    folds : int
        Fits to all samples but those of one of so many folds, and the held-out log-likelihood of
        these; not together with bootstraps.
    penalties : sequence of float or None
        Fits with each of these penalties; None: with `penalty`, an option of `SetChain`.
    item_subsets : sequence of int or None
        Fits to so many items only: of each size the most frequent ones, or random ones.
    random_subsets : int
        So many random subsets of each size in `item_subsets`; 0: the most frequent items.
    orders : list of labels or None
        Also record P(a before b) of all pairs of these items, see `order_matrix`.
    times : array or None
        Observation times, as in `SetChain.fit`.
    **options
        Options of `SetChain`, such as ``penalty``, ``n_starts``, ``tol`` or ``budget``.

    Returns
    -------
    Plan
        Its cases have the entries "penalty" and, where they vary, "items" (how many), "subset",
        "bootstrap", "fold" and "start", all counted from 0.

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
    samples = Dataset.coerce(data, times=times)
    penalties = None if penalties is None else list(penalties)
    settings = _check_options(options, penalties)
    strengths = [settings.pop("penalty")] if penalties is None else list(penalties)
    varied: list[list[dict[str, Any]]] = [
        _subsets(samples, item_subsets, random_subsets),
        _resampled(samples, bootstraps, folds),
        [{"start": r} for r in range(_count("seeds", seeds))] or [{}],
        [{"penalty": float(strength)} for strength in strengths],
    ]
    if penalties is None and all(kind == [{}] for kind in varied[:-1]):
        raise InputError(
            "nothing is repeated; give seeds, bootstraps, folds, penalties or item_subsets"
        )
    if seeds:
        settings.setdefault("independent_start", False)
    common: dict[str, Any] = {"plan_seed": seed, "options": settings}
    if folds:
        common["folds"] = folds
    if orders is not None:
        common["orders"] = _labels(samples, orders)
    cases = [
        {key: value for part in reversed(parts) for key, value in part.items()}
        for parts in product(*varied)
    ]
    return Plan(TASK, cases, seed, common, samples, WARM_UP)


def _count(name: str, value: int) -> int:
    return positive_integer(name, value, least=0)


def _check_options(options: dict[str, Any], penalties: Sequence[float] | None) -> dict[str, Any]:
    """Return the options of the fits as plain values, the penalty among them."""
    known = set(inspect.signature(SetChain).parameters)
    for name in options:
        if name in _DECIDED:
            raise InputError(f"{name} is not for a plan: `seed`, `run` and its folder decide it")
        if name not in known:
            names = ", ".join(sorted(known - set(_DECIDED)))
            raise InputError(f"there is no option {name!r}; the options of a fit are {names}")
    if penalties is not None and "penalty" in options:
        raise InputError("penalty and penalties are both given; expected one of them")
    if penalties is not None and len(penalties) == 0:
        raise InputError("penalties is empty; expected at least one, such as [0.1, 0.01]")
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in options.items()}
    settings = plain if penalties is not None else {"penalty": 0.01, **plain}
    for strength in penalties or [settings["penalty"]]:
        QuietFit(**{**settings, "penalty": strength}).check()
    if settings.get("budget") is not None:
        settings["budget"] = asdict(check_budget(settings["budget"]))
    if settings.get("observation") is not None:
        settings["observation"] = as_observation(settings["observation"]).to_json()
    return settings


def _subsets(
    data: Dataset, sizes: Sequence[int] | None, random_subsets: int
) -> list[dict[str, int]]:
    if sizes is None:
        if _count("random_subsets", random_subsets):
            raise InputError("random_subsets needs item_subsets, the sizes of the subsets")
        return [{}]
    for size in sizes:
        if positive_integer("item_subsets", size) > data.n_items:
            raise InputError(f"item_subsets has {size}, more than the {data.n_items} items")
    if not _count("random_subsets", random_subsets):
        return [{"items": int(size)} for size in sizes]
    return [{"subset": r, "items": int(size)} for size in sizes for r in range(random_subsets)]


def _resampled(data: Dataset, bootstraps: int, folds: int) -> list[dict[str, int]]:
    if _count("bootstraps", bootstraps) and _count("folds", folds):
        raise InputError(
            "bootstraps and folds are both given; a held-out sample would also be fitted to. Make "
            "two plans"
        )
    if folds:
        positive_integer("folds", folds, least=2)
        if folds > data.n_samples:
            raise InputError(f"folds is {folds}, more than the {data.n_samples} samples")
    if bootstraps:
        return [{"bootstrap": b} for b in range(bootstraps)]
    return [{"fold": f} for f in range(folds)] or [{}]


def _labels(data: Dataset, orders: Iterable[object]) -> list[str]:
    labels = [str(label) for label in orders]
    find_positions(labels, data.items, "orders")
    if len(set(labels)) < 2:
        raise InputError(f"orders has {len(set(labels))} items; an order needs two")
    return labels
