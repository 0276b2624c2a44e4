"""Make posteriors of random numbers, so that tests do not have to run the slow sampler."""

import numpy as np

from sequela import Exponential, Posterior
from sequela.posteriors.priors import Laplace
from sequela.posteriors.result import Draws


def made_posterior(data, *, chains=2, draws=6, seed=1, spread=0.7, rate=1.0):
    """Return a posterior whose draws are near a random theta, but have different orders."""
    rng = np.random.default_rng(seed)
    n = data.n_items
    centre = rng.normal(size=(n, n)) * (rng.random((n, n)) < min(0.4, 2.0 / n))
    np.fill_diagonal(centre, -1.0)
    theta = centre + spread * rng.normal(size=(chains, draws, n, n))
    together = data.values.T.astype(int) @ data.values.astype(int)
    pairs = np.array([(a, b) for a in range(n) for b in range(a + 1, n) if together[a, b]])
    pairs = pairs.reshape(-1, 2).astype(np.int64)
    middle = rng.random(len(pairs))
    orders = np.clip(middle + 0.1 * rng.normal(size=(chains, draws, len(pairs))), 0.0, 1.0)
    return Posterior(
        items=data.items,
        draws=Draws(
            theta, np.ones((chains, draws)), rng.normal(size=(chains, draws)), orders
        ),
        pairs=pairs,
        together=together[pairs[:, 0], pairs[:, 1]],
        prior=Laplace(scale=1.0),
        observation=Exponential(rate),
        seed=seed,
        rates=(0.8, 0.3, float("nan")),
        fingerprint="made up",
        chain_states=({}, {}),
    )  # fmt: skip
