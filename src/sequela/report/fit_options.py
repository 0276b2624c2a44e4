"""What a fit that leaves a folder is told: what to learn, what to write, how to go about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from sequela.support.errors import InputError
from sequela.support.schema import Place, read_fields
from sequela.support.validation import is_number

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

__all__ = ["Execution", "FitRunOptions", "OutputOptions"]

_FORMATS = ("png", "svg", "pdf")


@dataclass(frozen=True)
class FitRunOptions:
    """Everything that the numbers of a fit depend on, apart from the data.

    They are written to ``run.json``, so that the fit can be repeated.

    Attributes
    ----------
    penalty : float
        Weight of the L1 penalty on interactions; not used with `cv`.
    cv : bool
        Choose the penalty by cross-validation.
    starts : int or None
        Number of starts; all but the first are random. None: 5, or fewer where one start is
        predicted to take long.
    check : bool
        Check which orders the data allow (`sequela.questions.order_ranges`); if a better model is
        found on the way, it is the result.
    observation : str or None
        The observation times: "exponential" (None), "gamma:SHAPE" or "heavy:SHAPE" as
        `sequela.Gamma` and `sequela.HeavyTailed` describe them; "gamma", "heavy" or "any" choose
        the shape by held-out likelihood (`sequela.learning.compare_observations`).
    times : str or None
        The column with observation times.
    most_frequent : int or None
        Keep only this many items, the most frequent first.
    weights : str or None
        The column with the weights of the samples, or the path of a table with two columns,
        sample and weight.
    fixed : tuple of triples or None
        Interactions (from, to, value) that are not learned; see `SetChain`.
    orders : str or None
        The path of a table of what is known about orders; see `sequela.data.read_orders`.
    missing : {"keep", "absent", "refuse"} or None
        What cells without a value mean; see `sequela.read_table`.
    solver : {"auto", "newton", "adagrad"}
        See `SetChain`.
    max_iter : int
        Largest number of iterations of a start.
    tol : float
        KKT residual at which a start has converged.
    seed : int or None
        None takes the seed of the checkpoint, if there is one, or a new seed; the report and
        ``run.json`` have the one that was used.

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

    def to_json(self) -> dict[str, Any]:
        """Return the options as plain values that JSON can hold."""
        options = asdict(self)
        if self.fixed is not None:
            options["fixed"] = [list(entry) for entry in self.fixed]
        return options

    @classmethod
    def from_json(cls, options: Mapping[str, Any]) -> FitRunOptions:
        """Return the options that `to_json` or an older version wrote.

        Older versions had one start and no check; others that are missing are the defaults.

        Examples
        --------
        >>> FitRunOptions.from_json({"penalty": 0.02}).starts
        1
        """
        if not isinstance(options, Mapping):
            raise InputError(f"the options of the run are {options!r:.80}; expected names of them")
        known = {part.name for part in fields(cls)}
        unknown = [name for name in options if name not in known]
        if unknown:
            raise InputError(
                f"the run has the option {unknown[0]!r}, which this version of sequela does not "
                "know; repeat the run with the version that run.json names"
            )
        place = Place("run.json", "Restore it from a copy, or make the run again", "options")
        return read_fields(cls, {"starts": 1, "check": False, **options}, place)


@dataclass(frozen=True)
class OutputOptions:
    """What a folder gets beside the model and the tables.

    Attributes
    ----------
    figures : tuple of str
        Formats of the figures: "png", "svg", "pdf". Empty for no figures.
    force : bool
        Replace a folder that an earlier run made.
    table_seconds : float
        Predicted processor time, in seconds, that the pseudo-times, and the arrival times of the
        timeline, may take. Where exact answers would take longer, or more than 400 MB per thread,
        the most expensive samples are sampled, and a notice says so.

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
                f"table_seconds is {self.table_seconds!r}; expected a positive number of seconds"
            )
        wrong = [name for name in self.figures if name not in _FORMATS]
        if wrong:
            raise InputError(
                f"{wrong[0]!r} is not a figure format; expected png, svg or pdf, or none"
            )

    def check_figures(self) -> None:
        """Refuse figures where there is no matplotlib: before the work, not after it."""
        if not self.figures:
            return
        try:
            import matplotlib  # noqa: F401, ICN001
        except ImportError:
            raise InputError(
                "figures need matplotlib: `pip install sequela[plot]`, or choose no figures "
                "(--figures none, or figures=())"
            ) from None


@dataclass(frozen=True)
class Execution:
    """How a fit is carried out; no number depends on it.

    Attributes
    ----------
    threads : int or None
        None uses all cores that this process may use.
    checkpoint : path or None
        File to save the fit to as it goes on, and to resume from if it exists.
    progress : bool, "lines" or None
        As in `SetChain`: a bar, plain lines, or (None) a bar where somebody watches.
    announce : callable or None
        Called with the name of each part before it is made, such as "orders".

    Examples
    --------
    >>> Execution(threads=2).checkpoint is None
    True
    """

    threads: int | None = None
    checkpoint: str | os.PathLike[str] | None = None
    progress: bool | str | None = None
    announce: Callable[[str], None] | None = None
