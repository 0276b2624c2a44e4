"""Fits to partly known samples are optimal. An independent gradient is used to check this."""

import itertools

import numpy as np
import pytest

from sequela import Dataset, SetChain, fit, path, simulate
from sequela.data.examples import example_theta
from sequela.learning import penalty_max
from sequela.learning.penalties import OffDiagonalL1
from sequela.likelihood import plan
from sequela.likelihood.evaluation import log_likelihood


def by_panels(seed=1, n=300):
    rng = np.random.default_rng(seed)
    drawn = simulate(example_theta(), n, random_state=seed)
    data = drawn.to_dataset().without_times()
    covered = np.ones((3, data.n_items), dtype=bool)
    covered[1, [1, 4]] = covered[2, [0, 3, 6]] = False
    return data.with_missing(~covered[rng.integers(0, 3, n)])


def with_orders(seed=2, n=200, every=4):
    drawn = simulate(example_theta(), n, random_state=seed)
    data = drawn.to_dataset().without_times()
    orders = {}
    for s in range(0, n, every):
        sequence = [data.items[j] for j in drawn.sequence[drawn.indptr[s] : drawn.indptr[s + 1]]]
        orders[str(s)] = [(a, b, 0.9) for a, b in itertools.pairwise(sequence)]
    return Dataset(data, orders=orders)


def residual(theta, data, penalty):
    _, gradient = log_likelihood(theta, data, return_gradient=True)
    return float(OffDiagonalL1(penalty).subdiff_distance(theta, gradient).max())


@pytest.mark.parametrize("data", [by_panels(), with_orders()], ids=["missing", "orders"])
def test_a_fit_is_optimal(data):
    chain = SetChain(penalty=0.02, tol=1e-5, random_state=1).fit(data)
    theta = chain.model_.theta
    assert chain.converged_
    assert chain.kkt_residual_ <= 1e-5
    assert residual(theta, data, 0.02) == pytest.approx(chain.kkt_residual_, abs=1e-9)
    assert np.count_nonzero(theta) > data.n_items


def test_a_fit_with_drawn_cells_is_optimal_within_its_error(monkeypatch):
    """Let all lattices be beyond the budget, so that missing cells and orders are drawn.

    The exact KKT residual of the result must be at most the Monte Carlo floor that is reported.
    """
    data = by_panels()
    monkeypatch.setattr(plan, "_LATTICE_WORK_OF_A_FIT", 0.0)
    monkeypatch.setattr(plan, "_DRAWN_WORK", -1.0)
    drawn = SetChain(penalty=0.02, random_state=1).fit(data)
    floor = drawn.starts_[0].kkt_floor
    assert drawn.converged_
    assert floor > 0.0
    assert residual(drawn.model_.theta, data, 0.02) <= floor


def test_a_path_with_drawn_cells_has_the_right_values(monkeypatch):
    data = by_panels()
    monkeypatch.setattr(plan, "_LATTICE_WORK_OF_A_FIT", 0.0)
    monkeypatch.setattr(plan, "_DRAWN_WORK", -1.0)
    found = path(data, [0.05, 0.02], tol=5e-3, random_state=1)
    for row, theta in zip(found.table.itertuples(), found.thetas, strict=True):
        assert 0.0 < row.log_likelihood_se < 0.02
        # The value is a mean over 300 samples, so it is almost normally distributed, and 6 standard
        # errors are exceeded less than once in 1e6 times.
        off = abs(row.log_likelihood - log_likelihood(theta, data))
        assert off < 6.0 * row.log_likelihood_se


def test_random_starts_converge_as_well():
    """At a random start no interaction is zero, so the solver may change all entries of theta."""
    data = by_panels(n=100)
    chain = SetChain(penalty=0.05, n_starts=3, tol=1e-4, random_state=1).fit(data)
    for start in chain.starts_:
        assert start.converged
        assert residual(start.theta, data, 0.05) <= 1e-4


@pytest.mark.parametrize("data", [by_panels(), with_orders()], ids=["missing", "orders"])
def test_the_largest_penalty_is_the_smallest_without_interactions(data):
    largest = penalty_max(data)
    for factor, any_interaction in ((1.01, False), (0.9, True)):
        theta = fit(data, penalty=factor * largest, tol=1e-6).theta
        assert (np.count_nonzero(theta) > data.n_items) == any_interaction


def test_an_item_that_is_missing_everywhere_it_could_be_keeps_its_known_share():
    """If half of the cells of an item are missing, the other half determines its base rate.

    If the missing cells counted as absent, the base rate would be much smaller.
    """
    rng = np.random.default_rng(3)
    X = (rng.random((400, 2)) < 0.3).astype(float)
    half = X.copy()
    half[200:, 1] = np.nan
    whole = fit(X[:200], penalty=10.0, tol=1e-8).theta
    partly = fit(half, penalty=10.0, tol=1e-8).theta
    assert partly[1, 1] == pytest.approx(whole[1, 1], abs=0.25)
    as_absent = fit(np.nan_to_num(half), penalty=10.0, tol=1e-8).theta
    assert as_absent[1, 1] < whole[1, 1] - 0.4
