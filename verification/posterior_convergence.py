"""Do the chains converge? R-hat, effective draws and CPU time of the posterior for hard tables.

The posterior of every table is sampled from dispersed starts until every order probability has an
R-hat of at most 1.01 and at least 400 effective draws, or until there are `MOST_DRAWS` draws per
chain. With ``--nuts``, the same posterior is also sampled by NUTS (nutpie) with the exact gradients
of sequela, and judged by the same criteria.

Run it with ``python -m verification.posterior_convergence -o FOLDER [--only NAME ...] [--nuts]``.
It continues from the results in the folder. ``--summary`` prints the table of `docs/posterior.md`.
Real tables are read from the folder in the environment variable SEQUELA_DATA.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.datasets import data_folder, glioblastoma

from sequela import Dataset, posterior, simulate
from sequela.kernels.posterior_sweep import log_likelihoods
from sequela.kernels.sample_orders import sum_sample_orders
from sequela.observation import Exponential
from sequela.posteriors import Laplace, NotConvergedWarning
from sequela.posteriors.diagnostics import effective_size, r_hat
from sequela.posteriors.priors import as_prior
from sequela.posteriors.problem import Problem

PRIORS = {
    "default": as_prior(None),
    "Laplace, learned scale": Laplace(),
    "Laplace, scale 0.4": Laplace(0.4),
}
LIMITS = (1.01, 400.0)
# The default limit is 6,000 draws per chain. The cascade with a fixed scale needs more.
MOST_DRAWS = 20_000
# In the cascade, chains change between the orders only in strongly heated replicas.
REPLICAS = {"cascade, 12 items": 8}


def cascade():
    """Return 2,300 samples of 12 items. Three items are a cascade, and one inhibits all others."""
    rng = np.random.default_rng(7)
    theta = np.diag(rng.uniform(-2.5, -0.5, 12))
    for first, second in ((0, 1), (1, 2), (4, 5)):
        theta[second, second] = -3.5
        theta[first, second] = 4.0
    theta[3, np.arange(12) != 3] = -1.5
    return simulate(theta, 2300, random_state=7).to_dataset().without_times()


def older_glioblastoma():
    """Return the older glioblastoma table, with 20 items and 261 samples."""
    return Dataset.coerce(pd.read_csv(data_folder() / "gbm" / "schill20.csv"))


def glioblastoma_items(n):
    """Return the 378 glioblastoma samples with the n most frequent items."""
    return Dataset.coerce(glioblastoma(data_folder()).iloc[:, :n])


def five_items(clocks):
    """Return 500 samples of five items with some clock items."""
    table = pd.read_csv(data_folder() / "synthetic" / "synth5.csv")
    return Dataset.coerce(table.iloc[:, 2 : 7 + clocks])


TABLES = {
    "five items": partial(five_items, 0),
    "five items, 10 clocks": partial(five_items, 10),
    "five items, 40 clocks": partial(five_items, 40),
    "cascade, 12 items": cascade,
    "20-item table": older_glioblastoma,
    "glioblastoma, 20 items": partial(glioblastoma_items, 20),
    "glioblastoma, 50 items": partial(glioblastoma_items, 50),
    "glioblastoma, 100 items": partial(glioblastoma_items, 100),
}


def cpu_seconds():
    """Return the CPU time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def judged(orders):
    """Return the largest R-hat and the smallest number of effective draws over all pairs.

    `orders` has the shape (chains, draws, pairs).
    """
    varying = np.ptp(orders, axis=(0, 1)) > 0.0
    return float(r_hat(orders[:, :, varying]).max()), float(
        effective_size(orders[:, :, varying]).min()
    )


def sample(data, prior, seed, replicas=1):
    """Sample until convergence, and return time, draws, R-hat and effective draws of the run."""
    options = {"prior": prior, "random_state": seed, "n_threads": 2, "replicas": replicas}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        # Compile first, so that compilation is not measured.
        posterior(data, **options, draws=4, warm_up=10, thin=1)
        begun, cpu = time.monotonic(), cpu_seconds()
        found = posterior(data, **options, most_draws=MOST_DRAWS)
        record = {"cpu": cpu_seconds() - cpu, "seconds": time.monotonic() - begun}
    hat, size = judged(found.draws.orders)
    worst = found.convergence.worst
    return record | {
        "replicas": replicas, "draws": int(found.draws.scale.shape[1]),
        "pairs": len(found.pairs), "r_hat": hat,
        "effective": size, "converged": hat <= LIMITS[0] and size >= LIMITS[1],
        "worst": list(worst) if worst else None,
    }  # fmt: skip


