"""Figures 6 to 8: clock items with different rates, or in pairs, still show the time (appendix C).

Samples are drawn with `simulate`. The posteriors of their times are computed by a quadrature rule
and are otherwise exact: given the time, the items (or the pairs of items) are independent, and
each of them is a Markov chain of two (or four) states whose probabilities are known.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from sequela.plots.style import FAINT, SMALL, load
from sequela.questions.distributions import item_frequencies
from sequela.simulation import simulate
from sequela.support.random import materialise_seed
from sequela_paper.experiment import Experiment, Verdict
from sequela_paper.figures import curve, finish, panels
from sequela_paper.time_posteriors import clocks_log_likelihood, time_rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from sequela_paper.experiment import Settings, Tables

__all__ = ["EXPERIMENTS", "adjusted_theta", "pair_log_probabilities", "task", "time_variances"]

# The numbers of items in the paper, and two larger numbers (300 and 1000). From 300 to 1000 items,
# the variance decreases as 1/m.
_SIZES = (5, 10, 20, 50, 100)
_BEYOND = (300, 1000)
_SAMPLES = 1000
_NODES = 600
_REFERENCE = 6.9  # the constant c of the dashed line c / m

_THETA = -2.0  # items in pairs have the same frequency as a single item with this theta
_DIAGONALS = {"theta = -3": -3.0, "theta = -2": -2.0, "theta = -1": -1.0, "theta in [-3, -1]": None}
_ATTRACTIVE = (0.0, 4.0, 8.0, 12.0)
_REPULSIVE = (0.0, -4.0, -8.0, -12.0)
_UNIFORM = (-3.0, -1.0)
_BATCHES = 20  # number of random diagonals that are drawn


# --- Posterior variances --------------------------------------------------------------------------


def adjusted_theta(gamma: float, theta: float = _THETA) -> float:
    """Return the diagonal at which an item in a pair is as frequent as a single item.

    The items of the pair act on each other with the effect `gamma`. A single item with diagonal
    `theta` is observed with probability w / (1 + w), where w = exp(theta).
    """
    aim = 1.0 / (1.0 + math.exp(-theta))
    # With infinite attraction both items arrive together, at rate 2 exp(x). With infinite repulsion
    # only one item arrives. The solutions for both limits are well inside the interval of `brentq`.
    found = brentq(lambda x: _pair_frequency(x, gamma) - aim, theta - 5.0, theta + 5.0, xtol=1e-14)
    return float(found)


def _pair_frequency(diagonal: float, gamma: float) -> float:
    """Return the frequency of each of two items with the effect gamma on each other, eq. (6)."""
    first, second = math.exp(diagonal), math.exp(diagonal + gamma)
    one = first / (1.0 + 2.0 * first)  # the probability that this item comes first
    return one + one * second / (1.0 + second)


def pair_log_probabilities(
    diagonal: float, gamma: float, times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return log-probabilities at given times: no item of a pair, only one given item, both.

    The first of the two items arrives at rate 2a, where a = exp(diagonal). The other item then
    arrives at rate b = a exp(gamma). In the formulas, "this" is one given item of the pair::

        p(none)         = exp(-2 a t)
        p(only this)    = a (exp(-2 a t) - exp(-b t)) / (b - 2 a)
        p(both)         = 1 - (b exp(-2 a t) - 2 a exp(-b t)) / (b - 2 a)

    The formulas hold for all gamma except log 2, where they divide 0 by 0.

    Returns
    -------
    array, (3, times)
        One row each for none, only this item, and both.
    """
    total, second = 2.0 * math.exp(diagonal), math.exp(diagonal + gamma)
    slow, gap = min(total, second), abs(second - total)
    log_one = diagonal - slow * times + np.log(-np.expm1(-gap * times) / gap)
    # With expm1, both terms of the difference are small if the probability is small. So no digits
    # are lost.
    both = (total * np.expm1(-second * times) - second * np.expm1(-total * times)) / (
        second - total
    )
    return np.stack([-total * times, log_one, np.log(both)])


