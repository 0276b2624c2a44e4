"""The estimator as users see it: its input, its results, and the rules of scikit-learn."""

import inspect
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_array, estimator_checks

import sequela
from learning.problems import l1, mean_log_p, quiet, simulated, table
from sequela import Dataset, InputError, Model, SetChain, SetChainCV, fit
from sequela.learning import SeparationWarning, SeveralOptimaWarning
from sequela.learning.fit_values import Start
from sequela.learning.optima import differing_entries, distinct_optima, group_starts
from sequela.learning.solvers.contract import Status
from sequela.observation import Exponential

ITEMS = ["TP53", "IDH1", "EGFR(A)", "PTEN", "NF1"]


@pytest.fixture(scope="module")
def data():
    drawn = simulated(5, 120, 11, scale=1.0)
    return Dataset(
        drawn.values, items=ITEMS, samples=[f"s{i}" for i in range(120)], times=drawn.times
    )


@pytest.fixture(scope="module")
def learner(data):
    return SetChain(0.02, random_state=1).fit(data.without_times())


# --- What goes in ---------------------------------------------------------------------------------


def test_every_kind_of_data_gives_the_same_theta(data, learner):
    frame = data.to_frame()
    values = data.values
    for X in (
        frame,
        frame.astype(int),
        frame.astype(float),
        values,
        values.astype(int),
        values.astype(int).tolist(),
        np.asfortranarray(values),
        scipy.sparse.csr_matrix(values.astype(int)),
    ):
        again = SetChain(0.02, random_state=1).fit(X)
        assert np.array_equal(again.theta_, learner.theta_)
        assert again.objective_ == learner.objective_
    sets = SetChain(0.02, random_state=1).fit(data.sets())
    place = [sets.model_.items.index(item) for item in ITEMS]
    np.testing.assert_allclose(sets.theta_[np.ix_(place, place)], learner.theta_, atol=5e-3)
    assert sets.objective_ == pytest.approx(learner.objective_, abs=1e-6)


def test_labels_are_kept(data, learner):
    assert learner.model_.items == tuple(ITEMS)
    assert list(learner.feature_names_in_) == ITEMS
    assert learner.n_features_in_ == 5
    assert list(learner.model_.to_frame().columns) == ITEMS
    assert SetChain(0.1).fit(data.values).model_.items == ("0", "1", "2", "3", "4")


def test_an_order_of_items_does_not_matter(data, learner):
    turned = SetChain(0.02, tol=1e-7).fit(data.without_times().select_items(ITEMS[::-1]))
    straight = SetChain(0.02, tol=1e-7).fit(data.without_times())
    np.testing.assert_allclose(turned.theta_[::-1, ::-1], straight.theta_, atol=1e-4)


def test_times_come_from_the_argument_or_the_data_set(data, learner):
    given = SetChain(0.02).fit(data.to_frame(), times=data.times)
    inside = SetChain(0.02).fit(data)
    assert np.array_equal(given.theta_, inside.theta_)
    assert np.abs(given.theta_ - learner.theta_).max() > 0.01
    nothing = SetChain(0.02).fit(data.to_frame(), times=np.full(120, np.nan))
    assert np.array_equal(nothing.theta_, learner.theta_)
    replaced = SetChain(0.02).fit(data, times=np.full(120, np.nan))
    assert np.array_equal(replaced.theta_, learner.theta_)
    assert given.score(data) == pytest.approx(given.score(data.to_frame(), times=data.times))
    assert given.score(data) != pytest.approx(given.score(data.to_frame()))


def test_the_unit_of_time_is_that_of_the_observation(data):
    """If times are in hours instead of days, all base rates are 24 times smaller."""
    days = SetChain(0.02, tol=1e-6).fit(data)
    hours = SetChain(0.02, tol=1e-6).fit(data.to_frame(), times=data.times * 24.0)
    expected = days.theta_ - np.diag(np.full(5, np.log(24.0)))
    np.testing.assert_allclose(hours.theta_, expected, atol=1e-3)
    slow = SetChain(0.02, tol=1e-6, observation=Exponential(1 / 24)).fit(data.without_times())
    fast = SetChain(0.02, tol=1e-6).fit(data.without_times())
    expected = fast.theta_ - np.diag(np.full(5, np.log(24.0)))
    np.testing.assert_allclose(slow.theta_, expected, atol=1e-3)


