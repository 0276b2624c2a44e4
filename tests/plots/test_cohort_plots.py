"""Plots of cohorts: order tree, common paths, positions, survival by risk, two cohorts."""

import numpy as np
import pandas as pd
import pytest

from plots.drawing import (
    STRANGE,
    assert_nothing_is_cut_off,
    draw,
    legend_texts,
    strange_model,
    ticks,
)
from sequela import InputError, example_theta, order_matrix, simulate
from sequela.plots import (
    plot_cohort_comparison,
    plot_common_paths,
    plot_order_tree,
    plot_positions,
    plot_survival,
    risk_groups,
)
from sequela.plots.labels import short
from sequela.questions import cohort_orders, item_positions


@pytest.fixture(scope="module")
def cohort():
    drawn = simulate(example_theta(), 300, random_state=1).to_dataset()
    return cohort_orders(example_theta(), drawn)


@pytest.fixture(scope="module")
def strange_cohort():
    model = strange_model()
    return cohort_orders(model, simulate(model, 80, random_state=1).to_dataset())


# --- The tree -------------------------------------------------------------------------------------


def count(branch):
    return sum(1 + count(child) for child in branch.children)


def test_every_branch_is_drawn_and_named(cohort):
    items = ["step 1", "step 2", "step 3", "first", "second"]
    ax = plot_order_tree(cohort, items=items, least=3)
    tree = cohort.tree(items, least=3)
    assert len(ax.patches) == count(tree)
    written = [x.get_text() for x in ax.texts if x.get_text() in items]
    assert len(written) == count(tree)
    thick = [patch.get_linewidth() for patch in ax.patches]
    assert max(thick) == pytest.approx(12.0 * (tree.children[0].count / tree.count) ** 0.75)
    assert "at least 3 samples" in ax.texts[-1].get_text()
    assert_nothing_is_cut_off(ax)


def test_samples_with_missing_cells_are_in_the_tree():
    drawn = simulate(example_theta(), 60, random_state=1).to_dataset().without_times()
    missing = np.zeros(drawn.values.shape, dtype=bool)
    missing[:20, 3] = True
    ax = plot_order_tree(cohort_orders(example_theta(), drawn.with_missing(missing)))
    assert ax.texts[-1].get_text() == "60 samples"
    ax = plot_order_tree(cohort_orders(example_theta(), drawn, max_size=2))
    assert "samples left out (too many items)" in ax.texts[-1].get_text()


def test_a_tree_of_many_orders_leaves_out_small_branches(cohort):
    ax = plot_order_tree(cohort)
    assert len(ax.patches) <= 80
    with pytest.raises(InputError, match="no branch has 10000 or more samples"):
        plot_order_tree(cohort, least=10_000)
    with pytest.raises(InputError, match="expected CohortOrders"):
        plot_order_tree(example_theta())


def test_labels_of_strangers_are_drawn_as_they_are(strange_cohort):
    ax = plot_order_tree(strange_cohort, max_items=11)
    draw(ax)
    known = set(short(STRANGE, 14))
    assert sum(x.get_text() in known for x in ax.texts) == len(ax.patches)
    draw(plot_common_paths(strange_cohort, 2))


def test_common_paths_have_their_counts(cohort):
    items = ["step 1", "step 2", "step 3"]
    ax = plot_common_paths(cohort, 2, items=items)
    paths = cohort.paths(2, items)
    assert [bar.get_width() for bar in ax.patches] == list(paths.values())
    assert ticks(ax.yaxis)[0] == "step 1 → step 2"
    assert len(plot_common_paths(cohort, 3, max_paths=4).patches) == 4
    assert_nothing_is_cut_off(ax)
    with pytest.raises(InputError, match="no sample has 4"):
        plot_common_paths(cohort, 4, items=items)


# --- Positions ------------------------------------------------------------------------------------


def test_positions_are_those_of_the_table():
    table = item_positions(example_theta(), random_state=1, draws=20_000)
    ax = plot_positions(table, max_items=6)
    rows = ticks(ax.yaxis)
    assert set(rows) == set(table["observed"].nlargest(6).index)
    middle = ax.lines[0].get_xdata()
    np.testing.assert_array_equal(middle, table.loc[rows, "time_50"])
    assert (np.diff(middle) >= 0).all()
    band = np.array([line[:, 0] for line in ax.collections[0].get_segments()])
    np.testing.assert_array_equal(band, table.loc[rows, ["time_05", "time_95"]])
    assert plot_positions(table, show="place").get_xlabel().startswith("position")
    with pytest.raises(InputError, match="show is 'when'"):
        plot_positions(table, show="when")
    with pytest.raises(InputError, match="no column 'time_05'"):
        plot_positions(table.drop(columns="time_05"))


