"""Input of `Dataset`: what is accepted, what is refused, and the error messages."""

import copy
import pickle
import re
import subprocess
import sys
from decimal import Decimal
from itertools import pairwise

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from label_strategies import distinct, labels
from sequela.data import Dataset
from sequela.support.errors import InputError

ITEMS = ["IDH1", "TP53", "ATRX"]
SAMPLES = ["s1", "s2"]

tables = hnp.arrays(
    np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.booleans()
)
quick = settings(deadline=None, max_examples=60)


@st.composite
def datasets(draw):
    values = draw(tables)
    label = labels(max_size=4)
    n_samples, n_items = values.shape
    times = st.floats(0, 1e6) | st.just(float("nan"))
    return Dataset(
        values,
        items=draw(distinct(label, min_size=n_items, max_size=n_items)),
        samples=draw(distinct(label, min_size=n_samples, max_size=n_samples)),
        times=draw(st.none() | st.lists(times, min_size=n_samples, max_size=n_samples)),
    )


def frame(**columns):
    return pd.DataFrame(columns, index=SAMPLES)


def message(build, *args, **kwargs):
    """Return the message with which `Dataset` refuses the input."""
    with pytest.raises(InputError) as caught:
        build(*args, **kwargs)
    return str(caught.value)


def assert_in_order(text, *parts):
    """Assert that the message contains these parts, one after the other."""
    pattern = ".*".join(re.escape(part) for part in parts)
    assert re.search(pattern, text, flags=re.DOTALL), f"{parts} not in {text!r}"


# Accepted input


@pytest.mark.parametrize(
    "values",
    [
        [[1, 0, 1], [0, 0, 1]],
        ((True, False, True), (False, False, True)),
        [[True, 0, 1.0], [np.int8(0), np.float32(0), np.True_]],
        np.array([[1, 0, 1], [0, 0, 1]], dtype=np.uint8),
        np.array([[1, 0, 1], [0, 0, 1]], dtype=np.float16),
        np.asfortranarray(np.array([[1, 0, 1], [0, 0, 1]], dtype=bool)),
        np.array([[True, 0, 1.0], [False, 0, 1]], dtype=object),
        np.ma.masked_equal([[1, 0, 1], [0, 0, 1]], 7),
        scipy.sparse.csr_array(np.array([[1, 0, 1], [0, 0, 1]])),
        scipy.sparse.coo_matrix(np.array([[1.0, 0, 1], [0, 0, 1]])),
    ],
)
def test_array_likes_are_read(values):
    data = Dataset(values)
    assert data.values.tolist() == [[True, False, True], [False, False, True]]
    assert data.values.dtype == np.bool_
    assert data.values.flags.c_contiguous
    assert data.items == ("0", "1", "2")
    assert data.samples == ("0", "1")
    assert data.times is None
    assert (data.n_samples, data.n_items, len(data)) == (2, 3, 2)


def test_a_frame_brings_its_labels_and_its_mixed_types():
    data = Dataset(
        frame(
            plain=[True, False],
            number=[0, 1],
            real=[1.0, 0.0],
            mixed=pd.Series([True, 0], dtype=object).to_numpy(),
            nullable=pd.array([True, False], dtype="boolean"),
            integer=pd.array([0, 1], dtype="Int64"),
            sparse=pd.arrays.SparseArray([1, 0]),
        )
    )
    assert data.samples == ("s1", "s2")
    assert data.items == ("plain", "number", "real", "mixed", "nullable", "integer", "sparse")
    assert data.values.astype(int).tolist() == [[1, 0, 1, 1, 1, 0, 1], [0, 1, 0, 0, 0, 1, 0]]


def test_a_default_index_gives_its_numbers_as_text():
    data = Dataset(pd.DataFrame([[1, 0], [0, 1]]).iloc[1:])
    assert (data.items, data.samples) == (("0", "1"), ("1",))


def test_given_labels_override_those_of_a_frame():
    data = Dataset(frame(a=[1, 0], b=[0, 0]), items=["x", 2], samples=[1.5, "t"])
    assert (data.items, data.samples) == (("x", "2"), ("1.5", "t"))


