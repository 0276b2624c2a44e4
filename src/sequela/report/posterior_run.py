"""The folder of ``sequela posterior``: draws, tables, ``report.html`` and ``run.json``.

The file of the draws is also the checkpoint. It is written every half minute, so that a run that
was stopped can continue from it.
"""

from __future__ import annotations

import logging
import math
import warnings
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequela.posteriors.priors import as_prior, prior_to_json, read_prior
from sequela.posteriors.result import Posterior
from sequela.posteriors.sampling import NotConvergedWarning, posterior
from sequela.posteriors.walkers import Plan
from sequela.questions.fit_check import check_fit
from sequela.questions.verdict import Verdict
from sequela.report.fit_options import Execution
from sequela.report.html import REPORT_NAME
from sequela.report.html_folder import write_report
from sequela.report.html_verdicts import SUGGESTED
from sequela.report.reading import read_samples, read_to_learn
from sequela.report.run import POSTERIOR_NAME, RUN_NAME, Run, checksum
from sequela.report.tables import records, write_table
from sequela.support.errors import InputError
from sequela.support.folders import check_folder
from sequela.support.naming import argument, option
from sequela.support.random import materialise_seed

if TYPE_CHECKING:
    import os

    import pandas as pd

    from sequela.data.dataset import Dataset
    from sequela.data.importing import Imported
    from sequela.learning.fit_check import FitCheck
    from sequela.posteriors.priors import Prior

__all__ = ["POSTERIOR_NAME", "PosteriorReport", "PosteriorRunOptions", "run_posterior"]

_log = logging.getLogger("sequela")
_TABLES = ("orders.csv", "interactions.csv")
# The options that are recorded in the run.json of an unfinished run.
_RECORDED = {
    "prior", "most_frequent", "drop", "orders", "draws", "most_draws", "chains", "replicas",
    "warm_up", "thin", "jumps", "largest_lattice", "random_state",
}  # fmt: skip


@dataclass(frozen=True)
class PosteriorRunOptions:
    """The options that the draws depend on.

    Attributes
    ----------
    prior : Prior or None
        The prior of theta. None means the default prior.
    most_frequent : int or None
        Keep at most this many items, the most frequent first.
    drop : tuple of str
        Columns of the table that are not items.
    settings : dict
        Keywords of `sequela.posterior`: draws, chains, replicas, random_state, ...
    orders : str or None
        The path of a table of known orders; see `sequela.data.read_orders`.
    """

    prior: Prior | str | None = None
    most_frequent: int | None = None
    drop: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    orders: str | None = None


@dataclass(frozen=True)
class PosteriorReport:
    """The result of `run_posterior`.

    Attributes
    ----------
    posterior : Posterior
        The draws.
    folder : Path
        The output folder.
    fit_check : FitCheck or None
        Whether the models of the posterior describe the data; None if the run was stopped early.
    """

    posterior: Posterior
    folder: Path
    fit_check: FitCheck | None = None

    def orders(self) -> pd.DataFrame:
        """Return `Posterior.orders`, with the verdicts that the check of the fit allows."""
        return _trusted_orders(self.posterior, self.fit_check)

    def to_json(self) -> dict[str, Any]:
        """Return the main numbers as plain values."""
        found = self.posterior
        chains, draws = found.draws.scale.shape
        return {
            "folder": str(self.folder),
            "seed": found.seed,
            "prior": prior_to_json(found.prior),
            "scale": _finite(found.scale()) if draws else None,
            "chains": chains,
            "draws": draws,
            "convergence": _finite(asdict(found.convergence)),
            "orders": records(self.orders()) if draws else [],
            "fit_check": None if self.fit_check is None else self.fit_check.to_json(),
        }


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """Replace infinity and NaN by None, because JSON cannot represent them; return the values.

    With few draws, R-hat and standard deviations are not finite.
    """
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def run_posterior(
    data: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    options: PosteriorRunOptions | None = None,
    *,
    proceed: bool = False,
    force: bool = False,
    execution: Execution | None = None,
) -> PosteriorReport:
    """Sample the posterior of theta for a table, and write all results to a folder.

    Parameters
    ----------
    data : path
        The table of samples.
    folder : path
        The folder to make.
    options : PosteriorRunOptions or None
        Prior, number of items and settings of the sampler.
    proceed : bool
        Continue the run in the folder. If the run was stopped, finish it. If it had ended, add the
        number of draws that the options request.
    force : bool
        Replace the folder of an earlier run.
    execution : Execution or None
        Number of threads for the report, and the function that announces each part. The number of
        threads for the draws is in `options`.

    Returns
    -------
    PosteriorReport
        The draws and the path of the folder.
    """
    chosen = options or PosteriorRunOptions()
    target = Path(folder)
    place = target / POSTERIOR_NAME
    before = Run.read(target) if proceed and (target / RUN_NAME).exists() else None
    if before is not None and not place.exists():
        # The earlier run was stopped before it saved any draws.
        proceed, chosen = False, _recorded_options(before, target, chosen)
    elif proceed:
        if not place.exists():
            raise InputError(
                f"there is no {POSTERIOR_NAME!r} in {str(target)!r}; expected the folder of an "
                "earlier `sequela posterior`"
            )
        if before is not None:
            chosen = _same_columns(before, chosen)
    else:
        check_folder(target, force=force)
    if chosen.orders is not None:
        chosen = replace(chosen, orders=str(Path(chosen.orders).absolute()))
    read = read_samples if proceed else read_to_learn
    imported = read(
        data, most_frequent=chosen.most_frequent, drop=chosen.drop, orders=chosen.orders
    )
    about = _described(imported, data)
    with warnings.catch_warnings():
        # The text of the warning is part of the result and is shown with it.
        warnings.simplefilter("ignore", NotConvergedWarning)
        if proceed:
            found, begun = _proceed(imported.data, target, chosen, before, about)
        else:
            found, begun = _begin(imported.data, target, chosen, about)
    if not found.n_draws:  # a signal stopped the run during its warm-up
        return PosteriorReport(found, target)
    # A run that was stopped by a signal must end soon. So its fit is checked only when a later
    # command continues it to its end.
    check = None if found.interrupted else _check_fit(found, imported.data, execution)
    _write_tables(found, check, target)
    if found.interrupted:
        # Keep the options with which the run began: they determine the number of draws at which a
        # continued run ends.
        replace(begun, result={"interrupted": True}).write(target)
    else:
        _run(found, chosen, about, check).write(target)
    # The report is written last. If it is missing, the run was stopped (see `_is_finished`).
    write_report(target, imported.data, execution=execution)
    return PosteriorReport(found, target, check)


