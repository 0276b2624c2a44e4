"""Figure 1: clock items show the observation times, and thus that item 1 arrives before item 2.

Given the observation time, the clock items are independent. So the posterior of the time given the
clock items alone, p(t | S+) of eq. (2) in section 3.2, has a closed form up to its integral. The
integrals are computed by a quadrature rule; apart from this, all results are exact.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from sequela.plots.style import LINE, OUTLIER, SMALL, TEXT, load
from sequela_paper.experiment import Experiment, Verdict
from sequela_paper.figures import finish, panels
from sequela_paper.sources import check_files, drawn_clocks, synthetic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela_paper.experiment import Settings, Tables

__all__ = ["EXPERIMENTS", "clock_rates", "clocks_log_likelihood", "task", "time_rule"]

_CLOCKS = (0, 5, 25, 100)
_SAMPLES = 500
_NODES = 800
_TRUTH_FILE = "synthetic/synth2_theta.csv"

# The times at which densities are drawn. They are close together where densities are steep.
_LAST_TIME = 5.0
_DRAWN_TIMES = _LAST_TIME * np.linspace(0.0, 1.0, 61) ** 1.5
_DIGITS = 4


class _Look(NamedTuple):
    colour: str
    marker: str
    side: float  # the side of the axis on which the group is drawn


# The two groups with the paper's colours: red is S = {1}, blue is S = {1, 2}.
_GROUPS = {"red": "S = {1}", "blue": "S = {1, 2}"}
_LOOK = {"red": _Look(OUTLIER, "o", -1.0), "blue": _Look(LINE, "^", 1.0)}
_LEAST = 0.003  # densities below this share of the highest density are not drawn
_HIGHEST = 2.8  # upper end of the picture


# --- Posterior times given clocks -----------------------------------------------------------------


@functools.cache
def time_rule(nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return times and log-weights of a rule for integrals over the density exp(-t) of the time.

    The rule is the Gauss-Legendre rule for u in (0, 1) with t = u / (1 - u). Its nodes are close
    together near 0, where posteriors are narrow, and there is no largest time.
    """
    x, weights = np.polynomial.legendre.leggauss(nodes)
    u, rest = (1.0 + x) / 2.0, (1.0 - x) / 2.0
    times = u / rest
    return times, np.log(weights / 2.0) - 2.0 * np.log(rest) - times