def test_bad_data_are_refused():
    with pytest.raises(InputError):
        SetChain().fit([[0.5, 1.0]])
    with pytest.raises(InputError):
        SetChain().fit(np.zeros((0, 3)))
    with pytest.raises(InputError, match="time 0"):
        SetChain().fit([[1, 0]], times=[0.0])
    with pytest.raises(InputError):
        SetChain().fit([[1, 0]], times=[1.0, 2.0])


# --- What comes out -------------------------------------------------------------------------------


def test_what_is_learned_is_what_is_reported(data, learner):
    value = mean_log_p(learner.theta_, data.values)
    assert learner.objective_ == pytest.approx(value - l1(learner.theta_, 0.02), abs=1e-10)
    assert learner.objective_se_ == 0.0
    assert learner.kkt_floor_ == 0.0
    assert learner.score(data.without_times()) == pytest.approx(value, abs=1e-10)
    samples = learner.score_samples(data.without_times())
    assert list(samples.index) == list(data.samples)
    assert samples.mean() == pytest.approx(value, abs=1e-10)
    assert samples["s3"] == pytest.approx(mean_log_p(learner.theta_, data.values[[3]]), abs=1e-10)
    assert np.array_equal(learner.model_.theta, learner.theta_)
    assert learner.converged_
    assert "KKT residual" in learner.message_
    assert len(learner.starts_) == 1
    assert learner.starts_[0].objective == learner.objective_
    assert list(learner.history_.columns) == [
        "evaluations", "objective", "kkt_residual", "interactions", "seconds",
    ]  # fmt: skip


def test_metadata_are_plain_json(data, learner):
    metadata = json.loads(json.dumps(learner.model_.metadata, allow_nan=False))
    assert metadata == learner.model_.metadata
    assert metadata["penalty"] == 0.02
    assert metadata["seed"] == learner.seed_ == 1
    assert metadata["samples"] == 120
    again = SetChain(np.float32(0.25), random_state=np.random.default_rng(1)).fit(data)
    json.dumps(again.model_.metadata, allow_nan=False)


def test_score_follows_labels_not_positions(data, learner):
    shuffled = data.without_times().to_frame()[ITEMS[::-1]]
    expected = learner.score(data.without_times())
    assert learner.score(shuffled) == pytest.approx(expected, abs=1e-12)
    assert learner.score(Dataset(shuffled)) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(InputError, match=r"1 of the 5 items of the model are missing, .* 'NF1'"):
        learner.score(shuffled.rename(columns={"NF1": "XX"}))


def test_score_of_lists_of_sets_follows_labels():
    """In a list of sets, items are numbered in the order in which they first appear.

    Two lists may number the same items differently, so `score` must match items by their labels.
    """
    learned = SetChain(0.001).fit([{"a", "b"}, {"b"}, {"a"}, {"a", "b"}, set(), {"a"}, {"a"}])
    one = learned.score([{"a"}, {"a", "b"}, {"a"}])
    other = learned.score([{"a", "b"}, {"a"}, {"a"}])
    turned = learned.score([{"b"}, {"a", "b"}])
    straight = learned.score([{"a", "b"}, {"b"}])
    assert one == pytest.approx(other, abs=1e-12)
    assert turned == pytest.approx(straight, abs=1e-12)


def test_score_of_a_series_of_sets_follows_labels():
    learned = SetChain(0.001).fit([{"a", "b"}, {"b"}, {"a"}, {"a", "b"}, set(), {"a"}, {"a"}])
    straight = learned.score([{"a", "b"}, {"b"}])
    assert learned.score(pd.Series([{"b"}, {"a", "b"}])) == pytest.approx(straight, abs=1e-12)
    assert learned.score(({"b"}, {"a", "b"})) == pytest.approx(straight, abs=1e-12)
    assert learned.score([frozenset("b"), {"a", "b"}]) == pytest.approx(straight, abs=1e-12)


def test_score_of_sets_without_all_items():
    learned = SetChain(0.001).fit([{"a", "b"}, {"b"}, {"a"}, set(), {"a"}])
    expected = learned.score(Dataset.from_sets([{"b"}, {"b"}], items=["a", "b"]))
    assert learned.score([{"b"}, {"b"}]) == pytest.approx(expected, abs=1e-12)


