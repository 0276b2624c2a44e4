"""Normalise, check and escape labels and other text from users and files.

The same rules apply to labels from tables, model files, plans and Python code. All text that is
printed to a terminal passes through `visible`. So text from a file cannot move the cursor, change
the title of the window or reverse the direction of writing.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["compose", "compose_all", "find_disguised", "find_unfit", "visible"]

# Characters that join their neighbours: parts of emoji, and of words in Persian and in languages of
# India.
_JOINERS = "\u200c\u200d"
# Signs that are written before numbers in Arabic and Syriac. They are visible, although Unicode
# calls their category "format".
_DRAWN = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2"
_HIDDEN_KINDS = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# The flags of England, Scotland and Wales. Each is written as a black flag, invisible letters and
# an invisible end mark.
_TAGGED_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,30}\U000e007f")
_SELECTORS = {*map(chr, range(0xFE00, 0xFE10)), *_JOINERS}


def compose(text: str) -> str:
    r"""Return the composed form (NFC) of a text: a letter and its accent become one character.

    Examples
    --------
    >>> compose("ne\u0301") == "n\xe9"
    True
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def compose_all(labels: Iterable[str]) -> list[str]:
    r"""Return the composed form of every label.

    Examples
    --------
    >>> compose_all(["a", "e\u0301"])
    ['a', 'é']
    """
    return [compose(label) for label in labels]


def visible(text: str, *, one_line: bool = False) -> str:
    r"""Return the text with control characters and invisible characters escaped.

    Accents, other scripts and emoji stay unchanged. Line breaks and tabs stay unchanged, too,
    unless `one_line` is True.

    Parameters
    ----------
    text : str
        Any text, for example from a file.
    one_line : bool
        Whether line breaks and tabs are escaped too.

    Examples
    --------
    >>> visible("a\x1b]0;owned\x07\u202eb"), visible("né 日本 👩‍🔬")
    ('a\\x1b]0;owned\\x07\\u202eb', 'né 日本 👩‍🔬')
    """
    plain = text if one_line else text.replace("\n", "").replace("\t", "")
    if plain.isascii() and plain.isprintable():
        return text
    kept = "" if one_line else "\n\t"
    parts, end = [], 0
    for flag in _TAGGED_FLAG.finditer(text):
        parts += [_escaped(text[end : flag.start()], kept), flag.group()]
        end = flag.end()
    return "".join([*parts, _escaped(text[end:], kept)])


def _escaped(text: str, kept: str) -> str:
    return "".join(
        ascii(x)[1:-1] if _is_hidden(x) and x not in kept and x not in _JOINERS else x for x in text
    )


def _is_hidden(character: str) -> bool:
    """Tell whether a character is invisible, or changes how the text around it is shown."""
    return (
        unicodedata.category(character) in _HIDDEN_KINDS and character not in _DRAWN
    ) or _is_no_character(character)


def _is_no_character(character: str) -> bool:
    """Tell whether Unicode will never assign this code point to a character."""
    code = ord(character)
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def find_unfit(labels: Sequence[str]) -> tuple[int, str] | None:
    r"""Return the first unusable label, as (its position, the reason); None if all can be used.

    Examples
    --------
    >>> find_unfit(["TP53", "a\tb"])
    (1, "contains '\\t', which cannot be printed")
    >>> find_unfit(["TP53", "né", "日本", "👩‍🔬"]) is None
    True
    """
    whole = "".join(labels)
    if whole.isascii() and whole.isprintable():
        return None
    for k, label in enumerate(labels):
        reason = _reason(label)
        if reason is not None:
            return k, reason
    return None


def _reason(label: str) -> str | None:
    if label.isprintable():
        return None
    rest = _TAGGED_FLAG.sub("\U0001f3f4", label)
    for k, x in enumerate(rest):
        if x in _JOINERS:
            # Next to an ASCII character, a joiner is invisible and has no effect. So two labels
            # that differ in such a joiner look the same.
            around = (rest[k - 1 : k], rest[k + 1 : k + 2])
            if not all(around) or any(y.isascii() for y in around):
                return f"contains {x!a}, an invisible character"
        elif "\ud800" <= x <= "\udfff":
            return f"contains {x!a}, half of a character (a lone surrogate)"
        elif _is_hidden(x) or unicodedata.category(x) == "Co":
            what = " (a line break)" if x in "\n\r" else ""
            return f"contains {x!a}{what}, which cannot be printed"
    return None


def find_disguised(labels: Sequence[str]) -> tuple[int, int] | None:
    r"""Return the positions of two labels that differ but look the same; None if there are none.

    Such labels differ in how accents are composed, in the kind of space, or in invisible
    characters.

    Examples
    --------
    >>> find_disguised(["n\xe9", "x", "ne\u0301"]), find_disguised(["a b", "a\xa0b"])
    ((0, 2), (0, 1))
    """
    if all(map(str.isascii, labels)):
        return None
    seen: dict[str, int] = {}
    for k, label in enumerate(labels):
        looks = label if label.isascii() else _look(label)
        first = seen.setdefault(looks, k)
        if first != k and labels[first] != label:
            return first, k
    return None


def _look(label: str) -> str:
    kept = (" " if unicodedata.category(x) == "Zs" else x for x in label if x not in _SELECTORS)
    return unicodedata.normalize("NFC", "".join(kept))