def clocks_log_likelihood(
    present: NDArray[np.bool_], rates: NDArray[np.float64], times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return log p(S+ | t) of independent items, for each sample (row) and time (column).

    An item of rate w is present at time t with probability 1 - exp(-w t), section 3.2.
    """
    there = np.asarray(present, dtype=np.float64)
    with np.errstate(divide="ignore"):
        arrived = np.log(-np.expm1(-np.outer(rates, times)))
    # At time 0 the logarithm is -inf, which would give 0 * inf for absent items.
    arrived = np.maximum(arrived, -1e300)
    found: NDArray[np.float64] = there @ arrived - np.outer((1.0 - there) @ rates, times)
    return found


def clock_rates(folder: str | None, data: Dataset) -> NDArray[np.float64]:
    """Return the true rates of the clocks of `synthetic("two", folder)`."""
    items = list(data.items[2:])
    if folder is not None and (Path(folder) / "synthetic/synth2.csv").is_file():
        check_files(Path(folder), [_TRUTH_FILE], "fig1")
        truth = pd.read_csv(Path(folder) / _TRUTH_FILE, index_col=0)
        theta = np.diag(truth.loc[items, items].to_numpy(dtype=np.float64))
    else:
        theta = drawn_clocks(2)
    return np.exp(theta)


# --- The task: one number of clock items ----------------------------------------------------------


def task(*, seed: int, m: int, samples: int, folder: str | None) -> dict[str, Any]:
    """Return the posterior times of the samples given the first `m` clocks.

    No random numbers are used, because the samples are read from the data.
    """
    del seed
    data, _ = synthetic("two", folder)
    rates = clock_rates(folder, data)[:m]
    values = np.asarray(data.values[:samples])
    true_times = _times(data)[:samples]
    groups = {"red": values[:, 0] & ~values[:, 1], "blue": values[:, 0] & values[:, 1]}
    clocks = values[:, 2 : 2 + m]

    times, log_weights = time_rule(_NODES)
    log_joint = clocks_log_likelihood(clocks, rates, times) + log_weights
    top = log_joint.max(axis=1, keepdims=True)
    log_integral = top + np.log(np.exp(log_joint - top).sum(axis=1, keepdims=True))
    mass = np.exp(log_joint - log_integral)

    log_density = clocks_log_likelihood(clocks, rates, _DRAWN_TIMES) - _DRAWN_TIMES - log_integral
    mean = mass @ times
    return {
        **separation(mass[groups["red"]], mass[groups["blue"]]),
        "known_auc": _exceeds(true_times[groups["red"]], true_times[groups["blue"]]),
        "groups": {
            name: {
                "sample": np.flatnonzero(chosen).tolist(),
                "time": true_times[chosen].tolist(),
                "mean": mean[chosen].tolist(),
                "density": _short(np.exp(log_density[chosen])),
            }
            for name, chosen in groups.items()
        },
    }


def _times(data: Dataset) -> NDArray[np.float64]:
    assert data.times is not None  # noqa: S101 - synthetic data have times
    return np.asarray(data.times, dtype=np.float64)


def _short(values: NDArray[np.float64]) -> list[list[float]]:
    return [[float(f"{value:.{_DIGITS}g}") for value in row] for row in values]


def separation(red: NDArray[np.float64], blue: NDArray[np.float64]) -> dict[str, float]:
    """Return measures of the difference between two groups of posteriors; each row is a posterior.

    One time is drawn from a random posterior of the blue group, and one from a random posterior of
    the red group. "auc" is the probability that the blue time is later, with its standard error
    over samples. "overlap" is the common area under the mean densities of both groups.
    """
    red_mean, blue_mean = red.mean(axis=0), blue.mean(axis=0)
    # Half of the mass at a node counts as earlier than the node. So for two equal groups the
    # probability is exactly 1/2.
    after_red = np.cumsum(red_mean) - red_mean / 2.0
    before_blue = blue_mean.sum() - np.cumsum(blue_mean) + blue_mean / 2.0
    of_blue, of_red = blue @ after_red, red @ before_blue
    error = np.sqrt(of_blue.var(ddof=1) / of_blue.size + of_red.var(ddof=1) / of_red.size)
    return {
        "auc": float(of_blue.mean()),
        "auc_se": float(error),
        "overlap": float(np.minimum(red_mean, blue_mean).sum()),
    }


def _exceeds(red: NDArray[np.float64], blue: NDArray[np.float64]) -> float:
    return float((blue[:, None] > red[None, :]).mean())


# --- The experiment -------------------------------------------------------------------------------


def _cases(settings: Settings) -> list[dict[str, Any]]:
    """Return one case for each m; the cases are fast, so a quick run has them all."""
    folder = None if settings.data is None else str(settings.data)
    return [{"m": m, "samples": _SAMPLES, "folder": folder} for m in _CLOCKS]


def _tables(results: pd.DataFrame, settings: Settings) -> Tables:
    """Return a table with one row per m, a table of the samples, and densities for each m."""
    del settings
    main = results[["m", "samples", "auc", "auc_se", "overlap", "known_auc"]].copy()
    for name in _GROUPS:
        main[name] = [len(found[name]["sample"]) for found in results["groups"]]
    tables = {"fig1": main, "fig1_samples": _sample_table(results)}
    for m, found in zip(results["m"], results["groups"], strict=True):
        columns = {"time": _DRAWN_TIMES}
        for group in found.values():
            columns |= {
                f"sample{k}": y for k, y in zip(group["sample"], group["density"], strict=True)
            }
        tables[f"fig1_densities_{m}"] = pd.DataFrame(columns)
    return tables


def _sample_table(results: pd.DataFrame) -> pd.DataFrame:
    pieces = []
    for name in _GROUPS:
        columns = {"sample": results["groups"].iloc[0][name]["sample"]}
        piece = pd.DataFrame(columns).assign(
            group=name, time=results["groups"].iloc[0][name]["time"]
        )
        for m, found in zip(results["m"], results["groups"], strict=True):
            piece[f"mean_{m}"] = found[name]["mean"]
        pieces.append(piece)
    return pd.concat(pieces, ignore_index=True)


def _shown_sample(samples: pd.DataFrame) -> pd.Series[Any]:
    """Return the sample with both items that has the median true time."""
    blue = samples[samples["group"] == "blue"].sort_values("time")
    return blue.iloc[(len(blue) - 1) // 2]


def _draw(tables: Mapping[str, pd.DataFrame]) -> Any:
    """Draw the densities of the two groups on either side of the axis of times.

    If both groups were drawn on the same side, one would hide the other.
    """
    samples = tables["fig1_samples"]
    shown = _shown_sample(samples)
    figure, axes = panels(2, 2, height=2.6)
    for ax, row in zip(axes.flat, tables["fig1"].itertuples(), strict=True):
        table = tables[f"fig1_densities_{row.m}"]
        times = table["time"].to_numpy()
        peaks = []
        for name in _GROUPS:
            chosen = samples.loc[samples["group"] == name, "sample"]
            curves = table[[f"sample{k}" for k in chosen]].to_numpy()
            peaks.append(curves.max(axis=0))
            _draw_group(ax, times, curves, name)
        ax.plot(
            times, _LOOK["blue"].side * table[f"sample{shown['sample']}"], color="black",
            linestyle="--", linewidth=1.3, zorder=4, label="one sample",
        )  # fmt: skip
        ax.plot(
            [shown["time"]], [0.0], color="black", marker="s", markersize=5, zorder=5,
            linestyle="none", label="its true time",
        )  # fmt: skip
        _set_heights(ax, np.concatenate(peaks))
        ax.text(
            0.98, 0.97, f"P({_GROUPS['blue']} later) = {row.auc:.2f}\noverlap {row.overlap:.2f}",
            transform=ax.transAxes, ha="right", va="top", fontsize=SMALL,
        )  # fmt: skip
        finish(ax, title=f"m = {row.m}", x="observation time t", y="posterior density",
               legend=False)  # fmt: skip
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4,
        fontsize=TEXT, frameon=False,
    )  # fmt: skip
    return figure


def _draw_group(
    ax: Any, times: NDArray[np.float64], curves: NDArray[np.float64], name: str
) -> None:
    look = _LOOK[name]
    different, counts = np.unique(curves, axis=1, return_counts=True)
    for curve, count in zip(different.T, counts.tolist(), strict=True):
        # Equal curves are drawn only once, but darker. Densities close to 0 are not drawn.
        seen = curve > _LEAST * different.max()
        seen |= np.roll(seen, 1) | np.roll(seen, -1)
        ax.plot(
            times[seen], look.side * curve[seen], color=look.colour, linewidth=0.5,
            alpha=1.0 - 0.7**count,
        )  # fmt: skip
    mean = look.side * curves.mean(axis=1)
    ax.plot(times, mean, color="white", linewidth=3.4, zorder=3)
    ax.plot(
        times, mean, color=look.colour, linewidth=1.8, marker=look.marker, markersize=4.5,
        markeredgecolor="white", markeredgewidth=0.6, markevery=(14, 10), zorder=3,
        label=f"{_GROUPS[name]}, mean",
    )  # fmt: skip


def _set_heights(ax: Any, peaks: NDArray[np.float64]) -> None:
    """Set the limits of the axes.

    The highest peaks are cut off. They belong to samples without clock items.
    """
    ticker = load("matplotlib.ticker")
    top = min(1.3 * float(peaks.max()), _HIGHEST)
    if peaks.max() > top:
        ax.text(
            0.98, 0.03, f"highest peak {peaks.max():.1f}", transform=ax.transAxes, fontsize=SMALL,
            ha="right", va="bottom",
        )  # fmt: skip
    ax.set_xlim(0.0, _LAST_TIME)
    ax.set_ylim(-top, top)
    ax.axhline(0.0, color="black", linewidth=0.8, zorder=2)
    ax.yaxis.set_major_locator(ticker.MaxNLocator(6))
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{abs(value):g}"))


def _judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    table = tables["fig1"].sort_values("m")
    auc, error, overlap = (table[name].to_numpy() for name in ("auc", "auc_se", "overlap"))
    known = float(table["known_auc"].iloc[0])
    none = table["m"].to_numpy() == 0
    holds = bool(
        np.allclose(auc[none], 0.5, rtol=0.0, atol=1e-9)
        and (np.diff(auc) > 0.0).all()
        and (np.diff(overlap) < 0.0).all()
        and auc[-1] - 0.5 > 4.0 * error[-1]
    )
    steps = ", ".join(
        f"{a:.3f} at m = {m}" for m, a in zip(table["m"].tolist(), auc.tolist(), strict=True)
    )
    text = (
        "One time is drawn from the posterior of a sample with both items, and one from the "
        "posterior of a sample with item 1 alone. The probability that the sample with both items "
        f"has the later time is {steps}. The standard error of the last number is {error[-1]:.3f}. "
        f"With the true times, the probability is {known:.3f}. The overlap of the mean densities "
        f"of the two groups of samples decreases from {overlap[0]:.3f} to {overlap[-1]:.3f}."
    )
    numbers = {
        "auc": dict(zip(map(str, table["m"].tolist()), auc.tolist(), strict=True)),
        "overlap": dict(zip(map(str, table["m"].tolist()), overlap.tolist(), strict=True)),
        "auc_se_last": float(error[-1]),
        "auc_known_times": known,
    }
    return Verdict(holds, text, numbers)


EXPERIMENTS = {
    "fig1": Experiment(
        name="fig1",
        title="posteriors of the times of 500 samples, for more and more clock items",
        where="Figure 1, section 3.3",
        claim=(
            "Without clock items, the posterior of the time of every sample is the prior. With "
            "more clock items, the times of samples with item 1 alone (earlier) and of samples "
            "with both items (later) become more different. This shows that item 1 comes first."
        ),
        task="sequela_paper.time_posteriors:task",
        cases=_cases,
        tables=_tables,
        draw=_draw,
        judge=_judge,
        differs=(
            "The clock items are the first m of the 200 clock items in the synthetic data, so that "
            "the four panels show the same samples. We draw the two groups on opposite sides of "
            "the time axis, so that neither hides the other. We also measure how well the two "
            "groups are separated. The highlighted sample is the sample with both items that has "
            "the median true time."
        ),
    )
}
