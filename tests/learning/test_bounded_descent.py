"""Compare the minimiser with bounds with the minimiser of SciPy; check optimality conditions."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from sequela.learning.bounded_descent import minimise


def projected(x, gradient, low, high):
    """Return x minus the point that a gradient step from x reaches within the bounds.

    All entries are 0 at a minimum.
    """
    return x - np.clip(x - gradient, low, high)


def bowl(rng, n):
    """Return a convex function, with second derivatives from 0.5 to 5, and its minimiser."""
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    matrix = basis * np.exp(rng.uniform(np.log(0.5), np.log(4.0), n)) @ basis.T
    centre = rng.normal(size=n)

    def loss(x):
        away = x - centre
        value = 0.5 * away @ matrix @ away + np.log(np.cosh(away)).sum()
        return float(value), matrix @ away + np.tanh(away)

    return loss, centre


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_it_ends_where_scipy_ends(n, seed):
    rng = np.random.default_rng(seed)
    loss, _ = bowl(rng, n)
    low = rng.uniform(-2.0, 0.0, n)
    high = low + rng.uniform(0.0, 3.0, n)
    start = rng.uniform(-3.0, 3.0, n)  # the optimum may be outside the bounds
    found = minimise(loss, start, low, high, tol=1e-8)
    assert np.all((low <= found.x) & (found.x <= high))
    value, gradient = loss(found.x)
    assert found.value == value
    assert np.abs(projected(found.x, gradient, low, high)).max() <= 1e-7
    theirs = minimize(
        loss, np.clip(start, low, high), jac=True, method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)), options={"ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    np.testing.assert_allclose(found.x, theirs.x, atol=1e-5)


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_wide_bounds_do_not_matter(n, seed):
    rng = np.random.default_rng(seed)
    loss, centre = bowl(rng, n)
    wide = np.full(n, 1e6)
    found = minimise(loss, rng.normal(size=n), -wide, wide)
    assert found.residual <= 1e-7
    np.testing.assert_allclose(found.x, centre, atol=1e-6)


def test_a_start_at_the_minimum_stays():
    seen = []

    def loss(x):
        seen.append(x.copy())
        return float(x @ x), 2.0 * x

    found = minimise(loss, np.zeros(3), -np.ones(3), np.ones(3))
    assert len(seen) == 1
    assert found.value == 0.0
    assert found.residual == 0.0


def test_a_limit_of_steps_ends_it():
    loss, _ = bowl(np.random.default_rng(1), 5)
    wide = np.full(5, 10.0)
    start = np.full(5, 3.0)
    short = minimise(loss, start, -wide, wide, max_iter=1)
    assert loss(start)[0] > short.value > minimise(loss, start, -wide, wide).value
    assert short.residual > 1e-7
