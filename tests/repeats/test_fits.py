"""Plans of fits: their random samples, their results (equal to `SetChain`), and summaries."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import asdict
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from sequela import Budget, Dataset, InputError, SetChain, example_theta, order_matrix, simulate
from sequela.observation import Exponential
from sequela.repeats import (
    Plan,
    collect,
    fit_table,
    missing,
    models,
    pair_orders,
    plan_fits,
    read_plan,
    run,
    summarise,
)
from sequela.repeats.data_file import fingerprint, keep_data
from sequela.repeats.fit_task import FitCase, _split, item_places, learn

pytestmark = pytest.mark.filterwarnings("ignore::sequela.learning.SeparationWarning")


@pytest.fixture(scope="module")
def data():
    return simulate(example_theta(), 120, random_state=1).to_dataset().without_times()


@pytest.fixture(scope="module")
def boots(data, tmp_path_factory):
    """Return the folder of a plan of six bootstraps. Each has fits with two penalties."""
    folder = tmp_path_factory.mktemp("fits") / "boots"
    plan = plan_fits(data, bootstraps=6, penalties=[0.05, 0.02], seed=3)
    run(plan, folder, backend="threads")
    return folder


def rows(dataset):
    """Count how often each pair of a row and its time occurs."""
    times = [None] * dataset.n_samples if dataset.times is None else dataset.times.tolist()
    return Counter(zip(map(bytes, dataset.values), times, strict=True))


# --- Samples and items that a plan draws ----------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.integers(0, 2**53), st.integers(0, 50), st.booleans())
def test_a_bootstrap_is_as_many_samples_drawn_from_the_samples(n, seed, bootstrap, timed):
    values = np.arange(n)[:, None] >> np.arange(4) & 1
    times = np.arange(n) + 0.5 if timed else None
    samples = Dataset(values, times=times)
    drawn, held_out = _split(samples, seed, FitCase(0.05, bootstrap=bootstrap))
    assert held_out is None
    assert drawn.n_samples == n
    assert drawn.items == samples.items
    assert set(rows(drawn)) <= set(rows(samples))  # each row keeps its time
    again, _ = _split(samples, seed, FitCase(0.05, bootstrap=bootstrap))
    assert rows(again) == rows(drawn)


def test_bootstraps_draw_every_sample_equally_often():
    n, number = 50, 400
    samples = Dataset(np.eye(n, dtype=bool))
    counts = np.stack(
        [
            _split(samples, 11, FitCase(0.05, bootstrap=b))[0].values.sum(axis=0)
            for b in range(number)
        ]
    )
    # Each count is binomial(n, 1/n). So its mean over all bootstraps is nearly normal with mean 1
    # and variance (1 - 1/n) / number. The largest of 50 such means is off by more than 4.5 standard
    # deviations with a probability of 3e-4.
    assert np.abs(counts.mean(axis=0) - 1).max() < 4.5 * np.sqrt((1 - 1 / n) / number)
    # A bootstrap leaves out a share of (1 - 1/n)^n = 0.364 of the samples.
    assert (counts == 0).mean() == pytest.approx((1 - 1 / n) ** n, abs=0.02)
    assert len({row.tobytes() for row in counts}) == number


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 30), st.data())
def test_folds_partition_the_samples(n, data):
    folds = data.draw(st.integers(2, n))
    seed = data.draw(st.integers(0, 2**53))
    samples = Dataset(np.eye(n, dtype=bool))
    held = []
    for fold in range(folds):
        training, held_out = _split(samples, seed, FitCase(0.05, fold=fold, folds=folds))
        assert set(training.samples) | set(held_out.samples) == set(samples.samples)
        assert not set(training.samples) & set(held_out.samples)
        held += held_out.samples
        assert n // folds <= held_out.n_samples <= -(-n // folds)
    assert sorted(held) == sorted(samples.samples)


def test_subsets_of_items_are_the_most_frequent_or_random_ones(data):
    chosen = [data.items[i] for i in item_places(data, 1, 4, None)]
    assert tuple(chosen) == data.most_frequent(4).items
    drawn = [tuple(item_places(data, 1, 4, r)) for r in range(200)]
    assert all(len(set(places)) == 4 for places in drawn)
    assert len(set(drawn)) > 100
    counts = np.bincount(np.ravel(drawn), minlength=data.n_items)
    # Each count is binomial(200, 0.4), with a standard deviation of 6.9. The largest of 10 counts
    # is off by more than 4.5 standard deviations with a probability of 7e-5.
    assert np.abs(counts - 80).max() < 4.5 * np.sqrt(200 * 0.4 * 0.6)


def test_kinds_multiply(data):
    plan = plan_fits(
        data, bootstraps=2, penalties=[0.1, 0.2], item_subsets=[3, 5], random_subsets=2, seeds=2,
        seed=1,
    )  # fmt: skip
    found = Counter(tuple(sorted(case.items())) for case in plan.cases)
    expected = Counter(
        tuple(sorted({"items": k, "subset": r, "bootstrap": b, "start": s, "penalty": p}.items()))
        for k, r, b, s, p in product((3, 5), (0, 1), (0, 1), (0, 1), (0.1, 0.2))
    )
    assert found == expected
    assert [case["fold"] for case in plan_fits(data, folds=3, seed=1).cases] == [0, 1, 2]


def test_cases_are_small_and_the_samples_are_in_one_file(boots, data):
    table = (boots / "000000.json").read_text()
    assert "step 1" not in table  # records have no labels of items
    assert all(set(case) == {"bootstrap", "penalty"} for case in plan_fits(
        data, bootstraps=50, seed=1).cases)  # fmt: skip
    assert (boots / "data.npz").stat().st_size < 20_000


# --- A fit of a plan gives the same result as SetChain --------------------------------------------


def test_a_bootstrap_is_a_plain_fit_to_the_drawn_samples(data, boots):
    plan = plan_fits(data, bootstraps=6, penalties=[0.05, 0.02], seed=3)
    table = fit_table(boots)
    learned = models(boots)
    for index in (0, 3):
        case = plan.cases[index]
        drawn, _ = _split(data, 3, FitCase(0.05, bootstrap=case["bootstrap"]))
        learner = SetChain(case["penalty"], random_state=plan.seed_of(index)).fit(drawn)
        assert np.array_equal(learned[index].theta, learner.theta_)
        assert learned[index].items == data.items
        assert table.loc[index, "objective"] == learner.objective_
        assert table.loc[index, "kkt_residual"] == learner.kkt_residual_
        assert table.loc[index, "interactions"] == len(learner.model_.interactions())
    # Both penalties use the same bootstrap samples. The next bootstrap has other samples.
    assert [case["bootstrap"] for case in plan.cases[:3]] == [0, 0, 1]
    assert table["objective"].nunique() == len(table)


def test_a_fold_is_scored_on_what_it_has_not_seen(data, tmp_path):
    plan = plan_fits(data, folds=3, penalty=0.05, seed=3)
    run(plan, tmp_path / "a", backend="threads")
    table = fit_table(tmp_path / "a")
    for fold in range(3):
        training, held_out = _split(data, 3, FitCase(0.05, fold=fold, folds=3))
        learner = SetChain(0.05, random_state=plan.seed_of(fold)).fit(training)
        assert table.loc[fold, "held_out"] == learner.score(held_out)
        assert table.loc[fold, "held_out_samples"] == held_out.n_samples
    assert table["held_out_samples"].sum() == data.n_samples


def test_a_subset_is_a_fit_to_these_items(data, tmp_path):
    run(plan_fits(data, item_subsets=[3], penalty=0.05, seed=3), tmp_path / "a", backend="threads")
    run(
        plan_fits(data, item_subsets=[3], random_subsets=2, penalty=0.05, seed=3),
        tmp_path / "b", backend="threads",
    )  # fmt: skip
    (frequent,) = models(tmp_path / "a").values()
    learner = SetChain(0.05).fit(data.most_frequent(3))
    assert frequent.items == learner.model_.items
    assert np.array_equal(frequent.theta, learner.theta_)
    for number, model in models(tmp_path / "b").items():
        places = item_places(data, 3, 3, number)
        assert model.items == tuple(data.items[i] for i in places)
        learner = SetChain(0.05).fit(data.select_items(model.items))
        assert np.array_equal(model.theta, learner.theta_)


def test_seeds_are_random_starts(data, tmp_path):
    plan = plan_fits(data, seeds=3, penalty=0.01, max_iter=3, seed=3)
    run(plan, tmp_path / "a", backend="threads")
    learned = models(tmp_path / "a")
    assert len({model.theta.tobytes() for model in learned.values()}) == 3
    learner = SetChain(0.01, independent_start=False, max_iter=3, random_state=plan.seed_of(1))
    with pytest.warns(ConvergenceWarning):
        learner.fit(data)
    assert np.array_equal(learned[1].theta, learner.theta_)
    assert not fit_table(tmp_path / "a")[
        "converged"
    ].any()  # no fit converged, but the repeats gave no warning


def test_options_reach_the_fit_and_times_too(tmp_path):
    timed = simulate(example_theta(), 60, random_state=2).to_dataset()
    plan = plan_fits(
        timed.values, times=timed.times, bootstraps=1, penalty=0.05, tol=1e-2, seed=1,
        observation=Exponential(0.5), budget=Budget(work=1e6), n_starts=2, start_widths=(0.1,),
    )  # fmt: skip
    run(plan, tmp_path / "a", backend="threads")
    drawn, _ = _split(plan.data, 1, FitCase(0.05, bootstrap=0))
    assert drawn.times is not None
    learner = SetChain(
        0.05, tol=1e-2, observation=Exponential(0.5), budget=Budget(work=1e6), n_starts=2,
        start_widths=(0.1,), random_state=plan.seed_of(0),
    ).fit(drawn)  # fmt: skip
    model = models(tmp_path / "a")[0]
    assert np.array_equal(model.theta, learner.theta_)
    assert model.observation == Exponential(0.5)


def test_orders_are_those_of_the_models(data, tmp_path):
    plan = plan_fits(data, bootstraps=2, penalty=0.05, orders=["step 2", "step 1", "left"], seed=3)
    run(plan, tmp_path / "a", backend="threads")
    found = pair_orders(tmp_path / "a")
    assert len(found) == 6
    for repeat, model in models(tmp_path / "a").items():
        orders = order_matrix(model, ["step 2", "step 1", "left"])
        for row in found[found["repeat"] == repeat].itertuples():
            assert row.probability == orders.probability.loc[row.first, row.second]
    # The table lists only orders of items of the fit. So a fit with a single item has none.
    few = plan_fits(data, item_subsets=[1, 10], orders=["step 2", "step 1"], seed=3)
    run(few, tmp_path / "b", backend="threads")
    assert pair_orders(tmp_path / "b")["repeat"].tolist() == [1]


@pytest.mark.parametrize("backend", ["processes", "dask"])
def test_other_workers_give_the_same_bits(backend, data, boots, tmp_path):
    if backend == "dask":
        pytest.importorskip("distributed")
    plan = plan_fits(data, bootstraps=6, penalties=[0.05, 0.02], seed=3)
    run(plan, tmp_path / "a", backend=backend, workers=2)
    there, here = (
        collect(plan, folder).drop(columns="seconds") for folder in (tmp_path / "a", boots)
    )
    assert there.equals(here)


def test_an_interrupted_fit_is_not_recorded(data, monkeypatch):
    """A signal ends a fit with its best model so far. Such a repeat is not finished."""
    from sequela.learning import fitting

    class Asked:
        signal = "SIGTERM"

        def __bool__(self):
            return True

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(fitting, "graceful_stop", Asked)
    with pytest.raises(KeyboardInterrupt):
        learn(data=data, seed=1, plan_seed=1, options={}, penalty=0.01)


# --- Summaries of the fits ------------------------------------------------------------------------


def test_the_summary_is_what_counting_gives(boots, data):
    learned = models(boots)
    table = fit_table(boots)
    summary = summarise(boots, level=0.8)
    for penalty in (0.05, 0.02):
        thetas = [learned[i].to_frame() for i in table.index[table["penalty"] == penalty]]
        mine = summary[summary["penalty"] == penalty].set_index(["from", "to"])
        assert mine["share"].is_monotonic_decreasing
        for a, b in product(data.items, data.items):
            values = [theta.loc[a, b] for theta in thetas]
            if a == b or not np.any(values):
                assert (a, b) not in mine.index
                continue
            row = mine.loc[(a, b)]
            assert row["share"] == np.mean(np.array(values) != 0)
            assert row["median"] == np.median(values)
            assert row["lower"] == pytest.approx(np.quantile(values, 0.1), rel=1e-12)
            assert row["upper"] == pytest.approx(np.quantile(values, 0.9), rel=1e-12)
            assert row["fits"] == 6


def test_the_summary_counts_only_fits_that_have_both_items(data, tmp_path):
    plan = plan_fits(data, item_subsets=[3], random_subsets=8, penalty=0.02, seed=3)
    run(plan, tmp_path / "a", backend="threads")
    learned = models(tmp_path / "a").values()
    for row in summarise(tmp_path / "a").itertuples(index=False):
        start, end = row[0], row[1]
        both = [m.to_frame().loc[start, end] for m in learned if {start, end} <= set(m.items)]
        assert row.fits == len(both)
        assert row.share == np.mean(np.array(both) != 0)


def test_readers_take_a_part_if_told_so(data, tmp_path):
    plan = plan_fits(data, bootstraps=3, penalty=0.05, seed=3)
    run(plan, tmp_path / "a", backend="threads", share=(0, 2))
    for reader in (fit_table, models, summarise):
        with pytest.raises(InputError, match=r"1 of 3 repeats are missing.*\(1\)"):
            reader(tmp_path / "a")
    assert fit_table(tmp_path / "a", partial=True).index.tolist() == [0, 2]
    assert list(models(tmp_path / "a", partial=True)) == [0, 2]
    assert (summarise(tmp_path / "a", partial=True)["fits"] == 2).all()
    with pytest.raises(InputError, match="records no orders"):
        pair_orders(tmp_path / "a", partial=True)
    with pytest.raises(InputError, match=r"level is 1\.5"):
        summarise(tmp_path / "a", level=1.5, partial=True)
    run(Plan("builtins:dict", [{}], 1), tmp_path / "other", backend="threads")
    with pytest.raises(InputError, match="not of fits"):
        fit_table(tmp_path / "other")


def test_a_summary_without_interactions_is_an_empty_table(data, tmp_path):
    run(plan_fits(data, bootstraps=2, penalty=5.0, seed=3), tmp_path / "a", backend="threads")
    found = summarise(tmp_path / "a")
    assert isinstance(found, pd.DataFrame)
    assert found.empty
    assert list(found.columns)[:2] == ["from", "to"]


# --- Plans of version 0.1 -------------------------------------------------------------------------


def old_stream(seed, *key):
    """Return a random stream of version 0.1.

    The first number of its key is 1 for bootstraps, 2 for folds, and 3 for subsets of items.
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def test_what_a_plan_draws_has_not_changed_since_version_0_1(data):
    """A folder of version 0.1 can be continued, with the same samples and the same items."""
    n = data.n_samples
    for number in (0, 7):
        drawn, _ = _split(data, 5, FitCase(0.05, bootstrap=number))
        rows = old_stream(5, 1, number).integers(n, size=n)
        assert np.array_equal(drawn.values, data.values[rows])
        places = np.sort(old_stream(5, 3, 4, number).choice(data.n_items, 4, replace=False))
        assert np.array_equal(item_places(data, 5, 4, number), places)
    fold_of = old_stream(5, 2, 3).permutation(n) % 3
    for fold in range(3):
        _, held_out = _split(data, 5, FitCase(0.05, fold=fold, folds=3))
        assert np.array_equal(held_out.values, data.values[fold_of == fold])