def test_sample_draws_from_the_learned_model(learner):
    drawn = learner.sample(4000, random_state=3)
    assert drawn.items == tuple(ITEMS)
    assert drawn.times is not None
    assert np.array_equal(drawn.values, learner.sample(4000, random_state=3).values)
    expected = np.zeros(5)
    for mask, p in enumerate(sequela_distribution(learner.theta_)):
        expected += p * ((mask >> np.arange(5)) & 1)
    # About one of 30,000 correct runs has a share that is off by more than 4.5 standard errors.
    error = np.sqrt(expected * (1 - expected) / 4000)
    assert (np.abs(drawn.values.mean(axis=0) - expected) < 4.5 * error).all()


def sequela_distribution(theta):
    import reference as ref

    return ref.set_distribution(theta)


def test_the_short_form_is_the_same(data, learner):
    model = fit(data.without_times(), penalty=0.02, random_state=1)
    assert isinstance(model, Model)
    assert model == learner.model_
    timed = fit(data.to_frame(), times=data.times, penalty=0.02)
    assert timed == SetChain(0.02).fit(data).model_
    with pytest.raises(TypeError):
        fit(data, penalti=0.02)


# --- scikit-learn ---------------------------------------------------------------------------------


def test_parameters_are_stored_as_given():
    given = {
        "penalty": np.float32(0.1), "solver": "newton", "n_starts": 2, "start_widths": [1],
        "random_state": np.random.default_rng(1), "budget": sequela.Budget(work=1e5),
    }  # fmt: skip
    learner = SetChain(**given)
    for name, value in given.items():
        assert getattr(learner, name) is value
    copy = clone(learner)
    assert copy is not learner
    assert copy.get_params().keys() == learner.get_params().keys()
    assert copy.budget == learner.budget
    assert set(learner.get_params()) == set(inspect.signature(SetChain.__init__).parameters) - {
        "self"
    }
    assert learner.set_params(penalty=0.3, n_starts=5).n_starts == 5
    with pytest.raises(ValueError, match="Invalid parameter"):
        learner.set_params(lambda_=1)
    assert "penalty" in repr(learner)


def test_fit_leaves_the_parameters_alone(data):
    for estimator in (SetChain(0.05), SetChainCV([0.1, 0.03], folds=2)):
        before = dict(vars(estimator))
        with quiet():
            assert estimator.fit(data) is estimator
        changed = [name for name in before if vars(estimator)[name] is not before[name]]
        assert changed == []
        new = set(vars(estimator)) - set(before)
        assert all(name.endswith("_") for name in new)


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_mixin_order,
        estimator_checks.check_valid_tag_types,
    ],
)
@pytest.mark.parametrize("kind", [SetChain, SetChainCV])
def test_scikit_learns_own_checks(check, kind):
    """Run those checks of scikit-learn that need no data.

    The remaining checks use tables of any numbers. See `test_scikit_learns_checks_on_data`.
    """
    argument = kind if check is estimator_checks.check_parameters_default_constructible else kind()
    check(kind.__name__, kind() if argument is kind else argument)


class OnNumbers(SetChain):
    """A `SetChain` for tables of any numbers: an item is present if its number is above 1."""

    def fit(self, X, y=None):  # noqa: ARG002
        return super().fit(self._sets(X))

    def score(self, X, y=None):  # noqa: ARG002
        return super().score(self._sets(X))

    def score_samples(self, X):
        return super().score_samples(self._sets(X)).to_numpy()

    @staticmethod
    def _sets(X):
        X = check_array(X)
        return X > 1.0


# Checks in check_estimator that do not apply to this estimator, and the reasons.
EXPECTED_FAILURES = {
    "check_n_features_in_after_fitting": "expects scikit-learn's message about wrong widths",
}


def test_scikit_learns_checks_on_data():
    """Run all checks of scikit-learn on `OnNumbers`, which makes sets from tables of numbers."""
    with quiet():
        results = estimator_checks.check_estimator(
            OnNumbers(0.05, tol=1e-2, random_state=0), on_skip=None, on_fail=None
        )
    unexpected = {
        found["check_name"]: repr(found["exception"])[:300]
        for found in results
        if found["status"] == "failed" and found["check_name"] not in EXPECTED_FAILURES
    }
    assert unexpected == {}
    assert sum(found["status"] == "passed" for found in results) >= 35


