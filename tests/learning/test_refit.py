"""Compare refits, which have no penalty, with a simple optimiser of an independent likelihood."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

import reference
from sequela import InputError, Model, Sampling, SetChain, evaluate, fit, simulate
from sequela.learning import compare_optima, refit
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.refitting import WarmFits
from sequela.learning.solvers.contract import Limits
from sequela.observation import Exponential
from sequela.settings import Settings

THETA = np.array([[-0.5, 1.5, 0.0], [0.0, -1.5, 0.0], [-1.0, 0.0, -0.3]])


def drawn(theta, size, seed):
    return simulate(theta, size, random_state=seed).to_dataset().without_times()


SETS = drawn(THETA, 300, 3)


def dense_value(theta, data):
    """Return the log-likelihood of all samples by the dense linear algebra of `reference`."""
    p = reference.set_distribution(theta)
    codes = data.values @ (1 << np.arange(data.n_items))
    return float(np.log(p[codes]).sum())


def prior(theta):
    """Return the log-density of the normal prior of the interactions, up to a constant.

    The standard deviation of the prior is 2.
    """
    off = theta[~np.eye(len(theta), dtype=bool)]
    return float(-0.5 * np.sum((off / 2.0) ** 2))


def test_refit_is_the_best_on_its_support():
    model = fit(SETS, penalty=0.02)
    found = refit(model, SETS, tol=1e-7)
    support = (model.theta != 0.0) | np.eye(3, dtype=bool)
    assert found.n_interactions == support.sum() - 3 > 0
    assert (found.model.theta[~support] == 0.0).all()

    def loss(free):
        theta = np.zeros((3, 3))
        theta[support] = free
        return -dense_value(theta, SETS) - prior(theta)

    best = minimize(loss, model.theta[support], method="BFGS", options={"gtol": 1e-6})
    assert found.log_likelihood + found.log_prior == pytest.approx(-best.fun, abs=1e-5)
    np.testing.assert_allclose(found.model.theta[support], best.x, atol=2e-3)
    assert found.log_likelihood == pytest.approx(dense_value(found.model.theta, SETS))
    assert found.log_likelihood > dense_value(model.theta, SETS)
    assert found.converged
    assert found.log_likelihood_se == 0.0


def test_gradient_vanishes_on_the_support_alone():
    model = fit(SETS, penalty=0.05)
    again = refit(model, SETS, tol=1e-6).model
    off = again.theta - np.diag(np.diag(again.theta))
    gradient = evaluate(again.theta, SETS).gradient - off / 4.0 / len(SETS)
    support = (model.theta != 0.0) | np.eye(3, dtype=bool)
    assert np.abs(gradient[support]).max() < 1e-6
    assert np.abs(gradient[~support]).max() > 1e-4


def test_what_the_data_push_to_infinity_stays_finite():
    never_together = [{"a"}] * 40 + [{"b"}] * 40 + [set()] * 40
    model = Model([[-0.5, -1.0], [-1.0, -0.5]], ["a", "b"])
    found = refit(model, never_together, tol=1e-6)
    assert found.converged
    assert -8.0 < found.model.theta[0, 1] < -2.0
    # The log-likelihood has no maximum, because it grows as the effects fall to minus infinity. The
    # value is close to the limit, in which each of the three sets has the probability 1/3.
    assert found.log_likelihood == pytest.approx(120 * math.log(1 / 3), abs=2.5)


def test_refit_with_times():
    data = simulate(THETA, 200, random_state=5).to_dataset()
    model = fit(data, penalty=0.03)
    again = refit(model, data, tol=1e-6).model
    off = again.theta - np.diag(np.diag(again.theta))
    gradient = evaluate(again.theta, data).gradient - off / 4.0 / len(data)
    support = (model.theta != 0.0) | np.eye(3, dtype=bool)
    assert np.abs(gradient[support]).max() < 1e-6


def test_score():
    found = refit(fit(SETS, penalty=0.02), SETS)
    theta = found.model.theta
    interactions = np.count_nonzero(theta - np.diag(np.diag(theta)))
    assert found.log_prior == pytest.approx(prior(theta))
    assert found.score == pytest.approx(dense_value(theta, SETS) + prior(theta) - interactions)


def test_other_fits_of_the_same_data_have_no_prior():
    limits = Limits(tol=1e-6, max_iter=500)
    fits = WarmFits(SETS, Exponential(), Settings(random_state=1), limits)
    model = fit(SETS, penalty=0.02, tol=1e-6)
    fits.refit(model)
    state, info = fits.fit(model.theta, OffDiagonalL1(0.02))
    assert info.status.converged
    np.testing.assert_allclose(state.theta, model.theta, atol=1e-3)


def test_the_observation_is_that_of_the_model():
    """If the rate of observation is multiplied by a factor, so are all base rates."""
    model = fit(SETS, penalty=0.02)
    plain = refit(model, SETS, tol=1e-7)
    faster = model.theta + np.diag(np.full(3, np.log(2.0)))
    found = refit(Model(faster, model.items, observation=Exponential(2.0)), SETS, tol=1e-7)
    assert found.model.observation == Exponential(2.0)
    expected = plain.model.theta + np.diag(np.full(3, np.log(2.0)))
    np.testing.assert_allclose(found.model.theta, expected, atol=1e-5)
    assert found.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-8)


def test_items_of_the_data_may_stand_in_another_order():
    model = fit(SETS, penalty=0.02)
    turned = SETS.select_items(["2", "0", "1"])
    one, two = refit(model, SETS), refit(model, turned)
    assert one.model.items == two.model.items
    assert one.log_likelihood == pytest.approx(two.log_likelihood, abs=1e-9)


# --- Optima side by side --------------------------------------------------------------------------


# The model of five items in appendix F of the paper. Fits to its data have several optima.
FIVE = np.array(
    [
        [-1.0, 4.0, 0.0, 0.0, 0.0],
        [0.0, -1.0, -2.0, -2.0, 0.0],
        [0.0, -2.0, -1.0, -2.0, 0.0],
        [0.0, -2.0, -2.0, -0.5, 4.0],
        [0.0, 0.0, 0.0, 0.0, -4.0],
    ]
)


@pytest.mark.filterwarnings("ignore::sequela.learning.SeveralOptimaWarning")
def test_optima_are_weighed_without_the_penalty():
    data = drawn(FIVE, 500, 4)
    learner = SetChain(0.01, n_starts=8, start_widths=(2.0,), random_state=1).fit(data)
    table, refits = compare_optima(learner, data)
    assert len(table) == len(refits) == len(learner.optima_) > 1
    assert table["behind"].iloc[0] == 0.0
    assert table["behind"].is_monotonic_increasing
    assert table["penalised"].min() == 0.0
    assert table["starts"].sum() == 8
    for row, again in zip(table.itertuples(), refits, strict=True):
        end = learner.starts_[row.first_start]
        assert row.objective == end.objective
        assert row.refit == again.log_likelihood
        assert again.log_likelihood > 500 * evaluate(end.theta, data).value
        assert row.behind == pytest.approx(refits[0].score - again.score, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"tol": 0.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"sampling": Sampling(chains=1)}, "chains is 1"),
        ({"draws": 100}, "draws is not used by this function"),
        ({"budget": "1GB"}, "budget is '1GB'"),
    ],
)
def test_bad_options_are_named(options, named):
    with pytest.raises(InputError, match=named):
        refit(Model(THETA), SETS, **options)


def test_random_first_start():
    def widths(**options):
        learner = SetChain(0.3, n_starts=3, random_state=1, **options).fit(SETS)
        return [start.width for start in learner.starts_]

    assert widths() == [0.0, 0.2, 2.0]
    assert widths(independent_start=False) == [0.2, 2.0, 0.2]
