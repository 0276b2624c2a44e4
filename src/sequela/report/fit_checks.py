"""The checks of a fit: whether the model describes the data, and which orders can be reported."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sequela.learning.solvers.contract import Status
from sequela.questions.effects_check import check_effects
from sequela.questions.order_ranges import order_ranges
from sequela.report.effects_run import EFFECTS, compare_with_plain
from sequela.support.errors import BudgetError, SequelaError
from sequela.support.naming import either
from sequela.support.progress import lines_in_log

if TYPE_CHECKING:
    from sequela.data.dataset import Dataset
    from sequela.learning.fit_check import FitCheck
    from sequela.learning.learner import Learner
    from sequela.learning.observations import ObservationComparison
    from sequela.questions.effects_check import EffectsCheck
    from sequela.questions.order_ranges import OrderRanges
    from sequela.report.fit_options import Execution, FitRunOptions

__all__ = ["FitChecks", "run_checks", "was_interrupted"]


@dataclass(frozen=True)
class FitChecks:
    """What the checks of a fit found. A check that was not made is None.

    Attributes
    ----------
    ranges : OrderRanges or None
        Which orders the data allow. The verdicts also depend on the other two checks.
    misfit : FitCheck or None
        Whether the model describes the data.
    effects : EffectsCheck or None
        Which orders would be opposite if items influenced the observation.
    notices : tuple of str
        Notices for the user.
    """

    ranges: OrderRanges | None
    misfit: FitCheck | None
    effects: EffectsCheck | None
    notices: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the checks for ``run.json``, without the ranges, which are in a table."""
        made = {"fit_check": self.misfit, "effects_check": self.effects}
        return {name: check.to_json() for name, check in made.items() if check is not None}


def run_checks(
    learner: Learner,
    data: Dataset,
    options: FitRunOptions,
    execution: Execution,
    compared: ObservationComparison | None = None,
) -> FitChecks:
    """Check a fit. If the check of the orders finds a better model, add it to the learner.

    Parameters
    ----------
    learner : Learner
        The fitted learner.
    data : Dataset
        The samples that the learner was fitted to.
    options : FitRunOptions
        Which checks are made.
    execution : Execution
        Threads, and the function that announces each part.
    compared : ObservationComparison or None
        The comparison that chose the kind of observation, if there was one.

    Examples
    --------
    >>> from sequela import example_samples
    >>> from sequela.learning.learner import Learner
    >>> from sequela.report.fit_options import Execution, FitRunOptions
    >>> data = example_samples().most_frequent(3)
    >>> learner = Learner(0.05, random_state=1).fit(data)
    >>> run_checks(learner, data, FitRunOptions(check=False), Execution()).misfit.fits
    True
    """
    if was_interrupted(learner):
        return FitChecks(None, None, None, ())
    if options.observation in EFFECTS:
        notices = compare_with_plain(learner.model_, data, execution.threads)
        return FitChecks(None, learner.misfit_, None, notices)
    ranges: OrderRanges | None = None
    notices = ()
    if options.check and learner.model_.observation.constant_rate is None:
        notices = (
            "the orders that the data allow were not checked: the check is not available for "
            "observation times that are not exponential. "
            + either(
                "sequela.questions.rival_orders compares each order with the opposite order for "
                "such times. sequela.posterior assumes exponential times",
                "`sequela rivals FOLDER DATA` compares each order with the opposite order for such "
                "times. `sequela posterior` assumes exponential times, so it does not say how "
                "certain the orders of this model are",
            ),
        )
    elif options.check:
        try:
            ranges, notices = _check_orders(learner, data, execution)
        except SequelaError as error:  # without this check, the model is still a result
            notices = (f"the orders that the data allow were not checked: {error}",)
    effects = None
    if options.check_effects:
        effects, more = _check_effects(learner, data, execution, compared)
        notices += more
    misfit = learner.misfit_
    if ranges is not None:
        ranges = ranges.with_fit(misfit)
        ranges = ranges if effects is None else ranges.with_effects(effects)
    return FitChecks(ranges, misfit, effects, notices)


def _check_effects(
    learner: Learner, data: Dataset, execution: Execution, compared: ObservationComparison | None
) -> tuple[EffectsCheck | None, tuple[str, ...]]:
    """Find orders that would be opposite if items influenced the observation.

    If the sets are too large, return a notice, so that the fit is not lost.
    """
    if execution.announce is not None:
        execution.announce("which orders would be opposite if items influenced the observation")
    usable = compared is not None and compared.effects_behind is not None
    try:
        check = check_effects(
            learner.model_, data, compared if usable else None, random_state=learner.seed_,
            n_threads=execution.threads,
        )  # fmt: skip
    except BudgetError as error:
        why = f"it was not checked which orders depend on effects on the observation: {error}"
        return None, (why,)
    return check, ()


def was_interrupted(learner: Learner) -> bool:
    """Tell whether a signal stopped the fit of a learner early.

    Examples
    --------
    >>> from sequela import example_samples
    >>> from sequela.learning.learner import Learner
    >>> was_interrupted(Learner(0.05).fit(example_samples().most_frequent(3)))
    False
    """
    return learner.status_ is Status.INTERRUPTED


def _check_orders(
    learner: Learner, data: Dataset, execution: Execution
) -> tuple[OrderRanges, tuple[str, ...]]:
    """Check which orders the data allow; if a better model is found, add it to the learner.

    Also return notices.
    """
    if execution.announce is not None:
        execution.announce("which orders the data allow")
    with lines_in_log(show=execution.progress == "lines"):
        check = order_ranges(
            learner, data, tol=learner.tol, random_state=learner.seed_,
            n_threads=execution.threads,
        )  # fmt: skip
    more: list[str] = []
    if check.moves:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            learner.add_start(data, check.model.theta)
        more += [str(w.message) for w in caught]
        more.append(
            f"the check of the orders found a model that is better by {check.gain:.2g} nats than "
            "the best model of the starts; the better model is the result"
        )
    left = int((~check.table["checked"]).sum())
    if left:
        why = (
            "a signal stopped the check (with --checkpoint, the same command finishes it)"
            if check.interrupted
            else "checking all of them would take too long"
        )
        how = either(
            "pass pairs= to `sequela.questions.order_ranges`, or use `sequela.posterior`, which "
            "answers for all pairs",
            "use `sequela rivals --pair`, or `sequela posterior`, which answers for all pairs",
        )
        more.append(
            "the fit checks the orders of at most 10 pairs of items, those with the strongest "
            f"interactions. Of these {len(check.table)} pairs, {left} were not checked, because "
            f"{why}. To check them, {how}"
        )
    return check, tuple(more)
