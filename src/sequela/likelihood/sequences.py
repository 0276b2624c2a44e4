"""Compute the likelihood of sequences of arrivals (sections 4.1 to 4.3 of the paper).

Sequences may be complete or partial, and their observation times may be known or unknown.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from sequela.kernels.arguments import SetList
from sequela.kernels.sequence import COMPLETE, MARGINAL, TIMED, sequences_block
from sequela.likelihood.parameters import Parameters
from sequela.model import Model, as_model
from sequela.support.errors import InputError
from sequela.support.frames import is_frame
from sequela.support.jit import call
from sequela.support.threads import resolve_threads, run_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from sequela.model import ModelLike

__all__ = ["sequence_log_likelihood"]

_BLOCKS = 16


@overload
def sequence_log_likelihood(
    model: ModelLike,
    sequences: Iterable[Sequence[Any]],
    *,
    times: ArrayLike | None = ...,
    complete: bool = ...,
    items: Sequence[str] | None = ...,
    return_gradient: Literal[False] = ...,
    n_threads: int | None = ...,
) -> float: ...


@overload
def sequence_log_likelihood(
    model: ModelLike,
    sequences: Iterable[Sequence[Any]],
    *,
    times: ArrayLike | None = ...,
    complete: bool = ...,
    items: Sequence[str] | None = ...,
    return_gradient: Literal[True],
    n_threads: int | None = ...,
) -> tuple[float, NDArray[np.float64]]: ...


def sequence_log_likelihood(
    model: ModelLike,
    sequences: Iterable[Sequence[Any]],
    *,
    times: ArrayLike | None = None,
    complete: bool = False,
    items: Sequence[str] | None = None,
    return_gradient: bool = False,
    n_threads: int | None = None,
) -> float | tuple[float, NDArray[np.float64]]:
    """Return the mean log-likelihood of sequences of items in order of arrival.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta (n, n)
        theta[i, j] is the log-effect of item i on the rate of item j.
    sequences : list of sequences
        The items of each sequence, in the order in which they arrived. Items are labels if the
        model has labels or `items` is given. Otherwise they are positions from 0 to n - 1.
        Sequences may be empty.
    times : array or None
        The time at which each sequence was observed (section 4.2). If it is None, times are unknown
        and have the distribution of the model's observation (Proposition 2).
    complete : bool
        Whether every sequence contains all items and is observed after the last arrival (eq. 4).
    items : sequence of str or None
        Labels of the rows and columns of theta.
    return_gradient : bool
        Whether to also return the n x n gradient with respect to theta.
    n_threads : int or None
        Number of threads. None means all cores that this process may use.

    Examples
    --------
    >>> import numpy as np
    >>> theta = np.array([[0.0, 4.0], [0.0, -4.0]])
    >>> round(sequence_log_likelihood(theta, [[0, 1], [0]]), 6)
    -1.395411
    >>> round(sequence_log_likelihood(theta, [[0, 1]], complete=True), 6)
    -0.01815
    """
    labels = _labels(model, items)
    chosen_model = as_model(model, items)
    parameters = Parameters.of(chosen_model)
    n = parameters.n
    flat, indptr = _positions(sequences, labels, n)
    count = indptr.size - 1
    if complete and times is not None:
        raise InputError(
            "complete=True means that all items have arrived, at any time; it cannot be combined "
            "with times. Leave out one of the two arguments"
        )
    if complete and (np.diff(indptr) != n).any():
        row = int(np.nonzero(np.diff(indptr) != n)[0][0])
        raise InputError(
            f"sequence {row} has {indptr[row + 1] - indptr[row]} of the {n} items; with "
            "complete=True, expected all items in every sequence"
        )
    kind = COMPLETE if complete else MARGINAL if times is None else TIMED
    when = np.zeros(count) if times is None else _times(times, indptr)
    log_p = np.empty(count)
    listed = SetList(indptr, flat, np.full(count, 1.0 / count))
    # At time 0 the sequence is empty with probability 1.
    chosen = np.nonzero(when > 0.0)[0] if kind == TIMED else np.arange(count)
    log_p[when == 0.0] = 0.0

    def work(block: NDArray[np.int64]) -> NDArray[np.float64]:
        gradient = np.zeros((n, n) if return_gradient else (1, 1))
        call(
            sequences_block, gradient, log_p, parameters.theta, listed, block, kind, when,
            parameters.stop_rate, return_gradient,
        )  # fmt: skip
        return gradient

    # Make the array contiguous, because a kernel is compiled for one layout of its arguments.
    blocks = [chosen[start::_BLOCKS].copy() for start in range(min(_BLOCKS, chosen.size))]
    parts = run_pieces(work, blocks, resolve_threads(n_threads))
    if np.isnan(log_p).any():
        row = int(np.nonzero(np.isnan(log_p))[0][0])
        raise InputError(
            f"theta gives rates outside the range of floating-point numbers along sequence {row}; "
            "use a theta with smaller entries"
        )
    value = float(log_p.mean())
    if not return_gradient:
        return value
    return value, np.sum(parts, axis=0) if parts else np.zeros((n, n))


def _labels(model: ModelLike, items: Sequence[str] | None) -> dict[str, int] | None:
    """Return the position of each label; None for a theta without labels."""
    unlabelled = not (isinstance(model, Model) or is_frame(model) or hasattr(model, "model_"))
    if items is None and unlabelled:
        return None
    items = as_model(model).items if items is None else items
    place = {str(label): index for index, label in enumerate(items)}
    if len(place) != len(items):
        raise InputError("items has duplicate labels; expected each item once")
    return place


def _positions(
    sequences: Iterable[Sequence[Any]], labels: dict[str, int] | None, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the item positions of all sequences, concatenated, and where each sequence starts."""
    if isinstance(sequences, str):
        raise InputError("sequences is one text; expected a list of sequences of items")
    flat: list[int] = []
    ends = [0]
    for row, sequence in enumerate(sequences):
        if isinstance(sequence, str) or not hasattr(sequence, "__iter__"):
            raise InputError(
                f"sequence {row} is {sequence!r}; expected a sequence of items, such as ['A', 'B']"
            )
        seen: set[int] = set()
        for item in sequence:
            position = _position(item, row, labels, n)
            if position in seen:
                raise InputError(
                    f"sequence {row} contains {item!r} twice; an item arrives at most once"
                )
            seen.add(position)
            flat.append(position)
        ends.append(len(flat))
    if len(ends) == 1:
        raise InputError("no sequences were given; expected at least one")
    return np.array(flat, dtype=np.int64), np.array(ends, dtype=np.int64)


