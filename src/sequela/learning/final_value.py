"""Evaluate the log-likelihood at the end of a fit, if sets are sampled.

During a fit, the objective of sampled sets has an error that is not known: see `Objective.draw`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sequela.model import Model
from sequela.settings import Sampling

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sequela.likelihood.evaluation import Likelihood
    from sequela.likelihood.objective import Objective

__all__ = ["VALUE_SAMPLING", "final_value"]

# The settings for the log-likelihood of sampled sets, which is computed once per fit, at its end.
VALUE_SAMPLING = Sampling(chains=8, sweeps=2, burn_in=1)


def final_value(
    objective: Objective, likelihood: Likelihood, theta: NDArray[np.float64]
) -> tuple[float, float]:
    """Return a new estimate of the mean log-likelihood at theta, and its Monte Carlo error.

    Parameters
    ----------
    objective : Objective
        The objective of the fit. If the fit draws missing cells, the objective gives the estimate.
    likelihood : Likelihood
        The likelihood of the same samples. It gives the estimate in all other cases.
    theta : array
        Theta at the end of the fit.
    """
    found = objective.new_value(theta)
    if found is not None:
        return found
    model = Model(theta, objective.data.items, observation=objective.observation)
    evaluation = likelihood.evaluate(model, gradient=False)
    return evaluation.value, evaluation.value_se
