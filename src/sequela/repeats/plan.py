"""What is to be repeated: a function and its cases, each with a seed of its own."""

from __future__ import annotations

import hashlib
import importlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela._errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """A function and the cases to call it with.

    Parameters
    ----------
    task : str
        The function, as "package.module:name": every worker imports it by this name. It is called
        with the entries of a case and ``seed=`` as keyword arguments and returns a dictionary of
        plain values (numbers, texts, lists of them).
    cases : sequence of dict
        One for each repeat; plain JSON values.
    seed : int
        What the seed of every repeat is derived from.

    Examples
    --------
    >>> plan = Plan("builtins:dict", [{"n": 10}, {"n": 20}], seed=1)
    >>> len(plan), plan.seed_of(0) == plan.seed_of(1)
    (2, False)
    """

    task: str
    cases: Sequence[Mapping[str, Any]]
    seed: int

    def __post_init__(self) -> None:
        module, _, name = str(self.task).partition(":")
        if not module or not name:
            raise InputError(f"task is {self.task!r}; expected a function as 'package.module:name'")
        if not self.cases:
            raise InputError("a plan has no cases; expected at least one")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"seed is {self.seed!r}; expected an integer that is not negative")
        try:
            plain = json.loads(json.dumps([dict(case) for case in self.cases], allow_nan=False))
        except (TypeError, ValueError) as error:
            raise InputError(f"a case is not made of plain JSON values ({error})") from None
        if any("seed" in case for case in plain):
            raise InputError("a case has the entry 'seed', which the plan gives itself")
        object.__setattr__(self, "cases", tuple(plain))

    def __len__(self) -> int:
        """Return the number of repeats."""
        return len(self.cases)

    def seed_of(self, index: int) -> int:
        """Return the seed of one repeat: it depends on the plan's seed and the index alone."""
        words = np.random.SeedSequence(self.seed, spawn_key=(index,)).generate_state(2, np.uint32)
        return int(words[0]) << 31 ^ int(words[1])

    def function(self) -> Callable[..., Any]:
        """Import the task."""
        module, _, name = self.task.partition(":")
        try:
            found: Any = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError) as error:
            raise InputError(f"the task {self.task!r} cannot be imported ({error})") from None
        if not callable(found):
            raise InputError(f"the task {self.task!r} is not a function")
        return found  # type: ignore[no-any-return]

    def digest(self) -> str:
        """Return what tells this plan from others."""
        content = json.dumps([self.task, self.seed, list(self.cases)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()
