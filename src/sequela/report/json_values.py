"""Convert reports to plain values that JSON can represent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any

__all__ = ["plain_values"]


def plain_values(value: Any) -> Any:
    """Turn dataclasses into dictionaries, tuples into lists and paths into text, at all levels.

    A field keeps its name, unless its metadata contains another name under the key "json". This is
    needed for names such as "from", which cannot be the name of a field in Python.

    Examples
    --------
    >>> from dataclasses import dataclass, field
    >>> @dataclass(frozen=True)
    ... class Effect:
    ...     source: str = field(metadata={"json": "from"})
    ...     sizes: tuple[int, ...]
    >>> plain_values(Effect("a", (1, 2)))
    {'from': 'a', 'sizes': [1, 2]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {
            part.metadata.get("json", part.name): plain_values(getattr(value, part.name))
            for part in fields(value)
        }
    if isinstance(value, Mapping):
        return {key: plain_values(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [plain_values(inner) for inner in value]
    return str(value) if isinstance(value, PurePath) else value
