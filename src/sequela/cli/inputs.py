"""What commands take: models, data, items and seeds, by file name or on the line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sequela.report.run import MODEL_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from sequela.data.dataset import Dataset
    from sequela.model import Model

__all__ = [
    "check_output",
    "data_argument",
    "force_option",
    "load_data",
    "load_model",
    "model_argument",
    "precision_options",
    "run_options",
    "split_items",
]

Command = TypeVar("Command", bound="Callable[..., Any]")


def model_argument(command: Command) -> Command:
    """Add the argument MODEL."""
    return click.argument("model", type=click.Path(path_type=Path))(command)


def data_argument(command: Command) -> Command:
    """Add the argument DATA."""
    return click.argument("data", type=click.Path(path_type=Path))(command)


def run_options(command: Command) -> Command:
    """Add ``--seed`` and ``--threads``."""
    seed = click.option(
        "--seed", type=click.IntRange(min=0), help="The same seed gives the same numbers."
    )
    threads = click.option(
        "--threads", type=click.IntRange(min=1), help="Default: all cores that may be used."
    )
    return seed(threads(command))


def precision_options(command: Command) -> Command:
    """Add ``--draws`` and ``--target-se``, for answers that are sampled."""
    draws = click.option("--draws", type=click.IntRange(min=2), help="How many draws if sampled.")
    target = click.option(
        "--target-se", type=float, help="Instead of --draws: the standard error that is wanted."
    )
    return draws(target(command))


def force_option(command: Command) -> Command:
    """Add ``--force``."""
    return click.option("--force", is_flag=True, help="Replace an existing file.")(command)


def check_output(path: Path | None, *, force: bool) -> None:
    """Refuse a file that cannot be written, or that would be lost: before the work, not after."""
    import os

    from sequela.support.errors import InputError

    if path is None:
        return
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; expected the name of a file to write")
    if path.exists() and not force:
        raise InputError(f"{str(path)!r} exists; name another file, or replace it with --force")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise InputError(f"there is no folder {str(parent)!r} to write {path.name!r} in")
    if not os.access(parent, os.W_OK):
        raise InputError(f"the folder {str(parent)!r} cannot be written to")


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


def load_data(path: Path, times: str | None = None) -> Dataset:
    """Read a table of samples and items, with the column of observation times if it has one."""
    from sequela.data.tables import read_table

    return read_table(path, times=times).data


def split_items(text: str | None) -> list[str] | None:
    """Return the items of a comma-separated list; quotes protect a comma inside a label."""
    import csv

    if text is None:
        return None
    row = next(csv.reader([text], skipinitialspace=True), [])
    return [item.strip() for item in row if item.strip()]
