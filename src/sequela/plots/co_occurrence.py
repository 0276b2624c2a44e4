"""Plot how often two items occur together: observed in the data against expected by the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.plots.agreement import Agreement, check_outliers, draw_agreement
from sequela.plots.labels import shorten
from sequela.plots.style import check_result, open_axes
from sequela.questions.goodness import GoodnessOfFit
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_co_occurrence"]

_LONGEST = 12


def plot_co_occurrence(
    goodness: GoodnessOfFit, *, beyond: float = 3.0, max_labels: int = 10, ax: Axes | None = None
) -> Axes:
    """Draw observed numbers of samples with both items of a pair against expected numbers.

    Both axes have a square-root scale, on which sampling noise has about the same width everywhere.
    The band shows two standard deviations of this noise. If there are many pairs, some lie outside
    the band by chance.

    Parameters
    ----------
    goodness : GoodnessOfFit
        From `goodness_of_fit`.
    beyond : float
        A pair is an outlier if its two numbers differ by more than this many standard deviations.
    max_labels : int
        Name at most this many outliers, the largest differences first. Names that do not fit into
        the figure are left out.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sequela import questions
    >>> from sequela.data.examples import example_theta
    >>> from sequela.simulation import simulate
    >>> data = simulate(example_theta(), 300, random_state=1).to_dataset()
    >>> goodness = questions.goodness_of_fit(example_theta(), data, draws=2000, random_state=2)
    >>> plot_co_occurrence(goodness, ax=Figure().subplots()).get_ylabel()
    'observed samples with both items'
    """
    beyond, max_labels = check_outliers(beyond, max_labels)
    check_result("goodness", goodness, GoodnessOfFit, "goodness_of_fit(model, data)")
    pairs = goodness.pairs
    if pairs.empty:
        raise InputError(
            "goodness has no pairs, because the model has one item; expected two or more items"
        )
    n_samples = float(goodness.sizes["observed"].sum())
    names = [
        f"{shorten(a, _LONGEST)} + {shorten(b, _LONGEST)}"
        for a, b in zip(pairs["a"], pairs["b"], strict=True)
    ]
    ax = open_axes(ax, 5.4, 5.8)
    ax.set_xlabel("expected samples with both items")
    ax.set_ylabel("observed samples with both items")
    points = Agreement(
        expected=pairs["expected"].to_numpy(dtype=float),
        observed=pairs["observed"].to_numpy(dtype=float),
        z=np.nan_to_num(pairs["z"].to_numpy(dtype=float)),
        names=names,
        whole=n_samples,
        n_samples=n_samples,
    )
    draw_agreement(ax, points, beyond=beyond, max_labels=max_labels)
    return ax
