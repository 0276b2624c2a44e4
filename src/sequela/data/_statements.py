"""Statements about the order of two items of a sample, and functions that read and check them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sequela.data._reading import listed, unknown
from sequela.support.errors import InputError
from sequela.support.validation import is_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import numpy.typing as npt

__all__ = [
    "OrderStatement",
    "OrdersLike",
    "closed",
    "find_cycle",
    "read_probability",
    "read_statements",
    "refuse_cycle",
]


class OrderStatement(NamedTuple):
    """The statement that one item of a sample arrived before another.

    Attributes
    ----------
    before, after : str
        Labels of two items that the sample has.
    probability : float
        The probability that the statement is right, above 0.5 and at most 1. Precisely, it is the
        probability that "before, then after" is reported if this is the true order. If the true
        order is the reverse, the same report has the probability 1 - `probability`. Different
        statements are assumed to be independent, given the true order of the items.

    Examples
    --------
    >>> OrderStatement("IDH1", "TP53")
    OrderStatement(before='IDH1', after='TP53', probability=1.0)
    """

    before: str
    after: str
    probability: float = 1.0


# The types that `Dataset(orders=...)` accepts: a mapping from sample ids to statements, or one
# entry per sample.
OrdersLike: TypeAlias = "Mapping[Any, Iterable[Any]] | Iterable[Iterable[Any] | None]"


def read_statements(
    given: OrdersLike | None,
    items: tuple[str, ...],
    samples: tuple[str, ...],
    values: npt.NDArray[np.bool_],
) -> tuple[tuple[OrderStatement, ...], ...] | None:
    """Return the checked statements of every sample; None if no sample has a statement."""
    if given is None:
        return None
    column = {label: j for j, label in enumerate(items)}
    found: list[tuple[OrderStatement, ...]] = []
    for i, statements in enumerate(_per_sample(given, samples)):
        where = f"orders of sample {samples[i]!r} (position {i})"
        read = tuple(_statement(s, where) for s in listed(statements or (), where))
        for statement in read:
            refuse_absent(statement, column, lambda j, i=i: bool(values[i, j]), where)  # type: ignore[misc]
        refuse_repeated(read, where)
        refuse_cycle(read, where)
        found.append(tuple(sorted(read)))
    return tuple(found) if any(found) else None


def _per_sample(given: Any, samples: tuple[str, ...]) -> list[Any]:
    if not isinstance(given, Mapping):
        rows = listed(given, "orders")
        if len(rows) != len(samples):
            raise InputError(
                f"orders has {len(rows)} entries for {len(samples)} samples; expected one "
                "collection of statements per sample (None where nothing is known), or a "
                "dictionary from sample ids to statements."
            )
        return rows
    by_id = {str(label): statements for label, statements in given.items()}
    known = set(samples)
    for label in by_id:
        if label not in known:
            raise InputError(
                f"orders: {unknown(label, samples)} is not among the {len(samples)} samples; see "
                "Dataset.samples."
            )
    return [by_id.get(label) for label in samples]


def _statement(given: Any, where: str) -> OrderStatement:
    parts = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
    if len(parts) not in (2, 3):
        raise InputError(
            f"{where}: {given!r:.80} is not a statement; expected (before, after) or "
            "(before, after, probability)."
        )
    return OrderStatement(
        str(parts[0]), str(parts[1]), 1.0 if len(parts) == 2 else read_probability(parts[2], where)
    )


def read_probability(given: Any, where: str) -> float:
    """Return the probability of a statement, which must be above 0.5 and at most 1."""
    if not (is_number(given) and 0.5 < given <= 1.0):
        raise InputError(
            f"{where}: the probability that a statement is right is {given!r:.40}; expected a "
            "number above 0.5 and at most 1. At 0.5 a statement has no information: leave it out. "
            "Below 0.5, exchange the two items."
        )
    return float(given)


def refuse_absent(
    statement: OrderStatement,
    column: Mapping[str, int],
    is_present: Callable[[int], bool],
    where: str,
) -> None:
    """Refuse a statement about an unknown item, or an item that the sample does not have."""
    for label in statement[:2]:
        if label not in column:
            raise InputError(f"{where}: {unknown(label, tuple(column))} is not among the items.")
        if not is_present(column[label]):
            raise InputError(
                f"{where}: the statement says {statement.before!r} before {statement.after!r}, but "
                f"the sample is not known to have {label!r}. Only items that a sample has can be "
                "ordered: correct the cell, or leave the statement out."
            )
    if statement.before == statement.after:
        raise InputError(f"{where}: {statement.before!r} cannot come before itself.")


def refuse_repeated(statements: Sequence[OrderStatement], where: str) -> None:
    """Refuse two statements about the same pair of items."""
    seen: set[frozenset[str]] = set()
    for statement in statements:
        pair = frozenset(statement[:2])
        if pair in seen:
            raise InputError(
                f"{where}: there are two statements about {statement.before!r} and "
                f"{statement.after!r}; expected at most one. Combine them into one statement."
            )
        seen.add(pair)


def refuse_cycle(statements: Sequence[OrderStatement], where: str) -> None:
    """Refuse statements of probability 1 that form a cycle, which no order satisfies."""
    cycle = find_cycle([(s.before, s.after) for s in statements if s.probability == 1.0])
    if cycle:
        raise InputError(
            f"{where}: the statements form a cycle, {' before '.join(map(repr, cycle))}, which no "
            "order satisfies. Leave one of them out, or give them probabilities below 1."
        )


def find_cycle(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return the labels along a cycle, or an empty list if there is no cycle.

    The first label is repeated at the end.

    Examples
    --------
    >>> find_cycle([("a", "b"), ("b", "c"), ("c", "a")])
    ['a', 'b', 'c', 'a']
    """
    later: dict[str, list[str]] = {}
    for before, after in pairs:
        later.setdefault(before, []).append(after)
    done: set[str] = set()

    def follow(label: str, path: list[str]) -> list[str]:
        if label in path:
            return [*path[path.index(label) :], label]
        if label in done:
            return []
        for after in later.get(label, ()):
            cycle = follow(after, [*path, label])
            if cycle:
                return cycle
        done.add(label)
        return []

    for label in later:
        cycle = follow(label, [])
        if cycle:
            return cycle
    return []


