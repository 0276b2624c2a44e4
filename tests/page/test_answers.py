"""The page's own answers equal those of Python: next items, time density, order in a set."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from sequela import Dataset, Exponential, Model
from sequela.likelihood import sample_posteriors
from sequela.questions import (
    cohort_orders,
    likely_orders,
    next_items,
    set_probability,
    time_posterior,
)

PAGE = Path(__file__).parents[2] / "page"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(
    NODE is None or not PAGE.exists(), reason="node, or the source of the page, is not there"
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


# Items, size of the set, share of interactions, their size, rate of the observation.
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
