"""How often items occur: in the data against what the model expects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.plots.agreement import check_outliers, draw_agreement
from sequela.plots.labels import short
from sequela.plots.style import check_columns, open_axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["plot_frequencies"]

_BARS = 60  # items up to which each has an error bar of its own


def plot_frequencies(
    table: pd.DataFrame, *, beyond: float = 2.0, label: int = 15, ax: Axes | None = None
) -> Axes:
    """Draw observed frequencies of items against expected ones; name the outliers.

    The scales are those of square roots, on which chance is about as wide everywhere. Bars are two
    standard deviations of chance.

    Parameters
    ----------
    table : DataFrame
        ``item_frequencies(model, data)``, with data.
    beyond : float
        From how many standard deviations on an item counts as an outlier.
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
    >>> table = sequela.item_frequencies(theta, data)
    >>> plot_frequencies(table, ax=Figure().subplots()).get_xlabel()
    'expected frequency'
    """
    maker = "item_frequencies(model, data), with data"
    table = check_columns("table", table, ("model", "se", "data", "z"), maker)
    limit, count = check_outliers(beyond, label)
    expected, observed = (table[name].to_numpy(dtype=float) for name in ("model", "data"))
    z = np.nan_to_num(table["z"].to_numpy(dtype=float), posinf=1e9, neginf=-1e9)
    samples, spread = _chance(expected, observed, table["se"].to_numpy(dtype=float), z)
    ax = open_axes(ax, 5.4, 5.8)
    ax.set_xlabel("expected frequency")
    ax.set_ylabel("observed frequency")
    draw_agreement(
        ax, expected, observed, spread if len(table) <= _BARS else None, z, short(table.index),
        samples=samples if len(table) > _BARS else None, whole=1.0, beyond=limit, label=count,
    )  # fmt: skip
    return ax


def _chance(
    expected: NDArray[np.float64],
    observed: NDArray[np.float64],
    se: NDArray[np.float64],
    z: NDArray[np.float64],
) -> tuple[float | None, NDArray[np.float64] | None]:
    """Return the number of samples, which the scores tell, and the standard deviations."""
    binomial = expected * (1.0 - expected)
    with np.errstate(divide="ignore", invalid="ignore"):
        per_sample = ((observed - expected) / z) ** 2 - se**2
        counts = binomial / per_sample
    usable = (np.abs(z) > 1e-6) & (np.abs(z) < 1e8) & np.isfinite(counts) & (counts > 0.0)
    if not usable.any():
        return None, None
    samples = float(np.median(counts[usable]))
    return samples, np.sqrt(binomial / samples + se**2)
