"""Run the command ``sequela paper``, and check its output and its files."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from sequela.cli import main
from sequela_paper import NAMES

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def run(monkeypatch):
    monkeypatch.delenv("SEQUELA_DATA", raising=False)
    runner = CliRunner()
    return lambda *arguments: runner.invoke(main, ["paper", *map(str, arguments)])


def test_sequela_lists_the_command():
    shown = CliRunner().invoke(main, ["--help"]).output
    assert "\n  paper      Reproduce the figure or table NAME of the paper" in shown


def test_help_shows_an_example_that_is_a_real_command(run):
    shown = run("--help").output
    example = shown.split("Example:\n")[1].split()
    assert example[:2] == ["sequela", "paper"]
    assert example[2] in NAMES
    # The option --help comes last. So click first reads the options of the example, and refuses
    # unknown options.
    assert run(*example[2:], "--help").exit_code == 0


def test_the_readme_shows_commands_that_exist(run):
    text = README.read_text("utf-8")
    commands = re.findall(r"^\$ sequela paper (.*)$", text, re.MULTILINE)
    assert len(commands) >= 3
    for command in commands:
        name, *options = shlex.split(command)
        assert name in (*NAMES, "list")
        assert run(name, *options, "--help").exit_code == 0
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert "://" in target or (README.parent / target).exists(), target


def test_list(run):
    shown = run("list").output
    for name in NAMES:
        assert f"\n{name} " in shown
    listed = json.loads(run("list", "--json").stdout)["experiments"]
    assert [one["name"] for one in listed] == list(NAMES)
    assert {one["repeats"] for one in listed if one["name"] in ("fig2", "fig3")} == {96, 24}


def test_a_figure_with_its_files_and_verdict(run, tmp_path):
    folder = tmp_path / "fig4"
    result = run("fig4", "--quick", "-o", folder, "--backend", "threads")
    assert result.exit_code == 0
    assert "confirmed: " in result.output
    for suffix in ("csv", "svg", "pdf", "png", "json"):
        assert (folder / f"fig4.{suffix}").stat().st_size > 100
    again = json.loads(run("fig4", "--quick", "-o", folder, "--json").stdout)
    assert again["holds"] is True
    assert again["finished"] is True


def test_default_folder(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("fig4", "--quick", "--backend", "threads").exit_code == 0
    assert (tmp_path / "sequela-paper" / "fig4-quick" / "fig4.csv").is_file()


def test_shares_then_collect(run, tmp_path):
    folder = tmp_path / "x"
    base = ["fig5", "--quick", "-o", folder, "--backend", "threads"]
    first = run(*base, "--index", 0, "--of", 2)
    assert first.exit_code == 0
    assert "--collect" in first.output
    early = run(*base, "--collect")
    assert early.exit_code == 2
    assert "missing" in early.output
    run(*base, "--index", 1, "--of", 2)
    assert "confirmed" in run(*base, "--collect").output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fig22"], "Did you mean 'fig2'"),
        (["fig3", "--quick"], "--data FOLDER"),
        (["fig3", "--data", "nowhere"], "no data folder"),
        (["fig2", "--repeats", "0"], "--repeats"),
        (["fig2", "--solver", "sgd"], "adagrad"),
        (["fig4", "--index", "3"], "--of"),
        (["fig4", "--index", "3", "--of", "2"], "0 to 1"),
        (
            ["fig4", "--cluster", "tcp://127.0.0.1:1", "--backend", "threads"],
            "cannot be used together",
        ),
    ],
)
def test_bad_input_is_explained(run, arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


def test_another_plan_in_the_folder(run, tmp_path):
    folder = tmp_path / "x"
    run("fig4", "--quick", "-o", folder, "--backend", "threads")
    other = run("fig4", "--quick", "-o", folder, "--seed", 7)
    assert other.exit_code == 2
    assert "another plan" in other.output
