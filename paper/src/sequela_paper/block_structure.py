"""Figure 11 (appendix G): only a small block of items interacts; the others are clock items.

The total interaction is the sum of the absolute effects over all interactions. Items are sorted by
frequency, and the share of the total interaction that is among the first b items is computed. For
comparison, this share is also computed for items that are sorted at random.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.learning.estimator import SetChain
from sequela.plots.style import DIAGONAL, FAINT, LINE, SMALL, TEXT, diverging
from sequela.support.random import Purpose, stream
from sequela_paper.experiment import Experiment, Settings, Tables, Verdict
from sequela_paper.figures import finish, panels
from sequela_paper.sources import GLIOBLASTOMA, glioblastoma

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["EXPERIMENTS", "shares_within", "task"]

PENALTY = 0.01
_ORDERS = 1000
_MOST = 0.9  # the block contains this share of the total interaction
_ZOOMED = 60  # if there are more items, the first ones are shown again in a larger picture
_SHOWN = 35


def task(*, folder: str, n: int, seed: int) -> dict[str, Any]:
    """Learn a model of the n most frequent items, and compute the shares of the total interaction.

    Parameters
    ----------
    folder : str
        The data folder.
    n : int
        Number of items.
    seed : int
        Seed of sampled sets and of random permutations of the items.

    Returns
    -------
    dict
        Diagonal and interactions of theta, how the fit ended, and the share of the total
        interaction among the first b items, with items sorted by frequency and at random.
    """
    data = glioblastoma(folder).most_frequent(n)
    with warnings.catch_warnings():
        # Some rare items always occur together, which would cause warnings.
        warnings.simplefilter("ignore")
        learner = SetChain(PENALTY, random_state=seed, progress=False).fit(data)
    sizes = np.abs(learner.theta_)
    np.fill_diagonal(sizes, 0.0)
    i, j = np.nonzero(sizes)
    rng = stream(seed, Purpose.EXPERIMENT)
    random = np.stack([shares_within(sizes, rng.permutation(n)) for _ in range(_ORDERS)])
    low, middle, high = np.quantile(random, [0.025, 0.5, 0.975], axis=0)
    blocks = _block(random)
    return {
        "items": list(data.items),
        "frequency": data.frequencies.tolist(),
        "log_rate": np.diagonal(learner.theta_).tolist(),
        "from": i.tolist(),
        "to": j.tolist(),
        "effect": learner.theta_[i, j].tolist(),
        "share": shares_within(sizes, np.arange(n)).tolist(),
        "random_low": low.tolist(),
        "random_median": middle.tolist(),
        "random_high": high.tolist(),
        "random_smallest_block": int(blocks.min()),
        "random_median_block": int(np.median(blocks)),
        "objective": learner.objective_,
        "objective_se": learner.objective_se_,
        "converged": bool(learner.converged_),
    }


def shares_within(sizes: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for b = 1, ..., n the share of the interaction among the first b items of `order`.

    Examples
    --------
    >>> sizes = np.array([[0.0, 3.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> shares_within(sizes, np.arange(3)).tolist()
    [0.0, 0.75, 1.0]
    """
    n = len(sizes)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    i, j = np.nonzero(sizes)
    added = np.bincount(np.maximum(place[i], place[j]), weights=sizes[i, j], minlength=n)
    total = added.sum()
    shares: NDArray[np.float64] = np.cumsum(added) / (total or 1.0)
    return shares


