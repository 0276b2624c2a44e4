"""Commands refuse files of earlier runs if the format is right but the content is wrong."""

from __future__ import annotations

import errno
import json
import shutil
import zipfile

import pytest

from cli.invoking import run
from sequela.posteriors.priors import as_prior, prior_to_json

PRIOR = prior_to_json(as_prior(None))
FIT = ("--figures", "none", "--no-check", "--starts", "1", "--threads", "1")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "samples.csv"
    rows = (f"s{k},{k % 2},{k // 2 % 2},{k // 3 % 2}\n" for k in range(40))
    path.write_text("sample,a,b,c\n" + "".join(rows))
    return path


@pytest.fixture(scope="module")
def fitted(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted") / "fit"
    run("fit", table, "-o", folder, "--seed", "1", *FIT)
    return folder


@pytest.fixture
def folder(fitted, tmp_path):
    return shutil.copytree(fitted, tmp_path / "fit")


def change(folder, **fields):
    """Change fields of run.json. Two underscores stand for a dot: a__b is the field b of a."""
    path = folder / "run.json"
    record = json.loads(path.read_text())
    for name, value in fields.items():
        *parents, last = name.split("__")
        place = record
        for parent in parents:
            place = place[parent]
        place[last] = value
    path.write_text(json.dumps(record))


def test_zero_is_a_penalty_a_tolerance_and_a_seed(table, tmp_path):
    run("fit", table, "-o", tmp_path / "zero", "--seed", "0", "--penalty", "0", *FIT)
    record = json.loads((tmp_path / "zero" / "run.json").read_text())
    assert record["options"]["seed"] == 0
    assert record["result"]["penalty"] == 0.0
    refused = run("fit", table, "-o", tmp_path / "tol", "--tol", "0", *FIT, code=2)
    assert "tol is 0.0" in refused.output


@pytest.mark.parametrize("path", ["/", "/" + "x" * 5000, "/x\0y"])
def test_a_run_whose_data_cannot_be_a_file(folder, tmp_path, path):
    change(folder, data__path=path)
    repeated = run("fit", "--repeat", folder, "-o", tmp_path / "again", code=2)
    assert "there is no file" in repeated.output
    shown = run("report", folder)
    assert "the samples of the run are not used" in shown.output


def test_an_error_of_the_file_system_names_the_file(table, tmp_path, monkeypatch):
    def full(*_arguments, **_options):
        raise OSError(errno.ENOSPC, "No space left on device", "model\x1b[2J.npz")

    monkeypatch.setattr("sequela.report.fit_run.write_fit", full)
    failed = run("fit", table, "-o", tmp_path / "fit", *FIT, code=1)
    assert "Error: 'model\\x1b[2J.npz': No space left on device" in failed.output
    assert "unexpected" not in failed.output


@pytest.mark.parametrize(
    "check", [5, {}, {"findings": 5, "tests": []}, {"findings": [["x"]], "tests": []}]
)
def test_a_report_refuses_a_check_that_is_none(folder, check):
    change(folder, result__fit_check=check)
    refused = run("report", folder, code=2)
    assert "its field 'result.fit_check" in refused.output


def test_a_report_refuses_ranges_without_their_columns(folder):
    (folder / "order_ranges.csv").write_text("first,second\na,b\n")
    refused = run("report", folder, code=2)
    assert "order_ranges.csv' has no column 'probability'" in refused.output


def test_a_model_that_has_a_member_twice(folder):
    with zipfile.ZipFile(folder / "model.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with (
        zipfile.ZipFile(folder / "model.npz", "a") as archive,
        pytest.warns(UserWarning, match="Duplicate name"),
    ):
        archive.writestr("theta.npy", members["theta.npy"][::-1])
    refused = run("order", folder, "a", "b", code=2)
    assert "two of its members have the same name" in refused.output


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("prior", 7, "a prior that is not a JSON object"),
        ("prior", {"kind": "x"}, "expected one of"),
        ("unknown\x1b[2J", 1, r"the option 'unknown\x1b[2J'"),
        ("draws", "x", "its field 'options.draws' is 'x'"),
        ("most_draws", -1, "its field 'options.most_draws' is -1"),
        ("chains", "x", "chains is 'x'"),
    ],
)
def test_a_posterior_that_was_begun_with_other_options_than_there_are(
    table, folder, name, value, told
):
    (folder / "model.npz").unlink()
    change(
        folder, command="posterior", result={}, options={"prior": PRIOR, "draws": 5, name: value}
    )
    refused = run("posterior", table, "-o", folder, "--continue", code=2)
    assert told in refused.output
