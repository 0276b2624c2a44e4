"""Compare the orders of four methods: posterior, penalised fit, and two simple guesses.

Random sparse models with known orders are simulated. For every pair of items, each method gives the
probability that the first arrived before the second in the samples that have both:

- posterior: the mean over the draws of `sequela.posterior` with its default prior;
- fit: the model of `SetChain` (penalty 0.01, five starts);
- mean set size: items of small samples arrived early (`questions.order_baseline`);
- frequency: frequent items arrived early.

The last two methods are simple guesses. They give orders, not probabilities. A logistic curve
converts their scores to probabilities. The slope of the curve is the one with the best log loss for
all data sets together. A user would not know this slope, so this favours the guesses.

    python -m benchmarks.orders -o FOLDER [--sets 60]
    python -m benchmarks.orders -o FOLDER --summary

Log loss is per sample and pair, in nats (a random guess has 0.693). A method is right about a pair
if the item that it puts first came first with a probability above 0.5 under the true model,
averaged over the samples with both items. Standard errors are computed from the differences between
data sets. If the folder has results of an earlier run, the first command continues this run.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "orders.json"
# Numbers of items and samples of the data sets.
SMALL = [(6, 300), (8, 200), (6, 600), (8, 400), (10, 300)]
LARGE = [(10, 1000), (12, 600), (15, 500), (8, 2000), (12, 1000)]
SIZES = [size for both in zip(SMALL, LARGE, strict=True) for size in both]
METHODS = ("posterior", "fit", "mean set size", "frequency")
# Pairs of items that occur together in fewer samples than this are left out.
LEAST_TOGETHER = 10


def truth(seed):
    """Return a random theta and the number of samples to draw.

    Base rates are around exp(-1.5). There are as many effects as items, with sizes from 1 to 3.
    """
    n, samples = SIZES[seed % len(SIZES)]
    rng = np.random.default_rng(seed)
    theta = np.diag(rng.normal(-1.5, 0.8, n))
    for _ in range(n):
        i, j = rng.choice(n, 2, replace=False)
        theta[i, j] = rng.choice([-1, 1], p=[0.3, 0.7]) * rng.uniform(1, 3)
    return theta, samples


def sample_orders(theta, data):
    """Return P(a before b) for all pairs, and the number of samples that have both items.

    P(a before b) is averaged over these samples.
    """
    from sequela.kernels.sample_orders import sum_sample_orders
    from sequela.observation import Exponential
    from sequela.posteriors.priors import as_prior
    from sequela.posteriors.problem import Problem

    problem = Problem.of(data, as_prior(None), Exponential(), 16)
    before = np.empty(theta.shape)
    assert sum_sample_orders(before, theta, problem.target, problem.target.large_items)
    with np.errstate(invalid="ignore"):
        return before / problem.together, problem.together


def one_data_set(seed):
    """Return the results for one data set, with one row per pair of items.

    A row has the probability of the order under the true model, and the probability that each
    method gives.
    """
    from sequela import Dataset, SetChain, posterior, simulate
    from sequela.questions import order_baseline

    began = time.thread_time()
    theta, samples = truth(seed)
    n = len(theta)
    drawn = simulate(theta, samples, random_state=seed)
    data = Dataset(drawn.to_dataset().without_times().to_frame())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        length = {"draws": 150, "warm_up": 100} if (n, samples) in SMALL else {"draws": 300}
        found = posterior(data, **length, thin=4, random_state=seed, n_threads=1)
        fitted = SetChain(0.01, n_starts=5, random_state=seed, progress=False).fit(data)
    actual = np.zeros(theta.shape)
    for s in range(samples):
        sequence = drawn.sequence[drawn.indptr[s] : drawn.indptr[s + 1]]
        for place, first in enumerate(sequence):
            actual[first, sequence[place + 1 :]] += 1
    true, together = sample_orders(theta, data)
    of_fit, _ = sample_orders(fitted.model_.theta, data)
    sizes = order_baseline(data).set_index("item")["mean_size"].reindex(list(data.items)).to_numpy()
    shares = np.asarray(data.values).mean(axis=0)
    mean = found.draws.orders.mean(axis=(0, 1))
    rows = [
        {"together": int(together[a, b]), "actual": float(actual[a, b]), "true": float(true[a, b]),
         "posterior": float(mean[k]), "fit": float(of_fit[a, b]),
         "mean set size": float(sizes[b] - sizes[a]),
         "frequency": float(np.log(shares[a] / shares[b]))}
        for k, (a, b) in enumerate(found.pairs)
        if together[a, b] >= LEAST_TOGETHER
    ]  # fmt: skip
    return {
        "seed": seed, "n": n, "samples": samples, "r_hat": found.convergence.r_hat,
        "effective": found.convergence.effective, "pairs": rows,
        "cpu": time.thread_time() - began,
    }  # fmt: skip


def log_loss(p, actual, together):
    """Return the log loss of each pair, summed over its samples."""
    p = np.clip(p, 1e-4, 1.0 - 1e-4)
    return -(actual * np.log(p) + (together - actual) * np.log1p(-p))


def ratio(numerator, denominator, groups):
    """Return a ratio of sums, and its standard error from the differences between groups."""
    value = numerator.sum() / denominator.sum()
    sums = np.bincount(groups, numerator - value * denominator)
    return float(value), float(np.sqrt((sums**2).sum()) / denominator.sum())


def summarise(records):
    """Return the log loss and the share of right orders of each method.

    Both are also given as differences from the posterior.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import expit

    groups = np.concatenate([np.full(len(r["pairs"]), k) for k, r in enumerate(records)])
    rows = [row for r in records for row in r["pairs"]]
    column = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    actual, together = column["actual"], column["together"].astype(float)
    first = column["true"] > 0.5
    found = {"data_sets": len(records), "pairs": len(rows), "methods": {}}
    found["r_hat_above_1.05"] = sum(r["r_hat"] > 1.05 for r in records)
    losses, rights = {}, {}
    for name in METHODS:
        p = column[name]
        if name in METHODS[2:]:
            score = p / p.std()

            def loss(slope, score=score):
                return log_loss(expit(slope * score), actual, together).sum()

            p = expit(minimize_scalar(loss, bounds=(0.0, 10.0), method="bounded").x * score)
        losses[name] = log_loss(p, actual, together)
        rights[name] = np.where(p == 0.5, 0.5, (p > 0.5) == first)
        one = np.ones(len(rows))
        found["methods"][name] = {
            "log_loss": ratio(losses[name], together, groups),
            "right": ratio(rights[name], one, groups),
            "log_loss_above_posterior": ratio(losses[name] - losses["posterior"], together, groups),
            "right_below_posterior": ratio(rights["posterior"] - rights[name], one, groups),
        }
    found["log_loss_of_the_truth"] = ratio(
        log_loss(column["true"], actual, together), together, groups
    )
    return found


