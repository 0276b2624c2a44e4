"""Commands that other packages add to ``sequela``.

A package adds a command with an entry point of the group ``sequela.commands``, such as
``paper = "sequela_paper.command:paper"``. On the left is the name of the command, on the right the
module and the click command in it. ``sequela --help`` imports the module to show the first line of
the help of the command, so the module must not import packages that load slowly. If a command
cannot be loaded, it reports an error when it is used, and all other commands work.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

import click

from sequela.support.errors import InputError, SequelaError
from sequela.support.labels import visible

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint

__all__ = ["ExtensibleGroup"]

_GROUP = "sequela.commands"
# Commands of this project that are in another package. Each entry gives the name of the package and
# its folder in a checkout of sequela.
_ELSEWHERE = {"paper": ("sequela-paper", "./paper")}


class ExtensibleGroup(click.Group):
    """A group of commands to which installed packages can add more.

    If a package adds a command with the name of a built-in command, the built-in command is used.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands in alphabetical order."""
        return sorted({*super().list_commands(ctx), *_entry_points()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; None if neither this group nor a package has it."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        found = _entry_points().get(cmd_name)
        return None if found is None else _load(found)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command in the arguments; raise an error if its package is not installed."""
        name = args[0]
        known = name in _ELSEWHERE and not ctx.resilient_parsing
        if known and self.get_command(ctx, name) is None:
            package, folder = _ELSEWHERE[name]
            raise InputError(
                f"`sequela {name}` needs the package {package}, which is not installed. To install "
                f"{package}, run `python -m pip install {folder}` in a checkout of sequela"
            )
        return super().resolve_command(ctx, args)


@functools.cache
def _entry_points() -> Mapping[str, EntryPoint]:
    """Return the entry points of commands in installed packages, by name."""
    from importlib.metadata import entry_points  # this import is slow, and few commands need it

    try:
        return {one.name: one for one in entry_points(group=_GROUP)}
    except Exception as error:  # noqa: BLE001 - any package may have damaged metadata
        logging.getLogger("sequela").warning(
            "commands of other packages cannot be found: the metadata of an installed package "
            "cannot be read (%s: %s)", type(error).__name__, error,
        )  # fmt: skip
        return {}


def _load(found: EntryPoint) -> click.Command:
    try:
        command = found.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - code of another package
        return _broken(found, error)
    if not isinstance(command, click.Command):
        return _broken(found, TypeError(f"{found.value} is not a click command"))
    return command


def _broken(found: EntryPoint, error: BaseException) -> click.Command:
    """Return a command that takes any arguments and reports why `found` cannot be loaded."""
    reason = visible(f"{type(error).__name__}: {error}", one_line=True)
    package = "another package" if found.dist is None else f"the package {found.dist.name}"

    def report() -> None:
        raise SequelaError(
            f"the command {found.name!r} of {package} cannot be loaded ({reason}). Install the "
            f"package again; `sequela --debug {found.name}` shows where it fails"
        ) from error

    return click.Command(
        found.name,
        callback=report,
        short_help=f"(cannot be loaded: {reason})",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
