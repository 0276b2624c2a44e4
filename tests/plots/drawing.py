"""Helpers for tests of plots: a model, unusual labels, and functions that read axes."""

import warnings

import numpy as np

from sequela import Model

# Unusual labels. A plot must not fail because of them, and must not interpret them as mathematics.
STRANGE = [
    "$x_1^2$",
    "a_b",
    "\\frac{1}{2}",
    "<script>&amp;",
    "😀👩‍🔬",
    "=SUM(A1)",
    "_hidden",
    "né 日本 שלום",
    "odd $ dollar",
    "a label so long that no picture can hold all of it, at least not this one",
    "a label so long that no picture can hold all of it, at least not this two",
]
LONG = STRANGE[-1]


def strange_model():
    """Return a model with unusual labels, in which each item acts on the next one, in a ring."""
    n = len(STRANGE)
    theta = np.diag(np.linspace(-2.0, 0.0, n))
    for k in range(n):
        theta[k, (k + 1) % n] = 1.5 if k % 2 else -1.0
    return Model(theta, STRANGE)


def sparse_model(n=30, interactions=12, seed=1):
    rng = np.random.default_rng(seed)
    theta = np.zeros((n, n))
    places = rng.choice(n * n, size=min(interactions, n * n // 2), replace=False)
    interactions = places.size
    theta.flat[places] = rng.normal(size=interactions) * 2.0
    np.fill_diagonal(theta, rng.normal(-2.0, 0.5, size=n))
    return Model(theta, [f"item {k}" for k in range(n)])


def ticks(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def texts(ax):
    """Return all texts in the axes and in the panels next to them."""
    import matplotlib.text

    return [x.get_text() for x in ax.findobj(matplotlib.text.Text) if x.get_text()]


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def panel(ax, label):
    return next(x for x in ax.child_axes if x.get_label() == label)


def draw(ax):
    """Render the figure, and ignore warnings about characters that the font does not have."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        ax.figure.canvas.draw()


def assert_nothing_is_cut_off(ax):
    draw(ax)
    box, frame = ax.get_tightbbox(), ax.figure.bbox
    assert box.x0 >= frame.x0
    assert box.y0 >= frame.y0
    assert box.x1 <= frame.x1
    assert box.y1 <= frame.y1


def boxes(found):
    """Return the boxes of texts, in pixels. Lines from texts to their points are not included."""
    from matplotlib.text import Text

    placed = []
    for x in found:
        renderer = x.figure.canvas.get_renderer()
        if hasattr(x, "update_positions"):
            x.update_positions(renderer)
        placed.append(Text.get_window_extent(x, renderer))
    return placed


def assert_apart(found):
    placed = boxes(found)
    for k, one in enumerate(placed):
        for other in placed[k + 1 :]:
            assert not one.overlaps(other)
