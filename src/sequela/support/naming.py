"""Name an argument in a message as the reader gives it.

The same function can be called from Python, where an argument is ``drop=``, or by a command, where
it is the option ``--drop``. A message that tells the reader what to change names the argument with
the functions of this module, so that it is right in both places.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OptionNames", "argument", "either", "names_of_command", "option"]


class OptionNames(Protocol):
    """How a command names the arguments of Python functions."""

    def find(self, name: str, value: Any = None) -> str | None:
        """Return the option that sets an argument to a value; None if there is no such option."""


# Not a context variable: the threads of a command must see it too.
_commands: list[OptionNames] = []


@contextlib.contextmanager
def names_of_command(names: OptionNames) -> Iterator[None]:
    """Name arguments as options inside this block."""
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
    """Return an argument as the reader must write it, with its value if there is one.

    If the command has no such option, the text says that it belongs to Python.

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


def either(python: str, command: str) -> str:
    """Return the first text in Python, and the second one in a command.

    Examples
    --------
    >>> either("call fit() first", "run `sequela fit` first")
    'call fit() first'
    """
    return command if _commands else python