def test_a_dataset_can_be_relabelled_and_keeps_the_rest():
    first = Dataset([[1, 0], [0, 1]], items=["a", "b"], times=[1, 2])
    second = Dataset(first, items=["c", "d"])
    assert second.items == ("c", "d")
    assert second.times.tolist() == [1.0, 2.0]
    assert Dataset(first, times=[3, 4]).times.tolist() == [3.0, 4.0]


def test_empty_sets_and_items_that_never_occur_are_legal():
    data = Dataset(np.zeros((2, 3), dtype=bool))
    assert data.set_sizes.tolist() == [0, 0]
    assert data.frequencies.tolist() == [0.0, 0.0, 0.0]
    assert data.sets() == [frozenset(), frozenset()]


@pytest.mark.parametrize(
    "times",
    [
        [0, None, 2.5],
        (0.0, float("nan"), np.float32(2.5)),
        np.array([0, np.nan, 2.5]),
        pd.Series([0, pd.NA, 2.5], dtype="Float64"),
        np.ma.masked_equal([0, 9, 2.5], 9),
    ],
)
def test_times_may_be_unknown(times):
    data = Dataset([[1], [0], [1]], times=times)
    assert data.times.dtype == np.float64
    np.testing.assert_array_equal(data.times, [0.0, np.nan, 2.5])


# Refused input: cells


@pytest.mark.parametrize(
    "found", [0.9, 1.0000001, -1, 2, float("inf"), 10**30, Decimal("0.9"), 1e-300]
)
@pytest.mark.parametrize("container", [list, pd.DataFrame, lambda t: np.array(t, dtype=object)])
def test_non_binary_cells_are_named(found, container):
    rows = container([[1, 0, 1], [1, found, 0]])
    text = message(Dataset, rows, items=ITEMS, samples=SAMPLES)
    assert_in_order(
        text,
        "0 or 1",
        "1 of 6",
        "row 's2' (position 1), column 'TP53' (position 1): " + repr(found),
        "Values are not rounded",
    )


@pytest.mark.parametrize("found", [1 + 0j, np.timedelta64(1, "s"), pd.Timestamp("2020-01-01"), {1}])
def test_objects_that_are_no_numbers_are_named(found):
    text = message(Dataset, np.array([[1, 0], [found, 0]], dtype=object))
    assert_in_order(text, "1 of 4", "row '1' (position 1), column '0' (position 0): ")
    assert ("from_sets" in text) == isinstance(found, set)


def test_many_bad_cells_are_counted_and_the_first_are_shown():
    text = message(Dataset, np.full((4, 5), 0.5))
    assert_in_order(text, "20 of 20", "row '0' (position 0), column '0' (position 0): 0.5")
    assert_in_order(text, "column '2' (position 2)", "and 17 more")
    assert "column '3'" not in text


def test_bad_cells_of_different_columns_are_counted_together():
    text = message(Dataset, frame(a=[1, 2], b=[0.5, 1.0], c=[True, False]))
    assert_in_order(text, "2 of 6")
    assert_in_order(text, "row 's2' (position 1), column 'a' (position 0): 2")
    assert_in_order(text, "row 's1' (position 0), column 'b' (position 1): 0.5")


@pytest.mark.parametrize(
    "values",
    [
        [[1, 0], [0, float("nan")]],
        [[1, 0], [0, None]],
        np.array([[1, 0], [0, pd.NA]], dtype=object),
        np.ma.masked_array([[1, 0], [0, 1]], mask=[[0, 0], [0, 1]]),
        pd.DataFrame({"a": [1, 0], "b": [0, np.nan]}),
        pd.DataFrame({"a": [1, 0], "b": pd.array([0, None], dtype="Int8")}),
        pd.DataFrame({"a": [1, 0], "b": pd.array([False, None], dtype="boolean")}),
        pd.DataFrame({"a": [1, 0], "b": pd.arrays.SparseArray([0, np.nan])}),
        pd.DataFrame({"a": [1, 0], "b": np.array([True, None], dtype=object)}),
    ],
)
def test_missing_cells_are_kept(values):
    data = Dataset(values, items=["IDH1", "TP53"], samples=SAMPLES)
    assert data.n_missing == 1
    assert data.missing.tolist() == [[False, False], [False, True]]
    assert not data.values[1, 1]
    frame = data.to_frame()
    assert frame.isna().to_numpy().tolist() == data.missing.tolist()
    assert Dataset(frame) == data
    assert data.frequencies["TP53"] == data.values[0, 1]


