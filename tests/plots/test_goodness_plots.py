"""Plots that compare observed with expected numbers: items, pairs, and set sizes."""

import numpy as np
import pandas as pd
import pytest

from plots.drawing import (
    assert_apart,
    assert_nothing_is_cut_off,
    draw,
    legend_texts,
    strange_model,
)
from sequela import InputError, example_theta, simulate
from sequela.plots.agreement import _ticks
from sequela.plots.co_occurrence import plot_co_occurrence
from sequela.plots.frequencies import plot_frequencies
from sequela.plots.set_sizes import plot_set_sizes
from sequela.questions import goodness_of_fit, item_frequencies


@pytest.fixture(scope="module")
def data():
    return simulate(example_theta(), 200, random_state=1).to_dataset().without_times()


@pytest.fixture(scope="module")
def goodness(data):
    return goodness_of_fit(example_theta(), data, draws=5000, random_state=2)


@pytest.fixture(scope="module")
def strange_goodness():
    model = strange_model()
    data = simulate(model, 100, random_state=1).to_dataset().values
    return goodness_of_fit(model, data, draws=2000, random_state=2)


def points(ax):
    return np.concatenate([np.asarray(x.get_offsets()) for x in scatters(ax)])


def scatters(ax):
    from matplotlib.collections import PathCollection

    return [x for x in ax.collections if isinstance(x, PathCollection)]


def in_rows(array):
    return np.array(sorted(map(tuple, np.asarray(array, dtype=float))))


# --- Items ----------------------------------------------------------------------------------------


def test_each_item_is_a_point(data):
    table = item_frequencies(example_theta(), data)
    ax = plot_frequencies(table)
    np.testing.assert_allclose(in_rows(points(ax)), in_rows(table[["model", "data"]]))
    assert_nothing_is_cut_off(ax)


def test_bars_are_two_standard_deviations_of_sampling_noise(data):
    table = item_frequencies(example_theta(), data)
    ax = plot_frequencies(table)
    (bars,) = ax.containers[0].lines[2]
    high = np.array([segment[1, 1] - row for segment, row in zip(
        bars.get_segments(), table["data"], strict=True)])  # fmt: skip
    share = table["model"].to_numpy()
    np.testing.assert_allclose(high, 2 * np.sqrt(share * (1 - share) / 200), rtol=1e-6)


def test_outliers_are_counted_named_and_of_another_colour(data):
    table = item_frequencies(example_theta(), data)
    table["z"] = 0.5
    moved = {"first": 4.0, "left": -3.0}
    for label, z in moved.items():
        table.loc[label, "z"] = z
        share = table.loc[label, "model"]
        table.loc[label, "data"] = share + z * np.sqrt(share * (1 - share) / 200)
    ax = plot_frequencies(table, beyond=2.5)
    inside, outside = scatters(ax)
    assert len(outside.get_offsets()) == 2
    assert tuple(inside.get_facecolor()[0]) != tuple(outside.get_facecolor()[0])
    assert [x.get_text() for x in ax.texts] == ["first", "left"]
    assert "beyond: 2" in legend_texts(ax)
    assert "within 2.5 standard deviations: 8" in legend_texts(ax)
    one = plot_frequencies(table, beyond=2.5, max_labels=1)
    assert [x.get_text() for x in one.texts] == ["first"]
    assert not plot_frequencies(table, beyond=9.0).texts


def test_many_items_have_a_band_instead_of_bars():
    rng = np.random.default_rng(1)
    share = rng.uniform(0.01, 0.5, 100)
    seen = rng.binomial(300, share) / 300
    z = (seen - share) / np.sqrt(share * (1 - share) / 300)
    table = pd.DataFrame(
        {"model": share, "se": 0.0, "data": seen, "z": z}, index=[f"i{k}" for k in range(100)]
    )
    ax = plot_frequencies(table)
    assert not ax.containers
    assert "two standard deviations of sampling noise" in legend_texts(ax)
    band = next(x for x in ax.collections if x not in scatters(ax)).get_paths()[0].vertices
    right = band[np.isclose(band[:, 0], ax.get_xlim()[1])][:, 1]
    x = ax.get_xlim()[1]
    assert right.max() == pytest.approx(x + 2 * np.sqrt(x * (1 - x) / 300), rel=1e-3)
    assert_apart(ax.texts)


def test_a_perfect_fit_is_no_trouble(plt):
    table = pd.DataFrame({"model": [0.1, 0.2], "se": 0.0, "data": [0.1, 0.2], "z": 0.0})
    _, mine = plt.subplots()
    assert plot_frequencies(table, ax=mine) is mine
    draw(mine)


