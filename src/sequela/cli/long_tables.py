"""The options of ``sequela import --long``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sequela.cli.inputs import split_items, with_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from sequela.data.importing import Imported

__all__ = ["LONG_OPTIONS", "long_options", "read_long_tables"]

Command = TypeVar("Command", bound="Callable[..., Any]")

# The arguments of the command that only --long uses.
LONG_OPTIONS = (
    *("preset", "sample_column", "item_column", "value_column", "date_column", "present"),
    *("groups", "unlisted", "orders_file"),
)


def long_options(command: Command) -> Command:
    """Add the options about the columns and cells of a long table."""
    options = (
        click.option(
            "--preset",
            type=click.Choice(["amrfinderplus", "hamronization", "diagnoses"]),
            help="With --long: the kind of table, which determines its columns.",
        ),
        click.option(
            "--sample-column", metavar="COLUMN", help="With --long: column with the sample ids."
        ),
        click.option("--item-column", metavar="COLUMN", help="With --long: column with the items."),
        click.option(
            "--value-column",
            metavar="COLUMN",
            help="With --long: column that says whether the item is present (0 or 1, NA where "
            "unknown).",
        ),
        click.option(
            "--date-column",
            metavar="COLUMN",
            help="With --long: column with the time at which the item was first present, as a date "
            "or a number. These times determine the order of the items.",
        ),
        click.option(
            "--orders",
            "orders_file",
            type=click.Path(path_type=Path),
            help="With --date-column: file to write with the known orders (sample, before, after).",
        ),
        click.option(
            "--present",
            metavar="VALUES",
            help="With --long: the values that mean that an item is present, separated by commas, "
            "such as R.",
        ),
        click.option(
            "--groups",
            type=click.Path(path_type=Path),
            help="With --long: table that assigns codes to groups, with the columns code and "
            "group.",
        ),
        click.option(
            "--unlisted",
            type=click.Choice(["absent", "missing"]),
            help="With --long: the state of an item that is not listed for a sample. Default: "
            "absent.",
        ),
    )
    return with_options(command, *options)


def read_long_tables(given: dict[str, Any], selection: dict[str, Any]) -> Imported:
    """Read the tables that the option ``--long`` names."""
    from sequela.data.long_tables import read_long

    if given["orders_file"] is not None and given["date_column"] is None:
        raise click.UsageError("--orders needs --date-column, which gives the order of the items")
    if given["incomplete"] is not None:
        selection = {**selection, "incomplete": given["incomplete"]}
    return read_long(
        list(given["long_tables"]), sample=given["sample_column"], item=given["item_column"],
        value=given["value_column"], date=given["date_column"], preset=given["preset"],
        present=split_items(given["present"]), groups=given["groups"],
        profiled=given["profiled"], unlisted=given["unlisted"] or "absent", **selection,
    )  # fmt: skip
