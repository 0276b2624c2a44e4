"""Read stored files. A dataclass defines the fields of a file, and every field is checked.

A file that was truncated, edited or written by another program may be well-formed JSON and still be
wrong. For example, it may contain null where a number is expected, or a list where an object is
expected. `read_fields` compares the content with the annotations of a dataclass. Its errors name
the file and the field, and say what was expected and what was found.
"""

from __future__ import annotations

import json
import math
import types
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from sequela.support.errors import InputError
from sequela.support.labels import visible

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

__all__ = ["AnyNumber", "Count", "Digest", "Place", "Rule", "parse_json", "read_fields"]

T = TypeVar("T")

_DEEPEST = 100  # largest number of nested levels; none of our files has more than ten
_SHOWN = 60


@dataclass(frozen=True)
class Rule:
    """A condition that the value of a field must meet, with its description for error messages."""

    test: Callable[[Any], bool]
    words: str


@dataclass(frozen=True)
class _NotFinite:
    """A mark on the type of a field: the number may be infinite or NaN."""


# Kinds of fields. A plain `float` must be finite, because NaN in a file is nearly always damage.
AnyNumber = Annotated[float, _NotFinite()]
Count = Annotated[int, Rule(lambda value: value >= 0, "an integer of at least 0")]
Digest = Annotated[
    str,
    Rule(
        lambda text: len(text) == 64 and set(text) <= set("0123456789abcdef"),
        "a checksum of 64 hexadecimal digits",
    ),
]


@dataclass(frozen=True)
class Place:
    """The file and field of a value that was read, and what users should do if it is wrong."""

    file: str | os.PathLike[str]
    remedy: str
    field: str = ""

    def at(self, name: str | int) -> Place:
        """Return the place of a field of this object (a name) or of an entry of this list."""
        inner = f"[{name}]" if isinstance(name, int) else f".{name}" if self.field else name
        return Place(self.file, self.remedy, f"{self.field}{inner}")

    def error(self, found: str, expected: str) -> InputError:
        """Return an error that says what was found in this field and what was expected."""
        where = f"its field {visible(self.field, one_line=True)!r:.120}" if self.field else "it"
        return InputError(
            f"the file {str(self.file)!r} cannot be used: {where} {found}, expected {expected}. "
            f"{self.remedy}"
        )

    def wrong(self, value: Any, expected: str) -> InputError:
        """Return an error that shows the wrong `value` of this field and what was expected."""
        return self.error(f"is {_shown(value)}", expected)


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} with {len(value)} entries"
    # An integer with thousands of digits is not shown, because converting it to text takes long.
    if isinstance(value, int) and abs(value) >> 200:
        return "an integer of very many digits"
    text = "null" if value is None else repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def parse_json(text: str | bytes, place: Place) -> Any:
    """Return the value of a JSON text; refuse invalid JSON, repeated names and deep nesting.

    Examples
    --------
    >>> parse_json('{"a": [1]}', Place("a.json", "Delete it"))
    {'a': [1]}
    """
    try:
        found = json.loads(text, object_pairs_hook=_unique)
    except RecursionError:
        raise place.error("is nested too deeply", f"at most {_DEEPEST} levels") from None
    except (ValueError, UnicodeError) as error:
        raise place.error(f"is not JSON ({error})", "a JSON text in UTF-8") from None
    if _depth(found) > _DEEPEST:
        raise place.error("is nested too deeply", f"at most {_DEEPEST} levels")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r:.60} occurs twice in an object")
    return found


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level and depth <= _DEEPEST:
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner.extend(one.values())
            elif isinstance(one, list):
                inner.extend(one)
        level, depth = inner, depth + 1
    return depth


