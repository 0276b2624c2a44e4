"""What users see if a command fails or takes long."""

from __future__ import annotations

import errno
import logging
import threading

import click
import pytest
from click.testing import CliRunner

import sequela.report.known_demo
from sequela import BudgetError, InputError
from sequela.cli import main
from sequela.support.labels import visible


@pytest.fixture
def failing(monkeypatch):
    """Return a run of the demo in which the simulation raises the given error."""

    def run(error, *options):
        def fail(*_, **__):
            raise error

        monkeypatch.setattr(sequela.report.known_demo, "simulate", fail)
        return CliRunner().invoke(main, [*options, "demo", "--known"])

    return run


@pytest.mark.parametrize(
    ("error", "code"),
    [(InputError("theta is odd; make it even"), 2), (BudgetError("too large; raise it"), 1)],
)
def test_our_errors_are_one_line(failing, error, code):
    result = failing(error)
    assert result.exit_code == code
    assert result.stderr == f"Error: {error}\n"
    assert result.stdout == ""


def test_other_errors_are_two_lines_and_say_how_to_see_more(failing):
    result = failing(ZeroDivisionError("division by zero"))
    assert result.exit_code == 1
    first, second = result.stderr.splitlines()
    assert first == "Error: ZeroDivisionError: division by zero"
    assert "--debug" in second


STRANGE = "a\x1b]0;owned\x07 \x9b31m \u202e \u2028 \ud800 né 日本 👩\u200d🔬"


@pytest.mark.parametrize("error", [InputError("no"), ZeroDivisionError("no")])
def test_debug_shows_the_traceback(failing, error):
    result = failing(error, "--debug")
    assert result.exit_code == (2 if isinstance(error, InputError) else 1)
    assert result.stderr.startswith("Traceback (most recent call last)")
    assert result.stderr.endswith(f"{type(error).__name__}: no\n")


@pytest.mark.parametrize("arguments", [(), ("--debug",)])
@pytest.mark.parametrize("kind", [InputError, ZeroDivisionError])
def test_errors_do_not_act_on_the_terminal(failing, kind, arguments):
    result = failing(kind(STRANGE), *arguments)
    assert r"a\x1b]0;owned\x07 \x9b31m \u202e \u2028 \ud800 né 日本 👩‍🔬" in result.stderr
    assert all(visible(line) == line for line in result.stderr.splitlines())


def test_arguments_do_not_act_on_the_terminal():
    for arguments in (["fit", "--\x1b[31m"], ["\x1b[31m"], ["--\x9bm"], ["fit", "-x\x1b"]):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 2
        assert visible(result.stderr) == result.stderr


def test_lack_of_memory_is_explained(failing):
    result = failing(MemoryError("an array of 80 GB"))
    assert result.exit_code == 1
    assert "not enough memory (an array of 80 GB). Read fewer items" in result.stderr


def test_an_interrupt_is_named(failing, monkeypatch, tmp_path):
    result = failing(KeyboardInterrupt())
    assert result.exit_code == 130
    assert result.output == "sequela: interrupted\n"

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sequela.report.run_fit", stop)
    result = CliRunner().invoke(main, ["fit", "samples.csv", "-o", str(tmp_path / "fit")])
    assert result.exit_code == 130
    assert result.stderr.startswith("sequela: interrupted; run the same command again")
    assert "--checkpoint" in result.stderr


def test_a_reader_that_left_is_no_error(failing):
    # In `sequela demo | head -1`, head closes the pipe. Then click ends the run without a message.
    result = failing(OSError(errno.EPIPE, "Broken pipe"))
    assert result.exit_code == 1
    assert result.output == ""


