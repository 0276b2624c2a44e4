"""The step size of trajectories, adapted during warm-up by dual averaging.

Hoffman and Gelman (2014), "The No-U-Turn Sampler", section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

__all__ = ["StepSize"]

# The parameters gamma, t_0 and kappa of dual averaging in this paper.
_SHRINKAGE = 0.1
_DELAY = 10.0
_FORGETTING = 0.75
# The target of the mean acceptance.
_TARGET = 0.8
# The adaptation shrinks the step size towards this many times the first step size.
_CENTRE = 3.0


@dataclass(frozen=True)
class StepSize:
    """A step size and the state of dual averaging.

    Attributes
    ----------
    step : float
        The step size to use next.
    averaged : float
        Log of the averaged step size, to be used after warm-up.
    error : float
        Average of the target acceptance minus the actual acceptance.
    centre : float
        Log of the step size towards which the adaptation shrinks.
    count : int
        Number of updates since the last restart.
    """

    step: float = 0.1
    averaged: float = 0.0
    error: float = 0.0
    centre: float = float(np.log(_CENTRE * 0.1))
    count: int = 0

    def restart(self, step: float) -> StepSize:
        """Return an adaptation that starts again at a step size."""
        return StepSize(step=step, centre=float(np.log(_CENTRE * step)))

    def update(self, acceptance: float) -> StepSize:
        """Return the adaptation after trajectories with this mean acceptance probability."""
        count = self.count + 1
        weight = 1.0 / (count + _DELAY)
        error = (1.0 - weight) * self.error + weight * (_TARGET - acceptance)
        log_step = self.centre - np.sqrt(count) / _SHRINKAGE * error
        share = count**-_FORGETTING
        averaged = share * log_step + (1.0 - share) * self.averaged
        return replace(
            self, step=float(np.exp(log_step)), averaged=float(averaged), error=float(error),
            count=count,
        )  # fmt: skip

    def finish(self) -> StepSize:
        """Return the adaptation at its end: the averaged step size."""
        return replace(self, step=float(np.exp(self.averaged))) if self.count else self