def closed(statements: Sequence[OrderStatement], kept: Iterable[str]) -> tuple[OrderStatement, ...]:
    """Return the statements about items in `kept`, with those that follow from other statements.

    Two certain statements (probability 1) imply a third one if they share an item: a before b and b
    before c imply a before c. Implied statements are added if some items are not kept, because the
    statements that imply them may then be left out. If the order of a pair is certain, an uncertain
    statement about the same pair is left out.
    """
    labels = set(kept)
    later: dict[str, set[str]] = {}
    for s in statements:
        if s.probability == 1.0:
            later.setdefault(s.before, set()).add(s.after)
    certain: set[tuple[str, str]] = set()
    for label in later:
        stack, reached = [label], set()
        while stack:
            for after in later.get(stack.pop(), ()):
                if after not in reached:
                    reached.add(after)
                    stack.append(after)
        certain.update((label, after) for after in reached)
    direct = {(s.before, s.after) for s in statements}
    through = {
        pair
        for pair in certain
        # A pair that is not in `direct` is implied by other statements. It is added only if some
        # item is not kept, because some of those statements may then be left out.
        if pair in direct or any(label not in labels for label in later)
    }
    found = [OrderStatement(*pair) for pair in through if labels.issuperset(pair)]
    settled = {frozenset(s[:2]) for s in found}
    found += [
        s
        for s in statements
        if s.probability < 1.0 and labels.issuperset(s[:2]) and frozenset(s[:2]) not in settled
    ]
    return tuple(sorted(found))
