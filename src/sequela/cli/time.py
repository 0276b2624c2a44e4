"""``sequela time``: a pseudo-time for every sample."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sequela.cli.inputs import (
    check_output,
    data_argument,
    drop_option,
    force_option,
    load_data_for,
    load_model,
    model_argument,
    run_options,
)
from sequela.cli.output import echo, json_option, print_json, print_notices

if TYPE_CHECKING:
    from sequela.data.dataset import Dataset
    from sequela.model import Model

__all__ = ["time"]


@click.command(epilog="\b\nExample:\n  sequela time glioblastoma samples.csv -o times.csv")
@model_argument
@data_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write (CSV). Default: standard output.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=2),
    help="Number of orders drawn for each set that is too large for an exact answer.",
)
@drop_option
@force_option
@run_options
@json_option
def time(
    model_path: Path,
    data: Path,
    output: Path | None,
    drop: tuple[str, ...] | None,
    force: bool,
    settings: dict[str, Any],
    as_json: bool,
) -> None:
    """Estimate with MODEL when each sample of DATA was observed, and write a table (CSV).

    The table has the mean, standard deviation and quantiles of the observation time given the
    items of the sample, in units of the mean observation time. The column "se" is the Monte Carlo
    error of the mean (0 if the mean is exact). Samples with very many items appear to be observed
    late, even if they were not.
    """
    from sequela.questions.clock import pseudo_times
    from sequela.report.tables import records, write_table

    check_output(output, force=force)
    model = load_model(model_path)
    samples = load_data_for(model_path, data, drop=drop)
    _announce(model, samples, settings)
    found = pseudo_times(model, samples, **settings)
    if output is not None or not as_json:
        write_table(found, output)
        if output is not None:
            echo(f"sequela: written: {output}", err=True)
    if as_json:
        print_json(
            {
                "samples": records(found),
                "draws": found.attrs["draws"],
                "seed": found.attrs["seed"],
            }
        )


def _announce(model: Model, samples: Dataset, settings: dict[str, Any]) -> None:
    """Print the predicted computing time and memory if the answer takes long."""
    from sequela.likelihood.distinct import DistinctSamples
    from sequela.likelihood.forecast import LONG, forecast_histories
    from sequela.likelihood.parameters import Parameters
    from sequela.samples import as_samples
    from sequela.settings import read_settings

    how = read_settings(dict(settings), unused=("target_se",))
    distinct = DistinctSamples.of(as_samples(model, samples).without_times(), partial=True)
    cost = forecast_histories(Parameters.of(model), distinct, how.budget, quantiles=True)
    if cost.seconds / how.threads > LONG:
        print_notices([f"pseudo-times ({cost.describe(how.threads)}) ..."])
