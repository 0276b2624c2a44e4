"""``sequela simulate``: draw samples from a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sequela.cli.inputs import (
    check_output,
    force_option,
    load_model,
    model_argument,
    run_options,
)
from sequela.cli.output import echo

__all__ = ["simulate"]


@click.command(epilog="\b\nExample:\n  sequela simulate glioblastoma -n 500 --seed 1 -o draws.csv")
@model_argument
@click.option(
    "-n",
    "--samples",
    type=click.IntRange(1, 10_000_000),
    required=True,
    help="Number of samples to draw.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write (CSV). Default: standard output.",
)
@click.option(
    "--sequences",
    is_flag=True,
    help="Write the order and the time of each arrival instead of a table of 0 and 1.",
)
@force_option
@run_options
def simulate(
    model_path: Path,
    samples: int,
    output: Path | None,
    sequences: bool,
    force: bool,
    settings: dict[str, Any],
) -> None:
    """Draw samples from MODEL, as a table of 0 and 1 with observation times (CSV).

    The seed is printed on standard error.
    """
    from sequela.report.tables import arrivals_table, samples_table, write_table
    from sequela.simulation import simulate as draw

    check_output(output, force=force)
    model = load_model(model_path)
    drawn = draw(model, samples, **settings)
    write_table(arrivals_table(drawn) if sequences else samples_table(drawn.to_dataset()), output)
    echo(f"sequela: seed {drawn.seed}", err=True)