def test_nothing_works_before_fit(data):
    for act in (
        lambda c: c.score(data),
        lambda c: c.score_samples(data),
        lambda c: c.sample(),
        lambda c: c.differences(),
    ):
        with pytest.raises(NotFittedError):
            act(SetChain())


def test_fitting_again_forgets(data, learner):
    twice = (
        SetChain(0.02, random_state=1).fit(data.select_items(ITEMS[:2])).fit(data.without_times())
    )
    assert np.array_equal(twice.theta_, learner.theta_)
    assert twice.n_features_in_ == 5


def test_a_fitted_estimator_can_be_pickled(data, learner):
    again = pickle.loads(pickle.dumps(learner))  # noqa: S301 - our own, for joblib's workers
    assert np.array_equal(again.theta_, learner.theta_)
    assert again.score(data) == learner.score(data)


def test_grid_search_over_the_penalty(data):
    frame = data.to_frame()
    search = GridSearchCV(
        SetChain(tol=1e-3), {"penalty": [1.0, 0.02, 0.005]}, cv=KFold(3), error_score="raise"
    )
    with quiet():
        search.fit(frame)
    scores = search.cv_results_["mean_test_score"]
    by_hand = np.zeros(3)
    for at, penalty in enumerate([1.0, 0.02, 0.005]):
        for train, test in KFold(3).split(frame):
            with quiet():
                learned = SetChain(penalty, tol=1e-3).fit(frame.iloc[train])
            by_hand[at] += mean_log_p(learned.theta_, data.values[test]) / 3
    np.testing.assert_allclose(scores, by_hand, atol=1e-8)
    assert search.best_params_["penalty"] == [1.0, 0.02, 0.005][int(np.argmax(by_hand))]
    assert list(search.best_estimator_.feature_names_in_) == ITEMS


def test_cross_validation_passes_times_on(data):
    frame = data.to_frame()
    with quiet():
        scores = cross_val_score(
            SetChain(0.02, tol=1e-3), frame, cv=KFold(2), params={"times": data.times},
            error_score="raise",
        )  # fmt: skip
        first = SetChain(0.02, tol=1e-3).fit(frame.iloc[60:], times=data.times[60:])
    assert scores[0] == pytest.approx(mean_log_p(first.theta_, data.values[:60]), abs=1e-8)


def test_it_works_at_the_end_of_a_pipeline(data, learner):
    pipeline = make_pipeline(
        FunctionTransformer(lambda X: X.drop(columns="noise") > 0.5), SetChain(0.02)
    )
    frame = data.to_frame().astype(float).assign(noise=0.3)
    pipeline.fit(frame)
    assert isinstance(pipeline, Pipeline)
    assert np.array_equal(pipeline[-1].theta_, learner.theta_)
    assert pipeline.score(frame) == pytest.approx(learner.score(data.without_times()))
    search = GridSearchCV(pipeline, {"setchain__penalty": [0.5, 0.02]}, cv=2, error_score="raise")
    with quiet():
        search.fit(frame)
        alone = GridSearchCV(SetChain(), {"penalty": [0.5, 0.02]}, cv=2).fit(data.to_frame())
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"], rtol=1e-12
    )


# --- Several starts -------------------------------------------------------------------------------


def test_several_optima_are_kept_grouped_and_told():
    data = simulated(10, 150, 3, base=1.0, sparsity=0.0).without_times()
    with pytest.warns(
        SeveralOptimaWarning, match=r"8 starts ended at \d+ different optima"
    ) as told:
        learner = SetChain(0.005, n_starts=8, random_state=1).fit(data)
    assert len(learner.starts_) == 8
    assert [start.width for start in learner.starts_] == [0.0, 0.2, 2.0, 0.2, 2.0, 0.2, 2.0, 0.2]
    objectives = np.array([start.objective for start in learner.starts_])
    assert learner.objective_ == objectives.max()
    assert np.array_equal(learner.theta_, learner.starts_[int(objectives.argmax())].theta)
    for start in learner.starts_:
        value = evaluate_value(start.theta, data)
        assert start.objective == pytest.approx(value - l1(start.theta, 0.005), abs=1e-10)
        assert start.kkt_residual <= 1e-4
    optima = learner.optima_
    assert optima["objective"].iloc[0] == learner.objective_
    assert optima["objective"].is_monotonic_decreasing
    assert optima["starts"].sum() == 8
    np.testing.assert_allclose(optima["below_best"], learner.objective_ - optima["objective"])
    differ = learner.differences(max_entries=1).iloc[0]
    stack = np.stack([start.theta for start in learner.starts_])
    assert differ["range"] == (stack.max(axis=0) - stack.min(axis=0)).max()
    i, j = (learner.model_.items.index(differ[end]) for end in ("from", "to"))
    assert differ["highest"] == stack[:, i, j].max()
    assert f"{differ['from']} -> {differ['to']}" in str(told[0].message)


