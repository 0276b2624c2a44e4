"""A progress bar is shown only on a terminal, and only if the work takes long."""

import io
import re
import sys
import threading

import pytest

from sequela.support import progress as _progress
from sequela.support.progress import WorkProgress, lines_in_log, say_line


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Log(io.StringIO):
    """A stream that sets the event `written` whenever text is written to it."""

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def write(self, text):
        done = super().write(text)
        self.written.set()
        return done


class LoggedTerminal(Log):
    def isatty(self):
        return True


def watch(monkeypatch, shown):
    """Replace standard error by `shown`.

    This is not a fixture, because pytest replaces standard error again after fixtures have run.
    """
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return shown


def test_long_work_shows_what_is_done(monkeypatch):
    terminal = watch(monkeypatch, Terminal())
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    with WorkProgress("counting sheep", 4) as bar:
        for _ in range(2):
            bar.advance()
        bar.reach(3)
        bar._bar.refresh()
    assert "counting sheep" in terminal.getvalue()
    assert "75%" in terminal.getvalue()


def test_short_work_shows_nothing(monkeypatch):
    terminal = watch(monkeypatch, Terminal())
    with WorkProgress("counting sheep", 2) as bar:
        bar.advance()
        bar.advance()
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(("description", "kind"), [("counting sheep", io.StringIO), ("", Terminal)])
def test_nobody_watches_or_there_is_nothing_to_say(monkeypatch, description, kind):
    shown = watch(monkeypatch, kind())
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    with WorkProgress(description, 2) as bar:
        bar.advance()
    assert shown.getvalue() == ""


def test_plain_lines_in_a_log(monkeypatch):
    log = watch(monkeypatch, Log())
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(_progress, "_BETWEEN_LINES", 1e9)
    with lines_in_log(), WorkProgress("counting sheep", 2_000) as bar:
        # The line is printed before the first piece of the work is done.
        assert log.written.wait(60)
        bar.reach(1_500)
        bar._write_line()
    lines = ["counting sheep: 0 of 2,000 done", "counting sheep: 1,500 of 2,000 done"]
    assert log.getvalue().splitlines() == lines
    with lines_in_log(show=False), WorkProgress("counting sheep", 2) as bar:
        bar.advance()
    assert log.getvalue().splitlines() == lines


def test_a_bar_shows_while_the_first_piece_is_under_way(monkeypatch):
    terminal = watch(monkeypatch, LoggedTerminal())
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    with WorkProgress("counting sheep", 4):
        assert terminal.written.wait(60)
        # A notice is printed above the bar, in a separate line.
        say_line("compiling [bold]something[/bold]")
    shown = terminal.getvalue()
    line = next(x for x in re.split(r"[\r\n]", shown) if "compiling" in x)
    assert re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) == "compiling [bold]something[/bold]"
    say_line("after it")
    assert terminal.getvalue().endswith("after it\n")


def test_a_notebook_without_widgets_gets_plain_lines(monkeypatch):
    log = watch(monkeypatch, Log())
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    monkeypatch.setitem(sys.modules, "ipykernel", object())
    monkeypatch.setattr(_progress, "_has_widgets", lambda: False)
    with WorkProgress("counting sheep", 4):
        assert log.written.wait(60)
    assert log.getvalue().startswith("counting sheep: 0 of 4 done\n")
    assert "\x1b" not in log.getvalue()
    monkeypatch.setattr(_progress, "_has_widgets", lambda: True)
    assert _progress.somebody_watches()
