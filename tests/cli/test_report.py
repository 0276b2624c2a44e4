"""Run ``sequela report``, and check its output and its files."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from sequela.cli import main
from sequela.data.examples import example_path
from sequela.report import FitRunOptions, OutputOptions, run_fit


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("fits") / "fit"
    options = FitRunOptions(penalty=0.02, most_frequent=4, seed=1, check=False)
    run_fit(example_path("samples.csv"), made, options, output=OutputOptions(figures=()))
    return made


def run(*arguments):
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def data_of(path):
    found = re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    return json.loads(found.group(1))


def test_the_report_is_written_into_the_folder(folder):
    before = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    done = run(folder)
    assert done.exit_code == 0, done.output
    assert done.stdout == f"written: {folder / 'report.html'}\n"
    assert (folder / "report.html").read_bytes() == before


def test_another_file_and_evidence(folder, tmp_path):
    items = data_of(folder / "report.html")["items"]["labels"]
    (folder / "rivals.csv").write_text(
        f"first,second,probability,evidence\n{items[1]},{items[0]},0.7,4.5\n"
    )
    try:
        done = run(folder, "-o", tmp_path / "mine.html", "--json", "--threads", 1)
    finally:
        (folder / "rivals.csv").unlink()
    said = json.loads(done.stdout)
    assert said["report"] == str(tmp_path / "mine.html")
    assert said["bytes"] == (tmp_path / "mine.html").stat().st_size
    rows = data_of(tmp_path / "mine.html")["verdicts"]["rows"]
    assert (rows["first"][0], rows["second"][0], rows["verdict"][0]) == (1, 0, "yes")
    assert rows["evidence"][0] == 4.5


def test_data_may_be_named_and_folders_without_a_model_are_refused(folder, tmp_path):
    done = run(folder, example_path("samples.csv"), "-o", tmp_path / "named.html")
    assert done.exit_code == 0, done.output
    assert len(data_of(tmp_path / "named.html")["samples"]["labels"]) == 400
    done = run(tmp_path)
    assert done.exit_code == 2
    assert "contains neither model.npz" in done.stderr


def test_survival_and_another_cohort(folder, tmp_path):
    clinical = tmp_path / "data_clinical_patient.txt"
    names = data_of(folder / "report.html")["samples"]["labels"]
    rows = [f"{name}\t{k % 13 + 1}\t{k % 2}:X" for k, name in enumerate(names)]
    clinical.write_text("\n".join(["PATIENT_ID\tOS_MONTHS\tOS_STATUS", *rows]))
    done = run(folder, "-o", tmp_path / "new.html", "--clinical", clinical, "--compare", folder)
    assert done.exit_code == 0, done.output
    payload = data_of(tmp_path / "new.html")
    assert sum(group["samples"] for group in payload["survival"]["groups"]) == 400
    assert payload["survival"]["endpoint"] == "OS"
    assert payload["comparison"]["names"] == ["fit", "fit"]
    assert payload["comparison"]["first"] == payload["comparison"]["second"]
    done = run(folder, "--clinical-samples", clinical)
    assert done.exit_code == 2
    assert "needs --clinical" in done.stderr
    done = run(folder, "-o", tmp_path / "no.html", "--clinical", clinical, "--endpoint", "PFS")
    assert done.exit_code == 2
    assert "its endpoints are OS" in done.stderr
