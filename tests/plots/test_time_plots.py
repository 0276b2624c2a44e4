"""Plots of posterior densities of times, of samples in time, and of the clock curve."""

import numpy as np
import pandas as pd
import pytest

from plots.drawing import (
    STRANGE,
    assert_nothing_is_cut_off,
    draw,
    legend_texts,
    panel,
    strange_model,
    texts,
    ticks,
)
from sequela import InputError, Model, example_theta, simulate
from sequela.budget import Budget
from sequela.plots.clock_curve import plot_clock_curve
from sequela.plots.labels import short
from sequela.plots.time_densities import plot_time_densities
from sequela.plots.timeline import plot_timeline
from sequela.questions import clock_curve, sample_arrivals, sample_posteriors, time_posterior
from sequela.samples import as_samples


@pytest.fixture(scope="module")
def posteriors():
    theta = example_theta()
    return [time_posterior(theta, x) for x in (set(), {"first"}, {"first", "second", "left"})]


@pytest.fixture(scope="module")
def sampled():
    sample = {"first", "second", "left", "step 1", "step 2"}
    return time_posterior(
        example_theta(), sample, draws=64, budget=Budget(work=1.0), random_state=1
    )


# --- Densities ------------------------------------------------------------------------------------


def curves(ax):
    return [line for line in ax.lines if len(line.get_xdata()) > 1]


def test_the_curves_are_the_densities_and_the_dots_their_means(posteriors):
    ax = plot_time_densities(posteriors, labels=["none", "one", "three"])
    for line, found in zip(curves(ax), posteriors, strict=True):
        table = found.density(line.get_xdata())
        np.testing.assert_allclose(line.get_ydata(), table["density"], rtol=1e-6, atol=1e-9)
    dots = [line for line in ax.lines if len(line.get_xdata()) == 1]
    assert [x.get_xdata()[0] for x in dots] == [found.mean for found in posteriors]
    assert legend_texts(ax) == [
        f"{name}: mean {found.mean:.2f}"
        for name, found in zip(["none", "one", "three"], posteriors, strict=True)
    ]
    assert len(ax.collections) == 3  # three vertical lines; exact results have no band
    assert_nothing_is_cut_off(ax)


def test_the_picture_holds_nearly_all_of_each(posteriors):
    ax = plot_time_densities(posteriors)
    last = ax.get_xlim()[1]
    assert all(found.density([last])["cumulative"].iloc[0] >= 0.99 for found in posteriors)


def test_a_band_shows_the_error_where_sampled(sampled, posteriors):
    exact = plot_time_densities(posteriors[1])
    assert len(exact.collections) == 1
    ax = plot_time_densities({"drawn": sampled})
    band = ax.collections[0].get_paths()[0].vertices
    table = sampled.density(curves(ax)[0].get_xdata())
    top = (table["density"] + 2 * table["se"]).max()
    assert band[:, 1].max() == pytest.approx(top, rel=1e-6)
    assert band[:, 1].min() >= 0.0
    assert legend_texts(ax)[0].startswith("drawn: mean ")
    assert "±" in legend_texts(ax)[0]


def test_times_can_be_given(posteriors, plt):
    _, mine = plt.subplots()
    assert plot_time_densities(posteriors[:1], times=[0.0, 0.5, 1.0], ax=mine) is mine
    np.testing.assert_array_equal(curves(mine)[0].get_xdata(), [0.0, 0.5, 1.0])


def test_strange_labels_of_densities_are_literal(posteriors):
    ax = plot_time_densities([posteriors[1]] * len(STRANGE), labels=STRANGE, times=[0.0, 1.0])
    assert legend_texts(ax)[0].startswith("$x_1^2$: mean")
    assert legend_texts(ax)[6].startswith("_hidden: mean")
    draw(ax)
    assert legend_texts(plot_time_densities(posteriors))[2].startswith("3: mean")


def test_wrong_posteriors_are_named(posteriors):
    with pytest.raises(InputError, match="labels has 2 entries for 3 posteriors"):
        plot_time_densities(posteriors, labels=["a", "b"])
    with pytest.raises(InputError, match="position 1: found str; expected a TimePosterior"):
        plot_time_densities([posteriors[0], "no"])
    with pytest.raises(InputError, match="posteriors is empty"):
        plot_time_densities([])
    with pytest.raises(InputError, match="posteriors is of type int"):
        plot_time_densities(3)


# --- Samples in time ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    return simulate(example_theta(), 60, random_state=1).to_dataset().without_times()


@pytest.fixture(scope="module")
def in_time(data):
    return sample_posteriors(example_theta(), data)


