"""Figure 4: the family of Proposition 1, compared with the generator of the chain."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from sequela_paper import Settings, find_experiment, make


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fig4") / "x"
    return folder, make("fig4", Settings(quick=True), folder, backend="threads", workers=1)


@pytest.fixture(scope="module")
def tables(made):
    folder, found = made
    return {name: pd.read_csv(folder / f"{name}.csv") for name in found.record["tables"]}


def set_probabilities(row):
    """Return P({}), P({1}), P({2}), P({1, 2}): row 0 of (I - Q)^-1, observed at rate 1."""
    w11, w12, w21, w22 = np.exp(row[["theta_11", "theta_12", "theta_21", "theta_22"]].astype(float))
    Q = np.array(
        [
            [-w11 - w22, w11, w22, 0.0],
            [0.0, -w22 * w12, 0.0, w22 * w12],
            [0.0, 0.0, -w11 * w21, w11 * w21],
            [0.0, 0.0, 0.0, 0.0],
        ]
    )
    return np.linalg.solve((np.eye(4) - Q).T, [1.0, 0.0, 0.0, 0.0])


def test_files_and_verdict(made):
    folder, found = made
    for suffix in ("csv", "svg", "pdf", "png", "json"):
        assert (folder / f"fig4.{suffix}").stat().st_size > 0
    assert (folder / "fig4_interval.csv").is_file()
    assert found.verdict.holds is True
    assert json.loads((folder / "fig4.json").read_text())["numbers"]["deviation"] < 1e-9


def test_every_member_gives_the_sets_of_the_true_model(tables):
    table = tables["fig4"]
    truth = set_probabilities(table[table["what"] == "true"].iloc[0])
    # The numbers of appendix A are p0 = 1 / (2 + e^-4), p1 = p0 / 2 and p2 = p0 e^-4 / 2: if only
    # item 1 is present, item 2 and the observation have the same rate.
    p0 = 1.0 / (2.0 + math.exp(-4.0))
    np.testing.assert_allclose(truth[:3], [p0, p0 / 2, p0 * math.exp(-4) / 2], rtol=1e-12)
    for _, row in table.iterrows():
        np.testing.assert_allclose(set_probabilities(row), truth, rtol=1e-9)
        stored = row[["p_0", "p_1", "p_2", "p_12"]].astype(float)
        np.testing.assert_allclose(stored, truth, rtol=1e-9)


def test_orders_are_opposite_at_the_ends(tables):
    table = tables["fig4"]
    for _, row in table.iterrows():
        w11, w12 = math.exp(row["theta_11"]), math.exp(row["theta_12"])
        w22 = math.exp(row["theta_22"])
        # The probability that item 1 arrives first, and item 2 after it but before the observation.
        one = w11 / (1 + w11 + w22) * w22 * w12 / (1 + w22 * w12)
        assert row["first"] == pytest.approx(one / set_probabilities(row)[3], rel=1e-9)
    members = table[table["what"] == "member"].sort_values("s")
    assert (np.diff(members["first"]) > 0.0).all()
    assert members["first"].iloc[0] < 0.001
    assert members["first"].iloc[-1] > 0.999


def test_the_interval_is_where_rates_are_not_negative(tables):
    """The solution printed in the paper has negative rates in parts of the printed interval."""
    ends = tables["fig4_interval"].iloc[0]
    p0, p1, p2, _ = set_probabilities(tables["fig4"].iloc[-1])

    def rates(s):
        w21 = (1 - p0 - p2 - p0 * s) / (p2 * s)
        w12 = (p0 * s - p1) / (p1 * (1 / p0 - 1 - s))
        return [s, 1 / p0 - 1 - s, w21, w12]

    low, high, last = ends["low"], ends["high"], ends["printed_high"]
    assert last == pytest.approx(1 / p0 - 1)
    for s in np.linspace(low, high, 20)[1:-1]:
        assert min(rates(s)) > 0.0
    for s in (0.5 * low, low - 1e-6, high + 1e-6, (high + last) / 2):
        assert 0.0 < s < last
        assert min(rates(s)) < 0.0
    for _, row in tables["fig4"].iterrows():
        assert math.exp(row["theta_21"]) == pytest.approx(rates(row["s"])[2], rel=1e-6)
        assert math.exp(row["theta_12"]) == pytest.approx(rates(row["s"])[3], rel=1e-6)


def test_verdict_needs_equal_sets_and_opposite_orders(tables):
    judge = find_experiment("fig4").judge
    table = tables["fig4"]
    assert judge(tables).holds is True
    for column in ("p_0", "p_1", "p_2", "p_12"):
        changed = table.copy()
        changed.loc[3, column] *= 1.0 + 1e-6
        assert judge({**tables, "fig4": changed}).holds is False
    one_sided = table.assign(first=np.maximum(table["first"], 0.5))
    assert judge({**tables, "fig4": one_sided}).holds is False


def test_the_picture_shows_the_table(tables):
    figure = find_experiment("fig4").draw(tables)
    members = tables["fig4"].query("what == 'member'")
    pairs = (("theta_11", "theta_22"), ("theta_12", "theta_21"))
    true = {"theta_11": 0.0, "theta_22": -4.0, "theta_12": 4.0, "theta_21": 0.0}
    for ax, (x, y) in zip(figure.axes, pairs, strict=True):
        line = ax.lines[0]
        np.testing.assert_array_equal(line.get_xdata(), members[x])
        np.testing.assert_array_equal(line.get_ydata(), members[y])
        (square,) = [line for line in ax.lines if line.get_marker() == "s"]
        assert (square.get_xdata()[0], square.get_ydata()[0]) == (true[x], true[y])
