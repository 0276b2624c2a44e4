"""The page docs/files.md lists exactly the files and columns that runs write."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from sequela.data.examples import example_path
from sequela.report import FitRunOptions, run_fit
from sequela.report.posterior_run import PosteriorRunOptions, run_posterior

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
FIT, POSTERIOR = PAGE.split("## The folder of a posterior")


def first_cells(text: str) -> list[str]:
    """Return the names in the first column of the tables of a page."""
    return re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE)


def compare(page: str, folder: Path) -> None:
    """Check that a page lists exactly the files in a folder, and the columns of the tables."""
    lists = re.split(r"^### (\S+\.csv).*$", page, flags=re.MULTILINE)
    found = {path.name + "/" * path.is_dir() for path in folder.iterdir()}
    assert set(first_cells(lists[0])) == found
    columns = {name: first_cells(text) for name, text in zip(lists[1::2], lists[2::2], strict=True)}
    real = {}
    for path in folder.glob("*.csv"):
        if path.name != "theta.csv":  # in this matrix the columns are the items
            with path.open(encoding="utf-8", newline="") as file:
                real[path.name] = next(csv.reader(file))
    assert columns == real


@pytest.fixture(scope="module")
def samples():
    return example_path("samples.csv")


def test_the_folder_of_a_fit(samples, tmp_path):
    options = FitRunOptions(most_frequent=3, starts=2, seed=1)
    run_fit(samples, tmp_path / "fit", options)
    compare(FIT, tmp_path / "fit")


def test_the_folder_of_a_posterior(samples, tmp_path):
    settings = {"draws": 4, "chains": 2, "warm_up": 10, "random_state": 1}
    options = PosteriorRunOptions(most_frequent=3, settings=settings)
    run_posterior(samples, tmp_path / "certainty", options)
    compare(POSTERIOR, tmp_path / "certainty")