def evaluate_value(theta, data):
    return sequela.evaluate(theta, data, gradient=False).value


def test_the_first_start_is_the_same_whatever_follows(data):
    alone = SetChain(0.02, random_state=5).fit(data.without_times())
    with quiet():
        many = SetChain(0.02, random_state=5, n_starts=4).fit(data.without_times())
        other = SetChain(0.02, random_state=6, n_starts=4).fit(data.without_times())
    assert np.array_equal(many.starts_[0].theta, alone.theta_)
    assert np.array_equal(other.starts_[0].theta, alone.theta_)
    assert not np.array_equal(many.starts_[1].theta, other.starts_[1].theta)


def test_ends_that_are_no_optima_are_not_called_so():
    """If starts are stopped after two iterations, there is no warning about several optima.

    Without this limit, the five starts reach the same optimum.
    """
    data = simulated(8, 150, 3, base=0.5).without_times()
    assert len(SetChain(0.05, n_starts=5, random_state=1).fit(data).optima_) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeveralOptimaWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        SetChain(0.05, n_starts=5, max_iter=2, random_state=1).fit(data)


def end(theta, objective, residual=1e-5):
    return Start(
        theta=np.asarray(theta, dtype=float), objective=objective, objective_se=0.0,
        kkt_residual=residual, kkt_floor=0.0, n_iterations=1, n_evaluations=1,
        status=Status.CONVERGED, message="", width=0.0,
    )  # fmt: skip


def test_ends_are_grouped_by_theta_and_objective():
    eye = np.eye(2)
    far = eye + np.array([[0.0, 3.0], [0.0, 0.0]])
    starts = [end(far, -2.0), end(eye, -1.0), end(eye + 0.1, -1.000001), end(far + 0.1, -2.00001)]
    assert group_starts(starts) == [[1, 2], [0, 3]]
    optima = distinct_optima(starts)
    assert optima["objective"].tolist() == [-1.0, -2.0]
    assert optima["starts"].tolist() == [2, 2]
    assert optima["first_start"].tolist() == [1, 0]
    # Two different optima can have the same objective, for example if one is the transpose of the
    # other.
    assert len(group_starts([end(far, -1.0), end(far.T, -1.0)])) == 2


def test_no_difference_is_an_empty_table():
    assert len(differing_entries([np.eye(2), np.eye(2)], ["a", "b"])) == 0


def test_one_optimum_is_not_called_several():
    """Starts that differ only in a base rate that grows without bound are the same optimum."""
    X = np.column_stack([simulated(3, 200, 5, base=1.0).values, np.ones(200)]).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeveralOptimaWarning)
        warnings.simplefilter("ignore", SeparationWarning)
        learner = SetChain(0.03, n_starts=6, random_state=1).fit(X)
    assert len(learner.optima_) == 1


# --- Warnings about the data ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X.assign(PTEN=True), "'PTEN' is always present"),
        (lambda X: X.assign(NF1=False), "'NF1' is never present"),
        (lambda X: X.assign(IDH1=X["TP53"]), "'TP53', 'IDH1' are present only together"),
        (lambda X: X.iloc[[7]], "present"),
        (lambda X: X.assign(PTEN=1, NF1=0), "'PTEN' is always present; 'NF1' is never present"),
        (lambda X: X & False, "'TP53', 'IDH1', 'EGFR\\(A\\)', 'PTEN', 'NF1' are never present"),
        (lambda X: X | True, "'TP53', 'IDH1', 'EGFR\\(A\\)', 'PTEN', 'NF1' are always present"),
    ],
    ids=["always", "never", "together", "one sample", "both", "nothing", "everything"],
)
def test_items_that_the_data_cannot_place_are_named(data, change, words):
    X = change(data.to_frame())
    with pytest.warns(SeparationWarning, match=words):
        learner = SetChain(0.02).fit(X)
    assert np.isfinite(learner.theta_).all()
    assert np.isfinite([learner.objective_, learner.kkt_residual_]).all()
    assert learner.converged_


