"""Predicted times and predicted memory agree with the plan and with each other."""

from __future__ import annotations

import numpy as np
import pytest

from sequela import Budget, Dataset
from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.forecast import (
    Forecast,
    evaluation_seconds,
    forecast_histories,
    within_seconds,
)
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.plan import Plan
from sequela.questions import pseudo_times


def problem(dense):
    """Return a theta (dense or sparse), samples of up to 18 items, and their distinct sets."""
    rng = np.random.default_rng(3)
    n = 20
    theta = rng.normal(0.0, 0.3, (n, n)) if dense else np.zeros((n, n))
    theta[np.diag_indices(n)] = -1.0
    X = np.arange(n) < np.array([2, 5, 11, 13, 13, 16, 18])[:, None]
    return theta, X, DistinctSamples.of(Dataset(X))


@pytest.mark.parametrize("quantiles", [True, False])
def test_a_smaller_budget_samples_more_and_takes_less(quantiles):
    theta, X, distinct = problem(dense=True)
    parameters = Parameters(theta)
    whole = forecast_histories(parameters, distinct, Budget(), quantiles=quantiles)
    assert whole.sampled == 0
    last = whole
    for share in (0.5, 0.1, 0.02):
        allowed = share * whole.seconds
        budget, before, after = within_seconds(parameters, distinct, allowed, quantiles=quantiles)
        assert before == whole
        assert after.seconds <= max(allowed, 0.2)
        assert after.sampled >= last.sampled
        assert budget.work < Budget().work
        found = pseudo_times(theta, X, quantiles=(), budget=budget, random_state=1)
        # The forecast predicts the number of samples whose orders are drawn. Equal samples count
        # separately.
        assert (found["method"] == "relocation").sum() == after.sampled
        last = after
    assert last.sampled > 1


def test_nothing_is_limited_where_all_fits():
    theta, _, distinct = problem(dense=False)
    budget, before, after = within_seconds(Parameters(theta), distinct, 10.0, quantiles=True)
    assert budget == Budget()
    assert before == after
    assert after.sampled == 0


def test_components_are_predicted_to_be_faster_than_lattices():
    dense, _, distinct = problem(dense=True)
    sparse, _, _ = problem(dense=False)
    costs = [
        forecast_histories(Parameters(theta), distinct, Budget(), quantiles=True)
        for theta in (dense, sparse)
    ]
    assert costs[1].seconds < 0.1 * costs[0].seconds
    assert costs[1].memory < costs[0].memory


def plan_of(values, times=None):
    data = Dataset(values, times=times)
    return Plan(data, DistinctSamples.of(data), "auto", Budget())


def test_evaluations_of_more_or_larger_samples_take_longer():
    rng = np.random.default_rng(1)
    costs = [
        evaluation_seconds(plan_of(rng.random((samples, n)) < share), dense=False)
        for samples, share, n in ((100, 0.2, 20), (400, 0.2, 20), (400, 0.5, 20), (400, 0.5, 60))
    ]
    assert sorted(costs) == costs
    timed = plan_of(rng.random((400, 20)) < 0.5, times=rng.random(400))
    assert evaluation_seconds(timed, dense=False) > costs[2]


def test_large_sets_take_longer_where_all_items_interact():
    rng = np.random.default_rng(1)
    plan = plan_of(rng.random((30, 80)) < 0.5)
    assert evaluation_seconds(plan, dense=True) > 3.0 * evaluation_seconds(plan, dense=False)


@pytest.mark.parametrize(
    ("seconds", "memory", "threads", "words"),
    [
        (70.0, 1e6, 1, "roughly 1 minute with 1 thread and 10 MB of memory"),
        (600.0, 1e8, 2, "roughly 5 minutes with 2 threads and 200 MB of memory"),
        (36_000.0, 2e9, 2, "roughly 5.0 hours with 2 threads and 4,000 MB of memory"),
    ],
)
def test_words(seconds, memory, threads, words):
    assert Forecast(seconds, memory).describe(threads) == words


def test_memory_is_bounded_as_well():
    """The quantiles of a set of 21 items would need a gigabyte on a lattice, so it is sampled."""
    theta = np.full((21, 21), 0.1)
    theta[np.diag_indices(21)] = -1.0
    distinct = DistinctSamples.of(Dataset(np.ones((1, 21), dtype=bool)))
    _, whole, chosen = within_seconds(Parameters(theta), distinct, 1e6, quantiles=True)
    assert whole.memory > 9e8
    assert (whole.sampled, chosen.sampled, chosen.memory) == (0, 1, 0.0)
