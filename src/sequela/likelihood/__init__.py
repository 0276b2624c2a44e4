"""Likelihoods of sets and sequences under a model, with gradients (section 4 of the paper)."""

from sequela.likelihood.evaluation import Evaluation, Likelihood, evaluate, log_likelihood
from sequela.likelihood.plan import METHODS
from sequela.likelihood.sample_posteriors import SamplePosteriors, sample_posteriors
from sequela.likelihood.sequences import sequence_log_likelihood

__all__ = [
    "METHODS",
    "Evaluation",
    "Likelihood",
    "SamplePosteriors",
    "evaluate",
    "log_likelihood",
    "sample_posteriors",
    "sequence_log_likelihood",
]
