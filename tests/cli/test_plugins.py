"""Commands that other packages add to sequela. The tests create such packages."""

from __future__ import annotations

import itertools

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from sequela.cli import main, plugins

_NUMBERS = itertools.count()

WORKING = """
import click


@click.command(epilog="made up")
@click.option("--twice", is_flag=True)
def command(twice):
    '''Greet the reader.'''
    click.echo("hello" if not twice else "hello hello")
"""


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(main, list(arguments))


@pytest.fixture(autouse=True)
def _forget():
    """Before and after each test, forget which packages were found."""
    plugins._entry_points.cache_clear()
    yield
    plugins._entry_points.cache_clear()


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs a package, which adds the command `name` to sequela.

    `source` is the code of the package.
    """
    monkeypatch.syspath_prepend(tmp_path)

    def install(name, source, value=None):
        module = f"made_up_{next(_NUMBERS)}"  # a new name, because imported modules stay in memory
        (tmp_path / f"{module}.py").write_text(source)
        metadata = tmp_path / f"{module}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        entry = f"{name} = {value or f'{module}:command'}\n"
        (metadata / "entry_points.txt").write_text(f"[sequela.commands]\n{entry}")
        plugins._entry_points.cache_clear()
        return module

    return install


def listed(help_text):
    return [line.split()[0] for line in help_text.split("Commands:\n")[1].splitlines() if line]


def test_an_installed_command_is_listed_in_its_place_and_runs(run, install):
    install("greet", WORKING)
    shown = run("--help")
    assert shown.exit_code == 0
    assert "\n  greet      Greet the reader.\n" in shown.output
    names = listed(shown.output.split("\n\n  Example:")[0])
    assert names == sorted(names)
    assert run("greet", "--twice").output == "hello hello\n"
    assert "Greet the reader." in run("greet", "-h").output


def test_commands_of_sequela_do_not_look_for_packages(run, monkeypatch):
    monkeypatch.setattr(plugins, "_entry_points", lambda: pytest.fail("looked for packages"))
    assert run("cite").exit_code == 0
    assert run("fit", "--help").exit_code == 0


def test_a_command_of_sequela_cannot_be_replaced(run, install):
    install("cite", WORKING)
    assert "hello" not in run("cite").output
    assert listed(run("--help").output).count("cite") == 1


@pytest.mark.parametrize(
    ("source", "value", "reason"),
    [
        ("import a_module_that_is_missing", None, "ModuleNotFoundError: No module named"),
        ("raise ValueError('out of order')", None, "ValueError: out of order"),
        ("raise SystemExit(3)", None, "SystemExit: 3"),
        ("command = 7", None, "is not a click command"),
        ("", None, "AttributeError: "),
        ("", "this is no reference", "Error"),
    ],
)
def test_a_broken_command_breaks_nothing_else(run, install, source, value, reason):
    module = install("greet", source, value)
    shown = run("--help")
    assert shown.exit_code == 0
    assert "\n  greet      (cannot be loaded: " in shown.output
    assert "\n  fit " in shown.output
    for arguments in (["greet"], ["greet", "--twice", "x"], ["greet", "--help"]):
        result = run(*arguments)
        assert result.exit_code == 1
        assert reason in result.stderr
        assert module in result.stderr
        assert "Traceback" not in result.stderr
    assert "direct cause of the following" in run("--debug", "greet").stderr


def test_damaged_metadata_break_nothing_else(run, install, tmp_path, caplog):
    module = install("greet", WORKING)
    broken = tmp_path / f"{module}-1.0.dist-info" / "entry_points.txt"
    broken.write_text("[sequela.commands]\nneither name nor value\n")
    plugins._entry_points.cache_clear()
    assert run("--help").exit_code == 0
    assert "metadata" in caplog.text


def test_an_unknown_command_is_still_unknown(run):
    result = run("nonsense")
    assert result.exit_code == 2
    assert "No such command 'nonsense'" in result.output


@pytest.mark.parametrize("arguments", [["paper"], ["paper", "list"], ["paper", "--help"]])
def test_a_package_that_is_not_installed_is_named(run, monkeypatch, arguments):
    monkeypatch.setattr(plugins, "_entry_points", dict)
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "install sequela-paper" in result.stderr
    assert "pip install ./paper" in result.stderr
    assert "\n  paper " not in run("--help").output


def test_completion_does_not_fail_where_a_package_is_missing(monkeypatch):
    monkeypatch.setattr(plugins, "_entry_points", dict)
    completion = ShellComplete(main, {}, "sequela", "_SEQUELA_COMPLETE")
    assert completion.get_completions(["paper"], "--") is not None
    assert [one.value for one in completion.get_completions([], "dem")] == ["demo"]
