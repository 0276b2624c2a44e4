"""Fit a table and write a folder, and repeat a fit from its ``run.json``."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequela.budget import Budget
from sequela.learning.effects_learner import EffectsLearner
from sequela.learning.forecast import fit_seconds
from sequela.learning.learner import Learner
from sequela.learning.observations import FAMILIES, compare_observations
from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.plan import Plan
from sequela.observation import parse_observation
from sequela.report.effects_run import (
    EFFECTS,
    check_observation,
    name_of_observation,
    usable_family,
)
from sequela.report.fit_checks import run_checks, was_interrupted
from sequela.report.fit_folder import write_fit
from sequela.report.fit_options import Execution, FitRunOptions, OutputOptions
from sequela.report.html_folder import write_report
from sequela.report.reading import read_as_recorded
from sequela.report.run import MODEL_NAME, Run, checksum, is_file
from sequela.report.tables import records, write_table
from sequela.support.errors import InputError, SequelaError
from sequela.support.folders import check_folder, new_folder
from sequela.support.naming import either
from sequela.support.random import materialise_seed

if TYPE_CHECKING:
    import os

    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.data.importing import ImportSummary
    from sequela.learning.fit_check import FitCheck
    from sequela.learning.observations import ObservationComparison
    from sequela.model import Model
    from sequela.questions.effects_check import EffectsCheck
    from sequela.questions.order_ranges import OrderRanges

__all__ = ["FitReport", "FitResult", "repeat_run", "run_fit", "was_interrupted"]

_COMMAND = "fit"
_STRONGEST = 8
# Numbers of starts, each with the largest predicted CPU time (seconds) at which it is the default.
_STARTS = ((5, 50.0), (3, 100.0))


@dataclass(frozen=True)
class FitResult:
    """The numbers of a fit, which must be the same if the fit is repeated.

    Attributes
    ----------
    objective, objective_se : float
        Penalised mean log-likelihood, and its Monte Carlo standard error (0 if it is exact).
    kkt_residual, kkt_floor : float
        The KKT residual (distance from an optimum), and its Monte Carlo error (0 if it is exact).
    converged : bool
        Whether the best start ended at an optimum.
    interactions, optima : int
        Number of interactions of the model, and number of different optima at which starts ended.
    penalty : float
        The given penalty, or the one chosen by cross-validation.
    theta_sha256 : str
        Checksum of all bits of theta.
    """

    objective: float
    objective_se: float
    kkt_residual: float
    kkt_floor: float
    converged: bool
    interactions: int
    optima: int
    penalty: float
    theta_sha256: str

    @classmethod
    def of(cls, learner: Learner) -> FitResult:
        """Return the numbers of a fitted learner."""
        return cls(
            objective=learner.objective_,
            objective_se=learner.objective_se_,
            kkt_residual=learner.kkt_residual_,
            kkt_floor=learner.kkt_floor_,
            converged=bool(learner.converged_),
            interactions=len(learner.model_.interactions()),
            optima=len(learner.optima_),
            penalty=learner.model_.metadata["penalty"],
            theta_sha256=_digest(learner.theta_),
        )


@dataclass(frozen=True)
class FitReport:
    """The results of a fit and the files that it wrote.

    Attributes
    ----------
    folder : Path
        The output folder.
    files : tuple of str
        The files in the folder.
    options : FitRunOptions
        The options of the fit, with the seed that was used.
    learner : Learner
        The fitted learner.
    result : FitResult
        The numbers of the fit.
    import_summary : ImportSummary
        How the table was read.
    order_ranges : OrderRanges or None
        Which orders the data allow; None if they were not checked.
    fit_check : FitCheck or None
        Whether the model describes the data; None if the fit was interrupted.
    observations : ObservationComparison or None
        The comparison of observation times, if the shape was chosen from the data.
    effects_check : EffectsCheck or None
        Which orders would be opposite if items influenced the observation; None if this was not
        checked (`FitRunOptions.check_effects`).
    notices : tuple of str
        The warnings of the fit, each once; they are not raised as Python warnings.
    same_as_repeated : bool or None
        If the fit repeats an earlier run: whether theta has the same bits as in that run.
    """

    folder: Path
    files: tuple[str, ...]
    options: FitRunOptions
    learner: Learner = field(repr=False, compare=False)
    result: FitResult
    import_summary: ImportSummary = field(repr=False)
    order_ranges: OrderRanges | None = field(default=None, repr=False, compare=False)
    fit_check: FitCheck | None = field(default=None, repr=False, compare=False)
    observations: ObservationComparison | None = field(default=None, repr=False, compare=False)
    effects_check: EffectsCheck | None = field(default=None, repr=False, compare=False)
    notices: tuple[str, ...] = ()
    same_as_repeated: bool | None = None

    @property
    def model(self) -> Model:
        """The model that was learned."""
        model: Model = self.learner.model_
        return model

    @property
    def strongest(self) -> pd.DataFrame:
        """The strongest interactions of the model, as `Model.interactions` lists them."""
        return self.model.interactions().head(_STRONGEST)

    @property
    def interrupted(self) -> bool:
        """Whether a signal stopped the fit, or the check of its orders, early."""
        check = self.order_ranges
        return was_interrupted(self.learner) or (check is not None and check.interrupted)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return {
            "folder": str(self.folder),
            "files": list(self.files),
            "samples": self.import_summary.samples_kept,
            "items": self.import_summary.items_kept,
            **asdict(self.result),
            "seed": self.options.seed,
            "strongest": [
                {"from": row["from"], "to": row["to"], "effect": float(row["effect"])}
                for _, row in self.strongest.iterrows()
            ],
            "order_ranges": (
                None if self.order_ranges is None else records(self.order_ranges.table)
            ),
            "fit_check": None if self.fit_check is None else self.fit_check.to_json(),
            "observations": None if self.observations is None else self.observations.to_json(),
            "effects_check": None if self.effects_check is None else self.effects_check.to_json(),
            "notices": list(self.notices),
            "interrupted": self.interrupted,
            "same_as_repeated": self.same_as_repeated,
            "import_summary": self.import_summary.to_dict(),
        }


def run_fit(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    options: FitRunOptions | None = None,
    *,
    output: OutputOptions | None = None,
    execution: Execution | None = None,
) -> FitReport:
    """Read a table, learn a model from it, and write all results to one folder.

    This is what ``sequela fit`` does. The folder contains the model, tables of interactions,
    orders, pseudo-times and frequencies, figures, a ``report.html`` that shows all of these, and a
    ``run.json`` from which `repeat_run` repeats the fit. By default, the fit also checks which
    orders the data allow (`questions.order_ranges`). During the run, the folder is called
    FOLDER.incomplete. The model is written first. So if a later file cannot be written, or the
    process is killed, the model is in that folder.

    Parameters
    ----------
    source : path
        A table of samples and items; see `read_table`.
    folder : path
        The folder to make.
    options : FitRunOptions or None
        The options that the numbers depend on; None means the defaults.
    output : OutputOptions or None
        Figures, and whether an earlier folder is replaced.
    execution : Execution or None
        Threads, checkpoint and progress.

    Returns
    -------
    FitReport
        The learner, its numbers, and a summary of how the table was read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sequela.data.examples import example_path
    >>> options = FitRunOptions(penalty=0.05, most_frequent=3, seed=1)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = pathlib.Path(place, "fit")
    ...     report = run_fit(
    ...         example_path("samples.csv"), folder, options, output=OutputOptions(figures=())
    ...     )
    ...     print(report.model, (folder / "model.npz").exists())
    <Model: 3 items, 0 interactions> True
    """
    options = (options or FitRunOptions()).with_absolute_paths()
    output = output or OutputOptions()
    execution = execution or Execution()
    check_observation(options, execution)
    table = Path(source)
    force = output.force or _is_resumed(folder, table, options, execution)
    check_folder(folder, force=force)
    output.check_figures()
    found = read_as_recorded(table, options.to_json(), to_learn=True)
    compared, options = _choose_observation(found.data, options, execution)
    if options.starts is None:
        options = replace(options, starts=_default_starts(found.data, options))
    learner, notices = _learn(found.data, options, execution)
    options = replace(options, seed=learner.seed_)
    checks = run_checks(learner, found.data, options, execution, compared)
    notices = tuple(dict.fromkeys(notices + checks.notices))
    result = FitResult.of(learner)
    run = Run(
        command=_COMMAND,
        options=options.to_json(),
        data={
            "path": str(table.absolute()),
            "sha256": found.summary.files[0].sha256,
            "samples": found.data.n_samples,
            "items": found.data.n_items,
            "import_summary": found.summary.to_dict(),
        },
        result=asdict(result)
        | checks.to_json()
        | ({} if compared is None else {"observations": compared.to_json()}),
    )
    with new_folder(folder, force=force, keep_with=MODEL_NAME) as made:
        run.write(made)
        more = write_fit(
            made, learner, found.data, figures=output.figures,
            table_seconds=output.table_seconds, execution=execution, check=checks.ranges,
        )  # fmt: skip
        if checks.effects is not None:
            write_table(checks.effects.table, made / "orders_with_effects.csv", index=False)
        try:
            write_report(made, found.data, name=folder, execution=execution)
        except SequelaError as error:  # without the page, there are still the model and the tables
            more += (f"report.html was not written: {error}",)
        made_files = (p for p in made.rglob("*") if p.is_file() and not p.name.startswith("."))
        files = sorted(str(p.relative_to(made)) for p in made_files)
    return FitReport(
        folder=Path(folder),
        files=tuple(files),
        options=options,
        learner=learner,
        result=result,
        import_summary=found.summary,
        order_ranges=checks.ranges,
        fit_check=checks.misfit,
        observations=compared,
        effects_check=checks.effects,
        notices=notices + more,
    )


def repeat_run(
    run: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    source: str | os.PathLike[str] | None = None,
    *,
    output: OutputOptions | None = None,
    execution: Execution | None = None,
) -> FitReport:
    """Repeat the fit of a ``run.json`` on the same data, and check that theta has the same bits.

    Parameters
    ----------
    run : path
        A ``run.json``, or the folder with it.
    folder : path
        The folder to make.
    source : path or None
        The table, if it was moved since the run. Its checksum must be the same.
    output, execution : OutputOptions or None, Execution or None
        As in `run_fit`.

    Returns
    -------
    FitReport
        The report of the new fit; its `same_as_repeated` says whether theta has the same bits.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sequela.data.examples import example_path
    >>> plain = OutputOptions(figures=())
    >>> with tempfile.TemporaryDirectory() as place:
    ...     first, again = pathlib.Path(place, "first"), pathlib.Path(place, "again")
    ...     _ = run_fit(
    ...         example_path("samples.csv"), first, FitRunOptions(most_frequent=3), output=plain
    ...     )
    ...     repeat_run(first, again, output=plain).same_as_repeated
    True
    """
    before = Run.read(run)
    if before.command != _COMMAND:
        raise InputError(f"{str(run)!r} is the run of `sequela {before.command}`, not of a fit")
    table = _find_source(before, Path(run)) if source is None else Path(source)
    if not is_file(table):
        raise InputError(
            f"there is no file {str(table)!r:.200}; give the data of the run as "
            f"{either('source=', 'DATA')}"
        )
    before.check_data(table)
    options = FitRunOptions.from_json(before.options)
    report = run_fit(table, folder, options, output=output, execution=execution)
    same = before.result.get("theta_sha256") == report.result.theta_sha256
    return replace(report, same_as_repeated=same)


def _is_resumed(
    folder: str | os.PathLike[str], table: Path, options: FitRunOptions, execution: Execution
) -> bool:
    """Tell whether the folder is from a stopped run of the same fit, which now continues.

    Such a run continues from its checkpoint, so it may replace the folder.
    """
    checkpoint = execution.checkpoint
    if checkpoint is None or not is_file(checkpoint) or not is_file(table):
        return False
    try:
        before = Run.read(folder)
    except InputError:
        return False
    mine = options.to_json()
    same = all(mine[name] in (None, before.options.get(name)) for name in mine)
    return before.command == _COMMAND and same and before.data["sha256"] == checksum(table)


def _default_starts(data: Dataset, options: FitRunOptions) -> int:
    """Return 5, 3 or 1, depending on a predicted time that is the same on all machines."""
    if options.solver == "adagrad" or options.observation in EFFECTS:
        return 1
    plan = Plan(data, DistinctSamples.of(data, partial=True), "auto", Budget())
    return next((starts for starts, most in _STARTS if fit_seconds(plan, starts) <= most), 1)


def _choose_observation(
    data: Dataset, options: FitRunOptions, execution: Execution
) -> tuple[ObservationComparison | None, FitRunOptions]:
    """Choose the observation times by the data, if the options do not determine their shape.

    Return the comparison on which the choice is based (None if nothing was chosen), and the options
    with the chosen observation.
    """
    if options.observation not in FAMILIES or options.observation == "exponential":
        return None, options
    if execution.announce is not None:
        execution.announce("which observation times the data prefer")
    seed = materialise_seed(options.seed)
    kinds = usable_family(options, execution, timed=data.times is not None)
    compared = compare_observations(
        data, kinds, penalty=options.penalty, random_state=seed, n_threads=execution.threads
    )
    name = name_of_observation(compared.observation)
    asked = name not in EFFECTS and (options.check_effects or compared.effects_behind is not None)
    return compared, replace(options, observation=name, seed=seed, check_effects=asked)


def _learn(
    data: Dataset, options: FitRunOptions, execution: Execution
) -> tuple[Learner, tuple[str, ...]]:
    """Return the fitted learner and the texts of its warnings."""
    shared: dict[str, Any] = {
        "max_iter": options.max_iter,
        "tol": options.tol,
        "random_state": options.seed,
        "n_threads": execution.threads,
    }
    if options.observation in EFFECTS:
        learner: Learner = EffectsLearner(
            options.penalty, penalty_kind=EFFECTS[options.observation], **shared
        )
    else:
        shared |= {
            "n_starts": options.starts,
            "solver": options.solver,
            "observation": parse_observation(options.observation or "exponential"),
            "fixed": options.fixed,
            "checkpoint": execution.checkpoint,
            "progress": execution.progress,
        }
        # Use `Learner`, because `SetChain` imports scikit-learn, which takes longer than a small
        # fit.
        learner = _cross_validated(shared) if options.cv else Learner(options.penalty, **shared)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.fit(data)
    return learner, tuple(dict.fromkeys(str(w.message) for w in caught))


def _cross_validated(options: dict[str, Any]) -> Learner:
    from sequela.learning.cross_validation import SetChainCV

    return SetChainCV(**options)


def _find_source(run: Run, place: Path) -> Path:
    """Return the path of the data of a run; a relative path is relative to its run.json."""
    path = Path(run.data["path"])
    return path if path.is_absolute() else (place if place.is_dir() else place.parent) / path


def _digest(theta: NDArray[np.float64]) -> str:
    return hashlib.sha256(theta.astype("<f8").tobytes()).hexdigest()
