"""Which items occur together: in the data against what the model expects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.plots.agreement import check_outliers, draw_agreement
from sequela.plots.labels import shorten
from sequela.plots.style import open_axes
from sequela.questions.goodness import GoodnessOfFit
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_co_occurrence"]

_LONGEST = 12


def plot_co_occurrence(
    goodness: GoodnessOfFit, *, beyond: float = 3.0, label: int = 10, ax: Axes | None = None
) -> Axes:
    """Draw observed numbers of samples with both of two items against expected ones.

    The scales are those of square roots, on which chance is about as wide everywhere; the band is
    two standard deviations of chance. Of many pairs some lie outside by chance alone.

    Parameters
    ----------
    goodness : GoodnessOfFit
        From `goodness_of_fit`.
    beyond : float
        From how many standard deviations on a pair counts as an outlier.
    label : int
        How many outliers are named, the furthest first; what finds no place is left out.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> import sequela
    >>> from matplotlib.figure import Figure
    >>> theta = sequela.example_theta()
    >>> data = sequela.simulate(theta, 300, random_state=1).to_dataset()
    >>> found = sequela.goodness_of_fit(theta, data, draws=2000, random_state=2)
    >>> plot_co_occurrence(found, ax=Figure().subplots()).get_ylabel()
    'observed samples with both items'
    """
    limit, count = check_outliers(beyond, label)
    if not isinstance(goodness, GoodnessOfFit):
        raise InputError(
            f"goodness is of type {type(goodness).__name__}; expected GoodnessOfFit, as "
            "goodness_of_fit(model, data) returns"
        )
    pairs = goodness.pairs
    if pairs.empty:
        raise InputError("goodness has no pairs: the model has one item; expected two or more")
    samples = float(goodness.sizes["observed"].sum())
    names = [
        f"{shorten(a, _LONGEST)} + {shorten(b, _LONGEST)}"
        for a, b in zip(pairs["a"], pairs["b"], strict=True)
    ]
    ax = open_axes(ax, 5.4, 5.8)
    ax.set_xlabel("expected samples with both items")
    ax.set_ylabel("observed samples with both items")
    draw_agreement(
        ax, pairs["expected"].to_numpy(dtype=float), pairs["observed"].to_numpy(dtype=float), None,
        np.nan_to_num(pairs["z"].to_numpy(dtype=float)), names, samples=samples, whole=samples,
        beyond=limit, label=count,
    )  # fmt: skip
    return ax
