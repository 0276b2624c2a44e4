"""Find the command-line option for an argument of a Python function, for use in messages."""

from __future__ import annotations

import shlex
from typing import Any

import click

__all__ = ["CommandNames"]

# Arguments of Python functions whose option has another name. Each entry maps the argument to the
# name of the option.
_ALIASES = {
    "random_state": "seed",
    "n_threads": "threads",
    "table_seconds": "table_budget",
    "n_penalties": "penalties",
    "sample_weight": "weights",
    "folder": "study_folder",
    "sample": "sample_column",
    "item": "item_column",
    "value": "value_column",
    "date": "date_column",
    "source": "data",
    "n_workers": "workers",
}
# Pairs (command, option) in which the option has the same name as an argument of a Python function,
# but another meaning.
_OTHER_MEANING = {
    ("plan", "samples"), ("plot", "samples"), ("plot", "items"), ("compare", "items"),
    ("repeat", "orders"), ("collect", "orders"), ("rivals", "pairs"),
}  # fmt: skip


class CommandNames:
    """Finds the option for an argument, in the running command or else in `sequela import`.

    Parameters
    ----------
    command : click.Command or None
        The command that runs.
    reader : click.Command or None
        The command that has all options about reading files.
    """

    def __init__(self, command: click.Command | None, reader: click.Command | None) -> None:
        self._name = "" if command is None else (command.name or "")
        self._own = {} if command is None else _options(command)
        self._reader = {} if reader is None or reader is command else _options(reader)
        self._reader_name = "" if reader is None else reader.name

    def owns(self, name: str) -> bool:
        """Return whether the running command itself has an option for an argument."""
        wanted = _ALIASES.get(name, name)
        return (self._name, wanted) not in _OTHER_MEANING and wanted in self._own

    def find(self, name: str, value: Any = None) -> str | None:
        """Return the option that sets an argument to a value; None if there is no such option."""
        wanted = _ALIASES.get(name, name)
        wanted = f"no_{wanted}" if value is False else wanted
        if (self._name, wanted) not in _OTHER_MEANING and wanted in self._own:
            return _with_value(self._own[wanted], value)
        if wanted in self._reader:
            found = _with_value(self._reader[wanted], value)
            return f"{found} (an option of `sequela {self._reader_name}`)"
        return None


def _options(command: click.Command) -> dict[str, str]:
    """Return a mapping from the name of each parameter to the longest spelling of its option."""
    return {
        part.name: max(part.opts, key=len) if isinstance(part, click.Option) else part.name.upper()
        for part in command.params
        if part.name is not None
    }


def _with_value(name: str, value: Any) -> str:
    if value is None or isinstance(value, bool):
        return name
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return f"{name} {shlex.quote(text):.80}"