@pytest.mark.parametrize(
    "values",
    [
        [[1, "0"], [True, 0]],
        np.array([[1, "0"], [1, 0]], dtype=object),
        pd.DataFrame({"a": [1, 0], "b": np.array(["0", 1], dtype=object)}),
    ],
)
def test_one_text_among_numbers_is_named(values):
    text = message(Dataset, values, items=["a", "b"], samples=SAMPLES)
    assert_in_order(text, "1 of 4", "row 's1' (position 0), column 'b' (position 1): '0'")
    assert_in_order(text, "Text is not read as numbers", ".astype(int)")


@pytest.mark.parametrize(
    "values",
    [
        [["1", "0"]],
        np.array([["1", "0"]]),
        np.array([[b"1", b"0"]]),
        pd.DataFrame({"a": ["1"], "b": ["0"]}),
        pd.DataFrame({"a": ["1"], "b": ["0"]}, dtype=object),
    ],
)
def test_text_is_not_taken_for_numbers(values):
    text = message(Dataset, values, items=["a", "b"])
    assert_in_order(text, "2 of 2", "row '0' (position 0), column 'a' (position 0)", "astype(int)")


def test_words_get_another_remedy_than_digits():
    # The text "False" is true for .astype(bool), so the message must not recommend this method.
    text = message(Dataset, frame(a=["False", "True"]))
    assert_in_order(text, "row 's1' (position 0), column 'a' (position 0): 'False'", "(values ==")
    assert "astype" not in text


@pytest.mark.parametrize(
    ("column", "type_name"),
    [
        (pd.Categorical([0, 1]), "category"),
        (pd.Categorical([True, False]), "category"),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), "datetime64"),
        (pd.to_datetime(["2020-01-01", "2020-01-02"], utc=True), "UTC"),
        (pd.to_timedelta([0, 1]), "timedelta64"),
        (pd.period_range("2020", periods=2, freq="D"), "period[D]"),
        (np.array([0, 1j]), "complex128"),
    ],
)
def test_columns_of_another_type_are_named(column, type_name):
    text = message(Dataset, frame(fine=[1, 0], odd=column))
    assert_in_order(text, "column 'odd' (position 1)", type_name, "expected", "Drop it")


@pytest.mark.parametrize("dtype", ["complex64", "datetime64[D]", "timedelta64[s]", "i4,i4"])
def test_arrays_of_another_type_are_refused(dtype):
    array = np.zeros((2, 2), dtype=dtype)
    assert_in_order(message(Dataset, array), "values has the type", str(array.dtype), "0 and 1")


# Refused input: shapes and labels


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1, 0, 1], "entries are not rows of equal length (list)"),
        (np.array([1, 0]), "1-dimensional (ndarray)"),
        (pd.Series([1, 0]), "1-dimensional (Series)"),
        (np.zeros((2, 2, 2)), "3-dimensional (ndarray)"),
        ([[[1]]], "3-dimensional (list)"),
        ([[1, 0], [1]], "(row 0 has 2 entries, row 1 has 1)"),
        ([{"a"}, {"b"}], "entries are not rows of equal length"),
        (1, "0-dimensional (int)"),
        ({"a": [1]}, "0-dimensional (dict)"),
        (None, "0-dimensional (NoneType)"),
    ],
)
def test_what_is_not_a_table_is_refused(values, found):
    text = message(Dataset, values)
    assert_in_order(text, "two-dimensional, samples in rows", found, "from_sets")


def test_a_frame_of_another_library_would_lose_its_labels():
    class Foreign:
        def to_pandas(self):
            raise AssertionError

    assert_in_order(message(Dataset, Foreign()), "Foreign", "values.to_pandas()")


@pytest.mark.parametrize(
    ("shape", "what"), [((0, 3), "no samples (rows)"), ((3, 0), "no items (columns)")]
)
@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame])
def test_nothing_is_refused(shape, what, container):
    text = message(Dataset, container(np.zeros(shape)))
    assert_in_order(text, what, str(shape), "At least one")


