"""Arguments and options that several commands share, and functions that read the named files."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from sequela.report.run import MODEL_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from sequela.data.dataset import Dataset
    from sequela.model import Model
    from sequela.posteriors.result import Posterior

__all__ = [
    "check_output",
    "data_argument",
    "drop_option",
    "force_option",
    "load_data",
    "load_data_for",
    "load_model",
    "load_posterior",
    "model_argument",
    "most_frequent_option",
    "precision_options",
    "run_options",
    "solver_options",
    "split_items",
    "times_option",
    "weights_option",
    "with_options",
]

Command = TypeVar("Command", bound="Callable[..., Any]")


def with_options(command: Command, *options: Callable[[Any], Any]) -> Command:
    """Add options to a command; its help shows them in the sequence in which they are given."""
    for option in reversed(options):
        command = option(command)
    return command


def model_argument(command: Command) -> Command:
    """Add the argument MODEL, which the command receives as `model_path`."""
    return click.argument("model_path", metavar="MODEL", type=click.Path(path_type=Path))(command)


def data_argument(command: Command) -> Command:
    """Add the argument DATA."""
    return click.argument("data", type=click.Path(path_type=Path))(command)


def times_option(command: Command) -> Command:
    """Add ``--times``."""
    return click.option(
        "--times",
        metavar="COLUMN",
        help="Column of DATA with the observation times, if they are known.",
    )(command)


def weights_option(command: Command) -> Command:
    """Add ``--weights``."""
    return click.option(
        "--weights",
        metavar="COLUMN|FILE",
        help="Weights of the samples: a column of DATA, or a table of samples and weights.",
    )(command)


def most_frequent_option(command: Command) -> Command:
    """Add ``--most-frequent``."""
    return click.option(
        "--most-frequent",
        metavar="N",
        type=click.IntRange(min=1),
        help="Keep only the N most frequent items.",
    )(command)


def drop_option(command: Command) -> Command:
    """Add ``--drop``; the command receives a tuple of columns, or None if it is not given."""

    def read(context: click.Context, option: click.Parameter, text: str | None) -> Any:  # noqa: ARG001
        return None if text is None else tuple(split_items(text) or ())

    return click.option(
        "--drop",
        metavar="COLUMNS",
        callback=read,
        help="Columns of DATA that are not items, separated by commas.",
    )(command)


def solver_options(command: Command) -> Command:
    """Add ``--solver``, ``--max-iter`` and ``--tol``; an option that is not given is None."""
    options = (
        click.option(
            "--solver",
            type=click.Choice(["auto", "newton", "adagrad"]),
            default=None,
            help="Solver: newton, or the paper's adagrad. Default: auto, which is newton.",
        ),
        click.option(
            "--max-iter",
            type=click.IntRange(min=1),
            default=None,
            help="Maximum number of iterations per start. Default: 1000.",
        ),
        click.option(
            "--tol",
            type=float,
            default=None,
            help="A start has converged if its KKT residual is at most this value. Default: "
            "0.0001.",
        ),
    )
    return with_options(command, *options)


# Options of the command line, and the keywords of `Settings` that they set.
_SETTINGS = {
    "seed": "random_state",
    "threads": "n_threads",
    "draws": "draws",
    "target_se": "target_se",
}


def run_options(command: Command) -> Command:
    """Add the options ``--seed`` and ``--threads``.

    The command receives these options, together with the options of `precision_options`, in one
    dictionary, `settings`. Its keys are keywords of `sequela.Settings`.
    """

    @functools.wraps(command)
    def collected(**given: Any) -> Any:
        settings = {
            name: given.pop(option) for option, name in _SETTINGS.items() if option in given
        }
        return command(settings=settings, **given)

    seed = click.option(
        "--seed",
        type=click.IntRange(min=0),
        help="Random seed; the same seed gives the same numbers.",
    )
    threads = click.option(
        "--threads",
        type=click.IntRange(min=1),
        help="Number of threads. Default: all available cores.",
    )
    return cast("Command", seed(threads(collected)))


def precision_options(command: Command) -> Command:
    """Add ``--draws`` and ``--target-se``, for answers that are sampled."""
    draws = click.option(
        "--draws", type=click.IntRange(min=2), help="Number of draws for sampled answers."
    )
    target = click.option(
        "--target-se",
        type=float,
        help="Instead of --draws: draw until the standard error is at most this number.",
    )
    return draws(target(command))


def force_option(command: Command) -> Command:
    """Add ``--force``."""
    return click.option("--force", is_flag=True, help="Overwrite an existing file.")(command)


def check_output(path: Path | None, *, force: bool) -> None:
    """Raise an error if an output file cannot be written, or exists and `force` is not given.

    Commands call this function before they compute anything, so that no result is lost.
    """
    import os

    from sequela.support.errors import InputError

    if path is None:
        return
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; expected the name of a file to write")
    if path.exists() and not force:
        raise InputError(f"{str(path)!r} exists; choose another file, or use --force to replace it")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise InputError(
            f"the folder {str(parent)!r}, in which {path.name!r} should be written, does not "
            "exist; make it first"
        )
    if not os.access(parent, os.W_OK):
        raise InputError(
            f"you have no permission to write to the folder {str(parent)!r}; choose another folder"
        )


def load_model(path: Path) -> Model:
    """Read a model: the folder of a fit, a file that `Model.save` wrote, or a table of theta."""
    from sequela.model import Model
    from sequela.support.errors import InputError

    if path.is_dir():
        if not (path / MODEL_NAME).exists():
            raise InputError(
                f"{str(path)!r} is a folder without {MODEL_NAME}; expected the folder of "
                "`sequela fit`, or a model file"
            )
        path = path / MODEL_NAME
    return Model.from_csv(path) if path.suffix.lower() == ".csv" else Model.load(path)


def load_posterior(path: Path) -> Posterior:
    """Read a posterior: the folder of `sequela posterior`, or a file of `Posterior.save`."""
    from sequela.posteriors.result import Posterior
    from sequela.report.posterior_run import POSTERIOR_NAME
    from sequela.support.errors import InputError

    if path.is_dir():
        if not (path / POSTERIOR_NAME).exists():
            raise InputError(
                f"{str(path)!r} is a folder without {POSTERIOR_NAME}; expected the folder of "
                "`sequela posterior`"
            )
        path = path / POSTERIOR_NAME
    return Posterior.load(path)


def load_data(
    path: Path,
    *,
    times: str | None = None,
    most_frequent: int | None = None,
    weights: str | None = None,
    orders: str | None = None,
    drop: tuple[str, ...] | None = None,
    to_learn: bool = False,
) -> Dataset:
    """Read a table of samples and items, and print notices about the import on standard error.

    With `to_learn`, a table that clearly has its items in rows is an error.
    """
    from sequela.report.reading import read_samples, read_to_learn

    read = read_to_learn if to_learn else read_samples
    return read(
        path, times=times, most_frequent=most_frequent, weights=weights, orders=orders,
        drop=drop or (),
    ).data  # fmt: skip


def load_data_for(
    model_path: Path, path: Path, *, drop: tuple[str, ...] | None = None, **options: Any
) -> Dataset:
    """Read samples for a model, as `load_data` does.

    If `model_path` is the folder of a run, and `drop` is None, the columns that the run dropped are
    dropped here, too.
    """
    return load_data(
        path, drop=_recorded_drop(model_path, path) if drop is None else drop, **options
    )


def _recorded_drop(model_path: Path, data: Path) -> tuple[str, ...]:
    """Return the columns of DATA that the run in the folder `model_path` dropped."""
    from sequela.data.tables import text_rows
    from sequela.report.run import RUN_NAME, Run
    from sequela.support.errors import InputError

    if not (model_path / RUN_NAME).is_file():
        return ()
    try:
        labels = next(text_rows(data, None, None)[0])[1]
        dropped = Run.read(model_path).options.get("drop") or ()
    except (InputError, StopIteration, UnicodeDecodeError):
        return ()  # reading the whole table gives a better message
    return tuple(label for label in dropped if label in labels)


def split_items(text: str | None) -> list[str] | None:
    """Return the items of a comma-separated list; quotes protect a comma inside a label."""
    import csv

    if text is None:
        return None
    row = next(csv.reader([text], skipinitialspace=True), [])
    return [item.strip() for item in row if item.strip()]