def test_wrong_arguments_of_frequencies_are_named(data):
    with pytest.raises(InputError, match=r"no column 'data'.*item_frequencies\(model, data\)"):
        plot_frequencies(item_frequencies(example_theta()))
    table = item_frequencies(example_theta(), data)
    with pytest.raises(InputError, match="beyond is -1"):
        plot_frequencies(table, beyond=-1)
    with pytest.raises(InputError, match=r"max_labels is 1\.5"):
        plot_frequencies(table, max_labels=1.5)


# --- Pairs ----------------------------------------------------------------------------------------


def test_each_pair_is_a_point(goodness):
    ax = plot_co_occurrence(goodness)
    expected = in_rows(goodness.pairs[["expected", "observed"]])
    np.testing.assert_allclose(in_rows(points(ax)), expected)
    assert len(expected) == 45
    assert_nothing_is_cut_off(ax)


def test_the_furthest_pairs_are_named_without_overlap(goodness):
    ax = plot_co_occurrence(goodness, beyond=0.0, max_labels=8)
    names = [x.get_text() for x in ax.texts]
    assert 3 <= len(names) <= 8
    first = goodness.pairs.iloc[0]
    assert names[0] == f"{first['a']} + {first['b']}"
    assert_apart(ax.texts)


def test_strange_labels_of_pairs_are_literal(strange_goodness, plt):
    _, mine = plt.subplots(figsize=(8, 8))
    assert plot_co_occurrence(strange_goodness, beyond=0.0, max_labels=50, ax=mine) is mine
    assert len(mine.texts) > 3
    assert not any(x.get_parse_math() or x.get_usetex() for x in mine.texts)
    draw(mine)


def test_many_pairs_become_one_image(goodness):
    from dataclasses import replace

    many = pd.concat([goodness.pairs] * 50, ignore_index=True)
    ax = plot_co_occurrence(replace(goodness, pairs=many))
    assert all(x.get_rasterized() for x in scatters(ax))
    assert not any(x.get_rasterized() for x in scatters(plot_co_occurrence(goodness)))


def test_wrong_arguments_of_pairs_are_named(goodness):
    with pytest.raises(InputError, match="goodness is of type DataFrame"):
        plot_co_occurrence(goodness.pairs)
    with pytest.raises(InputError, match="beyond is 'far'"):
        plot_co_occurrence(goodness, beyond="far")
    one = goodness_of_fit([[-1.0]], [[1], [0]], draws=10, random_state=1)
    with pytest.raises(InputError, match="one item"):
        plot_co_occurrence(one)


@pytest.mark.parametrize("top", [1e-4, 0.03, 0.7, 1.06, 5.3, 130.0, 99999.0])
def test_ticks_are_round_and_apart(top):
    found = _ticks(top)
    assert found[0] == 0.0
    assert found[-1] <= top
    assert 3 <= len(found) <= 12
    roots = np.sqrt(found) / np.sqrt(top)
    assert np.diff(roots)[1:].min() >= 0.0899
    assert all(len(f"{x:g}".strip("0.").rstrip("0")) <= 5 for x in found)


# --- Set sizes ------------------------------------------------------------------------------------


def test_bars_are_observed_and_points_expected(goodness):
    ax = plot_set_sizes(goodness)
    heights = [bar.get_height() for bar in ax.patches]
    table = goodness.sizes
    assert heights == table["observed"].tolist()[: len(heights)]
    assert sum(heights) == 200
    line = next(x for x in ax.containers if hasattr(x, "has_yerr")).lines[0]
    np.testing.assert_allclose(line.get_ydata(), table["expected"].iloc[: len(heights)])
    assert legend_texts(ax) == ["observed (200 samples)", "expected, two sd of sampling noise"]
    assert_nothing_is_cut_off(ax)


def test_sizes_that_are_neither_seen_nor_expected_are_left_out(goodness, plt):
    from dataclasses import replace

    tail = pd.DataFrame(
        {"observed": 0, "expected": 0.001, "se": 0.001, "z": 0.0}, index=range(11, 40)
    )
    longer = replace(goodness, sizes=pd.concat([goodness.sizes, tail]))
    _, mine = plt.subplots()
    assert plot_set_sizes(longer, ax=mine) is mine
    assert len(mine.patches) <= 11
    with pytest.raises(InputError, match="goodness is of type str"):
        plot_set_sizes("fit")
