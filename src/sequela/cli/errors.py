"""Turn an exception into one or two lines of text and an exit code."""

from __future__ import annotations

import contextlib
import errno
import traceback
from typing import TYPE_CHECKING, Any

import click

from sequela.cli.output import echo
from sequela.cli.plugins import ExtensibleGroup
from sequela.support.errors import InputError, SequelaError
from sequela.support.labels import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["INTERRUPTED", "Commands"]

BAD_INPUT = 2  # click uses the same exit code for a wrong option
FAILURE = 1
_LABELS = {"items", "first"}  # arguments of commands whose values are labels of items
# What to do after an interrupt, for commands that write a folder.
_AGAIN = {
    "fit": "run the same command again to start from the beginning. With --checkpoint FILE, a fit "
    "is saved while it runs, and the same command continues it",
    "posterior": "run the same command again, with --continue if the folder exists",
}
INTERRUPTED = 130  # the exit code that shells use for a program stopped by Ctrl-C


class Commands(ExtensibleGroup):
    """A group of commands that shows errors as messages, or as tracebacks with ``--debug``."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the arguments of the group; escape control characters in error messages."""
        with _visible_usage():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and report its errors."""
        try:
            with _visible_usage():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            echo(_about_interrupt(ctx.invoked_subcommand), err=True)
            ctx.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise  # click itself shows a message for these exceptions
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader of the output has closed the pipe; click exits without a message
            if ctx.params.get("debug"):
                echo(traceback.format_exc().rstrip(), err=True)
            else:
                _explain(error)
            ctx.exit(BAD_INPUT if isinstance(error, InputError) else FAILURE)


def _about_interrupt(command: str | None) -> str:
    """Return a text that says that a command was interrupted, and how to run it again."""
    how = _AGAIN.get(command or "")
    return f"sequela: interrupted{'' if how is None else f'; {how}'}"


@contextlib.contextmanager
def _visible_usage() -> Iterator[None]:
    """Escape control characters in the arguments that error messages of click quote."""
    try:
        yield
    except click.ClickException as error:
        error.message = visible(error.message + _label_hint(error) + _output_hint(error))  # type: ignore[misc]
        for name in ("option_name", "possibilities"):
            quoted: str | Sequence[str] | None = getattr(error, name, None)
            if isinstance(quoted, str):
                setattr(error, name, visible(quoted))
        raise


def _output_hint(error: click.ClickException) -> str:
    """Return an example if the required option --output is missing, or an empty text."""
    if (
        not isinstance(error, click.MissingParameter)
        or getattr(error.param, "name", "") != "output"
    ):
        return ""
    about = getattr(error.param, "help", None) or ""
    name = "results"
    if "CSV" in about or ".png" in about:
        name = "table.csv" if "CSV" in about else "figure.png"
    return f"For example: -o {name}"


def _label_hint(error: click.ClickException) -> str:
    """Return a hint if click may have read a label such as -18q as an option, or an empty text."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return ""
    labels = [
        part
        for part in error.ctx.command.params
        if isinstance(part, click.Argument) and part.name in _LABELS
    ]
    if not labels or error.option_name.startswith("--"):
        return ""
    return (
        " To name an item that begins with a hyphen, write -- before the items, as in `sequela "
        f"{error.ctx.info_name} ... -- -18q KRAS`."
    )


def _explain(error: Exception) -> None:
    prefix = click.style("Error:", fg="red")
    if isinstance(error, SequelaError):
        echo(str(error), prefix=f"{prefix} ", err=True)
    elif isinstance(error, MemoryError):
        echo(_out_of_memory(error), prefix=f"{prefix} ", err=True)
    elif isinstance(error, OSError) and error.strerror and error.filename is not None:
        echo(f"{str(error.filename)!r:.200}: {error.strerror}", prefix=f"{prefix} ", err=True)
    else:
        echo(f"{type(error).__name__}: {error}", prefix=f"{prefix} ", err=True)
        echo("This error is unexpected; `sequela --debug ...` shows the traceback.", err=True)


def _out_of_memory(error: MemoryError) -> str:
    """Return a message that says what did not fit into memory, if known, and what to do."""
    what = str(error) or "the system refused to allocate more"
    return (
        f"there is not enough memory ({what}). Read fewer items (--most-frequent) or samples, use "
        "fewer threads (--threads), or use a machine with more memory"
    )
