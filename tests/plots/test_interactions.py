"""The plot of strong interactions as a graph with arrows."""

import matplotlib.colors
import numpy as np
import pandas as pd
import pytest

from plots.drawing import (
    assert_apart,
    assert_nothing_is_cut_off,
    draw,
    legend_texts,
    sparse_model,
    strange_model,
    texts,
)
from sequela import InputError, Model, example_theta
from sequela.plots.labels import short
from sequela.plots.style import INHIBITS, PROMOTES

pytest.importorskip("networkx")

from sequela.plots.interactions import plot_interactions


def test_every_interaction_is_an_arrow_from_its_item_to_the_other():
    model = Model(example_theta())
    ax = plot_interactions(model)
    names = [x for x in ax.texts if x.get_text() in model.items]
    at = {x.get_text(): np.array(x.xy) for x in names}
    drawn = set()
    for arrow in ax.patches:
        ends = [
            min(at, key=lambda label, end=end: np.linalg.norm(at[label] - end))
            for end in arrow._posA_posB
        ]
        colour = matplotlib.colors.to_hex(arrow.get_edgecolor())
        drawn.add((*ends, {PROMOTES: 1, INHIBITS: -1}[colour]))
    table = model.interactions()
    expected = {
        (a, b, int(np.sign(x)))
        for a, b, x in zip(table["from"], table["to"], table["effect"], strict=True)
    }
    assert drawn == expected


def test_promoting_and_inhibiting_differ_in_more_than_colour():
    ax = plot_interactions(example_theta())
    styles = {}
    for arrow in ax.patches:
        colour = matplotlib.colors.to_hex(arrow.get_edgecolor())
        styles.setdefault(colour, set()).add(
            (str(arrow.get_linestyle()), type(arrow.get_arrowstyle()).__name__)
        )
    (promotes,), (inhibits,) = styles[PROMOTES], styles[INHIBITS]
    assert promotes[0] != inhibits[0]
    assert promotes[1] != inhibits[1]
    assert legend_texts(ax) == ["promotes (x 54.6 to 148)", "inhibits (x 0.0183)"]


def test_only_the_strongest_are_drawn():
    model = sparse_model(20, 60)
    ax = plot_interactions(model, 7)
    assert len(ax.patches) == 7
    table = model.interactions().head(7)
    named = set(table["from"]) | set(table["to"])
    assert named == {x.get_text() for x in ax.texts} & set(model.items)
    assert any(f"the strongest 7 of {len(model.interactions())}" in x for x in texts(ax))


def test_strong_arrows_are_thick():
    ax = plot_interactions(Model([[0.0, 4.0, 1.0], [0.0, 0.0, -2.0], [0.0, 0.0, 0.0]]))
    assert np.argsort([-x.get_linewidth() for x in ax.patches]).tolist() == [0, 1, 2]


def test_the_area_of_a_node_is_its_rate_or_frequency():
    theta = [[0.0, 1.0], [0.0, -1.0]]
    areas = plot_interactions(theta).collections[0].get_sizes()
    assert areas[1] / areas[0] == pytest.approx(np.exp(-1.0))
    frequencies = pd.Series({"1": 0.5, "0": 0.25})
    ax = plot_interactions(theta, frequencies=frequencies)
    areas = ax.collections[0].get_sizes()
    assert areas[1] / areas[0] == pytest.approx(2.0)
    assert any("area of a node: frequency" in x for x in texts(ax))


def test_the_picture_is_the_same_every_time():
    places = [plot_interactions(sparse_model()).collections[0].get_offsets() for _ in range(2)]
    np.testing.assert_array_equal(*places)


@pytest.mark.parametrize("model", [sparse_model(12, 10), sparse_model(200, 150)])
def test_nodes_and_names_have_room(model):
    ax = plot_interactions(model)
    assert_nothing_is_cut_off(ax)
    at = np.asarray(ax.collections[0].get_offsets())
    far = np.linalg.norm(at[:, None] - at[None], axis=2)[~np.eye(len(at), dtype=bool)]
    assert far.min() > 0.3
    assert_apart([x for x in ax.texts if x.get_text().startswith("item")])


def test_strange_labels_are_literal():
    model = strange_model()
    ax = plot_interactions(model)
    shown = short(model.items, 14)
    names = [x for x in ax.texts if x.get_text() in shown]
    assert len(names) == len(shown)
    assert not any(x.get_parse_math() for x in names)
    draw(ax)


def test_a_model_without_interactions_says_so(plt):
    _, mine = plt.subplots()
    assert plot_interactions([[-1.0, 0.0], [0.0, -1.0]], ax=mine) is mine
    assert "no interactions" in texts(mine)
    draw(mine)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_pairs": 0}, "max_pairs is 0"),
        ({"frequencies": [0.1]}, "frequencies is of type list"),
        ({"frequencies": pd.Series({"first": 0.1})}, "for the item 'second'"),
        ({"ax": 3}, "ax is of type int"),
    ],
)
def test_wrong_arguments_are_named(options, words):
    with pytest.raises(InputError, match=words):
        plot_interactions(example_theta(), **options)