def old_folder(data, folder):
    """Write a folder of a plan as version 0.1 did. Of its two fits, only the first is done."""
    seed = 11
    places = [
        np.sort(old_stream(seed, 3, 4, subset).choice(data.n_items, 4, replace=False))
        for subset in (0, 1)
    ]
    cases = [{"penalty": 0.05, "subset": subset, "items": 4} for subset in (0, 1)]
    options = {"observation_rate": 2.0, "tol": 1e-3, "budget": asdict(Budget(work=1e6))}
    common = {"plan_seed": seed, "options": options}
    task = "sequela.repeats.fit_task:learn"
    folder.mkdir()
    keep_data(data, folder)
    parts = [task, seed, cases, common, fingerprint(data)]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    header = {
        "format": "sequela repeats", "version": 1, "plan": digest, "task": task, "repeats": 2,
        "seed": seed, "warm_up": "sequela.repeats.fit_task:warm_up",
        "data": fingerprint(data), "common": common, "cases": cases,
    }  # fmt: skip
    (folder / "plan.json").write_text(json.dumps(header, indent=1))
    learned = [fit_of_old_folder(data, places[at], seed_of(seed, at)) for at in (0, 1)]
    rows, columns = np.nonzero(learned[0].theta_)
    result = {
        "objective": learned[0].objective_, "objective_se": 0.0,
        "kkt_residual": learned[0].kkt_residual_, "converged": True,
        "interactions": int(np.count_nonzero(rows != columns)), "message": "as it was told",
        "theta": {
            "rows": places[0][rows].tolist(), "columns": places[0][columns].tolist(),
            "values": learned[0].theta_[rows, columns].tolist(),
        },
    }  # fmt: skip
    record = {
        "plan": digest, "index": 0, "seed": seed_of(seed, 0), "case": cases[0], "seconds": 1.5,
        "result": result,
    }  # fmt: skip
    (folder / "000000.json").write_text(json.dumps(record))
    return learned


