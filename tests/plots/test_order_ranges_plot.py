"""The plot of orders with the ranges that the data allow."""

import numpy as np
import pandas as pd
import pytest

from plots.drawing import STRANGE, assert_nothing_is_cut_off, legend_texts, ticks
from sequela import Dataset, InputError, fit, questions
from sequela.plots import plot_order_ranges

CAN, CANNOT = "the data can tell", "the data cannot tell"


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "first": ["a", "b", "c"],
            "second": ["b", "c", "d"],
            "probability": [0.8, 0.9, 0.7],
            "low": [0.6, 0.1, np.nan],
            "high": [0.95, 0.99, np.nan],
            "verdict": [CAN, CANNOT, "not checked"],
        }
    )


def test_each_pair_has_its_range_and_its_verdict(table):
    ax = plot_order_ranges(table)
    assert ticks(ax.yaxis) == ["a before b", "b before c"]
    assert legend_texts(ax) == [CAN, CANNOT]
    ranges = [line.get_segments()[0][:, 0].tolist() for line in ax.collections]
    assert ranges == [[0.6, 0.95], [0.1, 0.99]]
    points = {line.get_label(): list(line.get_xdata()) for line in ax.lines}
    assert points[CAN] == [0.8]
    assert points[CANNOT] == [0.9]
    assert_nothing_is_cut_off(ax)


def test_uncertain_orders_are_open(table):
    ax = plot_order_ranges(table)
    faces = {line.get_label(): line.get_markerfacecolor() for line in ax.lines}
    assert faces[CANNOT] == "white"
    assert faces[CAN] != "white"


def test_the_result_of_a_check_is_drawn():
    sets = 40 * [[0, 0]] + 20 * [[1, 0]] + 5 * [[0, 1]] + 35 * [[1, 1]]
    pair = Dataset(sets, items=["a", "b"])
    check = questions.order_ranges(fit(pair, penalty=0.01), pair, random_state=1)
    assert legend_texts(plot_order_ranges(check)) == [CANNOT]


def test_strange_labels_fit(table):
    labels = [*STRANGE, *STRANGE][:4]
    table["first"], table["second"] = labels[:3], labels[1:4]
    assert_nothing_is_cut_off(plot_order_ranges(table))


def test_at_most_this_many_pairs(table):
    assert len(ticks(plot_order_ranges(table, max_pairs=1).yaxis)) == 1


def test_without_ranges_the_error_says_what_to_do(table):
    with pytest.raises(InputError, match="no order has a range"):
        plot_order_ranges(table.tail(1))
    with pytest.raises(InputError, match="no column 'low'"):
        plot_order_ranges(table.drop(columns="low"))
