"""Write the folder of a fit: the model, tables and figures."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.forecast import LONG, within_seconds
from sequela.likelihood.histories import sample_posteriors
from sequela.likelihood.parameters import Parameters
from sequela.observation import ObservationEffects
from sequela.questions.clock import pseudo_times
from sequela.questions.distributions import item_frequencies
from sequela.questions.order import order_matrix
from sequela.questions.order_baseline import baseline_verdict, order_baseline
from sequela.questions.verdict import Verdict
from sequela.report.fit_options import Execution, OutputOptions
from sequela.report.run import MODEL_NAME
from sequela.report.tables import observation_effects, write_table
from sequela.support.errors import InputError, SequelaError
from sequela.support.naming import argument, option
from sequela.support.progress import WorkProgress, lines_in_log
from sequela.support.threads import resolve_threads

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    import pandas as pd

    from sequela.data.dataset import Dataset
    from sequela.learning.learner import Learner
    from sequela.likelihood.forecast import Forecast
    from sequela.questions.order_ranges import OrderRanges

__all__ = ["with_ranges", "write_fit"]

# Orders are listed for at most this many items, the most frequent ones: 100 items have 4,950 pairs.
_ORDERED_ITEMS = 20


def write_fit(
    folder: str | os.PathLike[str],
    learner: Learner,
    data: Dataset,
    *,
    figures: tuple[str, ...] = (),
    table_seconds: float | None = None,
    execution: Execution | None = None,
    check: OrderRanges | None = None,
) -> tuple[str, ...]:
    """Write model, tables and figures of a fit into `folder`, the model first.

    Parameters
    ----------
    folder : path
        The folder; it is made if it does not exist. Files of the same names are replaced.
    learner : Learner or SetChain
        The fitted learner. Its seed is also used for answers that are sampled.
    data : Dataset
        The samples that the learner was fitted to.
    figures : tuple of str
        Formats, such as ("png", "svg"); empty for no figures.
    table_seconds : float or None
        See `OutputOptions`. None means the default of `OutputOptions`.
    execution : Execution or None
        Number of threads, and the function that announces each part.
    check : OrderRanges or None
        Which orders the data allow. They are written to ``order_ranges.csv`` and to columns of
        ``orders.csv``.

    Returns
    -------
    tuple of str
        Notices about answers that were sampled to stay within `table_seconds`, and about tables
        and figures that were not written, because they could not be computed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sequela import SetChain, example_samples
    >>> data = example_samples().most_frequent(3)
    >>> learner = SetChain(0.05, random_state=1).fit(data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_fit(folder, learner, data)
    ...     print(*sorted(path.stem for path in pathlib.Path(folder).iterdir()))
    frequencies interactions model orders pseudo_times theta
    """
    execution = execution or Execution()
    with lines_in_log(show=execution.progress == "lines"):
        tables = _Tables(Path(folder), learner, data, execution, table_seconds)
        tables.check = check
        tables.write_model()
        tables.write_tables()
        if figures:
            tables.draw(figures)
    return tuple(tables.notices)


class _Tables:
    """The files of one fit, in the order in which they are made."""

    def __init__(
        self,
        folder: Path,
        learner: Learner,
        data: Dataset,
        execution: Execution,
        table_seconds: float | None,
    ) -> None:
        self.folder = folder
        self.learner = learner
        self.model = learner.model_
        self.data = data
        self.announce = execution.announce or _say_nothing
        self.threads = resolve_threads(execution.threads)
        self.options: dict[str, Any] = {
            "random_state": learner.seed_,
            "n_threads": execution.threads,
        }
        self.table_seconds = OutputOptions().table_seconds if table_seconds is None else (
            table_seconds
        )  # fmt: skip
        self.notices: list[str] = []
        self.check: OrderRanges | None = None
        self.orders: Any = None
        self.frequencies: Any = None

    def write_model(self) -> None:
        """Write the model first, because the other files take longer and may fail."""
        self.folder.mkdir(exist_ok=True)
        self.model.save(self.folder / MODEL_NAME)
        self.model.to_csv(self.folder / "theta.csv")
        write_table(self.model.interactions(), self.folder / "interactions.csv", index=False)
        effects = observation_effects(self.model)
        if effects is not None:
            write_table(effects, self.folder / "observation_effects.csv", index=False)
            self.model.to_mhn(self.folder / "omhn.csv")
        if len(self.learner.starts_) > 1:
            write_table(self.learner.optima_, self.folder / "optima.csv", index=False)

    def write_tables(self) -> None:
        """Write orders, pseudo-times and frequencies."""
        self.announce("orders")
        if self.check is not None:
            write_table(self.check.table, self.folder / "order_ranges.csv", index=False)
        with self._if_possible("orders.csv"):
            self._write_orders()
        with self._if_possible("pseudo_times.csv"):
            self._write_times()
        self.announce("frequencies")
        with self._if_possible("frequencies.csv"):
            self.frequencies = item_frequencies(self.model, self.data, **self.options)
            write_table(self.frequencies, self.folder / "frequencies.csv")

    @contextlib.contextmanager
    def _if_possible(self, name: str) -> Iterator[None]:
        """Turn an error into a notice: the fit must not be lost if one answer cannot be computed.

        All inputs were checked before the fit. So such an error is about a model for which an
        answer cannot be computed.
        """
        try:
            yield
        except SequelaError as error:
            self.notices.append(f"{name} was not written: {error}")

    def _write_orders(self) -> None:
        top = self.data.most_frequent(min(_ORDERED_ITEMS, self.data.n_items)).items
        if len(top) < 2:
            return
        self.orders = order_matrix(self.model, top, **self.options)
        pairs = self.orders.pairs()
        if self.check is not None:
            pairs = with_ranges(pairs, self.check.table, order_baseline(self.data))
        write_table(pairs, self.folder / "orders.csv", index=False)

    def _write_times(self) -> None:
        if isinstance(self.model.observation, ObservationEffects):
            self.notices.append(
                "pseudo_times.csv was not written: the times of samples are not available if items "
                "have effects on the observation"
            )
            return
        budget = self._budget("pseudo-times", quantiles=True)
        try:
            times = pseudo_times(self.model, self.data, budget=budget, **self.options)
        except InputError as error:
            # Quantiles need the whole distribution. Means need only the recursions of the lattice.
            times = pseudo_times(self.model, self.data, quantiles=(), budget=budget, **self.options)
            self.notices.append(
                f"pseudo_times.csv has means and standard deviations, but no quantiles: {error}. "
                f"With a larger {argument('penalty')}, or with fewer items "
                f"({option('most_frequent', 20)}), the rates differ less"
            )
        write_table(times, self.folder / "pseudo_times.csv")

    def draw(self, formats: tuple[str, ...]) -> None:
        """Draw the figures; the timeline takes the longest."""
        from matplotlib import pyplot as plt

        from sequela.plots.frequencies import plot_frequencies
        from sequela.plots.interactions import plot_interactions
        from sequela.plots.order_matrix import plot_order_matrix
        from sequela.plots.order_ranges import plot_order_ranges
        from sequela.plots.style import save_figure
        from sequela.plots.theta import plot_theta
        from sequela.plots.timeline import plot_timeline

        drawings: dict[str, Callable[[], Any]] = {"theta": lambda: plot_theta(self.model)}
        if self.frequencies is not None:
            drawings["frequencies"] = lambda: plot_frequencies(self.frequencies)
        # Arrival times cannot be computed if observation times are not exponential.
        if self.model.observation.constant_rate is not None:
            with self._if_possible("The figure 'timeline'"):
                budget = self._budget("arrival times", quantiles=False)
                posteriors = sample_posteriors(self.model, self.data, budget=budget, **self.options)
                drawings["timeline"] = lambda: plot_timeline(posteriors, unit=self._unit_of_time())
        self.announce("figures")
        if self.orders is not None:
            drawings["orders"] = lambda: plot_order_matrix(
                self.orders, ranges=None if self.check is None else self.check.table
            )
        if len(self.model.interactions()):
            drawings["interactions"] = lambda: plot_interactions(self.model)
        check = self.check
        if check is not None and check.table["checked"].any():
            drawings["order_ranges"] = lambda: plot_order_ranges(check)
        (self.folder / "figures").mkdir(exist_ok=True)
        with WorkProgress("figures", len(drawings)) as bar:
            for name, make in drawings.items():
                axes = make()
                for suffix in formats:
                    save_figure(axes, self.folder / "figures" / f"{name}.{suffix}")
                plt.close(axes.figure)
                bar.advance()

    def _unit_of_time(self) -> str:
        """Return the unit of the times of this model, for a figure."""
        if self.data.times is not None and np.isfinite(self.data.times).any():
            return "that of the known times"
        rate = self.model.observation.constant_rate
        return "mean observation time" if rate == 1.0 else "that of the model"

    def _budget(self, what: str, *, quantiles: bool) -> Any:
        """Announce a table of all samples, and return a budget for it.

        With this budget, the table is predicted to take at most `table_seconds`, if that is
        possible. The budget is None if the rate of the observation is not constant.
        """
        if self.model.observation.constant_rate is None:
            self.announce(what)
            return None
        samples = DistinctSamples.of(self.data.without_times(), partial=True)
        budget, whole, chosen = within_seconds(
            Parameters.of(self.model), samples, self.table_seconds, quantiles=quantiles
        )
        self.announce(_with_cost(what, chosen, self.threads))
        if chosen.sampled > whole.sampled:
            self.notices.append(
                f"{what}: orders are drawn for {chosen.sampled - whole.sampled:,} of "
                f"{self.data.n_samples:,} samples, because exact answers for all would take about "
                f"{whole.seconds:.3g} seconds of CPU time and {whole.memory / 1e6:.0f} MB "
                f"per thread ({argument('table_seconds')} allows {self.table_seconds:.3g} seconds)"
            )
        return budget


def with_ranges(pairs: pd.DataFrame, table: pd.DataFrame, baseline: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of `Orders.pairs` with range, evidence, verdict and baseline of each pair.

    Examples
    --------
    >>> import pandas as pd
    >>> pairs = pd.DataFrame({"first": ["a"], "second": ["b"], "probability": [0.6]})
    >>> one = {"first": "b", "second": "a", "low": 0.3, "high": 0.9, "evidence": 0.5}
    >>> table = pd.DataFrame([{**one, "verdict": "the data cannot tell"}])
    >>> sizes = pd.DataFrame({"item": ["a", "b"], "mean_size": [2.0, 3.0]})
    >>> with_ranges(pairs, table, sizes)[["low", "high", "evidence", "baseline"]].round(2)
       low  high  evidence baseline
    0  0.1   0.7      -0.5   agrees
    """
    known = {(row["first"], row["second"]): row for row in table.to_dict("records")}
    rows: list[dict[str, Any]] = []
    for first, second in zip(pairs["first"], pairs["second"], strict=True):
        nan = float("nan")
        row: dict[str, Any] = {
            "low": nan, "high": nan, "evidence": nan, "verdict": Verdict.NOT_CHECKED.value,
        }  # fmt: skip
        if (first, second) in known:
            row = {name: known[first, second][name] for name in row}
        elif (second, first) in known:
            other = known[second, first]
            row = {
                "low": 1.0 - other["high"], "high": 1.0 - other["low"],
                "evidence": -other["evidence"], "verdict": other["verdict"],
            }  # fmt: skip
        rows.append({**row, "baseline": baseline_verdict(baseline, first, second)})
    columns = ["low", "high", "evidence", "verdict", "baseline"]
    found = pairs.copy()
    for name in columns:
        found[name] = [row[name] for row in rows]
    return found


def _with_cost(what: str, cost: Forecast, threads: int) -> str:
    """Return the name of a part, with its predicted time if it takes long."""
    if cost.seconds / threads <= LONG:
        return what
    return f"{what} ({cost.describe(threads)})"


def _say_nothing(_: str) -> None:
    """Do nothing; this function is used if the caller wants no announcements."""
