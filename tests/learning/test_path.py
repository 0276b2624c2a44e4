"""The choice of the penalty: the path, cross-validation, and its plot."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from learning.problems import interactions, kkt_residual, l1, mean_log_p, quiet, simulated
from sequela import InputError, Sampling, SequelaError, SetChain, SetChainCV, evaluate, path
from sequela.learning import penalty_max
from sequela.learning.penalty_path import penalty_grid
from sequela.plots import plot_cross_validation


@pytest.fixture(scope="module")
def data():
    return simulated(6, 150, 1, scale=1.2).without_times()


@pytest.fixture(scope="module")
def found(data):
    return path(data, n_penalties=6, ratio=0.05, tol=1e-4)


def test_it_begins_with_nothing_and_every_model_is_optimal(data, found):
    table = found.table
    assert list(table.columns) == [
        "penalty", "log_likelihood", "log_likelihood_se", "objective", "interactions",
        "kkt_residual", "evaluations", "converged",
    ]  # fmt: skip
    assert table["penalty"].iloc[0] == pytest.approx(penalty_max(data))
    assert table["penalty"].iloc[-1] == pytest.approx(0.05 * penalty_max(data))
    assert table["penalty"].is_monotonic_decreasing
    assert table["interactions"].iloc[0] == 0
    assert table["interactions"].iloc[-1] > 5
    assert table["log_likelihood"].is_monotonic_increasing
    assert (table["log_likelihood_se"] == 0.0).all()
    assert table["converged"].all()
    for row, theta in zip(table.itertuples(), found.thetas, strict=True):
        value = mean_log_p(theta, data.values)
        assert row.log_likelihood == pytest.approx(value, abs=1e-9)
        assert row.objective == pytest.approx(value - l1(theta, row.penalty), abs=1e-9)
        assert row.interactions == interactions(theta)
        gradient = evaluate(theta, data).gradient
        assert kkt_residual(theta, gradient, row.penalty) <= 1.001e-4
        assert row.kkt_residual == pytest.approx(
            kkt_residual(theta, gradient, row.penalty), abs=1e-9
        )


def test_a_warm_start_ends_where_a_fit_ends_or_at_another_optimum(data):
    tight = path(data, n_penalties=5, ratio=0.08, tol=1e-6)
    same = 0
    for row, theta in zip(tight.table.itertuples(), tight.thetas, strict=True):
        direct = SetChain(row.penalty, tol=1e-6).fit(data)
        apart = np.abs(direct.theta_ - theta).max()
        if abs(direct.objective_ - row.objective) < 1e-6:
            same += 1
            assert apart < 0.02
        else:
            assert apart > 0.1
    assert same >= 3


def test_a_warm_start_saves_work(data, found):
    cold = sum(SetChain(p, tol=1e-4).fit(data).n_evaluations_ for p in found.table["penalty"])
    assert found.table["evaluations"].sum() < cold


def test_given_penalties_are_put_in_order(data):
    given = path(data, [0.01, 0.1, 0.03])
    assert given.table["penalty"].tolist() == [0.1, 0.03, 0.01]
    frame = path(data.to_frame(), (0.1, 0.03, 0.01))
    assert all(np.array_equal(a, b) for a, b in zip(given.thetas, frame.thetas, strict=True))
    assert frame.items == data.items
    assert path(data, np.array([0.02])).table["converged"].all()


def test_with_times_it_begins_with_nothing():
    timed = simulated(4, 80, 1, scale=1.2)
    found = path(timed, n_penalties=3, ratio=0.2, tol=1e-4)
    assert found.table["interactions"].iloc[0] == 0
    assert found.table["interactions"].iloc[-1] > 0
    just_below = path(timed, [0.98 * penalty_max(timed)], tol=1e-6)
    assert just_below.table["interactions"].tolist() != [0]
    assert penalty_max(timed) != pytest.approx(penalty_max(timed.without_times()), rel=1e-3)
    for penalty, theta in zip(found.table["penalty"], found.thetas, strict=True):
        assert kkt_residual(theta, evaluate(theta, timed).gradient, penalty) <= 1.001e-4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"penalties": []}, "penalties is empty"),
        ({"penalties": [0.1, -1.0]}, "penalty is -1.0"),
        ({"n_penalties": 1}, "n_penalties is 1"),
        ({"ratio": 0.0}, "ratio is 0.0"),
        ({"ratio": 1.0}, "ratio is 1.0"),
        ({"ratio": float("nan")}, "ratio is nan"),
        ({"ratio": "small"}, "ratio is 'small'"),
        ({"tol": 0.0}, "tol is 0.0"),
        ({"tol": "tight"}, "tol is 'tight'"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"sampling": 1}, "sampling is 1"),
        ({"sampling": Sampling(chains=1)}, "chains is 1"),
        ({"draws": 10}, "draws is not used by this function"),
        ({"target_se": 0.1}, "target_se is not used by this function"),
        ({"observation": -1.0}, "observation is -1.0"),
        ({"budget": 5}, "budget is 5"),
    ],
)
def test_paths_that_make_no_sense_are_refused(data, options, words):
    with pytest.raises(InputError) as told:
        path(data, **options)
    assert words in str(told.value)


@pytest.mark.parametrize("X", [[[1], [0], [0]], [[0, 0], [0, 0]]])
def test_data_without_a_penalty_to_begin_with(X):
    """If there is only one item, or if all samples are empty, no interaction can be learned."""
    for work in (lambda: path(X, n_penalties=3), lambda: SetChainCV(folds=2).fit(X)):
        with quiet(), pytest.raises(InputError, match=r"no interaction improves.*Give"):
            work()
    with quiet():
        found = path(X, [0.01])
    assert found.table["interactions"].tolist() == [0]
    assert np.isfinite(found.thetas[0]).all()


def test_the_grid_has_equal_factors():
    grid = penalty_grid(0.2, 5, 0.01)
    assert grid[0] == pytest.approx(0.2)
    assert grid[-1] == pytest.approx(0.002)
    np.testing.assert_allclose(grid[1:] / grid[:-1], grid[1] / grid[0])


# --- Cross-validation -----------------------------------------------------------------------------

PENALTIES = [0.1, 0.03, 0.02, 0.014, 0.003]


@pytest.fixture(scope="module")
def chosen(data):
    with quiet():
        return SetChainCV(PENALTIES, folds=3, random_state=2).fit(data)


def test_the_table_of_results(chosen):
    table = chosen.cv_results_
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == [
        "penalty", "log_likelihood", "standard_error", "interactions", "best", "chosen",
    ]  # fmt: skip
    assert table["penalty"].tolist() == PENALTIES
    assert table["best"].sum() == 1
    assert table["chosen"].sum() == 1
    assert table["log_likelihood"].idxmax() == table["best"].idxmax()
    assert (table["standard_error"] > 0.0).all()


def test_the_one_standard_error_rule(data, chosen):
    table = chosen.cv_results_
    best = table[table["best"]].iloc[0]
    enough = table["log_likelihood"] >= best["log_likelihood"] - best["standard_error"]
    assert chosen.penalty_ == table.loc[enough, "penalty"].max()
    with quiet():
        at_best = SetChainCV(PENALTIES, folds=3, random_state=2, rule="best").fit(data)
    assert at_best.penalty_ == best["penalty"]
    np.testing.assert_array_equal(at_best.cv_results_["log_likelihood"], table["log_likelihood"])
    assert chosen.penalty_ > at_best.penalty_


def test_held_out_likelihoods_are_of_samples_not_seen(data):
    """Compare with a loop over the samples, each of which is left out once.

    There are as many folds as samples, so each fold is one sample.
    """
    few = data.select_samples(range(12))
    with quiet():
        loo = SetChainCV([0.2, 0.05], folds=12, random_state=9, tol=1e-4).fit(few)
        by_hand = np.zeros((2, 12))
        for left_out in range(12):
            rest = few.select_samples([i for i in range(12) if i != left_out])
            for at, theta in enumerate(path(rest, [0.2, 0.05], tol=1e-3).thetas):
                by_hand[at, left_out] = mean_log_p(theta, few.values[[left_out]])
    np.testing.assert_allclose(loo.cv_results_["log_likelihood"], by_hand.mean(axis=1), atol=1e-9)
    np.testing.assert_allclose(
        loo.cv_results_["standard_error"], by_hand.std(axis=1, ddof=1) / np.sqrt(12), atol=1e-9
    )


def test_the_final_model_is_a_fit_with_the_chosen_penalty(data, chosen):
    direct = SetChain(chosen.penalty_, random_state=2).fit(data)
    assert np.array_equal(chosen.theta_, direct.theta_)
    assert chosen.model_.metadata["penalty"] == chosen.penalty_
    assert chosen.seed_ == 2
    assert chosen.score(data) == direct.score(data)


def test_the_seed_deals_the_folds(data, chosen):
    with quiet():
        again = SetChainCV(PENALTIES, folds=3, random_state=2, n_threads=1).fit(data)
        other = SetChainCV(PENALTIES, folds=3, random_state=3).fit(data)
    pd.testing.assert_frame_equal(again.cv_results_, chosen.cv_results_, check_exact=True)
    assert np.array_equal(again.theta_, chosen.theta_)
    assert (other.cv_results_["log_likelihood"] != chosen.cv_results_["log_likelihood"]).any()


def test_a_drawn_seed_repeats_it(data):
    with quiet():
        one = SetChainCV([0.1, 0.02], folds=2).fit(data)
        two = SetChainCV([0.1, 0.02], folds=2, random_state=one.seed_).fit(data)
    pd.testing.assert_frame_equal(one.cv_results_, two.cv_results_, check_exact=True)
    assert one.random_state is None


def test_the_grid_is_made_from_penalty_max(data):
    with quiet():
        table = SetChainCV(n_penalties=3, ratio=0.1, folds=2, random_state=1).fit(data).cv_results_
    largest = penalty_max(data)
    np.testing.assert_allclose(table["penalty"], [largest, largest * 0.1**0.5, largest * 0.1])
    assert table["interactions"].is_monotonic_increasing


def test_times_are_dealt_with_their_samples():
    timed = simulated(4, 60, 1)
    with quiet():
        inside = SetChainCV([0.1, 0.02], folds=2, random_state=1).fit(timed)
        given = SetChainCV([0.1, 0.02], folds=2, random_state=1).fit(
            timed.without_times(), times=timed.times
        )
        without = SetChainCV([0.1, 0.02], folds=2, random_state=1).fit(timed.without_times())
    pd.testing.assert_frame_equal(inside.cv_results_, given.cv_results_)
    assert (inside.cv_results_["log_likelihood"] != without.cv_results_["log_likelihood"]).all()


def test_a_best_penalty_at_the_end_of_the_grid_is_told(data):
    with pytest.warns(ConvergenceWarning, match="smallest penalty, 0.05.* smaller"):
        SetChainCV([0.1, 0.05], folds=2, random_state=2).fit(data)


def test_it_is_an_estimator(data):
    learner = SetChainCV([0.1], folds=4, rule="best", n_starts=2)
    copy = clone(learner)
    assert copy.get_params() == learner.get_params()
    assert copy.set_params(folds=7).folds == 7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"folds": 1}, "folds is 1"),
        ({"folds": 0}, "folds is 0"),
        ({"folds": 2.0}, "folds is 2.0"),
        ({"folds": 151}, "folds is 151; expected at most the number of samples, 150"),
        ({"rule": "median"}, "rule is 'median'; expected 'one-se' or 'best'"),
        ({"penalties": []}, "penalties is empty"),
        ({"penalties": [-0.1]}, "penalty is -0.1"),
        ({"n_penalties": 1}, "n_penalties is 1"),
        ({"ratio": 0.0}, "ratio is 0.0"),
        ({"ratio": 2.0}, "ratio is 2.0"),
        ({"ratio": -0.1}, "ratio is -0.1"),
        ({"ratio": float("nan")}, "ratio is nan"),
        ({"tol": 0.0}, "tol is 0.0"),
        ({"n_starts": 0}, "n_starts is 0"),
        ({"solver": "magic"}, "solver is 'magic'"),
        ({"chains": 1}, "chains is 1"),
    ],
)
def test_cross_validation_that_makes_no_sense_is_refused_at_once(data, options, words, monkeypatch):
    from sequela.learning import cross_validation as module

    def too_late(*_, **__):
        raise AssertionError("work was done before the options were looked at")

    for work in ("penalty_max", "path", "Likelihood"):
        monkeypatch.setattr(module, work, too_late)
    with pytest.raises(InputError) as told:
        SetChainCV(**options).fit(data)
    assert words in str(told.value)


# --- The plot -------------------------------------------------------------------------------------


@pytest.fixture
def plt():
    mpl = pytest.importorskip("matplotlib")
    mpl.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_the_plot_shows_the_table(chosen, plt):
    ax = plot_cross_validation(chosen.cv_results_)
    assert isinstance(ax, plt.Axes)
    assert ax.get_xscale() == "log"
    assert "penalty" in ax.get_xlabel()
    drawn = ax.containers[0].lines[0].get_xydata()
    table = chosen.cv_results_
    np.testing.assert_allclose(drawn, table[["penalty", "log_likelihood"]])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert any(f"chosen: {chosen.penalty_:.3g}" in label for label in labels)
    ax.figure.canvas.draw()


def test_the_plot_draws_where_it_is_told(chosen, plt):
    _, mine = plt.subplots()
    assert plot_cross_validation(chosen.cv_results_, ax=mine) is mine
    assert len(plt.get_fignums()) == 1


def test_without_matplotlib_it_says_what_to_install(chosen, monkeypatch):
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SequelaError, match=r'pip install "sequela\[plot\]"'):
        plot_cross_validation(chosen.cv_results_)
