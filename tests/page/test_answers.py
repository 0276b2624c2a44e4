"""The report page computes some answers itself. They agree with the answers of Python."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from report.made_posterior import made_posterior
from sequela import Dataset, Exponential, Model
from sequela.likelihood import sample_posteriors
from sequela.questions import (
    cohort_orders,
    likely_orders,
    next_items,
    set_probability,
    time_posterior,
)
from sequela.report.html_posterior import encoded_draws, page_draws

PAGE = Path(__file__).parents[2] / "page"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(
    NODE is None or not PAGE.exists(), reason="Node.js is not installed, or there is no folder page"
)


def ask(cases):
    done = subprocess.run(  # noqa: S603 - our own script
        [NODE, str(PAGE / "tools" / "answers.mjs")],
        input=json.dumps(cases), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def random_model(rng, n, *, density, spread, rate):
    theta = rng.normal(size=(n, n)) * spread * (rng.random((n, n)) < density)
    np.fill_diagonal(theta, rng.normal(-1.0, 1.2, size=n))
    return Model(theta, [f"item {k}" for k in range(n)], observation=Exponential(rate))


def case_of(model, chosen, times):
    effects = model.theta.copy()
    np.fill_diagonal(effects, 0.0)
    source, target = np.nonzero(effects)
    return {
        "base": np.diagonal(model.theta).tolist(),
        "effects": {
            "from": source.tolist(),
            "to": target.tolist(),
            "effect": effects[source, target].tolist(),
        },
        "stopRate": model.observation.rate,
        "set": [int(j) for j in chosen],
        "times": [float(t) for t in times],
    }


# Number of items, size of the set, share of interactions that are not 0, standard deviation of the
# interactions, rate of the observation.
SHAPES = [
    (3, 0, 1.0, 1.0, 1.0), (3, 3, 1.0, 2.0, 1.0), (5, 1, 0.5, 1.0, 0.3), (8, 4, 0.6, 1.5, 2.0),
    (12, 6, 0.3, 2.5, 1.0), (30, 9, 0.2, 1.0, 1.0), (12, 12, 0.5, 0.8, 1.0),
    (60, 10, 0.05, 3.0, 5.0), (10, 5, 1.0, 4.0, 1.0),
]  # fmt: skip


@pytest.fixture(scope="module")
def asked():
    found = []
    for seed, (n, k, density, spread, rate) in enumerate(SHAPES):
        rng = np.random.default_rng(seed)
        model = random_model(rng, n, density=density, spread=spread, rate=rate)
        chosen = np.sort(rng.choice(n, size=k, replace=False))
        posterior = time_posterior(model, [model.items[j] for j in chosen])
        times = posterior.quantile([0.01, 0.2, 0.5, 0.8, 0.99])["time"].to_numpy()
        found.append((model, chosen, posterior, times))
    answers = ask([case_of(model, chosen, times) for model, chosen, _, times in found])
    return list(zip(found, answers, strict=True))


@pytest.mark.parametrize("place", range(len(SHAPES)))
def test_the_page_answers_as_python_does(asked, place):
    (model, chosen, posterior, times), answer = asked[place]
    labels = [model.items[j] for j in chosen]

    def close(found, expected):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)

    close(np.exp(answer["logProbability"]), float(set_probability(model, labels)))
    curve = posterior.density(times)
    close(answer["density"], curve["density"])
    close(answer["cumulative"], curve["cumulative"])
    close(answer["quantiles"], posterior.quantile([0.05, 0.5, 0.95])["time"])
    close([answer["mean"], answer["sd"]], [posterior.mean, np.sqrt(posterior.variance)])
    row = np.zeros((1, model.n_items), dtype=bool)
    row[0, chosen] = True
    past = sample_posteriors(model, Dataset(row, items=model.items))
    if chosen.size:
        close(answer["before"], past.before(0))
        close(answer["place"], past.place(0))
        close(answer["arrival"], past.arrival_mean[0, chosen])
    best = likely_orders(model, labels, 3)
    close([way["probability"] for way in answer["orders"]], best["probability"])
    step = next_items(model, labels)
    close(answer["observedFirst"], step.observed_first)
    shares = {
        model.items[x["item"]]: (x["rate"], x["probability"], x["share"]) for x in answer["next"]
    }
    assert set(shares) == set(step.items.index)
    for item, row_ in step.items.iterrows():
        close(shares[item], row_.to_numpy())


# --- Averages over draws of a posterior -----------------------------------------------------------


def mean_over(models, labels, times):
    """Return the answers of all models, averaged: times, arrivals, and next items."""
    found = [time_posterior(model, labels) for model in models]
    row = np.isin(models[0].items, labels)[None, :]
    data = Dataset(row, items=models[0].items)
    past = [sample_posteriors(model, data) for model in models]
    return {
        "density": np.mean([one.density(times)["density"] for one in found], axis=0),
        "cumulative": np.mean([one.density(times)["cumulative"] for one in found], axis=0),
        "mean": np.mean([one.mean for one in found]),
        "sd": np.sqrt(np.mean([one.variance + one.mean**2 for one in found])
                      - np.mean([one.mean for one in found]) ** 2),
        "before": np.mean([one.before(0) for one in past], axis=0),
        "place": np.mean([one.place(0) for one in past], axis=0),
        "arrival": np.mean([one.arrival_mean[0, row[0]] for one in past], axis=0),
        "next": sum(next_items(model, labels).items for model in models) / len(models),
        "observed_first": np.mean([next_items(model, labels).observed_first for model in models]),
    }  # fmt: skip


@pytest.mark.parametrize(("n", "k", "rate"), [(4, 2, 1.0), (9, 5, 0.5), (14, 6, 2.0)])
def test_the_page_averages_over_the_draws_that_it_holds(n, k, rate):
    rng = np.random.default_rng(n)
    data = Dataset(rng.random((40, n)) < 0.4, items=[f"item {j}" for j in range(n)])
    posterior = made_posterior(data, chains=2, draws=5, seed=n, rate=rate)
    theta = page_draws(posterior).astype(np.float64)
    models = [Model(x, posterior.items, observation=posterior.observation) for x in theta]
    chosen = np.sort(rng.choice(n, size=k, replace=False))
    labels = [posterior.items[j] for j in chosen]
    times = [0.05, 0.3, 1.0, 2.5]
    held = {"draws": encoded_draws(posterior), "stop_rate": rate}
    case = {"model": held, "n": n, "set": chosen.tolist(), "times": times}
    answer = ask([case])[0]
    expected = mean_over(models, labels, times)

    def close(found, wanted):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)

    for name in ("density", "cumulative", "mean", "sd", "before", "place", "arrival"):
        close(answer[name], expected[name])
    # At the p-quantile of a mixture, the mean of the distribution functions of its parts is p.
    parts = [time_posterior(model, labels) for model in models]
    for t, p in zip(answer["quantiles"], (0.05, 0.5, 0.95), strict=True):
        close(np.mean([one.density([t])["cumulative"].iloc[0] for one in parts]), p)
    close(answer["observedFirst"], expected["observed_first"])
    for one in answer["next"]:
        row = expected["next"].loc[posterior.items[one["item"]]]
        close([one["rate"], one["probability"], one["share"]], row.to_numpy())
    every = [likely_orders(model, labels, 720) for model in models]
    best = sum(by_order(table) for table in every) / len(models)
    ranked = best.sort_values(ascending=False)
    close([way["probability"] for way in answer["orders"]], ranked.iloc[:3])
    for way in answer["orders"]:
        close(way["probability"], best[tuple(posterior.items[j] for j in way["order"])])


def by_order(table):
    return pd.Series(
        {tuple(o): p for o, p in zip(table["order"], table["probability"], strict=True)}
    )


def test_the_page_draws_the_tree_that_python_counts():
    rng = np.random.default_rng(3)
    model = random_model(rng, 8, density=0.3, spread=1.0, rate=1.0)
    cohort = cohort_orders(model, Dataset(rng.random((80, 8)) < 0.35, items=model.items))
    place = {label: at for at, label in enumerate(model.items)}
    orders = [[place[label] for label in order] for order in cohort.orders]

    def plain(branch):
        return {
            "item": -1 if branch.item is None else place[branch.item],
            "count": branch.count, "ended": branch.ended, "rest": branch.rest,
            "children": [plain(child) for child in branch.children],
        }  # fmt: skip

    cases = [(range(8), 1), ([0, 2, 5], 1), (range(8), 4)]
    found = ask([{"orders": orders, "keep": list(keep), "least": least} for keep, least in cases])
    for (keep, least), tree in zip(cases, found, strict=True):
        labels = [model.items[j] for j in keep]
        assert tree == plain(cohort.tree(labels, least=least))


def test_the_page_passes_its_own_tests():
    done = subprocess.run(  # noqa: S603
        [NODE, "--test", str(PAGE / "test")],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout[-3000:]
