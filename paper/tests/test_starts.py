"""The quick form of figure 10: optima, their theta, and the order on which they disagree."""

import numpy as np
import pandas as pd
import pytest

from learning.problems import kkt_residual, l1, real_data
from sequela import Model, evaluate, order_probability
from sequela_paper import Settings, make
from sequela_paper.sources import schill_table
from sequela_paper.starts import cases, draw, judge, tables, task


@pytest.fixture(scope="module")
def folder():
    return str(real_data())


@pytest.fixture(scope="module")
def made(tmp_path_factory, folder):
    where = tmp_path_factory.mktemp("paper") / "fig10"
    settings = Settings(quick=True, data=real_data())
    return make("fig10", settings, where, backend="threads", workers=1)


@pytest.fixture(scope="module")
def read(made):
    return {path.stem: pd.read_csv(path) for path in made.files if path.suffix == ".csv"}


def theta_of(read, group, items):
    rows = read["fig10_theta"]
    rows = rows[rows["group"] == group]
    frame = pd.DataFrame(0.0, index=items, columns=items)
    for one in rows.itertuples():
        frame.loc[one[2], one.to] = one.effect
    return frame.to_numpy()


def test_files(made):
    names = {path.name for path in made.files}
    assert {f"fig10.{suffix}" for suffix in ("csv", "svg", "pdf", "png", "json")} <= names
    assert {"fig10_optima.csv", "fig10_theta.csv", "fig10_range.csv"} <= names


def test_starts_end_at_different_optima(made, read):
    assert made.verdict.holds is True
    assert made.verdict.numbers["optima"] == read["fig10"]["group"].nunique() >= 2
    assert made.verdict.numbers["best_objective"] == pytest.approx(-7.961637, abs=2e-6)
    assert "-7.96163" in made.verdict.text


def test_every_optimum_is_one(read, folder):
    data = schill_table(folder)
    for one in read["fig10_optima"].itertuples():
        theta = theta_of(read, one.group, data.items)
        found = evaluate(theta, data, method="exact")
        assert one.objective == pytest.approx(found.value - l1(theta, 0.01), abs=1e-9)
        assert kkt_residual(theta, found.gradient, 0.01) <= 1.001e-5


def test_the_optima_disagree_on_an_order(read, folder):
    data = schill_table(folder)
    orders = read["fig10_optima"]["order"]
    # The program mhn, whose penalty is smoothed, finds the probability 0.867 for this order at one
    # optimum, and 0.053 at another.
    assert orders.iloc[0] == pytest.approx(0.867, abs=0.03)
    assert orders.iloc[1] == pytest.approx(0.053, abs=0.005)
    for group in (1, 2):
        model = Model(theta_of(read, group, data.items), data.items)
        drawn = order_probability(
            model, "MDM2(A)", "CDK4(A)", method="simulation", draws=100_000, random_state=1
        )
        assert abs(drawn.value - orders.iloc[group - 1]) < 5.0 * drawn.se


def test_refits_are_without_penalty(read):
    optima = read["fig10_optima"]
    penalised = optima["objective"] * 261
    assert (optima["refit_log_likelihood"] > penalised).all()
    assert optima["behind"].min() == 0.0


def test_ranges_are_over_the_starts(read):
    ranges = read["fig10_range"]
    assert len(ranges) == 400
    np.testing.assert_allclose(ranges["range"], ranges["highest"] - ranges["lowest"], atol=1e-12)
    # The range of each effect includes its values at all optima.
    theta = read["fig10_theta"].merge(ranges, on=["from", "to"])
    assert (theta["effect"] >= theta["lowest"] - 1e-12).all()
    assert (theta["effect"] <= theta["highest"] + 1e-12).all()
    widest = ranges.sort_values("range").iloc[-1]
    assert {widest["from"], widest["to"]} == {"MDM2(A)", "CDK4(A)"}


def test_the_papers_solver_stands_beside():
    settings = Settings(quick=True, solver="both", repeats=2, data=real_data())
    chosen = cases(settings)
    assert [one["solver"] for one in chosen] == ["ours", "ours", "adagrad"]
    rows = [
        {
            **one,
            **task(**{**one, "max_iter": 20 if one["solver"] == "adagrad" else 1000}, seed=seed),
        }
        for seed, one in enumerate(chosen)
    ]
    found = tables(pd.DataFrame(rows), settings)
    assert list(found["fig10"]["solver"]) == ["ours", "ours", "adagrad"]
    assert set(found["fig10_range"]["solver"]) == {"ours", "adagrad"}
    verdict = judge(found)
    assert verdict.numbers["paper_solver_starts"] == 1
    assert "of the paper's solver" in verdict.text
    assert len(draw(found).axes) >= 4


def test_numbers_of_starts():
    def count(**chosen):
        solvers = [one["solver"] for one in cases(Settings(**chosen))]
        return solvers.count("ours"), solvers.count("adagrad")

    assert count() == (20, 4)
    assert count(solver="ours") == (20, 0)
    assert count(solver="adagrad") == (0, 20)
    assert count(quick=True) == (6, 0)
    assert count(solver="both", solver_repeats=2) == (20, 2)
