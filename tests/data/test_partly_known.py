"""Missing cells and known orders: all selections keep them, and invalid ones are refused."""

import pickle

import numpy as np
import pytest

from sequela import InputError
from sequela.data.dataset import Dataset
from sequela.learning.checkpoint import fingerprint
from sequela.repeats.data_file import keep_data, read_data

ITEMS = ["a", "b", "c"]


def example():
    return Dataset(
        [[1, None, 1], [1, 1, 1], [0, 1, np.nan]],
        items=ITEMS,
        samples=["x", "y", "z"],
        orders={"x": [("c", "a")], "y": [("a", "b"), ("b", "c"), ("a", "c", 0.8)]},
        times=[1.0, 2.0, None],
    )


def test_complete_data_know_nothing_more():
    data = Dataset([[1, 0], [1, 1]])
    assert data.missing is None
    assert data.orders is None
    assert data.is_plain
    assert Dataset([[1, 1]], orders=[[]]).orders is None
    assert data.require_plain("x") is data


def test_what_is_known_is_described():
    data = example()
    assert data.n_missing == 2
    assert "2 cells missing in 2 samples; 4 statements about the order of 2 samples" in repr(data)
    assert data.frequencies.tolist() == [2 / 3, 1.0, 1.0]
    assert data.set_sizes.tolist() == [2, 3, 1]


def test_selections_keep_what_is_known():
    data = example()
    some = data.select_samples(["z", "x"])
    assert some.missing.tolist() == [[False, False, True], [False, True, False]]
    assert some.orders == ((), (("c", "a", 1.0),))
    # The certain statements imply that a came before c, so the uncertain one adds nothing.
    assert data.select_items(["c", "a"]).orders[1] == (("a", "c", 1.0),)
    assert data.select_items(["c", "a", "b"]).orders == data.orders
    assert data.select_items(["b"]).orders is None
    assert data.select_items(["b"]).missing.tolist() == [[True], [False], [False]]
    assert data.without_times().orders == data.orders
    assert data.without_orders().missing is data.missing
    assert Dataset(data) == data
    assert data.take_rows(np.array([1, 1])).orders == (data.orders[1],) * 2


def test_equality_files_and_checksums_see_missing_cells_and_orders(tmp_path):
    data = example()
    others = [data.without_orders(), data.with_missing(np.eye(3, dtype=bool)[::-1] * 0 == 1)]
    assert others[1] == data
    other = data.without_orders().with_missing([[True, False, False]] + [[False] * 3] * 2)
    for changed in (others[0], other):
        assert changed != data
        assert fingerprint(changed) != fingerprint(data)
    assert pickle.loads(pickle.dumps(data)) == data  # noqa: S301 - our own bytes
    keep_data(data, tmp_path)
    assert read_data(str(tmp_path / "data.npz"), fingerprint(data)) == data


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        ({"y": [("a", "b"), ("b", "c"), ("c", "a")]}, ["'y'", "cycle", "'a' before 'b'"]),
        ({"x": [("a", "b")]}, ["'x' (position 0)", "'a' before 'b'", "not known to have 'b'"]),
        ({"z": [("b", "a")]}, ["'z'", "not known to have 'a'"]),
        ({"y": [("a", "B")]}, ["'B' (did you mean 'b'?)", "not among the items"]),
        ({"Y": []}, ["'Y' (did you mean 'y'?)", "not among the 3 samples"]),
        ({"y": [("a", "b", 0.5)]}, ["0.5", "above 0.5 and at most 1"]),
        ({"y": [("a", "b", 1.2)]}, ["1.2", "above 0.5 and at most 1"]),
        ({"y": [("a", "a")]}, ["cannot come before itself"]),
        ({"y": [("a", "b"), ("b", "a", 0.7)]}, ["two statements"]),
        ({"y": ["a<b"]}, ["not a statement"]),
        ([[]], ["1 entries for 3 samples"]),
    ],
)
def test_bad_statements_are_refused(orders, words):
    with pytest.raises(InputError) as caught:
        Dataset(example().without_orders(), orders=orders)
    for word in words:
        assert word in str(caught.value)


def test_uncertain_statements_may_form_a_cycle():
    orders = [[("a", "b", 0.8), ("b", "c", 0.8), ("c", "a", 0.8)]]
    assert len(Dataset([[1, 1, 1]], items=ITEMS, orders=orders).orders[0]) == 3


def test_a_sample_without_a_known_cell_is_refused():
    with pytest.raises(InputError, match=r"all cells of 1 sample are missing: 's2' \(position 1\)"):
        Dataset([[1, 0], [None, None]], samples=["s1", "s2"])
    with pytest.raises(InputError, match="leave it out"):
        Dataset([[1, 0], [0, 0]]).with_missing([[False, False], [True, True]])
    with pytest.raises(InputError, match="shape"):
        Dataset([[1, 0], [0, 0]]).with_missing([True, True])


def test_who_needs_complete_data_says_so():
    with pytest.raises(InputError, match=r"counting does not support missing cells: 2 cells of 2"):
        example().require_plain("counting")
    known = Dataset([[1, 1]], orders=[[("0", "1")]])
    with pytest.raises(InputError, match=r"counting does not support known orders.*without_orders"):
        known.require_plain("counting")