def test_notices_are_plain_lines_on_standard_error(monkeypatch):
    original = sequela.report.known_demo.simulate

    def slow(*arguments, **options):
        logging.getLogger("sequela").warning("compiling %s", "something")
        logging.getLogger("sequela").info("not for everybody")
        return original(*arguments, **options)

    monkeypatch.setattr(sequela.report.known_demo, "simulate", slow)
    # Run it twice: the second run must not have the log handlers of the first.
    for _ in range(2):
        result = CliRunner().invoke(main, ["demo", "--known", "--samples", "10", "--json"])
        assert result.stderr.splitlines().count("sequela: compiling something") == 1
        assert "not for everybody" not in result.output
        assert result.stdout.startswith("{")
    assert not logging.getLogger("sequela").handlers


def test_a_command_that_is_silent_for_a_moment_says_that_it_is_at_work(monkeypatch):
    begun = threading.Event()
    said = []
    monkeypatch.setattr("sequela.cli.output._SILENCE", 0.0)
    monkeypatch.setattr(
        "sequela.cli.output.say_line", lambda text: (said.append(text), begun.set())
    )

    @click.command()
    def slow():
        begun.wait(60)

    monkeypatch.setitem(main.commands, "slow", slow)
    assert CliRunner().invoke(main, ["slow"]).exit_code == 0
    assert said == ["sequela: slow begins ..."]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Return the path of a table with a column `age`, and the folder of a fit without it."""
    place = tmp_path_factory.mktemp("fitted")
    rows = [f"s{i},{i % 2},{i % 3 % 2},{40 + i % 7}" for i in range(40)]
    (place / "table.csv").write_text("\n".join(["sample,KRAS,APC,age", *rows]))
    arguments = ["fit", str(place / "table.csv"), "-o", str(place / "fit"), "--drop", "age"]
    done = CliRunner().invoke(main, [*arguments, "--no-check", "--figures", "none"])
    assert done.exit_code == 0, done.output
    return place / "table.csv", place / "fit"


def test_columns_that_the_fit_dropped_are_dropped_again(fitted, tmp_path):
    table, folder = fitted
    for command in ("time", "score"):
        done = CliRunner().invoke(main, [command, str(folder), str(table)])
        assert done.exit_code == 0, done.output
        assert "1 item dropped, because of --drop: age" in done.stderr
    other = tmp_path / "new.csv"
    other.write_text("sample,KRAS,APC\nx,1,0\n")  # a table without the column is read, too
    assert CliRunner().invoke(main, ["time", str(folder), str(other)]).exit_code == 0
    written = CliRunner().invoke(main, ["report", str(folder)])
    assert "because of --drop: age" in written.stderr  # `sequela report` itself has no --drop


def test_a_hint_names_only_options_of_the_command(fitted, tmp_path):
    table, folder = fitted
    model = tmp_path / "model.npz"
    model.write_bytes((folder / "model.npz").read_bytes())
    said = CliRunner().invoke(main, ["time", str(model), str(table)]).stderr
    assert "use --drop age" in said
    assert "--times" not in said
    said = CliRunner().invoke(main, ["fit", str(table), "-o", str(tmp_path / "fit")]).stderr
    assert "use --times age, otherwise --drop age" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", "TABLE"], "For example: -o results"),
        (["plot", "orders", "FOLDER"], "For example: -o figure.png"),
        (["plot", "order", "FOLDER", "-o", "x.png"], "Did you mean 'orders'?"),
        (["plot", "FOLDER", "orders", "-o", "x.png"], "Write KIND before MODEL"),
        (["next", "FOLDER", "--state", "APC KRAS"], "separate items by commas: --state 'APC,KRAS'"),
        (["time", "FOLDERS", "TABLE"], "fit'?"),
        (["fit", "TABLE", "-o", "x", "--drop", "gender"], "The columns are sample, KRAS, APC, age"),
        (["fit", "TABLE", "-o", "x"], "expected 0 or 1 (or true or false, yes or no)"),
    ],
)
def test_a_wrong_argument_is_explained_with_an_example(fitted, arguments, said):
    table, folder = fitted
    text = {"TABLE": str(table), "FOLDER": str(folder), "FOLDERS": f"{folder}s"}
    result = CliRunner().invoke(main, [text.get(part, part) for part in arguments])
    assert result.exit_code == 2
    assert said in result.stderr
