"""The main properties of a fit: it is optimal, reproducible and resumable, and warns clearly."""

import json
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pandas as pd
import pytest
from benchmarks.datasets import data_folder, glioblastoma
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import reference as ref
from learning.problems import Closed
from sequela import (
    Budget,
    InputError,
    SetChain,
    SetChainCV,
    evaluate,
    example_theta,
    fit,
    path,
    simulate,
)
from sequela.learning import SeparationWarning, SeveralOptimaWarning, penalty_max
from sequela.learning.largest_penalty import independent_gradient
from sequela.learning.penalties import OffDiagonalL1

FOLDER = data_folder()
real_data = pytest.mark.skipif(
    FOLDER is None, reason="no real data in ../shared/data or in the folder SEQUELA_DATA"
)


@pytest.fixture(scope="module")
def sets():
    return simulate(example_theta(), 300, random_state=4).to_dataset().without_times()


def kkt_residual(theta, X, penalty, times=None):
    """Return the KKT residual, computed by its definition from an exact gradient."""
    gradient = evaluate(theta, X, times=times, method="exact").gradient
    worst = 0.0
    for i, j in np.ndindex(theta.shape):
        g = gradient[i, j]
        if i == j:
            worst = max(worst, abs(g))
        elif theta[i, j] == 0.0:
            worst = max(worst, abs(g) - penalty)
        else:
            worst = max(worst, abs(g - penalty * np.sign(theta[i, j])))
    return worst


def quietly(work):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**31), st.integers(2, 5), st.sampled_from([0.003, 0.02, 0.1]))
def test_the_end_is_an_optimum(seed, n, penalty):
    rng = np.random.default_rng(seed)
    X = (rng.random((40, n)) < rng.uniform(0.2, 0.8, n)).astype(int)
    learner = quietly(lambda: SetChain(penalty=penalty, tol=1e-5).fit(X))
    assert learner.converged_
    assert kkt_residual(learner.theta_, X, penalty) <= 1.01e-5
    value = evaluate(learner.theta_, X, gradient=False).value
    off = np.abs(learner.theta_).sum() - np.abs(np.diag(learner.theta_)).sum()
    assert learner.objective_ == pytest.approx(value - penalty * off, abs=1e-12)


def test_the_reference_gradient_agrees_that_it_is_an_optimum():
    """The reference gradient is a mean over all orders of every set, without the kernels."""
    X = (np.random.default_rng(1).random((25, 3)) < 0.5).astype(int)
    learner = SetChain(penalty=0.02, tol=1e-6).fit(X)
    gradient = np.mean(
        [ref.gradient_set_permutations(learner.theta_, np.nonzero(row)[0]) for row in X], axis=0
    )
    distance = OffDiagonalL1(0.02).subdiff_distance(learner.theta_, gradient)
    assert distance.max() <= 1.1e-6


def test_known_times_are_used_and_unknown_ones_may_be_mixed_in():
    drawn = simulate(example_theta(), 150, random_state=2)
    X = drawn.to_dataset()
    times = X.times.copy()
    times[::3] = np.nan
    learner = SetChain(penalty=0.03, tol=1e-4).fit(X.without_times(), times=times)
    assert kkt_residual(learner.theta_, X.without_times(), 0.03, times) <= 1.01e-4
    other = SetChain(penalty=0.03, tol=1e-4).fit(X.without_times())
    assert np.abs(learner.theta_ - other.theta_).max() > 0.1


def test_every_kind_of_table_gives_the_same(sets):
    reference = SetChain(penalty=0.03).fit(sets)
    for X in (sets.to_frame(), sets.values, sets.values.astype(int)):
        assert np.array_equal(SetChain(penalty=0.03).fit(X).theta_, reference.theta_)
    assert list(reference.feature_names_in_) == list(example_theta().columns)
    assert fit(sets, penalty=0.03) == reference.model_
    json.dumps(reference.model_.metadata)


def test_it_is_a_scikit_learn_estimator(sets):
    search = GridSearchCV(SetChain(tol=1e-3), {"penalty": [0.1, 0.02]}, cv=2)
    search.fit(sets.to_frame())
    assert search.best_params_ == {"penalty": 0.02}
    copy = clone(SetChain(penalty=0.3, n_starts=4))
    assert copy.get_params()["n_starts"] == 4
    assert copy.set_params(penalty=0.2).penalty == 0.2
    scores = search.best_estimator_.score_samples(sets)
    assert scores.mean() == pytest.approx(search.best_estimator_.score(sets))


