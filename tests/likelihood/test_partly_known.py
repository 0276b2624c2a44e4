"""Missing cells and known orders: compare with sums over all completions and their orders."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from likelihood import partly_known as twin
from sequela import Budget, Dataset, InputError, Model, evaluate, log_likelihood
from sequela.likelihood.decomposition import acting
from sequela.likelihood.objective import Objective
from sequela.likelihood.partial import PartialSet, lattices_of
from sequela.observation import Exponential
from sequela.settings import Settings
from sequela.support.errors import BudgetError

quick = settings(max_examples=25, deadline=None, derandomize=True, database=None)

# The cells of a row: an item is present, absent, or missing.
cells = st.sampled_from([1.0, 0.0, np.nan])


def rows(least, most):
    return st.integers(least, most).flatmap(
        lambda n: st.lists(cells, min_size=n, max_size=n).filter(
            lambda row: not np.isnan(row).all()
        )
    )


def split(row):
    return [i for i, x in enumerate(row) if x == 1.0], [i for i, x in enumerate(row) if x != x]


def check(theta, data, value_of, stop_rate=1.0):
    model = Model(theta, observation=Exponential(stop_rate))
    value, gradient = log_likelihood(model, data, return_gradient=True)
    assert value == pytest.approx(value_of(theta), rel=1e-10, abs=1e-10)
    expected = reference.finite_difference_gradient(value_of, theta, step=1e-5)
    np.testing.assert_allclose(gradient, expected, atol=2e-8, rtol=1e-6)


@quick
@given(rows(1, 8), st.sampled_from([0.0, 0.5, 0.8, 1.0]), st.integers(0, 2**31))
def test_missing_cells_are_summed_over(row, sparsity, seed):
    """Compare the value and all entries of the gradient, whichever items are missing."""
    rng = np.random.default_rng(seed)
    theta = reference.random_theta(rng, len(row), sparsity=sparsity)
    stop_rate = float(rng.uniform(0.5, 2.0))
    present, missing = split(row)
    check(
        theta, [row],
        lambda x: twin.log_p_sum_of_sets(x, present, missing, stop_rate), stop_rate,
    )  # fmt: skip


@quick
@given(rows(1, 8), st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 2**31))
def test_a_fit_sums_over_missing_cells(row, sparsity, seed):
    """A fit uses the lattice of all present and missing items, with the kernel for complete sets.

    The result is compared with a sum over all completions of the sample.
    """
    rng = np.random.default_rng(seed)
    n = len(row)
    theta = reference.random_theta(rng, n, sparsity=sparsity)
    present, missing = split(row)
    other = rng.random(n) < 0.5
    objective = Objective(
        Dataset([row, other.astype(float)]), Exponential(), Settings(random_state=1, n_threads=1)
    )
    objective.prepare(np.ones((n, n), dtype=bool))
    assert not objective.is_sampled
    assert not objective.is_partial

    def loss_of(x):
        first = twin.log_p_sum_of_sets(x, present, missing)
        return -0.5 * (first + twin.log_p_sum_of_sets(x, np.flatnonzero(other), []))

    loss, gradient = objective.evaluate(theta)
    assert loss == pytest.approx(loss_of(theta), rel=1e-10, abs=1e-10)
    expected = reference.finite_difference_gradient(loss_of, theta, step=1e-5)
    np.testing.assert_allclose(gradient, expected, atol=2e-8, rtol=1e-6)


@quick
@given(rows(2, 5), st.integers(0, 2**31), st.data())
def test_known_orders_and_missing_cells_together(row, seed, draw):
    rng = np.random.default_rng(seed)
    theta = reference.random_theta(rng, len(row), sparsity=0.4)
    present, missing = split(row)
    # All statements are taken from one order, so they cannot form a cycle.
    order = draw.draw(st.permutations(present))
    pairs = [(a, b) for at, a in enumerate(order) for b in order[at + 1 :]]
    chosen = draw.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    statements = [(a, b, draw.draw(st.sampled_from([1.0, 0.9, 0.6]))) for a, b in chosen]
    named = [(str(a), str(b), p) for a, b, p in statements]
    check(
        theta, Dataset([row], orders=[named]), lambda x: twin.log_p(x, present, missing, statements)
    )


def test_uncertain_statements_may_contradict_each_other():
    theta = reference.random_theta(np.random.default_rng(1), 4)
    statements = [(0, 1, 0.9), (1, 2, 0.8), (2, 0, 0.7)]
    data = Dataset([[1, 1, 1, 0]], orders=[[(str(a), str(b), p) for a, b, p in statements]])
    check(theta, data, lambda x: twin.log_p(x, [0, 1, 2], [], statements))


@quick
@given(rows(1, 5), st.floats(0.05, 5.0), st.integers(0, 2**31))
def test_missing_cells_at_known_times(row, t, seed):
    theta = reference.random_theta(np.random.default_rng(seed), len(row), sparsity=0.3)
    present, missing = split(row)
    data = Dataset([row], times=[t])
    check(theta, data, lambda x: twin.log_p_at(x, present, missing, t))


def test_reports_of_all_orders_add_up():
    """P(set and statement "a before b") + P(set and statement "b before a") = P(set).

    This holds for certain and for uncertain statements.
    """
    theta = reference.random_theta(np.random.default_rng(2), 5)
    whole = log_likelihood(theta, [[1, 1, 0, 1, 0]])
    for p in (1.0, 0.8):
        both = [
            np.exp(log_likelihood(theta, Dataset([[1, 1, 0, 1, 0]], orders=[[(a, b, p)]])))
            for a, b in (("0", "3"), ("3", "0"))
        ]
        assert sum(both) == pytest.approx(np.exp(whole), rel=1e-12)


def test_a_total_order_leaves_one_sequence():
    theta = reference.random_theta(np.random.default_rng(3), 4)
    data = Dataset([[1, 1, 1, 1]], orders=[[("2", "0"), ("0", "3"), ("3", "1")]])
    expected = reference.log_p_sequence(theta, (2, 0, 3, 1))
    assert log_likelihood(theta, data) == pytest.approx(expected, rel=1e-12)


def test_complete_samples_among_others_keep_their_values():
    rng = np.random.default_rng(4)
    theta = reference.random_theta(rng, 6, sparsity=0.3)
    X = (rng.random((40, 6)) < 0.4).astype(float)
    plain = evaluate(theta, X)
    mixed = X.copy()
    mixed[::4, 2] = np.nan
    some = evaluate(theta, mixed)
    complete = np.arange(40) % 4 != 0
    np.testing.assert_allclose(
        some.log_likelihoods[complete], plain.log_likelihoods[complete], rtol=1e-13
    )
    assert set(some.methods) == {"exact"}
    # The p of a sample with a missing cell is larger, because it is a sum over both completions.
    assert (some.log_likelihoods[~complete] > plain.log_likelihoods[~complete]).all()


def test_items_that_matter():
    """Test which missing items must be summed over, for the value and for the full gradient.

    Item 0 acts on 1, item 1 acts on 2, and items 2 and 4 act on 3. Item 2 is present, item 5 is
    absent, and the other items are missing.
    """
    support = np.eye(6, dtype=bool)
    for i, j in [(0, 1), (1, 2), (4, 3), (2, 3)]:
        support[i, j] = True
    children = acting(support)
    partial = PartialSet(np.array([2]), np.array([0, 1, 3, 4]))
    assert partial.that_matter(children) == [0, 1]
    assert [x.missing for x in lattices_of(partial, children, full_gradient=False)] == [(0, 1)]
    rows = {x.row: x.missing for x in lattices_of(partial, children, full_gradient=True)}
    assert rows == {None: (0, 1), 3: (0, 1, 3, 4), 4: (0, 1, 4)}


def test_items_that_nothing_missing_interacts_with_cost_nothing():
    """40 missing items without effects are left out of the lattice.

    With these items the lattice would be too large for the budget.
    """
    n = 45
    theta = np.diag(np.full(n, -1.0))
    theta[0, 1] = 1.0
    row = np.full(n, np.nan)
    row[:5] = [1, 1, 0, 0, 1]
    small = log_likelihood(theta[:5, :5], [row[:5]], return_gradient=True)
    value, gradient = log_likelihood(theta, [row], return_gradient=True)
    assert value == pytest.approx(small[0], rel=1e-12)
    np.testing.assert_allclose(gradient[:5, :5], small[1], atol=1e-12)
    assert np.all(gradient[:, 5:] == 0.0)
    assert np.abs(gradient[5:, :5]).min() > 1e-6
    assert evaluate(theta, [row], gradient=False).methods.tolist() == ["exact"]


@pytest.mark.parametrize("method", ["completions", "histories"])
def test_drawn_cells_agree_with_the_sum_over_them(method):
    """Sampled values are within 5 standard errors. Gradients have errors of the expected size."""
    rng = np.random.default_rng(6)
    theta = reference.random_theta(rng, 9, scale=1.0, sparsity=0.3)
    X = (rng.random((60, 9)) < 0.4).astype(float)
    X[rng.random((60, 9)) < 0.4] = np.nan
    X[:, 0] = 1.0
    exact = evaluate(theta, X)
    drawn = evaluate(theta, X, method=method, random_state=1)
    some = np.isnan(X).any(axis=1)
    assert set(exact.methods) == {"exact"}
    assert set(drawn.methods[some]) == {method}
    z = (drawn.log_likelihoods - exact.log_likelihoods)[some] / drawn.standard_errors[some]
    assert np.abs(z).max() < 5.0
    assert abs(drawn.value - exact.value) < 5.0 * drawn.value_se
    assert 0.0 < drawn.value_se < 0.02
    # The standard error of a single entry comes from few chains and is uncertain. So the test uses
    # mean squares over all entries.
    off = (drawn.gradient - exact.gradient)[drawn.gradient_se > 0]
    assert np.sqrt(np.mean(off**2)) < 1.5 * np.sqrt(np.mean(drawn.gradient_se**2))
    assert np.abs(off).max() < 0.02
    again = evaluate(theta, X, method=method, random_state=1, n_threads=1)
    assert again.value == drawn.value
    np.testing.assert_array_equal(again.gradient, drawn.gradient)


def test_more_missing_cells_than_a_lattice_holds_are_drawn():
    rng = np.random.default_rng(7)
    n = 40
    theta = reference.random_theta(rng, n, scale=0.3, sparsity=0.9)
    np.fill_diagonal(theta, -3.0)
    X = (rng.random((5, n)) < 0.1).astype(float)
    X[:, 10:] = np.nan
    found = evaluate(theta, X, random_state=2)
    assert set(found.methods) == {"histories"}
    assert found.value_se < 0.1


def test_samples_that_no_method_can_evaluate_are_refused():
    theta = reference.random_theta(np.random.default_rng(5), 6)
    data = Dataset([[1, 1, np.nan, np.nan, 0, 1]], orders=[[("0", "1")]])
    with pytest.raises(BudgetError, match=r"sample '0' \(row 0\) has 3 items and 2 missing cells"):
        log_likelihood(theta, data, budget=Budget(work=1e3))
    with pytest.raises(InputError, match="complete samples"):
        log_likelihood(theta, data, method="relocation")
