"""What a fit will take, said before it begins if that is more than a minute.

Seconds are rough: work is known beforehand, the number of evaluations and how the interactions that
are learned change the work are not. Fits of the glioblastoma data and of simulated cohorts took
between a third and three times of what is said.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sequela.likelihood.forecast import evaluation_seconds

if TYPE_CHECKING:
    from sequela.likelihood.objective import Objective
    from sequela.likelihood.plan import Plan

__all__ = ["Forecast", "announce", "fit_seconds", "forecast"]

_log = logging.getLogger("sequela")

# Evaluations of one start; fits took 28 to 144.
_EVALUATIONS = 60
# Shorter fits say nothing, and those below the second show nothing at first.
_LEAST_SECONDS = 60.0
_LONG_SECONDS = 10.0
# Bytes of the process itself, and tables of n^2 numbers that a solver and its objective hold.
_PROCESS = 1.5e8
_SQUARES = 50


@dataclass(frozen=True)
class Forecast:
    """What a fit is expected to take.

    Attributes
    ----------
    evaluation_seconds : float
        Wall time of one value and gradient.
    evaluations : int
        How many of them, all starts together.
    memory : float
        Bytes of the process at its peak.
    """

    evaluation_seconds: float
    evaluations: int
    memory: float

    @property
    def seconds(self) -> float:
        """Wall time of the fit."""
        return self.evaluation_seconds * self.evaluations

    @property
    def is_long(self) -> bool:
        """Whether somebody will wait for it."""
        return self.seconds > _LONG_SECONDS

    def __str__(self) -> str:
        minutes = self.seconds / 60.0
        time = f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60.0:.0f} hours"
        return (
            f"about {time} (some {self.evaluations} evaluations of {self.evaluation_seconds:.1f} "
            f"s) and {self.memory / 1e9:.1f} GB of memory"
        )


def fit_seconds(plan: Plan, n_starts: int) -> float:
    """Predict a fit in seconds of one core, the same on every machine.

    The first start is the model without interactions. In the others all items interact at first,
    so that large sets have no small components.
    """
    first = evaluation_seconds(plan, dense=False)
    others = evaluation_seconds(plan, dense=True) if n_starts > 1 else 0.0
    return _EVALUATIONS * (first + (n_starts - 1) * others)


def forecast(objective: Objective, n_starts: int) -> Forecast:
    """Predict what a fit takes, from the way in which each set is evaluated at first."""
    work = objective.work()
    n = objective.n
    evaluations = _EVALUATIONS * n_starts
    seconds = fit_seconds(objective.plan, n_starts) / objective.threads
    return Forecast(
        evaluation_seconds=seconds / evaluations,
        evaluations=evaluations,
        memory=_PROCESS + 8.0 * (_SQUARES * n * n + work.table),
    )


def announce(expected: Forecast) -> None:
    """Log what a fit will take, if that is more than a minute."""
    if expected.seconds > _LEAST_SECONDS:
        _log.warning("this fit takes %s", expected)
