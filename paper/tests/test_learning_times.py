"""The quick form of table 1: times measured, times extrapolated, and the verdict."""

import numpy as np
import pandas as pd
import pytest

from learning.problems import real_data
from sequela_paper import Settings, make
from sequela_paper.learning_times import (
    METHODS,
    OURS,
    PAPER,
    PAPER_SECONDS,
    SUBSTITUTION,
    SWEEPS,
    draw,
    judge,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    settings = Settings(quick=True, data=real_data())
    folder = tmp_path_factory.mktemp("paper") / "table1"
    return make("table1", settings, folder, backend="threads", workers=1)


@pytest.fixture(scope="module")
def table(made):
    return pd.read_csv(made.files[0]).set_index(["method", "n"])


def test_files(made):
    names = {path.name for path in made.files}
    assert names == {f"table1.{suffix}" for suffix in ("csv", "svg", "pdf", "png", "json")}
    assert all(path.stat().st_size > 0 for path in made.files)


def test_every_method_at_every_size(table):
    assert set(table.index) == {(method, n) for method in METHODS for n in (10, 15)}
    assert (table["samples"] == 378).all()
    assert (table["seconds"] > 0).all()


def test_the_two_exact_methods_end_at_the_same_optimum(table):
    for n, known in ((10, -5.17015), (15, -6.67436)):
        for method in (OURS, SUBSTITUTION):
            assert table.loc[(method, n), "finished"] == "measured"
            assert table.loc[(method, n), "objective"] == pytest.approx(known, abs=1.5e-5)


def test_what_was_cut_off_is_extrapolated(table):
    rows = table[table["finished"] == "extrapolated"]
    # The quick form has no effective time limit, so this holds on fast and on slow machines.
    assert set(rows.index) == {(PAPER, 10), (PAPER, 15), (SWEEPS, 15)}
    # The published program has 3000 iterations, after 50 iterations of base rates. Each phase
    # computes one more gradient at its start.
    assert (rows.loc[PAPER, "evaluations"] == 3052).all()
    np.testing.assert_allclose(rows["seconds"], rows["seconds_a_gradient"] * rows["evaluations"])
    assert (rows["seconds"] > rows["spent"]).all()
    # Both methods for the linear systems lead to the same steps of the solver.
    sweeps, direct = table.loc[(SWEEPS, 15)], table.loc[(SUBSTITUTION, 15)]
    assert sweeps["evaluations"] == direct["evaluations"]


def test_the_time_to_the_papers_objective_is_part_of_the_whole(table):
    ours = table.loc[OURS]
    assert (ours["seconds_to_paper_objective"] <= ours["seconds"]).all()
    assert (ours["objective"] > table.loc[PAPER, "objective"]).all()


def test_fewer_than_twenty_items_leave_the_claim_open(made):
    assert made.verdict.holds is None
    assert "The claim is about n = 20" in made.verdict.text
    assert made.verdict.numbers["n"] == 15


def full_table(paper_seconds, *, finished="measured"):
    """Return a table with the form of a full run, with the given times of the paper's solver."""
    rows = []
    for method in METHODS:
        sizes = (10, 15, 20) if method in (SUBSTITUTION, SWEEPS) else (10, 15, 20, 50, 100)
        times = {
            OURS: {10: 0.03, 15: 0.1, 20: 0.2, 50: 0.9, 100: 4.0},
            PAPER: paper_seconds,
            SUBSTITUTION: {10: 0.1, 15: 0.9, 20: 120.0},
            SWEEPS: PAPER_SECONDS[SWEEPS],
        }[method]
        for n in sizes:
            cut = method == SWEEPS and n == 20
            rows.append(
                {
                    "method": method,
                    "n": n,
                    "samples": 378,
                    "seconds": times[n],
                    "evaluations": 100,
                    "seconds_a_gradient": times[n] / 100,
                    "finished": "extrapolated" if cut else finished,
                    "objective": np.nan if cut else -7.9,
                    "seconds_to_paper_objective": 0.1 if method == OURS else np.nan,
                }
            )
    return {"table1": pd.DataFrame(rows)}


def test_the_verdict_is_on_the_papers_solver():
    printed = judge(full_table(PAPER_SECONDS[PAPER]))
    assert printed.holds is True
    assert printed.numbers["paper_solver_factor"] == pytest.approx(7260 / 8)
    assert printed.numbers["our_factor"] == pytest.approx(7260 / 0.2)
    assert printed.numbers["our_factor_against_substitution"] == pytest.approx(600)
    slow = judge(full_table(dict.fromkeys((10, 15, 20, 50, 100), 120.0)))
    assert slow.holds is False
    assert "121 min (extrapolated)" in slow.text
    assert "This package takes 0.2 s: it is 36,000 times faster" in slow.text
    assert "and 600 times faster than substitution" in slow.text
    assert "it is 60 times faster than the published method" in slow.text


def test_extrapolated_times_have_open_markers():
    figure = draw(full_table(PAPER_SECONDS[PAPER]))
    (ax,) = figure.axes
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [*METHODS, "printed in the paper, same markers", "extrapolated"]
    hollow = [line for line in ax.get_lines() if line.get_markerfacecolor() == "white"]
    assert sum(len(line.get_xdata()) for line in hollow) == 1
