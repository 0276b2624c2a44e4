"""The bar for long work: silent where nobody watches, and where it is over in a moment."""

import io
import sys

import pytest

from sequela.support import progress as _progress
from sequela.support.progress import WorkProgress, lines_in_log


class Terminal(io.StringIO):
    def isatty(self):
        return True


def watch(monkeypatch, shown):
    """Let standard error be `shown`; in the test itself, for pytest sets it before each phase."""
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
    log = watch(monkeypatch, io.StringIO())
    monkeypatch.setattr(_progress, "_BETWEEN_LINES", 0.0)
    with lines_in_log(), WorkProgress("counting sheep", 2_000) as bar:
        bar.reach(1_500)
        monkeypatch.setattr(_progress, "_BETWEEN_LINES", 1e9)
        bar.advance()
    assert log.getvalue() == "counting sheep: 1,500 of 2,000 done\n"
    with lines_in_log(show=False), WorkProgress("counting sheep", 2) as bar:
        bar.advance()
    assert log.getvalue().count("\n") == 1
