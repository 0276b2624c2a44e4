"""Labels in plots: literal text, shortened if long, never equal, and never overlapping."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plots.drawing import STRANGE, assert_apart, boxes, draw, legend_texts
from sequela.plots.labels import clean, legend, place_beside, short, shorten, text_width


@pytest.mark.parametrize("label", [x for x in STRANGE if x.isprintable()])
def test_what_can_be_shown_is_not_changed(label):
    assert clean(label) == label
    assert shorten(label, 100) == label


def test_what_a_picture_cannot_hold_is_replaced():
    assert clean("a\nb\tc") == "a b c"
    assert clean("a\x00b\u202ec\ud800d\uffff") == "a\ufffdb\ufffdc\ufffdd\ufffd"
    assert clean(7) == "7"


@given(st.text(), st.integers(3, 30))
def test_a_label_fits_and_can_be_written(label, columns):
    found = shorten(label, columns)
    found.encode()
    assert not any(unicodedata.category(x) in ("Cc", "Cs") for x in found)
    wide = sum(
        0
        if unicodedata.combining(x) or x in "\u200d\ufe0e\ufe0f"
        else 2
        if unicodedata.east_asian_width(x) in "WF"
        else 1
        for x in found
    )
    assert wide <= columns


def test_both_ends_of_a_long_label_stay():
    assert shorten("beginning and a very distant end", 12) == "beginni… end"
    assert len(shorten("x" * 500)) == 18


def test_an_emoji_is_not_cut_in_half():
    found = shorten("👩‍🔬" * 20, 8)
    assert "…" in found
    head, tail = found.split("…")
    assert not head.endswith("\u200d")
    assert not tail.startswith("\u200d")


def test_labels_that_become_alike_are_told_apart():
    found = short(["a" * 40 + "1" + "b" * 40, "a" * 40 + "2" + "b" * 40, "c"])
    assert found[0].endswith(" #1")
    assert found[1].endswith(" #2")
    assert found[2] == "c"


@pytest.mark.parametrize("text", ["PIK3CA", "CDKN2A(D)", "iiii", "WWWW", "a label", "step 1"])
def test_the_width_of_a_text_is_not_underestimated(plt, text):
    _, ax = plt.subplots()
    written = ax.text(0.1, 0.5, text, fontsize=10)
    points = written.get_window_extent().width * 72.0 / ax.figure.dpi
    assert points <= text_width(text, 10.0) <= 1.6 * points


def test_a_legend_shows_labels_as_they_are(plt):
    _, ax = plt.subplots()
    lines = [ax.plot([0, 1])[0] for _ in STRANGE]
    shown = [clean(x) for x in STRANGE]
    found = legend(ax, lines, shown)
    assert legend_texts(ax) == shown
    assert not any(text.get_parse_math() or text.get_usetex() for text in found.get_texts())
    draw(ax)


def test_labels_do_not_cover_each_other_or_leave_the_axes(plt):
    _, ax = plt.subplots(figsize=(5, 5))
    rng = np.random.default_rng(1)
    points = rng.normal(0.5, 0.12, size=(40, 2))
    ax.scatter(*points.T)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    draw(ax)
    made = place_beside(
        ax, points, [(k, f"point {k}") for k in range(40)], size=8, color="k", max_labels=25
    )
    assert 8 <= len(made) <= 25
    assert_apart(made)
    frame = ax.get_window_extent()
    for box in boxes(made):
        assert frame.x0 <= box.x0
        assert box.x1 <= frame.x1
    # Each label is near the point to which it belongs.
    for text in made:
        np.testing.assert_allclose(text.xy, points[int(text.get_text().split()[1])])


def test_one_lone_label_stands_close_to_its_point(plt):
    _, ax = plt.subplots()
    made = place_beside(ax, [[0.5, 0.5]], [(0, "here")], size=8, color="k", max_labels=1)
    assert made[0].get_text() == "here"
    assert np.hypot(*made[0].xyann) < 40