def test_repeated_items_are_named_with_their_positions():
    text = message(Dataset, pd.DataFrame([[1, 0, 1, 1]], columns=["a", 1, "a", "1"]))
    assert_in_order(text, "items (the columns", "'a' at positions 0 and 2")
    assert_in_order(text, "'1' at positions 1 and 3", "Rename")
    assert_in_order(message(Dataset, [[1, 0]], items=[1, "1"]), "items", "'1' at positions 0 and 1")


def test_repeated_samples_are_named_with_their_positions():
    table = pd.DataFrame({"a": [1, 0, 1]}, index=["x", "y", "x"])
    text = message(Dataset, table)
    assert_in_order(text, "samples (the index", "'x' at positions 0 and 2")
    assert "'y'" not in text
    assert Dataset(table, samples=["x", "y", "z"]).samples == ("x", "y", "z")


def test_many_repeated_labels_are_counted():
    text = message(Dataset, np.zeros((1, 10)), items=list("abcdeabcde"))
    assert_in_order(text, "'a' at positions 0 and 5", "'c' at positions 2 and 7", "and 2 more")
    assert "'d'" not in text


@pytest.mark.parametrize("bad", [None, float("nan"), pd.NA, "", "  ", ("a", "b"), b"a", ["a"]])
@pytest.mark.parametrize("argument", ["items", "samples"])
def test_labels_that_are_no_names_are_refused(bad, argument):
    text = message(Dataset, np.eye(2), **{argument: ["a", bad]})
    assert_in_order(text, f"{argument}, position 1", "not empty", repr(bad), "name")


def test_columns_of_several_levels_are_refused():
    columns = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    text = message(Dataset, pd.DataFrame([[1, 0]], columns=columns))
    assert_in_order(text, "columns", "position 0", "('a', 'x')", "join")


@pytest.mark.parametrize("argument", ["items", "samples"])
@pytest.mark.parametrize("labels", [["a"], ["a", "b", "c"], []])
def test_the_number_of_labels_must_fit(argument, labels):
    text = message(Dataset, np.eye(2), **{argument: labels})
    assert_in_order(text, f"{argument} has {len(labels)} labels for 2 {argument}")


@pytest.mark.parametrize("argument", ["items", "samples", "times"])
@pytest.mark.parametrize("bad", ["ab", {"a", "b"}, {"a": 1, "b": 2}, 3])
def test_labels_and_times_need_an_order(argument, bad):
    text = message(Dataset, np.eye(2), **{argument: bad})
    assert_in_order(text, f"{argument} must be a list", f"of type {type(bad).__name__}")


@pytest.mark.parametrize("wrap", [lambda table: table, Dataset])
def test_labels_in_another_order_would_exchange_columns(wrap):
    table = wrap(frame(a=[1, 0], b=[0, 0]))
    assert_in_order(message(Dataset, table, items=["b", "a"]), "items", "select_items")
    assert_in_order(message(Dataset, table, samples=["s2", "s1"]), "samples", "select_samples")
    assert Dataset(table, items=["a", "b"], samples=SAMPLES).items == ("a", "b")


# Refused input: times


@pytest.mark.parametrize(
    "bad",
    [
        -1,
        -1e-9,
        float("inf"),
        float("-inf"),
        10**400,
        "3",
        True,
        np.True_,
        1j,
        [1],
        pd.Timestamp("2020-01-01"),
        np.timedelta64(3, "D"),
    ],
)
def test_bad_times_name_the_sample(bad):
    text = message(Dataset, np.eye(2), samples=SAMPLES, times=[1, bad])
    assert_in_order(text, "finite numbers of at least 0", "sample 's2' (position 1): ")
    assert "s1" not in text
    assert_in_order(text, "one unit", "NaN")


def test_many_bad_times_are_counted():
    text = message(Dataset, np.eye(5), times=[-1, -2, 0, -3, -4])
    assert_in_order(text, "sample '0' (position 0): -1", "'3' (position 3): -3", "and 1 more")


