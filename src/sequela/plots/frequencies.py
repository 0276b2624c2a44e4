"""Plot the frequencies of items: observed in the data against expected by the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.plots.agreement import Agreement, check_outliers, draw_agreement
from sequela.plots.labels import short
from sequela.plots.style import check_columns, open_axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["plot_frequencies"]

_BARS = 60  # if there are more items, a band is drawn and not error bars


def plot_frequencies(
    table: pd.DataFrame, *, beyond: float = 2.0, max_labels: int = 15, ax: Axes | None = None
) -> Axes:
    """Draw observed frequencies of items against expected frequencies, and name the outliers.

    Both axes have a square-root scale, on which sampling noise has about the same width everywhere.
    Error bars show two standard deviations of this noise. If there are more than 60 items, a
    band around the diagonal shows this noise instead.

    Parameters
    ----------
    table : DataFrame
        From ``item_frequencies(model, data)``.
    beyond : float
        An item is an outlier if its two frequencies differ by more than this many standard
        deviations.
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
    >>> table = questions.item_frequencies(example_theta(), data)
    >>> plot_frequencies(table, ax=Figure().subplots()).get_xlabel()
    'expected frequency'
    """
    maker = "item_frequencies(model, data)"
    table = check_columns("table", table, ("model", "se", "data", "z"), maker)
    beyond, max_labels = check_outliers(beyond, max_labels)
    expected, observed = (table[name].to_numpy(dtype=float) for name in ("model", "data"))
    z = np.nan_to_num(table["z"].to_numpy(dtype=float), posinf=1e9, neginf=-1e9)
    n_samples, spread = _sampling_noise(expected, observed, table["se"].to_numpy(dtype=float), z)
    many = len(table) > _BARS
    ax = open_axes(ax, 5.4, 5.8)
    ax.set_xlabel("expected frequency")
    ax.set_ylabel("observed frequency")
    points = Agreement(
        expected, observed, z, short(table.index), spread=None if many else spread,
        n_samples=n_samples if many else None,
    )  # fmt: skip
    draw_agreement(ax, points, beyond=beyond, max_labels=max_labels)
    return ax


def _sampling_noise(
    expected: NDArray[np.float64],
    observed: NDArray[np.float64],
    se: NDArray[np.float64],
    z: NDArray[np.float64],
) -> tuple[float | None, NDArray[np.float64] | None]:
    """Return the number of samples and the standard deviations of the observed frequencies.

    The number of samples is computed from the z-scores `z`. If this is not possible for any
    z-score, both results are None.
    """
    binomial = expected * (1.0 - expected)
    with np.errstate(divide="ignore", invalid="ignore"):
        per_sample = ((observed - expected) / z) ** 2 - se**2
        counts = binomial / per_sample
    usable = (np.abs(z) > 1e-6) & (np.abs(z) < 1e8) & np.isfinite(counts) & (counts > 0.0)
    if not usable.any():
        return None, None
    n_samples = float(np.median(counts[usable]))
    return n_samples, np.sqrt(binomial / n_samples + se**2)
