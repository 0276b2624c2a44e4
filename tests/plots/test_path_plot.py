"""The plot of interactions and likelihood for decreasing penalties."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plots.drawing import STRANGE, assert_apart, assert_nothing_is_cut_off, draw, panel, ticks
from sequela import Exponential, InputError
from sequela.learning.penalty_path import PenaltyPath
from sequela.plots.path import _apart, plot_path
from sequela.plots.style import INHIBITS, PROMOTES


def made(penalties=(0.1, 0.03, 0.01), n=4, items=None, seed=0):
    """Return a path along which all interactions grow from 0 to their final values."""
    rng = np.random.default_rng(seed)
    final = rng.normal(size=(n, n))
    steps = np.linspace(0.0, 1.0, len(penalties))
    thetas = [np.where(np.eye(n, dtype=bool), final, step * final) for step in steps]
    table = pd.DataFrame(
        {
            "penalty": penalties,
            "log_likelihood": -3.0 + steps,
            "interactions": [int(n * (n - 1) * (step > 0)) for step in steps],
        }
    )
    items = tuple(items or (f"item {k}" for k in range(n)))
    return PenaltyPath(table=table, thetas=thetas, items=items, observation=Exponential(), seed=1)


def test_each_interaction_is_a_line():
    path = made()
    ax = plot_path(path)
    lines = [x for x in ax.lines if len(x.get_xdata()) == 3]
    drawn = {tuple(np.round(x.get_ydata(), 12)) for x in lines}
    thetas = np.array(path.thetas)
    expected = {tuple(np.round(thetas[:, i, j], 12)) for i in range(4) for j in range(4) if i != j}
    assert drawn == expected
    for line in lines:
        np.testing.assert_array_equal(line.get_xdata(), path.table["penalty"])
        up = line.get_ydata()[-1] > 0
        assert line.get_color() == (PROMOTES if up else INHIBITS)
        assert line.get_linestyle() == ("-" if up else "--")
    assert ax.get_xlim() == (0.1, 0.01)  # the axis goes from large to small penalties
    assert_nothing_is_cut_off(ax)


def test_the_strongest_are_named():
    path = made()
    ax = plot_path(path, max_labels=3)
    final = path.thetas[-1].copy()
    np.fill_diagonal(final, 0.0)
    strongest = np.argsort(-np.abs(final), axis=None)[:3]
    expected = {f"item {k // 4} → item {k % 4}" for k in strongest}
    assert {x.get_text() for x in ax.texts} == expected
    assert not plot_path(path, max_labels=0).texts


def test_names_are_apart_and_literal():
    n = len(STRANGE)
    ax = plot_path(made(n=n, items=STRANGE), max_labels=20)
    assert len(ax.texts) == 20
    assert not any(x.get_parse_math() for x in ax.texts)
    draw(ax)
    assert_apart(ax.texts)


def test_the_panel_shows_likelihood_and_number_of_interactions():
    path = made()
    ax = plot_path(path)
    above = panel(ax, "log-likelihood")
    np.testing.assert_allclose(
        above.lines[0].get_xydata(), path.table[["penalty", "log_likelihood"]]
    )
    assert above.get_xlim() == ax.get_xlim()
    assert ticks(above.xaxis) == ["0", "12", "12"]


@pytest.mark.parametrize("penalties", [(0.1, 0.01, 0.0), (0.05,), (0.0,), (0.05, 0.05)])
def test_odd_penalties_are_drawn(penalties, plt):
    _, mine = plt.subplots()
    assert plot_path(made(penalties), ax=mine) is mine
    draw(mine)


def test_real_paths_are_drawn():
    import sequela

    sets = sequela.simulate(sequela.example_theta(), 100, random_state=1).to_dataset()
    found = sequela.path(sets.without_times(), [0.2, 0.1, 0.05], random_state=1)
    ax = plot_path(found)
    assert ticks(panel(ax, "log-likelihood").xaxis) == [str(x) for x in found.table["interactions"]]
    draw(ax)


def test_wrong_arguments_are_named():
    with pytest.raises(InputError, match="path is of type list; expected PenaltyPath"):
        plot_path([])
    with pytest.raises(InputError, match="max_labels is -1"):
        plot_path(made(), max_labels=-1)


@given(st.lists(st.floats(0.0, 1.0), max_size=12).map(sorted), st.floats(0.0, 0.08))
def test_places_are_moved_apart_within_the_axes(places, gap):
    found = _apart(np.array(places), gap)
    assert (np.diff(found) >= gap - 1e-12).all()
    assert ((found >= 0.0) & (found <= 1.0 + 1e-12)).all()
    if len(places) < 2 or np.diff(places).min() > gap + 1e-9:
        np.testing.assert_allclose(found, places, atol=1e-12)
