"""Output functions that all commands share: JSON, tables, and notices on standard error."""

from __future__ import annotations

import json
import logging
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from sequela.support.labels import visible
from sequela.support.progress import bar_is_shown, lines_in_log, say_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rich.console import Console

__all__ = [
    "echo",
    "json_option",
    "make_console",
    "print_json",
    "print_notices",
    "print_table",
    "show_notices",
    "show_progress",
]

# The width of the output if it goes to a file or a pipe. It is large enough for every line of our
# tables.
_WIDTH_OFF_TERMINAL = 160
# A command that has printed nothing for this many seconds reports that it has started.
_SILENCE = 1.5

Command = TypeVar("Command", bound="Callable[..., Any]")


def echo(text: str, *, err: bool = False, prefix: str = "") -> None:
    """Print a line with control characters escaped, except those in `prefix`.

    Labels, file names and messages of other programs may contain control characters. Therefore
    commands print only with this function, `make_console` and `print_table`.
    """
    click.echo(f"{prefix}{visible(text)}", err=err)


def json_option(command: Command) -> Command:
    """Add ``--json`` to a command, as its argument `as_json`."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
    )(command)


def print_json(report: Mapping[str, Any]) -> None:
    """Print a report as one JSON object; NaN and infinity raise an error."""
    click.echo(json.dumps(report, indent=2, allow_nan=False))


def make_console() -> Console:
    """Return a console as wide as the terminal; without a terminal it prints plain text."""
    from rich.console import Console

    class SafeConsole(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            shown = [visible(x) if isinstance(x, str) else x for x in objects]
            super().print(*shown, **options)

    console = SafeConsole(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console = SafeConsole(highlight=False, markup=False, emoji=False, width=_WIDTH_OFF_TERMINAL)
    return console


def print_table(
    console: Console, columns: Mapping[str, bool], rows: Sequence[Sequence[str]]
) -> None:
    """Print rows under headings; `columns` maps each heading to True if its column is numeric."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for heading, numeric in columns.items():
        table.add_column(
            visible(heading, one_line=True), justify="right" if numeric else "left", no_wrap=numeric
        )
    for row in rows:
        table.add_row(*(visible(cell, one_line=True) for cell in row))
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())  # rich pads the last column with spaces


def print_notices(notices: Iterable[str]) -> None:
    """Print notices as lines on standard error."""
    for notice in notices:
        told()
        say_line(f"sequela: {notice}")


class _Notices(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        print_notices([record.getMessage()])


def show_notices(ctx: click.Context) -> None:
    """Print log messages of the package as plain lines on standard error until `ctx` closes.

    Python's warnings are printed as usual, but control characters in them are escaped, because a
    warning may quote a label.
    """
    log = logging.getLogger("sequela")
    handler = _Notices(logging.WARNING)
    log.addHandler(handler)
    ctx.call_on_close(lambda: log.removeHandler(handler))
    if not sys.stderr.isatty():
        ctx.with_resource(lines_in_log())
    before = warnings.showwarning
    warnings.showwarning = _show_warning
    ctx.call_on_close(lambda: setattr(warnings, "showwarning", before))


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001 - Python passes it
    line: str | None = None,
) -> None:
    echo(warnings.formatwarning(message, category, filename, lineno, line).rstrip(), err=True)


class _StartUp:
    """Reports that a command has started if the command prints nothing for `_SILENCE` seconds."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def begin(self, name: str) -> None:
        self.stop()
        self._timer = threading.Timer(_SILENCE, self._say, (name,))
        self._timer.daemon = True
        self._timer.start()

    def _say(self, name: str) -> None:
        if not bar_is_shown():
            say_line(f"sequela: {name} begins ...")

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_start_up = _StartUp()


def told() -> None:
    """Do not report any more that the command has started, because it now prints something."""
    _start_up.stop()


def show_progress(ctx: click.Context) -> None:
    """Show progress until `ctx` closes, as lines if there is no terminal.

    If the command prints nothing for `_SILENCE` seconds, also report that it has started.
    """
    ctx.with_resource(lines_in_log())
    _start_up.begin(ctx.invoked_subcommand or "the command")
    ctx.call_on_close(_start_up.stop)
