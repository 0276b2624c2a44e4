"""Plot theta as a heat map of interactions, with a strip of base rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sequela.model import Model, as_model
from sequela.plots.certainty import CERTAIN, opacity, opaque
from sequela.plots.labels import short
from sequela.plots.style import (
    DIAGONAL,
    NOTHING,
    SMALL,
    TEXT,
    diverging,
    load,
    open_axes,
    settle,
    side,
)
from sequela.plots.ticks import item_ticks, plain_ticks
from sequela.posteriors.result import Posterior
from sequela.support.errors import InputError
from sequela.support.validation import is_number, positive_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from sequela.model import ModelLike

__all__ = ["plot_theta", "structural_order"]

_ANNOTATED = 12  # with at most this many items, numbers are written into the cells
_LINED = 60  # with at most this many items, cells have borders
_LEAST_EFFECT = 0.5  # in a draw, a weaker effect does not count as an interaction
_CLIPPED = 0.98  # share of the interactions that the colour scale covers


def plot_theta(
    model: ModelLike | Posterior,
    *,
    order: Literal["structure", "given"] = "structure",
    fold: bool = True,
    max_items: int | None = None,
    limit: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the interactions as a heat map: the item of a row acts on the item of a column.

    A strip above the heat map shows the base rates. Items that interact are next to each other.
    Most items come before those on which they act.

    For a posterior, the heat map shows the means of the effects. Cells fade to grey if the sign of
    the effect is uncertain: a cell has its full colour if the sign is known with a probability of
    0.95 or more, and it is grey if the probability is 0.5.

    Parameters
    ----------
    model : Model, fitted SetChain, theta, or Posterior
        The model.
    order : {"structure", "given"}
        The order of the items: "structure" puts interacting items together, "given" is the order of
        the model.
    fold : bool
        Leave out items without interactions. Their number is written below the heat map. For a
        posterior, an item is kept if it has an effect whose size is 0.5 or more in at least half of
        the models.
    max_items : int or None
        Draw at most this many items: those with the strongest interactions.
    limit : float or None
        The effect at which the colour scale ends; None: the 98% quantile of the sizes of all
        effects that are drawn.
    ax : Axes or None
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        The axes of the heat map.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sequela.data.examples import example_theta
    >>> ax = plot_theta(example_theta(), ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()][:3]
    ['first', 'second', 'step 1']
    """
    model, sign, present = _read(model)
    if order not in ("structure", "given"):
        raise InputError(f"order is {order!r}; expected 'structure' or 'given'")
    if limit is not None and not (is_number(limit) and 0.0 < limit < np.inf):
        raise InputError(f"limit is {limit!r}; expected a positive number or None")
    effects = model.theta.copy()
    np.fill_diagonal(effects, 0.0)
    clear = np.where(present, effects, 0.0)
    strength = np.maximum(np.abs(clear).max(axis=0), np.abs(clear).max(axis=1))
    shown = _chosen(strength, fold, max_items)
    if order == "structure":
        shown = shown[structural_order(clear[np.ix_(shown, shown)])]
    n = shown.size
    inches = float(np.clip(0.24 * n, 2.4, 10.0))
    own = ax is None
    ax = open_axes(ax, inches + 2.6, inches + 2.0)
    inches = min(side(ax))
    part = effects[np.ix_(shown, shown)]
    np.fill_diagonal(part, np.nan)
    image = _draw_effects(ax, part, limit, None if sign is None else sign[np.ix_(shown, shown)])
    labels = short(model.items[k] for k in shown)
    item_ticks(ax.yaxis, labels, inches)
    item_ticks(ax.xaxis, labels, inches)
    ax.set_ylabel("this item", fontsize=TEXT)
    ax.set_xlabel(
        "\n".join(["acts on this one", *_notes(model.theta, strength, shown, sign is not None)]),
        fontsize=TEXT,
    )
    _draw_base_rates(ax, model.theta.diagonal()[shown], inches, image)
    if own:
        settle(ax)
    return ax


