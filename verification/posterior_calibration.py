"""Are the stated probabilities right? Simulation-based calibration of the posterior of theta.

Theta is drawn from the prior, data are simulated from theta, and the posterior given the data is
sampled. If the posterior is right, the rank of the true value among the draws is uniform (Talts et
al. 2018). This is checked for entries of theta, for the order of two items in the samples, and for
the time of a sample. A second check is about stated probabilities: of all orders to which the
posterior gives the probability p, a share p must be right.

The data sets use three priors in turn: Laplace and Student t with a fixed scale, and the default
prior of `sequela.posterior`, whose scale is drawn from its own prior. Chains are short (100 draws,
and 400 with the default prior, whose chains converge more slowly), because a rank needs only 19
draws. The summary says in how many data sets the chains had not converged.

    python -m verification.posterior_calibration -o FOLDER [--sets 201]
    python -m verification.posterior_calibration -o FOLDER --summary

The first command continues from the results in the folder. The second command writes tables and a
figure to verification/results.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np

from sequela import Dataset, posterior, simulate
from sequela.kernels.sample_orders import sum_sample_orders
from sequela.observation import Exponential
from sequela.posteriors import BaseRates, Laplace, LearnedScale, NotConvergedWarning, StudentT
from sequela.posteriors.priors import as_prior
from sequela.posteriors.problem import Problem

PRIORS = {
    "laplace": Laplace(0.6, base_rates=BaseRates(-1.5, 1.0)),
    "student-t": StudentT(4.0, 0.5, base_rates=BaseRates(-1.5, 1.0)),
    "default": as_prior(None),
}
RESULTS = Path(__file__).parent / "results"
RANKS = 20
# (items, samples, sweeps per draw) of a data set. Only a few data sets are large, because large
# data sets take most of the time.
SMALL = [(5, 100, 3), (5, 300, 3), (5, 1000, 3), (6, 200, 3), (5, 500, 3), (8, 200, 2), (7, 300, 2)]
LARGE = [(12, 200, 2), (20, 100, 2), (10, 400, 2)]
# An R-hat of at most this value counts as converged here, because ranks need only 19 draws.
MIXED = 1.05


def draw_theta(prior, n, rng):
    """Draw theta from the prior. If the scale is learned, it is drawn first."""
    z = rng.standard_normal((n, n))
    scale = prior.scale
    if isinstance(scale, LearnedScale):
        scale = scale.median * np.exp(scale.spread * rng.standard_normal())
    theta = np.sign(z) * prior.quantile(np.abs(z)) * scale
    np.fill_diagonal(theta, prior.base_rates.mean + prior.base_rates.sd * rng.standard_normal(n))
    return theta


def draw_time(theta, items, rng):
    """Draw the observation time of a sample given theta.

    The function draws an order of the items, and the time spent in each state of this order.
    """
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
    """Return the rank of the true value among RANKS - 1 of the draws, from 0 to RANKS - 1."""
    chosen = draws[np.linspace(0, len(draws) - 1, RANKS - 1).round().astype(int)]
    ties = int((chosen == truth).sum())
    return int((chosen < truth).sum() + rng.integers(ties + 1))


def table_size(seed):
    """Return items, samples and sweeps per draw of a data set; one data set in ten is large."""
    k = seed // 3
    return LARGE[(k // 10) % len(LARGE)] if k % 10 == 9 else SMALL[k % len(SMALL)]


def one_data_set(seed):
    """Simulate a data set and sample its posterior; return ranks, and orders with probabilities."""
    began = time.thread_time()
    rng = np.random.default_rng(seed)
    name = list(PRIORS)[seed % 3]
    prior = PRIORS[name]
    n, samples, thin = table_size(seed)
    theta = draw_theta(prior, n, rng)
    drawn = simulate(theta, samples, random_state=seed)
    data = drawn.to_dataset()
    times = np.asarray(data.times)
    data = Dataset(data.without_times().to_frame())
    draws, warm_up = (400, 200) if isinstance(prior.scale, LearnedScale) else (100, 80)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        found = posterior(
            data,
            prior=prior,
            draws=draws,
            warm_up=warm_up,
            thin=thin,
            random_state=seed,
            n_threads=1,
        )
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
    record["effective"] = round(record["effective"], 1)
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
    record["cpu"] = time.thread_time() - began
    return record


def uniformity(ranks):
    """Return the p-value of a chi-squared test of uniform ranks."""
    from scipy.stats import chisquare

    if len(ranks) < 2 * RANKS:
        return float("nan")
    return float(chisquare(np.bincount(ranks, minlength=RANKS).reshape(-1, 2).sum(axis=1)).pvalue)


def share_right(calls, low, high):
    """Summarise the orders whose stated probability is in an interval.

    Return the number of pairs, the mean stated probability, the share of right orders and its
    standard error. Each order is weighted by the number of samples that have both items. The
    standard error is computed from the differences between data sets, because the orders of a data
    set are not independent.
    """
    inside = calls[(calls[:, 0] >= low) & (calls[:, 0] < high)]
    if not len(inside):
        return None
    total = inside[:, 2].sum()
    right = inside[:, 1].sum() / total
    stated = np.average(inside[:, 0], weights=inside[:, 2])
    # This is the standard error of the difference between this share and the stated probability.
    surplus = inside[:, 1] - inside[:, 0] * inside[:, 2]
    by_set = np.bincount(inside[:, 3].astype(int), surplus - surplus.sum() / total * inside[:, 2])
    error = np.sqrt((by_set**2).sum()) / total
    return {
        "stated_from": low, "stated_to": min(high, 1.0), "pairs": len(inside),
        "stated": float(stated), "right": float(right), "se": float(error),
    }  # fmt: skip


def summarise(records):
    """Return tests of uniform ranks, and the share of right orders by stated probability."""
    ranks = {
        name: np.array([x for r in records for x in r[name]], dtype=int)
        for name in ("theta", "order", "time")
    }
    calls = np.array([[*c, k] for k, r in enumerate(records) for c in r["calls"]])
    edges = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0001]
    rows = [share_right(calls, low, high) for low, high in pairwise(edges)]
    found = {
        "data_sets": len(records),
        "items": [min(r["n"] for r in records), max(r["n"] for r in records)],
        "samples": [min(r["samples"] for r in records), max(r["samples"] for r in records)],
        "cpu_minutes": round(sum(r["cpu"] for r in records) / 60, 1),
        "r_hat_above_1.05": sum(r["r_hat"] > MIXED for r in records),
        "largest_r_hat": max(r["r_hat"] for r in records if np.isfinite(r["r_hat"])),
        "ranks": {
            name: {"count": len(v), "chi_squared_p": uniformity(v),
                   "histogram": np.bincount(v, minlength=RANKS).tolist()}
            for name, v in ranks.items()
        },
        "calls": [row for row in rows if row],
        "called_at_least_0.9": share_right(calls, 0.9, 1.0001),
        "called_0.6_to_0.7": share_right(calls, 0.6, 0.7),
    }  # fmt: skip
    return found, ranks


def report(records, *, write):
    """Print the summary of all data sets, of each prior, and of the runs that converged."""
    parts = {
        "all": records,
        **{name: [r for r in records if r["prior"] == name] for name in PRIORS},
        "mixed": [r for r in records if r["r_hat"] <= MIXED],
    }
    found = {name: summarise(part)[0] for name, part in parts.items() if part}
    for name, part in found.items():
        ranks = ", ".join(f"{k} {v['chi_squared_p']:.3f}" for k, v in part["ranks"].items())
        print(f"{name}: {part['data_sets']} data sets, {part['cpu_minutes']} CPU minutes,")
        print(f"  R-hat above {MIXED} in {part['r_hat_above_1.05']}; p of uniform ranks: {ranks}")
        for row in part["calls"]:
            print(f"  stated {row['stated']:.3f} ({row['pairs']} pairs): right {row['right']:.3f} "
                  f"+- {row['se']:.3f}")  # fmt: skip
    if write:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "posterior_calibration.json").write_text(json.dumps(found, indent=1) + "\n")
        _, ranks = summarise(records)
        draw(ranks, found["all"]["calls"], RESULTS / "posterior_calibration.png")


def draw(ranks, rows, path):
    """Draw histograms of the ranks, and the share of right orders by stated probability."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from sequela.plots import save_figure

    fig, axes = plt.subplots(1, 4, figsize=(11, 2.8), layout="constrained")
    titles = {"theta": "theta", "order": "P(a before b)", "time": "time of a sample"}
    for ax, (name, values) in zip(axes, ranks.items(), strict=False):
        ax.hist(values, bins=np.arange(0, RANKS + 1, 2), color="#1f4e79")
        expected = len(values) / (RANKS / 2)
        spread = 2 * expected**0.5
        ax.axhspan(expected - spread, expected + spread, color="0.6", alpha=0.4, zorder=3, lw=0)
        ax.axhline(expected, color="0.2", lw=1, zorder=4)
        ax.set(xlabel=f"rank of the true {titles[name]}", ylabel="data sets", yticks=[])
    ax = axes[3]
    ax.plot([0.5, 1], [0.5, 1], color="0.6", lw=1)
    ax.errorbar([r["stated"] for r in rows], [r["right"] for r in rows],
                yerr=[2 * r["se"] for r in rows], fmt="o", color="#d55e00", capsize=2)  # fmt: skip
    ax.set(xlabel="stated probability of an order", ylabel="share that is right")
    save_figure(fig, path, dpi=110)


def main():
    """Run the data sets that have no result yet (none with --summary), and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--sets", type=int, default=201)
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    options.output.mkdir(exist_ok=True, parents=True)
    if not options.summary:
        for seed in range(options.sets):
            path = options.output / f"{seed:04d}.json"
            if not path.exists():
                path.write_text(json.dumps(one_data_set(seed)))
    records = [json.loads(p.read_text()) for p in sorted(options.output.glob("*.json"))]
    report(records, write=options.summary)


if __name__ == "__main__":
    main()