def test_penalty_max_is_where_interactions_begin(sets):
    largest = penalty_max(sets)
    assert np.count_nonzero(fit(sets, penalty=1.001 * largest).theta) == sets.n_items
    assert np.count_nonzero(fit(sets, penalty=0.98 * largest).theta) > sets.n_items


def test_the_gradient_without_interactions_in_closed_form():
    rates = np.exp(np.random.default_rng(3).normal(-1.0, 1.0, 12))
    items = np.array([0, 2, 3, 5, 8, 9, 11])
    X = np.isin(np.arange(12), items)[None, :]
    exact = evaluate(np.diag(np.log(rates)), X).gradient
    np.testing.assert_allclose(independent_gradient(items, rates), exact, atol=1e-12)


@pytest.mark.parametrize(
    ("budget", "n_starts"), [(None, 3), (Budget(work=2e4), 2)], ids=["exact", "sampled"]
)
def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads(sets, budget, n_starts):
    ends = [
        quietly(
            lambda n_threads=n_threads: SetChain(
                penalty=0.02, budget=budget, n_starts=n_starts, random_state=3, tol=1e-3,
                n_threads=n_threads,
            ).fit(sets)
        )
        for n_threads in (1, 2, 4)
    ]  # fmt: skip
    for other in ends[1:]:
        assert np.array_equal(ends[0].theta_, other.theta_)
        assert ends[0].objective_ == other.objective_


def test_sampled_sets_end_within_their_own_error(sets):
    learner = SetChain(penalty=0.02, budget=Budget(work=2e4), random_state=1, tol=1e-3).fit(sets)
    exact = SetChain(penalty=0.02, tol=1e-5).fit(sets)
    assert learner.converged_
    assert learner.kkt_floor_ > 0.0
    assert kkt_residual(learner.theta_, sets, 0.02) <= max(1e-3, 2.0 * learner.kkt_floor_)
    at_its_theta = evaluate(learner.theta_, sets, gradient=False).value
    at_its_theta -= OffDiagonalL1(0.02).value(learner.theta_)
    # A normal error exceeds 5 standard errors about once in two million fits.
    assert abs(learner.objective_ - at_its_theta) < 5.0 * learner.objective_se_
    assert exact.objective_ - at_its_theta < 5e-3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X.assign(A=1), "'A' is always present"),
        (lambda X: X.assign(A=0), "'A' is never present"),
        (lambda X: X.assign(B=X["A"]), "'A', 'B' are present only together"),
        (lambda X: X.iloc[:1], "present"),
    ],
    ids=["always", "never", "together", "one sample"],
)
def test_what_the_data_cannot_place_is_named_and_finite(change, words):
    X = pd.DataFrame(
        (np.random.default_rng(5).random((60, 3)) < 0.4).astype(int), columns=["A", "B", "C"]
    )
    with pytest.warns(SeparationWarning, match=words):
        learner = SetChain(penalty=0.02).fit(change(X))
    assert np.isfinite(learner.theta_).all()
    assert np.isfinite(learner.objective_)


def test_a_fit_that_did_not_converge_says_so(sets):
    with pytest.warns(ConvergenceWarning, match="increase max_iter"):
        learner = SetChain(max_iter=1).fit(sets)
    assert not learner.converged_