def _block(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return, for each row of shares, the smallest b whose share is at least 90%."""
    found: NDArray[np.int64] = np.argmax(np.atleast_2d(shares) >= _MOST, axis=1) + 1
    return found


def cases(settings: Settings) -> list[dict[str, Any]]:
    """Return the only case, one fit."""
    return [{"folder": str(settings.data), "n": 50 if settings.quick else 150}]


def tables(results: pd.DataFrame, settings: Settings) -> Tables:  # noqa: ARG001
    """Return tables of interactions, items, shares of the first b items, and the fit."""
    one: Any = results.iloc[0]
    items = np.array(one["items"], dtype=object)
    n = items.size
    linked = np.bincount(np.concatenate([one["from"], one["to"]]).astype(int), minlength=n)
    interactions = pd.DataFrame(
        {
            "from_place": np.array(one["from"], dtype=int) + 1,
            "to_place": np.array(one["to"], dtype=int) + 1,
            "from": items[one["from"]],
            "to": items[one["to"]],
            "effect": one["effect"],
        }
    )
    return {
        "fig11": interactions,
        "fig11_items": pd.DataFrame(
            {
                "place": np.arange(n) + 1, "item": items, "frequency": one["frequency"],
                "log_rate": one["log_rate"], "interactions": linked,
            }
        ),
        "fig11_curve": pd.DataFrame(
            {
                "b": np.arange(n) + 1, "share": one["share"], "random_low": one["random_low"],
                "random_median": one["random_median"], "random_high": one["random_high"],
            }
        ),
        "fig11_fit": pd.DataFrame(
            [
                {
                    name: one[name]
                    for name in (
                        "objective", "objective_se", "converged", "random_median_block",
                        "random_smallest_block",
                    )
                }
            ]
        ),
    }  # fmt: skip


def draw(tables: Mapping[str, pd.DataFrame]) -> Any:
    """Draw theta with items sorted by frequency, and the share of interaction among the first b."""
    items, curve = tables["fig11_items"], tables["fig11_curve"]
    figure, axes = panels(1, 2, width=5.0, height=4.3)
    _draw_theta(axes[0, 0], tables["fig11"], len(items))
    ax = axes[0, 1]
    ax.fill_between(
        curve["b"], curve["random_low"], curve["random_high"], color="0.88", linewidth=0.0,
        label="items in random order, 95%",
    )  # fmt: skip
    ax.plot(curve["b"], curve["random_median"], color=FAINT, linestyle="--", linewidth=1.0)
    ax.plot(curve["b"], curve["share"], color=LINE, linewidth=1.6, label="items by frequency")
    block = int(_block(curve["share"].to_numpy())[0])
    ax.plot([block, block], [0.0, _MOST], color=LINE, linestyle=":", linewidth=1.0)
    ax.annotate(
        f"{_MOST:.0%} within {block} items", (block, 0.7), xytext=(6, 0),
        textcoords="offset points", fontsize=SMALL, color=LINE,
    )  # fmt: skip
    ax.set_xlim(0.0, len(items))
    ax.set_ylim(0.0, 1.02)
    finish(ax, x="first b items", y="share of all interaction among them", legend=False)
    # Inside the axes, the legend would cover the curves.
    ax.legend(fontsize=SMALL, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def _draw_theta(ax: Any, table: pd.DataFrame, n: int) -> None:
    effects = np.zeros((n, n))
    effects[table["from_place"] - 1, table["to_place"] - 1] = table["effect"]
    effects[np.diag_indices(n)] = np.nan
    limit = float(np.ceil(table["effect"].abs().max())) if len(table) else 1.0
    look: dict[str, Any] = {
        "cmap": diverging(step=True).with_extremes(bad=DIAGONAL), "vmin": -limit, "vmax": limit,
        "interpolation": "nearest", "extent": (0.5, n + 0.5, n + 0.5, 0.5),
    }  # fmt: skip
    image = ax.imshow(effects, **look)
    if n > _ZOOMED:
        # The cells of a large matrix are too small to see. So the block is shown again, larger, in
        # the empty part of the matrix.
        closer = ax.inset_axes((0.53, 0.49, 0.46, 0.46))
        closer.imshow(effects, **look)
        closer.set_xlim(0.5, _SHOWN + 0.5)
        closer.set_ylim(_SHOWN + 0.5, 0.5)
        closer.set_xticks([])
        closer.set_yticks([])
        closer.set_xlabel(f"the first {_SHOWN}", fontsize=SMALL, labelpad=3.0)
        for spine in closer.spines.values():
            spine.set_color("0.5")
        edge = _SHOWN + 0.5
        ax.plot([0.5, edge, edge], [edge, edge, 0.5], color="0.5", linewidth=0.8)
    step = 10 if n <= 60 else 25
    marks = [1, *range(step, n + 1, step)]
    ax.set_xticks(marks)
    ax.set_yticks(marks)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.75, pad=0.02)
    bar.set_label("effect on the log-rate", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    finish(ax, x="acts on this one", y="this item, the most frequent first", legend=False)
    ax.set_title(f"theta, n = {n}", fontsize=TEXT)


def judge(tables: Mapping[str, pd.DataFrame]) -> Verdict:
    """Return whether most interaction lies in a block of less than half of the items."""
    items, curve, fit = tables["fig11_items"], tables["fig11_curve"], tables["fig11_fit"]
    n = len(items)
    share = curve["share"].to_numpy()
    block = int(_block(share)[0])
    silent = int((items["interactions"] == 0).sum())
    table = tables["fig11"]
    behind = (table["from_place"] > block) & (table["to_place"] > block)
    smallest = int(fit["random_smallest_block"].iloc[0])
    at = min(20, n) - 1
    numbers = {
        "n": n,
        "interactions": len(table),
        "block": block,
        "random_median_block": int(fit["random_median_block"].iloc[0]),
        "random_smallest_block": smallest,
        "share_first_20": float(share[at]),
        "random_share_first_20": (at + 1.0) * at / (n * (n - 1.0)),
        "items_without_interactions": silent,
        "share_without_interactions": silent / n,
        "interactions_behind_the_block": int(behind.sum()),
        "objective": float(fit["objective"].iloc[0]),
    }
    text = (
        "The total interaction is the sum of the absolute effects over all "
        f"{len(table)} interactions. {_MOST:.0%} of it is between the {block} most frequent of {n} "
        f"items, and {share[at]:.0%} between the {at + 1} most frequent. If the items are sorted "
        f"at random instead of by frequency, the first {numbers['random_median_block']} items are "
        f"needed to reach {_MOST:.0%} (median of {_ORDERS} random permutations; the smallest "
        f"number was {smallest}), and {numbers['random_share_first_20']:.1%} is between the first "
        f"{at + 1} items on average. {silent} items ({silent / n:.0%}) have no interactions. "
        f"{int(behind.sum())} interactions are between two items outside the block."
    )
    return Verdict(bool(block < n / 2 and block < smallest), text, numbers)


EXPERIMENTS = {
    "fig11": Experiment(
        name="fig11",
        title="theta of the 150 most frequent items",
        where="Figure 11, appendix G",
        claim="theta is approximately block-diagonal: a smaller block of interacting items, and a "
        "larger one of items that are nearly independent.",
        task="sequela_paper.block_structure:task",
        cases=cases,
        tables=tables,
        draw=draw,
        judge=judge,
        data=GLIOBLASTOMA,
        differs="The paper shows theta in a figure. We also measure the size of the block. Rare "
        "items have no interactions partly because of the penalty (lambda): the gradient of an "
        "effect of a rare item is at most about the frequency of the item. For the rarest items, "
        "this frequency is only a little above lambda.",
    )
}
