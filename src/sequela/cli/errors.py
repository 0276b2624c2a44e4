"""From an exception to one or two lines and an exit code."""

from __future__ import annotations

import errno
from typing import Any

import click

from sequela.cli.plugins import ExtensibleGroup
from sequela.support.errors import InputError, SequelaError

__all__ = ["INTERRUPTED", "Commands"]

BAD_INPUT = 2  # also click's code for a wrong option
FAILURE = 1
INTERRUPTED = 130  # what a shell reports for a program that was ended by Ctrl-C


class Commands(ExtensibleGroup):
    """A group of commands whose errors are messages; with ``--debug`` they are tracebacks."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; report what it raises."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise  # click shows its own
        except Exception as error:
            reader_left = isinstance(error, OSError) and error.errno == errno.EPIPE
            if ctx.params.get("debug") or reader_left:
                raise
            _explain(error)
            ctx.exit(BAD_INPUT if isinstance(error, InputError) else FAILURE)


def _explain(error: Exception) -> None:
    prefix = click.style("Error:", fg="red")
    if isinstance(error, SequelaError):
        click.echo(f"{prefix} {error}", err=True)
    else:
        click.echo(f"{prefix} {type(error).__name__}: {error}", err=True)
        click.echo("This error is unexpected; `sequela --debug ...` shows the traceback.", err=True)
