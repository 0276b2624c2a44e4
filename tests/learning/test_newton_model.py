"""Compare the minimiser of the quadratic model with a version that uses full matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequela.kernels.newton import minimise_model
from sequela.support.jit import call

ALL = np.zeros(0, dtype=bool)


def hessian(pairs):
    """Return the limited-memory BFGS matrix: apply its updates one after the other."""
    count = len(pairs) // 2
    steps, changes = pairs[:count], pairs[count:]
    if not count:
        return np.eye(pairs.shape[1])
    B = np.eye(pairs.shape[1]) * (changes[-1] @ changes[-1]) / (steps[-1] @ changes[-1])
    for s, y in zip(steps, changes, strict=True):
        B = B - np.outer(B @ s, B @ s) / (s @ B @ s) + np.outer(y, y) / (s @ y)
    return B


def problem(seed, size, count):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
    curvature = basis * rng.uniform(0.5, 3.0, size) @ basis.T
    steps = rng.normal(size=(count, size))
    pairs = np.concatenate([steps, steps @ curvature])
    theta = rng.normal(size=size) * (rng.random(size) < 0.5)
    weights = rng.choice([0.0, 0.1, 1.0], size)
    return rng, pairs, theta, rng.normal(size=size), weights, rng.uniform(0.5, 2.0, size)


def minimise(theta, gradient, weights, unit, pairs, free=ALL):
    target = np.empty_like(theta)
    slope, farthest = call(
        minimise_model, theta, gradient, weights, unit, free, pairs, pairs @ pairs.T, 1e-9, 5000,
        target,
    )  # fmt: skip
    return target, slope, farthest


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_it_minimises_the_model(seed, size, count):
    """At the minimiser, minus the gradient of the model is a subgradient of the penalty."""
    _, pairs, theta, gradient, weights, unit = problem(seed, size, count)
    target, slope, farthest = minimise(theta, gradient, weights, unit, pairs)
    move = (target - theta) / unit
    away = (gradient * unit + hessian(pairs) @ move) / unit
    stays = (theta == 0.0) & (weights > 0.0) & (np.abs(gradient) <= weights)
    assert (target[stays] == 0.0).all()
    on = ~stays & (target != 0.0)
    np.testing.assert_allclose(away[on], -weights[on] * np.sign(target[on]), atol=1e-6)
    off = ~stays & (target == 0.0)
    assert (np.abs(away[off]) <= weights[off] + 1e-6).all()
    assert slope == pytest.approx(gradient @ (target - theta), abs=1e-12)
    assert farthest == np.abs(target - theta).max()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_entries_that_are_not_free_stay(seed):
    rng, pairs, theta, gradient, weights, unit = problem(seed, 8, 3)
    free = rng.random(8) < 0.5
    target, _, _ = minimise(theta, gradient, weights, unit, pairs, free)
    np.testing.assert_array_equal(target[~free], theta[~free])
    moved, _, _ = minimise(theta, gradient, weights, unit, pairs, np.ones(8, dtype=bool))
    np.testing.assert_array_equal(moved, minimise(theta, gradient, weights, unit, pairs)[0])
