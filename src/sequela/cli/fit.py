"""``sequela fit``: learn a model from a table and leave everything about it in one folder."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import click

from sequela.cli.errors import INTERRUPTED
from sequela.cli.inputs import load_data
from sequela.cli.output import json_option, make_console, print_json, print_table

__all__ = ["DEFAULTS", "fit", "make_report", "read_formats", "show"]


@click.command(
    epilog="\b\nExample:\n  sequela fit samples.csv -o glioblastoma --penalty 0.01 --seed 1"
)
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="The folder to make."
)
@click.option(
    "--penalty", type=float, help="Weight of the L1 penalty on interactions. Default: 0.01."
)
@click.option("--cv", is_flag=True, help="Choose the penalty by cross-validation.")
@click.option(
    "--starts", type=click.IntRange(min=1), default=None, help="Random starts. Default: 1."
)
@click.option("--times", help="The column with observation times, if DATA has one.")
@click.option(
    "--most-frequent", type=click.IntRange(min=1), help="Only so many of the most frequent items."
)
@click.option("--solver", type=click.Choice(["auto", "newton", "adagrad"]), default=None)
@click.option("--max-iter", type=click.IntRange(min=1), default=None)
@click.option("--tol", type=float, default=None, help="KKT residual to reach. Default: 0.0001.")
@click.option("--seed", type=click.IntRange(min=0), help="The same seed gives the same model.")
@click.option("--threads", type=click.IntRange(min=1), help="They do not change the result.")
@click.option(
    "--checkpoint", type=click.Path(path_type=Path), help="A file to save the fit to, and resume."
)
@click.option(
    "--figures",
    default="png",
    show_default=True,
    help="Formats, separated by commas: png, svg, pdf; 'none' for no figures.",
)
@click.option("--force", is_flag=True, help="Replace the folder of an earlier fit.")
@click.option(
    "--repeat",
    type=click.Path(path_type=Path),
    help="A run.json: repeat that fit and compare. DATA may be left out.",
)
@json_option
def fit(
    data: Path | None,
    output: Path,
    force: bool,
    figures: str,
    threads: int | None,
    checkpoint: Path | None,
    repeat: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Learn a model from DATA, a table of samples and items.

    The folder gets the model, tables of interactions, orders, pseudo-times and frequencies,
    figures, and a run.json with versions, seed, options and the checksum of the data, from which
    the run can be repeated exactly.
    """
    from sequela.support.folders import check_folder

    check_folder(output, force=force)
    formats = read_formats(figures)
    options, data = _options(data, repeat, given)
    report = make_report(
        data, output, options, force=force, figures=formats, threads=threads,
        checkpoint=checkpoint, repeat=repeat,
    )  # fmt: skip
    if as_json:
        print_json(report)
    else:
        show(report)
    if report["interrupted"]:
        click.get_current_context().exit(INTERRUPTED)


def read_formats(figures: str) -> tuple[str, ...]:
    """Return the formats of figures; refuse them before the work if they cannot be drawn."""
    names = tuple(name.strip().lower() for name in figures.split(",") if name.strip())
    if names in ((), ("none",)):
        return ()
    wrong = [name for name in names if name not in ("png", "svg", "pdf")]
    if wrong:
        raise click.BadParameter(
            f"{wrong[0]!r} is not a format; expected png, svg, pdf or none", param_hint="--figures"
        )
    try:
        import matplotlib  # noqa: F401, ICN001
    except ImportError:
        raise click.UsageError(
            "figures need matplotlib: `pip install sequela[plot]`, or use --figures none"
        ) from None
    return names


DEFAULTS: dict[str, Any] = {
    "penalty": 0.01, "cv": False, "starts": 1, "times": None, "most_frequent": None,
    "solver": "auto", "max_iter": 1000, "tol": 1e-4, "seed": None,
}  # fmt: skip


def _options(
    data: Path | None, repeat: Path | None, given: dict[str, Any]
) -> tuple[dict[str, Any], Path]:
    """Return what the fit depends on: given on the line, of an earlier run, or by default."""
    from sequela.report.run import Run
    from sequela.support.errors import InputError
    from sequela.support.random import materialise_seed

    chosen = {name: value for name, value in given.items() if value not in (None, False)}
    if repeat is None:
        if data is None:
            raise click.UsageError("Missing argument 'DATA'.")
        if chosen.get("cv") and "penalty" in chosen:
            raise click.UsageError("--penalty and --cv exclude each other")
        options = {**DEFAULTS, **chosen}
        options["seed"] = materialise_seed(options["seed"])
        return options, data
    if chosen:
        name = next(iter(chosen)).replace("_", "-")
        raise click.UsageError(f"--{name} cannot be changed when a run is repeated")
    run = Run.read(repeat)
    if run.command != "fit":
        raise InputError(f"{str(repeat)!r} is the run of `sequela {run.command}`, not of a fit")
    source = Path(run.data["path"]) if data is None else data
    if data is None and not source.is_absolute():
        folder = repeat if repeat.is_dir() else repeat.parent
        source = folder / source
    if not source.exists():
        raise InputError(f"there is no file {str(source)!r}; name the data of the run as DATA")
    run.check_data(source)
    return {**DEFAULTS, **run.options}, source


