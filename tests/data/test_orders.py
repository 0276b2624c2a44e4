"""Known orders from tables and from cell fractions, and table cells without a value."""

import numpy as np
import pandas as pd
import pytest

from sequela import Dataset, InputError, read_table
from sequela.data import orders_from_fractions, read_orders

DATA = Dataset([[1, 1, 1, 0], [1, 1, 0, 0]], items=["a", "b", "c", "d"], samples=["s1", "s2"])


def written(tmp_path, text):
    path = tmp_path / "orders.csv"
    path.write_text(text)
    return path


def test_a_table_of_orders(tmp_path):
    path = written(
        tmp_path, "Sample;Before;After;Probability;x\ns1;a;b;0,9;\n\ns1;b;c;;\ns2;b;a;1;\n"
    )
    found = read_orders(path, DATA)
    assert found == {"s1": (("a", "b", 0.9), ("b", "c", 1.0)), "s2": (("b", "a", 1.0),)}
    assert Dataset(DATA, orders=found).orders[1] == (("b", "a", 1.0),)


def test_what_is_known_about_other_items_stays_if_one_is_left_out(tmp_path):
    path = written(tmp_path, "sample,before,after\ns1,a,b\ns1,b,c\n")
    fewer = DATA.select_items(["a", "c", "d"])
    assert read_orders(path, fewer, ignored={"b"}) == {"s1": (("a", "c", 1.0),)}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("s1,a,b,\ns1,b,c,\ns1,c,a,", ["line 4", "'s1'", "cycle"]),
        ("s1,a,d,", ["line 2", "sample 's1'", "not known to have 'd'"]),
        ("s1,a,e,", ["line 2", "'e'", "not among the items"]),
        ("s3,a,b,", ["line 2", "'s3' is not among the 2 samples"]),
        ("s1,a,b,0.5", ["line 2", "above 0.5 and at most 1"]),
        ("s1,a,b,much", ["line 2", "'much'"]),
        ("s1,a,b,\ns1,b,a,0.9", ["line 3", "two statements"]),
        ("s1,a,b", ["line 2", "3 cells, expected 4"]),
    ],
)
def test_bad_lines_are_named(tmp_path, body, words):
    path = written(tmp_path, f"sample,before,after,probability\n{body}\n")
    with pytest.raises(InputError) as caught:
        read_orders(path, DATA)
    for word in ["orders.csv", *words]:
        assert word in str(caught.value)


def test_columns_are_asked_for(tmp_path):
    with pytest.raises(InputError, match="no column 'before'"):
        read_orders(written(tmp_path, "sample,first,second\ns1,a,b\n"))


def test_fractions_become_statements():
    fractions = pd.DataFrame(
        {"a": [0.9, 0.5, 0.0], "b": [0.5, 0.45, 0.5], "c": [0.1, np.nan, 0.2]}, index=list("xyz")
    )
    found = orders_from_fractions(fractions, errors=0.05)
    # In sample x, a came before b, and b before c. So a came before c, which is not listed. In
    # sample y, the fractions of a and b are too similar. In sample z, only b and c are present.
    assert [(s.before, s.after) for s in found["x"]] == [("a", "b"), ("b", "c")]
    assert set(found) == {"x", "z"}
    p = found["z"][0].probability
    draws = np.random.default_rng(1).normal([0.5, 0.2], 0.05, (100_000, 2))
    assert p == pytest.approx(np.mean(draws[:, 0] > draws[:, 1]), abs=1e-3)


def test_reads_and_doubts_make_statements_weaker():
    fractions = pd.DataFrame({"a": [0.5], "b": [0.3]}, index=["x"])
    few = orders_from_fractions(fractions, depths=40.0, threshold=0.6)["x"][0].probability
    many = orders_from_fractions(fractions, depths=400.0, threshold=0.6)["x"][0].probability
    rng = np.random.default_rng(2)
    drawn = np.mean(rng.beta(21, 21, 200_000) > rng.beta(13, 29, 200_000))
    assert few == pytest.approx(drawn, abs=0.005)
    assert 0.9 < few < many < 1.0
    doubted = orders_from_fractions(fractions, depths=400.0, threshold=0.6, reliability=0.9)
    assert doubted["x"][0].probability == pytest.approx(0.9 * many + 0.1 * (1 - many), abs=1e-5)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "either errors or depths"),
        ({"errors": 0.1, "depths": 10.0}, "either errors or depths"),
        ({"errors": 0.1, "threshold": 0.5}, "threshold is 0.5"),
        ({"errors": 0.1, "reliability": 0.2}, "reliability is 0.2"),
        ({"errors": 0.0}, "sample 'x', item 'a': found 0"),
        ({"errors": pd.DataFrame({"a": [0.1]})}, "in the same order"),
    ],
)
def test_bad_options_are_refused(options, word):
    fractions = pd.DataFrame({"a": [0.5], "b": [0.3]}, index=["x"])
    with pytest.raises(InputError, match=word):
        orders_from_fractions(fractions, **options)


def table(tmp_path, body):
    path = tmp_path / "table.csv"
    path.write_text("sample,A,B\n" + body)
    return path


def test_not_available_is_a_missing_cell(tmp_path):
    found = read_table(table(tmp_path, "s1,1,NA\ns2,nan,0\ns3,1,1\n"))
    assert found.data.missing.tolist() == [[False, True], [True, False], [False, False]]
    assert found.summary.missing[0].cells == 2
    turned = tmp_path / "turned.csv"
    turned.write_text("item,s1,s2,s3\nA,1,NA,1\nB,NA,0,1\n")
    assert read_table(turned, items_in_rows=True).data == found.data


def test_an_empty_cell_means_what_the_user_says(tmp_path):
    path = table(tmp_path, "s1,1,\ns2,1,0\ns3,0,NA\n")
    with pytest.raises(InputError, match=r"line 2.*missing='keep'.*missing='absent'"):
        read_table(path)
    assert read_table(path, missing="keep").data.n_missing == 2
    absent = read_table(path, missing="absent").data
    assert absent.missing is None
    assert absent.values.tolist() == [[True, False], [True, False], [False, False]]
    with pytest.raises(InputError, match="line 4"):
        read_table(table(tmp_path, "s1,1,0\ns2,1,0\ns3,0,NA\n"), missing="refuse")
    with pytest.raises(InputError, match="missing must be"):
        read_table(path, missing="perhaps")


def test_a_sample_without_values_is_refused_with_its_line(tmp_path):
    with pytest.raises(InputError, match=r"table.csv', line 3, sample 's2': all cells are missing"):
        read_table(table(tmp_path, "s1,1,0\ns2,NA,NA\n"))
