"""Posteriors for tests of questions. Their models are random numbers, not draws of a sampler."""

from __future__ import annotations

import numpy as np

from sequela import Exponential, Model, Posterior
from sequela.posteriors import Draws, Laplace


def posterior_of(theta, rate=1.0, items=None):
    """Return a posterior with these draws of theta, of shape (chains, draws, n, n)."""
    chains, draws, n, _ = theta.shape
    return Posterior(
        items=tuple("abcdefghijklmnopqrstuvwxyz"[:n]) if items is None else tuple(items),
        draws=Draws(
            theta=theta,
            scale=np.ones((chains, draws)),
            log_likelihood=np.zeros((chains, draws)),
            orders=np.zeros((chains, draws, 0)),
        ),
        pairs=np.zeros((0, 2), dtype=np.int64),
        together=np.zeros(0, dtype=np.int64),
        prior=Laplace(),
        observation=Exponential(rate),
        seed=1,
        rates=(1.0, 1.0, 1.0),
        fingerprint="",
        chain_states=({}, {}),
    )


def random_posterior(n=3, chains=2, draws=6, seed=1, rate=1.0):
    """Return a posterior of random models that are similar to each other."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(0.0, 1.0, (n, n))
    return posterior_of(centre + rng.normal(0.0, 0.6, (chains, draws, n, n)), rate)


def by_hand(posterior):
    """Return a list of all models, chain after chain, without the method `Posterior.models`."""
    return [
        Model(theta, posterior.items, observation=posterior.observation)
        for chain in posterior.draws.theta
        for theta in chain
    ]