def make_report(
    data: Path,
    output: Path,
    options: dict[str, Any],
    *,
    force: bool,
    figures: tuple[str, ...],
    threads: int | None,
    checkpoint: Path | None,
    repeat: Path | None,
) -> dict[str, Any]:
    """Learn, write the folder, and return what happened."""
    from sequela.report.fit_folder import write_fit
    from sequela.report.run import Run, checksum
    from sequela.support.folders import new_folder

    samples = load_data(data, options["times"])
    digest = checksum(data)
    if options["most_frequent"] is not None:
        samples = samples.most_frequent(min(options["most_frequent"], samples.n_items))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chain = _learner(options, threads, checkpoint).fit(samples)
    notices = list(dict.fromkeys(str(w.message) for w in caught))
    result = {
        "objective": chain.objective_,
        "objective_se": chain.objective_se_,
        "kkt_residual": chain.kkt_residual_,
        "kkt_floor": chain.kkt_floor_,
        "converged": bool(chain.converged_),
        "interactions": len(chain.model_.interactions()),
        "optima": len(chain.optima_),
        "penalty": chain.model_.metadata["penalty"],
        "theta_sha256": _digest(chain.theta_),
    }
    run = Run(
        command="fit",
        options=options,
        data={
            "path": str(data.absolute()), "sha256": digest,
            "samples": samples.n_samples, "items": samples.n_items,
        },
        result=result,
    )  # fmt: skip
    with new_folder(output, force=force) as folder:
        write_fit(
            folder, chain, samples, seed=options["seed"], figures=figures, n_threads=threads,
            say=_say,
        )  # fmt: skip
        run.write(folder)
        files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    strongest = chain.model_.interactions().head(8)
    return {
        "folder": str(output),
        "files": files,
        "samples": samples.n_samples,
        "items": samples.n_items,
        **result,
        "seed": options["seed"],
        "strongest": [
            {"from": row["from"], "to": row["to"], "effect": float(row["effect"])}
            for _, row in strongest.iterrows()
        ],
        "notices": notices,
        "interrupted": any(notice.startswith("the fit was interrupted") for notice in notices),
        "same_as_repeated": None if repeat is None else _same(repeat, result),
    }


def _learner(options: dict[str, Any], threads: int | None, checkpoint: Path | None) -> Any:
    from sequela.learning.estimator import SetChain
    from sequela.learning.path import SetChainCV

    shared: dict[str, Any] = {
        "n_starts": options["starts"], "solver": options["solver"],
        "max_iter": options["max_iter"], "tol": options["tol"],
        "random_state": options["seed"], "n_threads": threads, "checkpoint": checkpoint,
        "progress": None if sys.stderr.isatty() else "lines",
    }  # fmt: skip
    if options["cv"]:
        return SetChainCV(**shared)
    return SetChain(options["penalty"], **shared)


def _say(what: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"sequela: {what} ...", err=True)


def _digest(theta: Any) -> str:
    import hashlib

    return hashlib.sha256(theta.astype("<f8").tobytes()).hexdigest()


def _same(repeat: Path, result: dict[str, Any]) -> bool:
    from sequela.report.run import Run

    return bool(Run.read(repeat).result.get("theta_sha256") == result["theta_sha256"])


def show(report: dict[str, Any]) -> None:
    """Print what was learned and where it is."""
    console = make_console()
    error = f" +- {report['objective_se']:.1g}" if report["objective_se"] else ""
    floor = report["kkt_floor"]
    reached = "converged" if report["converged"] else "NOT converged"
    reached += f" (KKT residual {report['kkt_residual']:.1e}"
    reached += f", Monte Carlo floor {floor:.1e})" if floor else ")"
    console.print(
        f"{report['samples']} samples, {report['items']} items, penalty {report['penalty']:g}, "
        f"seed {report['seed']}\n"
        f"{report['interactions']} interactions; objective {report['objective']:.6f}{error}, "
        f"{reached}\n",
        soft_wrap=True,
    )
    print_table(
        console,
        {"Strongest interactions": False, "Effect on the rate": True},
        [
            (f"{row['from']} -> {row['to']}", f"x {_factor(row['effect'])}")
            for row in report["strongest"]
        ],
    )
    for notice in report["notices"]:
        click.echo(f"sequela: {notice}", err=True)
    if report["same_as_repeated"] is not None:
        console.print(
            "\ntheta is the same as in the run that was repeated, bit for bit"
            if report["same_as_repeated"]
            else "\ntheta is NOT the same as in the run that was repeated: compare the versions in "
            "the two run.json",
            soft_wrap=True,
        )
    console.print(f"\nwritten: {report['folder']} ({', '.join(report['files'])})", soft_wrap=True)


def _factor(effect: float) -> str:
    import math

    return f"{math.exp(effect):.3g}"