def _check_fit(found: Posterior, data: Dataset, execution: Execution | None) -> FitCheck:
    """Test whether the models of the posterior describe the data, as a fit does."""
    how = execution or Execution()
    if how.announce is not None:
        how.announce("whether the models describe the data")
    return check_fit(found, data, random_state=found.seed, n_threads=how.threads)


def _trusted_orders(found: Posterior, check: FitCheck | None) -> pd.DataFrame:
    """Return the orders. If the models do not describe the data, no order is trusted."""
    table = found.orders()
    if check is None or check.fits:
        return table
    told = table["verdict"].isin([Verdict.CAN_TELL.value, SUGGESTED])
    return table.assign(verdict=table["verdict"].where(~told, Verdict.NOT_TRUSTED.value))


def _same_columns(before: Run, options: PosteriorRunOptions) -> PosteriorRunOptions:
    """Return the options; where they do not say how data are read, use those of the earlier run."""
    most = options.most_frequent
    return replace(
        options,
        most_frequent=before.options.get("most_frequent") if most is None else most,
        drop=options.drop or tuple(before.options.get("drop", ())),
        orders=before.options.get("orders") if options.orders is None else options.orders,
    )


def _is_finished(run: Run | None, folder: Path) -> bool:
    """Return whether a run is complete, with all files written; True if there is no record."""
    if run is None:
        return True
    ended = bool(run.result) and not run.result.get("interrupted", False)
    return ended and (folder / REPORT_NAME).exists()


def _recorded_options(run: Run, folder: Path, options: PosteriorRunOptions) -> PosteriorRunOptions:
    """Return the options with which a run was started, except the number of threads."""
    if run.command != "posterior" or run.result:
        raise InputError(
            f"{str(folder)!r} is the folder of a finished `sequela {run.command}` without "
            f"{POSTERIOR_NAME!r}; expected the folder of a `sequela posterior` that was "
            "stopped"
        )
    stored = dict(run.options)
    unknown = sorted(set(stored) - _RECORDED)
    if unknown or not isinstance(stored.get("prior", {}), dict):
        what = f"the option {unknown[0]!r:.60}" if unknown else "a prior that is not a JSON object"
        raise InputError(
            f"the {RUN_NAME} in {str(folder)!r} has {what}, which `sequela posterior` does not "
            f"write. Restore it from a copy, or start a new run with {option('force', True)}"
        )
    prior = read_prior(stored.pop("prior", {}))
    most_frequent = stored.pop("most_frequent", None)
    drop = tuple(stored.pop("drop", ()))
    threads = {k: v for k, v in options.settings.items() if k == "n_threads"}
    orders = stored.pop("orders", None)
    return PosteriorRunOptions(prior, most_frequent, drop, {**stored, **threads}, orders)


