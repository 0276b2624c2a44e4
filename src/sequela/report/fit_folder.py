"""What a fit leaves in its folder: the model, tables of what it says, and figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequela.likelihood.histories import sample_posteriors
from sequela.questions.clock import pseudo_times
from sequela.questions.distributions import item_frequencies
from sequela.questions.order import order_matrix
from sequela.report.fit_options import Execution
from sequela.report.run import MODEL_NAME
from sequela.report.tables import write_table

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from sequela.data.dataset import Dataset
    from sequela.learning.estimator import SetChain

__all__ = ["write_fit"]

# Orders are listed for this many of the most frequent items: a hundred items have 4,950 pairs.
_ORDERED_ITEMS = 20


def write_fit(
    folder: str | os.PathLike[str],
    learner: SetChain,
    data: Dataset,
    *,
    figures: tuple[str, ...] = (),
    execution: Execution | None = None,
) -> None:
    """Write model, tables and figures of a fit into `folder`, the model first.

    Parameters
    ----------
    folder : path
        Where; it is made if it does not exist. Files of the same names are replaced.
    learner : SetChain
        Fitted. Its seed is also that of answers that are sampled.
    data : Dataset
        What it was fitted to.
    figures : tuple of str
        Formats, such as ("png", "svg"); none for no figures.
    execution : Execution or None
        Threads, and whom to tell what is being made.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sequela import SetChain, example_samples
    >>> data = example_samples().most_frequent(3)
    >>> learner = SetChain(0.05, random_state=1).fit(data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_fit(folder, learner, data)
    ...     print(*sorted(path.stem for path in pathlib.Path(folder).iterdir()))
    frequencies interactions model orders pseudo_times theta
    """
    execution = execution or Execution()
    announce = execution.announce or _say_nothing
    place = Path(folder)
    place.mkdir(exist_ok=True)
    model = learner.model_
    # Everything below takes longer and may fail; the model is safe by then.
    model.save(place / MODEL_NAME)
    model.to_csv(place / "theta.csv")
    write_table(model.interactions(), place / "interactions.csv", index=False)
    if len(learner.starts_) > 1:
        write_table(learner.optima_, place / "optima.csv", index=False)
    options: dict[str, Any] = {"random_state": learner.seed_, "n_threads": execution.threads}
    announce("orders")
    top = data.most_frequent(min(_ORDERED_ITEMS, data.n_items)).items
    orders = order_matrix(model, top, **options) if len(top) > 1 else None
    if orders is not None:
        write_table(orders.pairs(), place / "orders.csv", index=False)
    announce("pseudo-times")
    write_table(pseudo_times(model, data, **options), place / "pseudo_times.csv")
    announce("frequencies")
    frequencies = item_frequencies(model, data, **options)
    write_table(frequencies, place / "frequencies.csv")
    if figures:
        announce("figures")
        _draw(place, learner, data, orders, frequencies, figures, options)


def _say_nothing(_: str) -> None:
    """Tell nobody."""


def _draw(
    folder: Path,
    learner: SetChain,
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

    model = learner.model_
    drawings: dict[str, Callable[[], Any]] = {
        "theta": lambda: plot_theta(model),
        "frequencies": lambda: plot_frequencies(frequencies),
        "timeline": lambda: plot_timeline(sample_posteriors(model, data, **options)),
    }
    if orders is not None:
        drawings["orders"] = lambda: plot_order_matrix(orders)
    if len(model.interactions()):
        drawings["interactions"] = lambda: plot_interactions(model)
    (folder / "figures").mkdir(exist_ok=True)
    for name, draw in drawings.items():
        axes = draw()
        for suffix in formats:
            save_figure(axes, folder / "figures" / f"{name}.{suffix}")
        plt.close(axes.figure)
