"""Learn in which order items accumulate, from sets that were each seen once.

Attributes are loaded when they are first used, so that ``import sequela`` stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_WHERE = {
    "BudgetError": "sequela._errors",
    "InputError": "sequela._errors",
    "SequelaError": "sequela._errors",
    "Dataset": "sequela.data",
    "Budget": "sequela.likelihood",
    "Evaluation": "sequela.likelihood",
    "Likelihood": "sequela.likelihood",
    "Sampling": "sequela.likelihood",
    "evaluate": "sequela.likelihood",
    "log_likelihood": "sequela.likelihood",
    "sequence_log_likelihood": "sequela.likelihood",
    "sample_posteriors": "sequela.likelihood",
    "Simulation": "sequela.simulation",
    "simulate": "sequela.simulation",
    "example_theta": "sequela.data.examples",
    "Model": "sequela.model",
    "SeparationWarning": "sequela.learning.estimator",
    "SetChain": "sequela.learning.estimator",
    "SeveralOptimaWarning": "sequela.learning.estimator",
    "fit": "sequela.learning.estimator",
    "SetChainCV": "sequela.learning.path",
    "path": "sequela.learning.path",
    "penalty_max": "sequela.learning.penalty_max",
    "plot_cross_validation": "sequela.plots.cross_validation",
}

if TYPE_CHECKING:
    from sequela._errors import BudgetError, InputError, SequelaError
    from sequela.data import Dataset
    from sequela.data.examples import example_theta
    from sequela.learning.estimator import (
        SeparationWarning,
        SetChain,
        SeveralOptimaWarning,
        fit,
    )
    from sequela.learning.path import SetChainCV, path
    from sequela.learning.penalty_max import penalty_max
    from sequela.likelihood import (
        Budget,
        Evaluation,
        Likelihood,
        Sampling,
        evaluate,
        log_likelihood,
        sample_posteriors,
        sequence_log_likelihood,
    )
    from sequela.model import Model
    from sequela.plots.cross_validation import plot_cross_validation
    from sequela.simulation import Simulation, simulate

__all__ = [
    "Budget",
    "BudgetError",
    "Dataset",
    "Evaluation",
    "InputError",
    "Likelihood",
    "Model",
    "Sampling",
    "SeparationWarning",
    "SequelaError",
    "SetChain",
    "SetChainCV",
    "SeveralOptimaWarning",
    "Simulation",
    "__version__",
    "evaluate",
    "example_theta",
    "fit",
    "log_likelihood",
    "path",
    "penalty_max",
    "plot_cross_validation",
    "sample_posteriors",
    "sequence_log_likelihood",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'sequela' has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
