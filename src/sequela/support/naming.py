"""Name an argument in a message as the user writes it.

The same function can be called from Python, where an argument is written ``drop=``, or by a
command, where it is the option ``--drop``. A message that tells the user what to change takes the
name of the argument from the functions of this module. So the name is right in both cases.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OptionNames", "argument", "either", "has_option", "names_of_command", "option"]


class OptionNames(Protocol):
    """The options of a command that stand for the arguments of Python functions."""

    def find(self, name: str, value: Any = None) -> str | None:
        """Return the option that sets an argument to a value; None if there is no such option."""

    def owns(self, name: str) -> bool:
        """Return whether the running command itself has an option for an argument."""


# This is not a context variable, because all threads of a command must see its value.
_commands: list[OptionNames] = []


@contextlib.contextmanager
def names_of_command(names: OptionNames) -> Iterator[None]:
    """Inside this block, messages name the options of a command instead of Python arguments."""
    _commands.append(names)
    try:
        yield
    finally:
        _commands.remove(names)


def argument(name: str) -> str:
    """Return the name of an argument: ``tol`` in Python, ``--tol`` in a command.

    Examples
    --------
    >>> argument("tol")
    'tol'
    """
    found = _commands[-1].find(name) if _commands else None
    return name if found is None else found


def option(name: str, value: Any = None) -> str:
    """Return an argument as the user must write it, with its value if there is one.

    If a command is running but has no option for the argument, the text is the argument as written
    in Python, followed by "(in Python)".

    Examples
    --------
    >>> option("drop")
    'drop='
    >>> option("missing", "keep")
    "missing='keep'"
    """
    python = f"{name}=" if value is None else f"{name}={value!r:.80}"
    if not _commands:
        return python
    found = _commands[-1].find(name, value)
    return f"{python} (in Python)" if found is None else found


def has_option(name: str) -> bool:
    """Return whether the user can set an argument here: in Python, or in the running command.

    Examples
    --------
    >>> has_option("times")
    True
    """
    return not _commands or _commands[-1].owns(name)


def either(python: str, command: str) -> str:
    """Return the text `python` if Python code runs, and the text `command` if a command runs.

    Examples
    --------
    >>> either("call fit() first", "run `sequela fit` first")
    'call fit() first'
    """
    return command if _commands else python
