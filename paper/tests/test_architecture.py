"""Check the rules of this package: its imports, the modules loaded at start, file lengths."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sequela_paper

SOURCE = Path(sequela_paper.__file__).parent
FILES = sorted(SOURCE.glob("*.py"))
# The packages of sequela that an experiment may import. It may not import the package of compiled
# code (`kernels`).
ROOMS = {
    "budget", "data", "learning", "likelihood", "model", "plots", "questions", "repeats", "report",
    "settings", "simulation", "support",
}  # fmt: skip
# Modules that all commands share. In this package, only command.py may import them.
COMMAND_HELPERS = {"sequela.cli.output", "sequela.cli.repeat_options"}
MOST_LINES = 500
MOST_PARAMETERS = 7


def imports(path):
    """Yield all modules that a file imports, including imports for types or inside functions."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield node.module


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_an_experiment_imports_only_the_rooms_it_may_use(path):
    for name in imports(path):
        package, _, rest = name.partition(".")
        if package == "sequela" and not (path.name == "command.py" and name in COMMAND_HELPERS):
            assert rest.partition(".")[0] in ROOMS, name
            assert "._" not in name, f"{name} is private"
        assert package != "numba", "compiled code belongs in sequela.kernels"


def test_there_is_something_to_check():
    """Check that `imports` finds imports. If it found none, the other tests would always pass."""
    found = {name for path in FILES for name in imports(path)}
    assert {"sequela.learning.estimator", "sequela.plots.style", *COMMAND_HELPERS} <= found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_files_are_short(path):
    assert len(path.read_text("utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_functions_have_few_parameters(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef):
            taken = node.args
            count = len([*taken.posonlyargs, *taken.args, *taken.kwonlyargs])
            count += (taken.vararg is not None) + (taken.kwarg is not None)
            assert count <= MOST_PARAMETERS, f"{node.name} has {count} parameters"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_nothing_prints(path):
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8")))
             if isinstance(node, ast.Call)]  # fmt: skip
    assert not [node.lineno for node in calls if ast.unparse(node.func) == "print"]


@pytest.mark.parametrize("arguments", [["--help"], ["paper", "--help"]])
def test_help_imports_no_numbers(arguments):
    script = (
        "import sys\n"
        "from sequela.cli import main\n"
        "try:\n"
        f"    main({arguments!r}, prog_name='sequela')\n"
        "except SystemExit as ended:\n"
        "    assert ended.code == 0\n"
        "assert 'sequela_paper.command' in sys.modules\n"
        "heavy = {'numpy', 'scipy', 'numba', 'pandas', 'sklearn', 'joblib', 'rich', 'matplotlib'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, f"imported: {done.stderr}"


def test_attributes_are_loaded_when_they_are_used():
    for name in sequela_paper.__all__:
        assert getattr(sequela_paper, name) is not None
    assert set(sequela_paper._WHERE) == set(sequela_paper.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = sequela_paper.nothing