# --- Survival -------------------------------------------------------------------------------------


def survivors(n=60, seed=1):
    rng = np.random.default_rng(seed)
    risk = pd.Series(rng.normal(size=n), index=[f"s{k}" for k in range(n)])
    times = rng.exponential(np.exp(-risk.to_numpy()))
    censored = rng.random(n) < 0.3
    clinical = pd.DataFrame({"time": times, "event": ~censored}, index=risk.index)
    clinical.attrs["unit"] = "months"
    return clinical, risk


def kaplan_meier(times, events, at):
    """Return the Kaplan-Meier estimate: a product over events of 1 - deaths / (number at risk)."""
    share = 1.0
    for t in np.unique(times[events]):
        if t <= at:
            share *= 1.0 - np.sum((times == t) & events) / np.sum(times >= t)
    return share


def test_the_curves_are_kaplan_meier_curves_of_the_groups():
    clinical, risk = survivors()
    ax = plot_survival(clinical, risk)
    group = risk_groups(risk)
    for k, line in enumerate([x for x in ax.lines if x.get_drawstyle() == "steps-post"]):
        here = (group == k).to_numpy()
        times, events = clinical["time"].to_numpy()[here], clinical["event"].to_numpy()[here]
        for t, share in zip(line.get_xdata(), line.get_ydata(), strict=True):
            assert share == pytest.approx(kaplan_meier(times, events, t))
    assert [text.split(" (")[0] for text in legend_texts(ax)] == ["low risk", "high risk"]
    assert ax.get_title(loc="right").startswith("log-rank test: p")
    assert ax.get_xlabel() == "time (months)"


def test_only_samples_with_both_are_used():
    clinical, risk = survivors()
    clinical.loc["s0", "time"] = np.nan
    ax = plot_survival(clinical, risk.drop("s1"), groups=3)
    assert sum(int(text.split("n = ")[1].split(",")[0]) for text in legend_texts(ax)) == 58
    with pytest.raises(InputError, match="no sample in common"):
        plot_survival(clinical, risk.rename(index=str.upper))
    with pytest.raises(InputError, match="are too few for 40 groups"):
        plot_survival(clinical, risk, groups=40)


def test_groups_keep_equal_risks_together():
    risk = pd.Series([1.0, 1.0, 1.0, 2.0, 3.0, 3.0])
    group = risk_groups(risk, 3)
    assert set(group[risk == 1.0]) == {0}
    assert (group.sort_values().index == risk.sort_values(kind="stable").index).all()
    with pytest.raises(InputError, match="not finite"):
        risk_groups(pd.Series([1.0, np.nan]))


# --- Two cohorts ----------------------------------------------------------------------------------


def test_a_cohort_agrees_with_itself_and_a_reversed_pair_is_named():
    theta = example_theta()
    orders = order_matrix(theta, ["first", "second", "step 1", "step 2"])
    ax = plot_cohort_comparison(orders, orders)
    assert "100% have the same order" in ax.get_title(loc="right")
    assert not ax.texts
    other = theta.copy()
    other.loc["step 2", "step 1"] = 6.0
    other.loc["step 1", "step 2"] = 0.0
    turned = order_matrix(other, ["second", "step 2", "step 1", "first", "clock 1"])
    ax = plot_cohort_comparison(orders, turned, names=("$a$", "b"), different=0.3)
    assert "step 1 → step 2" in [x.get_text() for x in ax.texts]
    points = np.vstack([x.get_offsets() for x in ax.collections if len(x.get_offsets())])
    assert len(points) == 6
    assert (points[:, 0] >= 0.5).all()
    assert ax.get_xlabel() == "P(a before b), $a$"
    draw(ax)


def test_cohorts_without_shared_items_are_refused():
    orders = order_matrix(example_theta(), ["first", "second"])
    other = order_matrix(example_theta(), ["step 1", "step 2"])
    with pytest.raises(InputError, match="have 0 items in common"):
        plot_cohort_comparison(orders, other)