@pytest.mark.parametrize("times", [[1], [1, 2, 3], np.array([])])
def test_the_number_of_times_must_fit(times):
    text = message(Dataset, np.eye(2), times=times)
    assert_in_order(text, f"times has {len(times)} entries for 2 samples")


def test_a_series_of_times_must_follow_the_samples():
    table = frame(a=[1, 0])
    good = pd.Series([5.0, 7.0], index=SAMPLES)
    assert Dataset(table, times=good).times.tolist() == [5.0, 7.0]
    assert Dataset(table, times=good.reset_index(drop=True)).times.tolist() == [5.0, 7.0]
    assert Dataset(table, times=good[::-1].to_numpy()).times.tolist() == [7.0, 5.0]
    text = message(Dataset, table, times=good[::-1])
    assert_in_order(text, "times", "position 0 it has 's2', but the sample is 's1'", "reindex")
    text = message(Dataset, table, times=pd.Series([5.0, 7.0], index=["s1", "other"]))
    assert_in_order(text, "position 1 it has 'other', but the sample is 's2'")


# Sets of labels


def test_sets_give_items_in_order_of_first_appearance():
    data = Dataset.from_sets([["b"], (), ("a", "b"), np.array(["c"])], times=[1, 2, 3, None])
    assert data.items == ("b", "a", "c")
    assert data.values.astype(int).tolist() == [[1, 0, 0], [0, 0, 0], [1, 1, 0], [0, 0, 1]]
    assert data.times[:3].tolist() == [1.0, 2.0, 3.0]


def test_numbers_in_sets_are_labels_not_positions():
    data = Dataset.from_sets([{10, 2}, {0}])
    assert data.items == ("2", "10", "0")
    assert data.sets() == [{"2", "10"}, {"0"}]
    assert Dataset.from_sets([{3, "x"}]).items == ("3", "x")


def test_the_order_of_items_does_not_depend_on_the_hash_seed():
    code = (
        "from sequela.data import Dataset\n"
        "print(Dataset.from_sets([set('qwerty'), set('asdfgh')]).items)"
    )
    path = [p for p in sys.path if p]
    for seed in "123":
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == str((*"eqrtwy", *"adfghs"))


def test_given_items_fix_the_columns():
    data = Dataset.from_sets([{"TP53"}, set()], items=ITEMS, samples=SAMPLES)
    assert data.items == tuple(ITEMS)
    assert data.values.astype(int).tolist() == [[0, 1, 0], [0, 0, 0]]


def test_a_series_of_sets_brings_its_ids():
    data = Dataset.from_sets(pd.Series([{"a"}, {"b"}], index=SAMPLES))
    assert data.samples == ("s1", "s2")


@pytest.mark.parametrize(
    ("label", "hint"),
    [("TP35", "did you mean 'TP53'?"), ("idh1", "did you mean 'IDH1'?"), ("zzz", None)],
)
def test_unknown_labels_name_sample_and_closest_item(label, hint):
    text = message(Dataset.from_sets, [["TP53"], [label]], items=ITEMS, samples=SAMPLES)
    assert_in_order(text, "sample 's2' (position 1)", repr(label), "not among items")
    if hint is None:
        assert "did you mean" not in text
    else:
        assert hint in text


@pytest.mark.parametrize("row", [["a", "b", "a"], [1, "1"], {1, "1"}])
def test_a_label_twice_in_one_set_is_refused(row):
    text = message(Dataset.from_sets, [[], row], samples=SAMPLES)
    assert_in_order(text, "sample 's2' (position 1)", "more than once", repr(str(row.copy().pop())))
    assert "'b'" not in text


@pytest.mark.parametrize("row", ["TP53", b"TP53", {"TP53": 1}, None, float("nan"), 3])
def test_what_is_not_a_set_is_refused(row):
    text = message(Dataset.from_sets, [[], row], samples=SAMPLES)
    assert_in_order(text, "sample 's2' (position 1)", "set or a list", repr(row), "['label']")


@pytest.mark.parametrize("label", [None, float("nan"), "", ("a",)])
def test_what_is_not_a_label_is_refused_in_a_set(label):
    text = message(Dataset.from_sets, [{"a"}, {label}], samples=SAMPLES)
    assert_in_order(text, "sample 's2' (position 1)", "not empty", repr(label))


