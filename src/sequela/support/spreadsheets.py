"""Write labels so that spreadsheet programs show them as text and do not run them as formulas."""

from __future__ import annotations

import re

__all__ = ["guarded", "unguarded"]

# Matches the beginning of a text that a spreadsheet would read as a formula (full-width signs
# count, too). It also matches a tab or a line break at the beginning, because the text could then
# continue in another cell.
_LIVE = r"(?:\s*[=+\-@＝＋－＠]|[\t\r\n])"


def guarded(text: str) -> str:
    """Return the text; add an apostrophe in front if a spreadsheet would run it as a formula.

    A text that already begins like a guarded text gets one more apostrophe, so that `unguarded` can
    restore it.

    Examples
    --------
    >>> guarded("=1+1"), guarded("EGFR(A)")
    ("'=1+1", 'EGFR(A)')
    """
    return f"'{text}" if re.match(f"'*{_LIVE}", text) else text


def unguarded(text: str) -> str:
    """Return the original text, given the text that `guarded` made from it."""
    return text[1:] if re.match(f"'+{_LIVE}", text) else text
