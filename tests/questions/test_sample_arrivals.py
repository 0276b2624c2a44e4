"""Arrivals of the items of one sample: compare with an enumeration of orders and an integral."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad_vec

import reference
from questions.enumeration import (
    labels,
    models,
    observed,
    of_sample,
    position_and_arrival,
    random_theta,
    theta_and_rate,
)
from sequela import BudgetError, InputError, Model
from sequela.budget import Budget
from sequela.questions import sample_arrivals

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)
TINY = Budget(work=1)
MEANS = ["position_mean", "arrival_mean"]
ERRORS = ["position_se", "arrival_se"]


def truth_of(theta, sample, z=1.0):
    found = of_sample(theta, sample, z)
    return pd.DataFrame(
        [position_and_arrival(found, item) for item in sample],
        index=[str(item) for item in sample],
        columns=["position_mean", "position_sd", "arrival_mean", "arrival_sd"],
    )


@quick
@given(models(), st.data())
def test_exact_against_enumeration(model, data):
    theta, z = theta_and_rate(model)
    size = data.draw(st.integers(1, len(theta)))
    sample = list(data.draw(st.permutations(range(len(theta)))))[:size]
    truth = truth_of(theta, sample, z)
    found = sample_arrivals(model, sample)
    assert sorted(found.index) == sorted(truth.index)
    assert found["arrival_mean"].is_monotonic_increasing
    truth = truth.loc[found.index]
    np.testing.assert_allclose(found[MEANS], truth[MEANS], rtol=1e-9)
    # A standard deviation is the square root of a difference of moments. If it is near 0, only
    # about half of its digits are correct, so the tolerance is larger.
    for name in ("position_sd", "arrival_sd"):
        np.testing.assert_allclose(found[name], truth[name], rtol=1e-6, atol=1e-6)
    assert (found[ERRORS] == 0.0).all(axis=None)
    assert found.attrs == {"method": "exact", "draws": 0, "seed": None}
    assert found["position_mean"].sum() == pytest.approx(size * (size + 1) / 2)


@quick
@given(models(max_items=5), st.data())
def test_items_come_before_the_observation(model, data):
    theta, z = theta_and_rate(model)
    size = data.draw(st.integers(1, len(theta)))
    found = sample_arrivals(model, range(size))
    time = reference.posterior_time_moments(theta, range(size), z)[0]
    assert (found["arrival_mean"] > 0.0).all()
    assert (found["arrival_mean"] < time).all()
    # The mean time from the last arrival to the observation is 1 / D(S), where D(S) is the total
    # rate of leaving the state S.
    total = z + reference.exit_rate(theta, range(size))
    assert found["arrival_mean"].max() <= time - 1.0 / total + 1e-9


@pytest.mark.parametrize("z", [1.0, 0.4])
def test_mean_arrival_by_quadrature(z):
    """Compare the mean arrival time E[A | S] with the integral of P(A > s | S) over s.

    P(A > s | S) is the probability that the item is absent at time s.
    """
    theta = random_theta(11, 4, 2.0)
    sample = [0, 1, 2]
    Q = reference.restricted_generator(theta, sample)
    end = z * np.linalg.inv(z * np.eye(8) - Q)[:, -1]
    has = np.arange(8)[:, None] >> np.arange(3) & 1

    def integrand(s):
        here = math.exp(-z * s) * reference.transition_matrix(Q, s)[0]
        return ((here * end)[:, None] * (1 - has)).sum(axis=0)

    means, _ = quad_vec(integrand, 0.0, np.inf, epsabs=1e-13, epsrel=1e-10)
    found = sample_arrivals(observed(theta, z), sample).loc[labels(3), "arrival_mean"]
    np.testing.assert_allclose(found, means / end[0], rtol=1e-7)


def test_no_item_and_one_item():
    theta = random_theta(1, 3, 2.0)
    empty = sample_arrivals(theta, [])
    assert empty.shape == (0, 6)
    assert empty.attrs["method"] == "exact"
    one = sample_arrivals(theta, ["1"], budget=TINY)
    assert one.loc["1", "position_mean"] == 1.0
    assert one.loc["1", "position_sd"] == 0.0
    wait = 1.0 / (1.0 + np.exp(np.diagonal(theta)).sum())
    assert one.loc["1", "arrival_mean"] == pytest.approx(wait)
    assert one.loc["1", "arrival_sd"] == pytest.approx(wait)


def test_beyond_the_budget_within_its_errors():
    theta = random_theta(21, 6, 2.0)
    truth = truth_of(theta, range(6), 1.5)
    z = []
    for seed in range(20):
        found = sample_arrivals(
            observed(theta, 1.5), range(6), budget=TINY, draws=480, random_state=seed
        ).loc[truth.index]
        assert found.attrs == {"method": "relocation", "draws": 480, "seed": seed}
        assert (found[ERRORS] > 0.0).all(axis=None)
        z.append((found[MEANS] - truth[MEANS]).to_numpy() / found[ERRORS].to_numpy())
        np.testing.assert_allclose(found["position_sd"], truth["position_sd"], rtol=0.3, atol=0.1)
        np.testing.assert_allclose(found["arrival_sd"], truth["arrival_sd"], rtol=0.3)
    z = np.array(z)
    # Standard errors are estimated from 16 chains, so each of the 240 z-scores has a t distribution
    # with 15 degrees of freedom. The z-scores of a run depend on each other.
    assert np.abs(z).max() < 6.0
    assert 0.8 < z.std() < 1.35


def test_a_set_of_eight_beyond_the_budget_against_the_lattice():
    theta = random_theta(31, 10, 1.0)
    truth = sample_arrivals(theta, range(8))
    found = sample_arrivals(theta, range(8), budget=TINY, random_state=1).loc[truth.index]
    assert (truth.attrs["method"], found.attrs["method"]) == ("exact", "relocation")
    z = (found[MEANS] - truth[MEANS]).to_numpy() / found[ERRORS].to_numpy()
    assert np.abs(z).max() < 5.0
    assert np.abs(z).max() > 0.0


def test_target_is_reached_and_can_be_repeated():
    theta = random_theta(21, 6, 2.0)
    found = sample_arrivals(theta, range(6), budget=TINY, target_se=0.012, random_state=2)
    assert 0.006 < found["position_se"].max() <= 0.012
    assert found.attrs["draws"] > 1_600
    again = sample_arrivals(
        theta, range(6), budget=TINY, draws=found.attrs["draws"], random_state=2
    )
    pd.testing.assert_frame_equal(found, again, check_exact=True)
    assert found.attrs == again.attrs
    with pytest.raises(BudgetError, match="cannot be reached"):
        sample_arrivals(theta, range(6), budget=TINY, target_se=1e-6, random_state=2)


def test_draws_are_what_was_drawn():
    """The number of draws is rounded up to a multiple of the number of chains, and reported.

    A second call with the reported number gives the same answer.
    """
    theta = random_theta(21, 6, 2.0)
    found = sample_arrivals(theta, range(6), budget=TINY, draws=100, random_state=2)
    assert found.attrs["draws"] == 112
    again = sample_arrivals(theta, range(6), budget=TINY, draws=112, random_state=2)
    pd.testing.assert_frame_equal(found, again, check_exact=True)


def test_threads_do_not_change_a_bit():
    theta = random_theta(21, 6, 2.0)
    for budget in (None, TINY):
        one, two = (
            sample_arrivals(theta, range(6), budget=budget, random_state=3, n_threads=n)
            for n in (1, 2)
        )
        pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_relabelling_and_labels_that_look_like_code():
    theta = random_theta(2, 4, 2.0)
    names = ["=cmd()", "<b>", "c", "d"]
    found = sample_arrivals(Model(theta, names), {"<b>", "=cmd()", "c"})
    turn = [2, 0, 3, 1]
    turned = sample_arrivals(
        Model(theta[np.ix_(turn, turn)], [names[i] for i in turn]), ["c", "=cmd()", "<b>"]
    )
    pd.testing.assert_frame_equal(found, turned, rtol=1e-9)
    assert found.index.name == "item"
    assert set(found.index) == {"=cmd()", "<b>", "c"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample": "01"}, "sample is the text '01'"),
        ({"sample": ["0", "0"]}, "sample contains '0' more than once"),
        ({"sample": 3}, "sample is 3"),
        ({"draws": 1}, "draws is 1"),
        ({"draws": 10, "target_se": 0.1}, "both given"),
        ({"target_se": -1.0}, "target_se is -1.0"),
        ({"budget": "1GB"}, "expected a sequela.Budget"),
    ],
)
def test_arguments_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        sample_arrivals(np.zeros((3, 3)), **{"sample": ["0", "1"], **options})
