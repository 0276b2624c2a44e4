"""Generators of damaged files. Each yields pairs (description of the damage, content)."""

from __future__ import annotations

import copy
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

HOSTILE = [
    "\x1b]0;owned\x07", "\x9b31m", "\u202eab", "a\u2028b", "\u2066x", "a\x00b", "\x7f",
    "\ufeffb\ufeff",
]  # fmt: skip
UNUSUAL = [
    "né", "日本", "👩\u200d🔬", "❤️", "עברית", "x" * 300, "a b", "=1+1", "NA.x",
    "漢\u3000字", "می\u200cخواهم",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, -1, 1.5, 10**30, "x", "", "\x1b[31m", "\ud800", [], {}, [None], {"a": None},
    float("nan"), float("inf"),
]  # fmt: skip


def damaged_bytes(content: bytes, chance: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield the content with bytes cut off, left out, repeated, inserted or changed."""
    for _ in range(count):
        place = chance.randrange(len(content) + 1)
        end = min(len(content), place + chance.choice([1, 7, 100, 5000]))
        yield "cut", content[:place]
        yield "left out", content[:place] + content[end:]
        yield "repeated", content[:end] + content[place:]
        junk = chance.choice(
            [b"\0", b"\xff\xfe", b"\x1b[2J", b"\r", b'"', b"\t\t", b"\xc3", b"\x0c"]
        )
        yield "inserted", content[:place] + junk + content[place:]
        flipped = bytearray(content)
        for _ in range(chance.choice([1, 3, 20])):
            flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        yield "flipped", bytes(flipped)
    yield "empty", b""
    yield "reversed", content[::-1]
    yield "pickle", b"\x80\x04K\x01."


def damaged_json(document: Any, chance: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Yield the document with fields replaced, removed, repeated or deeply nested."""
    places = list(_places(document))
    for _ in range(count):
        place = chance.choice(places)
        value = chance.choice(VALUES)
        yield f"{_name(place)} = {value!r:.20}", json.dumps(_changed(document, place, value))
        yield f"without {_name(place)}", json.dumps(_changed(document, place, _REMOVE))
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    yield "deep", json.dumps(_changed(document, chance.choice(places), deep))
    yield "deeper", "[" * 10_000
    yield "a list", json.dumps([document])
    yield "twice", json.dumps(document)[:-1] + ', "format": "sequela"}'
    yield "hostile", json.dumps({**document, "format": "\x1b]0;owned\x07\u202e"})


_REMOVE = object()


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value[:4])
    for key, one in inner:
        yield (*at, key)
        if isinstance(one, dict | list):
            yield from _places(one, (*at, key))


def _changed(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    found = copy.deepcopy(document)
    inner = found
    for key in place[:-1]:
        inner = inner[key]
    if value is _REMOVE:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return found


def _name(place: tuple[Any, ...]) -> str:
    return ".".join(map(str, place))


def damaged_arrays(
    content: bytes, chance: random.Random, count: int
) -> Iterator[tuple[str, bytes]]:
    """Yield an archive with a changed array (its type, shape or entries) or with changed JSON."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    names = [name for name in arrays if arrays[name].dtype.kind != "U"]
    changes: dict[str, Any] = {
        "integers": lambda a: a.astype(np.int64),
        "single": lambda a: a.astype(np.float32),
        "complex": lambda a: a.astype(np.complex128),
        "text": lambda a: a.astype(str),
        "flat": lambda a: np.ravel(a),
        "smaller": lambda a: a[..., :-1] if a.ndim else np.zeros(2),
        "NaN": lambda a: np.full(a.shape, np.nan),
        "more": lambda a: a + 1 if a.dtype.kind in "iuf" else ~a,
    }
    for _ in range(count):
        name, kind = chance.choice(names), chance.choice(list(changes))
        yield f"{name}: {kind}", _archive({**arrays, name: changes[kind](arrays[name])})
        yield f"without {name}", _archive({k: v for k, v in arrays.items() if k != name})
    for what, text in damaged_json(json.loads(str(arrays["meta"])), chance, count):
        yield f"meta: {what}", _archive({**arrays, "meta": np.array(text)})


def _archive(arrays: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def hostile_text(content: str, mark: str) -> Iterator[tuple[str, bytes]]:
    """Yield a text file in which a label is replaced by a hostile text."""
    for text in HOSTILE:
        yield f"label {text!a}", content.replace(mark, text, 1).encode()


def unusual_text(content: str, mark: str) -> Iterator[tuple[str, bytes]]:
    """Yield a text file in which a label is replaced everywhere by an unusual but valid label."""
    for text in UNUSUAL:
        yield f"label {text!a:.30}", content.replace(mark, text).encode()
