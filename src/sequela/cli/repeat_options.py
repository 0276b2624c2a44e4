"""The options that say where repeats run, for all commands that compute many fits."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sequela.cli.errors import INTERRUPTED
from sequela.cli.inputs import with_options
from sequela.cli.output import echo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["repeats_options", "resumable", "take_run_arguments"]

Command = TypeVar("Command", bound="Callable[..., Any]")


def repeats_options(command: Command) -> Command:
    """Add ``--backend``, ``--workers``, ``--cluster``, ``--index`` and ``--of``."""
    options = (
        click.option(
            "--backend",
            type=click.Choice(["threads", "processes", "dask"]),
            default=None,
            help="Where the repeats run; the results do not depend on it. Default: processes, or "
            "dask with --cluster.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            help="Number of repeats to run at once on this machine. Default: one per core.",
        ),
        click.option(
            "--cluster",
            metavar="ADDRESS",
            help="Dask scheduler whose workers run the repeats, such as tcp://node7:8786.",
        ),
        click.option(
            "--index",
            type=click.IntRange(min=0),
            help="With --of: run only this share of the repeats, counted from 0. In a SLURM "
            "script with #SBATCH --array=0-7: "
            "--index $SLURM_ARRAY_TASK_ID --of $SLURM_ARRAY_TASK_COUNT.",
        ),
        click.option(
            "--of",
            type=click.IntRange(min=1),
            help="Number of shares that the repeats are divided into.",
        ),
    )
    return with_options(command, *options)


def take_run_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """Check the options of `repeats_options`, and remove them from `given`.

    Return them as keyword arguments of `sequela.repeats.run`.
    """
    names = ("backend", "workers", "cluster", "index", "of")
    backend, workers, cluster, index, of = (given.pop(name) for name in names)
    if cluster is not None and backend not in (None, "dask"):
        raise click.UsageError(
            f"--cluster {cluster} and --backend {backend} cannot be used together; give only one"
        )
    if cluster is not None and workers is not None:
        raise click.UsageError(
            f"--workers {workers} is for this machine; the cluster {cluster} has its own workers. "
            "Leave one out: --workers or --cluster"
        )
    if (index is None) != (of is None):
        there, absent = ("--index", "--of") if of is None else ("--of", "--index")
        raise click.UsageError(
            f"{there} needs {absent}; to run one share of the repeats, give --index I --of N"
        )
    share = None
    if index is not None and of is not None:
        if index >= of:
            raise click.UsageError(
                f"--index is {index} and --of is {of}; expected an index from 0 to {of - 1}. "
                f"In a SLURM script use --array=0-{of - 1}"
            )
        share = (index, of)
    if backend is None:
        backend = "processes" if cluster is None else "dask"
    return {"backend": backend, "workers": workers, "cluster": cluster, "share": share}


@contextlib.contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Stop cleanly on Ctrl-C or SIGTERM (from a batch system), and print how to continue."""
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    try:
        yield
    except KeyboardInterrupt:
        done = len(list(folder.glob("[0-9]*.json")))
        echo(
            f"sequela: interrupted; {done} {'repeat is' if done == 1 else 'repeats are'} recorded "
            f"in {str(folder)!r}. Run the same command again to continue",
            err=True,
        )
        click.get_current_context().exit(INTERRUPTED)
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