def time_variances(log_likelihood: NDArray[np.float64], nodes: int = _NODES) -> NDArray[np.float64]:
    """Return the posterior variances of the time from log p(S | t) at the nodes of `time_rule`."""
    times, log_weights = time_rule(nodes)
    log_joint = log_likelihood + log_weights
    mass = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    mass /= mass.sum(axis=1, keepdims=True)
    mean = mass @ times
    # Sum the squared distances from the mean: a difference of two moments would lose digits.
    found: NDArray[np.float64] = (mass * (times - mean[:, None]) ** 2).sum(axis=1)
    return found


# --- The task: one setting and one number of items ------------------------------------------------


def task(*, seed: int, setting: str, gamma: float | None, m: int, samples: int) -> dict[str, Any]:
    """Return the mean posterior variance of the time over samples of m items."""
    times, _ = time_rule(_NODES)
    if gamma is not None:
        theta = _pairs(m, gamma)
        present = _draw_samples(theta, samples, seed)
        likelihood = _pairs_log_likelihood(present, gamma, times)
        each = time_variances(likelihood)
        frequency = item_frequencies(theta)["model"]
        spread = float(each.std(ddof=1) / math.sqrt(samples))
        return {
            **_moments(each, spread),
            "diagonal": float(theta[0, 0]),
            "frequency": [float(frequency.min()), float(frequency.max())],
        }
    diagonal = _DIAGONALS[setting]
    # Draw several random diagonals: in a single one, all of m = 5 rates could be high, or all low.
    batches = _BATCHES if diagonal is None else 1
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(batches):
        rates = np.full(m, math.nan if diagonal is None else diagonal)
        if diagonal is None:
            rates = rng.uniform(*_UNIFORM, m)
        present = _draw_samples(np.diag(rates), samples // batches, materialise_seed(rng))
        found.append(time_variances(clocks_log_likelihood(present, np.exp(rates), times)))
    each = np.concatenate(found)
    spread = float(each.std(ddof=1) / math.sqrt(each.size))
    if batches > 1:
        spread = float(np.std([x.mean() for x in found], ddof=1) / math.sqrt(batches))
    return _moments(each, spread)


def _moments(each: NDArray[np.float64], error: float) -> dict[str, Any]:
    return {"variance": float(each.mean()), "se": error, "drawn": int(each.size)}


def _draw_samples(theta: NDArray[np.float64], size: int, seed: int) -> NDArray[np.bool_]:
    return np.asarray(simulate(theta, size, random_state=seed).to_dataset().values)


def _pairs(m: int, gamma: float) -> NDArray[np.float64]:
    """Return theta of m items in pairs; if m is odd, the last item has no partner."""
    theta = adjusted_theta(gamma) * np.eye(m)
    first = np.arange(0, m - 1, 2)
    theta[first, first + 1] = theta[first + 1, first] = gamma
    if m % 2:
        theta[-1, -1] = _THETA
    return theta


def _pairs_log_likelihood(
    present: NDArray[np.bool_], gamma: float, times: NDArray[np.float64]
) -> NDArray[np.float64]:
    m = present.shape[1]
    paired = present[:, : m - m % 2].astype(np.int64)
    size = paired[:, ::2] + paired[:, 1::2]
    counts = np.stack([(size == k).sum(axis=1) for k in range(3)], axis=1)
    logs = pair_log_probabilities(adjusted_theta(gamma), gamma, times)
    found: NDArray[np.float64] = counts.astype(np.float64) @ logs
    if m % 2:
        found += clocks_log_likelihood(present[:, -1:], np.exp([_THETA]), times)
    return found


# --- The three figures ----------------------------------------------------------------------------


def _line_cases(settings: Settings, lines: Mapping[str, float | None]) -> list[dict[str, Any]]:
    """Return the cases of the lines of a figure; they are fast, so a quick run has them all."""
    del settings
    return [
        {"setting": name, "gamma": gamma, "m": m, "samples": _SAMPLES}
        for name, gamma in lines.items()
        for m in (*_SIZES, *_BEYOND)
    ]


def _pair_lines(gammas: tuple[float, ...]) -> dict[str, float | None]:
    return {f"gamma = {gamma:g}": gamma for gamma in gammas}


def _tables_of(name: str) -> Any:
    def tables(results: pd.DataFrame, settings: Settings) -> Tables:
        del settings
        columns = ["setting", "m", "drawn", "variance", "se"]
        table = results[columns].copy()
        if "diagonal" in results:
            table["gamma"] = results["gamma"]
            table["diagonal"] = results["diagonal"]
            table["least_frequency"] = [low for low, _ in results["frequency"]]
            table["most_frequency"] = [high for _, high in results["frequency"]]
        return {name: table}

    return tables


def _label(setting: str) -> str:
    """Return the name of a line with Greek letters; the tables use Latin letters."""
    letter, rest = setting.split(" ", maxsplit=1)
    greek = {"theta": r"$\theta_+$", "gamma": r"$\gamma$"}[letter]
    return f"{greek} {rest}".replace(" in ", r" $\in$ ").replace("-", "\N{MINUS SIGN}")


def _draw_lines(table: pd.DataFrame, aside: str | None = None) -> Any:
    """Draw the mean variances against m; the line `aside` is shown for comparison only."""
    ticker = load("matplotlib.ticker")
    figure, axes = panels(1, 1, width=5.2, height=3.8)
    ax = axes[0, 0]
    main = table[table["setting"] != aside]
    for place, (name, line) in enumerate(main.groupby("setting", sort=False)):
        curve(ax, line.assign(error=2.0 * line["se"]), "m", "variance", "error", place,
              _label(str(name)))  # fmt: skip
    other = table[table["setting"] == aside]
    if len(other):
        ax.errorbar(
            other["m"], other["variance"], yerr=2.0 * other["se"], color=FAINT, linewidth=1.0,
            marker="x", markersize=4, capsize=2.0, label=f"{_label(str(aside))} (Fig. 7)",
        )  # fmt: skip
    ends = np.array([min(_SIZES), max(*_SIZES, *_BEYOND)], dtype=float)
    ax.plot(ends, _REFERENCE / ends, color="black", linestyle=(0, (5, 4)), linewidth=0.9,
            label=f"{_REFERENCE} / m")  # fmt: skip
    ax.axvline(max(_SIZES), color=FAINT, linewidth=0.8, linestyle=":")
    ax.annotate(
        "the paper's range", (max(_SIZES), 0.0), xycoords=("data", "axes fraction"),
        xytext=(-4, 5), textcoords="offset points", ha="right", fontsize=SMALL, color="0.35",
    )  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks([*_SIZES, *_BEYOND], [str(m) for m in (*_SIZES, *_BEYOND)])
    ax.xaxis.set_minor_locator(ticker.NullLocator())
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    finish(ax, x="number of items m", y="mean posterior variance of the time")
    return figure


def _point(table: pd.DataFrame, setting: str, m: int) -> tuple[float, float]:
    row = table[(table["setting"] == setting) & (table["m"] == m)].iloc[0]
    return float(row["variance"]), float(row["se"])


def _log_ratio(one: tuple[float, float], two: tuple[float, float]) -> tuple[float, float]:
    """Return the logarithm of the ratio of two variances, and its standard error."""
    error = math.hypot(one[1] / one[0], two[1] / two[0])
    return math.log(one[0] / two[0]), error


def _slopes(table: pd.DataFrame, low: int, high: int) -> dict[str, tuple[float, float]]:
    """Return the slope of log variance against log m from m = low to high, for each line.

    The second number of each entry is the standard error of the slope.
    """
    steps = math.log(high / low)
    found = {}
    for name in table["setting"].unique():
        change, error = _log_ratio(_point(table, name, high), _point(table, name, low))
        found[str(name)] = (change / steps, error / steps)
    return found


def _is_one_over(slopes: Mapping[str, tuple[float, float]]) -> bool:
    """Return whether every slope differs from -1 by less than 0.1 + 3 standard errors.

    If this limit is 0.5 or more for any slope, the slope is too uncertain, and the result is False.
    """
    return all(abs(slope + 1.0) < 0.1 + 3.0 * error < 0.5 for slope, error in slopes.values())


def _range(slopes: Mapping[str, tuple[float, float]]) -> str:
    values = [slope for slope, _ in slopes.values()]
    return f"between {min(values):.2f} and {max(values):.2f}"


def _judge_diagonal(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    table = tables["fig6"]
    within, beyond = _slopes(table, 50, 100), _slopes(table, *_BEYOND)
    between = all(
        _point(table, "theta = -1", m)[0]
        < _point(table, "theta in [-3, -1]", m)[0]
        < _point(table, "theta = -3", m)[0]
        for m in (*_SIZES, *_BEYOND)
    )
    scaled = {name: 100 * _point(table, name, 100)[0] for name in table["setting"].unique()}
    worst = max(error for _, error in beyond.values())
    reached = _is_one_over(beyond)
    text = (
        f"From m = {_BEYOND[0]} to m = {_BEYOND[1]}, the slope of log variance against log m is "
        f"{_range(beyond)} for the four choices of theta (standard errors at most {worst:.2f}). So "
        f"the variance {'decreases' if reached else 'does not decrease'} as 1/m. From m = 50 to "
        f"m = 100, the largest numbers of items in the paper, the slope is {_range(within)} "
        f"(standard errors at most {max(error for _, error in within.values()):.2f}). At m = 100, "
        "m times the variance is "
        + ", ".join(f"{value:.1f} ({name})" for name, value in scaled.items())
        + ". For items of different rates (theta in [-3, -1]), the variance is "
        f"{'between' if between else 'not always between'} the variances for theta = -3 and "
        "theta = -1."
    )
    numbers = {
        "slope_50_100": {name: list(x) for name, x in within.items()},
        f"slope_{_BEYOND[0]}_{_BEYOND[1]}": {name: list(x) for name, x in beyond.items()},
        "m_variance_100": scaled,
    }
    return Verdict(reached and between, text, numbers)


def _judge_attractive(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    table = tables["fig7"]
    beyond = _slopes(table, *_BEYOND)
    same, error = _log_ratio(_point(table, "gamma = 12", 100), _point(table, "gamma = 0", 50))
    effects = {
        gamma: _effect(table, f"gamma = {gamma:g}", "gamma = 0") for gamma in _ATTRACTIVE[1:]
    }
    grows = effects[4.0][0] > 3.0 * effects[4.0][1]
    halved = abs(same) < 0.1 + 2.0 * error < 0.4
    text = (
        f"The variance for gamma = 12 and m = 100 is {math.exp(same):.2f} ± "
        f"{math.exp(same) * error:.2f} times that of 50 independent items. On average over "
        "m = 20, 50 and 100, attraction multiplies the variance by "
        + ", ".join(
            f"{math.exp(x):.2f} ± {math.exp(x) * e:.2f} (gamma = {gamma:g})"
            for gamma, (x, e) in effects.items()
        )
        + f". From m = {_BEYOND[0]} to m = {_BEYOND[1]}, the slope of log variance against log m "
        f"is {_range(beyond)}. {_frequency_text(table)}"
    )
    numbers = {
        "ratio_12_100_to_0_50": [math.exp(same), math.exp(same) * error],
        "effect": {f"{gamma:g}": math.exp(x) for gamma, (x, _) in effects.items()},
        "effect_log_se": {f"{gamma:g}": e for gamma, (_, e) in effects.items()},
        f"slope_{_BEYOND[0]}_{_BEYOND[1]}": {name: list(x) for name, x in beyond.items()},
        "frequency_error": _frequency_error(table),
    }
    return Verdict(
        halved and grows and _is_one_over(beyond) and _frequency_error(table) < 1e-9, text, numbers
    )


def _judge_repulsive(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    table = tables["fig8"]
    lines = table[table["gamma"] <= 0.0]
    beyond = _slopes(lines, *_BEYOND)
    effects = {
        gamma: _effect(table, f"gamma = {gamma:g}", "gamma = 0")
        for gamma in (*_REPULSIVE[1:], _ATTRACTIVE[-1])
    }
    attraction, attraction_error = effects[_ATTRACTIVE[-1]]
    less = all(
        abs(attraction) - abs(x) > 3.0 * math.hypot(attraction_error, e)
        for gamma, (x, e) in effects.items()
        if gamma < 0.0
    )
    text = (
        "On average over m = 20, 50 and 100, repulsion multiplies the variance by "
        + ", ".join(
            f"{math.exp(x):.2f} ± {math.exp(x) * e:.2f} (gamma = {gamma:g})"
            for gamma, (x, e) in effects.items()
            if gamma < 0.0
        )
        + f", and attraction with gamma = {_ATTRACTIVE[-1]:g} multiplies it by "
        f"{math.exp(attraction):.2f} ± {math.exp(attraction) * attraction_error:.2f}. From "
        f"m = {_BEYOND[0]} to m = {_BEYOND[1]}, the slope of log variance against log m is "
        f"{_range(beyond)}. {_frequency_text(table)}"
    )
    numbers = {
        "effect": {f"{gamma:g}": math.exp(x) for gamma, (x, _) in effects.items()},
        "effect_log_se": {f"{gamma:g}": e for gamma, (_, e) in effects.items()},
        f"slope_{_BEYOND[0]}_{_BEYOND[1]}": {name: list(x) for name, x in beyond.items()},
        "frequency_error": _frequency_error(table),
    }
    return Verdict(less and _is_one_over(beyond) and _frequency_error(table) < 1e-9, text, numbers)


def _effect(table: pd.DataFrame, setting: str, base: str) -> tuple[float, float]:
    """Return the logarithm of the ratio of two lines and its standard error.

    The logarithm is averaged over m = 20, 50 and 100.
    """
    found = [_log_ratio(_point(table, setting, m), _point(table, base, m)) for m in (20, 50, 100)]
    logs, errors = np.array(found).T
    return float(logs.mean()), float(np.sqrt((errors**2).sum()) / errors.size)


def _frequency_error(table: pd.DataFrame) -> float:
    """Return the largest difference in frequency between an item in a pair and a single item."""
    aim = 1.0 / (1.0 + math.exp(-_THETA))
    return float((table[["least_frequency", "most_frequency"]] - aim).abs().to_numpy().max())


def _frequency_text(table: pd.DataFrame) -> str:
    return (
        "The base rates of each pair are chosen so that every item keeps the frequency of a single "
        f"item with theta = {_THETA:g} (largest difference {_frequency_error(table):.1g})."
    )


_BEYOND_TEXT = (
    f"The paper has m up to {_SIZES[-1]}. We add m = {_BEYOND[0]} and {_BEYOND[1]}, because for "
    "the numbers of items in the paper the variance does not yet decrease as fast as 1/m."
)
_ODD_TEXT = " For m = 5, the last item has no partner and has theta = -2."

EXPERIMENTS = {
    "fig6": Experiment(
        name="fig6",
        title="posterior variance of the time against the number of independent items",
        where="Figure 6, appendix C",
        claim=(
            "The mean posterior variance decreases as 1/m, for items of one rate as in Theorem 1, "
            "and in the same way for items of different rates."
        ),
        task="sequela_paper.clock_variance:task",
        cases=lambda settings: _line_cases(settings, dict.fromkeys(_DIAGONALS)),
        tables=_tables_of("fig6"),
        draw=lambda tables: _draw_lines(tables["fig6"]),
        judge=_judge_diagonal,
        differs=(
            f"{_BEYOND_TEXT} For items of different rates, the diagonal of theta is drawn "
            f"{_BATCHES} times, and the error bars are computed from these draws."
        ),
    ),
    "fig7": Experiment(
        name="fig7",
        title="posterior variance of the time with attractive pairs",
        where="Figure 7, appendix C",
        claim=(
            "Attraction within pairs raises the posterior variance at most to that of half as many "
            "independent items: gamma = 12 at m = 100 gives about the same as gamma = 0 at m = 50."
        ),
        task="sequela_paper.clock_variance:task",
        cases=lambda settings: _line_cases(settings, _pair_lines(_ATTRACTIVE)),
        tables=_tables_of("fig7"),
        draw=lambda tables: _draw_lines(tables["fig7"]),
        judge=_judge_attractive,
        differs=_BEYOND_TEXT + _ODD_TEXT,
    ),
    "fig8": Experiment(
        name="fig8",
        title="posterior variance of the time with repulsive pairs",
        where="Figure 8, appendix C",
        claim="Repulsion within pairs changes the posterior variance less than attraction does.",
        task="sequela_paper.clock_variance:task",
        cases=lambda settings: _line_cases(settings, _pair_lines((*_REPULSIVE, _ATTRACTIVE[-1]))),
        tables=_tables_of("fig8"),
        draw=lambda tables: _draw_lines(tables["fig8"], f"gamma = {_ATTRACTIVE[-1]:g}"),
        judge=_judge_repulsive,
        differs=_BEYOND_TEXT
        + _ODD_TEXT
        + f" For comparison, we add the line for attraction with gamma = {_ATTRACTIVE[-1]:g}.",
    ),
}