@pytest.mark.parametrize("sets", ["ab", {frozenset("a")}, {"s": {"a"}}, 3])
def test_the_list_of_sets_needs_an_order(sets):
    assert_in_order(message(Dataset.from_sets, sets), "sets must be a list", type(sets).__name__)


def test_no_sets_and_no_labels_are_refused():
    assert "no samples (rows)" in message(Dataset.from_sets, [])
    assert_in_order(message(Dataset.from_sets, [set(), set()]), "no items (columns)", "items=")
    assert "no items (columns)" in message(Dataset.from_sets, [set()], items=[])


def test_repeated_items_and_wrong_ids_of_sets_are_refused():
    text = message(Dataset.from_sets, [{"a"}], items=["a", "b", "a"])
    assert "'a' at positions 0 and 2" in text
    text = message(Dataset.from_sets, [{"a"}], samples=["x", "y"])
    assert "samples has 2 labels for 1 samples" in text


# Dataset.coerce: a data set from data of any kind


def test_coerce_lets_a_dataset_pass():
    data = Dataset(np.eye(2))
    assert Dataset.coerce(data) is data
    timed = Dataset.coerce(data, times=[1, 2])
    assert timed.times.tolist() == [1.0, 2.0]
    assert data.times is None


@pytest.mark.parametrize(
    "data",
    [
        [{"a"}, frozenset({"a", "b"})],
        ({"a"}, {"a", "b"}),
        pd.Series([{"a"}, {"a", "b"}], index=["0", "1"]),
        pd.DataFrame({"a": [1, 1], "b": [0, 1]}),
    ],
)
def test_coerce_reads_what_holds_data(data):
    wanted = Dataset([[1, 0], [1, 1]], items=["a", "b"], times=[1, 2])
    assert Dataset.coerce(data, times=[1, 2]) == wanted


@pytest.mark.parametrize("data", [[], [{"a"}, ["a"]], "ab", [1, 0]])
def test_coerce_refuses_the_rest(data):
    assert "values must be two-dimensional" in message(Dataset.coerce, data)


# Selections


@pytest.fixture
def data():
    return Dataset(
        [[1, 0, 1], [0, 0, 1], [1, 1, 0], [0, 0, 0]],
        items=ITEMS,
        samples=["w", "x", "y", "z"],
        times=[1, 2, np.nan, 4],
    )


def test_summaries(data):
    assert data.set_sizes.tolist() == [2, 1, 2, 0]
    assert data.frequencies.to_dict() == {"IDH1": 0.5, "TP53": 0.25, "ATRX": 0.5}
    assert data.sets()[0] == {"IDH1", "ATRX"}


def test_selected_items_come_in_the_order_asked_for(data):
    chosen = data.select_items(["ATRX", "IDH1"])
    assert chosen.items == ("ATRX", "IDH1")
    assert chosen.values.astype(int).tolist() == [[1, 1], [1, 0], [0, 1], [0, 0]]
    assert chosen.samples == data.samples
    np.testing.assert_array_equal(chosen.times, data.times)
    assert chosen.values.flags.c_contiguous


@pytest.mark.parametrize(
    ("labels", "parts"),
    [
        (["ATXR"], ["'ATXR' (did you mean 'ATRX'?)", "3 items"]),
        (["TP53", "TP53"], ["'TP53' at positions 0 and 1"]),
        ([], ["no items"]),
        ("TP53", ["must be a list", "'TP53'"]),
    ],
)
def test_bad_selections_of_items_are_refused(data, labels, parts):
    assert_in_order(message(data.select_items, labels), *parts)


@pytest.mark.parametrize(
    "which",
    [
        ["y", "w"],
        np.array(["y", "w"]),
        [2, 0],
        np.array([2, 0]),
        [-2, -4],
        pd.Series(["y", "w"], index=["w", "x"]),
    ],
)
def test_samples_by_id_and_by_position(data, which):
    chosen = data.select_samples(which)
    assert chosen.samples == ("y", "w")
    assert chosen.values.astype(int).tolist() == [[1, 1, 0], [1, 0, 1]]
    np.testing.assert_array_equal(chosen.times, [np.nan, 1.0])
    assert chosen.items == data.items


