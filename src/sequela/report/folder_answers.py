"""Read samples and ranges of orders from the folder of a fit, for commands that need them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sequela.report.html_folder import read_run_data, read_run_table
from sequela.report.run import RUN_NAME, Run
from sequela.support.errors import InputError

if TYPE_CHECKING:
    import os

    import pandas as pd

    from sequela.data.dataset import Dataset

__all__ = ["folder_ranges", "folder_sample"]


def folder_ranges(folder: str | os.PathLike[str]) -> pd.DataFrame | None:
    """Return ``order_ranges.csv`` of a folder: the orders that the fit checked.

    Returns None if the folder has no such table, or if `folder` is a model file.
    """
    place = Path(folder)
    return read_run_table(place, "order_ranges.csv") if place.is_dir() else None


def folder_sample(folder: str | os.PathLike[str], name: str, option: str) -> Dataset:
    """Return one sample, by its name, of the data that a folder was made from.

    `option` is the option with which the items can be given instead, for error messages.
    """
    place = Path(folder)
    if not (place / RUN_NAME).exists():
        raise InputError(
            f"{str(place)!r} has no {RUN_NAME}, so its samples are not known; expected the "
            f"folder of `sequela fit`. Give the items of the sample with {option} instead"
        )
    data = read_run_data(Run.read(place), place)
    if data is None:
        raise InputError(
            "the file with the samples of this fit was moved or deleted; give the items of the "
            f"sample with {option} instead"
        )
    if name not in data.samples:
        shown = ", ".join(map(repr, data.samples[:3]))
        raise InputError(f"there is no sample {name!r:.80}; the first samples are {shown}, ...")
    return data.select_samples([name])
