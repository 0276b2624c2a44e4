"""The plot of a planned study."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from plots.drawing import LONG, legend_texts
from sequela import InputError, plots
from sequela.questions import StudyPlan


def made_plan(reliable=(True, True, True, False)):
    table = pd.DataFrame(
        {
            "samples": [0, 100, 0, 100], "clocks": [0, 0, 20, 20],
            "right": [0.0, 0.1, 0.4, 0.7], "right_se": 0.02, "wrong": [0.0, 0.01, 0.02, 0.03],
            "reliable": reliable,
        }
    )  # fmt: skip
    return StudyPlan(
        table=table, first="$x_1$", second=LONG, now=0.6, samples=50, method="reweight",
        certainty=0.95, clock_frequency=0.1, studies=400, seed=1,
    )  # fmt: skip


def test_a_curve_for_each_number_of_clocks():
    ax = plots.plot_study_plan(made_plan(), ax=Figure().subplots())
    curves = ["0 more clock items", "20 more clock items", "wrong order called"]
    assert legend_texts(ax) == [*curves, "not reliable: too few draws"]
    sure = plots.plot_study_plan(made_plan((True,) * 4), ax=Figure().subplots())
    assert legend_texts(sure) == curves
    heights = [line.get_ydata() for line in ax.lines]
    assert any(np.array_equal(y, [0.4, 0.7]) for y in heights)
    assert any(np.array_equal(y, [0.02, 0.03]) for y in heights)
    assert "$x_1$" in ax.get_title()
    assert "50 samples now" in ax.get_title()


def test_unreliable_points_are_hollow():
    def hollow(plan):
        ax = plots.plot_study_plan(plan, ax=Figure().subplots())
        return [len(x.get_xdata()) for x in ax.lines if x.get_markerfacecolor() == "white"]

    assert sum(hollow(made_plan())) == 1
    assert sum(hollow(made_plan((True,) * 4))) == 0


def test_something_else_is_refused():
    with pytest.raises(InputError, match="expected StudyPlan"):
        plots.plot_study_plan(made_plan().table)