@pytest.mark.parametrize(
    "mask",
    [
        [True, False, False, True],
        np.array([True, False, False, True]),
        pd.Series([True, False, False, True], index=list("wxyz"), dtype="boolean"),
    ],
)
def test_samples_by_mask(data, mask):
    assert data.select_samples(mask).samples == ("w", "z")


def test_integers_are_positions_even_if_ids_are_numbers():
    data = Dataset([[1], [0], [1]], samples=[2, 0, 1])
    assert data.select_samples([2]).samples == ("1",)
    assert data.select_samples(["2"]).samples == ("2",)


@pytest.mark.parametrize(
    ("which", "parts"),
    [
        (["w", "nope"], ["'nope'", "4 samples"]),
        ([True, False], ["mask has 2 entries for 4 samples"]),
        ([4], ["position 4 is outside the 4 samples"]),
        ([-5], ["position -5 is outside"]),
        ([0, "w"], ["found int, str"]),
        ([0.0], ["found float"]),
        ([], ["no samples"]),
        ([False] * 4, ["no samples"]),
        ([0, 1, 0], ["'w' at positions 0 and 2"]),
        ([0, -4], ["'w' at positions 0 and 1"]),
        ("w", ["must be a list"]),
        (pd.Series([True, False, True, True], index=list("xwyz")), ["the mask", "'x'", "'w'"]),
    ],
)
def test_bad_selections_of_samples_are_refused(data, which, parts):
    assert_in_order(message(data.select_samples, which), *parts)


def test_most_frequent_breaks_ties_by_column(data):
    assert data.most_frequent(3).items == ("IDH1", "ATRX", "TP53")
    assert data.most_frequent(np.int64(1)).items == ("IDH1",)


@pytest.mark.parametrize("n", [0, -1, 4, 1.0, True, "2", None])
def test_most_frequent_refuses_what_is_not_a_number_of_items(data, n):
    assert_in_order(message(data.most_frequent, n), "from 1 to 3", repr(n))


# Data sets are immutable, and can be compared and pickled


def test_the_callers_data_are_copied():
    values = np.eye(2, dtype=bool)
    times = np.array([1.0, 2.0])
    table = pd.DataFrame(np.eye(2, dtype=bool))
    data, from_frame = Dataset(values, times=times), Dataset(table)
    values[:] = True
    times[:] = 9.0
    table.iloc[:, :] = True
    assert data.values.tolist() == from_frame.values.tolist() == [[True, False], [False, True]]
    assert data.times.tolist() == [1.0, 2.0]
    assert values.flags.writeable
    assert times.flags.writeable


def test_nothing_can_be_changed(data):
    for made in (data, data.select_samples(["w"]), pickle.loads(pickle.dumps(data))):  # noqa: S301
        with pytest.raises(ValueError, match="read-only"):
            made.values[0, 0] = False
        with pytest.raises(ValueError, match="read-only"):
            made.times[0] = 3.0
        for name in ("values", "items", "samples", "times", "n_items", "anything"):
            with pytest.raises(AttributeError):
                setattr(made, name, None)
    exported = data.to_frame()
    exported.iloc[0, 0] = False
    assert data.values[0, 0]


def test_equality_sees_every_part(data):
    assert data == Dataset(data)
    changed = data.values.copy()
    changed[3, 2] = True
    parts = {"items": data.items, "samples": data.samples}
    assert data != Dataset(changed, **parts, times=data.times)
    assert data != Dataset(data, items=["a", "b", "c"])
    assert data != Dataset(data, samples=list("abcd"))
    assert data != Dataset(data, times=[1, 2, 3, 4])
    assert data != Dataset(data.values, **parts)
    assert Dataset(data.values, **parts) == Dataset(data.values, **parts)
    assert data != "data"
    with pytest.raises(TypeError, match="unhashable"):
        hash(data)


def test_it_travels(data, tmp_path):
    assert pickle.loads(pickle.dumps(data)) == data  # noqa: S301
    assert copy.deepcopy(data) == copy.copy(data) == data
    joblib.dump(data, tmp_path / "data.joblib")
    # joblib gives large arrays to its workers as read-only memory maps.
    mapped = joblib.load(tmp_path / "data.joblib", mmap_mode="r")
    assert mapped == data
    assert mapped.compressed().counts.tolist() == data.compressed().counts.tolist()


