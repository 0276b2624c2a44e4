"""The report as one HTML page that needs no server and no network.

The page, its style and its script come ready-made with the package (sources in the folder ``page``
of the repository); the data are JSON inside it. Labels are text from strangers: as JSON they cannot
end the script element, and the page makes text nodes of them. The content security policy allows
the one script and the one style of the page by their checksums, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from sequela.report.html_payload import ReportContent, build_payload
from sequela.support.files import replacing

if TYPE_CHECKING:
    import os

__all__ = ["REPORT_NAME", "Report", "make_report", "render_page"]

REPORT_NAME = "report.html"
_NOTEBOOK_HEIGHT = 720


@dataclass(frozen=True)
class Report:
    """A report, ready to be saved or shown in a notebook.

    Attributes
    ----------
    payload : dict
        What the page shows, as plain values; see the page "The report" of the documentation.

    Examples
    --------
    >>> from sequela import example_theta
    >>> report = make_report(example_theta())
    >>> report.to_html().startswith("<!doctype html>")
    True
    """

    payload: dict[str, Any] = field(repr=False)

    def to_html(self) -> str:
        """Return the page."""
        return render_page(self.payload)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        with replacing(path) as file:
            file.write(self.to_html().encode())

    def _repr_html_(self) -> str:
        # A frame of its own: the page's style and policy stay inside it.
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
) -> Report:
    """Make a report of a model, with the samples that it was learned from if they are given.

    For the folder of a fit use `write_report`, which takes everything that is in it.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    data : Dataset, DataFrame, array, list of sets or None
        The samples.
    title : str
        Heading of the page.
    seed : int
        Seed of what is simulated for the page.
    threads : int or None
        None uses all cores that this process may use.

    Examples
    --------
    >>> from sequela import example_theta, simulate
    >>> data = simulate(example_theta(), 50, random_state=1).to_dataset()
    >>> report = make_report(example_theta(), data, title="An example")
    >>> len(report.payload["samples"]["labels"])
    50
    """
    content = _content(model, data, title, seed, threads)
    return Report(build_payload(content, seed=seed, threads=threads))


def _content(model: Any, data: Any, title: str, seed: int, threads: int | None) -> ReportContent:
    from sequela.model import as_model
    from sequela.questions.clock import pseudo_times
    from sequela.questions.order import order_matrix
    from sequela.report.html_verdicts import Verdicts
    from sequela.samples import as_samples

    chain = as_model(model)
    samples = None if data is None else as_samples(chain, data)
    items = list(chain.items if samples is None else samples.frequencies.nlargest(20).index)[:20]
    verdicts = Verdicts()
    if len(items) > 1:
        pairs = order_matrix(chain, items, random_state=seed, n_threads=threads).pairs()
        verdicts = Verdicts(
            pairs,
            command="sequela fit samples.csv -o fit\n"
            "sequela rivals fit samples.csv -o fit/rivals.csv\nsequela report fit",
        )
    times = None
    if samples is not None:
        times = pseudo_times(chain, samples, random_state=seed, n_threads=threads)
    return ReportContent(chain, samples, title, verdicts, pseudo_times=times)


def render_page(payload: dict[str, Any]) -> str:
    """Return the page with its data.

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
        "and makes no requests. The tables of the run are also in the CSV files beside it.</p>"
        "</noscript></div>\n"
        f'<script type="application/json" id="data">{_json(payload)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _json(payload: dict[str, Any]) -> str:
    """Return JSON in ASCII in which nothing can end a script element or begin a comment."""
    text = json.dumps(payload, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return (resources.files("sequela.report") / "page" / name).read_text("utf-8").strip()


def _checksum(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
