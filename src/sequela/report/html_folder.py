"""Make the report of a folder: all results of a run as one page."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequela.model import Model
from sequela.posteriors.result import Posterior
from sequela.report.fit_options import Execution
from sequela.report.html import REPORT_NAME, Report
from sequela.report.html_cohorts import ComparedCohort
from sequela.report.html_content import posterior_content
from sequela.report.html_payload import ReportContent, build_payload
from sequela.report.html_verdicts import find_verdicts
from sequela.report.reading import read_as_recorded
from sequela.report.run import MODEL_NAME, POSTERIOR_NAME, RUN_NAME, Run, is_file
from sequela.support.errors import InputError
from sequela.support.progress import lines_in_log
from sequela.support.spreadsheets import unguarded

if TYPE_CHECKING:
    import os

    import pandas as pd

    from sequela.data.dataset import Dataset

__all__ = [
    "ReportExtras",
    "read_run_data",
    "read_run_table",
    "report_on_folder",
    "write_report",
]

_log = logging.getLogger("sequela")

# The columns that each table of a run must have.
_LABELS = {
    "orders.csv": ("first", "second"),
    "rivals.csv": ("first", "second"),
    "order_ranges.csv": ("first", "second", "probability", "low", "high", "verdict", "checked"),
    "interactions.csv": ("from", "to"),
    "pseudo_times.csv": ("sample",),
}
# The columns that contain text, and the columns that contain numbers, in all tables.
_TEXT = {"first", "second", "from", "to", "sample", "baseline", "verdict"}
_NUMBERS = {
    "probability", "se", "observed", "low", "high", "evidence", "effect", "sign_probability",
    "mean", "sd", "median", "lower", "upper", "rival_probability",
}  # fmt: skip


@dataclass(frozen=True)
class ReportExtras:
    """Optional content of a report that is not in the folder of the run.

    Attributes
    ----------
    clinical : DataFrame or None
        Survival times, from `read_clinical`.
    compare : path or None
        The folder of another run, whose orders are shown next to the orders of this run.
    """

    clinical: pd.DataFrame | None = None
    compare: str | os.PathLike[str] | None = None


def write_report(
    folder: str | os.PathLike[str],
    data: Dataset | None = None,
    *,
    name: str | os.PathLike[str] | None = None,
    execution: Execution | None = None,
    extras: ReportExtras | None = None,
) -> Path:
    """Write ``report.html`` into the folder of a run, and return its path.

    Parameters
    ----------
    folder : path
        A folder that ``sequela fit`` or ``sequela posterior`` made, with the model or the draws,
        tables, ``run.json`` and, optionally, ``rivals.csv``.
    data : Dataset or None
        The samples; None reads them from the path in ``run.json``.
    name : path or None
        The final name of the folder, for the title, if the folder still has a temporary name.
    execution : Execution or None
        Number of threads, and the function that announces each part.
    extras : ReportExtras or None
        Survival times, and another cohort to compare with.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sequela.data.examples import example_path
    >>> from sequela.report import FitRunOptions, OutputOptions, run_fit
    >>> options = FitRunOptions(penalty=0.05, most_frequent=3, seed=1)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = pathlib.Path(place, "fit")
    ...     plain = OutputOptions(figures=())
    ...     _ = run_fit(example_path("samples.csv"), folder, options, output=plain)
    ...     write_report(folder).name
    'report.html'
    """
    target = Path(folder) / REPORT_NAME
    made = report_on_folder(folder, data, name=name, execution=execution, extras=extras)
    made.save(target)
    return target


def report_on_folder(
    folder: str | os.PathLike[str],
    data: Dataset | None = None,
    *,
    name: str | os.PathLike[str] | None = None,
    execution: Execution | None = None,
    extras: ReportExtras | None = None,
) -> Report:
    """Return the report of the folder of a run; see `write_report`."""
    place = Path(folder)
    found = _load(place)
    run = Run.read(place) if (place / RUN_NAME).exists() else None
    if data is None and run is not None:
        data = read_run_data(run, place)
    shown = Path(folder if name is None else name).absolute().name
    seed = 0 if run is None else int(run.options.get("seed") or 0)
    how = execution or Execution()
    more = extras or ReportExtras()
    with lines_in_log(show=how.progress == "lines"):
        if isinstance(found, Posterior):
            if how.announce is not None and data is not None:
                how.announce("report: times of the samples, averaged over draws")
            content = posterior_content(found, data, shown, seed=found.seed, threads=how.threads)
        else:
            content = _fit_content(found, place, data, shown, run)
        content = replace(
            content,
            run=run,
            verdicts=replace(content.verdicts, fits=_fits(run)),
            clinical=more.clinical,
            comparison=_comparison(more, shown),
        )
        payload = build_payload(content, seed=seed, threads=how.threads, announce=how.announce)
    return Report(payload)


def _load(place: Path) -> Model | Posterior:
    """Return the model or the posterior of a folder."""
    if (place / MODEL_NAME).exists():
        return Model.load(place / MODEL_NAME)
    if (place / POSTERIOR_NAME).exists():
        found = Posterior.load(place / POSTERIOR_NAME)
        found.require_draws()
        return found
    raise InputError(
        f"{str(place)!r} contains neither {MODEL_NAME} nor {POSTERIOR_NAME}; give a folder that "
        "`sequela fit` or `sequela posterior` made"
    )


def _comparison(extras: ReportExtras, shown: str) -> ComparedCohort | None:
    if extras.compare is None:
        return None
    place = Path(extras.compare)
    return ComparedCohort(_load(place), place.absolute().name, shown)


def _fit_content(
    model: Model, place: Path, data: Dataset | None, shown: str, run: Run | None
) -> ReportContent:
    """Return the content of a report from the tables of a fit."""
    source = "samples.csv" if run is None else Path(run.data["path"]).name
    verdicts = find_verdicts(
        read_run_table(place, "orders.csv"),
        read_run_table(place, "rivals.csv"),
        shown,
        source,
        read_run_table(place, "order_ranges.csv"),
    )
    return ReportContent(
        model=model,
        data=data,
        title=shown,
        verdicts=verdicts,
        certainty=_certainty(read_run_table(place, "interactions.csv")),
        pseudo_times=read_run_table(place, "pseudo_times.csv"),
    )


def _fits(run: Run | None) -> bool:
    """Return whether the model describes the data, according to the record of the run."""
    check = None if run is None else run.result.get("fit_check")
    return not (isinstance(check, dict) and check.get("findings"))


def read_run_data(run: Run, place: Path) -> Dataset | None:
    """Read the samples of a run.

    If a file was moved, log a warning and return None. If a file was changed, raise an error.
    """
    path = Path(run.data["path"])
    path = path if path.is_absolute() else place / path
    gone = [file for file in (str(path), *run.other_files()) if not is_file(Path(file))]
    if gone:
        _log.warning("there is no file %r; the samples of the run are not used", gone[0])
        return None
    run.check_data(path)
    run.check_other_files()
    return read_as_recorded(path, run.options).data


def read_run_table(place: Path, name: str) -> pd.DataFrame | None:
    """Return a table that a run wrote; None if the folder has no such table."""
    import pandas as pd

    path = place / name
    if not path.exists():
        return None
    try:
        frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    except (ValueError, OSError) as error:
        raise InputError(f"{str(path)!r} cannot be read as a table ({error})") from None
    lacking = [column for column in _LABELS.get(name, ()) if column not in frame.columns]
    if lacking or frame.columns.duplicated().any():
        what = f"no column {lacking[0]!r}" if lacking else "the same column twice"
        raise InputError(f"{str(path)!r} has {what}; make the run again, or delete the file")
    for column in frame.columns:
        if column in _TEXT:
            frame[column] = [unguarded(str(label)) for label in frame[column]]
        elif column in _NUMBERS:
            _refuse_text(frame[column], path)
    return frame


def _refuse_text(column: pd.Series[Any], path: Path) -> None:
    """Raise an error if a column of numbers contains anything else."""
    import pandas as pd

    wrong = pd.to_numeric(column, errors="coerce").isna() & column.notna()
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        raise InputError(
            f"{str(path)!r}, row {row + 1}, column {column.name!r}: found "
            f"{column.iloc[row]!r:.60}, expected a number. Make the run again, or delete the file"
        )


def _certainty(interactions: pd.DataFrame | None) -> pd.DataFrame | None:
    """Return the columns of the interactions that describe certainty; None if there are none."""
    if interactions is None:
        return None
    known = [c for c in ("sign_probability", "low", "high") if c in interactions.columns]
    return interactions[["from", "to", *known]] if known else None