def read_fields(kind: type[T], value: Any, place: Place) -> T:
    """Return the JSON object `value` as an instance of the dataclass `kind`, after checking it.

    The types of all fields are checked. Fields with a default may be missing. Unknown fields are
    ignored, unless the class has ``closed = True``.

    Examples
    --------
    >>> @dataclass
    ... class Point:
    ...     x: float
    ...     label: str | None = None
    >>> read_fields(Point, {"x": 1}, Place("a.json", "Delete it"))
    Point(x=1.0, label=None)
    >>> read_fields(Point, {"x": None}, Place("a.json", "Delete it"))
    Traceback (most recent call last):
        ...
    sequela.support.errors.InputError: the file 'a.json' cannot be used: its field 'x' is null, \
expected a number. Delete it
    """
    if not isinstance(value, dict):
        raise place.wrong(value, "an object")
    hints = _hints(kind)  # type: ignore[arg-type] # a class is hashable
    read: dict[str, Any] = {}
    for part in fields(kind):  # type: ignore[arg-type] # a dataclass
        if part.name in value:
            read[part.name] = _read(hints[part.name], value[part.name], place.at(part.name))
        elif part.default is MISSING and part.default_factory is MISSING:
            raise place.at(part.name).error("is missing", _words(hints[part.name]))
    if getattr(kind, "closed", False):
        surplus = sorted(map(str, value.keys() - read.keys()))
        if surplus:
            raise place.at(surplus[0]).error(
                "is unknown", "only fields that this version of sequela knows"
            )
    return kind(**read)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _read(hint: Any, value: Any, place: Place) -> Any:
    origin = get_origin(hint)
    if hint is Any:
        return value
    if is_dataclass(hint):
        return read_fields(hint, value, place)  # type: ignore[arg-type]
    if origin is Annotated:
        return _read_annotated(hint, value, place)
    if origin in (Union, types.UnionType):
        return _read_union(hint, value, place)
    if origin is Literal:
        if not any(value == one and type(value) is type(one) for one in get_args(hint)):
            raise place.wrong(value, _words(hint))
        return value
    if origin in (list, tuple, dict):
        return _read_many(origin, get_args(hint), value, place)
    return _read_plain(hint, value, place)


def _read_annotated(hint: Any, value: Any, place: Place) -> Any:
    inner, *rules = get_args(hint)
    if any(isinstance(rule, _NotFinite) for rule in rules):
        return _read_number(value, place, finite=False)
    found = _read(inner, value, place)
    for rule in rules:
        if isinstance(rule, Rule) and not rule.test(found):
            raise place.wrong(value, rule.words)
    return found


def _read_union(hint: Any, value: Any, place: Place) -> Any:
    """Return the value as the first type of the union that it fits.

    If the union consists of one type and null, the error message for a wrong value says what this
    type expects.
    """
    members = [one for one in get_args(hint) if one is not type(None)]
    if value is None and len(members) < len(get_args(hint)):
        return None
    if len(members) == 1:
        return _read(members[0], value, place)
    for one in members:
        try:
            return _read(one, value, place)
        except InputError:
            continue
    raise place.wrong(value, _words(hint))


def _read_many(origin: Any, inner: tuple[Any, ...], value: Any, place: Place) -> Any:
    if not isinstance(value, dict if origin is dict else list):
        raise place.wrong(value, "an object" if origin is dict else "a list")
    if isinstance(value, dict):
        return {name: _read(inner[1], one, place.at(name)) for name, one in value.items()}
    if origin is list or inner[1:] == (...,):
        found = [_read(inner[0], one, place.at(k)) for k, one in enumerate(value)]
        return found if origin is list else tuple(found)
    if len(value) != len(inner):
        raise place.wrong(value, f"a list of {len(inner)} entries")
    return tuple(
        _read(kind, one, place.at(k))
        for k, (kind, one) in enumerate(zip(inner, value, strict=True))
    )


def _read_plain(hint: Any, value: Any, place: Place) -> Any:
    if hint is float:
        return _read_number(value, place, finite=True)
    if hint is int and isinstance(value, bool):
        raise place.wrong(value, _words(hint))
    if not isinstance(value, hint):
        raise place.wrong(value, _words(hint))
    if hint is str and not _is_encodable(value):
        raise place.wrong(value, "text that can be written in UTF-8 (without lone surrogates)")
    return value


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_number(value: Any, place: Place, *, finite: bool) -> float:
    expected = "a number" if finite else "a number, infinity or NaN"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.wrong(value, expected)
    try:
        number = float(value)
    except OverflowError:
        raise place.wrong(value, expected) from None
    if finite and not math.isfinite(number):
        raise place.wrong(value, "a finite number")
    return number


_WORDS = {
    int: "an integer", float: "a number", str: "text", bool: "true or false",
    list: "a list", tuple: "a list", dict: "an object", type(None): "null",
}  # fmt: skip


def _words(hint: Any) -> str:
    """Return a description of the values that a field accepts."""
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *rules = get_args(hint)
        return next((rule.words for rule in rules if isinstance(rule, Rule)), _words(inner))
    if origin in (Union, types.UnionType):
        return " or ".join(_words(one) for one in get_args(hint))
    if origin is Literal:
        return "one of " + ", ".join(repr(one) for one in get_args(hint))
    return _WORDS.get(origin or hint, "an object")
