"""The report as one HTML page that needs no server and no network.

The script and the style of the page are built in advance and come with the package. Their sources
are in the folder ``page`` of the repository. The data are JSON inside the page. Labels are
untrusted text. Therefore the JSON is escaped, so that a label cannot end the script element, and
the page shows labels as text nodes. The content security policy contains the checksums of this
script and this style. The browser then refuses all other scripts and styles.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

from sequela.report.html_cohorts import ComparedCohort
from sequela.report.html_payload import build_payload
from sequela.support.errors import InputError
from sequela.support.files import replacing

if TYPE_CHECKING:
    import os

    import pandas as pd

__all__ = ["REPORT_NAME", "Report", "make_report", "render_page"]

REPORT_NAME = "report.html"
_NOTEBOOK_HEIGHT = 720


@dataclass(frozen=True)
class Report:
    """A report, ready to be saved or shown in a notebook.

    Attributes
    ----------
    payload : dict
        The data of the page, as plain values; see the page "The report" of the documentation.

    Examples
    --------
    >>> from sequela import example_theta
    >>> report = make_report(example_theta())
    >>> report.to_html().startswith("<!doctype html>")
    True
    """

    payload: dict[str, Any] = field(repr=False)

    def to_html(self) -> str:
        """Return the page as HTML."""
        return render_page(self.payload)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, completely or not at all."""
        with replacing(path) as file:
            file.write(self.to_html().encode())

    def _repr_html_(self) -> str:
        # Show the page in a frame, so that its style and its security policy do not affect the
        # notebook.
        page = html.escape(self.to_html(), quote=True)
        return (
            f'<iframe srcdoc="{page}" width="100%" height="{_NOTEBOOK_HEIGHT}" '
            'sandbox="allow-scripts allow-downloads allow-modals" '
            'title="sequela report" style="border:0"></iframe>'
        )


def make_report(
    model: Any,
    data: Any = None,
    *,
    title: str = "Model",
    seed: int = 0,
    threads: int | None = None,
    clinical: pd.DataFrame | None = None,
    compare: Mapping[str, Any] | None = None,
) -> Report:
    """Make a report of a model, with the samples that it was learned from if they are given.

    For the folder of a run use `write_report`, which also uses all tables in the folder.

    Parameters
    ----------
    model : Model, fitted SetChain, theta, or Posterior
        The model, or a posterior, which represents all plausible models.
    data : Dataset, DataFrame, array, list of sets or None
        The samples.
    title : str
        Heading of the page.
    seed : int
        Seed of the simulations that are made for the page.
    threads : int or None
        None uses all cores that this process may use.
    clinical : DataFrame or None
        Survival times of the samples, from `read_clinical`. With them, the report compares the
        survival of early and late samples.
    compare : mapping or None
        Another cohort to compare orders with: its name and its model, such as
        ``{"validation cohort": other_model}``.

    Examples
    --------
    >>> from sequela import example_theta, simulate
    >>> data = simulate(example_theta(), 50, random_state=1).to_dataset()
    >>> report = make_report(example_theta(), data, title="An example")
    >>> len(report.payload["samples"]["labels"])
    50
    """
    from sequela.report.html_content import model_content

    content = replace(
        model_content(model, data, title, seed=seed, threads=threads),
        clinical=clinical,
        comparison=_comparison(compare),
    )
    return Report(build_payload(content, seed=seed, threads=threads))


def _comparison(compare: Mapping[str, Any] | None) -> ComparedCohort | None:
    from sequela.model import as_model
    from sequela.posteriors.result import Posterior

    if not compare:
        return None
    if not isinstance(compare, Mapping) or len(compare) != 1:
        raise InputError(
            f"compare is {compare!r:.80}; expected one name with its model, such as "
            '{"validation cohort": model}'
        )
    name, other = next(iter(compare.items()))
    return ComparedCohort(other if isinstance(other, Posterior) else as_model(other), str(name))


def render_page(payload: dict[str, Any]) -> str:
    """Return the page with its data as HTML.

    Examples
    --------
    >>> page = render_page({"format": "sequela report", "title": "</script><b>"})
    >>> page.count("</script>"), "<b>" in page
    (2, False)
    """
    script, style = _asset("page.js"), _asset("page.css")
    policy = (
        f"default-src 'none'; script-src 'sha256-{_checksum(script)}'; "
        f"style-src 'sha256-{_checksum(style)}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    title = html.escape(str(payload.get("title", "Model"))[:200])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}: sequela report</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<div id="app"><noscript><p>This report needs JavaScript, which runs in the page itself '
        "and makes no requests. The tables of the run are also in the CSV files next to this page."
        "</p></noscript></div>\n"
        f'<script type="application/json" id="data">{_json(payload)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _json(payload: dict[str, Any]) -> str:
    """Return JSON in ASCII in which no text can end a script element or begin a comment."""
    text = json.dumps(payload, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return (resources.files("sequela.report") / "page" / name).read_text("utf-8").strip()


def _checksum(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
