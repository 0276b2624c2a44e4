"""How much items tell about the time: compare with an enumeration and a closed form."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import reference
from questions.enumeration import observed
from sequela import Dataset, InputError, Model, questions
from sequela.budget import Budget
from sequela.questions.theory import identical_items_posterior


def subsets(n):
    return [[j for j in range(n) if mask >> j & 1] for mask in range(1 << n)]


def expected_variance(theta, rate=1.0):
    """Return the mean of Var(T | S), the posterior variance of the time, over all sets S."""
    p = reference.set_distribution(theta, rate)
    variances = [reference.posterior_time_moments(theta, S, rate)[1] for S in subsets(len(theta))]
    return float(p @ variances)


# --- The curve ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1.0, 0.25])
def test_curve_against_all_sets(rate):
    theta = reference.random_theta(np.random.default_rng(1), 4)
    found = questions.clock_curve(
        observed(theta, rate, list("abcd")), items=["c", "a", "d"], sizes=[0, 1, 2, 3],
        draws=4_000, random_state=1,
    )  # fmt: skip
    assert found.index.tolist() == [0, 1, 2, 3]
    assert found["item"].tolist() == ["", "c", "a", "d"]
    assert found.loc[0, ["variance", "se", "share"]].tolist() == [1 / rate**2, 0.0, 1.0]
    for m in (1, 2, 3):
        part = [2, 0, 3][:m]
        truth = expected_variance(theta[np.ix_(part, part)], rate)
        assert abs(found.loc[m, "variance"] - truth) < 5 * found.loc[m, "se"]
        assert 0 < found.loc[m, "se"] < 0.05 * truth
        assert found.loc[m, "share"] == pytest.approx(found.loc[m, "variance"] * rate**2)
    assert found.attrs == {"draws": 4_000, "seed": 1}


def test_errors_of_the_curve_are_calibrated():
    theta = reference.random_theta(np.random.default_rng(2), 4)
    truth = expected_variance(theta)
    z = []
    for seed in range(40):
        row = questions.clock_curve(theta, sizes=[4], draws=300, random_state=seed).iloc[0]
        z.append((row["variance"] - truth) / row["se"])
    assert abs(np.mean(np.square(z)) - 1) < 1.1
    assert abs(np.mean(z)) < 0.8


def test_identical_independent_items_are_a_clock_of_precision_one_over_m():
    w = 0.5
    sizes = [5, 20, 80]
    found = questions.clock_curve(
        np.diag(np.full(80, np.log(w))), sizes=sizes, draws=400, random_state=1,
        budget=Budget(work=1e5),
    )  # fmt: skip
    truth = []
    for m in sizes:
        # p[k] is the probability that k items are observed: k arrivals, and then the observation.
        D = [1 + w * (m - k) for k in range(m + 1)]
        p = [math.prod(w * (m - j) / D[j] for j in range(k)) / D[k] for k in range(m + 1)]
        assert sum(p) == pytest.approx(1)
        truth.append(sum(p[k] * identical_items_posterior(w, m, k)[1] for k in range(m + 1)))
        assert abs(found.loc[m, "variance"] - truth[-1]) < 5 * found.loc[m, "se"]
    # The variance decreases with m. If m is large, it is nearly proportional to 1 / m.
    assert found["variance"].is_monotonic_decreasing
    ratio = found.loc[20, "variance"] / found.loc[80, "variance"]
    error = ratio * np.hypot(*(found.loc[m, "se"] / found.loc[m, "variance"] for m in (20, 80)))
    assert abs(ratio - truth[1] / truth[2]) < 5 * error
    assert 2 < ratio < 4.5


def test_order_of_the_items():
    base = np.array([-2.0, 1.0, 0.0, -1.0])
    model = Model(np.diag(base), list("abcd"))

    def order(**options):
        return questions.clock_curve(model, sizes=[1, 2, 3, 4], draws=5, random_state=1, **options)[
            "item"
        ].tolist()

    assert order() == ["b", "c", "d", "a"]
    data = Dataset([[1, 0, 1, 0], [1, 0, 0, 0], [1, 1, 1, 0]], items=list("abcd"))
    assert order(data=data) == ["a", "c", "b", "d"]
    assert order(data=data.to_frame()[list("dcba")]) == ["a", "c", "b", "d"]
    assert order(items=list("dabc")) == list("dabc")


def test_default_sizes_and_threads_and_target():
    theta = reference.random_theta(np.random.default_rng(3), 7, sparsity=0.5)
    one, two = (
        questions.clock_curve(theta, draws=60, random_state=2, n_threads=n, budget=Budget(work=1e3))
        for n in (1, 2)
    )
    assert one.index.tolist() == [0, 1, 2, 5, 7]
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    found = questions.clock_curve(theta, sizes=[2, 4], target_se=0.01, random_state=1)
    assert found["se"].max() <= 0.01
    assert found.attrs["draws"] > 400


# --- Items one by one -----------------------------------------------------------------------------


def item_truth(theta, rate):
    """Return a row per item: the share of the variance that it explains, and two mean times.

    These are the mean observation time of samples with the item, and of samples without it.
    """
    p = reference.set_distribution(theta, rate)
    sets = subsets(len(theta))
    mean = np.array([reference.posterior_time_moments(theta, S, rate)[0] for S in sets])
    rows = []
    for j in range(len(theta)):
        has = np.array([j in S for S in sets])
        share = p[has].sum()
        there, gone = p[has] @ mean[has] / share, p[~has] @ mean[~has] / (1 - share)
        rows.append([share * (1 - share) * (there - gone) ** 2 * rate**2, there, gone])
    return np.array(rows)


@pytest.mark.parametrize("rate", [1.0, 3.0])
def test_items_against_all_sets(rate):
    theta = reference.random_theta(np.random.default_rng(4), 4)
    truth = item_truth(theta, rate)
    z = []
    for seed in range(25):
        found = questions.clock_items(observed(theta, rate), draws=4_000, random_state=seed)
        assert found["explained"].is_monotonic_decreasing
        assert found.attrs == {"draws": 4_000, "seed": seed}
        found = found.loc[list("0123")]
        z.append((found["explained"].to_numpy() - truth[:, 0]) / found["se"].to_numpy())
        np.testing.assert_allclose(found["time_present"], truth[:, 1], rtol=0.25)
        np.testing.assert_allclose(found["time_absent"], truth[:, 2], rtol=0.25)
    # Each z has a t distribution with 19 degrees of freedom. For each item, the mean of z^2 over 25
    # seeds may differ from 1 by five standard deviations of this mean.
    assert np.all(np.abs(np.mean(np.square(z), axis=0) - 1) < 1.8)
    assert np.all(np.mean(np.square(z), axis=0) > 0.25)
    assert np.abs(np.mean(z, axis=0)).max() < 1


def test_one_independent_item_in_closed_form():
    w = 0.7
    # The item is present with probability w / (1 + w). The mean time is 1 / (1 + w) if the item is
    # absent, and 1 + 1 / (1 + w) if it is present.
    found = questions.clock_items(np.array([[np.log(w)]]), target_se=0.003, random_state=1).iloc[0]
    assert found["se"] <= 0.003
    assert found["explained"] == pytest.approx(w / (1 + w) ** 2, abs=5 * 0.003)
    assert found["time_absent"] == pytest.approx(1 / (1 + w), abs=0.02)
    assert found["time_present"] == pytest.approx(1 + 1 / (1 + w), abs=0.03)


def test_items_that_are_always_or_never_there_tell_nothing():
    found = questions.clock_items(np.diag([-400.0, 400.0, 0.0]), draws=500, random_state=1)
    assert found.index[0] == "2"
    assert found.loc[["0", "1"], "explained"].tolist() == [0.0, 0.0]
    assert np.isnan(found.loc["0", "time_present"])
    assert np.isnan(found.loc["1", "time_absent"])


def test_items_do_not_depend_on_threads():
    theta = reference.random_theta(np.random.default_rng(5), 3)
    one, two = (
        questions.clock_items(theta, draws=9_000, random_state=1, n_threads=n) for n in (1, 2)
    )
    pd.testing.assert_frame_equal(one, two, check_exact=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: questions.clock_curve(m, sizes=2), "sizes is 2; expected a list"),
        (lambda m: questions.clock_curve(m, sizes=[4]), r"sizes are \[4\]; expected .* 0 to 3"),
        (lambda m: questions.clock_curve(m, sizes=[]), r"sizes are \[\]; expected"),
        (lambda m: questions.clock_curve(m, sizes=[1.5]), "sizes is 1.5; expected an integer"),
        (lambda m: questions.clock_curve(m, [{"a"}], items=["a"]), "data and items were both"),
        (lambda m: questions.clock_curve(m, items="ab"), "items is the text 'ab'; expected"),
        (lambda m: questions.clock_curve(m, draws=1), "draws is 1; expected"),
        (lambda m: questions.clock_items(m, budget=Budget()), "budget is not used by this"),
        (lambda m: questions.clock_items(m, draws=9, target_se=1), "both given"),
        (lambda m: questions.clock_items(m, draws=0), "draws is 0; expected"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call(Model(np.zeros((3, 3)), ["a", "b", "c"]))
