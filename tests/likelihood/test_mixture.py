"""The likelihood of a mixture of models, against sums of the reference likelihood."""

from __future__ import annotations

import numpy as np
import pytest

from reference import log_p_set_permutations
from sequela import Dataset, Exponential
from sequela.budget import Budget
from sequela.likelihood.mixture import MixtureLikelihood
from sequela.support.errors import BudgetError

ITEMS = 4


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(1)
    values = rng.random((30, ITEMS)) < 0.4
    thetas = rng.normal(size=(2, ITEMS, ITEMS))
    return values, thetas, np.array([0.3, 0.7])


def test_value_and_membership_are_those_of_the_definition(problem):
    values, thetas, shares = problem
    likelihood = MixtureLikelihood(Dataset(values), Exponential(), Budget())
    found = likelihood.evaluate(thetas, shares)
    each = np.array(
        [
            [np.exp(log_p_set_permutations(theta, np.flatnonzero(row))) for row in values]
            for theta in thetas
        ]
    )
    joint = shares[:, None] * each
    assert found.value == pytest.approx(np.log(joint.sum(axis=0)).mean())
    membership = found.membership[:, likelihood.distinct.inverse]
    assert membership == pytest.approx(joint / joint.sum(axis=0))


def test_gradients_agree_with_finite_differences(problem):
    values, thetas, shares = problem
    likelihood = MixtureLikelihood(Dataset(values), Exponential(), Budget())
    found = likelihood.evaluate(thetas, shares).by_theta
    step = 1e-6
    for place in np.ndindex(thetas.shape):
        change = np.zeros_like(thetas)
        change[place] = step
        up = likelihood.evaluate(thetas + change, shares).value
        down = likelihood.evaluate(thetas - change, shares).value
        assert found[place] == pytest.approx((up - down) / (2.0 * step), abs=1e-7)


def test_a_mixture_of_equal_models_is_the_model(problem):
    values, thetas, shares = problem
    likelihood = MixtureLikelihood(Dataset(values), Exponential(), Budget())
    same = likelihood.evaluate(np.stack([thetas[0], thetas[0]]), shares)
    alone = likelihood.evaluate(thetas[:1], np.ones(1))
    assert same.value == pytest.approx(alone.value)
    assert same.by_theta.sum(axis=0) == pytest.approx(alone.by_theta[0])


def test_rates_beyond_the_range_have_no_likelihood(problem):
    values, thetas, shares = problem
    likelihood = MixtureLikelihood(Dataset(values), Exponential(), Budget())
    huge = thetas.copy()
    huge[0, 0, 1] = 5000.0
    assert likelihood.evaluate(huge, shares).value == -np.inf


def test_a_set_beyond_the_budget_is_refused():
    values = np.ones((2, 12), dtype=bool)
    with pytest.raises(BudgetError, match="a set of 12 items is beyond the budget"):
        MixtureLikelihood(Dataset(values), Exponential(), Budget(work=1e3))
