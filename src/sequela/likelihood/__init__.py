"""Likelihoods of sets and sequences under the chain, with gradients (section 4 of the paper)."""

from sequela.likelihood.budget import Budget
from sequela.likelihood.objective import (
    METHODS,
    Evaluation,
    Likelihood,
    evaluate,
    log_likelihood,
)
from sequela.likelihood.sampled import Sampling

__all__ = [
    "METHODS",
    "Budget",
    "Evaluation",
    "Likelihood",
    "Sampling",
    "evaluate",
    "log_likelihood",
]
