"""``sequela simulate``: draw samples from a model."""

from __future__ import annotations

from pathlib import Path

import click

from sequela.cli.inputs import (
    check_output,
    force_option,
    load_model,
    model_argument,
    run_options,
)

__all__ = ["simulate"]


@click.command(epilog="\b\nExample:\n  sequela simulate glioblastoma -n 500 --seed 1 -o draws.csv")
@model_argument
@click.option("-n", "--samples", type=click.IntRange(1, 10_000_000), required=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Default: standard output.")
@click.option(
    "--sequences", is_flag=True, help="The order and time of each arrival instead of a table."
)
@force_option
@run_options
def simulate(
    model: Path,
    samples: int,
    output: Path | None,
    sequences: bool,
    force: bool,
    seed: int | None,
    threads: int | None,
) -> None:
    """Draw samples from MODEL, as a table of 0 and 1 with their observation times (CSV).

    The seed is reported on standard error.
    """
    import numpy as np
    import pandas as pd

    from sequela.report.tables import write_table
    from sequela.simulation import simulate as draw

    check_output(output, force=force)
    chain = load_model(model)
    drawn = draw(chain.theta, samples, items=chain.items, random_state=seed, n_threads=threads)
    index = pd.RangeIndex(samples, name="sample")
    if sequences:
        labels = np.array(chain.items, dtype=object)
        table = pd.DataFrame(
            {
                "position": np.arange(drawn.sequence.size)
                - np.repeat(drawn.indptr[:-1], drawn.set_sizes)
                + 1,
                "item": labels[drawn.sequence],
                "arrival": drawn.arrival_times,
                "observed": np.repeat(drawn.observation_times, drawn.set_sizes),
            },
            index=pd.Index(np.repeat(np.arange(samples), drawn.set_sizes), name="sample"),
        )
    else:
        data = drawn.to_dataset()
        table = pd.DataFrame(data.values.astype(np.int8), index=index, columns=list(data.items))
        table.insert(0, "time", drawn.observation_times)
    write_table(table, output)
    click.echo(f"sequela: seed {drawn.seed}", err=True)