def show(found):
    """Print a table of all methods."""
    print(f"{found['data_sets']} data sets, {found['pairs']} pairs; R-hat of the posterior above "
          f"1.05 in {found['r_hat_above_1.05']}")  # fmt: skip
    print(f"{'':14}  {'log loss':>15}  {'above posterior':>16}  {'right calls':>15}  "
          f"{'below posterior':>16}")  # fmt: skip
    for name, row in found["methods"].items():
        text = "  ".join(
            f"{row[key][0]:7.3f} +- {row[key][1]:.3f}"
            for key in (
                "log_loss", "log_loss_above_posterior", "right", "right_below_posterior",
            )
        )  # fmt: skip
        print(f"{name:14} {text}")
    value, error = found["log_loss_of_the_truth"]
    print(f"{'true model':14} {value:7.3f} +- {error:.3f}")


def main():
    """Run the data sets that have no result yet (none with --summary), and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--sets", type=int, default=60)
    parser.add_argument(
        "--summary", action="store_true", help="run nothing; summarise and write the results"
    )
    options = parser.parse_args()
    options.output.mkdir(exist_ok=True, parents=True)
    if not options.summary:
        for seed in range(options.sets):
            path = options.output / f"{seed:04d}.json"
            if not path.exists():
                path.write_text(json.dumps(one_data_set(seed)))
    records = [json.loads(p.read_text()) for p in sorted(options.output.glob("*.json"))]
    found = {"all": summarise(records)}
    for name, sizes in (("small", SMALL), ("large", LARGE)):
        part = [r for r in records if (r["n"], r["samples"]) in sizes]
        if part:
            found[name] = summarise(part)
    for name, part in found.items():
        print(f"\n{name}:")
        show(part)
    if options.summary:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
