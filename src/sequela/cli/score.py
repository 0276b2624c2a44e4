"""``sequela score``: how well a model explains data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sequela.cli.inputs import (
    data_argument,
    drop_option,
    load_data_for,
    load_model,
    model_argument,
    run_options,
    times_option,
    weights_option,
)
from sequela.cli.output import json_option, make_console, print_json

if TYPE_CHECKING:
    from pathlib import Path

    from sequela.data.dataset import Dataset
    from sequela.model import Model

__all__ = ["score"]


@click.command(epilog="\b\nExample:\n  sequela score glioblastoma held-out.csv --json")
@model_argument
@data_argument
@times_option
@weights_option
@drop_option
@run_options
@json_option
def score(
    model_path: Path,
    data: Path,
    times: str | None,
    weights: str | None,
    drop: tuple[str, ...] | None,
    settings: dict[str, Any],
    as_json: bool,
) -> None:
    """Print the mean log-likelihood of the samples in DATA under MODEL."""
    samples = load_data_for(model_path, data, times=times, weights=weights, drop=drop)
    report = make_report(load_model(model_path), samples, settings)
    if as_json:
        print_json(report)
        return
    error = f" +- {report['se']:.2g}" if report["se"] else ""
    make_console().print(
        f"mean log-likelihood of {report['samples']} samples: {report['log_likelihood']:.6f}"
        f"{error} ({report['exact']} evaluated exactly, {report['sampled']} by Monte Carlo)",
        soft_wrap=True,
    )


def make_report(model: Model, data: Dataset, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the mean log-likelihood of the data, and how many samples were evaluated exactly."""
    from sequela.likelihood import evaluate
    from sequela.likelihood.ways import is_exact
    from sequela.samples import as_samples

    samples = as_samples(model, data)
    evaluation = evaluate(model, samples, gradient=False, **settings)
    exact = int(is_exact(evaluation.methods).sum())
    return {
        "log_likelihood": evaluation.value,
        "se": evaluation.value_se,
        "samples": samples.n_samples,
        "exact": exact,
        "sampled": samples.n_samples - exact,
        "seed": evaluation.seed,
    }
