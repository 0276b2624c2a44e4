"""``sequela cite``: what to cite."""

from __future__ import annotations

from typing import Any

import click

from sequela.cli.output import echo, json_option, print_json
from sequela.report.citations import REFERENCES

__all__ = ["cite"]


@click.command(epilog="\b\nExample:\n  sequela cite --bibtex >> references.bib")
@click.option("--bibtex", is_flag=True, help="Print BibTeX entries.")
@json_option
def cite(bibtex: bool, as_json: bool) -> None:
    """Print what to cite: the paper, the model family, and sequela itself."""
    if bibtex and as_json:
        raise click.UsageError("--bibtex and --json cannot be used together; choose one.")
    if as_json:
        print_json({"references": [_plain(reference) for reference in REFERENCES]})
    elif bibtex:
        echo("\n\n".join(map(_bibtex, REFERENCES)))
    else:
        echo("\n\n".join(map(_text, REFERENCES)))


def _plain(reference: dict[str, Any]) -> dict[str, Any]:
    return {
        "what": reference["what"],
        "authors": [name.strip("{}") for name in reference["authors"]],
        "title": reference["title"],
        "year": reference["year"],
        "place": reference["place"],
    }


def _text(reference: dict[str, Any]) -> str:
    plain = _plain(reference)
    names = ", ".join(plain["authors"])
    return (
        f"For {plain['what']}:\n"
        f"  {names} ({plain['year']}).\n  {plain['title']}.\n  {plain['place']}."
    )


def _bibtex(reference: dict[str, Any]) -> str:
    fields = {
        "author": " and ".join(reference["authors"]),
        "title": f"{{{reference['title']}}}",
        "year": str(reference["year"]),
        **reference["where"],
    }
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@{reference['type']}{{{reference['key']},\n{lines}\n}}"
