"""``sequela score``: how well a model explains data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sequela.cli.inputs import data_argument, load_data, load_model, model_argument, run_options
from sequela.cli.output import json_option, make_console, print_json

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["score"]


@click.command(epilog="\b\nExample:\n  sequela score glioblastoma held-out.csv --json")
@model_argument
@data_argument
@click.option("--times", help="The column with observation times, if DATA has one.")
@run_options
@json_option
def score(
    model: Path,
    data: Path,
    times: str | None,
    seed: int | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Print the mean log-likelihood of the samples in DATA under MODEL."""
    report = make_report(model, data, times, seed, threads)
    if as_json:
        print_json(report)
        return
    error = f" +- {report['se']:.2g}" if report["se"] else ""
    make_console().print(
        f"mean log-likelihood of {report['samples']} samples: {report['log_likelihood']:.6f}"
        f"{error} ({report['exact']} sets exact, {report['sampled']} sampled)",
        soft_wrap=True,
    )


def make_report(
    model: Path, data: Path, times: str | None, seed: int | None, threads: int | None
) -> dict[str, Any]:
    """Evaluate the model on the data."""
    from sequela.likelihood import evaluate
    from sequela.samples import as_samples

    chain = load_model(model)
    samples = as_samples(chain, load_data(data, times))
    found = evaluate(chain.theta, samples, gradient=False, random_state=seed, n_threads=threads)
    exact = int((found.methods == "exact").sum())
    return {
        "log_likelihood": found.value,
        "se": found.value_se,
        "samples": samples.n_samples,
        "exact": exact,
        "sampled": samples.n_samples - exact,
        "seed": found.seed,
    }
