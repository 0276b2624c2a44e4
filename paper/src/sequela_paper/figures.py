"""Functions that several figures of the paper use: panels, and curves with error bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sequela.plots.style import SMALL, TEXT, load, series

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["curve", "finish", "legend_below", "panels"]


def panels(rows: int, columns: int, width: float = 3.3, height: float = 2.6) -> tuple[Any, Any]:
    """Return a figure and its grid of axes; `width` and `height` of each panel are in inches."""
    plt = load("matplotlib.pyplot")
    figure, axes = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), layout="constrained", squeeze=False
    )
    return figure, axes


def curve(
    ax: Any,
    table: pd.DataFrame,
    x: str,
    y: str,
    error: str | tuple[str, str] | None,
    place: int,
    label: str,
) -> None:
    """Draw a curve with error bars; `place` is the number of its colour, line style and marker.

    `error` is the name of a column with half the length of the error bars, or of two columns with
    their lower and upper ends.
    """
    colour, style, marker = series(place)
    bars: Any = None
    if isinstance(error, tuple):
        bars = [table[y] - table[error[0]], table[error[1]] - table[y]]
    elif error is not None:
        bars = table[error]
    ax.errorbar(
        table[x], table[y], yerr=bars, color=colour,
        linestyle=style, marker=marker, markersize=3.5, linewidth=1.2, capsize=2.0, label=label,
    )  # fmt: skip


def finish(ax: Any, *, title: str = "", x: str = "", y: str = "", legend: bool = True) -> None:
    """Add title, labels and legend to a panel, in the common font sizes."""
    if title:
        ax.set_title(title, fontsize=TEXT)
    ax.set_xlabel(x, fontsize=TEXT)
    ax.set_ylabel(y, fontsize=TEXT)
    ax.tick_params(labelsize=SMALL)
    for spine in ("top", "right"):
        ax.spines[spine].set_visible(False)
    if legend and ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=SMALL, frameon=False)


def legend_below(figure: Any, ax: Any, columns: int) -> None:
    """Add a legend below all panels, from the curves of one panel."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, fontsize=SMALL, frameon=False
    )
