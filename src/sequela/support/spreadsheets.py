"""Labels are text: how to write them so that no spreadsheet runs them."""

from __future__ import annotations

import re

__all__ = ["guarded", "unguarded"]

# What a spreadsheet takes for a formula or lets slip into the next cell, in full width too.
_LIVE = r"(?:\s*[=+\-@＝＋－＠]|[\t\r\n])"


def guarded(text: str) -> str:
    """Return the text with an apostrophe in front if a spreadsheet would run it.

    Texts that already look like guarded ones get one more, so that `unguarded` loses none.

    Examples
    --------
    >>> guarded("=1+1"), guarded("EGFR(A)")
    ("'=1+1", 'EGFR(A)')
    """
    return f"'{text}" if re.match(f"'*{_LIVE}", text) else text


def unguarded(text: str) -> str:
    """Return what `guarded` was given."""
    return text[1:] if re.match(f"'+{_LIVE}", text) else text
