"""Evaluation of data sets: weights, labels, and error messages for wrong input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
import sequela
from sequela import Dataset, InputError, Model, evaluate, log_likelihood
from sequela.likelihood import METHODS, Likelihood, sample_posteriors
from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.exact import plan_blocks

quick = settings(max_examples=25, deadline=None, derandomize=True, database=None)


@pytest.fixture
def theta():
    return ref.random_theta(np.random.default_rng(2), 5, 0.8)


@pytest.fixture
def X():  # noqa: N802 - the name that scikit-learn gives to samples
    return (np.random.default_rng(3).random((30, 5)) < 0.4).astype(int)


# --- Sums over samples ----------------------------------------------------------------------------


@quick
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 25))
def test_mean_over_samples_with_repeats(seed, n, samples):
    """The value and the gradient are means over all samples, also if most sets occur repeatedly."""
    rng = np.random.default_rng(seed)
    theta = ref.random_theta(rng, n, 1.0, sparsity=0.3)
    X = (rng.random((samples, n)) < rng.random()).astype(int)
    found = evaluate(theta, X)
    values = [ref.log_p_set(theta, np.flatnonzero(row)) for row in X]
    np.testing.assert_allclose(found.log_likelihoods, values, rtol=1e-11)
    assert found.value == pytest.approx(np.mean(values), rel=1e-12)
    gradients = [evaluate(theta, row[None]).gradient for row in X]
    np.testing.assert_allclose(found.gradient, np.mean(gradients, axis=0), atol=1e-13)


def test_identical_samples_are_evaluated_once():
    X = np.array([[1, 0], [1, 0], [0, 1], [1, 0], [1, 0]])
    times = [1.0, 2.0, np.nan, 1.0, np.nan]
    distinct = DistinctSamples.of(Dataset(X, times=times))
    assert len(distinct) == distinct.sizes.size == 4
    assert distinct.weights.sum() == pytest.approx(1.0)
    assert sorted(distinct.weights) == pytest.approx([0.2, 0.2, 0.2, 0.4])
    np.testing.assert_array_equal(distinct.times[distinct.inverse], times)
    np.testing.assert_array_equal(distinct.timed[distinct.inverse], ~np.isnan(times))
    np.testing.assert_array_equal(distinct.inverse[distinct.first], np.arange(4))
    for row, S in enumerate(X):
        items = distinct.items(distinct.inverse[row])
        np.testing.assert_array_equal(items, np.flatnonzero(S))
        assert distinct.first[distinct.inverse[row]] <= row


def test_large_sets_come_first_where_work_is_shared():
    distinct = DistinctSamples.of(Dataset([[1, 0, 0], [1, 1, 1], [0, 0, 0], [0, 1, 1]]))
    assert [int(distinct.sizes[s]) for s in distinct.largest_first()] == [3, 2, 1, 0]


def test_the_order_of_the_samples_does_not_matter(theta, X):
    order = np.random.default_rng(4).permutation(len(X))
    found, shuffled = evaluate(theta, X), evaluate(theta, X[order])
    np.testing.assert_array_equal(shuffled.log_likelihoods, found.log_likelihoods[order])
    assert shuffled.value == pytest.approx(found.value, rel=1e-14)
    np.testing.assert_allclose(shuffled.gradient, found.gradient, rtol=0, atol=1e-15)


@quick
@given(st.integers(0, 2**32 - 1))
def test_the_order_of_the_items_does_not_matter(seed):
    """Evaluate sets of 6 to 13 items, and the same sets with their items in another order.

    In the kernels, items are bits of the number of a state. Here items that were low bits become
    high bits.
    """
    rng = np.random.default_rng(seed)
    theta = ref.random_theta(rng, 16, 0.5, sparsity=0.4)
    X = np.zeros((4, 16), dtype=int)
    for row in X:
        row[rng.choice(16, rng.integers(6, 14), replace=False)] = 1
    order = rng.permutation(16)
    value, gradient = log_likelihood(theta, X, return_gradient=True)
    permuted = log_likelihood(theta[np.ix_(order, order)], X[:, order], return_gradient=True)
    assert permuted[0] == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(permuted[1], gradient[np.ix_(order, order)], atol=1e-12)


def test_many_sets_of_all_sizes_in_many_blocks():
    """Terms that are the same for all sets are added once in total, not once per block of sets."""
    rng = np.random.default_rng(5)
    n = 24
    theta = ref.random_theta(rng, n, 0.4, sparsity=0.9)
    theta[3, 3] = 3.5  # a rate above SHORTCUT_LIMIT of kernels/columns.py
    X = np.zeros((150, n), dtype=int)
    for row in X:
        row[rng.choice(n, rng.integers(0, 13), replace=False)] = 1
    likelihood = Likelihood(X)
    found = likelihood.evaluate(theta)
    distinct = likelihood.distinct
    blocks = plan_blocks(distinct, np.arange(len(distinct)), n)
    assert len(blocks) > 3
    assert sorted(np.concatenate(blocks)) == list(range(len(distinct)))
    total = sum(evaluate(theta, row[None]).gradient for row in X) / len(X)
    np.testing.assert_allclose(found.gradient, total, rtol=0, atol=1e-13)


def test_value_alone_is_the_same_value(theta, X):
    value, _ = log_likelihood(theta, X, return_gradient=True)
    assert log_likelihood(theta, X) == value
    found = Likelihood(X).evaluate(theta, gradient=False)
    assert found.value == value
    assert found.gradient is None


def test_exact_results_carry_no_error(theta, X):
    found = evaluate(theta, X)
    assert found.value_se == 0.0
    np.testing.assert_array_equal(found.gradient_se, 0.0)
    assert set(found.methods) == {"exact"}


def test_arguments_are_left_alone(theta, X):
    before, data = theta.copy(), X.copy()
    likelihood = Likelihood(X)
    first = likelihood.evaluate(theta)
    theta[0, 0] += 1.0
    likelihood.evaluate(theta)
    theta[0, 0] = before[0, 0]
    np.testing.assert_array_equal(likelihood.evaluate(theta).gradient, first.gradient)
    np.testing.assert_array_equal(theta, before)
    np.testing.assert_array_equal(X, data)


# --- Forms of theta and data that are accepted ----------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.astype(bool),
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X),
        lambda X: Dataset(X),
        lambda X: np.asfortranarray(X),
    ],
)
def test_data_in_any_form(theta, X, convert):
    assert log_likelihood(theta, convert(X)) == log_likelihood(theta, X)


@pytest.mark.parametrize(
    "convert", [np.asfortranarray, lambda t: t.tolist(), lambda t: t[::-1][::-1], pd.DataFrame]
)
def test_theta_in_any_form(theta, X, convert):
    value, gradient = log_likelihood(theta, X, return_gradient=True)
    found = log_likelihood(convert(theta), X, return_gradient=True)
    assert found[0] == value
    np.testing.assert_array_equal(found[1], gradient)


def test_a_list_of_sets():
    theta = pd.DataFrame(
        ref.random_theta(np.random.default_rng(1), 3, 1.0), index=list("abc"), columns=list("abc")
    )
    sets = [{"b", "c"}, {"a"}, {"a", "b", "c"}]
    X = [[0, 1, 1], [1, 0, 0], [1, 1, 1]]
    assert log_likelihood(theta, sets) == pytest.approx(
        log_likelihood(theta.to_numpy(), X), rel=1e-14
    )


def test_labels_of_theta_in_another_order(theta, X):
    """The rows and columns of the gradient are sorted like the items of the data."""
    labels = ["A", "B", "C", "D", "E"]
    frame = pd.DataFrame(theta, index=labels, columns=labels)
    data = pd.DataFrame(X, columns=labels)
    value, gradient = log_likelihood(theta, X, return_gradient=True)
    for order in (labels, labels[::-1], ["C", "A", "E", "B", "D"]):
        found = log_likelihood(frame.loc[order, order], data, return_gradient=True)
        assert found[0] == value
        np.testing.assert_array_equal(found[1], gradient)


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        (["A", "B"], ["B", "A"], "labelled differently"),
        (["A", "C"], ["A", "C"], r"different items: only theta has \['C'\], theta lacks \['B'\];"),
        (["A", "B", "C"], ["A", "B", "C"], r"different items: only theta has \['C'\]; give"),
        (["A"], ["A"], r"different items: theta lacks \['B'\]; give"),
    ],
)
def test_labels_that_do_not_fit(rows, columns, message):
    frame = pd.DataFrame(np.zeros((len(rows), len(rows))), index=rows, columns=columns)
    with pytest.raises(InputError, match=message):
        log_likelihood(frame, pd.DataFrame([[1, 0]], columns=["A", "B"]))


def test_a_model_has_the_items_of_the_data_in_any_order():
    """Items of models and of tables are matched by their labels. Other items are an error."""
    model = Model([[0.2, 1.5], [0.0, -1.0]], ["A", "B"])
    data = pd.DataFrame([[1, 0], [1, 1]], columns=["B", "A"])
    turned = Model([[-1.0, 0.0], [1.5, 0.2]], ["B", "A"])
    found, expected = evaluate(model, data), evaluate(turned, data)
    assert (
        found.value
        == expected.value
        == pytest.approx(np.mean([ref.log_p_set(model.theta, S) for S in ([1], [0, 1])]), abs=1e-13)
    )
    np.testing.assert_array_equal(found.gradient, expected.gradient)
    with pytest.raises(InputError, match=r"only theta has \['A', 'B'\], theta lacks \['0', '1'\]"):
        evaluate(model, [[1, 0]])


# A regression test: if two rows and columns were named A, the first was used, without an error.
def test_labels_that_occur_twice():
    frame = pd.DataFrame(np.diag([1.0, 2.0, 3.0]), index=list("AAB"), columns=list("AAB"))
    with pytest.raises(InputError):
        log_likelihood(frame, pd.DataFrame([[1, 0]], columns=["A", "B"]))


# --- Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        (np.zeros(2), r"shape \(2,\).*square"),
        (np.zeros((2, 3)), r"shape \(2, 3\).*square"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\).*square"),
        (np.zeros((0, 0)), "no items"),
        (np.zeros((3, 3)), r"shape \(3, 3\) but the given labels or data have 2 items"),
        ([[0.0, np.nan], [0.0, 0.0]], r"theta\[0, 1\] is nan"),
        ([[0.0, 0.0], [-np.inf, 0.0]], r"theta\[1, 0\] is -inf.*never arrives"),
        ([[0.0, 0.0], [0.0, 501.0]], r"theta\[1, 1\] is 501.*logarithms"),
        ([[-501.0, 0.0], [0.0, 0.0]], r"theta\[0, 0\] is -501"),
        ([["a", "b"], ["c", "d"]], "cannot be read as numbers"),
        ([[0.0, 1.0], [2.0]], "cannot be read as numbers"),
        (None, "square"),
    ],
)
def test_bad_theta_is_refused(theta, message):
    for method in METHODS:
        with pytest.raises(InputError, match=message):
            log_likelihood(theta, [[1, 1]], method=method)
    with pytest.raises(InputError, match=message):
        sample_posteriors(theta, [[1, 1]])


# A regression test: NumPy ignores imaginary parts with a warning, which is an error in these tests.
def test_complex_theta_is_refused():
    with pytest.raises(InputError):
        log_likelihood(np.zeros((2, 2)) + 1j, [[1, 1]])


@pytest.mark.parametrize("method", ["", "Exact", "gibbs", None, 3])
def test_unknown_methods_are_refused(method):
    with pytest.raises(InputError, match=r"method is .*expected one of 'auto', 'exact'"):
        log_likelihood(np.zeros((2, 2)), [[1, 1]], method=method)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([1.0], "times has 1 entries for 2 samples"),
        ([1.0, 2.0, 3.0], "times has 3 entries for 2 samples"),
        ([1.0, -2.0], "sample '1'"),
        ([np.inf, 1.0], "sample '0'"),
        (["soon", 1.0], "sample '0'"),
    ],
)
def test_bad_times_are_refused(times, message):
    with pytest.raises(InputError, match=message):
        log_likelihood(np.zeros((2, 2)), [[1, 1], [0, 1]], times=times)


def test_relocation_at_known_times_is_refused():
    with pytest.raises(InputError, match="'relocation' does not support known observation times"):
        log_likelihood(np.zeros((2, 2)), [[1, 1]], times=[1.0], method="relocation")
    # If no set has to be sampled, there is no error.
    assert np.isfinite(log_likelihood(np.zeros((2, 2)), [[1, 0]], times=[1.0], method="relocation"))


def test_errors_are_value_errors_too():
    """The errors of sequela are subclasses of ValueError, as code for scikit-learn expects."""
    with pytest.raises(ValueError, match="method"):
        log_likelihood(np.zeros((2, 2)), [[1, 1]], method="none")
    assert issubclass(sequela.InputError, sequela.SequelaError)
    assert issubclass(sequela.BudgetError, sequela.SequelaError)
