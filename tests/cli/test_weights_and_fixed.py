"""The options ``--weights`` and ``--fixed``: files are read, and the model depends on them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cli.invoking import run
from sequela import Model, SetChain, simulate
from sequela.data.examples import example_theta


@pytest.fixture
def table(tmp_path):
    data = simulate(example_theta(), 120, random_state=1).to_dataset().without_times()
    data = data.most_frequent(4)
    frame = data.to_frame().astype(int)
    weights = np.random.default_rng(1).integers(0, 3, data.n_samples)
    frame["w"] = weights
    frame.to_csv(tmp_path / "samples.csv", index_label="sample")
    frame.drop(columns="w").to_csv(tmp_path / "plain.csv", index_label="sample")
    frame["w"].to_csv(tmp_path / "weights.csv", index_label="sample", header=["weight"])
    (tmp_path / "fixed.csv").write_text(
        f"from,to,value\n{data.items[0]},{data.items[1]},0\n{data.items[1]},{data.items[2]},0.8\n"
    )
    return tmp_path, data, weights


def test_a_column_and_a_file_of_weights_are_the_same(table):
    place, data, weights = table
    common = ("--seed", "1", "--starts", "1", "--no-check", "--figures", "none")
    run("fit", place / "samples.csv", "--weights", "w", "-o", place / "one", *common)
    run(
        "fit", place / "plain.csv", "--weights", place / "weights.csv", "-o", place / "two",
        "--fixed", place / "fixed.csv", *common,
    )  # fmt: skip
    mine = SetChain(0.01, random_state=1).fit(data, sample_weight=weights)
    assert np.array_equal(Model.load(place / "one" / "model.npz").theta, mine.theta_)
    fixed = [(data.items[0], data.items[1]), (data.items[1], data.items[2], 0.8)]
    held = SetChain(0.01, random_state=1, fixed=fixed).fit(data, sample_weight=weights)
    assert np.array_equal(Model.load(place / "two" / "model.npz").theta, held.theta_)
    assert held.theta_[1, 2] == 0.8
    again = run(
        "fit", "--repeat", place / "two", "-o", place / "three", "--figures", "none", "--json"
    )
    assert json.loads(again.stdout)["same_as_repeated"]
    scored = run("score", place / "one", place / "samples.csv", "--weights", "w", "--json")
    expected = mine.score(data, sample_weight=weights)
    assert json.loads(scored.stdout)["log_likelihood"] == pytest.approx(expected, abs=1e-12)


def test_bad_weights_are_refused_with_file_and_line(table):
    place, data, _ = table
    text = (place / "samples.csv").read_text().splitlines()
    text[3] = text[3].rsplit(",", 1)[0] + ",-1"
    (place / "bad.csv").write_text("\n".join(text))
    common = ("--no-check", "--figures", "none", "-o", place / "x")
    refused = run("fit", place / "bad.csv", "--weights", "w", *common, code=2)
    assert "bad.csv', line 4, column 'w': found '-1', expected a weight" in refused.stderr
    unknown = run("fit", place / "plain.csv", "--weights", "w", *common, code=2)
    assert "--weights names 'w', but there is no such column" in unknown.stderr
    lines = (place / "weights.csv").read_text().splitlines()
    (place / "few.csv").write_text("\n".join(lines[:-1]))
    few = run("fit", place / "plain.csv", "--weights", place / "few.csv", *common, code=2)
    assert f"no weight for 1 of {data.n_samples} samples" in few.stderr
    (place / "twice.csv").write_text("\n".join([*lines, lines[-1]]))
    twice = run("fit", place / "plain.csv", "--weights", place / "twice.csv", *common, code=2)
    assert "occurs twice" in twice.stderr
    (place / "wrong.csv").write_text("from,to\nnobody,x\n")
    wrong = run("fit", place / "plain.csv", "--fixed", place / "wrong.csv", *common, code=2)
    assert "'nobody'" in wrong.stderr
