"""The comparison of two revisions: sequence of the runs, summary, data, a run with stubs."""

from __future__ import annotations

import json
import math
import shutil
import subprocess

import numpy as np
import pytest

import sequela
from benchmarks import compare, compare_cases, compare_data


def stub(wall, cpu=1.0, result=2.0):
    return {"wall": wall, "cpu": cpu, "result": result}


# --- The sequence of the runs, and the summary ----------------------------------------------------


def test_revisions_alternate_after_a_first_run_of_each():
    asked = []

    def measure(side, name, first):
        asked.append((name, side, first))
        return stub(1.0)

    compare.compare(["one", "two"], measure, 2)
    once = [("base", True), ("head", True), *[("base", False), ("head", False)] * 2]
    assert asked == [(name, side, first) for name in ("one", "two") for side, first in once]


def test_ratios_are_those_of_neighbours():
    """The ratio head / base is computed for each pair of adjacent runs.

    So the ratios stay right if the machine becomes slower from run to run.
    """
    given = {"base": iter([1.0, 3.0, 10.0]), "head": iter([2.0, 6.0, 30.0])}

    def measure(side, name, first):
        return (
            {} if first else stub(next(given[side]), cpu=0.5, result={"base": 2, "head": 3}[side])
        )

    [record] = compare.compare(["case"], measure, 3)
    assert record["wall"] == {
        "base": 3.0,
        "head": 6.0,
        "ratio": 2.0,
        "smallest": 2.0,
        "largest": 3.0,
    }
    assert record["cpu"]["ratio"] == 1.0
    assert record["difference of results"] == pytest.approx(1 / 3)
    shown = compare.lines([record])[1]
    assert "2.00 (2.00 to 3.00)" in shown
    assert "differs by 3e-01" in shown


def test_a_case_that_fails_on_one_side_does_not_stop_the_others():
    asked = []

    def measure(side, name, first):
        asked.append((name, side))
        if (name, side) == ("new", "base"):
            raise compare.RunError("no attribute 'new'")
        return stub(1.0)

    records = compare.compare(["new", "old"], measure, 1)
    assert asked == [("new", "base"), *[("old", side) for side in ("base", "head")] * 2]
    assert "failed: base: no attribute 'new'" in compare.lines(records)[1]
    assert compare.lines(records)[2].endswith("same")


def test_cases_are_chosen_by_a_part_of_their_name(capsys):
    assert compare.options(["main", "--only", "orders", "times"]).cases == [
        "orders of 12 items",
        "times of 300 samples",
    ]
    assert compare.options(["main"]).cases == list(compare_cases.CASES)
    for wrong in (["--only", "nothing"], ["--repeats", "0"]):
        with pytest.raises(SystemExit):
            compare.options(["main", *wrong])
    assert "no case has nothing" in capsys.readouterr().err


# --- The cases ------------------------------------------------------------------------------------


