"""``sequela subtypes``: test whether the samples come from two subtypes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sequela.cli.inputs import (
    check_output,
    data_argument,
    drop_option,
    force_option,
    load_data,
    most_frequent_option,
    run_options,
)
from sequela.cli.output import json_option, make_console, print_json

if TYPE_CHECKING:
    from sequela.questions.subtype_test import SubtypeTest

__all__ = ["subtypes"]


@click.command(epilog="\b\nExample:\n  sequela subtypes samples.csv --penalty 0.01 -o members.csv")
@data_argument
@click.option(
    "--penalty",
    type=float,
    default=0.01,
    show_default=True,
    help="Weight of the L1 penalty on interactions, as in `sequela fit`.",
)
@click.option(
    "--simulations",
    type=click.IntRange(min=1),
    default=99,
    show_default=True,
    help="Number of simulated data sets. The smallest possible p is 1 / (simulations + 1).",
)
@click.option(
    "--starts",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Number of starts of each mixture.",
)
@most_frequent_option
@drop_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Table to write: the probability of each sample to belong to each subtype.",
)
@force_option
@run_options
@json_option
def subtypes(
    data: Path, output: Path | None, force: bool, settings: dict[str, Any], as_json: bool,
    **asked: Any,
) -> None:  # fmt: skip
    """Test whether the samples in DATA come from two subtypes with different models.

    A mixture of two models is compared with one model. p is the share of data sets, simulated from
    one model, for which a mixture is better by at least as much as for DATA. A small p means that
    one model does not describe the samples. With a few hundred samples, most mixtures are not
    noticed.
    """
    from sequela.questions.subtype_test import subtype_test

    check_output(output, force=force)
    samples = load_data(
        data, most_frequent=asked.pop("most_frequent"), drop=asked.pop("drop"), to_learn=True
    )
    test = subtype_test(samples, **asked, **settings)
    if output is not None:
        from sequela.report.tables import write_table

        write_table(test.membership.rename_axis("sample"), output)
    if as_json:
        print_json(make_report(test, output))
        return
    console = make_console()
    console.print(f"{test.verdict[0].upper()}{test.verdict[1:]}.", soft_wrap=True)
    console.print(f"\n{len(test.simulated)} simulated data sets, seed {test.seed}", soft_wrap=True)
    if output is not None:
        console.print(f"written: {output}", soft_wrap=True)


def make_report(test: SubtypeTest, output: Path | None) -> dict[str, Any]:
    """Return the result of the test as plain values."""
    return {
        "p": test.p,
        "gain": test.gain,
        "simulated": test.simulated.tolist(),
        "shares": list(test.shares),
        "verdict": test.verdict,
        "written": None if output is None else str(output),
        "seed": test.seed,
    }