def test_several_optima_are_kept_and_told(sets):
    with pytest.warns(SeveralOptimaWarning, match="different optima"):
        learner = SetChain(penalty=0.005, n_starts=8, random_state=1).fit(sets)
    assert len(learner.starts_) == 8
    assert learner.optima_["starts"].sum() == 8
    assert learner.objective_ == max(start.objective for start in learner.starts_)
    assert learner.optima_["objective"].is_monotonic_decreasing
    assert (learner.differences(max_entries=3)["range"] > 0.25).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"solver": "magic"}, "solver is 'magic'"),
        ({"penalty": -1.0}, "penalty is -1.0"),
        ({"tol": 0.0}, "tol is 0.0"),
        ({"n_starts": 0}, "n_starts is 0"),
        ({"max_iter": 2.5}, "max_iter is 2.5"),
        ({"start_widths": ()}, "start_widths"),
        ({"chains": 1}, "chains is 1"),
        ({"budget": "1GB"}, "budget is '1GB'"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_options_are_refused(sets, options, words):
    with pytest.raises(InputError, match=words):
        SetChain(**options).fit(sets)


class Killed(Exception):  # noqa: N818
    """An exception that simulates a process that is killed."""


@pytest.mark.parametrize(
    "options",
    [
        {"n_starts": 3},
        {"budget": Budget(work=2e4), "tol": 1e-3},
        {"solver": "adagrad", "max_iter": 12},
    ],
    ids=["exact", "sampled", "adagrad"],
)
def test_a_resumed_fit_ends_with_the_same_bits(sets, tmp_path, monkeypatch, options):
    from sequela.learning import checkpoint

    file = tmp_path / "fit.npz"
    learner = SetChain(penalty=0.02, random_state=5, checkpoint_every=0.0, **options)
    whole = quietly(lambda: clone(learner).fit(sets))
    original = checkpoint._write
    written = 0
    resumed = None
    for death in (3, 5, 7, 9, 10**9):

        def write(*arguments, death=death):
            nonlocal written
            original(*arguments)
            written += 1
            if written >= death:
                raise Killed

        monkeypatch.setattr(checkpoint, "_write", write)
        written = 0
        try:
            resumed = quietly(lambda: clone(learner).set_params(checkpoint=file).fit(sets))
        except Killed:
            continue
        break
    assert np.array_equal(resumed.theta_, whole.theta_)
    assert resumed.objective_ == whole.objective_
    assert resumed.n_evaluations_ == whole.n_evaluations_
    again = quietly(lambda: clone(learner).set_params(checkpoint=file).fit(sets))
    assert np.array_equal(again.theta_, whole.theta_)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cannot be read"),
        (b"PK\x03\x04 half of it", "cannot be read"),
        (b'{"format": 1}', "cannot be read"),
    ],
)
def test_a_damaged_checkpoint_is_refused_and_kept(sets, tmp_path, content, words):
    file = tmp_path / "fit.npz"
    file.write_bytes(content)
    with pytest.raises(InputError, match=words):
        SetChain(checkpoint=file).fit(sets)
    assert file.read_bytes() == content


def test_a_checkpoint_of_another_fit_is_refused(sets, tmp_path):
    file = tmp_path / "fit.npz"
    SetChain(penalty=0.05, random_state=1, checkpoint=file).fit(sets)
    with pytest.raises(InputError, match="belongs to another fit: its options"):
        SetChain(penalty=0.06, random_state=1, checkpoint=file).fit(sets)
    with pytest.raises(InputError, match="belongs to another fit: its data"):
        SetChain(penalty=0.05, random_state=1, checkpoint=file).fit(sets.values[:50])
    np.savez(file.with_name("other.npz"), a=np.zeros(2))
    with pytest.raises(InputError, match="cannot be read"):
        SetChain(checkpoint=file.with_name("other.npz")).fit(sets)


def test_ctrl_c_returns_the_best_so_far():
    code = """
        import os, signal, warnings
        import numpy as np
        from sequela import SetChain, example_theta, simulate
        from sequela.likelihood.objective import Objective

        sets = simulate(example_theta(), 300, random_state=4).to_dataset().without_times()
        before = signal.getsignal(signal.SIGINT)
        original = Objective.evaluate
        calls = 0
        def evaluate(self, theta):
            global calls
            calls += 1
            if calls == 6:
                os.kill(os.getpid(), signal.SIGINT)
            return original(self, theta)
        Objective.evaluate = evaluate
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            learner = SetChain(penalty=0.005, n_starts=5).fit(sets)
        assert signal.getsignal(signal.SIGINT) is before
        print(len(learner.starts_), learner.converged_, np.isfinite(learner.theta_).all())
        print([str(w.message) for w in caught if "interrupted" in str(w.message)])
    """
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("1 False True")
    assert "stopped by SIGINT" in done.stdout


def test_a_path_begins_with_nothing_and_grows(sets):
    found = path(sets, n_penalties=5, ratio=0.1)
    assert found.table["interactions"].iloc[0] == 0
    assert found.table["penalty"].is_monotonic_decreasing
    assert found.table["log_likelihood"].is_monotonic_increasing
    assert found.table["converged"].all()
    for strength, theta in zip(found.table["penalty"], found.thetas, strict=True):
        assert kkt_residual(theta, sets, strength) <= 1.01e-3
    with pytest.raises(InputError, match="penalties is empty"):
        path(sets, [])


