"""The likelihood after changes in a few columns of theta, compared with full evaluations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from posteriors import twins
from sequela.kernels.column_change import (
    evaluate_change,
    fill_rates,
    keep_change,
    make_rates,
    undo_change,
)
from sequela.kernels.posterior_sweep import log_likelihoods
from sequela.posteriors import StudentT
from sequela.support.jit import call, kernel

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)
PRIOR = StudentT(3.0, 0.8)


@kernel
def follow(values, good, first, thetas, columns, keep, orders, target):
    """Evaluate a series of thetas, each as a change of some columns of the last one that was kept.

    Return the rates at the end, and all rates of a full pass over the last theta that was kept.
    """
    current = make_rates(first.shape[0], target)
    fill_rates(current, first, target)
    theta = first.copy()
    for k in range(thetas.shape[0]):
        for c in columns[k]:
            for i in range(theta.shape[0]):
                theta[i, c] = thetas[k, i, c]
        good[k] = evaluate_change(values[k], current, theta, columns[k], target, orders)
        if keep[k]:
            keep_change(current, theta, columns[k], target)
        else:
            undo_change(current, columns[k], target)
            for c in columns[k]:
                for i in range(theta.shape[0]):
                    theta[i, c] = current.theta[i, c]
    fresh = make_rates(first.shape[0], target)
    fill_rates(fresh, theta, target)
    return current, fresh


@st.composite
def cases(draw):
    """Draw a theta, what is known about some samples, and changes of one to three columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(3, 6))
    theta = ref.random_theta(rng, n, draw(st.sampled_from([0.5, 1.5])))
    orders = twins.simulated_orders(theta, rng, draw(st.integers(1, 12)))
    target, latent = twins.target_of(orders, PRIOR, n, draw(st.sampled_from([0, 2, 12])))
    if draw(st.booleans()):
        kinds = twins.simulated_orders(theta, rng, 5)
        known = [twins.simulated_knowledge(order, n, rng) for order in kinds]
        target = twins.with_histories(target, known)
        latent = np.concatenate([latent, twins.padded_histories(kinds_of(kinds, known), known)])
    count = draw(st.integers(1, 3))
    columns = np.array([rng.permutation(n)[:count] for _ in range(6)])
    keep = rng.random(6) < 0.5
    return theta, target, latent, columns, keep, rng


def kinds_of(orders, samples):
    """Return a possible history of each sample: its order without its absent items."""
    return [
        [i for i in order if i in known.present or i in known.missing]
        for order, known in zip(orders, samples, strict=True)
    ]


def full_values(theta, target, orders):
    values, unused = np.full(2, np.nan), np.empty(theta.shape)
    good = call(log_likelihoods, values, unused, theta, target, orders)
    return values, good


def followed(theta, target, orders, columns, keep, thetas):
    """Return the results of `follow`, the thetas that it should evaluate, and the last one kept."""
    values, good = np.full((len(thetas), 2), np.nan), np.zeros(len(thetas), dtype=bool)
    rates = call(follow, values, good, theta, thetas, columns, keep, orders, target)
    wanted, now = [], theta.copy()
    for k, new in enumerate(thetas):
        tried = now.copy()
        tried[:, columns[k]] = new[:, columns[k]]
        wanted.append(tried)
        now = tried if keep[k] else now
    return values, good, rates, wanted, now


@quick
@given(cases())
def test_values_after_changes_are_those_of_full_evaluations(case):
    theta, target, orders, columns, keep, rng = case
    thetas = theta + rng.standard_normal((len(keep), *theta.shape))
    values, good, (current, fresh), wanted, last = followed(
        theta, target, orders, columns, keep, thetas
    )
    assert good.all()
    for k, tried in enumerate(wanted):
        np.testing.assert_allclose(values[k], full_values(tried, target, orders)[0], rtol=1e-10)
    np.testing.assert_array_equal(current.theta, last)
    for name in ("factors", "base", "exits", "ways"):
        np.testing.assert_allclose(getattr(current, name), getattr(fresh, name), rtol=1e-10)


def test_missing_cells_are_summed():
    rng = np.random.default_rng(2)
    n = 5
    theta = ref.random_theta(rng, n)
    orders = twins.simulated_orders(theta, rng, 8)
    known = [twins.simulated_knowledge(order, n, rng, stated=0.0) for order in orders]
    target = twins.with_groups(twins.target_of([], PRIOR, n)[0], known, n)
    assert target.shared.group_count.size == 8
    nothing = np.empty(0, dtype=np.int64)
    columns, keep = np.array([[0, 3], [1, 4]]), np.array([True, False])
    thetas = theta + rng.standard_normal((2, n, n))
    values, good, _, wanted, _ = followed(theta, target, nothing, columns, keep, thetas)
    assert good.all()
    for k, tried in enumerate(wanted):
        p = ref.set_distribution(tried)
        sets = np.arange(2**n)
        total = 0.0
        for sample in known:
            shown = sum(1 << i for i in sample.present.tolist())
            hidden = sum(1 << i for i in sample.missing.tolist())
            total += np.log(p[(sets | hidden) == (shown | hidden)].sum())
        assert values[k, 0] == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("fast", [12.0, 25.0, 39.0])
def test_no_digits_are_lost_if_a_very_fast_item_becomes_slow(fast):
    """New exit rates would be differences of nearly equal numbers, so a full evaluation is made."""
    theta = np.array([[fast, 1.0, -1.0], [0.5, -1.0, 0.7], [0.3, -0.4, -0.5]])
    slow = theta.copy()
    slow[0, 0] = -3.0
    target, orders = twins.target_of([[0, 1], [1], [0, 1, 2], []], PRIOR, 3, 2)
    columns, keep = np.array([[0], [0], [1]]), np.array([True, True, True])
    thetas = np.stack([slow, theta, slow])
    values, good, (current, fresh), wanted, _ = followed(
        theta, target, orders, columns, keep, thetas
    )
    assert good.all()
    for k, tried in enumerate(wanted):
        np.testing.assert_allclose(values[k], full_values(tried, target, orders)[0], rtol=1e-9)
    np.testing.assert_allclose(current.exits, fresh.exits, rtol=1e-9)


def test_a_theta_beyond_the_arithmetic_is_told():
    target, orders = twins.target_of([[0, 1, 2], [1]], PRIOR, 3, 12)
    theta = np.zeros((3, 3))
    columns, keep = np.array([[0, 1, 2]]), np.array([False])
    for far in (800.0, -800.0):
        _, good, (current, fresh), _, _ = followed(
            theta, target, orders, columns, keep, np.full((1, 3, 3), far)
        )
        assert not good[0]
        np.testing.assert_array_equal(current.exits, fresh.exits)
        np.testing.assert_array_equal(current.ways, fresh.ways)
