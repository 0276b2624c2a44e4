"""An error message shows the name of an option in a command, and of an argument in Python."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import sequela
from sequela import InputError, read_table
from sequela.cli import main
from sequela.cli.import_files import import_files
from sequela.cli.naming import CommandNames
from sequela.support.naming import argument, either, names_of_command, option

ROOT = Path(sequela.__file__).parent


@pytest.fixture
def table(tmp_path):
    """Return a table with a column that is not an item."""
    path = tmp_path / "samples.csv"
    path.write_text("id,A,B,sex\n" + "".join(f"s{i},{i % 2},{i % 3 % 2},m\n" for i in range(12)))
    return path


def test_python_names_the_argument(table):
    with pytest.raises(InputError, match=r"use drop=\['sex'\]"):
        read_table(table)


@pytest.mark.parametrize("command", ["fit", "posterior", "path", "repeat", "import"])
def test_a_command_names_its_option(table, command, tmp_path):
    given = ["--table", str(table)] if command == "import" else [str(table)]
    result = CliRunner().invoke(main, [command, *given, "-o", str(tmp_path / "new")])
    assert result.exit_code == 2
    assert "use --drop sex." in result.stderr
    assert "drop=" not in result.stderr


def test_an_option_of_another_command_is_named_with_it(table, tmp_path):
    (tmp_path / "theta.csv").write_text(",A,B\nA,0,0\nB,0,0\n")
    gaps = tmp_path / "gaps.csv"
    gaps.write_text("id,A,B\ns0,1,\ns1,0,1\n")
    result = CliRunner().invoke(main, ["score", str(tmp_path / "theta.csv"), str(gaps)])
    assert "--missing keep (an option of `sequela import`)" in result.stderr


def test_the_option_of_the_message_works(table, tmp_path):
    out = tmp_path / "clean.csv"
    result = CliRunner().invoke(
        main, ["import", "--table", str(table), "--drop", "sex", "-o", str(out)]
    )
    assert result.exit_code == 0, result.stderr
    assert read_table(out).data.items == ("A", "B")


def test_names_in_a_command():
    with names_of_command(CommandNames(main.commands["fit"], import_files)):
        assert argument("max_iter") == "--max-iter"
        assert argument("random_state") == "--seed"
        assert option("missing", "keep") == "--missing keep"
        assert option("drop", ["a b", "c"]) == "--drop 'a b,c'"
        assert option("separator") == "--separator (an option of `sequela import`)"
        assert option("samples", False) == "--no-samples (an option of `sequela import`)"
        assert option("method", "auto") == "method='auto' (in Python)"
        assert either("python", "command") == "command"
    assert option("drop", ["a"]) == "drop=['a']"
    assert either("python", "command") == "python"


def test_another_meaning_is_not_confused():
    with names_of_command(CommandNames(main.commands["plan"], import_files)):
        assert option("samples", "id") == "--samples id (an option of `sequela import`)"


# In these files, all messages are about Python arguments that no command sets.
PYTHON_ONLY = {
    "budget.py", "simulation.py", "settings.py", "observation_effects.py", "observation.py",
    "data/_reading.py", "data/dataset.py", "likelihood/sequences.py", "likelihood/components.py",
    "likelihood/plan.py", "likelihood/partial_plan.py", "likelihood/parameters.py",
    "plots/interactions.py", "plots/time_densities.py", "model.py", "posteriors/priors.py",
    "posteriors/problem.py", "questions/arguments.py", "questions/dependence.py",
    "questions/divergence.py", "questions/imputation.py", "questions/order.py",
    "questions/over_draws.py", "support/random.py", "report/html.py",
}  # fmt: skip


def _text(node: ast.AST) -> str:
    """Return the constant parts of a message, without results of calls such as `option(...)`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Call):
        return ""
    return "".join(_text(part) for part in ast.iter_child_nodes(node))


def test_no_message_that_a_command_can_show_names_a_python_argument():
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place in PYTHON_ONLY or place.startswith("kernels/"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                text = _text(node.exc.args[0])
                if re.search(r"(?<![-\w])[a-z_]+=(?!=)", text):
                    found.append(f"{place}:{node.lineno}: {text}")
    assert not found, "\n".join(found)