def test_many_items_are_not_all_named():
    X = np.zeros((5, 40), dtype=int)
    with pytest.warns(SeparationWarning, match="and 35 more are never present"):
        SetChain(0.1).fit(X)


def test_good_data_give_no_warning(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SetChain(0.05).fit(data)


def test_warnings_point_at_the_caller():
    with pytest.warns(SeparationWarning) as told:
        SetChain(0.02).fit(table(2, [[0], [0, 1]]))
    assert told[0].filename == __file__


# --- Options that make no sense -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"solver": "magic"}, "solver is 'magic'; expected one of 'auto', 'newton', 'adagrad'"),
        ({"solver": None}, "solver is None"),
        ({"tol": 0.0}, "tol is 0.0"),
        ({"tol": -1e-3}, "tol is -0.001"),
        ({"tol": float("nan")}, "tol is nan"),
        ({"tol": "small"}, "tol is 'small'"),
        ({"tol": None}, "tol is None"),
        ({"n_starts": 0}, "n_starts is 0"),
        ({"n_starts": 1.5}, "n_starts is 1.5"),
        ({"n_starts": "3"}, "n_starts is '3'"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"max_iter": 10.0}, "max_iter is 10.0"),
        ({"start_widths": ()}, "start_widths is ()"),
        ({"start_widths": (0.0,)}, "start_widths is"),
        ({"start_widths": (-1.0,)}, "start_widths is"),
        ({"start_widths": (float("inf"),)}, "start_widths is"),
        ({"start_widths": 0.2}, "start_widths is 0.2"),
        ({"start_widths": "wide"}, "start_widths is 'wide'"),
        ({"start_widths": None}, "start_widths is None"),
        ({"penalty": -0.01}, "penalty is -0.01"),
        ({"penalty": float("nan")}, "penalty is nan"),
        ({"penalty": "0.01"}, "penalty is '0.01'"),
        ({"penalty": None}, "penalty is None"),
        ({"chains": 1}, "chains is 1"),
        ({"chains": 2.5}, "chains is 2.5"),
        ({"observation": 2.0}, "observation is 2.0"),
        ({"observation": Exponential}, "observation is <class"),
        ({"budget": "1GB"}, "budget is '1GB'"),
        ({"random_state": -1}, "random_state is -1"),
        ({"random_state": "seed"}, "random_state is 'seed'"),
        ({"n_threads": 0}, "n_threads is 0"),
        ({"checkpoint_every": "often"}, "checkpoint_every is 'often'"),
        ({"checkpoint_every": -1.0}, "checkpoint_every is -1.0"),
        ({"checkpoint_every": float("nan")}, "checkpoint_every is nan"),
    ],
)
def test_options_that_make_no_sense_are_refused(data, options, words):
    with pytest.raises(InputError) as told:
        SetChain(**options).fit(data)
    assert words in str(told.value)


def test_an_item_alone():
    learner = SetChain().fit(np.array([[1], [0], [0], [0]]))
    assert learner.theta_[0, 0] == pytest.approx(np.log(1 / 3), abs=1e-4)
    assert len(learner.model_.interactions()) == 0
    assert isinstance(learner.history_, pd.DataFrame)


def test_convergence_warning_is_scikit_learns(data):
    with pytest.warns(ConvergenceWarning):
        SetChain(0.001, max_iter=2).fit(data)


def test_one_more_start_is_kept_if_it_is_better():
    data = sequela.example_samples().most_frequent(5)
    good = SetChain(0.02, random_state=1).fit(data)
    with quiet():
        lazy = SetChain(0.02, random_state=1, max_iter=1).fit(data)
        before = lazy.objective_
        lazy.add_start(data, good.theta_)
    assert before < good.objective_
    assert np.array_equal(lazy.theta_, good.theta_)
    assert lazy.converged_
    assert lazy.model_.metadata["starts"] == len(lazy.starts_) == 2
    assert np.isnan(lazy.starts_[1].width)
    kept = good.theta_.copy()
    with quiet():
        good.add_start(data, lazy.starts_[0].theta)
    assert good.objective_ >= max(start.objective for start in good.starts_)
    np.testing.assert_allclose(good.theta_, kept, atol=0.01)
    with pytest.raises(InputError, match=r"shape \(3, 3\); expected \(5, 5\)"):
        good.add_start(data, np.eye(3))
