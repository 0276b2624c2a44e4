"""An example model and example samples, which are not measured data.

`example_theta` is made up. `example_samples` are drawn from a model that was learned on
glioblastoma data (script and seed: tools/make_example.py).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from sequela.data.dataset import Dataset
from sequela.support.errors import InputError

__all__ = ["example_path", "example_samples", "example_theta"]

_FOLDER = Path(__file__).parent / "example"

# The log base rate of each item.
_BASE = {
    "first": 0.0,
    "second": -4.0,
    "left": -0.5,
    "right": -0.5,
    "step 1": -0.5,
    "step 2": -4.0,
    "step 3": -4.0,
    "clock 1": -1.0,
    "clock 2": -2.0,
    "clock 3": -3.0,
}

# The log of the factor by which the first item of each pair changes the rate of the second.
_EFFECTS = {
    ("first", "second"): 4.0,
    ("left", "right"): -4.0,
    ("right", "left"): -4.0,
    ("step 1", "step 2"): 4.0,
    ("step 2", "step 3"): 5.0,
}


def example_theta() -> pd.DataFrame:
    """Return a small model of ten items whose order is known by construction.

    - "first" and "second" are the paper's example of two items, in which the effect of "first" on
      "second" is alpha = 4. Without "first", "second" is rare. After "first", it arrives as fast as
      "first" did. Data about these two items alone do not show which came first. Other items that
      arrive independently are needed.
    - "left" and "right" exclude each other: each makes the other e^4 times slower.
    - "step 1", "step 2", "step 3" are a cascade, in which each step triggers the next: "step 1" has
      no direct effect on "step 3", although the two occur together.
    - "clock 1" to "clock 3" depend on no item and affect none. Therefore they show how late a
      sample was observed: the more clock items it has, the later it was probably observed.

    All numbers are round and the names are made up, so that nobody mistakes a result of this model
    for a finding.

    Returns
    -------
    DataFrame
        A new copy of theta: row i, column j is the log-effect of item i on the rate of item j; the
        diagonal holds the logs of the base rates.

    Examples
    --------
    >>> theta = example_theta()
    >>> theta.shape
    (10, 10)
    >>> float(theta.loc["first", "second"]), float(theta.loc["second", "second"])
    (4.0, -4.0)
    """
    items = list(_BASE)
    theta = pd.DataFrame(np.diag(list(_BASE.values())), index=items, columns=items)
    for (source, target), effect in _EFFECTS.items():
        theta.loc[source, target] = effect
    return theta


def example_path(name: str) -> Path:
    """Return the path of a file of the built-in example: "samples.csv" or "theta.csv"."""
    path = _FOLDER / name
    if not path.is_file():
        known = sorted(file.name for file in _FOLDER.glob("*.csv"))
        raise InputError(f"there is no example file {name!r}; expected one of {known}")
    return path


def example_samples() -> Dataset:
    """Return 400 samples of 50 alterations, drawn from a model learned on glioblastoma data.

    The alterations have the same names and similar frequencies as in these data, but the samples
    are not patients. They are drawn from the model ``Model.from_csv(example_path("theta.csv"))``.

    Examples
    --------
    >>> example_samples().to_frame().shape
    (400, 50)
    """
    table = pd.read_csv(example_path("samples.csv"), index_col="sample", dtype={"sample": str})
    return Dataset(table)
