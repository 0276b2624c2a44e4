"""Figure 2: how well the true model is recovered as clock items are added (section 5.1).

The measure is the Kullback-Leibler (KL) divergence between the learned and the true distribution of
marginal sequences (eq. 2) of the interacting items. A repetition chooses m of the 200 clock items,
and a start; both solvers get the same clock items. There are two differences from the paper. First,
the divergence is computed exactly. The paper estimates it from 10^6 drawn sequences, and this
estimate is biased upwards. Second, after learning from the paper's random start, we compare every
order with its reverse (`sequela.questions.rival_orders`), and keep the order that fits the data
better without the penalty. The penalised likelihood alone can prefer a wrong order.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.learning.estimator import SetChain
from sequela.plots.style import series
from sequela.questions.divergence import sequence_divergence
from sequela.questions.rivals import rival_orders
from sequela_paper.experiment import Experiment, Settings, Tables, Verdict
from sequela_paper.figures import curve, finish, legend_below, panels
from sequela_paper.sources import synthetic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sequela.data.dataset import Dataset
    from sequela.model import Model

__all__ = ["EXPERIMENTS", "task"]

_SIZES = {"two": (0, 2, 5, 8, 10, 15, 20, 25), "five": (0, 5, 10, 15, 20, 25, 30, 40)}
# With 40 clocks the paper's solver takes a quarter of an hour per repetition.
_SIZES_OF_PAPER_SOLVER = {"two": (0, 5, 15, 25), "five": (0, 10, 25)}
_QUICK = {"two": (0, 5, 20), "five": (0, 15)}
_QUICK_OF_PAPER_SOLVER = {"two": (0, 5), "five": (0,)}
_PENALTY = 0.01
_WIDTH = 0.2  # width of the random start, as in the paper
_ALL_EXACT = 30  # with more items, some sets are sampled
_PAPER_ITERATIONS = 3000
_QUICK_ITERATIONS = 400
_DASHED = {"two": 0.015, "five": 0.044}
_TITLES = {"two": "two items", "five": "five items"}
_OURS = "ours"
_PAPER = "adagrad"
_KNOWN = "known times"


def cases(settings: Settings) -> list[dict[str, Any]]:
    """Return the cases: data sets, m and repetitions for each solver, and fits to known times."""
    common = {
        "folder": None if settings.data is None else str(settings.data),
        "clock_seed": settings.seed,
        "iterations": _QUICK_ITERATIONS if settings.quick else _PAPER_ITERATIONS,
    }
    found = [
        {"dataset": name, "solver": _KNOWN, "m": 0, "repetition": 0, **common} for name in _SIZES
    ]
    for solver, grid in (
        (_OURS, _QUICK if settings.quick else _SIZES),
        (_PAPER, _QUICK_OF_PAPER_SOLVER if settings.quick else _SIZES_OF_PAPER_SOLVER),
    ):
        count = settings.repetitions(solver, full=96, quick=3, slow=(6, 1))
        found += [
            {"dataset": name, "solver": solver, "m": m, "repetition": repetition, **common}
            for name, sizes in grid.items()
            # Long fits come first, so that no core is idle at the end.
            for m in reversed(sizes)
            for repetition in range(count)
        ]
    return found


@dataclass(frozen=True)
class _Case:
    """The parameters of one case."""

    dataset: str
    solver: str
    m: int
    repetition: int
    folder: str | None
    clock_seed: int
    iterations: int


def task(*, seed: int, **entries: Any) -> dict[str, Any]:
    """Learn from the interacting items and m clocks; return divergences from the true model."""
    case = _Case(**entries)
    data, truth = synthetic(case.dataset, case.folder)
    core = list(truth.items)
    if case.solver == _KNOWN:
        return _known_times(data.select_items(core), truth)
    rng = np.random.default_rng([case.clock_seed, len(core), case.m, case.repetition])
    clocks = [item for item in data.items if item not in core]
    chosen = set(rng.choice(clocks, case.m, replace=False).tolist())
    sets = data.select_items([*core, *(c for c in clocks if c in chosen)]).without_times()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ignore warnings: several optima are expected here
        if case.solver == _PAPER:
            return _paper_solver(sets, truth, case.iterations, seed)
        return _ours(sets, truth, seed)


def _divergence(model: Model, truth: Model, seed: int) -> float:
    return float(
        sequence_divergence(model, truth, list(truth.items), random_state=seed, n_threads=1).value
    )


def _known_times(data: Dataset, truth: Model) -> dict[str, Any]:
    learner = SetChain(_PENALTY, random_state=0, n_threads=1, progress=False).fit(data)
    return {"kl": _divergence(learner.model_, truth, 0), "objective": learner.objective_}


def _paper_solver(sets: Dataset, truth: Model, iterations: int, seed: int) -> dict[str, Any]:
    learner = SetChain(
        _PENALTY, solver="adagrad", max_iter=iterations, random_state=seed, n_threads=1,
        progress=False,
    ).fit(sets)  # fmt: skip
    return {"kl": _divergence(learner.model_, truth, seed), "objective": learner.objective_}


def _ours(sets: Dataset, truth: Model, seed: int) -> dict[str, Any]:
    learner = SetChain(
        _PENALTY, independent_start=False, start_widths=(_WIDTH,), tol=_tolerance(sets),
        random_state=seed, n_threads=1, progress=False,
    ).fit(sets)  # fmt: skip
    found = rival_orders(learner, sets, tol=_tolerance(sets), random_state=seed, n_threads=1)
    return {
        "kl": _divergence(found.model, truth, seed),
        "kl_refit": _divergence(found.refit.model, truth, seed),
        # The divergence of the model before its orders are compared with their reverse.
        "kl_penalised": _divergence(learner.model_, truth, seed),
        "objective": learner.objective_,
        "moves": found.moves,
        "least_evidence": float(found.table["evidence"].min()) if len(found.table) else None,
    }


def _tolerance(sets: Dataset) -> float:
    """Return the tolerance of fits, which is larger if some sets are sampled."""
    return 1e-4 if sets.n_items <= _ALL_EXACT else 1e-3


def tables(results: pd.DataFrame, settings: Settings) -> Tables:  # noqa: ARG001 - not used here
    """Return a table of all repetitions, and a table of their means."""
    whole = results.drop(columns=["folder", "clock_seed", "iterations"])
    for column in ("kl_refit", "kl_penalised"):
        if column not in whole:
            whole[column] = np.nan
    whole = whole.sort_values(["dataset", "solver", "m", "repetition"], ignore_index=True)
    rows = []
    chosen = [
        (_OURS, "kl", "ours"),
        (_OURS, "kl_refit", "ours, refitted without penalty"),
        (_OURS, "kl_penalised", "ours, penalised likelihood alone"),
        (_PAPER, "kl", "the paper's solver"),
        (_KNOWN, "kl", "known times"),
    ]
    for solver, column, label in chosen:
        part = whole[whole["solver"] == solver]
        for (dataset, m), group in part.groupby(["dataset", "m"]):
            values = group[column].dropna()
            if values.empty:
                continue
            rows.append(
                {
                    "dataset": dataset, "curve": label, "m": m, "repetitions": len(values),
                    "mean": values.mean(),
                    "se": values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0,
                    "median": values.median(),
                    "share_below_0.1": float((values < 0.1).mean()),
                    "mean_seconds": group["seconds"].mean(),
                }
            )  # fmt: skip
    return {"fig2": whole, "fig2_summary": pd.DataFrame(rows)}


def draw(tables: Mapping[str, pd.DataFrame]) -> Any:
    """Draw the divergence against m, one panel per data set."""
    figure, axes = panels(1, 2, width=4.1, height=3.2)
    summary = tables["fig2_summary"]
    labels = [
        "ours", "ours, refitted without penalty", "ours, penalised likelihood alone",
        "the paper's solver",
    ]  # fmt: skip
    for ax, dataset in zip(axes[0], _SIZES, strict=True):
        known = summary[(summary["dataset"] == dataset) & (summary["curve"] == "known times")]
        ax.axhline(known["mean"].iloc[0], color="0.3", linestyle=(0, (4, 2)), linewidth=1.0,
                   label="learned from known times")  # fmt: skip
        for place, label in enumerate(labels):
            part = summary[(summary["dataset"] == dataset) & (summary["curve"] == label)]
            if not part.empty:
                curve(ax, part.sort_values("m"), "m", "mean", "se", place, label)
        _dots(ax, tables["fig2"], dataset)
        ax.set_ylim(bottom=0.0)
        finish(
            ax, title=_TITLES[dataset], x="clock items m",
            y="KL divergence from the truth (nats)" if dataset == "two" else "",
            legend=False,
        )  # fmt: skip
    legend_below(figure, axes[0, 0], 3)
    return figure


def _dots(ax: Any, whole: pd.DataFrame, dataset: str) -> None:
    """Draw single repetitions.

    The mean hides that each repetition is close either to the right or to a wrong order.
    """
    for place, solver in ((0, _OURS), (3, _PAPER)):
        part = whole[(whole["dataset"] == dataset) & (whole["solver"] == solver)]
        shift = (part["repetition"] % 7 - 3) * 0.09
        ax.plot(
            part["m"] + shift, part["kl"], linestyle="none", marker=".", markersize=2.5,
            color=series(place)[0], alpha=0.35, zorder=1,
        )  # fmt: skip


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """Compare our divergence with the dashed line and with the divergence of the paper's solver.

    Ours must decrease to the dashed line, and must not be larger than that of the paper's solver.
    """
    summary = tables["fig2_summary"]
    numbers: dict[str, Any] = {}
    texts = []
    holds = True
    for dataset in _SIZES:
        part = summary[summary["dataset"] == dataset]
        dashed = float(part[part["curve"] == "known times"]["mean"].iloc[0])
        ours = part[part["curve"] == "ours"].sort_values("m")
        theirs = part[part["curve"] == "the paper's solver"].sort_values("m")
        main = ours if not ours.empty else theirs
        first, last = main.iloc[0], main.iloc[-1]
        text = (
            f"With {_TITLES[dataset]} that interact, the mean divergence is {first['mean']:.3f} at "
            f"m = {first['m']} and {last['mean']:.3f} +- {last['se']:.3f} at m = {last['m']}. For "
            f"a model learned from known times (dashed line), the divergence is {dashed:.4f} (in "
            f"the paper {_DASHED[dataset]})"
        )
        near = dashed + max(0.01, 0.25 * dashed)
        holds &= last["mean"] - 2.0 * last["se"] <= near and last["mean"] < 0.5 * first["mean"]
        holds &= abs(dashed - _DASHED[dataset]) < 0.006
        numbers[dataset] = {
            "known_times": dashed, "first": float(first["mean"]), "last": float(last["mean"]),
            "last_m": int(last["m"]),
        }  # fmt: skip
        both = _on_the_same_data(tables["fig2"], dataset)
        if not both.empty:
            # Without clock items no method can tell the order, so m = 0 is left out.
            holds &= bool((both["ours"] <= both["paper"] + 0.005)[both["m"] > 0].all())
            means = list(zip(both["m"], both["ours"], both["paper"], strict=True))
            pairs = ", ".join(f"{a:.3f} ({b:.3f}) at m = {m}" for m, a, b in means)
            count = both["count"].max()
            text += (
                f". For the {count} repetitions that were run with both solvers, the mean "
                f"divergence of our solver (in parentheses: of the paper's solver) is {pairs}"
            )
            numbers[dataset]["against_paper_solver"] = {
                str(m): [float(a), float(b)] for m, a, b in means
            }
        texts.append(text)
    return Verdict(bool(holds), ". ".join(texts) + ".", numbers)


def _on_the_same_data(whole: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Return the mean divergence of each solver over the repetitions that both solvers have.

    In these repetitions, both solvers have the same clock items.
    """
    part = whole[whole["dataset"] == dataset]
    both = part[part["solver"] == _OURS].merge(
        part[part["solver"] == _PAPER], on=["m", "repetition"], suffixes=("", "_paper")
    )
    grouped = both.groupby("m")
    found = pd.DataFrame(
        {"ours": grouped["kl"].mean(), "paper": grouped["kl_paper"].mean(), "count": grouped.size()}
    )
    return found.reset_index()


EXPERIMENTS = {
    "fig2": Experiment(
        name="fig2",
        title="recovery of the true model against the number of clock items",
        where="Figure 2, section 5.1",
        claim="with more clock items the learned model approaches the model learned from the true "
        "observation times. The KL divergence of the latter model from the true model is 0.015 "
        "with two interacting items, and 0.044 with five",
        task=f"{__name__}:task",
        cases=cases,
        tables=tables,
        draw=draw,
        judge=judge,
        repeats=96,
        solvers=True,
        differs="We compute the divergence exactly; the paper estimates it from 10^6 draws. A "
        "single repetition ends either close to the true model or close to a model with a wrong "
        "order. The paper shows only the mean, which hides this, so we show every repetition. "
        "After learning, we compare every order with its reverse by the log-likelihood without the "
        "penalty, and keep the better order. We do this because the penalised likelihood prefers "
        "a wrong order of the five items if there are fewer than about 30 clock items.",
    )
}
