"""Are the stated probabilities right? Simulation-based calibration of the posterior of theta.

Theta is drawn from the prior, data from theta, and the posterior from the data. Then the rank of
the truth among the draws is uniform (Talts et al. 2018): for entries of theta, for the order of two
items in the samples, and for the time of a sample. And among all pairs of items to which the
posterior gives an order with probability p, that order is the true one in a share p of the samples.

Run it with ``python -m verification.posterior_calibration -o FOLDER [--sets 200]``; it goes on from
what the folder has. ``--summary`` prints the tables and draws the figure.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np

from sequela import Dataset, posterior, simulate
from sequela.kernels.sample_orders import sum_sample_orders
from sequela.observation import Exponential
from sequela.posteriors import BaseRates, Laplace, NotConvergedWarning, StudentT
from sequela.posteriors.problem import Problem

PRIORS = {
    "laplace": Laplace(0.6, base_rates=BaseRates(-1.5, 1.0)),
    "student-t": StudentT(4.0, 0.5, base_rates=BaseRates(-1.5, 1.0)),
}
RANKS = 20


def draw_theta(prior, n, rng):
    """Draw theta from the prior by the quantiles of its shape."""
    z = rng.standard_normal((n, n))
    theta = np.sign(z) * prior.quantile(np.abs(z)) * prior.scale
    np.fill_diagonal(theta, prior.base_rates.mean + prior.base_rates.sd * rng.standard_normal(n))
    return theta


def draw_time(theta, items, rng):
    """Draw the observation time of a sample given theta: an order backwards, then holding times."""
    k = len(items)
    base = np.diagonal(theta)
    effect = theta - np.diag(base)
    exits, rates = np.empty(1 << k), np.zeros((1 << k, k))
    for R in range(1 << k):
        present = [items[b] for b in range(k) if R >> b & 1]
        log_rate = base + effect[present].sum(axis=0)
        absent = np.ones(len(base), dtype=bool)
        absent[present] = False
        exits[R] = 1.0 + np.exp(log_rate[absent]).sum()
        rates[R] = np.exp(log_rate[items])
    weight = np.zeros(1 << k)
    weight[0] = 1.0 / exits[0]
    for R in range(1, 1 << k):
        into = [weight[R ^ 1 << b] * rates[R ^ 1 << b, b] for b in range(k) if R >> b & 1]
        weight[R] = sum(into) / exits[R]
    R = (1 << k) - 1
    time = rng.exponential(1.0 / exits[R])
    while R:
        last = [b for b in range(k) if R >> b & 1]
        p = np.array([weight[R ^ 1 << b] * rates[R ^ 1 << b, b] for b in last])
        R ^= 1 << last[int(rng.choice(len(last), p=p / p.sum()))]
        time += rng.exponential(1.0 / exits[R])
    return time


def rank(truth, draws, rng):
    """Return the rank of the truth among thinned draws, from 0 to RANKS - 1."""
    chosen = draws[np.linspace(0, len(draws) - 1, RANKS - 1).round().astype(int)]
    ties = int((chosen == truth).sum())
    return int((chosen < truth).sum() + rng.integers(ties + 1))


def one_data_set(seed):
    """Simulate, sample, and return ranks and calls of one data set."""
    rng = np.random.default_rng(seed)
    name = list(PRIORS)[seed % 2]
    prior = PRIORS[name]
    n = int([5, 5, 8, 5, 12, 5, 8, 20][(seed // 2) % 8])
    samples = int([100, 300, 200, 1000, 200, 500, 400, 200][(seed // 2) % 8])
    theta = draw_theta(prior, n, rng)
    drawn = simulate(theta, samples, random_state=seed)
    data = drawn.to_dataset()
    times = np.asarray(data.times)
    data = Dataset(data.without_times().to_frame())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        found = posterior(data, prior=prior, draws=200, thin=3, random_state=seed, n_threads=2)
    problem = Problem.of(data, prior, Exponential(), 12)
    before = np.empty((n, n))
    sum_sample_orders(before, theta, problem.target, problem.target.large_items)
    actual = np.zeros((n, n))
    for s in range(samples):
        sequence = drawn.sequence[drawn.indptr[s] : drawn.indptr[s + 1]]
        for a in range(len(sequence)):
            for b in range(a + 1, len(sequence)):
                actual[sequence[a], sequence[b]] += 1
    draws = found.theta[rng.permutation(len(found.theta))]
    orders = found.draws.orders.reshape(len(found.theta), -1)
    chosen = rng.permutation(len(found.theta))
    i, j = rng.choice(n, 2, replace=False)
    record = {
        "seed": seed, "prior": name, "n": n, "samples": samples,
        "r_hat": found.convergence.r_hat, "effective": found.convergence.effective,
        "theta": [rank(theta[i, j], draws[:, i, j], rng), rank(theta[i, i], draws[:, i, i], rng)],
        "order": [], "time": [], "calls": [],
    }  # fmt: skip
    small = problem.target.large_items.size == 0
    if len(found.pairs) and small:
        k = int(rng.integers(len(found.pairs)))
        a, b = found.pairs[k]
        truth = before[a, b] / found.together[k]
        record["order"].append(rank(truth, orders[chosen, k], rng))
    sizes = np.asarray(data.values).sum(axis=1)
    fit = np.nonzero((sizes > 0) & (sizes <= 7))[0]
    if fit.size:
        s = int(rng.choice(fit))
        items = np.nonzero(np.asarray(data.values)[s])[0]
        drawn_times = np.array([draw_time(t, items, rng) for t in draws[: RANKS - 1]])
        record["time"].append(rank(times[s], drawn_times, rng))
    mean = orders.mean(axis=0)
    for k, (a, b) in enumerate(found.pairs):
        p = float(mean[k])
        first, second = (a, b) if p >= 0.5 else (b, a)
        record["calls"].append(
            [max(p, 1.0 - p), float(actual[first, second]), float(found.together[k])]
        )
    return record


def uniformity(ranks):
    """Return the p-value of a chi-squared test of uniform ranks."""
    from scipy.stats import chisquare

    if len(ranks) < 2 * RANKS:
        return float("nan")
    return float(chisquare(np.bincount(ranks, minlength=RANKS).reshape(-1, 2).sum(axis=1)).pvalue)


def summary(records, figure=None):
    """Print how uniform the ranks are and how often calls are right; draw the figure."""
    print(f"{len(records)} data sets; R-hat above 1.05 in "
          f"{np.mean([r['r_hat'] > 1.05 for r in records]):.2f}")  # fmt: skip
    ranks = {
        name: np.array([x for r in records for x in r[name]]) for name in ("theta", "order", "time")
    }
    for name, values in ranks.items():
        print(f"{name:6s} {len(values):5d} ranks, chi-squared p = {uniformity(values):.3f}")
    calls = np.array([c for r in records for c in r["calls"]])
    edges = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 1.0001])
    rows = []
    for low, high in pairwise(edges):
        inside = (calls[:, 0] >= low) & (calls[:, 0] < high)
        if not inside.any():
            continue
        stated = float(np.average(calls[inside, 0], weights=calls[inside, 2]))
        right = float(calls[inside, 1].sum() / calls[inside, 2].sum())
        rows.append((low, min(high, 1.0), int(inside.sum()), stated, right))
        print(f"stated {low:.1f} to {min(high, 1.0):.1f}: {inside.sum():6d} pairs, mean stated "
              f"{stated:.3f}, right {right:.3f}")  # fmt: skip
    if figure is not None:
        draw(ranks, rows, figure)


def draw(ranks, rows, path):
    """Draw the histograms of the ranks and the calibration of the calls."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 4, figsize=(11, 2.8), layout="constrained")
    titles = {"theta": "theta", "order": "P(a before b)", "time": "time of a sample"}
    for ax, (name, values) in zip(axes, ranks.items(), strict=False):
        ax.hist(values, bins=np.arange(0, RANKS + 1, 2), color="#4477aa")
        expected = len(values) / (RANKS / 2)
        ax.axhspan(expected - 2 * expected**0.5, expected + 2 * expected**0.5, color="0.85")
        ax.axhline(expected, color="0.4", lw=1)
        ax.set(xlabel=f"rank of the true {titles[name]}", ylabel="data sets", yticks=[])
    ax = axes[3]
    ax.plot([0.5, 1], [0.5, 1], color="0.6", lw=1)
    ax.plot([r[3] for r in rows], [r[4] for r in rows], "o-", color="#cc6677")
    ax.set(xlabel="stated probability of an order", ylabel="share that is right")
    fig.savefig(path, dpi=150)


def main():
    """Run what is missing, or summarise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    options.output.mkdir(exist_ok=True, parents=True)
    if not options.summary:
        for seed in range(1, options.sets + 1):
            path = options.output / f"{seed:04d}.json"
            if not path.exists():
                path.write_text(json.dumps(one_data_set(seed)))
    records = [json.loads(p.read_text()) for p in sorted(options.output.glob("*.json"))]
    summary(records, options.output / "calibration.png")


if __name__ == "__main__":
    main()
