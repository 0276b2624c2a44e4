"""What a fit leaves in its folder: the model, tables of what it says, and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sequela.likelihood.sample_posteriors import sample_posteriors
from sequela.questions.clock import pseudo_times
from sequela.questions.distributions import item_frequencies
from sequela.questions.order import order_matrix
from sequela.report.run import MODEL_NAME
from sequela.report.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sequela.data.dataset import Dataset
    from sequela.learning.estimator import SetChain

__all__ = ["write_fit"]

# Orders are listed for this many of the most frequent items: a hundred items have 4,950 pairs.
_ORDERED_ITEMS = 20


def write_fit(
    folder: Path,
    chain: SetChain,
    data: Dataset,
    *,
    seed: int,
    figures: tuple[str, ...],
    n_threads: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Write model, tables and figures of a fit into `folder`.

    Parameters
    ----------
    folder : path
        Where; it exists.
    chain : SetChain
        Fitted.
    data : Dataset
        What it was fitted to.
    seed : int
        For answers that are sampled.
    figures : tuple of str
        Formats, such as ("png", "svg"); none for no figures.
    n_threads : int or None
        Threads.
    say : callable
        Told what is being made.
    """
    model = chain.model_
    model.save(folder / MODEL_NAME)
    model.to_csv(folder / "theta.csv")
    write_table(model.interactions(), folder / "interactions.csv", index=False)
    if len(chain.starts_) > 1:
        write_table(chain.optima_, folder / "optima.csv", index=False)
    options: dict[str, Any] = {"random_state": seed, "n_threads": n_threads}
    say("orders")
    top = data.most_frequent(min(_ORDERED_ITEMS, data.n_items)).items
    orders = order_matrix(model, top, **options) if len(top) > 1 else None
    if orders is not None:
        write_table(orders.pairs(), folder / "orders.csv", index=False)
    say("pseudo-times")
    write_table(pseudo_times(model, data, **options), folder / "pseudo_times.csv")
    say("frequencies")
    frequencies = item_frequencies(model, data, **options)
    write_table(frequencies, folder / "frequencies.csv")
    if figures:
        say("figures")
        _draw(folder, chain, data, orders, frequencies, figures, options)


def _draw(
    folder: Path,
    chain: SetChain,
    data: Dataset,
    orders: Any,
    frequencies: Any,
    formats: tuple[str, ...],
    options: dict[str, Any],
) -> None:
    from matplotlib import pyplot as plt

    from sequela.plots.frequencies import plot_frequencies
    from sequela.plots.interactions import plot_interactions
    from sequela.plots.order_matrix import plot_order_matrix
    from sequela.plots.style import save_figure
    from sequela.plots.theta import plot_theta
    from sequela.plots.timeline import plot_timeline

    drawings: dict[str, Callable[[], Any]] = {
        "theta": lambda: plot_theta(chain.model_),
        "frequencies": lambda: plot_frequencies(frequencies),
        "timeline": lambda: plot_timeline(sample_posteriors(chain.model_, data, **options)),
    }
    if orders is not None:
        drawings["orders"] = lambda: plot_order_matrix(orders)
    if len(chain.model_.interactions()):
        drawings["interactions"] = lambda: plot_interactions(chain.model_)
    (folder / "figures").mkdir()
    for name, draw in drawings.items():
        axes = draw()
        for suffix in formats:
            save_figure(axes, folder / "figures" / f"{name}.{suffix}")
        plt.close(axes.figure)
