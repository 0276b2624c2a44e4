"""The quick form of figure 9, and its samplers compared with a simple Metropolis-Hastings."""

import itertools

import numpy as np
import pandas as pd
import pytest

import reference as ref
from sequela import Dataset, evaluate
from sequela_paper import Settings, make
from sequela_paper.gradient_error import judge, sampled_gradient


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SEQUELA_DATA", raising=False)
        folder = tmp_path_factory.mktemp("paper") / "fig9"
        settings = Settings(quick=True, repeats=2)
        return make("fig9", settings, folder, backend="threads", workers=1)


def test_files(made):
    names = {path.name for path in made.files}
    assert {f"fig9.{suffix}" for suffix in ("csv", "svg", "pdf", "png", "json")} <= names
    assert all(path.stat().st_size > 0 for path in made.files)


def test_errors_shrink_with_draws_and_grow_with_items(made):
    table = pd.read_csv(made.files[0])
    assert len(table) == 2 * 2 * 3 * 3
    error = table.set_index(["penalty", "n", "sampler", "draws"])["error"]
    for penalty, sampler in itertools.product((0.01, 0.0), ("uniform", "informed", "relocation")):
        for n in (10, 20):
            assert error[penalty, n, sampler, 50] < error[penalty, n, sampler, 5]
        # The axis of the figure in the paper ends at 0.08.
        assert error[penalty, 20, sampler, 50] < 0.08
    for penalty, n, draws in itertools.product((0.01, 0.0), (10, 20), (5, 50)):
        assert error[penalty, n, "relocation", draws] < 0.5 * error[penalty, n, "uniform", draws]


def test_the_verdict_has_the_ratios(made):
    numbers = made.verdict.numbers
    ratio = numbers["informed n=20 penalty=0.01"]["ratio"]
    assert 0.5 < ratio < 2.0
    assert f"{ratio:.2f}" in made.verdict.text


def ratios(at_10, at_20):
    rows = [
        {"penalty": p, "n": n, "sampler": sampler, "ratio": r, "se": 0.05, "repeats": 20}
        for p in (0.01, 0.0)
        for n, r in ((10, at_10), (20, at_20))
        for sampler in ("informed", "relocation")
    ]
    return {"fig9": pd.DataFrame({"error": [0.05]}), "fig9_ratios": pd.DataFrame(rows)}


def test_the_claim_needs_equality_at_ten_and_a_clear_gain_at_twenty():
    assert judge(ratios(1.0, 1.6)).holds is True
    assert judge(ratios(1.0, 1.3)).holds is False
    assert judge(ratios(1.6, 1.6)).holds is False


# --- Samplers -------------------------------------------------------------------------------------

THETA = np.array(
    [[-0.5, 1.5, 0.0, 0.7], [0.0, -1.0, -1.2, 0.0], [0.9, 0.0, -0.8, 0.4], [0.0, 0.0, 0.5, -1.5]]
)
SAMPLE = (0, 1, 2)


def informed_probability(theta, order):
    """Return Q of Algorithm 2, with two corrections: Q starts at 1; u is divided by its sum."""
    n = len(theta)
    total = 1.0
    for place in range(len(order)):
        u = {}
        for v in order[place:]:
            after = {*order[:place], v}
            d = 1.0 + sum(ref.rate(theta, after, j) for j in range(n) if j not in after)
            u[v] = np.exp(sum(theta[v, j] for j in order[place:] if j != v)) / d
        total *= u[order[place]] / sum(u.values())
    return total


def plain_errors(draws, runs, *, informed):
    """Return the errors of a simple Metropolis-Hastings, and the exact gradient.

    The simple version chooses among the rows of a table that lists all orders.
    """
    orders = list(itertools.permutations(SAMPLE))
    p = np.exp([ref.log_p_sequence(THETA, order) for order in orders])
    gradients = np.array([order_gradient(order) for order in orders])
    exact = np.tensordot(p / p.sum(), gradients, axes=1)
    q = np.full(len(orders), 1.0 / len(orders))
    if informed:
        q = np.array([informed_probability(THETA, order) for order in orders])
        assert q.sum() == pytest.approx(1.0)
    rng = np.random.default_rng(1)
    found = []
    for _ in range(runs):
        proposals = rng.choice(len(orders), size=draws + 11, p=q)
        at = proposals[0]
        mean = np.zeros_like(exact)
        for step, new in enumerate(proposals[1:]):
            if rng.random() < p[new] / q[new] * q[at] / p[at]:
                at = new
            if step >= 10:
                mean += gradients[at] / draws
        found.append(np.linalg.norm(mean - exact))
    return np.array(found), exact


def order_gradient(order, step=1e-6):
    gradient = np.zeros_like(THETA)
    for i, j in itertools.product(range(4), repeat=2):
        change = np.zeros_like(THETA)
        change[i, j] = step
        up, down = (ref.log_p_sequence(THETA + s * change, order) for s in (1, -1))
        gradient[i, j] = (up - down) / (2 * step)
    return gradient


@pytest.mark.parametrize("informed", [True, False])
def test_errors_are_those_of_a_plain_metropolis_hastings(informed):
    data = Dataset(np.array([[1, 1, 1, 0]], dtype=bool))
    expected, exact = plain_errors(8, 1000, informed=informed)
    method = "metropolis" if informed else "metropolis-uniform"
    found = np.array(
        [
            np.linalg.norm(sampled_gradient(data, THETA, method, 8, seed) - exact)
            for seed in range(1000)
        ]
    )
    # The difference may be up to five of its standard errors. A correct program exceeds this about
    # once in 2 million runs.
    spread = np.sqrt((expected.var() + found.var()) / 1000)
    assert abs(expected.mean() - found.mean()) < 5.0 * spread


def test_identical_samples_have_chains_of_their_own():
    one = Dataset(np.array([[1, 1, 1, 0]], dtype=bool))
    nine = Dataset(np.repeat(one.values, 9, axis=0))
    exact = evaluate(THETA, one, method="exact").gradient
    squares = {
        name: np.mean(
            [
                np.sum((sampled_gradient(data, THETA, "metropolis-uniform", 8, seed) - exact) ** 2)
                for seed in range(400)
            ]
        )
        for name, data in (("one", one), ("nine", nine))
    }
    assert squares["one"] / squares["nine"] == pytest.approx(9.0, rel=0.35)
