"""What all plots share: axes, colours, and how figures are saved."""

import sys

import numpy as np
import pandas as pd
import pytest

from plots.drawing import STRANGE, assert_nothing_is_cut_off, strange_model
from sequela import InputError, SequelaError, example_theta
from sequela.plots import style
from sequela.plots.labels import clean
from sequela.plots.style import save_figure
from sequela.plots.theta import plot_theta


def test_the_same_drawing_gives_the_same_bytes(tmp_path, plt):
    for k in (1, 2):
        save_figure(plot_theta(example_theta(), max_items=3), tmp_path / f"{k}.svg")
        _, ax = plt.subplots(figsize=(2, 2))
        for suffix in ("pdf", "png"):
            save_figure(ax, tmp_path / f"{k}.{suffix}", dpi=60)
    for suffix in ("svg", "pdf", "png"):
        first = (tmp_path / f"1.{suffix}").read_bytes()
        assert first == (tmp_path / f"2.{suffix}").read_bytes()
        assert len(first) > 1000


def test_in_svg_text_stays_text_and_cannot_be_markup(tmp_path):
    from xml.etree import ElementTree as ET

    save_figure(plot_theta(strange_model(), order="given"), tmp_path / "x.svg")
    tree = ET.parse(tmp_path / "x.svg")  # noqa: S314 - our own file
    found = ["".join(x.itertext()) for x in tree.iter("{http://www.w3.org/2000/svg}text")]
    for label in STRANGE[:-2]:
        assert clean(label) in found
    assert not list(tree.iter("{http://www.w3.org/2000/svg}script"))
    raw = (tmp_path / "x.svg").read_text()
    assert "<dc:date>" not in raw


def test_the_format_is_that_of_the_suffix(tmp_path, plt):
    _, ax = plt.subplots()
    for name, begins in (("a.png", b"\x89PNG"), ("b.PDF", b"%PDF"), ("c.svg", b"<?xml")):
        save_figure(ax.figure, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins)
    for name in ("d.docx", "e", "f.jpg"):
        with pytest.raises(InputError, match=r"\.png, \.svg or \.pdf"):
            save_figure(ax, tmp_path / name)
        assert not (tmp_path / name).exists()
    with pytest.raises(InputError, match="figure is of type str"):
        save_figure("theta", tmp_path / "g.png")


def test_a_failure_leaves_the_old_file(tmp_path, plt, monkeypatch):
    path = tmp_path / "x.png"
    path.write_text("old")
    _, ax = plt.subplots()

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(ax.figure, "savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        save_figure(ax, path)
    assert path.read_text() == "old"
    assert [x.name for x in tmp_path.iterdir()] == ["x.png"]


def test_parts_of_a_figure_stand_for_the_whole(tmp_path, plt):
    figure = plt.figure()
    part = figure.subfigures(1, 2)[1]
    ax = part.subplots()
    for given in (figure, part, ax):
        assert style.root(given) is figure
        save_figure(given, tmp_path / "x.png")


def test_labels_have_room_where_nobody_did_the_layout(tmp_path, plt):
    _, ax = plt.subplots(figsize=(2, 2))
    ax.set_ylabel("outside", labelpad=200)
    save_figure(ax, tmp_path / "x.svg")
    assert "outside" in (tmp_path / "x.svg").read_text()
    width = float((tmp_path / "x.svg").read_text().split('width="')[1].split("pt")[0])
    assert width > 2 * 72 + 100


def test_nothing_is_cut_off():
    assert_nothing_is_cut_off(plot_theta(example_theta()))
    assert_nothing_is_cut_off(plot_theta(np.diag([-1.0, -2.0])))


def test_axes_are_checked(plt):
    with pytest.raises(InputError, match="ax is of type list; expected a matplotlib Axes"):
        style.open_axes([], 1.0, 1.0)
    _, ax = plt.subplots()
    assert style.open_axes(ax, 1.0, 1.0) is ax


@pytest.mark.parametrize("missing", ["matplotlib", "networkx"])
def test_what_is_missing_is_named(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SequelaError, match=rf'need {missing}.*pip install "sequela\[plot\]"'):
        style.load(missing)


def test_the_colours_are_symmetric_and_zero_is_white():
    for step in (False, True):
        colours = style.diverging(step=step)
        light = np.array([sum(colours(x)[:3]) for x in np.linspace(0.0, 1.0, 11)])
        assert light.argmax() == 5
        assert (np.diff(light[:6]) > 0).all()
        assert (np.diff(light[5:]) < 0).all()
    # Only an effect of zero is white. Even the weakest effect has a clearly different colour.
    assert colours(0.5) == (1.0, 1.0, 1.0, 1.0)
    assert min(colours(0.501)[:3]) < 0.9
    assert min(colours(0.499)[:3]) < 0.9


def test_many_curves_differ():
    assert len({str(style.series(k)) for k in range(40)}) == 40


def test_tables_are_checked():
    table = pd.DataFrame({"a": [1]})
    assert style.check_columns("table", table, ["a"], "somewhere") is table
    with pytest.raises(InputError, match=r"table has no column 'b' \(it has 'a'\).*somewhere"):
        style.check_columns("table", table, ["a", "b"], "somewhere")
    with pytest.raises(InputError, match="table is of type list"):
        style.check_columns("table", [], ["a"], "somewhere")
    with pytest.raises(InputError, match="table has no rows"):
        style.check_columns("table", table.iloc[:0], ["a"], "somewhere")
