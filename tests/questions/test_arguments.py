"""Items and samples as arguments of questions, and error messages for wrong arguments."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from sequela import Dataset, InputError, Model, questions
from sequela.model import as_model
from sequela.observation import Exponential
from sequela.questions.arguments import find_item, find_items
from sequela.samples import as_samples

GENES = Model(np.zeros((4, 4)), ["TP53", "KRAS", "EGFR", "IDH1"])
NUMBERED = Model(np.zeros((4, 4)))


# --- Models ---------------------------------------------------------------------------------------


def test_models():
    theta = np.array([[0.5, 1.0], [0.0, -1.0]])
    model = Model(theta, ["x", "y"])
    assert as_model(model) is model
    assert as_model(theta) == Model(theta)
    assert as_model(pd.DataFrame(theta, index=["x", "y"], columns=["x", "y"])) == model
    assert as_model(theta.tolist()) == Model(theta)


def test_a_fitted_estimator_is_a_model():
    class Fitted:
        model_ = Model([[0.0, 2.0], [0.0, -2.0]], ["x", "y"])

    assert as_model(Fitted()) is Fitted.model_
    orders = questions.order_matrix(Fitted(), ["y", "x"])
    assert list(orders.probability) == ["y", "x"]
    by_place = questions.order_matrix(Fitted.model_.theta, [1, 0])
    np.testing.assert_array_equal(orders.probability, by_place.probability)


def test_what_is_no_model():
    class Unfitted:
        def fit(self):
            raise AssertionError

    with pytest.raises(InputError, match="has not been fitted; call its fit"):
        as_model(Unfitted())
    with pytest.raises(InputError, match=r"the text 'model.npz'.*Model\.load"):
        as_model("model.npz")
    with pytest.raises(InputError, match="square"):
        as_model(np.zeros((2, 3)))


# --- One item -------------------------------------------------------------------------------------


def test_one_item():
    assert find_item(GENES, "EGFR") == 2
    assert find_item(GENES, np.str_("EGFR")) == 2
    assert [find_item(NUMBERED, label) for label in ("3", 3, np.int64(3), np.uint8(3))] == [3] * 4


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("tp53", "the model has no item 'tp53'; closest: 'TP53'"),
        ("KRSA", "the model has no item 'KRSA'; closest: 'KRAS'"),
        ("qqq", "the model has no item 'qqq'; the first items of the model are: 'TP53', 'KRAS',"),
        (7, "the model has no item 7;"),
        (1.0, "the model has no item 1.0;"),
        (None, "the model has no item None;"),
        (pd.NA, "the model has no item <NA>;"),
        (np.nan, "the model has no item nan;"),
        (["TP53"], "the model has no item ['TP53']; closest: 'TP53'"),
        ("=TP53()", "the model has no item '=TP53()'; closest: 'TP53'"),
    ],
)
def test_an_unknown_item(label, told):
    with pytest.raises(InputError, match=re.escape(told)):
        find_item(GENES, label)


def test_closest_names_tell_case_apart_and_are_few():
    model = Model(np.zeros((8, 8)), ["abc", "ABC", *(f"item{i}" for i in range(6))])
    assert find_item(model, "ABC") == 1
    with pytest.raises(InputError, match=r"closest: 'abc', 'ABC'$"):
        find_item(model, "Abc")
    with pytest.raises(InputError) as error:
        find_item(model, "item")
    assert str(error.value).count("'item") == 6  # the given label and five suggestions


# --- Several --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["IDH1", "TP53"], [3, 0]),
        (("IDH1", "TP53"), [3, 0]),
        ({"IDH1", "TP53"}, [0, 3]),
        (frozenset(["IDH1"]), [3]),
        (np.array(["IDH1", "KRAS"]), [3, 1]),
        (pd.Index(["IDH1", "KRAS"]), [3, 1]),
        (pd.Series(["IDH1", "KRAS"]), [3, 1]),
        (pd.Series(["IDH1", "KRAS"], index=["p", "q"]), [3, 1]),
        ((x for x in ("KRAS", "EGFR")), [1, 2]),
        ({"IDH1": 1, "KRAS": 2}.keys(), [3, 1]),
        ([], []),
        (set(), []),
        # Rows of a data set, with a truth value for each item.
        ([True, False, False, True], [0, 3]),
        ((np.True_, np.False_, np.False_, np.False_), [0]),
        (np.array([False, True, True, False]), [1, 2]),
        (np.zeros(4, dtype=bool), []),
        (pd.Series([True, False, True, True], index=GENES.items), [0, 2, 3]),
        (pd.Series([True, True, False], index=["IDH1", "KRAS", "TP53"]), [3, 1]),
        (pd.Series([True, False], index=["IDH1", "not in the model"]), [3]),
        (pd.array([True, False, True, False], dtype="boolean"), [0, 2]),
        ({"TP53": True, "KRAS": False}, [0]),
        # Rows of a data set, with 0 or 1 for each item.
        (np.array([1, 0, 0, 1]), [0, 3]),
        (np.array([0.0, 0.0, 1.0, 0.0]), [2]),
        (np.zeros(4, dtype=int), []),
        (pd.Series([0, 1, 0, 1], index=GENES.items), [1, 3]),
        (pd.Series([1, 0], index=["IDH1", "TP53"]), [3]),
        ({"TP53": 0, "IDH1": 1}, [3]),
    ],
)
def test_items(given, expected):
    found = find_items(GENES, given)
    assert found.dtype == np.int64
    assert found.tolist() == expected


def test_a_row_of_a_table():
    table = pd.DataFrame(
        [[1, 0, 1, 0], [0, 0, 0, 1]], columns=["IDH1", "KRAS", "TP53", "EGFR"], index=["p", "q"]
    )
    for rows in (table, table.astype(bool), table.astype(float)):
        assert sorted(find_items(GENES, rows.loc["p"]).tolist()) == [0, 3]
        assert find_items(GENES, rows.loc["q"]).tolist() == [2]
    assert find_items(GENES, Dataset(table[list(GENES.items)]).values[0]).tolist() == [0, 3]


def test_numbers_are_labels_unless_they_are_a_row():
    assert find_items(NUMBERED, [3, 0]).tolist() == [3, 0]
    assert find_items(NUMBERED, np.array([3, 0])).tolist() == [3, 0]
    assert find_items(NUMBERED, [1, 0]).tolist() == [1, 0]
    assert find_items(NUMBERED, range(4)).tolist() == [0, 1, 2, 3]
    assert find_items(NUMBERED, pd.Series([0, 1])).tolist() == [0, 1]
    assert find_items(NUMBERED, np.array([1, 0, 1, 1])).tolist() == [0, 2, 3]
    assert find_items(NUMBERED, pd.Series([1, 0, 1, 1])).tolist() == [0, 2, 3]
    two = Model(np.zeros((2, 2)))
    assert find_items(two, [1, 0]).tolist() == [1, 0]
    assert find_items(two, np.array([1, 1])).tolist() == [0, 1]
    assert find_items(two, np.array([True, False])).tolist() == [0]
    assert find_items(two, {"0": 1, "1": 0}).tolist() == [0]
    with pytest.raises(InputError, match="can be read as a row or as labels"):
        find_items(two, np.array([1, 0]))
    with pytest.raises(InputError, match="can be read as a row or as labels"):
        find_items(Model([[0.0]]), np.array([0]))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("TP53", "sample is the text 'TP53'; expected a list of items: ['TP53']"),
        (5, "sample is 5; expected a list or set of items"),
        (None, "sample is None; expected a list or set of items"),
        (["TP53", "TP53"], "sample contains 'TP53' more than once"),
        (["TP53", "tp53"], "no item 'tp53'; closest: 'TP53'"),
        ([True, False], "sample has 2 true/false entries; expected one for each of the 4 items"),
        (np.ones(5, dtype=bool), "sample has 5 true/false entries"),
        ([True, None, False, False], "sample has missing entries"),
        (pd.array([True, None, False, False], dtype="boolean"), "sample has missing entries"),
        (np.array([1.0, np.nan, 0.0, 0.0]), "sample has missing entries"),
        (pd.Series([True, True], index=["TP53", "PTEN"]), "no item 'PTEN'"),
        (pd.DataFrame([[1, 0, 0, 0]], columns=GENES.items), "a table of shape (1, 4)"),
        (np.ones((1, 4), dtype=bool), "sample has shape (1, 4)"),
        ({"TP53": "yes"}, "sample is a mapping; expected true or false"),
        ([1, 0, 1, 1], "the model has no item 1;"),
    ],
)
def test_what_is_no_sample(given, told):
    with pytest.raises(InputError, match=re.escape(told)):
        find_items(GENES, given, "sample")


def test_the_same_item_under_two_names():
    with pytest.raises(InputError, match="'1' more than once"):
        find_items(NUMBERED, [1, "1"])
    with pytest.raises(InputError, match="'1' more than once"):
        find_items(NUMBERED, {1, "1"})


# --- Data -----------------------------------------------------------------------------------------


def test_samples():
    sets = [{"TP53"}, set(), {"IDH1", "KRAS"}]
    values = np.array([[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 1]])
    frame = pd.DataFrame(values, columns=GENES.items, index=["p", "q", "r"])
    expected = values.astype(bool)
    for data in (
        sets,
        tuple(sets),
        pd.Series(sets, index=["p", "q", "r"]),
        values,
        values.tolist(),
        frame,
        frame[["IDH1", "TP53", "EGFR", "KRAS"]],
        Dataset(frame),
        Dataset(frame).select_items(["IDH1", "TP53", "EGFR", "KRAS"]),
    ):
        read = as_samples(GENES, data)
        np.testing.assert_array_equal(read.values, expected)
        assert read.items == GENES.items
    assert as_samples(GENES, pd.Series(sets, index=["p", "q", "r"])).samples == ("p", "q", "r")
    assert as_samples(GENES, frame[["IDH1", "TP53", "EGFR", "KRAS"]]).samples == ("p", "q", "r")


def test_samples_of_other_items():
    frame = pd.DataFrame(np.zeros((2, 4), dtype=int), columns=["TP53", "KRAS", "EGFR", "PTEN"])
    with pytest.raises(InputError, match=r"1 of the 4 items of the model are missing, .* 'IDH1'"):
        as_samples(GENES, frame)
    with pytest.raises(InputError, match=r"1 of the 4 items of the model are missing, .* 'IDH1'"):
        as_samples(GENES, frame[["TP53", "KRAS", "EGFR"]])
    with pytest.raises(InputError, match="4 of the 4 items of the model are missing"):
        as_samples(GENES, np.zeros((2, 3)))
    with pytest.raises(InputError, match="PTEN"):
        as_samples(GENES, [{"PTEN"}, {"TP53"}])


def test_items_that_the_model_does_not_have_are_left_out_with_a_notice(caplog):
    frame = pd.DataFrame(np.eye(5, dtype=int), columns=["PTEN", *GENES.items])
    read = as_samples(GENES, frame)
    assert read.items == GENES.items
    assert np.array_equal(read.values, np.eye(5, dtype=bool)[:, 1:])
    assert "1 items of the data are not in the model" in caplog.text


def test_times_come_with_the_samples():
    values = np.array([[1, 0, 0, 0], [0, 1, 0, 1]])
    times = [0.5, 2.0]
    frame = pd.DataFrame(values, columns=GENES.items)
    assert as_samples(GENES, Dataset(frame, times=times)).times.tolist() == times
    for data in (values, frame, [{"TP53"}, {"IDH1", "KRAS"}], frame[["IDH1", *GENES.items[:3]]]):
        read = as_samples(GENES, data, times)
        assert read.times.tolist() == times
        np.testing.assert_array_equal(read.values, values.astype(bool))
        assert as_samples(GENES, data).times is None


def test_questions_use_the_observation_of_the_model():
    theta = [[0.3, 1.0], [0.0, -0.5]]
    slow, fast = (Model(theta, ["a", "b"], observation=Exponential(z)) for z in (1.0, 2.0))
    assert questions.time_posterior(slow, {"a"}).mean > questions.time_posterior(fast, {"a"}).mean
    step = questions.next_items(fast)
    assert step.observed_first == pytest.approx(2.0 / (2.0 + np.exp(np.diagonal(theta)).sum()))
    default = questions.order_probability(theta, "0", "1").value
    assert questions.order_probability(slow, "a", "b").value == default
    assert questions.order_probability(fast, "a", "b").value != default