def _begin(
    data: Dataset, folder: Path, options: PosteriorRunOptions, about: dict[str, Any]
) -> tuple[Posterior, Run]:
    """Make the folder and start to sample. The files of an earlier run are removed."""
    as_prior(options.prior)  # if the prior is invalid, raise the error before writing any file
    seed = materialise_seed(options.settings.get("random_state"))
    options = replace(options, settings={**options.settings, "random_state": seed})
    begun = Run("posterior", _plain_options(options), about)
    folder.mkdir(exist_ok=True)
    for name in (POSTERIOR_NAME, REPORT_NAME, *_TABLES):
        (folder / name).unlink(missing_ok=True)
    begun.write(folder)
    place = folder / POSTERIOR_NAME
    return posterior(data, prior=options.prior, checkpoint=place, **options.settings), begun


def _proceed(
    data: Dataset,
    folder: Path,
    options: PosteriorRunOptions,
    before: Run | None,
    about: dict[str, Any],
) -> tuple[Posterior, Run]:
    """Finish a run that was stopped, or add draws to a finished run."""
    place = folder / POSTERIOR_NAME
    earlier = Posterior.load(place)
    stored = earlier.chain_states[0]
    plan = stored["plan"]
    others = sorted(set(options.settings) - {"draws", "most_draws", "n_threads"})
    if others or options.prior is not None:
        name = others[0] if others else "prior"
        raise InputError(
            f"{argument(name)} cannot be changed when an earlier run is continued; do not give it"
        )
    drawn = stored["done"] - plan["warm_up"]
    if before is None or _is_finished(before, folder):
        name, more = _more_draws(plan, drawn, options.settings)
    else:
        name, total = _planned_draws(before)
        more = total - drawn
    kept = ("chains", "replicas", "warm_up", "thin", "jumps")
    begun = Run(
        "posterior",
        {
            "prior": prior_to_json(earlier.prior),
            "most_frequent": options.most_frequent,
            "drop": list(options.drop),
            "orders": options.orders,
            **{key: plan[key] for key in kept},
            name: drawn + more,
            "random_state": earlier.seed,
        },
        about,
    )
    begun.write(folder)
    (folder / REPORT_NAME).unlink(missing_ok=True)
    if more <= 0:
        return earlier, begun  # all draws exist: the run was stopped while it wrote its tables
    threads = {k: v for k, v in options.settings.items() if k == "n_threads"}
    settings = {name: more, **threads}
    return posterior(data, continue_from=earlier, checkpoint=place, **settings), begun


def _planned_draws(run: Run) -> tuple[str, int]:
    """Return the name and the value of the option that says when a stopped run is complete.

    The name is "draws" or "most_draws".
    """
    draws = run.options.get("draws")
    if draws is not None:
        return "draws", draws
    return "most_draws", run.options.get("most_draws") or Plan.draws


def _more_draws(plan: dict[str, Any], drawn: int, settings: dict[str, Any]) -> tuple[str, int]:
    """Return the name and the value of the option that adds draws to a finished run.

    The name is "draws" or "most_draws".
    """
    if not plan["until_converged"] and drawn < plan["draws"]:
        # Earlier versions of sequela recorded a run as finished even if a signal had stopped it.
        return "draws", plan["draws"] - drawn
    for name in ("draws", "most_draws"):
        if settings.get(name) is not None:
            return name, settings[name]
    # The options do not ask for more draws. This happens, for example, if a command was killed
    # after its last draw and is run again.
    _log.warning(
        "the run already has all its %d draws per chain; to draw more, use %s or %s",
        drawn, argument("draws"), argument("most_draws"),
    )  # fmt: skip
    return "draws", 0


def _plain_options(options: PosteriorRunOptions) -> dict[str, Any]:
    return {
        "prior": prior_to_json(as_prior(options.prior)),
        "most_frequent": options.most_frequent,
        "drop": list(options.drop),
        "orders": options.orders,
        **{k: v for k, v in options.settings.items() if k != "n_threads"},
    }


def _described(imported: Imported, data: str | os.PathLike[str]) -> dict[str, Any]:
    return {
        "path": str(Path(data).absolute()),
        "sha256": checksum(data),
        "samples": imported.data.n_samples,
        "items": imported.data.n_items,
        "import_summary": imported.summary.to_dict(),
    }


def _run(
    found: Posterior, options: PosteriorRunOptions, about: dict[str, Any], check: FitCheck | None
) -> Run:
    plan = found.chain_states[0]["plan"]
    return Run(
        "posterior",
        {
            "prior": prior_to_json(found.prior),
            "most_frequent": options.most_frequent,
            "drop": list(options.drop),
            "orders": options.orders,
            **plan,
            "draws": found.draws.scale.shape[1],
            "random_state": found.seed,
        },
        about,
        {
            "converged": found.convergence.converged,
            "message": found.convergence.message,
            "mean_log_likelihood": float(found.draws.log_likelihood.mean()),
            **({} if check is None else {"fit_check": check.to_json()}),
        },
    )


def _write_tables(found: Posterior, check: FitCheck | None, folder: Path) -> None:
    tables = (_trusted_orders(found, check), found.interactions())
    for name, table in zip(_TABLES, tables, strict=True):
        write_table(table, folder / name, index=False)
