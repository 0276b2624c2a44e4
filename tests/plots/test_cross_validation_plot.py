"""The plot of a cross-validation: the held-out likelihood of each penalty."""

import pandas as pd
import pytest

from plots.drawing import assert_nothing_is_cut_off, legend_texts
from sequela import InputError
from sequela.plots.cross_validation import plot_cross_validation

RESULTS = pd.DataFrame(
    {
        "penalty": [0.1, 0.03, 0.01],
        "log_likelihood": [-4.8, -4.31, -4.3],
        "standard_error": [0.1, 0.05, 0.06],
        "interactions": [1.0, 6.0, 18.0],
        "best": [False, False, True],
        "chosen": [False, True, False],
    }
)


def test_the_table_is_drawn_and_the_chosen_penalty_marked(plt):
    ax = plot_cross_validation(RESULTS)
    line = ax.containers[0].lines[0]
    assert line.get_xydata().tolist() == RESULTS[["penalty", "log_likelihood"]].to_numpy().tolist()
    assert "chosen: 0.03" in legend_texts(ax)
    assert ax.get_xscale() == "log"
    assert_nothing_is_cut_off(ax)
    _, mine = plt.subplots()
    assert plot_cross_validation(RESULTS, ax=mine) is mine


def test_wrong_tables_are_named():
    with pytest.raises(InputError, match="no column 'chosen'"):
        plot_cross_validation(RESULTS.drop(columns="chosen"))
    with pytest.raises(InputError, match="results is of type list"):
        plot_cross_validation([])
