"""Test `penalty_max`, the smallest penalty at which a fit has no interactions."""

import numpy as np
import pytest

from learning.problems import interactions, quiet, simulated, table
from sequela import Budget, Dataset, Model, SetChain, evaluate
from sequela.learning import penalty_max
from sequela.learning.independent_fit import fit_independent
from sequela.learning.largest_penalty import best_without_interactions
from sequela.likelihood.objective import Objective
from sequela.observation import Exponential
from sequela.settings import Settings


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_is_where_interactions_begin(seed):
    data = simulated(5, 150, seed).without_times()
    largest = penalty_max(data)
    none = SetChain(largest * (1 + 1e-5), tol=1e-7).fit(data)
    some = SetChain(largest * 0.99, tol=1e-7).fit(data)
    assert interactions(none.theta_) == 0
    assert interactions(some.theta_) > 0


@pytest.mark.parametrize("stop_rate", [1.0, 0.5, 5.0, 0.01, 1e4])
def test_it_is_the_largest_gradient(stop_rate):
    data = simulated(6, 200, 1).without_times()
    sets, counts = np.unique(data.values.astype(float), axis=0, return_counts=True)
    # A change of the rate of the observation changes the unit of time. So log(rate) is added to the
    # logarithms of the base rates.
    log_rates = fit_independent(sets, counts / counts.sum()).log_rates + np.log(stop_rate)
    observation = Exponential(stop_rate)
    gradient = evaluate(Model(np.diag(log_rates), observation=observation), data).gradient
    assert np.abs(np.diag(gradient)).max() < 1e-5
    np.fill_diagonal(gradient, 0.0)
    largest = penalty_max(data, observation=observation)
    assert largest == pytest.approx(np.abs(gradient).max(), rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_base_rates_are_optimal_at_known_times(seed):
    """At known times, a solver finds the base rates of the model without interactions.

    They must be precise, because `penalty_max` is computed from the gradient at this model.
    """
    rng = np.random.default_rng(seed)
    data = simulated(5, 120, seed).with_weights(rng.integers(0, 4, 120))
    objective = Objective(data, Exponential(), Settings())
    gradient = evaluate(best_without_interactions(objective), data).gradient
    assert np.abs(np.diag(gradient)).max() <= 1e-8
    np.fill_diagonal(gradient, 0.0)
    assert penalty_max(data) == pytest.approx(np.abs(gradient).max(), abs=1e-12)


def test_sets_beyond_the_budget_give_the_same():
    data = simulated(9, 120, 5, base=1.0).without_times()
    small = Budget(work=5e3)
    assert (data.set_sizes >= 6).any()
    assert not small.exact_fits(6, 9)
    found = penalty_max(data, budget=small)
    assert found == pytest.approx(penalty_max(data), rel=1e-8)
    # The two results have different rounding errors. This shows that they were computed by
    # different methods.
    assert found != penalty_max(data)


def test_very_large_sets():
    rng = np.random.default_rng(2)
    sets = [rng.permutation(90)[: rng.integers(1, 9)] for _ in range(40)]
    sets += [rng.permutation(90)[:70], rng.permutation(90)[:45]]
    largest = penalty_max(Dataset(table(90, sets)))
    assert 0.0 < largest < 1.0


def test_any_table_will_do():
    data = simulated(4, 80, 3).without_times()
    expected = penalty_max(data)
    for X in (data.to_frame(), data.values.astype(int), data.sets()):
        assert penalty_max(X) == pytest.approx(expected, rel=1e-12)


def test_separated_items_leave_it_finite():
    X = np.column_stack([simulated(3, 60, 1).values, np.ones(60), np.zeros(60)]).astype(int)
    largest = penalty_max(Dataset(X))
    assert np.isfinite(largest)
    with quiet():
        assert interactions(SetChain(largest * 1.01).fit(X).theta_) == 0