def _read(
    model: ModelLike | Posterior,
) -> tuple[Model, NDArray[np.float64] | None, NDArray[np.bool_]]:
    """Return (model, P(effect is positive), whether there probably is an effect).

    The last two values are matrices of the shape of theta. For a posterior, the model has the mean
    theta of all draws. For a single model, the second value is None, because all signs are known.
    """
    if not isinstance(model, Posterior):
        model = as_model(model)
        return model, None, model.theta != 0.0
    theta = model.draws.theta
    means = Model(theta.mean(axis=(0, 1)), model.items, observation=model.observation)
    present = (np.abs(theta) >= _LEAST_EFFECT).mean(axis=(0, 1)) >= 0.5
    return means, (theta > 0.0).mean(axis=(0, 1)), present


def structural_order(effects: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the positions of the items in an order that puts interacting items together.

    The order comes from a hierarchical clustering by the shortest paths between items. A strong
    interaction is a short step of a path. If there is no path between two items, they have the
    largest distance. Therefore items that are linked form blocks. Either this order or its reverse
    is used: the one in which the effects on later items have the larger sum.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.sparse.csgraph import shortest_path
    from scipy.spatial.distance import squareform

    n = len(effects)
    links = np.abs(effects) + np.abs(effects.T)
    np.fill_diagonal(links, 0.0)
    if n < 3 or not links.any():
        order = np.arange(n)
    else:
        scale = links.max()
        steps = np.where(links > 0.0, 1.0 + scale / np.maximum(links, 1e-3 * scale), 0.0)
        far = shortest_path(steps, directed=False)
        finite = far[np.isfinite(far)]
        far[np.isinf(far)] = 2.0 * finite.max() + 1.0
        far = (far + far.T) / 2.0
        np.fill_diagonal(far, 0.0)
        tree = linkage(squareform(far, checks=False), "average", optimal_ordering=n <= 400)
        order = leaves_list(tree).astype(np.int64)
    ahead = np.abs(effects[np.ix_(order, order)])
    return order[::-1].copy() if np.tril(ahead).sum() > np.triu(ahead).sum() else order


def _chosen(strength: NDArray[np.float64], fold: bool, max_items: int | None) -> NDArray[np.int64]:
    shown = np.arange(strength.size)
    if fold and strength.any():
        shown = np.nonzero(strength)[0]
    if max_items is not None:
        count = positive_integer("max_items", max_items)
        shown = np.sort(shown[np.argsort(-strength[shown], kind="stable")[:count]])
    return shown


def _notes(
    theta: NDArray[np.float64],
    strength: NDArray[np.float64],
    shown: NDArray[np.int64],
    of_posterior: bool,
) -> list[str]:
    """Return notes about items that are left out, and about grey cells."""
    left = np.setdiff1d(np.arange(strength.size), shown)
    silent, weak = left[strength[left] == 0.0], left[strength[left] > 0.0]
    notes = []
    kind = "interactions"
    if of_posterior:
        notes.append(f"grey: the sign of the effect is less than {100 * CERTAIN:g}% certain")
        kind = "probable interactions"
    if silent.size:
        rates = np.exp(theta.diagonal()[silent])
        low, high = f"{rates.min():.2g}", f"{rates.max():.2g}"
        span = low if low == high else f"{low} to {high}"
        plural = "s" if silent.size > 1 else ""
        notes.append(f"+ {silent.size} item{plural} without {kind}, base rate {span}")
    if weak.size:
        notes.append(f"+ {weak.size} item{'s' if weak.size > 1 else ''} with weaker interactions")
    if not strength.any():
        notes.append(f"no {kind}")
    return notes


def _draw_effects(
    ax: Axes, part: NDArray[np.float64], limit: float | None, sign: NDArray[np.float64] | None
) -> Any:
    """Draw the effects; `sign` is P(effect is positive), or None if all signs are known."""
    n = len(part)
    strength = np.ones((n, n)) if sign is None else opacity(sign)
    np.fill_diagonal(strength, 1.0)
    if sign is not None:
        ax.set_facecolor(NOTHING)
    sizes = np.abs(part[np.isfinite(part) & (part != 0.0)])
    if limit is None:
        limit = float(np.quantile(sizes, _CLIPPED, method="higher")) if sizes.size else 1.0
    colours = diverging(step=True).with_extremes(bad=DIAGONAL)
    image = ax.imshow(
        part, cmap=colours, vmin=-limit, vmax=limit, interpolation="nearest",
        alpha=None if sign is None else strength,
    )  # fmt: skip
    ax.grid(visible=False)
    if n <= _LINED:
        ax.set_xticks(np.arange(n - 1) + 0.5, minor=True)
        ax.set_yticks(np.arange(n - 1) + 0.5, minor=True)
        ax.grid(visible=True, which="minor", color="0.85", linewidth=0.4)
        ax.tick_params(which="minor", length=0)
    if n <= _ANNOTATED:
        for i, j in np.argwhere(np.isfinite(part) & (part != 0.0)):
            dark = abs(part[i, j]) * strength[i, j] > 0.6 * limit
            colour = "white" if dark else ("black" if strength[i, j] > 0.5 else "0.45")
            ax.text(
                j, i, f"{part[i, j]:z.1f}".replace("-", "−"), ha="center", va="center",
                fontsize=SMALL, color=colour,
            )  # fmt: skip
    return image


def _draw_base_rates(ax: Axes, log_rates: NDArray[np.float64], inches: float, image: Any) -> None:
    colors = load("matplotlib.colors")
    n = log_rates.size
    height = min(max(1.0 / n, 0.12 / inches), 0.3 / inches)
    strip = ax.inset_axes((0.0, 1.0 + 0.08 / inches, 1.0, height))
    rates = np.exp(log_rates)
    low, high = float(rates.min()), float(rates.max())
    if high < 1.2 * low:
        low, high = low / 1.5, high * 1.5  # the ends of a colour scale must differ
    band = strip.imshow(
        rates[None, :], cmap="Greys", norm=colors.LogNorm(low, high), aspect="auto",
        interpolation="nearest",
    )  # fmt: skip
    strip.set_xticks([])
    strip.set_yticks([0], ["base rate"], fontsize=SMALL)
    strip.tick_params(length=0, pad=2.0)
    strip.grid(visible=False)
    strip.set_label("base rates")
    if n <= _ANNOTATED:
        middle = np.sqrt(low * high)
        for j, rate in enumerate(rates):
            number = f"{rate:.2g}"
            size = SMALL * min(1.0, 4 / len(number))  # a longer number would touch its neighbours
            strip.text(
                j, 0, number, ha="center", va="center", fontsize=size,
                color="white" if rate > middle else "black",
            )  # fmt: skip
    left, thick = 1.0 + 0.2 / inches, 0.14 / inches
    top = 1.0 + 0.08 / inches + height
    figure = ax.figure
    largest = np.nanmax(np.abs(image.get_array().filled(np.nan)), initial=0.0)
    bar = figure.colorbar(
        opaque(image), cax=ax.inset_axes((left, 0.0, thick, 0.56)),
        extend="both" if largest > image.norm.vmax else "neither",
    )  # fmt: skip
    bar.set_label("effect on the log-rate", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    rate_bar = figure.colorbar(band, cax=ax.inset_axes((left, 0.68, thick, top - 0.68)))
    rate_bar.set_label("base rate", fontsize=SMALL)
    rate_bar.ax.tick_params(labelsize=SMALL, which="both")
    steps = (1, 2, 5) if high < 30 * low else (1,)
    marks = [step * 10.0**power for power in range(-220, 220) for step in steps]
    plain_ticks(rate_bar.ax.yaxis, [x for x in marks if low <= x <= high] or [low, high], ax)
