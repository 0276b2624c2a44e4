"""Models: theta, which is read-only, its labels, and what can be used as a model."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
import sequela
from sequela import InputError, Model
from sequela.likelihood import sequence_log_likelihood
from sequela.model import as_model
from sequela.observation import Exponential

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)
THETA = [[-1.0, 4.0, 0.0], [0.0, -2.0, -5.0], [0.5, 0.0, 0.0]]


def test_labels_come_from_the_argument_the_table_or_are_numbers():
    assert Model(THETA).items == ("0", "1", "2")
    assert Model(THETA, ["a", "b", "c"]).items == ("a", "b", "c")
    frame = pd.DataFrame(THETA, index=list("xyz"), columns=list("xyz"))
    assert Model(frame).items == ("x", "y", "z")
    assert Model(frame).n_items == 3


def test_a_table_is_put_in_the_order_of_the_labels():
    frame = pd.DataFrame(THETA, index=list("xyz"), columns=list("xyz"))
    turned = Model(frame, ["z", "x", "y"])
    assert turned.items == ("z", "x", "y")
    assert turned.theta[1, 2] == 4.0  # x acts on y
    assert turned.to_frame().loc["x", "y"] == 4.0
    pd.testing.assert_frame_equal(turned.to_frame().loc[list("xyz"), list("xyz")], frame)


def test_theta_is_read_only_and_its_own():
    source = np.array(THETA)
    model = Model(source)
    source[0, 0] = 99.0
    assert model.theta[0, 0] == -1.0
    with pytest.raises(ValueError, match="read-only"):
        model.theta[0, 0] = 1.0
    with pytest.raises(AttributeError):
        model.theta = source
    with pytest.raises(AttributeError):
        model.items = ("a", "b", "c")


def test_the_table_is_a_copy():
    """If the table that `to_frame` returns is changed, the model stays as it is."""
    model = Model(THETA)
    frame = model.to_frame()
    frame.loc["0", "0"] = 7.0
    frame.iloc[1, 1] = 8.0
    assert frame.loc["0", "0"] == 7.0
    assert np.array_equal(model.theta, THETA)


def test_metadata_are_a_copy():
    given = {"penalty": 0.01}
    model = Model(THETA, metadata=given)
    given["penalty"] = 5.0
    assert model.metadata == {"penalty": 0.01}
    assert json.loads(json.dumps(model.metadata)) == {"penalty": 0.01}
    assert Model(THETA).metadata == {}


def test_equal_models():
    model = Model(THETA, ["a", "b", "c"])
    assert model == Model(THETA, ["a", "b", "c"], {"seed": 1})
    assert model != Model(THETA)
    other = np.array(THETA)
    other[0, 1] = np.nextafter(4.0, 5.0)
    assert model != Model(other, ["a", "b", "c"])
    assert model != Model([[0.0]])
    assert model != Model(THETA, ["a", "b", "c"], observation=Exponential(2.0))
    assert model == Model(THETA, ["a", "b", "c"], observation=Exponential(1.0))
    assert model != "a model"
    assert (model == THETA) is False
    with pytest.raises(TypeError):
        hash(model)


def test_its_short_form():
    assert repr(Model(THETA)) == "<Model: 3 items, 3 interactions>"
    assert repr(Model([[0.0, 1.0], [0.0, 0.0]])) == "<Model: 2 items, 1 interaction>"
    assert repr(Model([[3.0]])).endswith("0 interactions>")


def test_interactions_are_listed_strongest_first():
    table = Model(THETA, ["a", "b", "c"]).interactions()
    assert table.to_dict("list") == {
        "from": ["b", "a", "c"],
        "to": ["c", "b", "a"],
        "effect": [-5.0, 4.0, 0.5],
    }
    assert list(Model(np.eye(3)).interactions().columns) == ["from", "to", "effect"]
    assert len(Model(np.eye(3)).interactions()) == 0


@quick
@given(st.integers(0, 2**31), st.integers(1, 6))
def test_interactions_are_all_of_theta(seed, n):
    theta = ref.random_theta(np.random.default_rng(seed), n, sparsity=0.5)
    model = Model(theta)
    rebuilt = np.diag(np.diag(theta))
    for row in model.interactions().itertuples(index=False):
        rebuilt[int(row[0]), int(row[1])] = row[2]
    assert np.array_equal(rebuilt, theta)
    assert Model(model.to_frame()) == model


@pytest.mark.parametrize(
    ("theta", "items", "words"),
    [
        ([[1.0, 2.0]], None, "square"),
        ([[float("nan")]], None, "finite"),
        ([[float("inf")]], None, "finite"),
        ([[1000.0]], None, "logarithms"),
        ([["x"]], None, "numbers"),
        ([[1.0]], ["a", "b"], "expected 2 x 2"),
        (np.zeros((2, 2)), ["a", "a"], "a"),
        (np.zeros((0, 0)), None, "no items"),
        (pd.DataFrame(np.eye(2), index=["a", "b"], columns=["b", "a"]), None, "differently"),
        (
            pd.DataFrame(np.eye(2), index=["a", "b"], columns=["a", "b"]),
            ["a", "c"],
            r"different items: only theta has \['b'\], theta lacks \['c'\]",
        ),
        ([[0.0]], "a", "items must be a list"),
    ],
)
def test_what_is_no_model(theta, items, words):
    with pytest.raises(InputError, match=words):
        Model(theta, items)


def test_a_model_is_as_good_as_its_table():
    model = sequela.Model([[0.2, 1.5], [0.0, -1.0]], ["a", "b"])
    data = sequela.Dataset.from_sets([{"b"}, {"a", "b"}, set()], items=["b", "a"])
    assert sequela.log_likelihood(model, data) == sequela.log_likelihood(model.to_frame(), data)
    assert sequela.simulate(model, 5, random_state=1).items == ("a", "b")
    sequences = [["a"], ["a", "b"]]
    assert np.array_equal(
        sequence_log_likelihood(model, sequences),
        sequence_log_likelihood(model.to_frame(), sequences),
    )


# --- Its observation ------------------------------------------------------------------------------


def test_a_model_has_one_observation_and_it_cannot_be_changed():
    assert Model(THETA).observation == Exponential(1.0)
    model = Model(THETA, observation=Exponential(2.0))
    assert model.observation == Exponential(2.0)
    with pytest.raises(AttributeError):
        model.observation = Exponential(3.0)


@pytest.mark.parametrize("bad", [2.0, "exponential", Exponential, {"kind": "exponential"}])
def test_what_is_no_observation(bad):
    with pytest.raises(InputError, match=r"observation is .*such as sequela\.Exponential"):
        Model(THETA, observation=bad)


def test_items_in_another_order_leave_the_rest_of_the_model_as_it_is():
    model = Model(THETA, ["a", "b", "c"], {"penalty": 0.1}, observation=Exponential(2.0))
    turned = model.with_items(["c", "a", "b"])
    assert turned.items == ("c", "a", "b")
    assert turned.observation == Exponential(2.0)
    assert turned.metadata == {"penalty": 0.1}
    pd.testing.assert_frame_equal(turned.to_frame().loc[list("abc"), list("abc")], model.to_frame())
    assert model.with_items(["a", "b", "c"]) == model == turned.with_items(["a", "b", "c"])
    with pytest.raises(InputError, match=r"only theta has \['c'\], theta lacks \['d'\]"):
        model.with_items(["a", "b", "d"])


# --- What stands for a model ----------------------------------------------------------------------


class Learned:
    """A fitted estimator with the attributes that `as_model` needs."""

    def __init__(self, model=None):
        if model is not None:
            self.model_ = model

    def fit(self):
        """Do nothing, because `as_model` only checks that this method exists."""


def test_whatever_stands_for_a_model():
    model = Model(THETA, ["a", "b", "c"], observation=Exponential(2.0))
    assert as_model(model) is model
    assert as_model(Learned(model)) is model
    assert as_model(Learned(model), ["b", "c", "a"]) == model.with_items(["b", "c", "a"])
    bare = as_model(model.to_frame())
    assert bare.items == model.items
    assert bare.observation == Exponential(1.0)
    assert as_model(THETA, ["a", "b", "c"]) == Model(THETA, ["a", "b", "c"])
    assert as_model(np.array(THETA)).items == ("0", "1", "2")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Learned(), r"has not been fitted; call its fit\(data\) first"),
        ("model.npz", r"the text 'model\.npz'.*Model\.load"),
        (None, "square"),
        ([[1.0, 2.0]], "square"),
    ],
)
def test_what_does_not_stand_for_a_model(given, words):
    with pytest.raises(InputError, match=words):
        as_model(given)
