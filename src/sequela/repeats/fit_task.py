"""One fit of a plan, on a worker.

What is drawn for a fit (which samples, which items) depends on the plan's seed and on the number of
the bootstrap, fold or subset, never on the repeat: the third bootstrap is the same samples at every
penalty.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.data.dataset import Dataset
from sequela.learning.estimator import SetChain
from sequela.likelihood.budget import Budget
from sequela.questions.order import order_matrix
from sequela.support.random import stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TASK", "WARM_UP", "QuietFit", "item_places", "learn", "warm_up"]

TASK = "sequela.repeats.fit_task:learn"
WARM_UP = "sequela.repeats.fit_task:warm_up"
# Streams of random numbers: the first key of each.
_BOOTSTRAP, _FOLDS, _SUBSET = 1, 2, 3
# A set of three items is beyond it: then fits are sampled.
_NOTHING_EXACT = Budget(work=40.0)


class QuietFit(SetChain):
    """A fit whose warnings are values of its record; one that was interrupted is none."""

    def check(self) -> None:
        """Refuse options that do not fit."""
        self._options(self.penalty, 0)

    def _warn(self, data: Dataset, *, interrupted: bool) -> None:  # noqa: ARG002 - as it is called
        if interrupted:
            raise KeyboardInterrupt


def learn(
    *,
    data: Dataset,
    seed: int,
    plan_seed: int,
    options: dict[str, Any],
    penalty: float,
    items: int | None = None,
    subset: int | None = None,
    bootstrap: int | None = None,
    fold: int | None = None,
    folds: int = 0,
    start: int | None = None,  # noqa: ARG001 - its seed is what makes it different
    orders: list[str] | None = None,
) -> dict[str, Any]:
    """Do one fit of a plan of `plan_fits`; return plain values.

    theta is a list of entries that are not zero, by the positions of the items in `data`.
    """
    places = item_places(data, plan_seed, items, subset)
    training, held_out = _split(data, plan_seed, bootstrap, fold, folds)
    if items is not None:
        labels = [data.items[place] for place in places]
        training = training.select_items(labels)
        held_out = None if held_out is None else held_out.select_items(labels)
    chain = _chain(options, penalty, seed).fit(training)
    rows, columns = np.nonzero(chain.theta_)
    result: dict[str, Any] = {
        "objective": chain.objective_,
        "objective_se": chain.objective_se_,
        "kkt_residual": chain.kkt_residual_,
        "converged": bool(chain.converged_),
        "interactions": int(np.count_nonzero(rows != columns)),
        "message": chain.message_,
        "theta": {
            "rows": places[rows].tolist(),
            "columns": places[columns].tolist(),
            "values": chain.theta_[rows, columns].tolist(),
        },
    }
    if held_out is not None:
        result["held_out"] = chain.score(held_out)
        result["held_out_samples"] = held_out.n_samples
    if orders is not None:
        result["orders"] = _pairs(chain, orders, seed)
    return result


def _chain(options: dict[str, Any], penalty: float, seed: int) -> QuietFit:
    settings = dict(options)
    if settings.get("budget") is not None:
        settings["budget"] = Budget(**settings["budget"])
    return QuietFit(penalty, **settings, random_state=seed, progress=False)


def item_places(
    data: Dataset, plan_seed: int, items: int | None, subset: int | None
) -> NDArray[np.int64]:
    """Return the positions of the items of a fit: all, the most frequent, or a random subset."""
    if items is None:
        return np.arange(data.n_items)
    if subset is None:
        order = np.argsort(-data.values.sum(axis=0, dtype=np.int64), kind="stable")
        return order[:items]
    drawn = stream(plan_seed, _SUBSET, items, subset).choice(data.n_items, items, replace=False)
    return np.sort(drawn)


def _split(
    data: Dataset, plan_seed: int, bootstrap: int | None, fold: int | None, folds: int
) -> tuple[Dataset, Dataset | None]:
    """Return the samples to fit to, and those that are held out."""
    if bootstrap is not None:
        rows = stream(plan_seed, _BOOTSTRAP, bootstrap).integers(
            data.n_samples, size=data.n_samples
        )
        times = None if data.times is None else data.times[rows]
        return Dataset(data.values[rows], items=data.items, times=times), None
    if fold is None:
        return data, None
    fold_of = stream(plan_seed, _FOLDS, folds).permutation(data.n_samples) % folds
    return data.select_samples(fold_of != fold), data.select_samples(fold_of == fold)


def _pairs(chain: SetChain, orders: list[str], seed: int) -> list[tuple[str, str, float, float]]:
    there = [label for label in orders if label in chain.model_.items]
    if len(there) < 2:
        return []
    pairs = order_matrix(chain, there, budget=chain.budget, random_state=seed).pairs(as_given=True)
    columns = (pairs[name].tolist() for name in ("first", "second", "probability", "se"))
    return list(zip(*columns, strict=True))


def warm_up(*, data: Dataset, options: dict[str, Any], **common: Any) -> None:
    """Compile what the fits will need, with a fit of a moment to made-up samples."""
    timed = data.times is not None
    sets = Dataset(
        [[1, 1, 1], [1, 1, 0], [0, 1, 1], [0, 0, 0]],
        items=["a", "b", "c"],
        times=[0.5, 1.0, 2.0, 0.1] if timed else None,
    )
    brief = {**options, "n_starts": 1, "max_iter": 2, "budget": None}
    budget = Budget(**options["budget"]) if options.get("budget") is not None else Budget()
    largest = int(data.set_sizes.max())
    budgets: list[dict[str, Any] | None] = [None]
    if not budget.exact_fits(largest, data.n_items, timed=timed):
        budgets.append(asdict(_NOTHING_EXACT))
    for limit in budgets:
        # A small penalty: without interactions the kernel that moves them would not be used.
        chain = _chain({**brief, "budget": limit}, 1e-3, 0).fit(sets)
        if "folds" in common:
            chain.score(sets)
    if "orders" in common:
        for method in ("exact", "simulation"):
            order_matrix(chain, ["a", "b"], method=method, draws=100, random_state=0)
