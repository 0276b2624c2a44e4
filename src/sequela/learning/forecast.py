"""What a fit will take, said before it begins if that is more than a minute.

Seconds are rough: work is known beforehand, the number of evaluations and how the interactions that
are learned change the work are not. Fits of the glioblastoma data and of simulated cohorts took
between a third and three times of what is said.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sequela.likelihood.objective import Objective

__all__ = ["Forecast", "announce", "forecast"]

_log = logging.getLogger("sequela")

# Evaluations of one start; fits took 28 to 144.
_EVALUATIONS = 60
# Seconds on one core: per operation on lattices, per operation of integrals over time, per set that
# will have components, and per item and column of sampled sets.
_LATTICE = 7e-11
_INTEGRALS = 2e-9
_COMPONENTS = 4e-4
_SAMPLED = 1.4e-6
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


def forecast(objective: Objective, n_starts: int) -> Forecast:
    """Predict what a fit takes, from the way in which each set is evaluated at first."""
    work = objective.work()
    n = objective.n
    seconds = _LATTICE * work.lattices + _INTEGRALS * work.integrals + _SAMPLED * work.sampled
    seconds += _COMPONENTS * objective.by_components.size
    return Forecast(
        evaluation_seconds=seconds / objective.settings.threads,
        evaluations=_EVALUATIONS * n_starts,
        memory=_PROCESS + 8.0 * (_SQUARES * n * n + work.table),
    )


def announce(expected: Forecast) -> None:
    """Log what a fit will take, if that is more than a minute."""
    if expected.seconds > _LEAST_SECONDS:
        _log.warning("this fit takes %s", expected)
