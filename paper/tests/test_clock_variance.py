"""Figures 6 to 8: posterior variances, compared with exact sums over all sets."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.linalg import expm
from scipy.special import betaln, gammaln, polygamma

from sequela.questions import time_posterior
from sequela_paper import Settings, find_experiment, make
from sequela_paper.clock_variance import (
    adjusted_theta,
    pair_log_probabilities,
    task,
    time_variances,
)
from sequela_paper.time_posteriors import clocks_log_likelihood, time_rule

NAMES = ("fig6", "fig7", "fig8")
GAMMAS = (0.0, 4.0, 8.0, 12.0, -4.0, -8.0, -12.0)
# A sampled mean may differ from the exact mean by this many standard errors. There are about 60
# comparisons. In a correct program, the probability that any of them fails is below 1e-3.
ALLOWED = 4.5


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    found = {}
    for name in NAMES:
        folder = tmp_path_factory.mktemp(name) / "x"
        done = make(name, Settings(quick=True), folder, backend="threads", workers=1)
        found[name] = (folder, done)
    return found


@pytest.fixture(scope="module")
def tables(made):
    return {name: pd.read_csv(made[name][0] / f"{name}.csv") for name in NAMES}


def mean_variance_identical(w, m):
    """Return the mean posterior variance of the time for m items of rate w.

    It is a sum over the number k of items that are present, which has the probability
    P(k) = C(m, k) B(m - k + 1/w, k + 1) / w. Lemma 1 (corrected) gives the variance for each k.
    """
    k = np.arange(m + 1)
    log_p = gammaln(m + 1) - gammaln(k + 1) - gammaln(m - k + 1) - math.log(w)
    p = np.exp(log_p + betaln(m - k + 1 / w, k + 1))
    assert p.sum() == pytest.approx(1.0, abs=1e-8)
    alpha = 1 / w + m - k
    variance = (polygamma(1, alpha) - polygamma(1, 1 / w + m + 1)) / w**2
    return float(p @ variance)


def mean_variance_of_all_sets(theta):
    """Return the mean posterior variance from the generator over all sets.

    The integrals of exp(-t) t^k exp(Q t) over t are k! (I - Q)^-(k + 1). Their row 0 belongs to the
    empty set, where the chain starts.
    """
    n = len(theta)
    size = 1 << n
    A = np.eye(size)
    for R in range(size):
        members = [i for i in range(n) if R >> i & 1]
        for j in set(range(n)) - set(members):
            q = math.exp(theta[j, j] + sum(theta[i, j] for i in members))
            A[R, R] += q
            A[R, R | 1 << j] -= q
    p = np.linalg.solve(A.T, np.eye(size)[0])
    first = np.linalg.solve(A.T, p)
    second = 2 * np.linalg.solve(A.T, first)
    return float((second - first**2 / p).sum())


def blocks(m, gamma, diagonal):
    theta = np.diag(np.full(m, float(diagonal)))
    for i in range(0, m - 1, 2):
        theta[i, i + 1] = theta[i + 1, i] = gamma
    if m % 2:
        theta[-1, -1] = -2.0
    return theta


def generator(diagonal, gamma):
    """Return the generator of one pair, with the states none, the first, the second, both."""
    a, b = math.exp(diagonal), math.exp(diagonal + gamma)
    return np.array([[-2 * a, a, a, 0], [0, -b, 0, b], [0, 0, -b, b], [0, 0, 0, 0]])


@pytest.mark.parametrize("name", NAMES)
def test_files_and_verdict(name, made):
    folder, found = made[name]
    for suffix in ("csv", "svg", "pdf", "png", "json"):
        assert (folder / f"{name}.{suffix}").stat().st_size > 0
    assert found.verdict.holds is True, found.verdict.text
    assert json.loads((folder / f"{name}.json").read_text())["holds"] is True


def test_identical_items_have_their_exact_mean(tables):
    for row in tables["fig6"].itertuples():
        if "in" not in row.setting:
            w = math.exp(float(row.setting.split("=")[1]))
            expected = mean_variance_identical(w, row.m)
            assert row.variance == pytest.approx(expected, abs=ALLOWED * row.se)
            assert row.se < 0.1 * row.variance
    # The case without interaction (gamma = 0) is that of single items with theta = -2.
    for name in ("fig7", "fig8"):
        for row in tables[name].query("gamma == 0").itertuples():
            expected = mean_variance_identical(math.exp(-2.0), row.m)
            assert row.variance == pytest.approx(expected, abs=ALLOWED * row.se)


def test_random_rates_have_their_mean(tables):
    """Compare with the mean over 300 random diagonals of 5 items, each summed over all sets."""
    rng = np.random.default_rng(5)
    found = [mean_variance_of_all_sets(np.diag(rng.uniform(-3.0, -1.0, 5))) for _ in range(300)]
    row = tables["fig6"].query("setting == 'theta in [-3, -1]' and m == 5").iloc[0]
    error = math.hypot(row["se"], np.std(found) / math.sqrt(len(found)))
    assert row["variance"] == pytest.approx(np.mean(found), abs=ALLOWED * error)


@pytest.mark.parametrize("name", ["fig7", "fig8"])
def test_pairs_have_their_exact_mean(name, tables):
    """Compare 5 items (two pairs and a single item) and 10 items with sums over all sets."""
    for row in (
        tables[name].query("m == 5 or (m == 10 and (gamma == 4 or gamma == -8))").itertuples()
    ):
        expected = mean_variance_of_all_sets(blocks(row.m, row.gamma, row.diagonal))
        assert row.variance == pytest.approx(expected, abs=ALLOWED * row.se)


def test_strongly_attractive_pairs_are_half_as_many_items(tables):
    """With gamma = 12 the items of a pair arrive together, so the pairs are like m / 2 items."""
    for row in tables["fig7"].query("gamma == 12 and m >= 10").itertuples():
        expected = mean_variance_identical(math.exp(-2.0), row.m // 2)
        assert row.variance == pytest.approx(expected, abs=ALLOWED * row.se + 0.01 * expected)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_the_diagonal_keeps_the_frequency(gamma, tables):
    diagonal = adjusted_theta(gamma)
    Q = generator(diagonal, gamma)
    p = np.linalg.solve((np.eye(4) - Q).T, np.eye(4)[0])
    assert p[1] + p[3] == pytest.approx(1 / (1 + math.exp(2.0)), rel=1e-10)
    for name in ("fig7", "fig8"):
        rows = tables[name][tables[name]["gamma"] == gamma]
        np.testing.assert_allclose(rows["diagonal"], diagonal)
        np.testing.assert_allclose(rows["least_frequency"], p[1] + p[3], rtol=1e-9)
        np.testing.assert_allclose(rows["most_frequency"], p[1] + p[3], rtol=1e-9)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_probabilities_of_a_pair_are_those_of_its_generator(gamma):
    diagonal = adjusted_theta(gamma)
    times = np.array([0.003, 0.1, 1.0, 3.0, 20.0])
    found = np.exp(pair_log_probabilities(diagonal, gamma, times))
    for t, (none, one, both) in zip(times, found.T, strict=True):
        expected = expm(generator(diagonal, gamma) * t)[0]
        np.testing.assert_allclose([none, one, one, both], expected, rtol=1e-7, atol=1e-15)


def test_probabilities_of_a_pair_stay_finite_at_every_node():
    times, _ = time_rule(600)
    for gamma in GAMMAS:
        logs = pair_log_probabilities(adjusted_theta(gamma), gamma, times)
        assert np.isfinite(logs).all()
        np.testing.assert_allclose(
            np.exp(logs[0]) + 2 * np.exp(logs[1]) + np.exp(logs[2]), 1.0, rtol=1e-9
        )


@pytest.mark.parametrize("gamma", [4.0, 12.0, -4.0, -12.0])
def test_variances_of_pairs_are_those_of_the_time_posterior(gamma):
    times, _ = time_rule(600)
    logs = pair_log_probabilities(adjusted_theta(gamma), gamma, times)
    theta = blocks(6, gamma, adjusted_theta(gamma))
    for sample, counts in (
        ([], [3, 0, 0]),
        ([0, 2], [1, 2, 0]),
        ([0, 1, 4], [1, 1, 1]),
        ([0, 1, 2, 3, 4, 5], [0, 0, 3]),
    ):
        present = np.isin(np.arange(6), sample)
        variance = time_variances(np.array([counts], dtype=float) @ logs).item()
        assert time_posterior(theta, present).variance == pytest.approx(variance, rel=1e-8)


def test_variances_of_different_rates_are_integrals():
    rng = np.random.default_rng(3)
    rates = np.exp(rng.uniform(-3, -1, 30))
    present = rng.random((4, 30)) < np.array([[0.0], [0.1], [0.5], [1.0]])
    times, _ = time_rule(600)
    found = time_variances(clocks_log_likelihood(present, rates, times))
    for row, variance in zip(present, found, strict=True):

        def moment(power, row=row):
            def weight(t):
                there = np.prod(-np.expm1(-rates[row] * t))
                return t**power * there * math.exp(-t * (1 + rates[~row].sum()))

            return quad(weight, 0, 80, epsabs=0.0, epsrel=1e-10, limit=400)[0]

        expected = moment(2) / moment(0) - (moment(1) / moment(0)) ** 2
        assert variance == pytest.approx(expected, rel=1e-6)


def test_the_rule_is_fine_enough_for_the_most_items():
    """Test `time_rule` with 1000 items of the highest rate: 0, 3, 500 or 1000 are present."""
    w, m = math.exp(-1.0), 1000
    times, _ = time_rule(600)
    for k in (0, 3, 500, 1000):
        present = (np.arange(m) < k)[None, :]
        found = time_variances(clocks_log_likelihood(present, np.full(m, w), times)).item()
        expected = (polygamma(1, 1 / w + m - k) - polygamma(1, 1 / w + m + 1)) / w**2
        assert found == pytest.approx(expected, rel=1e-8)


def test_a_task_is_its_seed():
    case = {"setting": "theta in [-3, -1]", "gamma": None, "m": 5, "samples": 100}
    assert task(seed=1, **case) == task(seed=1, **case)
    assert task(seed=1, **case)["variance"] != task(seed=2, **case)["variance"]


def changed(table, factor, **where):
    """Return the table with the variances of the chosen rows multiplied by `factor`."""
    chosen = np.logical_and.reduce([table[name] == value for name, value in where.items()])
    assert chosen.any()
    return table.assign(variance=np.where(chosen, factor, 1.0) * table["variance"])


def test_verdicts_need_their_numbers(tables):
    judged = {name: find_experiment(name).judge for name in NAMES}
    for name in NAMES:
        assert judged[name]({name: tables[name]}).holds is True
        # With twice the variance at m = 1000, the variance does not decrease as 1/m.
        slower = changed(tables[name], 2.0, m=1000)
        assert judged[name]({name: slower}).holds is False
    mixed = changed(tables["fig6"], 3.0, setting="theta in [-3, -1]")
    assert judged["fig6"]({"fig6": mixed}).holds is False
    half = changed(tables["fig7"], 1.6, gamma=12, m=100)
    assert judged["fig7"]({"fig7": half}).holds is False
    off = tables["fig7"].assign(most_frequency=0.12)
    assert judged["fig7"]({"fig7": off}).holds is False
    strong = changed(tables["fig8"], 1.7, gamma=-12)
    assert judged["fig8"]({"fig8": strong}).holds is False


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_shows_the_table(name, tables):
    figure = find_experiment(name).draw({name: tables[name]})
    (ax,) = figure.axes
    assert ax.get_xscale() == ax.get_yscale() == "log"
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(texts) == tables[name]["setting"].nunique() + 1
    assert not any("$$" in text or "theta i" in text for text in texts)
    bars = {container.get_label(): container for container in ax.containers}
    assert len(bars) == tables[name]["setting"].nunique()
    for container, (_, line) in zip(
        ax.containers, tables[name].groupby("setting", sort=False), strict=True
    ):
        np.testing.assert_array_equal(container.lines[0].get_ydata(), line["variance"])
        ends = container.lines[2][0].get_segments()[0][:, 1]
        variance, error = line["variance"].iloc[0], line["se"].iloc[0]
        np.testing.assert_allclose(ends, [variance - 2 * error, variance + 2 * error])
    (reference,) = [line for line in ax.lines if line.get_label() == "6.9 / m"]
    np.testing.assert_allclose(reference.get_xdata() * reference.get_ydata(), 6.9)
