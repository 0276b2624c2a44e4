"""Plot posterior densities of the observation times of samples (Fig. 1 of the paper)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.plots.labels import legend, short
from sequela.plots.style import SMALL, TEXT, open_axes, series
from sequela.questions.clock import TimePosterior
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_time_densities"]

_HELD = 0.995  # the time axis covers at least this share of every posterior


def plot_time_densities(
    posteriors: TimePosterior | Sequence[TimePosterior] | Mapping[Any, TimePosterior],
    labels: Iterable[Any] | None = None,
    *,
    times: Sequence[float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw posterior densities of observation times. A dot and a vertical line mark each mean.

    If a density was estimated from drawn orders, a band shows two standard errors.

    Parameters
    ----------
    posteriors : TimePosterior, list of TimePosterior, or mapping from label to TimePosterior
        From `time_posterior`.
    labels : list or None
        One label per posterior; None: the labels of the mapping, or 1, 2, ...
    times : sequence of float or None
        The times at which the densities are computed. None: each density has its own grid.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sequela import questions
    >>> from sequela.data.examples import example_theta
    >>> posterior = questions.time_posterior(example_theta(), {"first", "second"})
    >>> ax = plot_time_densities([posterior], labels=["both"], ax=Figure().subplots())
    >>> ax.get_legend().get_texts()[0].get_text()
    'both: mean 0.75'
    """
    listed, names = _read(posteriors, labels)
    ax = open_axes(ax, 6.0, 4.0)
    handles = []
    last = 0.0
    for place, posterior in enumerate(listed):
        table = posterior.density(times)
        colour, style, _ = series(place)
        x, y = table.index.to_numpy(), table["density"].to_numpy()
        error = table["se"].to_numpy()
        if (error > 0.0).any():
            ax.fill_between(
                x, np.maximum(y - 2 * error, 0.0), y + 2 * error, color=colour, alpha=0.25,
                linewidth=0,
            )  # fmt: skip
        handles += ax.plot(x, y, color=colour, linestyle=style, linewidth=1.6)
        beyond = np.nonzero(table["cumulative"].to_numpy() >= _HELD)[0]
        last = max(last, float(x[-1] if times is not None or not beyond.size else x[beyond[0]]))
        height = float(np.interp(posterior.mean, x, y))
        ax.vlines(posterior.mean, 0.0, height, color=colour, linestyle=style, linewidth=0.8)
        ax.plot([posterior.mean], [height], color=colour, marker="o", markersize=4)
    ax.set_xlim(0.0, last)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("observation time", fontsize=TEXT)
    ax.set_ylabel("posterior density", fontsize=TEXT)
    texts = [
        f"{name}: mean {p.mean:.2f}{f' ± {p.mean_se:.1g}' if p.mean_se > 0.0 else ''}"
        for name, p in zip(short(names, 40), listed, strict=True)
    ]
    where: dict[str, Any] = {"loc": "upper right"}
    if len(listed) > 7:
        where = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    legend(ax, handles, texts, frameon=False, fontsize=SMALL, handlelength=3.0, **where)
    return ax


def _read(posteriors: Any, labels: Any) -> tuple[list[TimePosterior], list[Any]]:
    if isinstance(posteriors, TimePosterior):
        posteriors = [posteriors]
    names: list[Any] | None = None
    if isinstance(posteriors, Mapping):
        names, posteriors = list(posteriors), list(posteriors.values())
    if not isinstance(posteriors, Iterable) or isinstance(posteriors, (str, bytes)):
        raise InputError(
            f"posteriors is of type {type(posteriors).__name__}; expected a TimePosterior from "
            "time_posterior(model, sample), or several of them"
        )
    listed = list(posteriors)
    for place, posterior in enumerate(listed):
        if not isinstance(posterior, TimePosterior):
            raise InputError(
                f"posteriors, position {place}: found {type(posterior).__name__}; expected a "
                "TimePosterior from time_posterior(model, sample)"
            )
    if not listed:
        raise InputError("posteriors is empty; expected at least one TimePosterior")
    if labels is not None:
        names = [labels] if isinstance(labels, str) else list(labels)
    if names is None:
        names = list(range(1, len(listed) + 1))
    if len(names) != len(listed):
        raise InputError(
            f"labels has {len(names)} entries for {len(listed)} posteriors; expected one label per "
            "posterior"
        )
    return listed, names
