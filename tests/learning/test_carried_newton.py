"""Compare a minimiser that keeps its Hessian between problems with the minimiser of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from sequela.learning.carried_newton import CarriedNewton, Ends


class Prior:
    """A weak normal prior for all parameters."""

    def __init__(self, weight=0.25):
        self.weight = weight

    def evaluate(self, x):
        return (
            0.5 * self.weight * float(x @ x),
            self.weight * x,
            self.weight * np.eye(x.size),
        )


def logistic(seed, size, parameters):
    """Return a loss with strongly correlated parameters, and a list that grows with each call."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((size, parameters)) @ rng.standard_normal((parameters, parameters))
    signs = rng.choice([-1.0, 1.0], size)
    calls = []

    def loss(x):
        calls.append(1)
        margin = signs * (rows @ x)
        slope = -(signs / (1.0 + np.exp(margin))) @ rows
        return float(np.logaddexp(0.0, -margin).sum()), slope

    return loss, calls


@pytest.mark.parametrize("seed", range(4))
def test_it_ends_at_the_optimum_to_the_promised_value(seed):
    loss, _ = logistic(seed, 200, 12)
    prior = Prior()

    def whole(x):
        value, slope = loss(x)
        more, pull, _ = prior.evaluate(x)
        return value + more, slope + pull

    best = minimize(whole, np.zeros(12), jac=True, method="BFGS", options={"gtol": 1e-7})
    newton = CarriedNewton(np.ones(12))
    found = newton.minimise(
        loss, prior, np.arange(12), np.zeros(12), Ends(0.02, 0.05, max_iter=200)
    )
    assert found.value - best.fun < 0.02
    assert found.value >= best.fun - 1e-8
    assert found.value == pytest.approx(whole(found.x)[0], abs=1e-12)


def test_a_hessian_that_is_kept_saves_evaluations():
    loss, calls = logistic(5, 300, 15)
    places, ends = np.arange(15), Ends(1e-3, 1e-2, max_iter=200)
    newton = CarriedNewton(np.ones(15))
    first = newton.minimise(loss, Prior(), places, np.zeros(15), ends)
    # The next problem has the same loss and a stronger prior.
    begun = len(calls)
    again = newton.minimise(loss, Prior(0.5), places, first.x, ends)
    kept = len(calls) - begun
    assert again.evaluations == kept
    fresh = CarriedNewton(np.ones(15)).minimise(loss, Prior(0.5), places, first.x, ends)
    assert kept < fresh.evaluations
    assert again.value == pytest.approx(fresh.value, abs=5e-3)


def test_parameters_that_are_not_free_do_not_matter():
    """The Hessian is also kept between problems that have different free parameters.

    The minimiser must find the same minimum as a new minimiser without a Hessian from before.
    """
    loss, _ = logistic(6, 200, 8)

    def on(places):
        def part(x):
            whole = np.zeros(8)
            whole[places] = x
            value, slope = loss(whole)
            return value, slope[places]

        return part

    newton = CarriedNewton(np.ones(8))
    ends = Ends(1e-6, 1e-3, max_iter=300)
    for places in (np.array([0, 2, 5]), np.array([0, 3, 5, 7]), np.array([2])):
        found = newton.minimise(on(places), Prior(), places, np.zeros(places.size), ends)
        fresh = CarriedNewton(np.ones(8)).minimise(
            on(places), Prior(), places, np.zeros(places.size), ends
        )
        np.testing.assert_allclose(found.x, fresh.x, atol=2e-3)


def test_a_loss_that_is_not_convex():
    """The minimiser reaches a minimum even from a start where the curvature is negative."""

    def loss(x):
        return float(np.sum(x**4 / 4 - x**2)), x**3 - 2.0 * x

    newton = CarriedNewton(np.full(2, 1e-3))
    found = newton.minimise(loss, Prior(0.0), np.arange(2), np.array([0.1, -0.2]), Ends(1e-8, 1e-4))
    np.testing.assert_allclose(np.abs(found.x), np.sqrt(2.0), atol=1e-3)


def test_out_of_range():
    def loss(x):
        return (np.inf, x) if x[0] > 1.0 else (float(-x[0]), np.array([-1.0]))

    newton = CarriedNewton(np.ones(1))
    ends = Ends(1e-6, 1e-6)
    assert newton.minimise(loss, Prior(0.1), np.arange(1), np.array([2.0]), ends) is None
    found = newton.minimise(loss, Prior(0.1), np.arange(1), np.array([0.0]), ends)
    assert 0.9 < found.x[0] <= 1.0
