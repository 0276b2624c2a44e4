"""Run one fit of a plan on a worker.

The samples and items that are drawn for a fit depend on the seed of the plan and on the number of
the bootstrap, fold or subset, but not on the number of the repeat. For example, the third bootstrap
has the same samples for all penalties.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.budget import Budget
from sequela.data.dataset import Dataset
from sequela.learning.learner import Learner
from sequela.learning.solvers.contract import Status
from sequela.observation import take_recorded_observation
from sequela.support.random import PlanDraw, plan_stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TASK", "WARM_UP", "QuietFit", "item_places", "learn", "warm_up"]

TASK = "sequela.repeats.fit_task:learn"
WARM_UP = "sequela.repeats.fit_task:warm_up"
# With this budget, not even a set of three items is evaluated exactly, so all larger sets are
# sampled.
_NOTHING_EXACT = Budget(work=40.0)


class QuietFit(Learner):
    """A learner that gives no warnings, because its record says how the fit ended.

    If the fit was interrupted, a KeyboardInterrupt is raised, so that nothing is recorded.
    """

    def check(self) -> None:
        """Raise an error if an option is invalid."""
        self._options(self.penalty, 0)

    def _warn(self, data: Dataset) -> None:  # noqa: ARG002 - the base class passes it
        if self.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt


@dataclass(frozen=True)
class FitCase:
    """The case of a plan that describes one fit.

    Attributes
    ----------
    penalty : float
        The penalty.
    items : int or None
        Number of items that the fit uses; None means all items.
    subset : int or None
        The number of the random subset of this many items, counted from 0. None means the most
        frequent items.
    bootstrap : int or None
        The number of the bootstrap, counted from 0. None means that the fit uses the samples
        themselves.
    fold : int or None
        The number of the fold that is held out, counted from 0. None means that no fold is held
        out.
    folds : int
        Number of folds.
    start : int or None
        The number of the random start, counted from 0. Starts differ in their seeds.
    """

    penalty: float
    items: int | None = None
    subset: int | None = None
    bootstrap: int | None = None
    fold: int | None = None
    folds: int = 0
    start: int | None = None


def learn(
    *,
    data: Dataset,
    seed: int,
    plan_seed: int,
    options: dict[str, Any],
    orders: list[str] | None = None,
    **which: Any,
) -> dict[str, Any]:
    """Run one fit of a plan of `plan_fits`; return its results as plain values.

    `which` contains the fields of a `FitCase`. The result contains only the nonzero entries of
    theta. Their rows and columns are positions of items in `data`.
    """
    case = FitCase(**which)
    places = item_places(data, plan_seed, case.items, case.subset)
    training, held_out = _split(data, plan_seed, case)
    if case.items is not None:
        labels = [data.items[place] for place in places]
        training = training.select_items(labels)
        held_out = None if held_out is None else held_out.select_items(labels)
    learner = _learner(options, case.penalty, seed).fit(training)
    rows, columns = np.nonzero(learner.theta_)
    result: dict[str, Any] = {
        "objective": learner.objective_,
        "objective_se": learner.objective_se_,
        "kkt_residual": learner.kkt_residual_,
        "converged": bool(learner.converged_),
        "interactions": int(np.count_nonzero(rows != columns)),
        "message": learner.message_,
        "theta": {
            "rows": places[rows].tolist(),
            "columns": places[columns].tolist(),
            "values": learner.theta_[rows, columns].tolist(),
        },
    }
    if held_out is not None:
        result["held_out"] = float(learner.evaluate(held_out).value)
        result["held_out_samples"] = held_out.n_samples
    if orders is not None:
        result["orders"] = _pairs(learner, orders, seed)
    return result


def _learner(options: dict[str, Any], penalty: float, seed: int) -> QuietFit:
    settings = dict(options)
    if settings.get("budget") is not None:
        settings["budget"] = Budget(**settings["budget"])
    settings["observation"] = take_recorded_observation(settings)
    return QuietFit(penalty, **settings, random_state=seed, progress=False)


def item_places(
    data: Dataset, plan_seed: int, items: int | None, subset: int | None
) -> NDArray[np.int64]:
    """Return the positions of the items of a fit: all, the most frequent, or a random subset."""
    if items is None:
        return np.arange(data.n_items)
    if subset is None:
        order = np.argsort(-np.nan_to_num(data.known_shares), kind="stable")
        return order[:items]
    drawn = plan_stream(plan_seed, PlanDraw.SUBSET, items, subset).choice(
        data.n_items, items, replace=False
    )
    return np.sort(drawn)


def _split(data: Dataset, plan_seed: int, case: FitCase) -> tuple[Dataset, Dataset | None]:
    """Return the samples to which the model is fitted, and the held-out samples or None."""
    if case.bootstrap is not None:
        rows = plan_stream(plan_seed, PlanDraw.BOOTSTRAP, case.bootstrap).integers(
            data.n_samples, size=data.n_samples
        )
        return data.take_rows(rows), None
    if case.fold is None:
        return data, None
    shuffled = plan_stream(plan_seed, PlanDraw.FOLDS, case.folds).permutation(data.n_samples)
    held_out = shuffled % case.folds == case.fold
    return data.select_samples(~held_out), data.select_samples(held_out)


def _pairs(learner: Learner, orders: list[str], seed: int) -> list[tuple[str, str, float, float]]:
    from sequela.questions.order import order_matrix

    there = [label for label in orders if label in learner.model_.items]
    if len(there) < 2:
        return []
    pairs = order_matrix(learner, there, budget=learner.budget, random_state=seed).pairs(
        as_given=True
    )
    columns = (pairs[name].tolist() for name in ("first", "second", "probability", "se"))
    return list(zip(*columns, strict=True))


def warm_up(*, data: Dataset, options: dict[str, Any], **common: Any) -> None:
    """Compile the kernels that the fits need, by a short fit to made-up samples."""
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
        # With a small penalty there are interactions, so their kernel is compiled, too.
        learner = _learner({**brief, "budget": limit}, 1e-3, 0).fit(sets)
        if "folds" in common:
            learner.evaluate(sets)
    if "orders" in common:
        from sequela.questions.order import order_matrix

        for method in ("exact", "simulation"):
            order_matrix(learner, ["a", "b"], method=method, draws=100, random_state=0)
