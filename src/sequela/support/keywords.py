"""Check keyword arguments, and collect options that belong together in one object.

A public function declares its options once, in a TypedDict (``**options: Unpack[Keywords]``). It
passes the options on as frozen dataclasses, which check the values. An unknown name is an error.
"""

from __future__ import annotations

import inspect
from dataclasses import fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from _typeshed import DataclassInstance

    Options = TypeVar("Options", bound=DataclassInstance)

__all__ = ["build_options", "check_keywords"]


def check_keywords(
    function: Callable[..., Any], given: Mapping[str, object], keywords: type[Any]
) -> None:
    """Raise a TypeError if a function was called with a keyword argument that it does not take.

    Parameters
    ----------
    function : callable
        The function that was called.
    given : mapping
        The ``**options`` that it received.
    keywords : TypedDict
        The ``**options`` that it accepts.

    Examples
    --------
    >>> from typing import TypedDict
    >>> class Keywords(TypedDict, total=False):
    ...     at_least: int
    >>> def read(path, *, times=None, **options):
    ...     check_keywords(read, options, Keywords)
    >>> read("table.csv", at_leest=3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: read() got an unexpected keyword argument 'at_leest'; did you mean 'at_least'? ...
    """
    names = keywords.__annotations__
    for name in given:
        if name not in names:
            parameters = inspect.signature(function).parameters.values()
            known = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD] + list(names)
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise TypeError(
                f"{function.__name__}() got an unexpected keyword argument {name!r}{hint} "
                f"Expected: {', '.join(known)}"
            )


def build_options(kind: type[Options], given: Mapping[str, Any], **more: Any) -> Options:
    """Return an instance of the dataclass `kind`, with the values of its fields in `given`.

    Names in `given` that are no fields of `kind` are ignored. `more` are values of further fields.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Levels:
    ...     high: int = 2
    ...     low: int = -2
    >>> build_options(Levels, {"high": 1, "at_least": 3})
    Levels(high=1, low=-2)
    """
    own = {f.name: given[f.name] for f in fields(kind) if f.name in given}
    return kind(**own, **more)
