"""The matrix of orders, and the plot of orders for different numbers of items."""

import numpy as np
import pandas as pd
import pytest

from plots.drawing import STRANGE, assert_nothing_is_cut_off, draw, legend_texts, ticks
from questions.drawn_models import posterior_of, random_posterior
from sequela import InputError, example_theta, order_matrix
from sequela.plots.labels import short
from sequela.plots.order_curve import plot_order_curve
from sequela.plots.order_matrix import plot_order_matrix
from sequela.questions import Orders


def orders_of(probability, se=0.0, observed=0.5, labels=None):
    n = len(probability)
    labels = labels or [f"item {k}" for k in range(n)]

    def table(values):
        return pd.DataFrame(np.broadcast_to(values, (n, n)).copy(), labels, labels)

    return Orders(table(probability), table(se), table(observed), table("exact"), 0, None)


def ladder(n):
    """Return probabilities of orders: item n - 1 usually comes first, then n - 2, and so on."""
    k = np.arange(n)
    found = 0.5 + 0.4 * (k[:, None] - k[None, :]) / n
    np.fill_diagonal(found, np.nan)
    return found


# --- The matrix -----------------------------------------------------------------------------------


def test_who_comes_first_stands_on_top():
    ax = plot_order_matrix(orders_of(ladder(5)))
    assert ticks(ax.yaxis) == [f"item {k}" for k in (4, 3, 2, 1, 0)]
    assert ticks(ax.xaxis) == ticks(ax.yaxis)
    drawn = ax.images[0].get_array()
    np.testing.assert_allclose(
        np.asarray(drawn)[np.triu_indices(5, 1)],
        ladder(5)[::-1, ::-1][np.triu_indices(5, 1)],
    )
    assert (np.asarray(drawn)[np.triu_indices(5, 1)] > 0.5).all()
    assert ax.images[0].get_clim() == (0.0, 1.0)


def test_real_orders_are_drawn():
    orders = order_matrix(example_theta())
    ax = plot_order_matrix(orders, rare=1e-6)
    rows = ticks(ax.yaxis)
    assert rows.index("step 1") < rows.index("step 2") < rows.index("step 3")
    drawn = np.asarray(ax.images[0].get_array())
    off = ~np.eye(len(rows), dtype=bool)
    np.testing.assert_array_equal(drawn[off], orders.probability.loc[rows, rows].to_numpy()[off])
    assert "grey" not in ax.get_xlabel()  # no pair is uncertain or rare
    assert_nothing_is_cut_off(ax)


def test_probabilities_are_written_if_items_are_few(plt):
    p = np.array([[np.nan, 0.999, 1.0], [0.001, np.nan, 0.25], [0.0, 0.75, np.nan]])
    ax = plot_order_matrix(orders_of(p))
    assert sorted(x.get_text() for x in ax.texts) == sorted(
        [">.99", "1", "<.01", ".25", "0", ".75"]
    )
    for given, annotate, count in ((p, False, 0), (ladder(17), None, 0), (ladder(17), True, 272)):
        _, mine = plt.subplots()
        plot_order_matrix(orders_of(given), annotate=annotate, ax=mine)
        assert len(mine.texts) == count


def test_uncertain_and_rare_cells_fade():
    se, observed = np.zeros((3, 3)), np.full((3, 3), 0.5)
    se[0, 1] = se[1, 0] = 0.05
    se[0, 2] = se[2, 0] = np.inf
    observed[1, 2] = observed[2, 1] = 0.002
    ax = plot_order_matrix(orders_of(ladder(3), se, observed), uncertain=0.1, rare=0.01)
    alpha = ax.images[0].get_alpha()
    # The plot shows the items in the order 2, 1, 0.
    assert alpha[1, 2] == pytest.approx(0.5)
    assert 0.0 < alpha[0, 2] < 0.2
    assert alpha[0, 1] == pytest.approx(0.2)
    assert "standard error near 0.1, or both seen in under 1%" in ax.get_xlabel()
    ax = plot_order_matrix(orders_of(ladder(3), 0.0, observed), rare=0.0)
    off = ~np.eye(3, dtype=bool)
    assert (ax.images[0].get_alpha()[off] == 1.0).all()


def test_what_was_never_seen_is_left_blank():
    p = ladder(3)
    p[0, 1] = p[1, 0] = np.nan
    ax = plot_order_matrix(orders_of(p, np.where(np.isnan(p), np.inf, 0.0)))
    assert len(ax.texts) == 4
    draw(ax)


def test_strange_labels_are_literal_in_the_matrix(plt):
    _, mine = plt.subplots()
    n = len(STRANGE)
    assert plot_order_matrix(orders_of(ladder(n), labels=STRANGE), ax=mine) is mine
    assert ticks(mine.yaxis) == short(STRANGE[::-1])  # the item that was given last is shown first
    assert not any(x.get_parse_math() for x in mine.yaxis.get_ticklabels())
    draw(mine)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"uncertain": 0.0}, "uncertain is 0.0"),
        ({"rare": -0.1}, "rare is -0.1"),
        ({"ax": []}, "ax is of type list"),
    ],
)
def test_wrong_arguments_of_the_matrix_are_named(options, words):
    with pytest.raises(InputError, match=words):
        plot_order_matrix(orders_of(ladder(3)), **options)
    with pytest.raises(InputError, match="orders is of type DataFrame; expected Orders"):
        plot_order_matrix(orders_of(ladder(3)).probability)


