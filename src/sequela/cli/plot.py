"""``sequela plot``: one figure of a model, with or without data."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from sequela.cli.inputs import (
    check_output,
    drop_option,
    force_option,
    load_data_for,
    load_model,
    model_argument,
    run_options,
    split_items,
)
from sequela.cli.output import echo
from sequela.report.figures import FIGURES, FigureOptions, needs_data

__all__ = ["plot"]


class Kind(click.Choice):  # type: ignore[type-arg]
    """The kinds of figures; the error for an unknown kind names the most similar one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a kind, or fail with a hint."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            close = get_close_matches(str(value).casefold(), list(FIGURES), n=1)
            hint = f" Did you mean {close[0]!r}?" if close else " Write KIND before MODEL."
            raise click.BadParameter(error.message + hint, ctx, param) from None


def _kinds() -> str:
    """Return the list of all kinds of figures, for the help text."""
    lines = []
    for name, what in FIGURES.items():
        needs = ["DATA"] if needs_data(name) else []
        needs += ["--samples"] if name == "times" else []
        lines.append(f"  {name:14} {what}" + (f" ({', '.join(needs)})" if needs else ""))
    return "\n".join(lines)


@click.command(
    epilog=f"\b\nKinds:\n{_kinds()}\n\n"
    "\b\nExample:\n  sequela plot timeline glioblastoma samples.csv -o timeline.svg"
)
@click.argument("kind", type=Kind(list(FIGURES)), metavar="KIND")
@model_argument
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="File to write; its name ends in .png, .svg or .pdf.",
)
@click.option("--items", help="For orders, tree, paths, positions: items, separated by commas.")
@click.option("--samples", help="For times: ids of samples, separated by commas.")
@click.option(
    "--max-items",
    "--most",
    "max_items",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Show at most this many items or interactions.",
)
@drop_option
@force_option
@run_options
def plot(
    kind: str,
    model_path: Path,
    data: Path | None,
    output: Path,
    force: bool,
    settings: dict[str, Any],
    **shown: Any,
) -> None:
    """Draw a figure of MODEL. Some kinds of figures also need DATA."""
    from sequela.plots.style import load, save_figure
    from sequela.report.figures import draw_figure
    from sequela.report.folder_answers import folder_ranges
    from sequela.support.errors import InputError

    if output.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(
            f"{str(output)!r} has no known format; expected a name that ends in .png, .svg or .pdf"
        )
    check_output(output, force=force)
    if data is None and needs_data(kind):
        raise click.UsageError(f"`sequela plot {kind}` needs DATA: a table of samples")
    model = load_model(model_path)
    table = None if data is None else load_data_for(model_path, data, drop=shown["drop"])
    chosen = FigureOptions(
        items=_labels(shown["items"]),
        samples=_labels(shown["samples"]),
        max_items=shown["max_items"],
        seed=settings["random_state"] or 0,
        threads=settings["n_threads"],
        ranges=folder_ranges(model_path) if kind == "orders" else None,
    )
    axes = draw_figure(kind, model, table, chosen)
    save_figure(axes, output)
    load("matplotlib.pyplot").close(axes.figure)
    echo(f"written: {output}")


def _labels(text: str | None) -> tuple[str, ...] | None:
    labels = split_items(text)
    return None if labels is None else tuple(labels)