def _position(item: Any, row: int, labels: dict[str, int] | None, n: int) -> int:
    if labels is not None:
        if str(item) in labels:
            return labels[str(item)]
        near = difflib.get_close_matches(str(item), list(labels), n=3)
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        raise InputError(f"sequence {row} has the unknown item {item!r}{hint}")
    if isinstance(item, (bool, np.bool_)) or not isinstance(item, (int, np.integer)):
        raise InputError(
            f"sequence {row} has the item {item!r}; without labels, expected positions from 0 to "
            f"{n - 1}. To use labels, give `items`, or theta as a labelled DataFrame"
        )
    if not 0 <= item < n:
        raise InputError(
            f"sequence {row} has the item {item}; theta has {n} items, so expected a position from "
            f"0 to {n - 1}"
        )
    return int(item)


def _times(times: ArrayLike, indptr: NDArray[np.int64]) -> NDArray[np.float64]:
    try:
        array = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"times cannot be read as numbers ({times!r}); expected one number per sequence"
        ) from None
    count = indptr.size - 1
    if array.shape != (count,):
        raise InputError(
            f"times has shape {array.shape}; expected one number for each of {count} sequences"
        )
    bad = ~(np.isfinite(array) & (array >= 0.0))
    if bad.any():
        row = int(np.nonzero(bad)[0][0])
        raise InputError(f"the time of sequence {row} is {array[row]}; expected a number >= 0")
    zero = np.nonzero((array == 0.0) & (np.diff(indptr) > 0))[0]
    if zero.size:
        raise InputError(
            f"sequence {zero[0]} is observed at time 0 but has items; at time 0 no item has "
            "arrived yet, so the probability is zero. Correct the time or the sequence"
        )
    return array