def test_columns_are_samples_by_time_and_cells_their_arrivals(data, in_time):
    found = in_time
    ax = plot_timeline(found)
    columns = np.argsort(found.time_mean, kind="stable")
    rows = [data.items.index(x) for x in ticks(ax.yaxis)]
    drawn = np.ma.filled(ax.images[0].get_array(), np.nan)
    np.testing.assert_allclose(drawn, found.arrival_mean[np.ix_(columns, rows)].T)
    # Cells of absent items are blank.
    np.testing.assert_array_equal(np.isnan(drawn), ~data.values[np.ix_(columns, rows)].T)
    steps = panel(ax, "times").patches[-1].get_data()
    np.testing.assert_allclose(steps.values, found.time_mean[columns])
    assert_nothing_is_cut_off(ax)


def test_one_cell_is_what_sample_arrivals_says():
    model = Model(example_theta())
    samples = as_samples(model, [{"first", "second"}])
    ax = plot_timeline(sample_posteriors(model, samples))
    table = sample_arrivals(model, {"first", "second"})
    assert ticks(ax.yaxis) == list(table.index)
    np.testing.assert_allclose(ax.images[0].get_array()[:, 0], table["arrival_mean"])


def test_early_items_stand_on_top_with_their_shares(data, in_time):
    ax = plot_timeline(in_time)
    rows = ticks(ax.yaxis)
    assert rows.index("first") < rows.index("second")
    assert rows.index("step 1") < rows.index("step 2")
    shares = data.frequencies
    assert [x.get_text() for x in ax.texts] == [f"{100 * shares[x]:.0f}%" for x in rows]


def test_the_most_frequent_items_are_kept_and_the_others_counted(data, in_time):
    ax = plot_timeline(in_time, max_items=4)
    kept = set(data.frequencies.sort_values(ascending=False, kind="stable").index[:4])
    assert set(ticks(ax.yaxis)) == kept
    assert (
        ax.get_xlabel()
        == "60 samples by pseudo-time; 6 items not shown; unit of time: that of the model"
    )


def test_arrivals_can_be_relative(in_time):
    ax = plot_timeline(in_time, relative=True)
    values = ax.images[0].get_array().compressed()
    assert ((values > 0.0) & (values < 1.0)).all()
    assert ax.images[0].get_clim() == (0.0, 1.0)


def test_many_samples_and_strange_labels(plt):
    model = strange_model()
    samples = simulate(model, 378, random_state=2).to_dataset()
    _, mine = plt.subplots(figsize=(9, 4), layout="constrained")
    assert plot_timeline(sample_posteriors(model, samples), ax=mine) is mine
    assert set(ticks(mine.yaxis)) == set(short(STRANGE))
    assert not any(x.get_parse_math() for x in mine.yaxis.get_ticklabels())
    draw(mine)
    assert "$x_1^2$" in ticks(mine.yaxis)


def test_wrong_arguments_of_the_timeline_are_named(data, in_time):
    with pytest.raises(InputError, match="max_items is 0"):
        plot_timeline(in_time, max_items=0)
    with pytest.raises(InputError, match="no sample has any item"):
        plot_timeline(sample_posteriors([[0.0]], [[0], [0]]))
    with pytest.raises(InputError, match="type Dataset; expected SamplePosteriors"):
        plot_timeline(data)


# --- The clock ------------------------------------------------------------------------------------


def test_the_clock_curve_shows_its_table(plt):
    table = clock_curve(example_theta(), sizes=[10, 0, 3], draws=50, random_state=1)
    _, mine = plt.subplots()
    assert plot_clock_curve(table, ax=mine) is mine
    line = mine.containers[0].lines[0]
    ordered = table.sort_index()
    np.testing.assert_allclose(line.get_xydata(), np.c_[ordered.index, ordered["variance"]])
    # The dotted line is the variance of the time without items. The rate of observation is 1 here.
    assert mine.lines[0].get_ydata()[0] == pytest.approx(1.0)
    assert "without items" in texts(mine)


def test_a_long_clock_curve_is_logarithmic():
    table = pd.DataFrame(
        {"variance": [0.25, 0.1, 0.05], "se": 0.01, "share": [1.0, 0.4, 0.2], "item": ""},
        index=pd.Index([0, 10, 400], name="m"),
    )
    ax = plot_clock_curve(table)
    assert ax.get_xscale() == "symlog"
    assert ticks(ax.xaxis) == ["0", "10", "400"]
    # The variance without items comes from the table. This variance is not 1 if the rate of the
    # observation is not 1.
    assert ax.lines[0].get_ydata()[0] == pytest.approx(0.25)
    assert_nothing_is_cut_off(ax)
    with pytest.raises(InputError, match=r"no column 'se'.*clock_curve\(model\)"):
        plot_clock_curve(table.drop(columns="se"))
