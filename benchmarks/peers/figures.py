"""The plots of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers.gather import varied
from benchmarks.peers.plan import OURS, TITLES
from sequela.plots.style import SMALL, TEXT, load, save_figure, series
from sequela.plots.ticks import plain_ticks

if TYPE_CHECKING:
    from pathlib import Path

_PLACES = {OURS: 0, "mhn": 1, "paper": 2, "fastmhn": 3}
# Smaller differences in the objective are drawn at this value: they do not matter, and a
# logarithmic axis cannot show zero.
_SMALLEST_GAP = 1e-6


def draw(found: dict[str, Any], folder: Path) -> list[str]:
    """Draw all plots for which there are data; return their file names."""
    plots = {
        "time_against_n.svg": _time_against_n,
        "time_against_size.svg": _time_against_size,
        "objective_against_time.svg": _objective_against_time,
        "growth.svg": _growth,
    }
    for name, plot in plots.items():
        figure = plot(found)
        _finish(figure)
        save_figure(figure, folder / name)
        load("matplotlib.pyplot").close(figure)
    return list(plots)


def _panels(count: int) -> tuple[Any, list[Any]]:
    width = 3.3 * count + 0.4
    figure, axes = load("matplotlib.pyplot").subplots(
        1, count, figsize=(width, 3.0), layout="constrained", squeeze=False
    )
    return figure, list(axes[0])


def _finish(figure: Any) -> None:
    for ax in figure.axes:
        ax.tick_params(labelsize=SMALL)
        ax.xaxis.label.set_size(TEXT)
        ax.yaxis.label.set_size(TEXT)
        ax.title.set_size(TEXT)
        ax.spines[["top", "right"]].set_visible(False)
        if ax.get_legend_handles_labels()[1]:
            ax.legend(fontsize=SMALL, frameon=False)


def _line(ax: Any, tool: str, x: Any, y: Any, **options: Any) -> None:
    colour, style, marker = series(_PLACES[tool])
    chosen = {"color": colour, "linestyle": style, "marker": marker, "markersize": 4.0, **options}
    ax.plot(x, y, **chosen)


def _time_against_n(found: dict[str, Any]) -> Any:
    """Draw the times of a gradient and of fits to the glioblastoma data.

    Open marks are fits that were stopped.
    """
    figure, (left, right) = _panels(2)
    rows = [
        {**row, "tool": OURS, "status": "finished", "gradient, s": row["gradient alone, s"]}
        for row in found["ours"]
        if row["case"].startswith("gbm-")
    ]
    rows += [row for row in found["side by side"] if row["case"].startswith("gbm-")]
    for tool in _PLACES:
        own = [row for row in rows if row["tool"] == tool]
        for ax, key in ((left, "gradient, s"), (right, "seconds")):
            known = [row for row in own if row.get(key)]
            if not known:
                continue
            x, y = ([row[name] for row in known] for name in ("n", key))
            _line(ax, tool, x, y, label=TITLES[tool])
            cut = [row for row in known if row["status"] == "stopped"]
            if ax is right and cut:
                x, y = ([row[name] for row in cut] for name in ("n", key))
                _line(ax, tool, x, y, linestyle="none", markerfacecolor="white", zorder=3)
    for ax, label in ((left, "one gradient, s"), (right, "learning, s")):
        ax.set(xscale="log", yscale="log", xlabel="items n", ylabel=label)
        if rows:
            plain_ticks(ax.xaxis, {row["n"] for row in rows}, ax)
    return figure


def _time_against_size(found: dict[str, Any]) -> Any:
    """Draw the time of a value and gradient of one set."""
    figure, (ax,) = _panels(1)
    for name, record in sorted(found["one set"].items()):
        curve = record.get("seconds by size") or {}
        sparse = record["theta"] == "sparse"
        label = TITLES[record["tool"]] + (", sparse theta" if sparse else "")
        options = {"markerfacecolor": "white"} if sparse else {}
        x, y = [int(k) for k in curve], list(curve.values())
        _line(ax, record["tool"], x, y, label=label, gid=name, **options)
    ax.set(yscale="log", xlabel="items in the set", ylabel="one value and gradient, s")
    return figure


def _objective_against_time(found: dict[str, Any]) -> Any:
    """Draw, against time, how far each tool is below the best objective on the same samples."""
    rows = found["side by side"]
    cases = [row["case"] for row in rows if row["tool"] == "mhn" and row["objective"] is not None]
    wanted = [name for name in ("gbm-20", "gbm-50", "gbm-100") if name in cases] or cases[:2]
    figure, axes = _panels(max(len(wanted), 1))
    for ax, case in zip(axes, wanted, strict=False):
        for row in rows:
            name = f"{case}--{row['tool']}"
            if row["case"] != case or row["our objective"] is None:
                continue
            same = f"{case}--{OURS}--as-{row['tool']}"
            ours = found["curves"].get(same) or found["curves"].get(f"{case}--{OURS}", [])
            curve = found["curves"][name]
            best = max(value for _, value in [*ours, *curve])
            _gap(ax, row["tool"], curve, best, TITLES[row["tool"]])
            if row["tool"] == "mhn":
                # Draw only one fit of sequela: the fit to those samples that mhn can use. The curve
                # of the fit to all samples is close to it.
                _gap(ax, OURS, ours, best, TITLES[OURS])
                ax.set_title(row["title"])
        ax.set(xscale="log", yscale="log", xlabel="time, s")
    axes[0].set_ylabel("below the best objective")
    return figure


def _gap(ax: Any, tool: str, curve: list[list[float]], best: float, label: str) -> None:
    x = [max(seconds, 1e-4) for seconds, _ in curve]
    y = [max(best - value, _SMALLEST_GAP) for _, value in curve]
    _line(ax, tool, x, y, label=label, markersize=2.5)


def _growth(found: dict[str, Any]) -> Any:
    """Draw the time of sequela against N, n and the number of interactions."""
    figure, axes = _panels(3)
    labels = {"N": "samples N", "n": "items n", "interactions": "interactions in theta"}
    for ax, (key, label) in zip(axes, labels.items(), strict=True):
        rows = varied(found["growth"]["rows"], key)
        for cost, name, place in (("seconds", "learning", 0), ("gradient, s", "one gradient", 1)):
            known = [row for row in rows if row[cost]]
            colour, style, marker = series(place)
            x, y = ([row[k] for row in known] for k in (key, cost))
            if known:
                ax.plot(x, y, color=colour, linestyle=style, marker=marker, label=name)
        ax.set(xscale="log", yscale="log", xlabel=label)
        if rows:
            _proportional(ax, rows, key)
            plain_ticks(ax.xaxis, {row[key] for row in rows}, ax)
    axes[0].set_ylabel("seconds")
    return figure


def _proportional(ax: Any, rows: list[dict[str, Any]], key: str) -> None:
    """Draw a line of times proportional to the size, through the time of the first gradient."""
    x = np.array([rows[0][key], rows[-1][key]], dtype=float)
    ax.plot(x, rows[0]["gradient, s"] * x / x[0], color="0.7", linewidth=0.8, label="in proportion")
