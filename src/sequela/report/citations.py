"""What to cite: the method, the model family, and the software."""

from __future__ import annotations

from typing import Any

from sequela import __version__

__all__ = ["REFERENCES", "citation_texts"]

REFERENCES: list[dict[str, Any]] = [
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


def citation_texts() -> list[str]:
    """Return one line of text per reference.

    Examples
    --------
    >>> len(citation_texts())
    3
    """
    lines = []
    for reference in REFERENCES:
        names = ", ".join(name.strip("{}") for name in reference["authors"])
        lines.append(
            f"For {reference['what']}: {names} ({reference['year']}). {reference['title']}. "
            f"{reference['place']}."
        )
    return lines