def test_cross_validation_chooses_by_the_rule(sets):
    import matplotlib as mpl

    mpl.use("agg")
    from sequela.plots import plot_cross_validation

    options = {"penalties": [0.1, 0.03, 0.01, 0.003, 0.001], "folds": 3, "random_state": 2}
    best = quietly(lambda: SetChainCV(rule="best", **options).fit(sets))
    sparse = quietly(lambda: SetChainCV(**options).fit(sets))
    table = sparse.cv_results_
    assert best.penalty_ == table.loc[table["log_likelihood"].idxmax(), "penalty"]
    assert sparse.penalty_ >= best.penalty_
    floor = (table["log_likelihood"] - table["standard_error"]).loc[
        table["log_likelihood"].idxmax()
    ]
    good = table["log_likelihood"] >= floor
    assert sparse.penalty_ == table.loc[good, "penalty"].max()
    assert np.array_equal(
        sparse.theta_, SetChain(penalty=sparse.penalty_, random_state=2).fit(sets).theta_
    )
    ax = plot_cross_validation(table)
    assert "chosen" in ax.get_legend().get_texts()[-1].get_text() or ax.get_legend() is not None
    with pytest.raises(InputError, match="at most the number of samples, 300"):
        SetChainCV(folds=301).fit(sets)


def test_the_papers_solver_takes_the_papers_steps():
    """Compute three steps by hand: theta + g / sqrt(sum of all g^2), and then the proximal step."""
    from sequela.learning.solvers.adagrad import AdaGrad

    rng = np.random.default_rng(0)
    gradients = [rng.normal(size=(2, 2)) for _ in range(3)]
    supply = iter([*gradients, np.zeros((2, 2))])  # the solver does not use the last gradient
    objective = Closed(lambda _: (np.nan, -next(supply)))
    solver = AdaGrad(OffDiagonalL1(0.1))
    state = solver.init(objective, np.zeros((2, 2)))
    for _ in range(3):
        state, _ = solver.step(objective, state)
    theta = np.zeros((2, 2))
    squares = np.zeros((2, 2))
    for g in gradients:
        squares += g**2
        step = 1.0 / np.sqrt(squares)
        theta = theta + step * g
        for i, j in ((0, 1), (1, 0)):
            shrunk = max(abs(theta[i, j]) - 0.1 * step[i, j], 0.0)
            theta[i, j] = np.sign(theta[i, j]) * shrunk
    np.testing.assert_allclose(state.theta, theta, atol=1e-9)


def test_the_papers_solver_improves_on_independence(sets):
    learner = quietly(
        lambda: SetChain(penalty=0.02, solver="adagrad", max_iter=150, random_state=1).fit(sets)
    )
    start = SetChain(penalty=10.0).fit(sets).objective_
    assert learner.objective_ > start + 0.05
    assert learner.objective_ < SetChain(penalty=0.02).fit(sets).objective_ + 1e-3


@real_data
def test_the_20_item_table():
    X = pd.read_csv(FOLDER / "gbm" / "schill20.csv")
    assert SetChain().fit(X).objective_ >= -7.96165
    with pytest.warns(SeveralOptimaWarning):
        learner = SetChain(n_starts=20, random_state=0).fit(X)
    objectives = learner.optima_["objective"].to_numpy()
    assert len(objectives) >= 2
    assert objectives[0] == pytest.approx(-7.96164, abs=2e-5)
    assert np.abs(objectives + 7.97394).min() < 2e-5


@real_data
@pytest.mark.parametrize(
    ("n", "largest", "least"),
    [(20, 99, -7.86501), (50, 20, -12.46906), (100, 20, -17.97224)],
)
def test_the_glioblastoma_data(n, largest, least):
    X = glioblastoma(FOLDER).iloc[:, :n]
    X = X[X.sum(axis=1) <= largest]
    learner = SetChain(tol=5e-5).fit(X)
    assert len(X) == {20: 378, 50: 376, 100: 375}[n]
    assert learner.objective_ >= least
    assert kkt_residual(learner.theta_, X, 0.01) <= 5.1e-5


@real_data
@pytest.mark.parametrize(
    ("name", "n", "low", "high"), [("synth2", 2, 0.014, 0.017), ("synth5", 5, 0.040, 0.046)]
)
def test_true_times_recover_the_order(name, n, low, high):
    """The divergence is near the dashed lines of figure 2 of the paper: 0.015 and 0.044."""
    table = pd.read_csv(FOLDER / "synthetic" / f"{name}.csv")
    true = pd.read_csv(FOLDER / "synthetic" / f"{name}_theta.csv", index_col=0).iloc[:n, :n]
    X = table[[f"item{i + 1}" for i in range(n)]]
    learner = SetChain().fit(X, times=table["time"])
    learned = ref.sequence_distribution(learner.theta_)
    expected = ref.sequence_distribution(true.to_numpy())
    divergence = sum(p * np.log(p / expected[s]) for s, p in learned.items())
    assert low < divergence < high