# --- The matrix of a posterior --------------------------------------------------------------------


def test_cells_of_a_posterior_fade_with_the_uncertainty_of_the_order():
    """Item a comes before b in all models. Item c comes first in half of the models."""
    theta = np.tile(np.diag([1.0, -3.0, 0.0]), (2, 20, 1, 1))
    theta[:, :, 0, 1] = 4.0
    theta[:, ::2, 2, 2] = 3.0
    theta[:, 1::2, 2, 2] = -3.0
    orders = order_matrix(posterior_of(theta))
    assert orders.usually_first.loc["a", "b"] == 1.0
    assert orders.usually_first.loc["a", "c"] == 0.5
    ax = plot_order_matrix(orders, rare=0.0)
    rows = ticks(ax.yaxis)
    alpha = ax.images[0].get_alpha()
    a, b, c = (rows.index(label) for label in "abc")
    assert alpha[a, b] == alpha[b, a] == 1.0
    assert alpha[a, c] == alpha[c, a] == pytest.approx(0.12)
    assert "grey number: order less than 95% certain" in ax.get_xlabel()
    written = {text.get_text() for text in ax.texts}
    low, high = orders.low.loc["a", "c"], orders.high.loc["a", "c"]
    assert f"{low:.2f} to {high:.2f}".replace("0.", ".") in written
    assert len(ax.texts) == 12
    assert_nothing_is_cut_off(ax)


@pytest.mark.parametrize(("n", "texts_per_cell"), [(10, 2), (11, 1), (17, 0)])
def test_intervals_are_written_if_items_are_few(n, texts_per_cell):
    orders = order_matrix(random_posterior(n, draws=2), draws=2000, random_state=1, max_models=4)
    ax = plot_order_matrix(orders)
    assert len(ax.texts) == texts_per_cell * n * (n - 1)
    assert_nothing_is_cut_off(ax)


# --- The curve ------------------------------------------------------------------------------------


def curve(pairs=("a before b",)):
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "n": [100, 2, 10],
                    "probability": [0.9 - 0.1 * k, 0.5, 0.7],
                    "se": [0.01, 0.1, 0.05],
                    "pair": pair,
                }
            )
            for k, pair in enumerate(pairs)
        ],
        ignore_index=True,
    )


def test_the_curve_shows_the_table_in_order_of_n():
    ax = plot_order_curve(curve().drop(columns="pair"))
    line, _, (bars,) = ax.containers[0].lines
    np.testing.assert_allclose(line.get_xydata(), [[2, 0.5], [10, 0.7], [100, 0.9]])
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    np.testing.assert_allclose(ends, [[0.4, 0.6], [0.65, 0.75], [0.89, 0.91]])
    assert ax.get_xscale() == "log"
    assert ticks(ax.xaxis) == ["2", "10", "100"]
    assert ax.get_legend() is None
    assert_nothing_is_cut_off(ax)


def test_several_pairs_are_named_and_stand_beside_each_other():
    ax = plot_order_curve(curve(["$a$ before _b", "_c"]))
    assert legend_texts(ax) == ["$a$ before _b", "_c"]
    first, second = (x.lines[0] for x in ax.containers)
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    assert (first.get_xdata() < second.get_xdata()).all()
    np.testing.assert_allclose(first.get_xdata(), second.get_xdata(), rtol=0.1)
    draw(ax)


def test_pairs_of_labels_are_put_into_words():
    table = curve(["x"]).assign(pair=[("a", "b")] * 3)
    assert legend_texts(plot_order_curve(table)) == ["a before b"]


def test_a_short_range_is_not_logarithmic(plt):
    _, mine = plt.subplots()
    table = curve().assign(n=[4, 2, 3])
    assert plot_order_curve(table, ax=mine) is mine
    assert mine.get_xscale() == "linear"
    assert ticks(mine.xaxis) == ["2", "3", "4"]


def test_many_pairs_are_named_outside():
    ax = plot_order_curve(curve([f"pair {k} {'long ' * k}" for k in range(12)]))
    assert len(legend_texts(ax)) == 12
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1 - 1
    assert_nothing_is_cut_off(ax)


def test_wrong_tables_are_named():
    with pytest.raises(InputError, match="no column 'se'"):
        plot_order_curve(curve().drop(columns="se"))
    with pytest.raises(InputError, match="n = 2 more than once for the pair 'a before b'"):
        plot_order_curve(pd.concat([curve(), curve().iloc[[1]]]))
    with pytest.raises(InputError, match="missing values in row 1"):
        plot_order_curve(curve().assign(se=[0.1, np.nan, 0.1]))
    with pytest.raises(InputError, match="table is of type dict"):
        plot_order_curve({"n": [1]})