def test_repr_is_short_and_readable(data):
    assert repr(data) == (
        "Dataset(4 samples x 3 items: 'IDH1', 'TP53', 'ATRX'; 0 to 2 items per sample; "
        "3 times known)"
    )
    wide = repr(Dataset(np.ones((1, 500))))
    assert wide == "Dataset(1 samples x 500 items: '0', '1', '2', ...; 500 to 500 items per sample)"


# Properties


@quick
@given(datasets())
def test_frame_round_trip(data):
    table = data.to_frame()
    assert Dataset(table, times=data.times) == data
    pd.testing.assert_frame_equal(Dataset(table).to_frame(), table)
    assert list(table.columns) == list(data.items)
    assert list(table.index) == list(data.samples)
    np.testing.assert_array_equal(table.to_numpy(), data.values)


@quick
@given(datasets())
def test_sets_round_trip(data):
    again = Dataset.from_sets(data.sets(), items=data.items, samples=data.samples, times=data.times)
    assert again == data


@quick
@given(tables, st.sampled_from([np.int8, np.uint64, np.float32, np.float64, object]))
def test_every_type_gives_the_same_table(values, dtype):
    np.testing.assert_array_equal(Dataset(values.astype(dtype)).values, values)
    np.testing.assert_array_equal(Dataset(values.astype(dtype).tolist()).values, values)
    np.testing.assert_array_equal(Dataset(pd.DataFrame(values.astype(dtype))).values, values)


@quick
@given(tables, st.data(), st.floats(allow_nan=False).filter(lambda x: x not in (0.0, 1.0)))
def test_no_other_number_gets_in(values, draw, wrong):
    cells = values.astype(float)
    i = draw.draw(st.integers(0, values.shape[0] - 1))
    j = draw.draw(st.integers(0, values.shape[1] - 1))
    cells[i, j] = wrong
    text = message(Dataset, cells)
    assert f"row '{i}' (position {i}), column '{j}' (position {j}): {wrong!r}" in text


@quick
@given(tables, st.integers(1, 3))
def test_compressed_is_the_table(values, times_over):
    values = np.repeat(values, times_over, axis=0)
    distinct = Dataset(values).compressed()
    assert [distinct.indptr.dtype, distinct.indices.dtype] == [np.int64, np.int32]
    assert [distinct.counts.dtype, distinct.inverse.dtype] == [np.int64, np.int64]
    ends = distinct.indptr.tolist()
    sets = [tuple(distinct.indices[a:b].tolist()) for a, b in pairwise(ends)]
    assert sets == sorted({tuple(np.flatnonzero(row).tolist()) for row in values}, key=by_size)
    rebuilt = np.zeros_like(values)
    for i, d in enumerate(distinct.inverse):
        rebuilt[i, list(sets[d])] = True
    np.testing.assert_array_equal(rebuilt, values)
    assert distinct.counts.tolist() == np.bincount(distinct.inverse, minlength=len(sets)).tolist()


def by_size(items):
    return len(items), items


def test_compressed_orders_sizes_beyond_one_byte():
    values = np.zeros((3, 600), dtype=bool)
    values[0, :257] = values[1, :2] = values[2, 300:556] = True
    distinct = Dataset(values).compressed()
    assert np.diff(distinct.indptr).tolist() == [2, 256, 257]
    assert distinct.inverse.tolist() == [2, 0, 1]


@quick
@given(datasets(), st.data())
def test_most_frequent_are_the_most_frequent_in_order(data, draw):
    n = draw.draw(st.integers(1, data.n_items))
    chosen = data.most_frequent(n)
    counts = [sum(item in s for s in data.sets()) for item in data.items]
    order = sorted(range(data.n_items), key=lambda j: (-counts[j], j))[:n]
    assert chosen.items == tuple(data.items[j] for j in order)
    np.testing.assert_array_equal(chosen.values, data.values[:, order])


@quick
@given(datasets())
def test_pickle_round_trip(data):
    assert pickle.loads(pickle.dumps(data)) == data  # noqa: S301
