"""The plot of theta as a heat map."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plots.drawing import (
    STRANGE,
    assert_nothing_is_cut_off,
    draw,
    panel,
    sparse_model,
    strange_model,
    texts,
    ticks,
)
from questions.drawn_models import posterior_of
from sequela import InputError, Model, example_theta
from sequela.plots.labels import short
from sequela.plots.theta import plot_theta, structural_order


def shown_items(model, ax):
    return [model.items.index(label) for label in ticks(ax.yaxis)]


def test_cells_hold_the_effects_of_rows_on_columns():
    theta = example_theta()
    model = Model(theta)
    ax = plot_theta(model)
    rows = ticks(ax.yaxis)
    assert rows == ticks(ax.xaxis)
    drawn = ax.images[0].get_array()
    expected = theta.loc[rows, rows].to_numpy()
    off = ~np.eye(len(rows), dtype=bool)
    np.testing.assert_array_equal(np.asarray(drawn)[off], expected[off])
    assert np.ma.getmaskarray(drawn)[~off].all()
    low, high = ax.images[0].get_clim()
    assert low == -high


def test_base_rates_have_a_strip_of_their_own():
    theta = example_theta()
    ax = plot_theta(theta)
    strip = panel(ax, "base rates")
    rows = ticks(ax.xaxis)
    expected = np.exp([theta.loc[x, x] for x in rows])
    np.testing.assert_allclose(strip.images[0].get_array(), expected[None, :])
    assert strip.get_xlim() == ax.get_xlim()


def test_items_without_interactions_are_folded_and_counted():
    ax = plot_theta(example_theta())
    assert not any("clock" in label for label in ticks(ax.yaxis))
    assert "+ 3 items without interactions, base rate 0.05 to 0.37" in ax.get_xlabel()
    ax = plot_theta(example_theta(), fold=False)
    assert sum("clock" in label for label in ticks(ax.yaxis)) == 3
    assert "without interactions" not in ax.get_xlabel()


def test_max_items_keeps_the_strongest_and_counts_the_rest():
    model = Model(example_theta())
    ax = plot_theta(model, max_items=2)
    assert sorted(ticks(ax.yaxis)) == ["step 2", "step 3"]
    assert "+ 5 items with weaker interactions" in ax.get_xlabel()


def test_a_model_without_interactions_is_drawn_and_says_so():
    ax = plot_theta(np.diag([-1.0, -2.0, -3.0]))
    assert "no interactions" in ax.get_xlabel()
    assert ticks(ax.yaxis) == ["0", "1", "2"]
    draw(ax)
    draw(plot_theta([[-1.0]]))


def test_the_order_given_is_kept():
    model = strange_model()
    assert ticks(plot_theta(model, order="given").yaxis) == short(STRANGE)


def test_linked_items_stand_together():
    rng = np.random.default_rng(0)
    n = 24
    block = rng.permutation(n) % 4
    linked = block[:, None] == block[None, :]
    effects = np.where(linked, rng.normal(size=(n, n)), 0.0)
    np.fill_diagonal(effects, 0.0)
    order = structural_order(effects)
    assert sorted(order) == list(range(n))
    assert np.count_nonzero(np.diff(block[order])) == 3  # four blocks of items have three borders


def test_what_acts_comes_before_what_it_acts_on():
    # Each item acts on the next one, but the columns of the matrix are shuffled.
    n = 12
    shuffled = np.random.default_rng(3).permutation(n)
    effects = np.zeros((n, n))
    for a, b in pairwise(shuffled):
        effects[a, b] = 2.0
    np.testing.assert_array_equal(structural_order(effects), shuffled)


@given(st.integers(1, 12), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_an_order_is_a_permutation(n, seed):
    rng = np.random.default_rng(seed)
    effects = rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.2)
    np.fill_diagonal(effects, 0.0)
    assert sorted(structural_order(effects)) == list(range(n))


def test_an_extreme_effect_does_not_wash_out_the_others(plt):
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(30, 30))
    theta[3, 4] = 100.0
    _, mine = plt.subplots()
    assert plot_theta(theta, ax=mine).images[0].get_clim()[1] < 5.0
    _, mine = plt.subplots()
    assert plot_theta(theta, limit=7.0, ax=mine).images[0].get_clim() == (-7.0, 7.0)


def test_numbers_are_written_where_there_is_room(plt):
    ax = plot_theta(example_theta())
    assert {"4.0", "5.0", "−4.0"} <= set(texts(ax))
    _, mine = plt.subplots()
    assert not plot_theta(sparse_model(40, 400), ax=mine).texts


@pytest.mark.parametrize("n", [3, 20, 200])
def test_labels_do_not_run_into_each_other(n):
    ax = plot_theta(sparse_model(n, 4 * n), fold=False)
    assert_nothing_is_cut_off(ax)
    boxes = [x.get_window_extent() for x in ax.yaxis.get_ticklabels()]
    middles = np.array([(x.y0 + x.y1) / 2 for x in boxes])
    height = max(x.height for x in boxes)
    assert (np.abs(np.diff(middles)) > 0.75 * height).all()
    size = ax.yaxis.get_ticklabels()[0].get_fontsize()
    assert 5.0 <= size <= 9.0


def test_strange_labels_are_literal():
    ax = plot_theta(strange_model(), order="given")
    labels = [*ax.xaxis.get_ticklabels(), *ax.yaxis.get_ticklabels()]
    assert not any(x.get_parse_math() or x.get_usetex() for x in labels)
    draw(ax)
    assert ticks(ax.xaxis)[:2] == ["$x_1^2$", "a_b"]
    assert not any(x.get_parse_math() for x in ax.xaxis.get_ticklabels())


def test_it_draws_where_it_is_told(plt):
    _, (left, right) = plt.subplots(1, 2)
    assert plot_theta(example_theta(), ax=right) is right
    assert not left.images
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": "alphabet"}, "order is 'alphabet'"),
        ({"max_items": 0}, "max_items is 0"),
        ({"limit": -1.0}, "limit is -1.0"),
        ({"limit": "big"}, "limit is 'big'"),
        ({"ax": "here"}, "ax is of type str"),
    ],
)
def test_wrong_arguments_are_named(options, words):
    with pytest.raises(InputError, match=words):
        plot_theta(example_theta(), **options)


# --- A posterior ----------------------------------------------------------------------------------


def certain_and_not():
    """Return a posterior: a promotes b in all models, c promotes a in half and inhibits it in half.

    Item d does not interact.
    """
    theta = np.tile(np.diag([-1.0, -2.0, -1.0, 0.0]), (2, 20, 1, 1))
    theta[:, :, 0, 1] = np.linspace(1.0, 3.0, 20)
    theta[:, ::2, 2, 0] = 1.0
    theta[:, 1::2, 2, 0] = -0.8
    return posterior_of(theta)


def test_means_of_a_posterior_fade_with_the_uncertainty_of_the_sign():
    ax = plot_theta(certain_and_not(), order="given")
    assert ticks(ax.yaxis) == ["a", "b", "c"]
    assert "+ 1 item without probable interactions, base rate 1" in ax.get_xlabel()
    assert "grey: the sign of the effect is less than 95% certain" in ax.get_xlabel()
    drawn = np.asarray(ax.images[0].get_array())
    assert drawn[0, 1] == pytest.approx(2.0)
    assert drawn[2, 0] == pytest.approx(0.1)
    alpha = ax.images[0].get_alpha()
    assert alpha[0, 1] == 1.0
    assert alpha[2, 0] == pytest.approx(0.12)
    np.testing.assert_array_equal(np.diagonal(alpha), 1.0)
    assert ax.get_facecolor()[0] < 1.0
    rates = panel(ax, "base rates").images[0].get_array()
    np.testing.assert_allclose(rates, np.exp([[-1.0, -2.0, -1.0]]))
    assert "-0.0" not in texts(ax)
    assert_nothing_is_cut_off(ax)


def test_a_posterior_without_folding_shows_all_items():
    ax = plot_theta(certain_and_not(), fold=False)
    assert sorted(ticks(ax.yaxis)) == ["a", "b", "c", "d"]
    assert "without" not in ax.get_xlabel()


def test_a_single_model_has_no_faint_cells():
    ax = plot_theta(example_theta())
    assert ax.images[0].get_alpha() is None
    assert "grey" not in ax.get_xlabel()
