"""Figure 4: models of two items that no sample of sets can distinguish (appendix A).

`sequela.questions.theory.two_item_family_of` returns the family of Proposition 1. The likelihood of
sequela confirms that all members of the family give the same distribution of sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.plots.style import LINE, OUTLIER, SMALL, TEXT
from sequela.questions.distributions import set_probability
from sequela.questions.order import order_probability
from sequela.questions.theory import two_item_family_of
from sequela_paper.experiment import Experiment, Verdict
from sequela_paper.figures import finish, panels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sequela_paper.experiment import Settings, Tables

__all__ = ["EXPERIMENTS", "task"]

_ALPHA = 4.0
_SETS = {"0": [False, False], "1": [True, False], "2": [False, True], "12": [True, True]}
_REACH = 8.0  # in the members, the log-odds that item 1 arrived first go from -8 to 8
_PARAMETERS = ("theta_11", "theta_12", "theta_21", "theta_22")


def task(*, seed: int, alpha: float, points: int) -> dict[str, Any]:
    """Return members of the family and the true model, with probabilities of sets and orders.

    No random numbers are used. From one member to the next, the log-odds of "item 1 arrived first"
    change by the same step. Members at equal distances of the coordinate s would be less suitable:
    interactions grow in proportion to the log-odds, so members near the ends of the interval of s
    would have very different interactions.
    """
    del seed
    # Section 3.1: theta_11 = theta_21 = 0, theta_12 = -theta_22 = alpha.
    truth = np.array([[0.0, alpha], [0.0, -alpha]])
    family = two_item_family_of(truth)
    low, high = family.interval
    share = 1.0 / (1.0 + np.exp(-np.linspace(-_REACH, _REACH, points)))
    s = [*(low + share * (high - low)).tolist(), float(np.exp(truth[0, 0]))]
    thetas = [*(family.theta(x) for x in s[:-1]), truth]
    return {
        "low": low,
        "high": high,
        # The interval in the paper is (0, 1/p0 - 1), in which rates may be negative.
        "printed_high": 1.0 / family.p0 - 1.0,
        "members": [
            {
                "what": "true" if place == points else "member",
                "s": s[place],
                **dict(zip(_PARAMETERS, theta.ravel().tolist(), strict=True)),
                **{f"p_{k}": float(set_probability(theta, row)) for k, row in _SETS.items()},
                "first": float(order_probability(theta, 0, 1)),
            }
            for place, theta in enumerate(thetas)
        ],
    }


def _cases(settings: Settings) -> list[dict[str, Any]]:
    return [{"alpha": _ALPHA, "points": 33 if settings.quick else 161}]


def _tables(results: pd.DataFrame, settings: Settings) -> Tables:
    del settings
    found = results.iloc[0]
    ends = pd.DataFrame(
        {
            "alpha": [found["alpha"]],
            "low": [found["low"]],
            "high": [found["high"]],
            "printed_low": [0.0],
            "printed_high": [found["printed_high"]],
        }
    )
    return {"fig4": pd.DataFrame(found["members"]), "fig4_interval": ends}


def _draw(tables: Mapping[str, pd.DataFrame]) -> Any:
    table, ends = tables["fig4"], tables["fig4_interval"].iloc[0]
    members = table[table["what"] == "member"].sort_values("s")
    truth = table[table["what"] == "true"].iloc[0]
    figure, axes = panels(1, 2, width=3.4, height=3.2)
    for ax, (x, y) in zip(
        axes.flat, (("theta_11", "theta_22"), ("theta_12", "theta_21")), strict=True
    ):
        ax.plot(members[x], members[y], color=LINE, linewidth=1.6)
        ax.plot(
            [truth[x]], [truth[y]], color=OUTLIER, marker="s", markersize=7, linestyle="none",
            zorder=3,
        )  # fmt: skip
        _label(ax, truth, x, y, f"true model: {truth['first']:.0%}", colour=OUTLIER)
        # Mark two members, in which item 1 arrives first with about these probabilities.
        for chance in (0.02, 0.5):
            row = members.iloc[int((members["first"] - chance).abs().argmin())]
            ax.plot([row[x]], [row[y]], color=LINE, marker="o", markersize=4.5)
            _label(ax, row, x, y, f"{row['first']:.0%}")
        ax.margins(0.12)
        finish(
            ax, x=rf"$\theta_{{{x[-2:]}}}$", y=rf"$\theta_{{{y[-2:]}}}$", legend=False
        )  # fmt: skip
    axes[0, 0].set_title(
        f"base rates, s from {ends['low']:.3g} to {ends['high']:.4g}", fontsize=TEXT
    )
    axes[0, 1].set_title("interactions", fontsize=TEXT)
    figure.supxlabel(
        "One curve: the same distribution of sets. Percentages: item 1 before item 2, given both.",
        fontsize=SMALL,
    )
    return figure


def _label(ax: Any, row: Any, x: str, y: str, text: str, colour: str = "0.2") -> None:
    ax.annotate(
        text, (row[x], row[y]), xytext=(-7, -4), textcoords="offset points", ha="right", va="top",
        fontsize=SMALL, color=colour,
    )  # fmt: skip


def _judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    table, ends = tables["fig4"], tables["fig4_interval"].iloc[0]
    truth = table[table["what"] == "true"].iloc[0]
    members = table[table["what"] == "member"]
    sets = [f"p_{name}" for name in _SETS]
    deviation = (members[sets] / truth[sets].astype(float) - 1.0).abs().to_numpy().max()
    least, most = float(members["first"].min()), float(members["first"].max())
    opposite = least < 0.01 and most > 0.99 and truth["first"] > 0.9
    holds = bool(deviation < 1e-9 and opposite)
    text = (
        f"{len(members)} members of the family give each of the four sets the same probability "
        f"(largest relative difference {deviation:.1g}). In these members, the probability that "
        f"item 1 came before item 2 ranges from {least:.2%} to {most:.2%} (in the true model it is "
        f"{truth['first']:.2%}). The coordinate s of the family ranges from {ends['low']:.5f} to "
        f"{ends['high']:.5f}. The text of the paper gives the interval from 0 to "
        f"{ends['printed_high']:.5f}, in which rates may be negative."
    )
    numbers = {
        "deviation": float(deviation),
        "first_least": least,
        "first_most": most,
        "first_true": float(truth["first"]),
        "interval": [float(ends["low"]), float(ends["high"])],
        "printed_interval": [float(ends["printed_low"]), float(ends["printed_high"])],
    }
    return Verdict(holds, text, numbers)


EXPERIMENTS = {
    "fig4": Experiment(
        name="fig4",
        title="two-item models with the same distribution of sets",
        where="Figure 4, appendix A",
        claim=(
            "All models of a one-dimensional family of two-item models have the same distribution "
            "of sets. At one end of the family, item 1 nearly always comes first, and at the other "
            "end, item 2 nearly always comes first."
        ),
        task="sequela_paper.same_distribution:task",
        cases=_cases,
        tables=_tables,
        draw=_draw,
        judge=_judge,
        differs=(
            "We use the interval of s from p1/p0 to (1 - p0 - p2)/p0. The text of the paper gives "
            "the interval from 0 to 1/p0 - 1, in which rates may be negative. The figure of the "
            "paper shows the right interval."
        ),
    )
}