def seed_of(seed, index):
    words = np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(2, np.uint32)
    return int(words[0]) << 31 ^ int(words[1])


def fit_of_old_folder(data, places, seed):
    return SetChain(
        0.05, tol=1e-3, budget=Budget(work=1e6), observation=Exponential(2.0), random_state=seed
    ).fit(data.select_items([data.items[place] for place in places]))


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_a_plan_of_version_0_1_goes_on(backend, data, tmp_path):
    """A plan of version 0.1 can be continued.

    It has the option "observation_rate", a number. The new models have an observation instead.
    """
    learned = old_folder(data, tmp_path / "old")
    before = (tmp_path / "old" / "000000.json").read_bytes()
    plan = read_plan(tmp_path / "old")
    assert plan.common["options"]["observation_rate"] == 2.0
    assert missing(plan, tmp_path / "old") == [1]
    run(plan, tmp_path / "old", backend=backend, workers=2)
    assert (tmp_path / "old" / "000000.json").read_bytes() == before
    found = models(tmp_path / "old")
    assert list(found) == [0, 1]
    for at, learner in enumerate(learned):
        assert found[at].observation == Exponential(2.0)
        assert found[at] == learner.model_
    table = fit_table(tmp_path / "old")
    assert table["objective"].tolist() == [learner.objective_ for learner in learned]
    # With the default rate the model would be different, so an ignored option would be noticed.
    default = SetChain(0.05, tol=1e-3).fit(data.select_items(found[1].items))
    assert np.abs(default.theta_ - found[1].theta).max() > 0.5


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing is repeated"),
        ({"bootstraps": -1}, "bootstraps is -1"),
        ({"bootstraps": 2, "folds": 2}, "bootstraps and folds"),
        ({"folds": 1}, "folds is 1"),
        ({"folds": 1000}, "folds is 1000, more than the 120 samples"),
        ({"item_subsets": [11]}, "item_subsets has 11, more than the 10 items"),
        ({"item_subsets": [0]}, "item_subsets is 0"),
        ({"random_subsets": 2, "seeds": 2}, "random_subsets needs item_subsets"),
        ({"penalties": []}, "penalties is empty"),
        ({"penalties": [0.1], "penalty": 0.1}, "penalty and penalties"),
        ({"penalties": [0.1, -1]}, "-1"),
        ({"seeds": 2, "tol": 0}, "tol is 0"),
        ({"seeds": 2, "solver": "magic"}, "solver is 'magic'"),
        ({"seeds": 2, "random_state": 1}, "random_state cannot be set for a plan"),
        ({"seeds": 2, "orders": ["step 1"]}, "an order needs two"),
        ({"seeds": 2, "orders": ["step 1", "nothing"]}, "nothing"),
        ({"seeds": 2, "seed": -1}, "seed is -1"),
    ],
)
def test_what_does_not_fit_is_refused_at_once(data, options, message):
    with pytest.raises(InputError, match=message):
        plan_fits(data, **{"seed": 1, **options})


def test_numbers_of_numpy_are_numbers(data):
    plan = plan_fits(
        data, bootstraps=2, penalties=np.array([0.1, 0.05]), n_starts=np.int64(2), seed=1
    )
    assert [case["penalty"] for case in plan.cases[:2]] == [0.1, 0.05]
    assert plan.common["options"]["n_starts"] == 2
