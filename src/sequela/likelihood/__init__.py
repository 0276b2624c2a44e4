"""Likelihoods of sets and sequences under the chain, with gradients (section 4 of the paper)."""

from sequela.likelihood.budget import Budget
from sequela.likelihood.objective import (
    METHODS,
    Evaluation,
    Likelihood,
    evaluate,
    log_likelihood,
)
from sequela.likelihood.posterior import SamplePosteriors, sample_posteriors
from sequela.likelihood.sampled import Sampling
from sequela.likelihood.sequences import sequence_log_likelihood

__all__ = [
    "METHODS",
    "Budget",
    "Evaluation",
    "Likelihood",
    "SamplePosteriors",
    "Sampling",
    "evaluate",
    "log_likelihood",
    "sample_posteriors",
    "sequence_log_likelihood",
]
