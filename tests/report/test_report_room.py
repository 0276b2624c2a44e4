"""The package `sequela.report`: its public names, its demo, and the tables of repeats."""

from __future__ import annotations

import json
import subprocess
import sys

import pandas as pd
import pytest

import sequela
from cli.invoking import run as run_command
from sequela import repeats, report
from sequela.report import (
    RepeatTables,
    describe_repeats,
    run_known_demo,
    write_repeat_tables,
)


def test_every_name_is_there_and_loaded_late():
    for name in report.__all__:
        assert getattr(report, name) is not None
    assert dir(report) == sorted(report.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = report.nothing
    script = "import sys, sequela.report; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0  # noqa: S603


def test_the_known_demo_is_that_of_the_command():
    found = run_known_demo(60, seed=3)
    shown = json.loads(
        run_command("demo", "--known", "--samples", 60, "--seed", 3, "--json").stdout
    )
    assert shown == found.to_json()
    assert set(shown["learned"]["interactions"][0]) == {"from", "to", "learned", "true"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a plan of three bootstraps, of which the second one is missing."""
    data = sequela.example_samples().most_frequent(4)
    plan = repeats.plan_fits(data, bootstraps=3, penalty=0.02, seed=1)
    place = tmp_path_factory.mktemp("repeats") / "boots"
    repeats.run(plan, place, backend="threads")
    (place / "000001.json").unlink()
    return place


def test_repeats_are_described(folder):
    plan = repeats.read_plan(folder)
    found = describe_repeats(plan, folder, level=0.5)
    assert found.missing == (1,)
    assert found.summary.fits["fits"].tolist() == [2]
    summary = repeats.summarise(folder, level=0.5, partial=True)
    assert found.summary.interactions == len(summary)
    assert found.summary.strongest["lower"].tolist() == summary["lower"].head(8).tolist()
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["missing"] == [1]
    assert plain["fits"][0]["penalty"] == 0.02


def test_a_plan_without_records_has_no_summary(folder, tmp_path):
    found = describe_repeats(repeats.read_plan(folder), tmp_path)
    assert found.missing == (0, 1, 2)
    assert found.summary is None
    assert "fits" not in found.to_json()


def test_tables_are_written_all_or_none(folder, tmp_path):
    tables = RepeatTables(tmp_path / "fits.csv", tmp_path / "interactions.csv")
    with pytest.raises(sequela.InputError, match=r"1 of 3 repeats are missing .*partial=True"):
        write_repeat_tables(folder, tables)
    with pytest.raises(sequela.InputError, match="no orders"):
        write_repeat_tables(
            folder, RepeatTables(tmp_path / "x.csv", orders=tmp_path / "o.csv"), partial=True
        )
    assert list(tmp_path.iterdir()) == []
    written = write_repeat_tables(folder, tables, partial=True)
    assert written == (tmp_path / "fits.csv", tmp_path / "interactions.csv")
    assert pd.read_csv(written[0])["repeat"].tolist() == [0, 2]
