"""A plan of repeats: a function, and the cases for which it is called. Each case has a seed."""

from __future__ import annotations

import hashlib
import importlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.data.dataset import Dataset
from sequela.repeats.data_file import fingerprint
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Plan", "find_function"]

_GIVEN = ("seed", "data")


@dataclass(frozen=True)
class Plan:
    """A function and the cases for which it is called.

    Parameters
    ----------
    task : str
        The name of a function, in the form "package.module:name". Every worker imports the function
        and calls it with keyword arguments: the entries of a case and of `common`, ``seed=`` and,
        if there are data, ``data=``. The function returns a dictionary of plain values (numbers,
        strings, lists of these).
    cases : sequence of dict
        One dictionary of plain JSON values per repeat.
    seed : int
        The seed from which the seed of each repeat is derived.
    common : dict
        Arguments of the function that are the same for all cases, as plain JSON values.
    data : Dataset or None
        Samples that all repeats read. They are written once, to the folder of the records. Each
        worker reads them once and compares their checksum with the checksum in the plan.
    warm_up : str or None
        The name of a function, in the same form as `task`. It prepares what repeats need, such as
        compiled code. The function is called once on each machine, before repeats start there,
        with the entries of `common` and, if there are data, ``data=``. It does not change results.

    Examples
    --------
    >>> plan = Plan("builtins:dict", [{"n": 10}, {"n": 20}], seed=1)
    >>> len(plan), plan.seed_of(0) == plan.seed_of(1)
    (2, False)
    """

    task: str
    cases: Sequence[Mapping[str, Any]]
    seed: int
    common: Mapping[str, Any] = field(default_factory=dict)
    data: Dataset | None = None
    warm_up: str | None = None

    def __post_init__(self) -> None:
        for argument in ("task", "warm_up"):
            name = getattr(self, argument)
            if name is not None and not all(str(name).partition(":")[::2]):
                raise InputError(
                    f"{argument} is {name!r}; expected a function as 'package.module:name'"
                )
        if not self.cases:
            raise InputError("a plan has no cases; expected at least one")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"seed is {self.seed!r}; expected an integer that is not negative")
        if self.data is not None and not isinstance(self.data, Dataset):
            raise InputError(f"data is a {type(self.data).__name__}; expected a Dataset or None")
        cases = [_plain(case, "a case") for case in self.cases]
        common = _plain(self.common, "common")
        for case in cases:
            both = sorted(common.keys() & case.keys())
            if both:
                raise InputError(
                    f"the entry {both[0]!r} is in common and in a case; remove it from one of them"
                )
        object.__setattr__(self, "cases", tuple(cases))
        object.__setattr__(self, "common", common)

    def __len__(self) -> int:
        """Return the number of repeats."""
        return len(self.cases)

    def seed_of(self, index: int) -> int:
        """Return the seed of one repeat, which depends only on the plan's seed and on the index."""
        words = np.random.SeedSequence(self.seed, spawn_key=(index,)).generate_state(2, np.uint32)
        return int(words[0]) << 31 ^ int(words[1])

    def function(self) -> Callable[..., Any]:
        """Import the task and return it."""
        return find_function(self.task)

    def digest(self) -> str:
        """Return a checksum that identifies this plan."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        # The checksum is computed only once: every record contains it, and if there are many cases
        # or samples, the computation takes long.
        parts: list[Any] = [self.task, self.seed, list(self.cases)]
        if self.common or self.data is not None:
            parts += [self.common, None if self.data is None else fingerprint(self.data)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _plain(entries: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return the entries as plain JSON values; raise an error if they are something else."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(entries), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} contains other values than plain JSON values ({error})") from None
    for name in _GIVEN:
        if name in plain:
            raise InputError(f"{what} has the entry {name!r}, which the plan sets; rename it")
    return plain


def find_function(name: str) -> Callable[..., Any]:
    """Import and return the function "package.module:name"."""
    module, _, inside = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in inside.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InputError(f"the task {name!r} cannot be imported ({error})") from None
    if not callable(found):
        raise InputError(f"the task {name!r} is not a function")
    return found  # type: ignore[no-any-return]
