"""Figure 10 (appendix G): different starts end at different optima, on the 20-item table.

Every start is one repeat. The results are grouped into optima. Each optimum is refitted without
penalty on its own interactions, so that optima can be compared without the influence of the
penalty. For each optimum, the order of the amplifications of MDM2 and CDK4 is computed.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.learning.estimator import SetChain
from sequela.learning.fit_values import Start
from sequela.learning.optima import group_starts
from sequela.learning.refitting import refit
from sequela.learning.solvers.contract import Status
from sequela.model import Model
from sequela.plots.style import DIAGONAL, SMALL, TEXT, load, series
from sequela.plots.theta import plot_theta
from sequela.questions.order import order_probability
from sequela_paper.experiment import Experiment, Settings, Tables, Verdict
from sequela_paper.figures import finish, panels
from sequela_paper.sources import SCHILL_TABLE, schill_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["EXPERIMENTS", "task"]

PENALTY = 0.01
WIDTHS = (0.2, 2.0)
FIRST, SECOND = "MDM2(A)", "CDK4(A)"
# Two exact penalised objectives: of the theta that mhn (1.2.3) learns with its smoothed penalty,
# and of the same theta after mhn has rounded it to two decimals.
MHN_OBJECTIVE = -7.963794
MHN_ROUNDED_OBJECTIVE = -7.961730
_ITERATIONS = {"ours": 1000, "adagrad": 3000}
_QUICK_ITERATIONS = 150


def task(
    *, folder: str, solver: str, width: float, tol: float, max_iter: int, seed: int
) -> dict[str, Any]:
    """Learn from one random start; compute the order of the two amplifications, and a refit.

    Parameters
    ----------
    folder : str
        The data folder.
    solver : {"ours", "adagrad"}
        The solver.
    width : float
        Random interactions are uniform in [-width, width]; the paper's solver uses 0.2.
    tol, max_iter : float, int
        KKT residual at which our solver stops, and largest number of iterations.
    seed : int
        Seed of the start.

    Returns
    -------
    dict
        theta, its objective, whether and how the fit ended, the order of the two amplifications,
        and the refit without penalty.
    """
    data = schill_table(folder)
    with warnings.catch_warnings():
        # Items that never occur together, and fits that are stopped early, are expected here.
        warnings.simplefilter("ignore")
        learner = SetChain(
            PENALTY, solver="auto" if solver == "ours" else solver, independent_start=False,
            start_widths=(width,), tol=tol, max_iter=max_iter, random_state=seed, progress=False,
        ).fit(data)  # fmt: skip
    again = refit(learner.model_, data, random_state=seed)
    return {
        "theta": learner.theta_.tolist(),
        "objective": learner.objective_,
        "kkt_residual": learner.kkt_residual_,
        "converged": bool(learner.converged_),
        "evaluations": learner.n_evaluations_,
        "order": float(order_probability(learner.model_, FIRST, SECOND)),
        "refit_log_likelihood": again.log_likelihood,
        "interactions": again.n_interactions,
        "score": again.score,
    }


def cases(settings: Settings) -> list[dict[str, Any]]:
    """Return one case per start; for our solver, narrow and wide starts alternate."""
    slow = (4, 1 if settings.solver == "both" else 0)
    counts = {
        "ours": settings.repetitions("ours", 20, 6, slow),
        "adagrad": settings.repetitions("adagrad", 20, 1, slow),
    }
    return [
        {
            "folder": str(settings.data),
            "solver": solver,
            "width": WIDTHS[start % 2] if solver == "ours" else WIDTHS[0],
            "tol": 1e-5,
            "max_iter": _QUICK_ITERATIONS
            if settings.quick and solver == "adagrad"
            else _ITERATIONS[solver],
        }
        for solver, count in counts.items()
        for start in range(count)
    ]


def tables(results: pd.DataFrame, settings: Settings) -> Tables:
    """Return tables of the starts, the optima, the thetas of the optima, and ranges of entries."""
    items = schill_table(str(settings.data)).items
    thetas = [np.array(theta) for theta in results["theta"]]
    groups = group_starts(
        [
            Start(
                theta=theta, objective=one["objective"], objective_se=0.0,
                kkt_residual=one["kkt_residual"], kkt_floor=0.0, n_iterations=0,
                n_evaluations=one["evaluations"],
                status=Status.CONVERGED if one["converged"] else Status.ITERATION_LIMIT,
                message="", width=one["width"],
            )
            for theta, one in zip(thetas, results.to_dict("records"), strict=True)
        ]
    )  # fmt: skip
    group_of = {start: place + 1 for place, group in enumerate(groups) for start in group}
    starts = pd.DataFrame(
        {
            "start": np.arange(len(results)) + 1,
            "solver": results["solver"].to_numpy(),
            "width": results["width"].to_numpy(),
            "group": [group_of[start] for start in range(len(results))],
            **{
                name: results[name].to_numpy()
                for name in (
                    "objective", "kkt_residual", "converged", "evaluations", "order",
                    "refit_log_likelihood", "interactions", "score",
                )
            },
        }
    )  # fmt: skip
    samples = schill_table(str(settings.data)).n_samples
    optima = starts.iloc[[group[0] for group in groups]].copy()
    best = float(optima["objective"].max())
    optima["nats_below_best"] = (best - optima["objective"]) * samples
    # Scores of refits are in nats. A difference of less than about 2 nats is no evidence.
    optima["behind"] = optima["score"].max() - optima["score"]
    for solver in ("ours", "adagrad"):
        ends = starts.loc[starts["solver"] == solver, "group"]
        optima[f"starts_{solver}"] = [int((ends == group).sum()) for group in optima["group"]]
    optima = optima.drop(columns=["start", "solver", "width", "evaluations", "kkt_residual"])
    return {
        "fig10": starts,
        "fig10_optima": optima.reset_index(drop=True),
        "fig10_theta": pd.concat(
            [_sparse(place + 1, thetas[group[0]], items) for place, group in enumerate(groups)],
            ignore_index=True,
        ),
        "fig10_range": pd.concat(
            [
                _range(
                    solver, [thetas[k] for k in np.nonzero(starts["solver"] == solver)[0]], items
                )
                for solver in ("ours", "adagrad")
                if (starts["solver"] == solver).any()
            ],
            ignore_index=True,
        ),
    }


def _sparse(group: int, theta: NDArray[np.float64], items: tuple[str, ...]) -> pd.DataFrame:
    """Return the non-zero entries of theta. If "from" equals "to", the entry is a log base rate."""
    i, j = np.nonzero(theta)
    labels = np.array(items, dtype=object)
    return pd.DataFrame({"group": group, "from": labels[i], "to": labels[j], "effect": theta[i, j]})


def _range(solver: str, thetas: list[NDArray[np.float64]], items: tuple[str, ...]) -> pd.DataFrame:
    """Return the smallest and largest value of every entry over the starts."""
    stack = np.stack(thetas)
    low, high = stack.min(axis=0).ravel(), stack.max(axis=0).ravel()
    i, j = np.divmod(np.arange(low.size), len(items))
    labels = np.array(items, dtype=object)
    return pd.DataFrame(
        {
            "solver": solver, "from": labels[i], "to": labels[j], "lowest": low, "highest": high,
            "range": high - low,
        }
    )  # fmt: skip


def draw(tables: Mapping[str, pd.DataFrame]) -> Any:
    """Draw theta at two optima, the range of each entry, and the objectives of the starts."""
    optima = tables["fig10_optima"]
    ranges = tables["fig10_range"]
    ranges = ranges[ranges["solver"] == ranges["solver"].iloc[0]]
    items = list(dict.fromkeys(ranges["from"]))
    figure, axes = panels(2, 2, width=5.4, height=4.6)
    shown = _two_optima(optima)
    for ax, group in zip(axes[0], shown, strict=False):
        _draw_theta(ax, tables["fig10_theta"], optima, group, items)
    if len(shown) < 2:
        axes[0, 1].set_axis_off()
    _draw_range(axes[1, 0], ranges, items)
    _draw_ends(axes[1, 1], tables["fig10"], optima)
    return figure


def _two_optima(optima: pd.DataFrame) -> list[int]:
    """Return the best optimum, and the best optimum with the opposite order of MDM2 and CDK4."""
    best = optima.iloc[0]
    other = optima[(optima["order"] > 0.5) != (best["order"] > 0.5)]
    rest = other if len(other) else optima.iloc[1:]
    return [int(best["group"]), *(int(group) for group in rest["group"].iloc[:1])]


def _draw_theta(
    ax: Any, table: pd.DataFrame, optima: pd.DataFrame, group: int, items: list[str]
) -> None:
    place = {item: k for k, item in enumerate(items)}
    theta = np.zeros((len(items), len(items)))
    rows = table[table["group"] == group]
    theta[rows["from"].map(place), rows["to"].map(place)] = rows["effect"]
    effects = table.loc[table["from"] != table["to"], "effect"]
    limit = np.ceil(2.0 * effects.abs().max()) / 2.0 if len(effects) else 1.0
    plot_theta(Model(theta, items), order="given", fold=False, limit=float(limit), ax=ax)
    one: Any = optima[optima["group"] == group].iloc[0]
    refitted = (
        "best refitted" if one["behind"] == 0.0 else f"refitted {one['behind']:.1f} nats behind"
    )
    ax.set_title(
        f"optimum {group}: objective {one['objective']:.4f}, {refitted}\n"
        f"P({FIRST} before {SECOND}) = {one['order']:.2f}",
        fontsize=TEXT, pad=24.0,
    )  # fmt: skip


def _draw_range(ax: Any, ranges: pd.DataFrame, items: list[str]) -> None:
    colors = load("matplotlib.colors")
    n = len(items)
    spread = ranges["range"].to_numpy().reshape(n, n)
    shades = colors.LinearSegmentedColormap.from_list("range", ["#ffffff", "#f6b583", "#7a2f05"])
    image = ax.imshow(
        np.where(np.eye(n, dtype=bool), np.nan, spread),
        cmap=shades.with_extremes(bad=DIAGONAL), vmin=0.0,
    )  # fmt: skip
    ax.set_xticks(range(n), items, rotation=90, fontsize=SMALL)
    ax.set_yticks(range(n), items, fontsize=SMALL)
    ax.set_xticks(np.arange(n - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(n - 1) + 0.5, minor=True)
    ax.grid(visible=True, which="minor", color="0.85", linewidth=0.4)
    ax.tick_params(which="both", length=0)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, pad=0.02)
    bar.set_label("highest minus lowest effect", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    ax.set_xlabel("acts on this one", fontsize=TEXT)
    ax.set_ylabel("this item", fontsize=TEXT)
    ax.set_title("range of each effect over all starts", fontsize=TEXT)


def _draw_ends(ax: Any, starts: pd.DataFrame, optima: pd.DataFrame) -> None:
    best = float(optima["objective"].max())
    scale = float(optima["nats_below_best"].max() / max((best - optima["objective"]).max(), 1e-12))
    for place, solver in enumerate(("ours", "adagrad")):
        rows = starts[starts["solver"] == solver]
        if not len(rows):
            continue
        colour, _, marker = series(place)
        ax.plot(
            (best - rows["objective"]) * scale, rows["order"], linestyle="none", marker=marker,
            color=colour, alpha=0.6, markersize=6.0, markeredgewidth=0.0,
            label={"ours": "a start", "adagrad": "a start of the paper's solver"}[solver],
        )  # fmt: skip
    for one in optima.to_dict("records"):
        ax.annotate(
            f"{one['group']} ({one['starts_ours'] + one['starts_adagrad']})",
            (one["nats_below_best"], one["order"]), xytext=(5, 4), textcoords="offset points",
            fontsize=SMALL,
        )  # fmt: skip
    ax.set_ylim(-0.03, 1.03)
    ax.margins(x=0.12)
    ax.axhline(0.5, color="0.85", linewidth=0.8, zorder=0)
    finish(
        ax, title="where the starts ended: optimum (starts)",
        x="nats below the best, all samples", y=f"P({FIRST} before {SECOND})",
    )  # fmt: skip


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """Count the optima, and compare the best optimum with the result of Schill et al."""
    starts, optima, ranges = tables["fig10"], tables["fig10_optima"], tables["fig10_range"]
    main = str(starts["solver"].iloc[0])
    chosen = starts[starts["solver"] == main]
    # The paper's solver rarely reaches its stopping rule, so all of its starts are counted.
    ended = chosen[chosen["converged"]] if main == "ours" else chosen
    if not len(ended):
        return Verdict(None, "No start converged.")
    reached = optima[optima["group"].isin(ended["group"])]
    best: Any = reached.iloc[0]
    at_best = int((ended["group"] == best["group"]).sum())
    widest: Any = ranges[ranges["solver"] == main].sort_values("range").iloc[-1]
    numbers: dict[str, Any] = {
        "solver": main,
        "starts": len(ended),
        "optima": len(reached),
        "starts_at_best": at_best,
        "best_objective": float(best["objective"]),
        "mhn_objective": MHN_OBJECTIVE,
        "orders": [round(float(x), 4) for x in reached["order"]],
        "objectives": [float(x) for x in reached["objective"]],
        "starts_of_each": [int((ended["group"] == group).sum()) for group in reached["group"]],
        "behind": [float(x) for x in reached["behind"]],
        "widest_range": float(widest["range"]),
    }
    narrow = ended[ended["width"] == WIDTHS[0]]
    at_best_narrow = int((narrow["group"] == best["group"]).sum())
    numbers["narrow_starts"] = len(narrow)
    numbers["narrow_starts_at_best"] = at_best_narrow
    others = starts[starts["solver"] != main]
    beside = ""
    if len(others):
        ended_there = int((others["group"] == best["group"]).sum())
        numbers["paper_solver_starts"] = len(others)
        numbers["paper_solver_starts_at_best"] = ended_there
        numbers["paper_solver_ends"] = int(others["group"].nunique())
        beside = (
            f" {ended_there} of {len(others)} starts of the paper's solver ended at the best "
            "optimum."
        )
    orders = reached["order"]
    ahead = float(reached["behind"].iloc[1:].min()) if len(reached) > 1 else 0.0
    refitted = (
        f"the next optimum is {ahead:.1f} nats worse than the best optimum" if ahead > 0.0 else ""
    )
    if best["behind"] > 0.0:
        refitted = f"the best optimum is {best['behind']:.1f} nats worse than another optimum"
    text = (
        f"{len(ended)} starts ended at {len(reached)} different optima. {at_best} of them ended "
        f"at the best optimum, whose objective is {best['objective']:.6f}. Of the {len(narrow)} "
        "starts with random interactions from [-0.2, 0.2], as in the paper, "
        f"{at_best_narrow} ended there. The package mhn, whose penalty is smoothed, reaches the "
        f"objective {MHN_OBJECTIVE} on the same table ({MHN_ROUNDED_OBJECTIVE} after its theta is "
        "rounded), which is practically the same optimum. "
        f"P({FIRST} before {SECOND}) is {best['order']:.2f} at the best optimum. Over all optima "
        f"it ranges from {orders.min():.2f} to {orders.max():.2f}"
        + (f". If the optima are refitted without the penalty, {refitted}" if refitted else "")
        + f". The effect that differs most between the starts is that of {widest['from']} on "
        f"{widest['to']}, with a range of {widest['range']:.2f}." + beside
    )
    return Verdict(bool(len(reached) > 1) if len(ended) > 1 else None, text, numbers)


EXPERIMENTS = {
    "fig10": Experiment(
        name="fig10",
        title="theta on the 20-item table from different starts",
        where="Figure 10, appendix G",
        claim="Different random starts end at clearly different parameters. One of the results is "
        "practically the same as that of Schill et al.",
        task="sequela_paper.starts:task",
        cases=cases,
        tables=tables,
        draw=draw,
        judge=judge,
        repeats=20,
        data=SCHILL_TABLE,
        solvers=True,
        differs="Half of our starts have random interactions from [-2, 2], and half from "
        "[-0.2, 0.2] as in the paper. Our fits converge (KKT residual 1e-5), so that different "
        "optima can be distinguished and counted. We "
        "compare with the objective that the package mhn of Schill et al. reaches on the same "
        "table, because we do not have their matrix of 2019.",
    )
}
