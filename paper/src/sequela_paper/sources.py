"""The data of the paper: read from the data folder, or simulated if they are synthetic."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sequela.data.cbioportal import read_cbioportal
from sequela.data.tables import read_table
from sequela.model import Model
from sequela.simulation import simulate
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset

__all__ = [
    "GLIOBLASTOMA",
    "SCHILL_TABLE",
    "TRUE_MODELS",
    "check_files",
    "data_folder",
    "drawn_clocks",
    "glioblastoma",
    "schill_table",
    "synthetic",
]

GLIOBLASTOMA = ("gbm/mutations.txt", "gbm/cna.txt", "gbm/merge.json")
SCHILL_TABLE = ("gbm/schill20.csv",)

# Appendix F. Rows act on columns.
TRUE_MODELS = {
    "two": np.array([[0.0, 4.0], [0.0, -4.0]]),
    "five": np.array(
        [
            [-1.0, 4.0, 0.0, 0.0, 0.0],
            [0.0, -1.0, -2.0, -2.0, 0.0],
            [0.0, -2.0, -1.0, -2.0, 0.0],
            [0.0, -2.0, -2.0, -0.5, 4.0],
            [0.0, 0.0, 0.0, 0.0, -4.0],
        ]
    ),
}
_FILES = {"two": "synthetic/synth2.csv", "five": "synthetic/synth5.csv"}
_CLOCKS = 200
_SAMPLES = 500
# With some random samples, the model of five items cannot be learned even if the times are known.
# With the samples of these seeds it can be learned, as with the samples of the paper.
_SEEDS = {"two": 2023, "five": 7}


def data_folder(given: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder of the data: `given`, else the folder in SEQUELA_DATA, else None."""
    named = given or os.environ.get("SEQUELA_DATA")
    if named is None:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise InputError(f"there is no data folder {str(folder)!r}; name one with --data")
    return folder.absolute()


def check_files(folder: Path | None, files: Iterable[str], name: str) -> None:
    """Raise an error if files that an experiment needs are missing."""
    for file in files:
        if folder is None:
            raise InputError(
                f"{name} needs {file!r}; give the folder that contains it with --data FOLDER, or "
                "in the environment variable SEQUELA_DATA"
            )
        if not (folder / file).is_file():
            raise InputError(
                f"{name} needs {file!r}, which is not in {str(folder)!r}; name another folder with "
                "--data"
            )


def drawn_clocks(n: int) -> NDArray[np.float64]:
    """Return the log-rates of the clock items for simulated data of n items (section 3.3)."""
    return np.random.default_rng([2021, n]).uniform(-4.0, -2.0, _CLOCKS)


@functools.lru_cache(maxsize=4)
def synthetic(name: str, folder: str | None) -> tuple[Dataset, Model]:
    """Return synthetic samples with times, and the true model of their interacting items.

    The 500 samples have the two or five interacting items and 200 clock items. They are read from
    the data folder if it contains them; otherwise they are simulated with a fixed seed. The
    interacting items are the first items of the data.
    """
    theta = TRUE_MODELS[name]
    truth = Model(theta, [f"item{i + 1}" for i in range(len(theta))])
    if folder is not None and (Path(folder) / _FILES[name]).is_file():
        return read_table(Path(folder) / _FILES[name], times="time").data, truth
    n = len(theta)
    whole = np.diag(np.concatenate([np.zeros(n), drawn_clocks(n)]))
    whole[:n, :n] = theta
    items = [*truth.items, *(f"clock{i + 1}" for i in range(_CLOCKS))]
    drawn = simulate(Model(whole, items).to_frame(), _SAMPLES, random_state=_SEEDS[name])
    return drawn.to_dataset(), truth


@functools.lru_cache(maxsize=2)
def glioblastoma(folder: str) -> Dataset:
    """Return 378 glioblastomas, with the items that occur in at least 4 of them.

    Items are sorted by frequency.
    """
    mutations, cna, merge = (Path(folder) / file for file in GLIOBLASTOMA)
    data = read_cbioportal(mutations, cna, merge=merge, at_least=4).data
    return data.most_frequent(data.n_items)


@functools.lru_cache(maxsize=2)
def schill_table(folder: str) -> Dataset:
    """Return the older glioblastoma table of 20 items."""
    return read_table(Path(folder) / SCHILL_TABLE[0]).data
