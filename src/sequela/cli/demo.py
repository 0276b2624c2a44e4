"""``sequela demo``: learn orders and times from built-in example data, and draw figures."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sequela.cli import demo_known
from sequela.cli.fit import execution_for, read_output
from sequela.cli.fit import show as show_fit
from sequela.cli.output import json_option, make_console, print_json, print_table

if TYPE_CHECKING:
    from sequela.report import Demo

__all__ = ["demo"]


@click.command(epilog="\b\nExample:\n  sequela demo -o sequela-demo --seed 1")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default="sequela-demo",
    show_default=True,
    help="Folder to create.",
)
@click.option("--force", is_flag=True, help="Replace the folder of an earlier demo.")
@click.option(
    "--figures",
    default="png",
    show_default=True,
    help="Formats of the figures, separated by commas: png, svg, pdf; or none.",
)
@click.option(
    "--known",
    is_flag=True,
    help="Use samples that are drawn from a small known model, not the built-in samples, and "
    "compare the results with this model. Writes no files.",
)
@click.option(
    "--samples",
    type=click.IntRange(1, 1_000_000),
    help="With --known: number of samples to draw. Default: 1000.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Random seed; the same seed gives the same numbers.",
)
@json_option
def demo(
    output: Path,
    force: bool,
    figures: str,
    known: bool,
    samples: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Learn from built-in samples, and write the model, tables and figures to a folder.

    The samples are simulated from a model that was learned on glioblastoma data: 50 alterations in
    400 samples, none of which is a real patient. For your own files, see `sequela import` and
    `sequela fit`.
    """
    if known:
        from sequela.report import run_known_demo

        truth = run_known_demo(1000 if samples is None else samples, seed=seed)
        print_json(truth.to_json()) if as_json else demo_known.show(truth)
        return
    if samples is not None:
        raise click.UsageError(
            "--samples needs --known; the demo without --known always has 400 samples"
        )
    written = read_output(figures, force=force)
    from sequela.report import run_demo

    found = run_demo(output, seed=seed, output=written, execution=execution_for())
    print_json(found.to_json()) if as_json else show(found)


def show(found: Demo) -> None:
    """Print the fit, and the probability of one order in the learned and in the true model."""
    console = make_console()
    show_fit(found.fit)
    console.print(f"\nP({found.first} before {found.then}), among samples with both:")
    print_table(
        console,
        {"Model": False, "Probability": True},
        [
            ("learned from these samples", f"{found.learned.value:.3f}"),
            ("the model that drew the samples", f"{found.true.value:.3f}"),
        ],
    )
    folder = shlex.quote(str(found.fit.folder))
    samples = shlex.quote(str(found.fit.folder / "samples.csv"))
    certainty = shlex.quote(f"{found.fit.folder}-certainty")
    console.print(
        f'\nNext: run `sequela order {folder} "EGFR(A)" PTEN`, or average the '
        f"probabilities over all plausible models: `sequela posterior {samples} -o {certainty} "
        "--most-frequent 20` (some minutes). To cite: `sequela cite`",
        soft_wrap=True,
    )
    report = (found.fit.folder / "report.html").absolute()
    console.print(f"\nOpen the report in a browser: {report}", soft_wrap=True)