def test_options_that_a_version_does_not_have_are_left_out():
    def older(theta):
        return theta

    def newer(theta, **options):
        return options

    assert compare_cases.call(older, 1, n_threads=1) == 1
    assert compare_cases.call(newer, 1, n_threads=1) == {"n_threads": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    compare_data.write_simulated(folder)
    return folder


def test_simulated_sets_are_as_large_as_they_should_be(data):
    for n, mean in ((20, 4.0), (100, 6.0)):
        theta, X = compare_cases.load(data / f"n{n}.npz")
        assert theta.shape == (n, n)
        assert X.shape[1] == n
        assert len(X) > 0.8 * compare_data.SAMPLES
        assert mean / 2 < X.sum(axis=1).mean() < mean * 2
        assert X.sum(axis=1).max() <= compare_data.LARGEST_SET


def test_sets_come_from_the_model():
    """The shares of the four sets of two items are right within five standard errors."""
    theta = np.array([[0.0, 1.5], [-1.0, -0.5]])
    X = compare_data.draw_sets(theta, 4000, np.random.default_rng(3))
    a, b = math.exp(0.0), math.exp(-0.5)
    neither = 1 / (1 + a + b)
    first = neither * a / (1 + math.exp(-0.5 + 1.5))
    second = neither * b / (1 + math.exp(0.0 - 1.0))
    found = np.bincount(X @ [1, 2], minlength=4) / len(X)
    expected = np.array([neither, first, second, 1 - neither - first - second])
    assert np.all(np.abs(found - expected) < 5 * np.sqrt(expected / len(X)))


def test_the_table_has_the_samples_of_the_archive(data):
    """Programs that read tables get the same samples as programs that read arrays."""
    X = np.loadtxt(data / "n20.csv", delimiter=",", skiprows=1)
    kept = X[X.sum(axis=1) <= compare_data.LARGEST_SET]
    np.testing.assert_array_equal(kept, compare_cases.load(data / "n20.npz")[1])


def test_a_first_fit_reads_the_table(data):
    found = compare_cases.measure(compare_cases.CASES["first fit, n = 20"], data)
    assert set(found) == {"cpu", "memory", "result"}
    model = sequela.fit(
        np.loadtxt(data / "n20.csv", delimiter=",", skiprows=1), penalty=compare_cases.PENALTY
    )
    assert found["result"] == pytest.approx(model.metadata["objective"], abs=1e-12)
    assert found["memory"] > 10.0


def test_bootstraps_are_those_of_a_plan(data):
    table = compare_cases.bootstraps(data / "n20.csv", count=2)()
    assert len(table) == 2
    assert table["converged"].all()


def test_a_table_becomes_samples(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("sample,TP53,EGFR(A)\ns1,1,0\ns2,0,0\ns3,1,1\n")
    compare_data.write_table(tmp_path / "table.npz", table)
    theta, X = compare_cases.load(tmp_path / "table.npz")
    assert X.tolist() == [[True, False], [False, False], [True, True]]
    assert np.diag(theta) == pytest.approx([math.log(2), -math.log(2)])


@pytest.mark.parametrize("name", ["gradient, n = 20", "orders of 12 items"])
def test_cases_run_on_this_version(name, data):
    first = compare_cases.measure(compare_cases.CASES[name], data, 0)
    again = compare_cases.measure(compare_cases.CASES[name], data, 1)
    assert set(first) == {"result"}
    assert set(again) == {"wall", "cpu", "memory", "result"}
    assert first["result"] == again["result"]


# --- A run from end to end ------------------------------------------------------------------------

STUB = """
def log_likelihood(theta, X, return_gradient=False):
    return 0.0, theta * {factor}

def simulate(theta, size):
    raise ValueError("not yet")
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a git repository with two revisions of a package that has only stub functions."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    root = tmp_path / "repository"
    package = root / "src" / "sequela"
    package.mkdir(parents=True)
    for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(variable, raising=False)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Somebody")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "somebody@example.org")
    compare.git("init", "--quiet", at=root)
    for factor in (1, 2):
        (package / "__init__.py").write_text(STUB.format(factor=factor))
        compare.git("add", ".", at=root)
        compare.git("commit", "--quiet", "--no-verify", "-m", f"Factor {factor}", at=root)
    return root


def test_two_revisions_are_compared_and_nothing_is_left(repository, tmp_path, capsys):
    (repository / "src" / "sequela" / "__init__.py").write_text("uncommitted")
    file = tmp_path / "compared.json"
    given = ["HEAD~1", "--only", "gradient, n = 20", "simulate", "--repeats", "2", "-o", str(file)]
    compare.main(given, root=repository)
    printed = capsys.readouterr()
    assert "uncommitted changes" in printed.err
    assert "base: HEAD~1" in printed.out
    assert "ValueError: not yet" in printed.out
    written = json.loads(file.read_text())
    gradient, simulate = written["cases"]
    assert gradient["case"] == "gradient, n = 20"
    assert len(gradient["base"]) == len(gradient["head"]) == 2
    # Base and head each ran their own revision on the same data: the stub of base multiplies by 1,
    # and the stub of head multiplies by 2.
    assert gradient["head"][0]["result"] == pytest.approx(2 * gradient["base"][0]["result"])
    assert gradient["difference of results"] == pytest.approx(0.5)
    assert simulate["error"] == "base: ValueError: not yet"
    assert written["base"]["commit"] != written["head"]["commit"]
    assert len(compare.git("worktree", "list", at=repository).splitlines()) == 1


def test_a_revision_that_does_not_exist_is_refused(repository):
    with pytest.raises(SystemExit, match="rev-parse"):
        compare.main(["nowhere"], root=repository)


def test_another_package_than_that_of_the_revision_is_refused(repository, tmp_path, monkeypatch):
    answer = json.dumps({"package": str(tmp_path / "elsewhere")})
    done = subprocess.CompletedProcess([], 0, stdout=answer, stderr="")
    monkeypatch.setattr(compare.subprocess, "run", lambda *_, **__: done)
    revision = compare.Revision("main", "0" * 40, repository)
    with pytest.raises(SystemExit, match="ran another sequela"):
        compare.run(revision, "measure")
