"""The options of a fit that writes a folder: what to learn, what to write, and how to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequela.support.errors import InputError
from sequela.support.naming import argument, either
from sequela.support.schema import Place, read_fields
from sequela.support.validation import is_number

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

__all__ = ["Execution", "FitRunOptions", "OutputOptions"]

_FORMATS = ("png", "svg", "pdf")


@dataclass(frozen=True)
class FitRunOptions:
    """All options that the numbers of a fit depend on.

    They are written to ``run.json``, so that the fit can be repeated.

    Attributes
    ----------
    penalty : float
        Weight of the L1 penalty on interactions; not used with `cv`.
    cv : bool
        Choose the penalty by cross-validation.
    starts : int or None
        Number of starts; all but the first are random. None means 5 starts, but 3 or 1 if more
        starts are predicted to take long.
    check : bool
        Check which orders the data allow (`sequela.questions.order_ranges`). If the check finds a
        better model, this model is the result of the fit.
    observation : str or None
        The distribution of the observation times: "exponential" (None), "gamma:SHAPE" or
        "heavy:SHAPE", see `sequela.Gamma` and `sequela.HeavyTailed`. With "gamma", "heavy" or
        "any", the shape is chosen by held-out likelihood
        (`sequela.learning.compare_observations`). With "effects" and "effects:l1", items change the
        rate of the observation (`sequela.learning.fit_observation_effects`): "effects" uses the
        symmetric penalty, and "effects:l1" uses the L1 penalty. "any" may also choose "effects:l1".
    times : str or None
        The column with observation times.
    most_frequent : int or None
        Keep at most this many items, the most frequent first.
    weights : str or None
        The column with the weights of the samples, or the path of a table with two columns,
        sample and weight.
    fixed : tuple of triples or None
        Interactions (from, to, value) that are not learned; see `SetChain`.
    orders : str or None
        The path of a table of known orders; see `sequela.data.read_orders`.
    missing : {"keep", "absent", "refuse"} or None
        What cells without a value mean; see `sequela.read_table`.
    drop : tuple of str
        Columns of the table that are not items.
    solver : {"auto", "newton", "adagrad"}
        See `SetChain`.
    max_iter : int
        Maximum number of iterations per start.
    tol : float
        A start has converged when its KKT residual is at most this number.
    seed : int or None
        Seed of all random numbers. None uses the seed of the checkpoint, if there is one, or a new
        seed. The report and ``run.json`` contain the seed that was used.

    Examples
    --------
    >>> FitRunOptions(penalty=0.02, seed=1).to_json()["penalty"]
    0.02
    """

    penalty: float = 0.01
    cv: bool = False
    starts: int | None = None
    check: bool = True
    observation: str | None = None
    times: str | None = None
    most_frequent: int | None = None
    solver: str = "auto"
    max_iter: int = 1000
    tol: float = 1e-4
    seed: int | None = None
    weights: str | None = None
    fixed: tuple[tuple[str, str, float], ...] | None = None
    orders: str | None = None
    missing: str | None = None
    drop: tuple[str, ...] = ()

    def with_absolute_paths(self) -> FitRunOptions:
        """Return the options with absolute paths, which are valid in every working directory.

        Examples
        --------
        >>> FitRunOptions(weights="column").with_absolute_paths().weights
        'column'
        """
        weights, orders = self.weights, self.orders
        if weights is not None and Path(weights).is_file():
            weights = str(Path(weights).absolute())
        if orders is not None:
            orders = str(Path(orders).absolute())
        return replace(self, weights=weights, orders=orders)

    def to_json(self) -> dict[str, Any]:
        """Return the options as plain values for JSON."""
        options = asdict(self) | {"drop": list(self.drop)}
        if self.fixed is not None:
            options["fixed"] = [list(entry) for entry in self.fixed]
        return options

    @classmethod
    def from_json(cls, options: Mapping[str, Any]) -> FitRunOptions:
        """Return the options that `to_json` or an older version wrote.

        If "starts" or "check" is missing, the options were written by an older version, which used
        one start and no check. All other missing options get their defaults.

        Examples
        --------
        >>> FitRunOptions.from_json({"penalty": 0.02}).starts
        1
        """
        if not isinstance(options, Mapping):
            raise InputError(
                f"the options of the run are {options!r:.80}; expected names with their values"
            )
        known = {part.name for part in fields(cls)}
        unknown = [name for name in options if name not in known]
        if unknown:
            raise InputError(
                f"the run has the option {unknown[0]!r}, which this version of sequela does not "
                "know; repeat the run with the version of sequela that run.json names"
            )
        place = Place("run.json", "Restore it from a copy, or make the run again", "options")
        return read_fields(cls, {"starts": 1, "check": False, **options}, place)


@dataclass(frozen=True)
class OutputOptions:
    """Options about the output folder.

    Attributes
    ----------
    figures : tuple of str
        Formats of the figures: "png", "svg", "pdf". Empty for no figures.
    force : bool
        Replace a folder that an earlier run made.
    table_seconds : float
        Maximum predicted CPU time in seconds. It applies to the pseudo-times, and separately to the
        arrival times in the timeline. If exact answers would take longer, or would need more than
        400 MB per thread, orders are drawn for the samples with the largest cost. A notice then
        says so.

    Examples
    --------
    >>> OutputOptions(figures=("svg",)).force
    False
    """

    figures: tuple[str, ...] = ("png",)
    force: bool = False
    table_seconds: float = 60.0

    def __post_init__(self) -> None:
        if not (is_number(self.table_seconds) and self.table_seconds > 0):
            raise InputError(
                f"{argument('table_seconds')} is {self.table_seconds!r}; expected a positive "
                "number of seconds"
            )
        wrong = [name for name in self.figures if name not in _FORMATS]
        if wrong:
            raise InputError(
                f"{wrong[0]!r} is not a figure format; expected png, svg or pdf, or none"
            )

    def check_figures(self) -> None:
        """Raise an error if figures are requested but matplotlib is not installed."""
        if not self.figures:
            return
        try:
            import matplotlib  # noqa: F401, ICN001
        except ImportError:
            raise InputError(
                "figures need matplotlib: `pip install sequela[plot]`, or choose no figures "
                "with " + either("figures=()", "--figures none")
            ) from None


@dataclass(frozen=True)
class Execution:
    """How a fit is run; the results do not depend on these options.

    Attributes
    ----------
    threads : int or None
        None uses all cores that this process may use.
    checkpoint : path or None
        The file to which the fit is saved while it runs. If the file exists, the fit continues from
        it.
    progress : bool, "lines" or None
        As in `SetChain`: True shows a bar, "lines" writes plain lines, and None shows a bar only in
        a terminal or a notebook.
    announce : callable or None
        Called with the name of each part, such as "orders", before the part is computed.

    Examples
    --------
    >>> Execution(threads=2).checkpoint is None
    True
    """

    threads: int | None = None
    checkpoint: str | os.PathLike[str] | None = None
    progress: bool | str | None = None
    announce: Callable[[str], None] | None = None
