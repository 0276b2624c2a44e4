"""The folder of ``sequela posterior``: draws, tables, ``report.html`` and ``run.json``.

The file of the draws is also the checkpoint: it is written every half minute, and a run that was
stopped can continue from it.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequela.posteriors.priors import as_prior, prior_to_json, read_prior
from sequela.posteriors.result import Posterior
from sequela.posteriors.sampling import NotConvergedWarning, posterior
from sequela.report.html_folder import write_report
from sequela.report.reading import read_samples
from sequela.report.run import POSTERIOR_NAME, RUN_NAME, Run, checksum
from sequela.report.tables import records, write_table
from sequela.support.errors import InputError
from sequela.support.folders import check_folder
from sequela.support.random import materialise_seed

if TYPE_CHECKING:
    import os

    from sequela.data.importing import Imported
    from sequela.posteriors.priors import Prior
    from sequela.report.fit_options import Execution

__all__ = ["POSTERIOR_NAME", "PosteriorReport", "PosteriorRunOptions", "run_posterior"]


@dataclass(frozen=True)
class PosteriorRunOptions:
    """The options that the draws depend on.

    Attributes
    ----------
    prior : Prior or None
        The prior of theta; None: the default.
    most_frequent : int or None
        Keep at most this many items, the most frequent first.
    settings : dict
        Keywords of `sequela.posterior`: draws, chains, replicas, random_state, ...
    """

    prior: Prior | str | None = None
    most_frequent: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PosteriorReport:
    """The result of `run_posterior`.

    Attributes
    ----------
    posterior : Posterior
        The draws.
    folder : Path
        The output folder.
    """

    posterior: Posterior
    folder: Path

    def to_json(self) -> dict[str, Any]:
        """Return the main numbers as plain values."""
        found = self.posterior
        chains, draws = found.draws.scale.shape
        convergence = asdict(found.convergence)
        return {
            "folder": str(self.folder),
            "seed": found.seed,
            "prior": prior_to_json(found.prior),
            "scale": found.scale(),
            "chains": chains,
            "draws": draws,
            "convergence": {k: None if v != v else v for k, v in convergence.items()},
            "orders": records(found.orders()),
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
        Continue the run in the folder: finish it if it was stopped, otherwise draw more.
    force : bool
        Replace the folder of an earlier run.
    execution : Execution or None
        Number of threads for the report, and the function that announces each part; the options
        have the number of threads for the draws.

    Returns
    -------
    PosteriorReport
        The draws and the path of the folder.
    """
    chosen = options or PosteriorRunOptions()
    target = Path(folder)
    place = target / POSTERIOR_NAME
    if proceed and not place.exists() and (target / RUN_NAME).exists():
        # The earlier run was stopped before it saved any draws.
        proceed, chosen = False, _recorded_options(target, chosen)
    elif proceed:
        if not place.exists():
            raise InputError(
                f"there is no {POSTERIOR_NAME!r} in {str(target)!r}; expected the folder of an "
                "earlier `sequela posterior`"
            )
    else:
        check_folder(target, force=force)
    imported = read_samples(data, most_frequent=chosen.most_frequent)
    with warnings.catch_warnings():
        # The text of the warning is part of the result and is shown with it.
        warnings.simplefilter("ignore", NotConvergedWarning)
        found = (
            _proceed(imported, place, chosen) if proceed else _begin(imported, target, data, chosen)
        )
    _write_tables(found, target)
    run = _run(found, imported, data, chosen)
    run.write(target)
    write_report(target, imported.data, execution=execution)
    return PosteriorReport(found, target)


def _recorded_options(folder: Path, options: PosteriorRunOptions) -> PosteriorRunOptions:
    """Return the options with which a run was started, except the number of threads."""
    run = Run.read(folder)
    if run.command != "posterior" or run.result:
        raise InputError(
            f"{str(folder)!r} is the folder of a finished `sequela {run.command}` without "
            f"{POSTERIOR_NAME!r}; expected a `sequela posterior` that was stopped"
        )
    stored = dict(run.options)
    prior = read_prior(stored.pop("prior", {}))
    most_frequent = stored.pop("most_frequent", None)
    threads = {k: v for k, v in options.settings.items() if k == "n_threads"}
    return PosteriorRunOptions(prior, most_frequent, {**stored, **threads})


def _begin(
    imported: Imported, folder: Path, data: str | os.PathLike[str], options: PosteriorRunOptions
) -> Posterior:
    """Make the folder and start to sample; an earlier file of draws is replaced."""
    as_prior(options.prior)  # raises an error before anything is written
    seed = materialise_seed(options.settings.get("random_state"))
    options = replace(options, settings={**options.settings, "random_state": seed})
    folder.mkdir(exist_ok=True)
    (folder / POSTERIOR_NAME).unlink(missing_ok=True)
    Run("posterior", _plain_options(options), _described(imported, data)).write(folder)
    return posterior(
        imported.data, prior=options.prior, checkpoint=folder / POSTERIOR_NAME, **options.settings
    )


def _proceed(imported: Imported, place: Path, options: PosteriorRunOptions) -> Posterior:
    """Finish a run that was stopped; draw more if it was complete."""
    earlier = Posterior.load(place)
    stored = earlier.chain_states[0]
    plan = stored["plan"]
    settings = {
        k: v for k, v in options.settings.items() if k in ("draws", "most_draws", "n_threads")
    }
    others = sorted(set(options.settings) - set(settings))
    if others or options.prior is not None:
        name = others[0] if others else "prior"
        raise InputError(f"{name} cannot be changed when a run is continued; leave it out")
    missing = plan["warm_up"] + plan["draws"] - stored["done"]
    if not plan["until_converged"]:
        if missing > 0:
            settings["draws"] = missing
        elif "most_draws" not in settings:
            settings.setdefault("draws", plan["draws"])
    return posterior(imported.data, continue_from=earlier, checkpoint=place, **settings)


def _plain_options(options: PosteriorRunOptions) -> dict[str, Any]:
    return {
        "prior": prior_to_json(as_prior(options.prior)),
        "most_frequent": options.most_frequent,
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
    found: Posterior,
    imported: Imported,
    data: str | os.PathLike[str],
    options: PosteriorRunOptions,
) -> Run:
    plan = found.chain_states[0]["plan"]
    return Run(
        "posterior",
        {
            "prior": prior_to_json(found.prior),
            "most_frequent": options.most_frequent,
            **plan,
            "draws": found.draws.scale.shape[1],
            "random_state": found.seed,
        },
        _described(imported, data),
        {
            "converged": found.convergence.converged,
            "message": found.convergence.message,
            "mean_log_likelihood": float(found.draws.log_likelihood.mean()),
        },
    )


def _write_tables(found: Posterior, folder: Path) -> None:
    write_table(found.orders(), folder / "orders.csv", index=False)
    write_table(found.interactions(), folder / "interactions.csv", index=False)
