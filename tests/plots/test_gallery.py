"""The gallery of the web site has every figure, with the code that draws it."""

from __future__ import annotations

import re
from pathlib import Path

from sequela import plots

GALLERY = Path(__file__).parents[2] / "docs" / "gallery.md"


def test_every_figure_is_drawn_in_the_gallery():
    text = GALLERY.read_text("utf-8")
    cells = re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    drawn = {name for cell in cells for name in re.findall(r"\bplots\.(plot_\w+)\(", cell)}
    assert drawn == {name for name in plots.__all__ if name.startswith("plot_")}
