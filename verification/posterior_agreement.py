"""Compare the posterior of five items with an independent sampler (tempered Metropolis).

The independent sampler shares no code with `sequela.posterior`. It makes random walks in the
entries of theta under the Laplace prior, and computes the likelihood with NumPy over all 32 sets.
It runs 120 independent groups of chains (ladders). Each ladder has six chains, which use different
powers of the likelihood and exchange their states. The script compares the two samplers by the
means of all entries of theta, of the hyperbolic tangents of these entries, and of the orders of all
pairs. The differences are given in units of their standard errors.

Run it with ``python -m verification.posterior_agreement``.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from sequela import posterior, simulate
from sequela.kernels.sample_orders import sum_sample_orders
from sequela.observation import Exponential
from sequela.posteriors import BaseRates, Laplace, NotConvergedWarning
from sequela.posteriors.diagnostics import effective_size
from sequela.posteriors.problem import Problem

N = 5
PRIOR = Laplace(0.8, base_rates=BaseRates(-1.0, 1.5))
THETA = np.array(
    [
        [-0.7, 3.0, 0.0, 0.0, 0.0],
        [0.0, -2.5, 2.5, 0.0, 0.0],
        [0.0, 0.0, -2.5, 0.0, 0.0],
        [-1.0, 0.0, 0.0, -0.5, 0.0],
        [0.0, 0.0, 0.0, 0.0, -1.0],
    ]
)
LADDERS = 120
POWERS = np.array([1.0, 0.65, 0.4, 0.22, 0.1, 0.03])
MASKS = (np.arange(1 << N)[:, None] >> np.arange(N)) & 1


def log_likelihood(theta, counts):
    """Return the log-likelihood of counts of all 32 sets, for theta (batch, 5, 5)."""
    base = theta[:, np.arange(N), np.arange(N)]
    effects = theta * (1.0 - np.eye(N))
    rates = np.exp(base[:, None, :] + np.einsum("ri,bij->brj", MASKS, effects))
    holding = 1.0 / (1.0 + (rates * (1 - MASKS)).sum(axis=2))
    weight = np.empty(rates.shape[:2])
    weight[:, 0] = holding[:, 0]
    for R in range(1, 1 << N):
        into = [R ^ 1 << j for j in range(N) if R >> j & 1]
        last = [j for j in range(N) if R >> j & 1]
        weight[:, R] = (weight[:, into] * rates[:, into, last]).sum(axis=1) * holding[:, R]
    return np.log(np.maximum(weight, 1e-300)) @ counts


def log_prior(theta):
    """Return the log-density of the prior of theta (batch, 5, 5), without its constant."""
    base = theta[:, np.arange(N), np.arange(N)]
    off = np.abs(theta * (1.0 - np.eye(N))).sum(axis=(1, 2))
    rates = PRIOR.base_rates
    return -0.5 * (((base - rates.mean) / rates.sd) ** 2).sum(axis=1) - off / PRIOR.scale


def metropolis(counts, iterations, rng):
    """Return draws (ladders, kept, 5, 5) of the second half of all iterations."""
    shape = (LADDERS, POWERS.size)
    size = LADDERS * POWERS.size
    theta = rng.laplace(scale=PRIOR.scale, size=(size, N, N))
    theta[:, np.arange(N), np.arange(N)] = rng.normal(-1.0, 1.0, (size, N))
    powers = np.tile(POWERS, LADDERS)
    value, prior = log_likelihood(theta, counts), log_prior(theta)
    width = np.full(POWERS.size, 0.5)
    kept = []
    for t in range(iterations):
        # Move a few coordinates at a time: a move of all coordinates would rarely be accepted.
        chosen = rng.random((size, N, N)) < rng.choice([0.04, 0.12, 0.4])
        step = rng.standard_normal((size, N, N)) * np.tile(width, LADDERS)[:, None, None]
        proposed = theta + chosen * step * np.exp(rng.normal(0.0, 0.7))
        new, new_prior = log_likelihood(proposed, counts), log_prior(proposed)
        gain = powers * (new - value) + new_prior - prior
        accepted = np.log(rng.random(size)) < gain
        theta[accepted] = proposed[accepted]
        value[accepted], prior[accepted] = new[accepted], new_prior[accepted]
        if t < iterations // 4:
            width *= np.exp(0.05 * (accepted.reshape(shape).mean(axis=0) - 0.3))
        # Chains with neighbouring powers exchange their states. The pairs of powers (0, 1), (2, 3),
        # (4, 5) and the pairs (1, 2), (3, 4) take turns.
        index = np.arange(size).reshape(shape)
        for k in range(t % 2, POWERS.size - 1, 2):
            a, b = index[:, k], index[:, k + 1]
            ratio = (POWERS[k] - POWERS[k + 1]) * (value[b] - value[a])
            swap = np.log(rng.random(LADDERS)) < ratio
            for array in (theta, value, prior):
                array[a[swap]], array[b[swap]] = array[b[swap]], array[a[swap]].copy()
        if t >= iterations // 2 and t % 20 == 0:
            kept.append(theta.reshape(*shape, N, N)[:, 0].copy())
    return np.stack(kept, axis=1)


def quantities(theta, problem):
    """Return entries of theta (..., 5, 5), their hyperbolic tangents, and orders of all pairs."""
    flat = theta.reshape(-1, N, N)
    pairs = problem.pairs
    orders = np.empty((len(flat), len(pairs)))
    before = np.empty((N, N))
    for at, one in enumerate(flat):
        sum_sample_orders(before, np.ascontiguousarray(one), problem.target, np.empty(0, np.int64))
        orders[at] = before[pairs[:, 0], pairs[:, 1]]
    orders /= problem.together[pairs[:, 0], pairs[:, 1]]
    entries = flat.reshape(-1, N * N)
    rows = np.concatenate([entries, np.tanh(entries), orders, orders > 0.5], axis=1)
    return rows.reshape(*theta.shape[:-2], -1)


def main():
    """Sample the posterior with both samplers, and print the differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--iterations", type=int, default=6000)
    options = parser.parse_args()
    data = simulate(THETA, options.samples, random_state=3).to_dataset().without_times()
    problem = Problem.of(data, PRIOR, Exponential(), 12)
    which = np.asarray(data.values).astype(int) @ (1 << np.arange(N))
    counts = np.bincount(which, minlength=1 << N).astype(float)
    other = quantities(metropolis(counts, options.iterations, np.random.default_rng(1)), problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        found = posterior(data, prior=PRIOR, random_state=1, draws=2000, n_threads=2)
    ours = quantities(found.draws.theta, problem)
    means = other.mean(axis=1)
    other_se = means.std(axis=0, ddof=1) / np.sqrt(LADDERS)
    our_se = ours.std(axis=(0, 1)) / np.sqrt(np.maximum(effective_size(ours), 1.0))
    se = np.sqrt(other_se**2 + our_se**2)
    z = (ours.mean(axis=(0, 1)) - means.mean(axis=0)) / np.maximum(se, 1e-12)
    print(found.convergence.message)
    m = len(problem.pairs)
    parts = np.split(np.arange(z.size), [N * N, 2 * N * N, 2 * N * N + m])
    for name, part in zip(("theta", "tanh theta", "order", "order > 0.5"), parts, strict=True):
        print(f"{name:12s} {len(part):3d} means: largest |z| {np.abs(z[part]).max():.2f}, root "
              f"mean square {np.sqrt((z[part] ** 2).mean()):.2f}, largest difference "
              f"{np.abs(z[part] * se[part]).max():.4f}")  # fmt: skip


if __name__ == "__main__":
    main()
