"""``sequela demo``: from samples to orders, times and figures, on examples that come with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sequela.cli import demo_known
from sequela.cli.fit import make_report as make_fit
from sequela.cli.fit import read_formats
from sequela.cli.fit import show as show_fit
from sequela.cli.output import json_option, make_console, print_json, print_table

__all__ = ["demo"]

# The pair that the paper's Fig. 3 asks about.
_EARLY, _LATE = "EGFR(A)", "EGFR"
_PENALTY = 0.01


@click.command(epilog="\b\nExample:\n  sequela demo -o sequela-demo --seed 1")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("sequela-demo"),
    show_default=True,
    help="The folder to make.",
)
@click.option("--force", is_flag=True, help="Replace the folder of an earlier demo.")
@click.option("--figures", default="png", show_default=True, help="As for `sequela fit`.")
@click.option(
    "--known",
    is_flag=True,
    help="Instead: draw from a made-up model and compare with what is known. Writes no files.",
)
@click.option(
    "--samples",
    type=click.IntRange(1, 1_000_000),
    help="With --known: how many samples to draw. Default: 1000.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="The same seed gives the same numbers.",
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
    """Learn from samples that come with sequela, and leave model, tables and figures in a folder.

    The samples are simulated from a model that was learned on glioblastoma data: 50 alterations in
    400 samples. Nothing in them is a patient's. The same can be done with files of your own: see
    `sequela import` and `sequela fit`.
    """
    if known:
        found = demo_known.make_report(1000 if samples is None else samples, seed)
        print_json(found) if as_json else demo_known.show(found)
        return
    if samples is not None:
        raise click.UsageError("--samples is for --known; the other example has 400 samples")
    report = make_report(output, seed, force=force, figures=read_formats(figures))
    if as_json:
        print_json(report)
    else:
        show(report)


def make_report(
    output: Path, seed: int, *, force: bool, figures: tuple[str, ...]
) -> dict[str, Any]:
    """Fit the example, and ask which of two alterations came first."""
    from sequela.cli.fit import DEFAULTS
    from sequela.cli.inputs import load_model
    from sequela.data.examples import example_path
    from sequela.questions.order import order_probability
    from sequela.support.folders import check_folder

    check_folder(output, force=force)
    options = {**DEFAULTS, "penalty": _PENALTY, "seed": seed}
    fitted = make_fit(
        example_path("samples.csv"), output, options, force=force, figures=figures,
        threads=None, checkpoint=None, repeat=None,
    )  # fmt: skip
    asked = {}
    for name, path in (("learned", output), ("true", example_path("theta.csv"))):
        found = order_probability(load_model(path), _EARLY, _LATE, random_state=seed)
        asked[name] = {"probability": found.value, "se": found.se}
    return {"fit": fitted, "order": {"first": _EARLY, "then": _LATE, **asked}}


def show(report: dict[str, Any]) -> None:
    """Print the fit and the answer."""
    console = make_console()
    show_fit(report["fit"])
    order = report["order"]
    console.print(f"\nP({order['first']} before {order['then']}), among samples with both:")
    print_table(
        console,
        {"Model": False, "Probability": True},
        [
            ("learned from these samples", f"{order['learned']['probability']:.3f}"),
            ("the one that they were drawn from", f"{order['true']['probability']:.3f}"),
        ],
    )
    folder = report["fit"]["folder"]
    drawn = any(name.startswith("figures") for name in report["fit"]["files"])
    look = f"look at {folder}/figures, " if drawn else ""
    console.print(
        f'\nNext: {look}ask `sequela order {folder} "EGFR(A)" PTEN`, and cite: `sequela cite`',
        soft_wrap=True,
    )
