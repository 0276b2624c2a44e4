"""Figures of a model, which are chosen by the name of their kind."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import sequela
from sequela.report import FIGURES, FigureOptions, draw_figure
from sequela.report.figures import needs_data


@pytest.fixture(scope="module")
def data():
    return sequela.example_samples()


@pytest.fixture(scope="module")
def model(data):
    """Return a model that has fewer items than the data."""
    return sequela.fit(data.most_frequent(5), penalty=0.01)


@pytest.mark.parametrize("kind", FIGURES)
def test_every_kind_is_drawn_where_it_is_wanted(kind, model, data):
    ax = Figure().subplots()
    assert draw_figure(kind, model, data, ax=ax) is ax
    assert ax.has_data() or ax.texts


@pytest.mark.parametrize("kind", FIGURES)
def test_kinds_of_samples_need_samples(kind, model):
    if needs_data(kind):
        with pytest.raises(sequela.InputError, match="needs data"):
            draw_figure(kind, model)
    else:
        assert draw_figure(kind, model, ax=Figure().subplots()).has_data()


def test_orders_are_of_items_that_the_model_has(model, data):
    def drawn(options=None):
        ax = draw_figure("orders", model, data, options, ax=Figure().subplots())
        return {label.get_text() for label in ax.get_yticklabels()}

    assert drawn() == set(model.items)
    assert len(drawn(FigureOptions(max_items=3))) == 3
    assert drawn(FigureOptions(items=("PTEN", "EGFR"))) == {"PTEN", "EGFR"}


def test_what_is_unknown_is_refused(model, data):
    with pytest.raises(sequela.InputError, match="no figure 'pie'; expected one of theta"):
        draw_figure("pie", model)
    with pytest.raises(sequela.InputError, match="no sample 'nobody'"):
        draw_figure("times", model, data, FigureOptions(samples=("nobody",)))
