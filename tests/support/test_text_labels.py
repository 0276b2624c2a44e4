"""Labels: their Unicode spelling, forbidden characters, and how terminals show them."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sequela import Dataset, InputError, Model, order_probability
from sequela.data.maf import read_maf
from sequela.data.tables import read_table
from sequela.support.labels import compose, find_disguised, find_unfit, visible

FLAG = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
DRAWN = set("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")
ORDINARY = [
    "TP53", "CDK4(A)", "né", "Ångström", "日本語", "עברית", "العربية", "நிலா", "👩\u200d🔬",
    "🏳️\u200d🌈", "❤️", "👍🏽", FLAG, "می\u200cخواهم", "a b", "x\u00a0y", "漢\u3000字", "\u0600",
]  # fmt: skip
ACTING = [
    "\x1b]0;owned\x07", "\x9b31m", "\u202eabc", "\u2066a\u2069", "\u200e", "\u061c", "\u2028",
    "\u2029", "a\nb", "a\tb", "a\rb", "\x00", "\x7f", "\x85", "\ufeffa", "\xad", "\u2060",
    "a\u200db", "a\u200d", "\u200da", "\ud800", "\udfff", "\uffff", "\ufdd0", "\ue000",
    "\U000e0041",
]  # fmt: skip


@pytest.mark.parametrize("label", ORDINARY)
def test_ordinary_labels_are_accepted_and_printed_as_they_are(label):
    assert find_unfit([label]) is None
    assert visible(label) == label
    assert Dataset([[1]], items=[label]).items == (compose(label),)
    assert Model([[0.0]], [label]).items == (compose(label),)


@pytest.mark.parametrize("label", ACTING)
def test_labels_that_act_or_hide_are_refused_everywhere(label):
    assert find_unfit(["a", label])[0] == 1
    for build in (
        lambda: Dataset([[1]], items=[label]),
        lambda: Dataset([[1]], samples=[label]),
        lambda: Model([[0.0]], [label]),
    ):
        with pytest.raises(InputError, match="position 0") as caught:
            build()
        assert str(caught.value).isprintable()


@given(st.text(st.characters(exclude_categories=[])))
def test_what_is_printed_acts_on_nothing(text):
    shown = visible(text, one_line=True)
    shown.encode()
    bare = shown.replace("\u200d", "").replace("\u200c", "")
    flags = [x for x in bare if "\U000e0020" <= x <= "\U000e007f"]
    assert not flags or "\U0001f3f4" in bare
    kinds = {unicodedata.category(x) for x in bare if x not in DRAWN and x not in flags}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_lines_and_tabs_stay_where_they_may():
    assert visible("a\n\tb\r") == "a\n\tb\\r"
    assert visible("a\n\tb", one_line=True) == "a\\n\\tb"


@pytest.mark.parametrize(
    ("one", "other"),
    [("n\xe9", "ne\u0301"), ("a b", "a\xa0b"), ("❤️", "❤"), ("한", "\u1112\u1161\u11ab")],
)
def test_two_labels_that_look_the_same_are_refused_with_both_named(one, other):
    assert find_disguised(["x", one, other]) == (1, 2)
    with pytest.raises(InputError, match="look the same") as caught:
        Model(np.zeros((2, 2)), [one, other])
    assert ascii(one) in str(caught.value)
    assert ascii(other) in str(caught.value)


def test_one_spelling_in_files_and_questions(tmp_path):
    (tmp_path / "t.csv").write_text("sample,ne\u0301,b\ns\u0301,1,0\n", encoding="utf-8")
    data = read_table(tmp_path / "t.csv", items=["n\xe9"]).data
    assert data.items == ("n\xe9",)
    assert data.select_samples(["s\u0301"]).samples == ("\u015b",)
    assert data.select_items(["ne\u0301"]).items == data.items
    model = Model([[0.0, 1.0], [0.0, 0.0]], ["ne\u0301", "b"])
    assert order_probability(model, "n\xe9", "b") == order_probability(model, "ne\u0301", "b")


@pytest.mark.parametrize(
    "text", ["sample,n\xe9,ne\u0301\ns,1,0\n", "sample,a\ne\u0301,1\n\xe9,0\n"]
)
def test_the_same_label_twice_in_a_table_is_refused(text, tmp_path):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(
        InputError, match=r"occurs twice.*compared after Unicode normalisation to NFC"
    ):
        read_table(tmp_path / "t.csv")


MAF = "Hugo_Symbol\tTumor_Sample_Barcode\tVariant_Classification\n"
LINES = "A\ts1\tMissense_Mutation\nB\ts2\tMissense_Mutation\n"


def read(text, tmp_path):
    (tmp_path / "x.maf").write_text(text, encoding="utf-8")
    return read_maf(tmp_path / "x.maf").data


@pytest.mark.parametrize("header", [MAF, MAF.upper(), MAF.replace("\t", " \t"), MAF.lower()])
def test_a_repeated_header_of_a_maf_is_no_sample(header, tmp_path):
    assert read(MAF + LINES + header + LINES, tmp_path).samples == ("s1", "s2")


def test_a_second_header_with_other_columns_is_refused(tmp_path):
    other = "Tumor_Sample_Barcode\tHugo_Symbol\tVariant_Classification\n"
    with pytest.raises(InputError, match="line 4: a second header, with other columns"):
        read(MAF + LINES + other + LINES, tmp_path)


def test_one_sample_in_two_spellings_is_one_sample(tmp_path):
    text = MAF + "A\t\xe9\tMissense_Mutation\nB\te\u0301\tMissense_Mutation\n"
    assert read(text, tmp_path).samples == ("\xe9",)


@pytest.mark.parametrize("end", ["\x0c", "0\x0c", "s2,0,1\x0c\n", "\x0c\n\n", "s2,0\x0c,1", "\x1a"])
def test_a_control_character_in_a_table_is_told(end, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"sample,A,B\ns1,1,0\n{end}", encoding="utf-8")
    with pytest.raises(InputError, match="line 3"):
        read_table(path)


def test_a_form_feed_at_the_end_of_a_maf_is_told(tmp_path):
    with pytest.raises(InputError, match="line 4"):
        read(MAF + LINES + "\x0c", tmp_path)
