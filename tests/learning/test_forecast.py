"""The time and memory of a fit are predicted, and shown if the fit takes long."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from sequela import Dataset, Settings
from sequela.learning.forecast import Forecast, announce, forecast
from sequela.learning.progress import FitProgress, announce_preparation
from sequela.likelihood.objective import Objective
from sequela.observation import as_observation


def objective(sets, times=None, threads=1):
    data = Dataset.coerce(sets, times=times)
    settings = Settings(random_state=1, n_threads=threads)
    return Objective(data, as_observation(None), settings)


def random_sets(count, n, size):
    rng = np.random.default_rng(3)
    X = np.zeros((count, n), dtype=int)
    for row in X:
        row[rng.choice(n, size, replace=False)] = 1
    return X


def test_small_fit_says_nothing(caplog):
    expected = forecast(objective(random_sets(50, 10, 4)), 1)
    announce(expected)
    assert expected.seconds < 1.0
    assert not expected.is_long
    assert not caplog.records


def test_long_fit_says_what_it_takes(caplog):
    expected = forecast(objective(random_sets(400, 60, 14), times=np.ones(400)), 1)
    assert expected.seconds > 60.0
    with caplog.at_level(logging.WARNING, logger="sequela"):
        announce(expected)
    assert "minutes" in caplog.text
    assert "GB of memory" in caplog.text
    assert f"{expected.evaluations} evaluations" in caplog.text


def test_forecast_grows_with_starts_sets_and_items_and_falls_with_threads():
    sets = random_sets(40, 60, 14)
    one = forecast(objective(sets), 1)
    assert forecast(objective(sets), 3).seconds == pytest.approx(3 * one.seconds)
    assert forecast(objective(sets, threads=2), 1).seconds == pytest.approx(one.seconds / 2)
    assert forecast(objective(random_sets(80, 60, 14)), 1).seconds > 1.5 * one.seconds
    wide = np.hstack([sets, np.eye(40, 600, dtype=int)])
    assert forecast(objective(wide), 1).memory > one.memory + 8 * 600**2


def test_work_follows_the_way_of_each_set():
    # One set is too large for a lattice. In a model without interactions, its probability is an
    # integral over the time. If all items may interact, its orders are sampled.
    problem = objective(np.vstack([random_sets(5, 40, 3), np.ones((1, 40), dtype=int)]))
    found = problem.work()
    assert found.integrals > 0.0
    assert found.sampled == 0.0
    problem.prepare(np.ones((40, 40), dtype=bool))
    found = problem.work()
    assert found.integrals == 0.0
    assert found.sampled == 40.0 * 40.0


def test_hours_are_hours():
    assert "3 hours" in str(Forecast(evaluation_seconds=180.0, evaluations=60, memory=1e9))


@pytest.mark.parametrize("long", [True, False])
def test_lines_begin_at_once_where_a_fit_takes_long(capsys, long):
    with FitProgress("lines", 1e-4, long=long) as progress:
        progress.begin("fit")
    assert capsys.readouterr().err == ("fit: begins\n" if long else "")


@pytest.mark.parametrize(
    ("show", "cells", "said"),
    [("lines", 1_000_000, True), ("lines", 5000, False), (True, 1_000_000, False)],
)
def test_many_cells_are_announced_before_they_are_prepared(capsys, show, cells, said):
    announce_preparation(show, cells)
    assert bool(capsys.readouterr().err) == said
