"""Fits to real data whose optima are known. Without the data, these tests are skipped."""

import numpy as np
import pandas as pd
import pytest

import reference as ref
from learning.problems import kkt_residual, l1, real_data
from sequela import SetChain, evaluate
from sequela.learning import SeveralOptimaWarning

PENALTY = 0.01


@pytest.fixture(scope="module")
def schill():
    return pd.read_csv(real_data() / "gbm" / "schill20.csv")


def check(learner, X, floor):
    """Check by a separate evaluation that a fit is optimal and its objective at least `floor`."""
    found = evaluate(learner.theta_, X, method="exact", n_threads=1)
    assert learner.converged_
    assert learner.objective_ == pytest.approx(found.value - l1(learner.theta_, PENALTY), abs=1e-9)
    assert learner.objective_ >= floor
    assert kkt_residual(learner.theta_, found.gradient, PENALTY) <= 1.001e-4


def test_the_older_glioblastoma_table(schill):
    learner = SetChain(PENALTY).fit(schill)
    assert schill.shape == (261, 20)
    check(learner, schill, -7.96165)
    assert learner.objective_ == pytest.approx(-7.96164, abs=2e-5)


def test_twenty_starts_find_several_optima(schill):
    with pytest.warns(SeveralOptimaWarning, match="20 starts ended at"):
        learner = SetChain(PENALTY, n_starts=20, random_state=2).fit(schill)
    assert len(learner.starts_) == 20
    assert all(start.converged for start in learner.starts_)
    assert {start.width for start in learner.starts_} == {0.0, 0.2, 2.0}
    ends = np.array([start.objective for start in learner.starts_])
    for known in (-7.96164, -7.97394):
        assert np.abs(ends - known).min() < 2e-5
        assert np.abs(learner.optima_["objective"] - known).min() < 2e-5
    check(learner, schill, -7.96165)
    # The starts end at two known objectives. Check that the theta with the lower objective is also
    # an optimum, and that the two thetas differ.
    one, other = (
        learner.starts_[int(np.abs(ends - known).argmin())] for known in (-7.96164, -7.97394)
    )
    gradient = evaluate(other.theta, schill).gradient
    assert kkt_residual(other.theta, gradient, PENALTY) <= 1.001e-4
    assert np.abs(one.theta - other.theta).max() > 0.25


@pytest.mark.parametrize(
    ("name", "items", "low", "high"),
    [("synth2", 2, 0.012, 0.018), ("synth5", 5, 0.038, 0.048)],
)
def test_with_true_times_the_true_order_is_learned(name, items, low, high):
    """In the paper, KL(learned || true) is 0.015 for two items and 0.044 for five items."""
    folder = real_data() / "synthetic"
    X = pd.read_csv(folder / f"{name}.csv")
    true = pd.read_csv(folder / f"{name}_theta.csv", index_col=0).iloc[:items, :items]
    names = [f"item{i + 1}" for i in range(items)]
    assert list(true.columns) == names
    learner = SetChain(PENALTY).fit(X[names], times=X["time"])
    learned = ref.sequence_distribution(learner.theta_)
    expected = ref.sequence_distribution(true.to_numpy())
    assert sum(learned.values()) == pytest.approx(1.0)
    divergence = sum(p * np.log(p / expected[sigma]) for sigma, p in learned.items())
    assert low < divergence < high
    without = SetChain(PENALTY).fit(X[names])
    blind = ref.sequence_distribution(without.theta_)
    assert sum(p * np.log(p / expected[sigma]) for sigma, p in blind.items()) > 0.1