def log_density(q, problem):
    """Return the log-posterior at q, and its gradient.

    q contains base rates, and interactions in units of the scale of the prior. If the scale is
    learned, the last entry of q is its logarithm, standardised by the prior of the scale.
    """
    n, prior, shape = problem.n, problem.prior, problem.target.prior
    off = ~np.eye(n, dtype=bool)
    x = q[: n * n].reshape(n, n)
    learned = shape.log_spread > 0.0
    unit = float(np.exp(shape.log_median + shape.log_spread * q[-1])) if learned else prior.scale
    theta = np.where(off, unit * x, x)
    values, gradient = np.zeros(2), np.zeros((n, n))
    if not theta.max() < 40.0 or not log_likelihoods(
        values, gradient, theta, problem.target, np.empty(0, dtype=np.int64)
    ):
        return -np.inf, np.zeros(q.size)
    away = (np.diagonal(x) - shape.base_mean) / shape.base_sd
    value = values.sum() - 0.5 * (away**2).sum() - np.abs(x[off]).sum()
    slope = np.where(off, unit * gradient - np.sign(x), gradient)
    slope[np.diag_indices(n)] -= away / shape.base_sd
    if not learned:
        return value, slope.ravel()
    pull = shape.log_spread * (gradient * theta)[off].sum() - q[-1]
    return value - 0.5 * q[-1] ** 2, np.append(slope.ravel(), pull)


def sample_nuts(data, prior, seed, replicas=1, draws=1000):  # noqa: ARG001 - as `sample`
    """Sample the same posterior by NUTS, and return the same measures as `sample`."""
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    largest = int(np.asarray(data.values).sum(axis=1).max())
    problem = Problem.of(data, prior, Exponential(), largest)
    n = problem.n
    size = n * n + (problem.target.prior.log_spread > 0.0)
    rng = np.random.default_rng(seed)

    def start(_seed):
        state = problem.start(rng)
        theta = problem.theta(state)[0]
        off = ~np.eye(n, dtype=bool)
        return np.append(np.where(off, theta / problem.scale(state), theta), np.zeros(1))[:size]

    model = from_pyfunc(
        ndim=size, make_logp_fn=lambda: partial(log_density, problem=problem),
        make_expand_fn=lambda *_: lambda x: {"q": x}, expanded_dtypes=[np.dtype("float64")],
        expanded_shapes=[(size,)], expanded_names=["q"], make_initial_point_fn=start,
    )  # fmt: skip
    begun, cpu = time.monotonic(), cpu_seconds()
    trace = nutpie.sample(
        model, chains=4, tune=draws // 2, draws=draws, seed=seed, cores=1, progress_bar=False
    )
    record = {"cpu": cpu_seconds() - cpu, "seconds": time.monotonic() - begun}
    q = np.asarray(trace.posterior["q"])
    pairs = problem.pairs
    orders = np.empty((*q.shape[:2], len(pairs)))
    shape = problem.target.prior
    off = ~np.eye(n, dtype=bool)
    for place in np.ndindex(*q.shape[:2]):
        row = q[place]
        unit = (
            np.exp(shape.log_median + shape.log_spread * row[-1]) if size > n * n else prior.scale
        )
        x = row[: n * n].reshape(n, n)
        before = np.empty((n, n))
        sum_sample_orders(
            before, np.where(off, unit * x, x), problem.target, np.empty(0, dtype=np.int64)
        )
        orders[place] = before[pairs[:, 0], pairs[:, 1]]
    hat, effective = judged(orders)
    return record | {"draws": draws, "r_hat": hat, "effective": effective,
                     "converged": hat <= LIMITS[0] and effective >= LIMITS[1]}  # fmt: skip


def summary(records):
    """Print one row per run."""
    print("| table | prior | sampler | CPU s | draws per chain | R-hat | effective draws |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for r in records:
        print(f"| {r['table']} | {r['prior']} | {r['sampler']} | {r['cpu']:.0f} | {r['draws']} | "
              f"{r['r_hat']:.3f} | {r['effective']:.0f} |")  # fmt: skip


def main():
    """Run the tables that have no result yet (none with --summary), and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--only", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--prior", nargs="*", choices=PRIORS, default=list(PRIORS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nuts", action="store_true")
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    options.output.mkdir(exist_ok=True, parents=True)
    # NUTS is run only with Laplace priors, because `log_density` has no other prior.
    samplers = {"sequela": sample} | ({"NUTS": sample_nuts} if options.nuts else {})
    for table in [] if options.summary else options.only:
        for prior in options.prior:
            for name, sampler in samplers.items():
                if name == "NUTS" and not isinstance(PRIORS[prior], Laplace):
                    continue
                path = options.output / f"{table}, {prior}, {name}, {options.seed}.json"
                if path.exists():
                    continue
                replicas = REPLICAS.get(table, 1)
                record = sampler(TABLES[table](), PRIORS[prior], options.seed, replicas)
                record = {"table": table, "prior": prior, "sampler": name} | record
                path.write_text(json.dumps(record | {"seed": options.seed}, indent=1))
    found = [json.loads(p.read_text()) for p in options.output.glob("*.json")]
    summary(sorted(found, key=lambda r: (list(TABLES).index(r["table"]), r["prior"], r["sampler"])))


if __name__ == "__main__":
    main()
