"""The options of ``sequela import --table``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from sequela.cli.inputs import with_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from sequela.data.importing import Imported

__all__ = ["TABLE_OPTIONS", "read_one_table", "table_options"]

Command = TypeVar("Command", bound="Callable[..., Any]")

# The arguments of the command that only --table uses.
TABLE_OPTIONS = (
    *("times", "samples", "no_samples", "header", "no_header", "items_in_rows"),
    *("separator", "encoding", "missing"),
)


def table_options(command: Command) -> Command:
    """Add the options about the columns and cells of a table."""
    options = (
        click.option(
            "--times", metavar="COLUMN", help="With --table: column with the observation times."
        ),
        click.option("--samples", metavar="COLUMN", help="With --table: column with sample ids."),
        click.option(
            "--no-samples",
            is_flag=True,
            help="With --table: the table has no column of sample ids.",
        ),
        click.option("--header", is_flag=True, help="With --table: the first line has labels."),
        click.option(
            "--no-header", is_flag=True, help="With --table: the first line has no labels."
        ),
        click.option(
            "--items-in-rows",
            is_flag=True,
            help="With --table: each row is an item, and each column is a sample.",
        ),
        click.option(
            "--separator",
            metavar="CHARACTER",
            help="With --table: character between cells. Default: detected from the content.",
        ),
        click.option("--encoding", help="With --table: encoding, such as latin-1. Default: UTF-8."),
        click.option(
            "--missing",
            type=click.Choice(["keep", "absent", "refuse"]),
            help="With --table: what cells without a value mean. Default: NA is a missing cell, "
            "an empty cell is an error.",
        ),
    )
    return with_options(command, *options)


def read_one_table(given: dict[str, Any], selection: dict[str, Any]) -> Imported:
    """Read the table that the option ``--table`` names."""
    from sequela.data.tables import read_table

    for name in ("samples", "header"):
        if given[name] and given[f"no_{name}"]:
            raise click.UsageError(f"--{name} and --no-{name} cannot be used together")
    samples: str | bool | None = False if given["no_samples"] else given["samples"]
    header = True if given["header"] else False if given["no_header"] else None
    return read_table(
        given["table"], samples=samples, header=header, times=given["times"],
        items_in_rows=given["items_in_rows"], separator=given["separator"],
        encoding=given["encoding"], missing=given["missing"], **selection,
    )  # fmt: skip
