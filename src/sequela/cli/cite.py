"""``sequela cite``: what to cite."""

from __future__ import annotations

from typing import Any

import click

from sequela import __version__
from sequela.cli.output import json_option, print_json

__all__ = ["cite"]

_REFERENCES: list[dict[str, Any]] = [
    {
        "what": "the method",
        "type": "misc",
        "key": "gotovos2021scaling",
        "authors": [
            "Alkis Gotovos",
            "Rebekka Burkholz",
            "John Quackenbush",
            "Stefanie Jegelka",
        ],
        "title": "Scaling up Continuous-Time Markov Chains Helps Resolve Underspecification",
        "year": 2021,
        "where": {"eprint": "2107.02911", "archiveprefix": "arXiv"},
        "place": "arXiv:2107.02911",
    },
    {
        "what": "the model family",
        "type": "article",
        "key": "schill2020modelling",
        "authors": ["Rudolf Schill", "Stefan Solbrig", "Tilo Wettig", "Rainer Spang"],
        "title": "Modelling cancer progression using Mutual Hazard Networks",
        "year": 2020,
        "where": {
            "journal": "Bioinformatics",
            "volume": "36",
            "number": "1",
            "pages": "241--249",
            "doi": "10.1093/bioinformatics/btz513",
        },
        "place": "Bioinformatics 36(1), 241-249 (online 2019), doi:10.1093/bioinformatics/btz513",
    },
    {
        "what": "the software",
        "type": "misc",
        "key": "sequela",
        "authors": ["{The sequela authors}"],
        "title": f"sequela {__version__}",
        "year": 2026,
        "where": {"note": f"Python package, version {__version__}"},
        "place": "Python package",
    },
]


@click.command(epilog="\b\nExample:\n  sequela cite --bibtex >> references.bib")
@click.option("--bibtex", is_flag=True, help="Print BibTeX entries.")
@json_option
def cite(bibtex: bool, as_json: bool) -> None:
    """Print what to cite: the paper, the model family, and sequela itself."""
    if bibtex and as_json:
        raise click.UsageError("--bibtex and --json exclude each other; choose one.")
    if as_json:
        print_json({"references": [_plain(reference) for reference in _REFERENCES]})
    elif bibtex:
        click.echo("\n\n".join(map(_bibtex, _REFERENCES)))
    else:
        click.echo("\n\n".join(map(_text, _REFERENCES)))


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
