"""Simulated cohorts that are hard to learn, with fixed seeds."""

from __future__ import annotations

import numpy as np

import sequela

__all__ = ["panel_cohort", "panel_theta", "wide_cohort", "wide_theta"]

_SEED = 20261117


def panel_theta() -> np.ndarray:
    """Return the theta of a panel study: 47 items, with 46 effects in five groups of items.

    As in real panels, the largest base rate is much larger than the smallest. In each group the
    first item promotes the other items, as the loss of a repair gene does.
    """
    rng = np.random.default_rng(_SEED)
    n = 47
    theta = np.diag(rng.uniform(np.log(0.01), np.log(0.12), n))
    order = rng.permutation(n)
    groups = [order[:14], order[14:22], order[22:28], order[28:33], order[33:37]]
    for group in groups:
        driver = group[0]
        theta[driver, driver] = np.log(0.12)
        theta[driver, group[1:]] = rng.uniform(2.0, 3.5, group.size - 1)
        pairs = rng.integers(1, group.size, (group.size // 2, 2))
        for i, j in group[pairs]:
            if i != j:
                theta[i, j] = rng.choice([-1.5, 1.5])
    return theta


def panel_cohort(n_samples: int = 15800) -> sequela.Dataset:
    """Return samples of a panel study: the median set has 2 items, and the largest set has 38."""
    return _drawn(panel_theta(), n_samples, 5)


def wide_theta() -> np.ndarray:
    """Return the theta of whole exomes: 1,295 items, most of which are independent."""
    rng = np.random.default_rng(_SEED + 1)
    n = 1295
    theta = np.diag(rng.normal(np.log(0.068), 0.85, n))
    interacting = rng.permutation(n)[:60].reshape(15, 4)
    for a, b, c, d in interacting:
        theta[a, [a, b]] = np.log(0.4)
        theta[b, b] = np.log(0.4)
        theta[a, c] = 2.0
        theta[b, d] = rng.choice([-2.0, 2.0])
        theta[c, d] = 1.0
    return theta


def wide_cohort(n_samples: int = 562) -> sequela.Dataset:
    """Return samples of whole exomes: the median set has 80 items, the largest set about 600."""
    return _drawn(wide_theta(), n_samples, _SEED)


def _drawn(theta: np.ndarray, n_samples: int, seed: int) -> sequela.Dataset:
    drawn = sequela.simulate(theta, n_samples, random_state=seed)
    return drawn.to_dataset().without_times()
