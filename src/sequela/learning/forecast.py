"""Predict the time and memory of a fit, and log them before a fit of more than a minute.

The prediction is rough. At the beginning, only the work per evaluation is known. The number of
evaluations is not known, and the work changes with the interactions that are learned. Fits of the
glioblastoma data and of simulated cohorts took between one third of the predicted time and three
times the predicted time.
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

# Assumed number of evaluations per start. In trials, starts took 28 to 144 evaluations.
_EVALUATIONS = 60
# A prediction is logged only if a fit is predicted to take more than _LEAST_SECONDS. If it is
# predicted to take more than _LONG_SECONDS, the fit writes progress lines from its beginning.
_LEAST_SECONDS = 60.0
_LONG_SECONDS = 10.0
# Bytes of the process itself; and the number of n x n arrays that a solver and its objective store.
_PROCESS = 1.5e8
_SQUARES = 50


@dataclass(frozen=True)
class Forecast:
    """The predicted time and memory of a fit.

    Attributes
    ----------
    evaluation_seconds : float
        Wall time in seconds of one evaluation of the likelihood and its gradient.
    evaluations : int
        Number of evaluations in all starts together.
    memory : float
        Peak memory of the process in bytes.
    """

    evaluation_seconds: float
    evaluations: int
    memory: float

    @property
    def seconds(self) -> float:
        """Wall time of the fit in seconds."""
        return self.evaluation_seconds * self.evaluations

    @property
    def is_long(self) -> bool:
        """Whether the fit is predicted to take more than 10 seconds."""
        return self.seconds > _LONG_SECONDS

    def __str__(self) -> str:
        minutes = self.seconds / 60.0
        time = f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60.0:.0f} hours"
        return (
            f"about {time} (about {self.evaluations} evaluations of {self.evaluation_seconds:.1f} "
            f"s) and {self.memory / 1e9:.1f} GB of memory"
        )


def fit_seconds(plan: Plan, n_starts: int) -> float:
    """Predict the seconds of a fit on one core; the prediction is the same on every machine.

    The first start is the model without interactions. In the other starts, all items interact at
    the beginning, so large sets have no small components.
    """
    first = evaluation_seconds(plan, dense=False)
    others = evaluation_seconds(plan, dense=True) if n_starts > 1 else 0.0
    return _EVALUATIONS * (first + (n_starts - 1) * others)


def forecast(objective: Objective, n_starts: int) -> Forecast:
    """Predict the time and memory of a fit from the methods that its first evaluation uses."""
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
    """Log the predicted time and memory of a fit if it will take more than a minute."""
    if expected.seconds > _LEAST_SECONDS:
        _log.warning("this fit takes %s", expected)
