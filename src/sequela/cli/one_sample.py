"""Options that describe one sample: its items, its missing items, or its name in a fit."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from sequela.cli.inputs import split_items

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sequela.data.dataset import Dataset
    from sequela.model import Model

__all__ = ["ChosenSample", "SampleChoice", "sample_options"]

Command = TypeVar("Command", bound="Callable[..., Any]")


@dataclass(frozen=True)
class ChosenSample:
    """What is known of a sample.

    Attributes
    ----------
    data : Dataset
        The sample, with its missing cells and known orders.
    present, missing : list of str
        The items that the sample has, and the items whose presence is not known.
    """

    data: Dataset
    present: list[str]
    missing: list[str]

    @property
    def known_orders(self) -> list[list[Any]]:
        """The statements about the order of its items: two items and a probability."""
        return [list(statement) for row in self.data.orders or () for statement in row]


@dataclass(frozen=True)
class SampleChoice:
    """The options that describe one sample.

    Attributes
    ----------
    option : str
        The option that gives the present items, such as ``--given``.
    present, missing : list of str or None
        The items of this option, and those of ``--missing``. None if the option was not given.
    name : str or None
        The name of ``--sample``.
    """

    option: str
    present: list[str] | None
    missing: list[str] | None
    name: str | None

    def read(self, model: Model, folder: Path) -> ChosenSample:
        """Return the sample; a named sample is read from the folder of a fit."""
        from sequela.report.folder_answers import folder_sample
        from sequela.samples import as_samples

        if self.name is None:
            return _made_sample(model, self.present or [], self.missing or [], self.option)
        data = as_samples(model, folder_sample(folder, self.name, self.option))
        cells = data.values[:0] if data.missing is None else data.missing
        return ChosenSample(
            data,
            present=[model.items[j] for j in data.values[0].nonzero()[0]],
            missing=[model.items[j] for row in cells for j in row.nonzero()[0]],
        )


def sample_options(option: str, text: str) -> Callable[[Command], Command]:
    """Add the option for the present items, ``--missing`` and ``--sample``.

    The command receives them as one `SampleChoice`, in its argument `chosen`.

    Parameters
    ----------
    option : str
        The option for the present items.
    text : str
        Its help.
    """

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def collected(**given: Any) -> Any:
            present = split_items(given.pop("present"))
            missing, name = split_items(given.pop("missing")), given.pop("sample")
            if name is not None and (present or missing):
                other = option if present else "--missing"
                raise click.UsageError(f"{other} and --sample cannot be used together")
            return command(chosen=SampleChoice(option, present, missing, name), **given)

        options = (
            click.option(option, "present", help=text),
            click.option(
                "--missing",
                metavar="ITEMS",
                help="Items of which it is not known whether the sample has them, separated by "
                "commas.",
            ),
            click.option(
                "--sample",
                metavar="NAME",
                help=f"Instead of {option}: use what is known of this sample: its items, missing "
                "cells and known orders. MODEL must be the folder of a fit.",
            ),
        )
        with_options: Any = collected
        for one in reversed(options):
            with_options = one(with_options)
        return cast("Command", with_options)

    return add


def _made_sample(model: Model, present: list[str], missing: list[str], option: str) -> ChosenSample:
    import numpy as np

    from sequela.data.dataset import Dataset
    from sequela.questions.arguments import find_items
    from sequela.support.errors import InputError

    places = find_items(model, present, option)
    unknown = find_items(model, missing, "--missing")
    twice = [model.items[j] for j in unknown if j in places]
    if twice:
        raise InputError(
            f"{twice[0]!r} is in {option} and in --missing; expected each item in one of them"
        )
    row, cells = np.zeros((2, 1, model.n_items), dtype=np.bool_)
    row[0, places] = True
    cells[0, unknown] = True
    data = Dataset(row, items=model.items)
    return ChosenSample(
        data.with_missing(cells) if missing else data,
        present=[model.items[j] for j in places],
        missing=[model.items[j] for j in unknown],
    )
