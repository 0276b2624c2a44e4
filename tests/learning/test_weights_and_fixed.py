"""A weight of 2 means the same as two equal samples. Fixed interactions do not change."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learning.problems import gradient_by_differences, quiet, simulated
from sequela import Dataset, InputError, Model, SetChain, SetChainCV, evaluate, fit, path
from sequela.learning import compare_optima, penalty_max, refit
from sequela.learning.fixed import fixed_entries, read_fixed, read_fixed_file
from sequela.questions import order_ranges, rival_orders

quick = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def repeated(data, weights):
    return data.take_rows(np.repeat(np.arange(data.n_samples), weights))


weighted_tables = st.integers(1, 5).flatmap(
    lambda n: st.lists(
        st.tuples(st.tuples(*[st.booleans()] * n), st.integers(0, 4)), min_size=1, max_size=12
    )
)


@quick
@given(rows=weighted_tables.filter(lambda rows: any(w for _, w in rows)), seed=st.integers(0, 99))
def test_integer_weights_are_repeated_samples(rows, seed):
    data = Dataset(np.array([row for row, _ in rows], dtype=bool))
    weights = [w for _, w in rows]
    theta = np.random.default_rng(seed).normal(size=(data.n_items, data.n_items))
    one = evaluate(theta, data, sample_weight=weights)
    two = evaluate(theta, repeated(data, weights))
    assert one.value == pytest.approx(two.value, abs=1e-12)
    np.testing.assert_allclose(one.gradient, two.gradient, atol=1e-12)
    assert one.log_likelihoods.shape == (data.n_samples,)
    scaled = evaluate(theta, data, sample_weight=np.array(weights) * 0.37)
    assert scaled.value == pytest.approx(one.value, abs=1e-12)


def test_weights_count_partly_known_samples_as_others():
    rng = np.random.default_rng(4)
    data = Dataset(
        np.where(rng.random((20, 4)) < 0.2, np.nan, rng.integers(0, 2, (20, 4))),
        orders=None,
    )
    weights = rng.integers(0, 3, 20)
    theta = rng.normal(size=(4, 4))
    one = evaluate(theta, data, sample_weight=weights)
    two = evaluate(theta, repeated(data, weights))
    assert one.value == pytest.approx(two.value, abs=1e-12)
    np.testing.assert_allclose(one.gradient, two.gradient, atol=1e-12)
    with quiet():
        models = [
            fit(data.with_weights(weights), penalty=0.02),
            fit(repeated(data, weights), penalty=0.02),
        ]
    np.testing.assert_allclose(models[0].theta, models[1].theta, atol=1e-9)


def test_fits_to_weights_are_fits_to_repeated_samples():
    data = simulated(5, 120, 3)
    rng = np.random.default_rng(1)
    for samples in (data.without_times(), data):
        weights = rng.integers(0, 4, data.n_samples)
        again = repeated(samples, weights)
        one = SetChain(0.02, n_starts=2, random_state=1)
        two = SetChain(0.02, n_starts=2, random_state=1)
        with quiet():
            one.fit(samples, sample_weight=weights)
            two.fit(again)
        assert one.objective_ == pytest.approx(two.objective_, abs=1e-12)
        np.testing.assert_allclose(one.theta_, two.theta_, atol=1e-9)
        assert one.score(samples, sample_weight=weights) == pytest.approx(
            two.score(again), abs=1e-12
        )
    assert one.model_.metadata["total_weight"] == weights.sum()
    weighted = samples.with_weights(weights)
    assert refit(one, weighted).log_likelihood == pytest.approx(
        refit(two, again).log_likelihood, abs=1e-8
    )
    assert penalty_max(weighted) == pytest.approx(penalty_max(again), abs=1e-12)
    assert fit(weighted, penalty=0.02) == fit(samples, penalty=0.02, sample_weight=weights)


def test_equal_weights_change_no_bit():
    data = simulated(4, 80, 2).without_times()
    one = SetChain(0.02).fit(data)
    two = SetChain(0.02).fit(data, sample_weight=np.ones(data.n_samples))
    assert np.array_equal(one.theta_, two.theta_)
    assert one.objective_ == two.objective_


def test_ranges_of_orders_count_weights_as_samples():
    data = simulated(3, 60, 5).without_times()
    weights = np.random.default_rng(2).integers(1, 3, data.n_samples)
    again = repeated(data, weights)
    tables = []
    for samples in (data.with_weights(weights), again):
        with quiet():
            check = order_ranges(fit(samples, penalty=0.02), samples, random_state=1)
        tables.append(check.table.select_dtypes("number"))
    pd.testing.assert_frame_equal(*tables, atol=1e-5)


def test_cross_validation_takes_weights():
    data = simulated(3, 60, 7).without_times()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, data.n_samples)
    with quiet():
        chosen = SetChainCV([0.2, 0.02], folds=3, random_state=1).fit(data, sample_weight=weights)
        plain = SetChainCV([0.2, 0.02], folds=3, random_state=1).fit(data)
    assert chosen.model_.metadata["total_weight"] == pytest.approx(weights.sum())
    assert not np.allclose(
        chosen.cv_results_["log_likelihood"], plain.cv_results_["log_likelihood"]
    )


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0], ["1 entries for 3 samples"]),
        ([1.0, -1.0, 1.0], ["'1'", "-1.0", "at least 0"]),
        ([1.0, np.nan, 1.0], ["nan", "finite"]),
        ([1.0, np.inf, 1.0], ["inf", "finite"]),
        ([0.0, 0.0, 0.0], ["0 for all 3 samples"]),
        (["a", 1, 1], ["'a'"]),
        (pd.Series([1, 2, 1], index=["2", "1", "0"]), ["sample_weight"]),
    ],
)
def test_bad_weights_are_refused(weights, words):
    data = Dataset([[1, 0], [0, 1], [1, 1]])
    with pytest.raises(InputError) as caught:
        SetChain().fit(data, sample_weight=weights)
    for word in words:
        assert word in str(caught.value), str(caught.value)


# --- Fixed interactions ---------------------------------------------------------------------------


def fixed_table(n, seed, share=0.4):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((n, n)) < 0.5, 0.0, rng.normal(size=(n, n)))
    fixed = np.where(rng.random((n, n)) < share, values, np.nan)
    np.fill_diagonal(fixed, np.nan)
    return fixed


@pytest.mark.parametrize("seed", range(4))
def test_a_fit_with_fixed_interactions_is_optimal_in_the_others(seed):
    """Check optimality with derivatives of a likelihood by dense linear algebra."""
    data = simulated(4, 100, seed).without_times()
    fixed = fixed_table(4, seed)
    frame = pd.DataFrame(fixed, index=data.items, columns=data.items)
    learner = SetChain(0.02, n_starts=3, random_state=1, tol=1e-6, fixed=frame)
    with quiet():
        learner.fit(data)
    held = ~np.isnan(fixed)
    assert held.any()
    for start in learner.starts_:
        assert np.array_equal(start.theta[held], fixed[held])
        assert start.converged
    gradient = gradient_by_differences(learner.theta_, data.values)
    for i, j in np.argwhere(~held):
        theta, slope = learner.theta_[i, j], gradient[i, j]
        strength = 0.0 if i == j else 0.02
        away = abs(slope - strength * np.sign(theta)) if theta else max(0, abs(slope) - strength)
        assert away < 5e-6
    assert learner.kkt_residual_ <= 1e-6


def test_all_ways_to_say_it_are_the_same():
    data = simulated(3, 80, 1).without_times()
    a, b, c = data.items
    table = np.full((3, 3), np.nan)
    table[0, 1], table[2, 0] = 0.0, 0.7
    frame = pd.DataFrame(table, index=data.items, columns=data.items)
    ways = [
        [(a, b), (c, a, 0.7)],
        {(a, b): 0.0, (c, a): 0.7},
        table,
        frame,
        frame.loc[[c, a], [b, a]],
        pd.DataFrame({"from": [a, c], "to": [b, a], "value": [0, 0.7]}),
    ]
    models = [fit(data, penalty=0.01, fixed=way) for way in ways]
    assert all(model == models[0] for model in models)
    assert models[0].theta[0, 1] == 0.0
    assert models[0].theta[2, 0] == 0.7
    assert read_fixed(fixed_entries(table, data.items), data.items)[2, 0] == 0.7


def test_nothing_fixed_changes_no_bit():
    data = simulated(4, 80, 2).without_times()
    plain = fit(data, penalty=0.02)
    assert np.array_equal(fit(data, penalty=0.02, fixed=[]).theta, plain.theta)
    assert np.array_equal(fit(data, penalty=0.02, fixed=np.full((4, 4), np.nan)).theta, plain.theta)


def test_fixing_all_zeros_of_a_fit_changes_nothing_but_the_certificate():
    data = simulated(5, 150, 4).without_times()
    plain = SetChain(0.03, tol=1e-7).fit(data)
    zeros = np.where(plain.theta_ == 0.0, 0.0, np.nan)
    np.fill_diagonal(zeros, np.nan)
    again = SetChain(0.03, tol=1e-7, fixed=zeros).fit(data)
    np.testing.assert_allclose(again.theta_, plain.theta_, atol=1e-4)


def test_everything_that_learns_again_keeps_them():
    data = simulated(3, 80, 1).without_times()
    a, b, c = data.items
    fixed = [(a, b), (c, a, 0.7)]
    learner = SetChain(0.01, n_starts=2, random_state=1, fixed=fixed)
    with quiet():
        learner.fit(data)
        models = [refit(learner, data).model, compare_optima(learner, data)[1][0].model]
        models += [order_ranges(learner, data, random_state=1).model]
        models += [rival_orders(learner, data, random_state=1).model]
        models += [learner.add_start(data, np.ones((3, 3))).model_]
        models += [
            Model(theta, data.items) for theta in path(data, [0.1, 0.01], fixed=fixed).thetas
        ]
        cv = SetChainCV([0.1, 0.01], folds=2, random_state=1, fixed=fixed)
        models += [cv.fit(data).model_]
        paper = SetChain(0.01, solver="adagrad", max_iter=20, random_state=1, fixed=fixed)
        models += [paper.fit(data).model_]
    for model in models:
        assert (model.theta[0, 1], model.theta[2, 0]) == (0.0, 0.7)


def test_fixed_interactions_of_large_sets(tmp_path):
    """Large sets are evaluated by components. Fixed interactions link items of a component."""
    theta = np.diag(np.full(24, -0.2))
    data = simulated(24, 60, 1, base=0.6, sparsity=0.98).without_times()
    assert data.set_sizes.max() > 14
    theta = np.full((24, 24), np.nan)
    theta[0, 1], theta[3, 2] = 0.0, 1.2
    learner = SetChain(0.05, random_state=1, fixed=theta, checkpoint=tmp_path / "fit.npz")
    with quiet():
        learner.fit(data)
        again = SetChain(0.05, random_state=1, fixed=theta, checkpoint=tmp_path / "fit.npz")
        again.fit(data)
        with pytest.raises(InputError, match="belongs to another fit"):
            SetChain(0.05, random_state=1, checkpoint=tmp_path / "fit.npz").fit(data)
    assert learner.converged_
    assert learner.theta_[3, 2] == 1.2
    assert np.array_equal(again.theta_, learner.theta_)


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        ([("a", "x")], ["'x'", "not among the items"]),
        ([("a", "a")], ["base rate of 'a'", "diagonal"]),
        ([("a",)], ["('a',)", "pairs"]),
        ([("a", "b", "much")], ["'much'", "number"]),
        ([("a", "b", 1.0), ("a", "b", 2.0)], ["two values", "'a' -> 'b'"]),
        ([("a", "b", np.inf)], ["infinite", "'a' -> 'b'"]),
        (np.zeros((3, 3)), ["(3, 3)", "(2, 2)"]),
        (np.zeros((2, 2), dtype=bool), ["bool"]),
        (pd.DataFrame([[np.nan]], index=["a"], columns=["z"]), ["column 'z'"]),
        ("file.csv", ["'file.csv'"]),
        ({"a": 1.0}, ["'a'", "pair of items"]),
    ],
)
def test_bad_masks_are_refused(fixed, words):
    data = Dataset([[1, 0], [0, 1], [1, 1]], items=["a", "b"])
    with pytest.raises(InputError) as caught:
        fit(data, fixed=fixed)
    for word in words:
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n", ["line 1", '"from" and "to"']),
        ("from,to\n", ["no lines"]),
        ("from,to,value\na,b,1\na,b\n", ["line 3", "2 cells"]),
        ("from,to,value\na,b,much\n", ["line 2", "'value'", "'much'"]),
    ],
)
def test_bad_files_of_masks_are_refused_with_their_line(tmp_path, text, words):
    path = tmp_path / "fixed.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_fixed_file(path)
    for word in ["fixed.csv", *words]:
        assert word in str(caught.value), str(caught.value)
